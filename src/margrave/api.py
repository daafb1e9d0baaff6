"""The main job in one call."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from margrave.data import categories_in_rows, public_codes, read_table
from margrave.error_sanitizer import hidden
from margrave.errors import DataError, InputError, LedgerError, SchemaError
from margrave.files import path_of
from margrave.mechanisms import AIM, MECHANISMS, Mechanism
from margrave.mechanisms.checks import check_domain, check_run, publics_of
from margrave.models.specs import keeps_answers_only
from margrave.privacy import AddRemoveRow, Budget, Policy, Score, Unit, protect
from margrave.privacy.books import check_books
from margrave.privacy.copies import check_vouched
from margrave.privacy.policy import policy_of
from margrave.privacy.strength import check_strength
from margrave.privacy.unit import rows_per_person, unit_of
from margrave.public import Public
from margrave.release import Release
from margrave.release.seeds import check_seed
from margrave.release.stamp import stamped
from margrave.schema import Schema, schema_of
from margrave.unfinished import Attempt, answers_kept

METHODS = ("reads", "steps", "run", "config")
"""What a mechanism answers: without one of them a run would fail, and maybe after it has spent."""


def synthesize(
    table: Any,
    schema: Schema | str | Path,
    *,
    epsilon: float,
    delta: float,
    unit: Unit | str | None = None,
    mechanism: Mechanism | str | None = None,
    seed: int | None = None,
    progress: Callable[[str, float], None] | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    policy: Policy | str | Path | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    same_table: bool = False,
    on_custodian: Callable[[str], None] | None = None,
    allow_large_delta: bool = False,
    vouched: Iterable[type[Score]] = (),
) -> Release:
    """A release of a sensitive table: a path to CSV or Parquet, a data frame, or what ``read_table`` gave.

    ``mechanism`` is one, such as ``MST()``, or its name on the command line, such as ``"mst"``; ``AIM()`` without.
    Everything that can be wrong with the arguments is found before the first question is put to the rows. ``seed``
    makes the fitting repeatable; the noise always comes from the operating system.

    ``ledger`` is a ledger file that bounds what all runs on ``dataset`` spend together; ``policy`` is a policy or its
    file; ``journal`` is a file from which a run that was killed goes on, with ``resume=True`` and all else as before.
    A table that stands elsewhere than it did then is refused, unless ``same_table=True`` says that it is the same.

    ``on_custodian`` is called with a sentence about the rows if every category that the schema lists for a column
    occurs in them, as where the list was read off them. The sentence is for the custodian alone, and never part of a
    release; without ``on_custodian`` nothing is compared.

    An epsilon above 10,000 and a delta above 0.01 are refused. ``allow_large_delta`` accepts a delta of 1 in the number
    of rows or more, where that number is public.

    ``vouched`` are classes of scores outside the library whose sensitivity you vouch for; the certificate names them.
    The account, the schema and the noisy answers in the release are the gate's: a mechanism whose release has others is
    refused.

    ``unit`` is ``AddRemoveRow()`` unless it is given, or its name on the command line, such as
    ``"add-remove-person:5"``; where the schema names a column of persons it has to be given.

    **Privacy:** spends at most what (``epsilon``, ``delta``) allow, for one ``unit``; what a resumed run was answered
    before is not paid again. Raises ``InputError``, ``SchemaError``, ``DataError``, ``ModelTooLargeError``,
    ``PolicyError``, ``BudgetError`` (the data set's cap leaves no room) or ``LedgerError`` before anything is spent.
    A run that fails afterwards raises ``UnfinishedError``, whose ``release`` has every noisy answer and no model.
    """
    check_seed(seed)
    table = hidden(table)
    if same_table and not resume:
        raise InputError(
            "That the table is the same is for a run that goes on.",
            remedy="Give --resume too (in Python resume=True), or leave --same-table (same_table) out.",
        )
    budget = Budget.approx(epsilon, delta)
    check_strength(budget)
    confirmed = schema_of(schema, table=table)
    confirmed.check_apart(table)
    chosen, types = mechanism_of(mechanism), check_vouched(vouched)
    unit = check_schema(confirmed, unit)
    check_run(confirmed.domain, chosen, unit, table=table)
    rules = policy_of(policy)
    rules.check(confirmed, unit, budget, ledger=ledger, dataset=dataset)
    where: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "journal": journal, "resume": resume}
    stored = check_books(unit, budget.rho, delta=budget.delta, **where)
    if journal is not None and seed is None:
        seed = _seed_of(stored)
    facts: dict[str, Any] = {"mechanism": chosen.config(), "seed": seed}
    if journal is not None:
        facts |= _place_of(table, stored, journal, same_table=same_table)
    source = read_table(table, confirmed)
    if not source.rows():  # a failure of reading, for the custodian: the gate itself takes an empty table
        raise DataError("The table has no rows: the budget would be spent on nothing.", remedy="Is it the right file?")
    for public in publics_of(chosen):
        if public.same_records and not source.holds(public.codes):  # these columns are public, says the attestation
            raise DataError(
                "The public columns are not those of the private table's records, and would be taken for exact.",
                remedy="Give the columns of the same records, read by the same schema, or leave --same-records out (in"
                " Python same_records). Nothing was spent.",
            )
        if not public.same_records and source.holds(public.codes):
            raise DataError(
                "The public table's records are the private ones: nobody in it would be protected.",
                remedy="Name a table of other records. Where these columns of the private records are public, say"
                " --same-records (in Python same_records=True). Nothing was spent.",
            )
    if on_custodian is not None and (sentence := categories_in_rows(source)):
        on_custodian(sentence)
    rng = np.random.default_rng(seed)  # fitting is post-processing
    where["allow_large_delta"] = allow_large_delta
    attempt = Attempt(facts["mechanism"])
    with (
        answers_kept(attempt, resumable=journal is not None),
        protect(source, unit=unit, budget=budget, policy=rules, facts=facts, vouched=types, **where) as private,
    ):
        attempt.gate = private
        made = chosen.run(private, rng=rng, progress=progress)
        books = private.schema, private.transcript, private.account()
        release = attempt.release = stamped(made, type(chosen).__name__, *books)
    return release


def read_public(
    source: Any,
    schema: Schema | str | Path,
    *,
    attestation: str,
    columns: Sequence[str] | None = None,
    same_records: bool = False,
) -> Public:
    """A public table for mechanisms that take one: a path to CSV or Parquet, or a data frame.

    It is encoded by the private table's schema: the same columns or some of them, the same codes, the same policies
    for values outside; ``notes`` of what is returned says of how many values that made others. Columns of the schema
    that it lacks are left out; ``columns`` names the ones to read, and then it must have them and may have any others.
    Without, a column that the schema neither has nor ignores is an error. ``attestation`` says where the records come
    from and why they are public; the certificate quotes it. ``same_records``: they are the private table's own, of
    which these columns are public.

    **Privacy:** none spent, and none given: the records are not protected. Raises ``DataError``, ``SchemaError`` or
    ``InputError``.

    >>> import pyarrow as pa
    >>> from margrave.schema import Schema
    >>> schema = Schema.coded({"age": 3, "sex": 2})
    >>> read_public(pa.table({"sex": [0, 1, 1]}), schema, attestation="last year's published sample").domain.attributes
    ('sex',)
    """
    known = schema_of(schema)
    path = path_of(source)
    codes, notes = public_codes(source, known, columns)
    public = Public(codes, attestation, same_records, None if path is None else str(path), notes)
    if same_records or public.repeats == 1:
        return public
    expanded = (
        f"The public table: every record stands in it {public.repeats:,} times. Was it expanded by weights? JAM"
        " believes it as if each stood there once; other mechanisms take repeats for so many records."
    )
    return replace(public, notes=(*notes, expanded))


def mechanism_of(choice: Mechanism | str | None) -> Mechanism:
    """A mechanism as it is, by its name with its defaults, or the default."""
    if choice is None:
        return AIM()
    if isinstance(choice, str) and choice in MECHANISMS:
        made: Mechanism = MECHANISMS[choice]()
        return made
    lacking = [name for name in METHODS if not callable(getattr(choice, name, None))]
    if isinstance(choice, str | type) or len(lacking) == len(METHODS):
        raise InputError(
            f"{getattr(choice, '__name__', choice)!r} is no mechanism.",
            remedy=f"Give an instance, such as AIM(), or one of the names {', '.join(MECHANISMS)}.",
        )
    if lacking:
        raise InputError(
            f"The mechanism {type(choice).__name__} has no method {' and no '.join(f'{m}()' for m in lacking)}.",
            remedy="A mechanism has reads(domain), steps(domain, rho, unit), run(private) and config().",
        )
    return choice


def _seed_of(stored: Mapping[str, Any]) -> int:
    """The seed of the run to resume, so that it asks what it asked before; a new one for a new run."""
    facts = stored.get("facts")
    seed = facts.get("seed") if isinstance(facts, dict) else None
    return seed if isinstance(seed, int) and seed >= 0 else secrets.randbits(63)


def _place_of(
    table: Any, stored: Mapping[str, Any], journal: str | Path, *, same_table: bool
) -> dict[str, str | None]:
    """Where the table stands, for the journal, as a salted hash: answers of two tables would make no release of either.

    Of a run that goes on it must be the same, unless the user says that it is the same table. Frames stand nowhere, and
    earlier journals do not say.
    """
    facts = stored.get("facts")
    if not isinstance(facts, dict):
        return {"table": _salted(path_of(table), secrets.token_hex(8))}
    if "table" not in facts:
        return {}
    begun = facts["table"]
    if begun != _salted(path_of(table), str(begun).partition("$")[0]) and not same_table:
        raise LedgerError(
            f"{journal} is of a run on another table: one that stood elsewhere than {path_of(table) or 'this frame'}.",
            remedy="Resume with the table that the run was begun on. If it is that table, and was moved, say so:"
            " --same-table (in Python same_table=True). Nothing was spent.",
        )
    return {"table": begun}


def _salted(path: Path | None, salt: str) -> str | None:
    """A path's hash, beside what it was salted with."""
    return None if path is None else f"{salt}${sha256(f'{salt}{os.path.realpath(path)}'.encode()).hexdigest()}"


def check_schema(schema: Schema, unit: Unit | str | None) -> Unit:
    """The unit, settled. Refuse a draft, persons and a unit that do not go together, and a column too large."""
    if schema.draft:
        raise SchemaError(
            "The schema is a draft: its bounds and categories were read from the rows, so they are not public.",
            remedy="Replace them by what is known without looking, then confirm it.",
        )
    if unit is None and schema.person is not None:  # a promise about rows would be taken for one about persons
        raise InputError(
            f"The schema says that {schema.person!r} tells whose row it is, and no unit of privacy is given.",
            remedy="Give --unit add-remove-person:K (in Python unit=AddRemovePerson(K)), K being the most rows of a"
            " person that count; or --unit add-remove-row (AddRemoveRow()), if a row is really what to protect.",
        )
    unit = AddRemoveRow() if unit is None else unit_of(unit)
    if rows_per_person(unit) is not None and schema.person is None:
        raise SchemaError(
            f"The unit is to {unit}, but the schema names no column that says whose row it is.",
            remedy='Write person = "..." in its [schema], or choose a unit of rows.',
        )
    check_domain(schema.domain)
    return unit


def gives_records(mechanism: Mechanism) -> bool:
    """Whether its releases have records to draw: not where its fit, which its config names, keeps the answers alone."""
    return not keeps_answers_only(mechanism.config().get("fit"))
