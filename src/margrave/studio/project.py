"""The project that the studio has open: its settings, its runs, its ledger, and what is known of the rows."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import Any

from margrave._io import spark_name_of
from margrave.accounting import Budget, Ledger
from margrave.accounting.journal import holds_run, read_header
from margrave.accounting.ledger_checks import similar_name
from margrave.accounting.ledger_state import DatasetState, dataset_name, epsilon_or_zero
from margrave.accounting.strength import check_strength
from margrave.errors import InputError, LedgerError
from margrave.learning_stage import budget_for
from margrave.planning import Plan
from margrave.profiling import ConstraintQuestion
from margrave.profiling.answers import schema_of_answers, with_constraint
from margrave.run import Run
from margrave.schema import Schema
from margrave.schema.references import References
from margrave.studio.choices import state_of_files
from margrave.studio.findings import Ask, Finding, Findings, ask_process
from margrave.studio.job import JobFolder, Order
from margrave.studio.memory import Memory
from margrave.studio.state import ProjectSettings
from margrave.studio.views import draft_of
from margrave.unit import parse_unit, unit_name


class Project:
    """One folder of the studio.

    Args:
        folder: The folder.
        root: The folder that the studio was started in. Listings do not leave it.
        ask: Asks a process about the rows.
        start: Starts the process of a run.

    Raises:
        InputError: The settings in the folder cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        root: Path,
        *,
        ask: Ask = ask_process,
        start: Callable[[JobFolder], None] = JobFolder.start,
    ) -> None:
        self.folder, self.root = folder, root
        self.findings, self.start = Findings(ask), start
        self.lock = RLock()
        self.settings = ProjectSettings.load(self._settings_file)
        self._jobs: dict[int, JobFolder] = {}
        self._memory = Memory()

    @property
    def _settings_file(self) -> Path:
        return self.folder / "studio.json"

    @property
    def ledger(self) -> Path:
        """The ledger of the project."""
        return self.folder / "studio.ledger"

    @property
    def schema_file(self) -> Path:
        """The schema that the answers make."""
        return self.folder / "schema.toml"

    def save(self, settings: ProjectSettings) -> None:
        """Keep the settings."""
        with self.lock:
            settings.save(self._settings_file)
            self.settings = settings

    def change(self, **changes: Any) -> None:
        """Keep the settings with some changes."""
        with self.lock:
            self.save(replace(self.settings, **changes))

    def path_of(self, text: str) -> str:
        """Return the path of a file or table that a person named, from the folder of the listings.

        Raises:
            InputError: It is empty, or names a home folder that does not exist.
        """
        if not text or "\0" in text:
            raise InputError("No table is named.", remedy="Name a file, or pick one below.")
        if text.startswith("duckdb:"):
            return text
        if spark_name_of(text) is not None:
            raise InputError(
                "The studio opens files and tables of DuckDB, not tables of Spark.",
                remedy="Use the command line: margrave synthesize spark:NAME.",
            )
        try:
            return str(self.root / Path(text).expanduser())
        except RuntimeError:
            raise InputError(
                "The home folder in this path does not exist.", remedy="Write the path."
            ) from None

    # Facts about the rows, for the custodian.

    def reading(self) -> Finding:
        """Return the draft of the table, once it is read."""
        return self.findings.get("read", {"table": self.settings.table})

    def check(self) -> Finding:
        """Return the check of the table against the schema."""
        table = self.settings.table
        order = {"table": table, "toml": self.schema().to_toml()}
        return self.findings.get("check", order, state_of_files(table))

    def comparison(self, job: JobFolder) -> Finding:
        """Return the comparison of the table with the release of a run."""
        release = str(job.path / "release.margrave")
        table = job.order.table
        order = {"table": table, "release": release}
        return self.findings.get("compare", order, state_of_files(table))

    def refusal(self, job: JobFolder) -> Finding:
        """Return why the table of a run is refused, read anew for each page."""
        return self.findings.get("refusal", {"folder": str(job.path)})

    async def make_rows(self, job: JobFolder, name: str) -> Finding:
        """Make a file of a run's drawn rows in a process of its own, and return its answer."""
        key = str(job.path / name)
        finding = self.findings.get("rows", {"folder": str(job.path), "name": name}, key=key)
        while finding.is_open:
            await asyncio.sleep(0.05)
        self.findings.forget(key)
        return finding

    def draft(self, found: Mapping[str, Any]) -> Schema:
        """Return the draft in the answer of ``reading``."""
        return self._memory.get("draft", (found["toml"],), lambda: draft_of(dict(found)))

    # The schema and the run that the answers make.

    def schema_of_answers(self, found: Mapping[str, Any]) -> Schema:
        """Return the schema of the answers, for a table that was read.

        Raises:
            MargraveError: An answer is not usable.
        """
        settings, drafted = self.settings, self.draft(found)
        person = drafted.person if not settings.protects else (settings.person or None)
        made = schema_of_answers(
            drafted, settings.answers, person=person, has_header=settings.has_header
        )
        names = {c.name for c in made.columns}
        for question in questions_of(found):
            said = settings.relations.get(key_of(question), "")
            if said and names.issuperset(question.columns):
                beside = References(self.folder, settings.table)
                made = with_constraint(made, question, beside, said)
        return made

    def schema(self) -> Schema:
        """Return the schema that was settled."""
        return Schema.load(self.schema_file, table=self.settings.table)

    def planned(self) -> Run:
        """Return the run of the settings. Making it does every check of public inputs."""
        schema = self.schema()
        return self._memory.get("run", self._key(schema), lambda: self._run(schema))

    def plan(self) -> Plan:
        """Return the plan of the run of the settings."""
        run, rows = self.planned(), self.settings.rows
        return self._memory.get("plan", (run, rows), lambda: run.plan(rows))

    def _key(self, schema: Schema) -> Hashable:
        s = self.settings
        public = (schema.hash(), s.table, s.choice, s.choice.files)
        return public, s.epsilon, s.delta, s.rows, s.unit, s.purposes

    def _run(self, schema: Schema, **books: Any) -> Run:
        settings = self.settings
        budget = budget_for(schema, settings.epsilon, settings.delta)
        check_strength(budget, rows=settings.rows)
        choice = settings.choice
        mechanism = self._memory.get(  # its public table is read once
            "mechanism",
            (schema.hash(), settings.table, choice, choice.files),
            lambda: choice.mechanism(schema, settings.table),
        )
        return Run(
            schema=schema,
            budget=budget,
            unit=settings.unit,
            purposes=settings.purposes,
            mechanism=mechanism,
            **books,
        )

    # The forms of pages.

    def fingerprint(self, step: str) -> str:
        """Return a hash of what the page of a step is about: a form of another hash is of an older state."""
        about: list[Any] = [self.settings.table]
        reading = self.reading().found if step == "columns" else None
        if reading is not None:
            about.append(reading["toml"])
        if step == "unit":
            about.append([d.dataset for d in self.datasets()])
        if step == "confirm":
            about += [self._key(self.schema()), self.settings.ledger_dataset, self.room()[0]]
        return hashlib.sha256(repr(about).encode("utf-8", "surrogateescape")).hexdigest()

    # The ledger and the runs.

    def datasets(self) -> tuple[DatasetState, ...]:
        """Return the content of the ledger."""
        return _content(Ledger(self.ledger)) if self.ledger.exists() else ()

    def choose_dataset(self, chosen: str | None, new: str) -> None:
        """Keep the data set of the ledger that runs on the table are charged to.

        Args:
            chosen: A data set that the ledger has; "" for a new one, None for no choice.
            new: The name of a new one.

        Raises:
            InputError: The ledger has data sets and none is chosen, or the name is not usable.
        """
        names = [d.dataset for d in self.datasets()]
        if names and chosen is None:
            raise _unchosen()
        if chosen and chosen not in names:
            raise InputError(
                f"The ledger has no data set {chosen!r}.", remedy="Choose another, or a new one."
            )
        name = chosen or dataset_name(new)
        if not chosen and (alike := similar_name(name, names)):
            raise InputError(
                f"The ledger has the data set {alike!r} already.",
                remedy="Choose it if the rows or persons are the same, or write another name.",
            )
        others = tuple(n for n in names if n != name)
        self.change(ledger_dataset=name, other_datasets=others)

    def chosen_dataset(self) -> str | None:
        """Return the data set of the ledger that is chosen; "" for a new one, None if one must be chosen."""
        settings, names = self.settings, {d.dataset for d in self.datasets()}
        if settings.ledger_dataset in names:
            return settings.ledger_dataset
        is_new = settings.ledger_dataset and names.issubset(settings.other_datasets)
        return "" if is_new else None

    def check_dataset(self) -> None:
        """Raise ``InputError`` if no data set of the ledger is chosen, or its releases protect another unit."""
        self.check_ledger()
        if self.chosen_dataset() is None:
            raise _unchosen()
        known = self.account()
        if known is not None and known.runs and known.unit != unit_name(self.settings.unit):
            raise InputError(
                f"The data set {known.dataset!r} is for releases that protect as follows: {parse_unit(known.unit)}.",
                remedy="Choose the same protection, or another data set if these are other rows and persons.",
            )

    def check_ledger(self) -> None:
        """Raise ``InputError`` if the ledger lacks the data set that a run was charged to."""
        names = {d.dataset for d in self.datasets()}
        for number in self.runs():
            job = self.job(number)
            if job.order.ledger_dataset not in names and job.has_begun():
                raise InputError(
                    f"The ledger lacks the data set {job.order.ledger_dataset!r}, which run {number} was charged to.",
                    remedy=f"Put the file {self.ledger} back. Without it nothing bounds what all releases spend.",
                )

    def account(self) -> DatasetState | None:
        """Return the data set of the ledger that runs are charged to; None if the ledger does not have it yet."""
        name = self.settings.ledger_dataset
        return next((d for d in self.datasets() if d.dataset == name), None)

    def room(self) -> tuple[Budget, Fraction]:
        """Return the cap, and what is left of it (zCDP)."""
        known = self.account()
        if known is not None and known.runs:
            return known.cap, known.remaining
        cap = self._cap()
        return cap, cap.rho

    def check_room(self) -> None:
        """Raise ``InputError`` if the cap leaves too little for the run of the settings."""
        budget, known = self.planned().budget, self.account()
        cap, left = self.room()
        is_first = known is None or not known.runs
        if budget.rho > left:
            name, most = self.settings.ledger_dataset, epsilon_or_zero(left, cap.conversion_delta)
            raise InputError(
                f"The cap of {name!r} leaves too little for this epsilon: at most {most:.3g}.",
                remedy="Choose a smaller epsilon, or a larger cap under More choices."
                if is_first
                else "Choose a smaller epsilon. More rows and numbers of a release that was made cost nothing.",
            )
        if known is None or is_first:
            return
        if Fraction(budget.threshold_delta) > known.cap.threshold_room - known.charged_delta:
            raise InputError(
                f"The cap of {known.dataset!r} leaves too little delta to learn categories.",
                remedy="State the categories of all columns on the page Columns.",
            )

    def _cap(self) -> Budget:
        settings = self.settings
        return budget_for(self.schema(), settings.cap_epsilon, 10 * settings.delta)

    def runs(self) -> list[int]:
        """Return the numbers of the runs whose folders are there, in order."""
        found = [re.fullmatch(r"run-(\d{1,6})", p.name) for p in self.folder.iterdir()]
        return sorted(int(m[1]) for m in found if m is not None)

    def latest(self) -> int:
        """Return the number of the latest run; 0 before the first."""
        return max(self.runs(), default=0)

    def job(self, number: int) -> JobFolder:
        """Return a run by its number."""
        if not 1 <= number <= self.latest():
            raise InputError(f"There is no run {number}.", remedy="The ledger lists the runs.")
        return self._jobs.setdefault(number, JobFolder(self.folder / f"run-{number}"))

    def begin(self, number: int, fingerprint: str) -> JobFolder:
        """Begin the run of the settings, once: a second call with its number changes nothing.

        Args:
            number: The number of the run that the page showed.
            fingerprint: The fingerprint of the page Confirm.

        Raises:
            MargraveError: The run would be refused, or is another one than the page showed. Nothing is spent then.
        """
        with self.lock:
            if number <= self.latest():
                return self.job(number)
            self.check_dataset()
            if fingerprint != self.fingerprint("confirm"):
                raise InputError(
                    "The answers have changed since the page was opened.",
                    remedy="Read the page as it is now, and tick the box if all of it may be published. Nothing was"
                    " spent.",
                )
            settings = self.settings
            known = self.account()
            if known is None or not known.runs:
                Ledger(self.ledger).init(
                    settings.ledger_dataset,
                    unit=settings.unit,
                    cap=self._cap(),
                    replace=known is not None,
                )
            self._run(self.schema(), ledger=self.ledger, dataset=settings.ledger_dataset)
            job = self._placed(settings)
            self.start(job)
            return job

    def _placed(self, settings: ProjectSettings) -> JobFolder:
        """Return the folder of a new run, which is there whole or not at all."""
        number = self.latest() + 1
        path, made = self.folder / f".run-{number}", self.folder / f"run-{number}"
        path.mkdir(exist_ok=True)
        self.schema().for_run().save(path / "schema.toml", overwrite=True)
        order = Order(
            settings.table,
            unit_name(settings.unit),
            settings.epsilon,
            settings.delta,
            settings.purposes,
            settings.choice,
            str(self.ledger.absolute()),
            settings.ledger_dataset,
            settings.title,
            settings.office,
            settings.dataset,
        )
        JobFolder(path).place(order)
        path.rename(made)
        return self.job(number)

    def resume(self, number: int, unlearnable: str) -> JobFolder:
        """Go on with a run that ended early."""
        with self.lock:
            job = self.job(number)
            if job.status().state in ("stopped", "failed"):
                job.place(replace(job.order, unlearnable=unlearnable))
                self.start(job)
            return job

    def close(self, number: int) -> JobFolder:
        """Close a run that ended early: it is not resumed, and what it reserved and did not spend is given back."""
        with self.lock:
            job = self.job(number)
            status = job.status()
            if status.state in ("stopped", "failed"):
                ledger = Ledger(job.order.ledger)
                if holds_run(job.journal):
                    name = read_header(job.journal, resume=True)["run"]
                    runs = {r.run: r for d in _content(ledger) for r in d.runs}
                    if name in runs and not runs[name].closed:
                        ledger.close(name)
                job.end({**status.outcome, "state": "closed"})
            return job


def _content(ledger: Ledger) -> tuple[DatasetState, ...]:
    """Return what a ledger holds; if a run was killed while it wrote, take its unfinished line back first."""
    try:
        return ledger.datasets()
    except LedgerError:
        ledger.recover()
        return ledger.datasets()


def _unchosen() -> InputError:
    return InputError(
        "No data set of the ledger is chosen for this table.",
        remedy="Choose one on the page Protection, or a new one.",
    )


def questions_of(found: Mapping[str, Any]) -> list[ConstraintQuestion]:
    """Return the questions on relations in the answer of ``read``."""
    return [
        ConstraintQuestion(kind, tuple(names), words) for kind, names, words in found["questions"]
    ]


def key_of(question: ConstraintQuestion) -> str:
    """Return the name under which the settings keep the answer to a question."""
    return "|".join((question.kind, *question.columns))
