"""The main jobs in one call each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from margrave._io import path_of
from margrave.accounting import Policy, Unit
from margrave.custodian import warn, warn_custodian
from margrave.data import public_codes
from margrave.error_sanitizer import hide_table, reveal_table, short_errors
from margrave.frames import row_count
from margrave.learning_stage import budget_for, rows_to_learn
from margrave.mechanisms import Mechanism
from margrave.planning import Plan
from margrave.privacy import Score
from margrave.public_table import PublicTable
from margrave.purposes import open_ended, purposes_of
from margrave.release import Release
from margrave.run import Run, settled_unit
from margrave.schema import Schema, schema_of
from margrave.sealed import registered_schema
from margrave.unit import size_is_public
from margrave.workload import Workload


@short_errors
def synthesize(
    table: Any,
    schema: Schema | str | Path,
    *,
    epsilon: float,
    delta: float,
    unit: Unit | str | None = None,
    mechanism: Mechanism | str | None = None,
    seed: int | None = None,
    progress: Callable[[str, float], None] | bool | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    policy: Policy | str | Path | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    same_table: bool = False,
    on_custodian: Callable[[str], None] | None = None,
    allow_large_delta: bool = False,
    vouched: Iterable[type[Score]] = (),
    preflight: Literal["custodian", "sealed"] = "custodian",
    unlearnable: Literal["stop", "drop"] = "stop",
    purposes: Sequence[str] = (),
) -> Release:
    """Return a release of a sensitive table.

    All arguments are checked before the first question to the rows.

    Args:
        table: A path, folder or pattern of files, ``duckdb:FILE?table=NAME``, ``spark:NAME``, a data frame, a
            ``Table``, a ``margrave.data.StreamSource``, or a ``margrave.data.TableSource``, which names a table that a
            class of another distribution opens.
        schema: The confirmed schema, or its file.
        epsilon: At most 10,000.
        delta: At most 0.01.
        unit: The unit of privacy, or its name on the command line, such as
            ``"add-remove-person:5"``. ``AddRemoveRow()`` by default; required if the schema names a
            person ID column.
        mechanism: The mechanism, or its name on the command line, such as ``"mst"``; ``AIM()`` by
            default, and ``Forests()`` for more than 50 columns without purposes.
        seed: Makes fitting repeatable; the noise always comes from the operating system.
        progress: Callback (stage, fraction). By default a bar in a terminal or a notebook; False for none.
        ledger: The ledger file that bounds what all runs on ``dataset`` spend together.
        dataset: The data set's name in the ledger.
        policy: A policy, or its file.
        journal: A file that stores the answers, so that the run can be resumed.
        resume: Resume the run of the journal, with all other arguments as before.
        same_table: State that a table that was moved, or written again, since the run began is the same table.
        on_custodian: Callback for sentences about the rows, which are for the custodian alone, such as the
            columns whose bounds or categories are theirs, as if they were read off them. By default each is a
            ``CustodianWarning``; a sealed run then compares nothing.
        allow_large_delta: Accept a delta of 1 in the number of rows or more, if that number is public, and else one
            above 1e-5.
        vouched: Classes of scores outside the library whose sensitivity you vouch for; the
            certificate names them.
        preflight: ``"sealed"`` is for services whose callers are not the custodian; see ``Run``.
        unlearnable: What to do about a column to learn whose values the noise hides: "stop" or "drop".
        purposes: What the release must serve, such as ``"mean price by type"`` or ``"ols price ~ area"``.
            The marginals that they rest on weigh as much as all others of the workload together.

    Raises:
        InputError: An argument is wrong, or the mechanism returned a release with other answers
            than the gate's.
        SchemaError: The schema is a draft or does not suit the unit.
        DataError: The table cannot be read, or a policy refuses its values.
        ModelTooLargeError: No model of the domain can be fitted.
        PolicyError: The policy forbids the run.
        BudgetError: The data set's cap leaves no room.
        LedgerError: The ledger or journal is damaged, in use, or of another run.
        UnfinishedError: The run failed after it had spent; ``release`` has every noisy answer and
            no model.

    Warns:
        CustodianWarning: The rows that columns to learn need; or what ``on_custodian`` would get. Without
            ``on_custodian``, a run that is not sealed omits the former for a frame with enough rows, and then marks it
            as not private if the unit keeps the row count private.

    Privacy:
        Spends at most what (``epsilon``, ``delta``) allow, for one ``unit``. A resumed run does not
        pay again for stored answers.
    """
    table = hide_table(table)
    if preflight == "sealed":
        confirmed = registered_schema(schema, ledger, dataset)
    else:
        confirmed = schema_of(schema, table=table)
    run = Run(
        schema=confirmed,
        budget=budget_for(confirmed, epsilon, delta),
        unit=unit,
        mechanism=mechanism,
        policy=policy,
        ledger=ledger,
        dataset=dataset,
        journal=journal,
        resume=resume,
        same_table=same_table,
        seed=seed,
        allow_large_delta=allow_large_delta,
        vouched=vouched,
        preflight=preflight,
        unlearnable=unlearnable,
        purposes=purposes,
    )
    true_rows = None
    if on_custodian is None and preflight != "sealed":
        on_custodian, true_rows = warn_custodian, row_count(reveal_table(table))
    intervals = open_ended(purposes_of(run.purposes, confirmed.domain), confirmed.to_learn)
    settled = settled_unit(confirmed, unit)
    rows = true_rows if size_is_public(settled) else None
    hidden = rows_to_learn(confirmed, run.budget, settled, rows, true_rows=true_rows)
    for note in filter(None, (*intervals, hidden)):
        warn(note)
    return run.synthesize(table, progress=progress, on_custodian=on_custodian)


@short_errors
def plan(
    schema: Schema | str | Path,
    *,
    epsilon: float,
    delta: float,
    unit: Unit | str | None = None,
    mechanism: Mechanism | str | None = None,
    rows: int = 100_000,
    workload: Workload | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    policy: Policy | str | Path | None = None,
    vouched: Iterable[type[Score]] = (),
    purposes: Sequence[str] = (),
) -> Plan:
    """Return the plan of a run: noise, expected errors, memory and time.

    Args:
        schema: The confirmed schema, or its file.
        epsilon: At most 10,000.
        delta: At most 0.01.
        unit: As in ``synthesize``.
        mechanism: As in ``synthesize``.
        rows: A guess of the number of rows, for memory, time, widths and verdicts.
        workload: Marginals to count in the plan, if the mechanism names none.
        ledger: The ledger file that must leave room for the run.
        dataset: The data set's name in the ledger.
        policy: A policy, or its file, which must allow the run.
        vouched: As in ``synthesize``.
        purposes: As in ``synthesize``; the plan states about how wide their intervals will be.

    Raises:
        MargraveError: As ``synthesize`` raises before it reads a row.

    Privacy:
        None spent. No row is read.

    >>> plan(Schema.coded({"age": 10, "sex": 2}), epsilon=1.0, delta=1e-9, mechanism="mst").columns
    2
    """
    confirmed = schema_of(schema)
    run = Run(
        schema=confirmed,
        budget=budget_for(confirmed, epsilon, delta),
        unit=unit,
        mechanism=mechanism,
        policy=policy,
        ledger=ledger,
        dataset=dataset,
        vouched=vouched,
        purposes=purposes,
    )
    return run.plan(rows, workload=workload)


@short_errors
def read_public(
    source: Any,
    schema: Schema | str | Path,
    *,
    attestation: str,
    columns: Sequence[str] | None = None,
    same_records: bool = False,
) -> PublicTable:
    """Return a public table for mechanisms that take one, from a path to a file or a data
    frame.

    It is encoded by the private table's schema, with the same policies for values outside it; the
    result's ``notes`` count these values.

    Args:
        source: The table. It may lack columns of the schema.
        schema: The private table's schema, or its file.
        attestation: Where the records come from and why they are public; the certificate quotes it.
        columns: The columns to read, which must exist; other columns are then ignored. By default
            all that it shares with the schema; a column that the schema neither has nor ignores is
            an error.
        same_records: The records are the private table's own, of which these columns are public.

    Raises:
        DataError: The table cannot be read, or a policy refuses its values.
        SchemaError: The schema cannot be used.
        InputError: An argument is wrong.

    Privacy:
        None spent. The records are not protected.

    >>> import pyarrow as pa
    >>> from margrave.schema import Schema
    >>> schema = Schema.coded({"age": 3, "sex": 2})
    >>> read_public(pa.table({"sex": [0, 1, 1]}), schema, attestation="last year's published sample").domain.attributes
    ('sex',)
    """
    known = schema_of(schema)
    path = path_of(source)
    codes, notes = public_codes(source, known, columns)
    public = PublicTable(
        codes, attestation, same_records, None if path is None else str(path), notes
    )
    if same_records or public.repeats == 1:
        return public
    expanded = (
        f"The public table: every record stands in it {public.repeats:,} times. Was it expanded by weights? AIMPub"
        " counts each once; other mechanisms count repeats as separate records."
    )
    return replace(public, notes=(*notes, expanded))
