"""Run: everything that is decided before a row is read, checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from margrave.accounting import Budget, Ledger, Policy
from margrave.accounting.policy import load_policy
from margrave.accounting.run_log import check_books
from margrave.accounting.strength import check_strength
from margrave.custodian import tell, warn
from margrave.data import BatchTable, MemoryTable, Table, TableSource, read_table
from margrave.domain import Domain
from margrave.error_sanitizer import failure_of, hide_table, reveal_table
from margrave.errors import DataError, InputError, SchemaError, UnfinishedError, did_you_mean
from margrave.frame_kinds import kind_of
from margrave.learning_stage import check_thresholds, learn_columns
from margrave.mechanisms import AIM, MECHANISM_CATALOG, Mechanism, default_mechanism
from margrave.mechanisms.parts.checks import check_domain, check_run, publics_of
from margrave.mechanisms.parts.serving import serving
from margrave.planning import Plan, plan_of
from margrave.privacy import Private, Score, protect
from margrave.privacy.copies import check_vouched
from margrave.progress import reporting
from margrave.provenance import Provenance
from margrave.purpose_analyses import checked_purposes
from margrave.release import Release
from margrave.release.sampling import check_seed
from margrave.release.stamp import stamped
from margrave.resuming import place_of, seed_of
from margrave.row_checks import check_rows, compare_with_rows, name_constraints_left_out
from margrave.schema import Schema
from margrave.schema.learn import likely_domain
from margrave.sealed import check_sealed, registered_schema
from margrave.unfinished import Attempt, answers_kept
from margrave.unit import AddRemoveRow, Unit, rows_per_person, rows_words, size_is_public, unit_of
from margrave.workload import Workload

Progress = Callable[[str, float], None]
Tell = Callable[[str], None]

#: The only two texts about rows that a sealed run gives to its caller.
NOT_BEGUN = "The run did not begin. Nothing was spent."
NOT_FINISHED = "The run failed after its budget was charged."


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a mechanism, before it reads a row. Making one does all checks of public inputs.

    Args:
        schema: The schema, confirmed.
        budget: The budget.
        unit: The unit of privacy, or its name on the command line, such as
            ``"add-remove-person:5"``. ``AddRemoveRow()`` by default; required if the schema names a
            person ID column.
        mechanism: The mechanism, or its name on the command line, such as ``"mst"``; ``AIM()`` by
            default, and ``Forests()`` for more than 50 columns without purposes.
        policy: A policy, or its file.
        ledger: The ledger file that bounds what all runs on ``dataset`` spend together.
        dataset: The data set's name in the ledger.
        journal: A file that stores the answers of the run, so that it can be resumed.
        resume: Resume the run of the journal.
        same_table: State that a table that was moved, or written again, since the run began is the same table.
        seed: Makes fitting repeatable; the noise never is.
        allow_large_delta: Accept a delta of 1 in the number of rows or more, if that number is public, and else one
            above 1e-5.
        vouched: Classes of scores outside the library whose sensitivity you vouch for.
        preflight: The reader of errors about rows. With "custodian", errors count values outside
            the schema. With "sealed", for services whose callers are not custodians, errors about
            rows have one of two texts that reveal nothing of them, every value has a code, the
            schema must be registered in the ledger, and each attempt is recorded there.
        unlearnable: What to do about a column whose values the noise hides: "stop" the run with its
            answers kept, or "drop" the column.
        purposes: What the release must serve, such as "mean price by type" or "ols price ~ area"; see
            ``margrave.purposes``. They weigh the mechanism's workload.

    Raises:
        InputError: If an argument is out of range, or two contradict each other.
        SchemaError: If the schema is a draft or does not suit the unit or a sealed run.
        ModelTooLargeError: If no model of the domain can be fitted.
        PolicyError: If the policy forbids the run.
        BudgetError: If the data set's cap leaves no room.
        LedgerError: If the ledger or journal is damaged, in use, or of another run.

    Privacy:
        None spent. No row is read.
    """

    schema: Schema
    budget: Budget
    unit: Unit | str | None = None
    mechanism: Mechanism | str | None = None
    policy: Policy | str | Path | None = None
    ledger: str | Path | None = None
    dataset: str | None = None
    journal: str | Path | None = None
    resume: bool = False
    same_table: bool = False
    seed: int | None = None
    allow_large_delta: bool = False
    vouched: Iterable[type[Score]] = ()
    preflight: Literal["custodian", "sealed"] = "custodian"
    unlearnable: Literal["stop", "drop"] = "stop"
    purposes: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.same_table and not self.resume:
            raise InputError(
                "same_table=True only applies together with resume=True.",
                remedy="Give --resume too (in Python resume=True), or leave --same-table (same_table) out.",
            )
        domain = self.schema.domain
        default = AIM if self.purposes else default_mechanism(domain)
        checked_purposes(self.purposes, self.schema)
        made = serving(mechanism_of(self.mechanism, default), self.purposes, domain)
        self._set("mechanism", made)
        self._set("vouched", check_vouched(self.vouched))
        self._set("unit", settled_unit(self.schema, self.unit))
        check_strength(
            self.budget,
            allow_large_delta=self.allow_large_delta,
            rows_are_public=size_is_public(self._unit),
        )
        self._set("policy", load_policy(self.policy))
        check_run(self._likely, self._mechanism, self._unit, ahead=True)
        self._policy.check(
            self.schema, self._unit, self.budget, ledger=self.ledger, dataset=self.dataset
        )
        if self.preflight not in ("custodian", "sealed"):
            raise InputError(
                f"preflight is {self.preflight!r}.",
                remedy=f'{did_you_mean(self.preflight, ("custodian", "sealed"))}It is "custodian" or "sealed".',
            )
        if self.unlearnable not in ("stop", "drop"):
            raise InputError(
                f"unlearnable is {self.unlearnable!r}.",
                remedy=f'{did_you_mean(self.unlearnable, ("stop", "drop"))}It is "stop" or "drop".',
            )
        if self.schema.to_learn and publics_of(self._mechanism):
            raise InputError(
                "A public table is read with the schema's codes, and the schema has columns to learn.",
                remedy="Declare these columns, or choose a mechanism without a public table.",
            )
        check_thresholds(self.schema, self.budget, self._unit)
        if self._sealed:
            check_sealed(self.schema, self._unit, self._mechanism)
            registered_schema(self.schema, self.ledger, self.dataset)
        self._stored()

    def plan(self, rows: int = 100_000, *, workload: Workload | None = None) -> Plan:
        """Return the noise, the expected errors, the memory and the time of the run.

        Args:
            rows: A guess of the number of rows, for memory, time, widths and verdicts.
            workload: Marginals to count in the plan, if the mechanism names none.

        Privacy:
            None spent. No row is read.
        """
        return plan_of(
            self.schema.domain,
            self._mechanism,
            budget=self.budget,
            unit=self._unit,
            workload=workload,
            rows=rows,
            schema=self.schema,
        )

    def synthesize(
        self,
        table: Any,
        *,
        progress: Progress | bool | None = None,
        on_custodian: Tell | None = None,
    ) -> Release:
        """Return a release of a sensitive table.

        Args:
            table: A path, folder or pattern of files, the address of a table in a DuckDB database, a
                data frame, a ``StreamSource``, any ``Table`` with this run's schema, or the ``TableSource`` of one.
            progress: Callback ``(stage, fraction)``; both depend on public values only. By default a
                bar in a terminal or a notebook; False for none.
            on_custodian: Callback for sentences about the rows, which are for the custodian alone: the columns whose
                bounds or categories are theirs, that a constraint on learned columns was left out, and in a sealed
                run what went wrong. Without it nothing is compared.

        Raises:
            DataError: If the table cannot be read or is not as the run needs it. Nothing is spent.
            UnfinishedError: If the run fails later; its ``release`` has every noisy answer and no model.

        Privacy:
            Spends at most the budget, for one unit. Answers of a resumed run are not paid again.
        """
        table = hide_table(table)
        attempt = Attempt(Provenance.of(self._mechanism.config()))
        run = self._sealed_synthesis if self._sealed else self._synthesis
        kind = kind_of(reveal_table(table))
        with reporting(progress) as callback:
            return replace(run(table, attempt, callback, on_custodian), frames=kind)

    def _synthesis(
        self, table: Any, attempt: Attempt, progress: Progress | None, on_custodian: Tell | None
    ) -> Release:
        self.schema.check_apart(table)
        check_run(self._likely, self._mechanism, self._unit, table=table)
        stored = self._stored()
        seed = self.seed
        if self.journal is not None and seed is None:
            seed = seed_of(stored)
        facts: dict[str, Any] = {"mechanism": attempt.provenance.to_dict(), "seed": seed}
        if self.journal is not None:
            facts |= place_of(table, stored, self.journal, same_table=self.same_table)
        source = self._read(table)
        if not self._sealed:
            check_rows(source, self._mechanism)
            compare_with_rows(table, source, self.schema, on_custodian)
        rng, preflight = np.random.default_rng(seed), self._preflight_of(table, source)
        release = self._release(source, attempt, facts, preflight, rng, progress)
        with suppress(Exception):  # no callback or filter of warnings may cost it
            name_constraints_left_out(self.schema, release.schema, on_custodian)
        return release

    def _sealed_synthesis(
        self, table: Any, attempt: Attempt, progress: Progress | None, on_custodian: Tell | None
    ) -> Release:
        """Record the attempt; give only the public texts of its errors, and lose no release to ledger or callback."""
        failure: BaseException | None = None
        outcome, notes = "released", list[str]()
        try:
            release = self._synthesis(table, attempt, progress, on_custodian)
        except Exception as error:
            failure = _public_error(error)
            outcome = str(failure)
            notes.append(failure_of(error.__cause__ or error).words)
        except BaseException as error:
            failure, outcome = type(error)(), "interrupted"
        try:
            Ledger(str(self.ledger)).record_attempt(str(self.dataset), outcome)
        except Exception as error:
            unrecorded = f"The attempt is not recorded in the ledger: {failure_of(error).words}"
            tell(unrecorded, on_custodian or warn)
        while notes:  # no frame of the error may hold them
            tell(notes.pop(), on_custodian)
        if failure is not None:
            raise failure
        return release

    def _release(
        self,
        source: Table,
        attempt: Attempt,
        facts: Mapping[str, Any],
        preflight: str,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> Release:
        gate = protect(
            source,
            unit=self._unit,
            budget=self.budget,
            policy=self._policy,
            ledger=self.ledger,
            dataset=self.dataset,
            journal=self.journal,
            resume=self.resume,
            facts=facts,
            allow_large_delta=self.allow_large_delta,
            vouched=self.vouched,
            preflight=preflight,
        )
        with answers_kept(attempt, journal=self.journal, sealed=self._sealed), gate as private:
            attempt.gate = private
            made = self._learned(private, progress).run(private, rng=rng, progress=progress)
            account = private.schema, private.transcript, private.account()
            own = stamped(made, type(self._mechanism).__name__, *account)
            release = attempt.release = own.resting_on(
                self._mechanism, self._mechanism.estimator(), source
            )
        return release

    def _learned(self, private: Private, progress: Progress | None) -> Mechanism:
        """Learn the schema's open columns, and return the mechanism for the columns that are left."""
        thresholds, mechanism = Fraction(self.budget.threshold_delta), self._mechanism
        learn_columns(
            private,
            mechanism,
            self.unlearnable,
            thresholds,
            progress,
            resumable=self.journal is not None,
        )
        return mechanism.on_learned(private.domain) if self.schema.to_learn else mechanism

    def _preflight_of(self, table: Any, source: Table) -> str:
        """Return who checked the rows: a table that was read before was read by the custodian."""
        if not isinstance(source, MemoryTable | BatchTable):
            return "source"
        read_here = not isinstance(reveal_table(table), Table)
        return "sealed" if self._sealed and read_here else "custodian"

    def _read(self, table: Any) -> Table:
        # no local variable of this frame may hold a data frame: see hide_table
        if not isinstance(reveal_table(table), Table | TableSource):
            return read_table(table, self.schema, total=self._sealed)
        source = _opened(reveal_table(table), self.schema)
        if source.schema != self.schema:
            raise DataError(
                "The table was read with another schema.",
                remedy="Give the schema that it was read with, or the rows themselves.",
            )
        return source

    def _stored(self) -> Mapping[str, Any]:
        """Return the header of the journal to resume. Raise if the ledger or journal would refuse
        the run.
        """
        return check_books(
            self._unit,
            self.budget.rho,
            delta=self.budget.conversion_delta,
            threshold_delta=Fraction(self.budget.threshold_delta),
            ledger=self.ledger,
            dataset=self.dataset,
            journal=self.journal,
            resume=self.resume,
        )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def _mechanism(self) -> Mechanism:
        assert isinstance(self.mechanism, Mechanism)
        return self.mechanism

    @property
    def _likely(self) -> Domain:
        return likely_domain(self.schema.domain, self.schema.to_learn)

    @property
    def _unit(self) -> Unit:
        return unit_of(self.unit or AddRemoveRow())

    @property
    def _policy(self) -> Policy:
        assert isinstance(self.policy, Policy)
        return self.policy

    @property
    def _sealed(self) -> bool:
        return self.preflight == "sealed"


def mechanism_of(choice: Mechanism | str | None, default: type[Mechanism] = AIM) -> Mechanism:
    """Return a mechanism as it is, by its name with its defaults, or the default.

    Raises:
        InputError: If it is neither.
    """
    if choice is None:
        return default()
    if isinstance(choice, str):
        made: Mechanism = MECHANISM_CATALOG.get(choice)()
        return made
    if not isinstance(choice, Mechanism):
        raise InputError(
            f"{getattr(choice, '__name__', type(choice).__name__)!r} is not a mechanism.",
            remedy=MECHANISM_CATALOG.advice(),
        )
    return choice


def settled_unit(schema: Schema, unit: Unit | str | None) -> Unit:
    """Return the unit, or the default.

    Raises:
        SchemaError: If values of the schema were read off the rows, or it has no person ID column for a unit of
            persons.
        InputError: If it has one and no unit is given.
        ModelTooLargeError: If a column has too many codes for any model.
    """
    schema.check_not_read()
    if unit is None and schema.person is not None:
        # a promise about rows would be taken for one about persons
        taken = (
            f"The draft takes {schema.person!r} for a person ID column, and no unit of privacy is given."
            if schema.from_draft
            else f"The schema says that {schema.person!r} is a person ID column, and no unit of privacy is given."
        )
        raise InputError(
            taken,
            remedy="Give --unit add-remove-person:K (in Python unit=AddRemovePerson(K)), or --unit add-remove-row"
            f" (AddRemoveRow()), if a row is really what to protect. {rows_words()}",
        )
    settled = AddRemoveRow() if unit is None else unit_of(unit)
    if rows_per_person(settled) is not None and schema.person is None:
        raise SchemaError(
            f"The unit is to {settled}, but the schema names no column that says whose row it is.",
            remedy='Write person = "..." in its [schema], or choose a unit of rows.',
        )
    check_domain(schema.domain)
    return settled


def _opened(table: Table | TableSource, schema: Schema) -> Table:
    return table.open(schema) if isinstance(table, TableSource) else table


def _public_error(error: Exception) -> UnfinishedError | DataError:
    if isinstance(error, UnfinishedError):
        return UnfinishedError(NOT_FINISHED, release=error.release)
    return DataError(NOT_BEGUN)
