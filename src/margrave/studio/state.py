"""The settings of a project: one frozen object, saved after each step."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from margrave._io import read_input, written_whole
from margrave.errors import InputError
from margrave.profiling.answers import DraftAnswer
from margrave.studio.choices import MechanismChoice
from margrave.unit import AddRemovePerson, AddRemoveRow, ReplacePerson, ReplaceRow, Unit


@dataclass(frozen=True)
class ProjectSettings:
    """The answers of the custodian so far. No value of a row is among them.

    Args:
        table: The table, as the command line names it.
        answers: An answer for each column of the draft.
        relations: The relations that the custodian stated, by question: "yes" or a file's name.
        has_header: The first line of the file names the columns.
        protects: "rows" or "persons".
        person: The person ID column; "" for none.
        max_rows: The most rows that one person may contribute.
        replaces: The number of rows, or of persons, is public: one takes the place of another.
        ledger_dataset: The data set of the ledger that runs are charged to; "" until it is chosen.
        other_datasets: The data sets of the ledger that it is not, as the custodian stated.
        purposes: The purposes of the release.
        choice: The mechanism of the next run, and its public table.
        rows: A guess of the number of rows, for the plan.
        epsilon, delta: The budget of the next run.
        cap_epsilon: The cap of all runs on the table together.
        title, office, dataset: Public words at the head of the report.
        reached: The last step that can be opened.
        others: The answers on other tables of the folder, by table, as they are in the file.
    """

    table: str = ""
    answers: Mapping[str, DraftAnswer] = field(default_factory=dict)
    relations: Mapping[str, str] = field(default_factory=dict)
    has_header: bool = True
    protects: str = ""
    person: str = ""
    max_rows: int = 5
    replaces: bool = False
    ledger_dataset: str = ""
    other_datasets: tuple[str, ...] = ()
    purposes: tuple[str, ...] = ()
    choice: MechanismChoice = field(default_factory=MechanismChoice)
    rows: int = 10_000
    epsilon: float = 1.0
    delta: float = 1e-9
    cap_epsilon: float = 3.0
    title: str = ""
    office: str = ""
    dataset: str = ""
    reached: str = "table"
    others: Mapping[str, Any] = field(default_factory=dict)

    #: The steps in order, with their titles.
    steps: ClassVar[Mapping[str, str]] = {
        "table": "Table",
        "columns": "Columns",
        "unit": "Protection",
        "purposes": "Purposes",
        "budget": "Budget",
        "confirm": "Confirm",
        "run": "Run",
    }

    @property
    def unit(self) -> Unit:
        """The unit of privacy."""
        if self.protects == "persons":
            return (ReplacePerson if self.replaces else AddRemovePerson)(self.max_rows)
        return ReplaceRow() if self.replaces else AddRemoveRow()

    @property
    def table_name(self) -> str:
        """The name of the table without its folder."""
        return table_name(self.table)

    def can_open(self, step: str) -> bool:
        """Return True if the steps before this one are answered."""
        order = list(self.steps)
        return order.index(step) <= order.index(self.reached)

    def at(self, step: str) -> ProjectSettings:
        """Return the settings with this step as the last one that can be opened."""
        return replace(self, reached=step)

    def of_table(self, table: str) -> ProjectSettings:
        """Return the settings for a table, with the answers that it had before; all others are kept."""
        if table == self.table:
            return self.at("columns")
        others = {name: stored for name, stored in self.others.items() if name != table}
        if self.table:
            others[self.table] = asdict(replace(self, others={}))
        stored = self.others.get(table)
        made = ProjectSettings(table) if stored is None else ProjectSettings._of(stored)
        return replace(made, others=others, reached="columns")

    def save(self, path: Path) -> None:
        """Write the settings, whole or not at all."""
        with written_whole(path, overwrite=True) as temporary:
            temporary.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @staticmethod
    def load(path: Path) -> ProjectSettings:
        """Return the settings of a file, or new ones without a file.

        Raises:
            InputError: The file is not one of the studio's.
        """
        if not path.exists():
            return ProjectSettings()
        try:
            made = ProjectSettings._of(json.loads(read_input(path)))
            for stored in made.others.values():
                ProjectSettings._of(stored)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            raise InputError(
                f"{path} does not hold the settings of a studio.",
                remedy="Name another folder with --folder.",
            ) from None
        return made

    @staticmethod
    def _of(stored: Mapping[str, Any]) -> ProjectSettings:
        """Return settings as they are in the file. Raise any error if they are not."""
        answers = {name: DraftAnswer(**a) for name, a in stored["answers"].items()}
        made = ProjectSettings(
            **{
                **stored,
                "answers": answers,
                "purposes": tuple(stored["purposes"]),
                "other_datasets": tuple(stored["other_datasets"]),
                "choice": MechanismChoice(**stored["choice"]),
            }
        )
        for item in fields(made):
            if type(getattr(made, item.name)) is not type(getattr(ProjectSettings(), item.name)):
                raise TypeError
        made.can_open(made.reached)
        return made


def table_name(table: str) -> str:
    """Return the name of a table without its folder."""
    return Path(table).name or table


class FolderLock:
    """A lock that one process has, and that ends with the process.

    Args:
        path: The file of the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._asking = path, Lock()
        self._connection: sqlite3.Connection | None = None

    def take(self, seconds: float = 0.0) -> bool:
        """Return True if this process has the lock now, after waiting so long at most."""
        self._connection = self._open(seconds)
        return self._connection is not None

    def _open(self, seconds: float) -> sqlite3.Connection | None:
        connection = sqlite3.connect(
            self._path, timeout=seconds, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode=MEMORY")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            connection.close()
            return None
        return connection

    def release(self) -> None:
        """Give the lock back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def is_taken(self) -> bool:
        """Return True if a process has the lock."""
        if self._connection is not None:
            return True
        if not self._path.exists():
            return False
        with self._asking:  # two threads that ask at once would see each other
            free = self._open(0.0)
            if free is not None:
                free.close()
        return free is None
