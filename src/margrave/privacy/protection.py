"""The opening of a gate: refusal of tables, and the ledger and journal of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margrave.accounting.budget import Budget
from margrave.accounting.policy import Policy, load_policy
from margrave.accounting.run_log import open_books
from margrave.accounting.strength import check_strength
from margrave.errors import InputError, PolicyError, SchemaError
from margrave.privacy.copies import check_vouched
from margrave.privacy.gate import Private
from margrave.privacy.noise import Randomness, SystemRandomness
from margrave.privacy.scores import Score
from margrave.unit import Unit, rows_per_person, size_is_public, unit_name, unit_of

if TYPE_CHECKING:
    from margrave.data import Table
    from margrave.schema import Schema


def protect(
    table: Table,
    *,
    unit: Unit | str,
    budget: Budget,
    randomness: Randomness | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    policy: Policy | str | Path | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    facts: Mapping[str, Any] | None = None,
    allow_large_delta: bool = False,
    vouched: Iterable[type[Score]] = (),
    preflight: str = "custodian",
) -> Private:
    """Put a table behind the gate: from here on it answers measurements and selections, within the budget.

    Args:
        table: The rows. Under a unit of persons, those of each are first cut to ``max_rows``.
        unit: The unit of privacy.
        budget: All that may be spent.
        randomness: The source of noise. By default the operating system's, after a self-test of the sampler; tests may
            pass another, and the account then says so.
        ledger: A ledger file in which ``dataset`` has a cap. The whole budget is reserved there now, every debit is
            written there before its answer is drawn, and what was not spent is given back when the gate closes.
        dataset: The data set's name in the ledger.
        policy: A policy, or its file.
        journal: A file for the questions and answers of this run.
        resume: Give the answers in the journal again to the same questions, at no further cost.
        facts: What a resumed run must have been begun with, such as the mechanism and its seed: plain and public.
        allow_large_delta: Accept a delta of 1 in the number of rows or more, if that number is public, and else one
            above 1e-5.
        vouched: Classes of scores outside the library whose sensitivity you vouch for. Such a score is handed true
            counts and states its own sensitivity; the certificate names it.
        preflight: Who checked the rows before (``Account``): "custodian", as ``read_table`` does, "sealed" or "source".

    Returns:
        The gate. Under ``ReplaceRow`` the number of rows is public and opens its transcript.

    Raises:
        SchemaError: For a draft schema, or a unit of persons without a column that identifies them.
        PolicyError: For what the policy forbids.
        BudgetError: If the cap leaves no room.
        LedgerError: If the ledger or journal is damaged, in use, or of another run.
        InputError: For an epsilon above 10,000, a delta above 0.01, or a large delta that is not allowed.

    Privacy:
        None spent yet. The whole use of the result is ``budget.rho``-zCDP for this unit.
    """
    unit = unit_of(unit)
    types = check_vouched(vouched)
    if type(budget) is not Budget:
        raise InputError(
            "The budget is not a Budget.", remedy="Make one with Budget.approx(epsilon, delta)."
        )
    if (
        randomness is None or type(randomness) is SystemRandomness
    ):  # of other sources nothing is private
        public = size_is_public(unit)
        check_strength(
            budget,
            rows=table.rows() if public else None,
            rows_are_public=public,
            allow_large_delta=allow_large_delta,
        )
    if table.schema.draft:
        raise SchemaError(
            "The schema is a draft: values in it were read off the rows and may reveal persons.",
            remedy="Write public values, or columns to learn; or check every line against what is public, then confirm"
            " it with schema.confirmed().",
        )
    limit = rows_per_person(unit)
    if limit is not None and table.schema.person is None:
        raise SchemaError(
            f"The unit is to {unit}, but the schema names no column that identifies persons.",
            remedy="Name it as the schema's person, or choose a unit of rows.",
        )
    load_policy(policy).check(table.schema, unit, budget, ledger=ledger, dataset=dataset)
    source = SystemRandomness() if randomness is None else randomness
    if policy is not None and type(source) is not SystemRandomness:
        raise PolicyError(
            "A release under a policy is private, and this randomness is not the operating system's.",
            remedy="Leave randomness out, or, in a test, the policy.",
        )
    head = {} if journal is None else _facts(table.schema, unit, budget, source, facts or {})
    where: dict[str, Any] = {
        "ledger": ledger,
        "dataset": dataset,
        "journal": journal,
        "resume": resume,
    }
    thresholds = Fraction(budget.threshold_delta)
    books = open_books(unit, budget.rho, head, threshold_delta=thresholds, **where)
    try:
        return Private(table, limit, unit, budget, source, books, types, preflight)
    except BaseException:
        books.abandon()
        raise


def _facts(
    schema: Schema, unit: Unit, budget: Budget, source: Randomness, facts: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "schema": schema.hash(),
        "unit": unit_name(unit),
        "rho": str(budget.rho),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        **({"threshold_delta": budget.threshold_delta} if budget.threshold_delta else {}),
        "sampler": source.describe(),
        "facts": dict(facts),
    }
