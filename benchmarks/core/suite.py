"""Tasks, contenders, cells and suites: a benchmark as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import combinations
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.core import library as lib
from benchmarks.core.page import Page
from benchmarks.core.store import Row, Store

Clique = tuple[str, ...]
Setting = Mapping[str, Any]
Key = tuple[Any, ...]

HERE = Path(__file__).resolve().parents[1]
DEFAULT: Setting = {}
"""The setting that changes nothing."""


@dataclass(frozen=True)
class Cell:
    """One run. ``stage`` orders the work; the other fields identify the run.

    ``epsilon`` is None where no privacy is asked for.
    """

    task: str
    contender: str
    setting: Setting = field(default_factory=dict)
    epsilon: float | None = None
    repeat: int = 0
    stage: str = "default"

    @property
    def kind(self) -> Key:
        """All that identifies the run but the number of its repeat."""
        return self.task, self.contender, tuple(sorted(self.setting.items())), self.epsilon

    @property
    def budget(self) -> float:
        """The epsilon of a private run."""
        if self.epsilon is None:
            raise ValueError(f"{self} has no epsilon")
        return self.epsilon

    @property
    def columns(self) -> Row:
        """The columns of a stored row that identify the run."""
        names = ("task", "contender", "setting", "epsilon", "repeat")
        return {name: getattr(self, name) for name in names} | {"setting": dict(self.setting)}

    @staticmethod
    def of(row: Row) -> Cell:
        """Return the cell of a stored row."""
        named = (row["task"], row["contender"], row["setting"], row.get("epsilon"), row["repeat"])
        return Cell(*named)

    def __str__(self) -> str:
        parts = [self.task, self.contender, label(self.setting)]
        parts += [] if self.epsilon is None else [f"epsilon {self.epsilon:g}"]
        return ", ".join([*(part for part in parts if part), f"repeat {self.repeat}"])


def label(setting: Setting) -> str:
    """Return a setting in words: ``rounds=100,eta=2.0``."""
    return ",".join(f"{key}={value}" for key, value in setting.items())


@dataclass(frozen=True, eq=False)
class Table:
    """Private records as codes, with the public tables, test records and target of a task."""

    codes: lib.Codes
    publics: Mapping[str, lib.PublicTable] = field(default_factory=dict)
    test: lib.Codes | None = None
    target: str = ""
    declaration: lib.Schema | None = None

    @property
    def n(self) -> int:
        """The number of private records."""
        return len(self.codes)

    @property
    def schema(self) -> lib.Schema:
        """The table's schema; by default integer codes with their published numbers."""
        if self.declaration is not None:
            return self.declaration
        return lib.Schema.coded(dict(zip(self.codes.domain, self.codes.domain.sizes, strict=True)))


@dataclass(frozen=True, eq=False)
class Task:
    """A table, a workload, and the unit of privacy.

    ``cliques`` maps the domain to the workload's marginals, of equal weight. ``delta`` is 1/n²
    if None. ``facts`` is for the suite.
    """

    title: str
    load: Callable[[Path], Table]
    cliques: Callable[[lib.Domain], Sequence[Clique]]
    delta: float | None = None
    unit: lib.Unit = field(default_factory=lib.ReplaceRow)
    contenders: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def case(self, data: Path) -> Case:
        """Return the task with its table read from a folder. The last two are kept."""
        return _case(self, data)


@lru_cache(maxsize=2)
def _case(task: Task, data: Path) -> Case:
    return Case(task, task.load(data))


@dataclass(frozen=True, eq=False)
class Case:
    """A task with its table."""

    task: Task
    table: Table

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """The workload's marginals."""
        return tuple(self.task.cliques(self.table.codes.domain))

    @property
    def workload(self) -> lib.Workload:
        """The marginals, of equal weight."""
        return lib.Workload.of(self.table.schema.domain, dict.fromkeys(self.cliques, 1.0))

    @property
    def delta(self) -> float:
        """The delta of every run."""
        return 1.0 / self.table.n**2 if self.task.delta is None else self.task.delta

    def release(
        self, mechanism: lib.Mechanism, cell: Cell, codes: lib.Codes | None = None
    ) -> tuple[lib.Release, np.random.Generator]:
        """Run a mechanism on the table, or on other codes, as anybody would.

        The noise comes from the operating system. The cell's repeat seeds the fits, and the
        generator that is returned for drawing records.
        """
        rng = np.random.default_rng([cell.repeat, self.table.n])
        budget = lib.Budget.approx(cell.budget, self.delta)
        rows = lib.MemoryTable(self.table.schema, self.table.codes if codes is None else codes)
        with lib.protect(rows, unit=self.task.unit, budget=budget) as private:
            return mechanism.run(private, rng=rng), rng

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """The true share of every cell, marginal after marginal. Not private."""
        return shares(self.table.codes, self.cliques)


def kway(degree: int) -> Callable[[lib.Domain], Sequence[Clique]]:
    """Return the workload of all marginals of ``degree`` columns."""
    return lambda domain: tuple(combinations(domain.attributes, degree))


def shares(codes: lib.Codes, cliques: Sequence[Clique]) -> NDArray[np.float64]:
    """Return the share of the records in every cell, marginal after marginal."""
    counts = lib.count_cliques(codes, cliques)
    return np.concatenate([counts[c].ravel() for c in cliques]) / len(codes)


def recipe(
    kind: Callable[..., lib.Mechanism], *, workload: bool = False, public: str | None = None,
    **options: Any,
) -> Callable[[Case, Setting], lib.Mechanism]:  # fmt: skip
    """Return how to make a mechanism with these options, and those of a setting.

    Args:
        kind: The mechanism's class.
        workload: Whether it takes the task's workload.
        public: The name of the task's public table that it takes, if any.
        options: Its other parameters.
    """

    def make(case: Case, setting: Setting) -> lib.Mechanism:
        values = {**options, **setting}
        values |= {"workload": case.workload} if workload else {}
        values |= {} if public is None else {"public": case.table.publics[public]}
        return kind(**values)

    return make


def _unmade(case: Case, setting: Setting) -> lib.Mechanism:
    raise ValueError("this contender is none of margrave's mechanisms")


@dataclass(frozen=True)
class Contender:
    """A participant: its label and colors on a page, and how it is made.

    The colors are for light and dark pages; without them it is in no figure.
    ``make`` returns one of margrave's mechanisms for a case and a setting. ``environment`` names
    the script ``contenders/run_NAME.py`` of a participant that runs in its own environment.
    ``grid`` maps a task to the settings to try besides the default. ``facts`` is for the suite.
    """

    label: str
    colors: tuple[str, str] | None = None
    make: Callable[[Case, Setting], lib.Mechanism] = _unmade
    environment: str | None = None
    grid: Callable[[str], Sequence[Setting]] = lambda task: ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Folders of a run, the store of its suite, and the seconds after which it is given up."""

    data: Path
    store: Store
    environments: Path = HERE / ".envs"
    cache: Path = HERE / ".cache"
    timeout: float = 3600.0


@dataclass(frozen=True)
class Suite:
    """Tasks × contenders × settings × budgets, and the measurement of each.

    ``cells`` lists all runs in the order of work, for a number of repeats (None: the suite's).
    ``measure`` runs a cell and returns its row. ``page`` turns a ``View`` of
    the stored rows into tables and figures. They are written into ``docs/research/DOCUMENT.md`` and
    ``docs/research/DOCUMENT/``, or printed without a document. ``options`` are entries that ``--set`` may
    add to any setting. ``needs`` returns a cell that has to be stored before another is measured.
    """

    tasks: Mapping[str, Task]
    contenders: Mapping[str, Contender]
    cells: Callable[[int | None], Iterable[Cell]]
    measure: Callable[[Cell, Places], Row]
    page: Callable[[Any], Page]
    document: str | None = None
    options: Sequence[str] = ()
    needs: Callable[[Cell], Cell | None] = lambda cell: None


def suites() -> list[str]:
    """Return the names of all suites: the modules of ``benchmarks/suites`` that have one."""
    modules = [m.name for m in iter_modules([str(HERE / "suites")]) if not m.ispkg]
    return [name for name in modules if not name.startswith("_")]


def suite_of(name: str) -> Suite:
    """Return a suite by its name."""
    suite: Suite = import_module(f"benchmarks.suites.{name}").SUITE
    return suite


def title_of(name: str) -> str:
    """Return the first line of a suite's docstring."""
    return (import_module(f"benchmarks.suites.{name}").__doc__ or "").splitlines()[0]


def override(suite: Suite, cells: Iterable[Cell], changes: Mapping[str, Any]) -> list[Cell]:
    """Return the cells with some values set, each once.

    Args:
        suite: Whose cells they are.
        cells: The cells to change.
        changes: ``epsilon``, or entries of the setting. An entry that is none of the suite's
            options applies to the contenders that have it in a setting; others are left out.
    """
    cells = list(cells)
    entries = {key: value for key, value in changes.items() if key != "epsilon"}
    own = set(entries) - set(suite.options)
    able = {c.contender for c in cells if own <= set(c.setting)} if own else None
    cells_by_key: dict[Key, Cell] = {}
    for cell in cells:
        if able is None or cell.contender in able:
            epsilon = changes.get("epsilon", cell.epsilon)
            new = replace(cell, setting={**cell.setting, **entries}, epsilon=epsilon)
            cells_by_key.setdefault((new.kind, new.repeat), new)
    return list(cells_by_key.values())


def matches(columns: Mapping[str, Any], allowed: Mapping[str, Sequence[str]]) -> bool:
    """Return whether every named column, or entry of the setting, has one of its values."""
    values = values_of(columns)
    return all(values.get(name) in options for name, options in allowed.items())


def values_of(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of a run, and the entries of its setting, as texts by name."""
    values = {**columns.get("setting", {}), **columns}
    return {name: _text(value) for name, value in values.items() if name != "setting"}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
