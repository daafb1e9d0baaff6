"""A run as a process of its own: its order, its progress and its outcome are files in one folder.

The server can end while a run goes on. A run that ends goes on from its journal, and pays nothing twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from margrave._io import read_input, written_whole
from margrave.accounting.journal import holds_run
from margrave.data.writer import named_formats
from margrave.errors import InputError, LedgerError
from margrave.schema import Schema
from margrave.studio.choices import MechanismChoice
from margrave.studio.state import FolderLock, table_name


@dataclass(frozen=True)
class Order:
    """The order of a run: all arguments of a ``Run`` but the schema, which is beside it.

    Args:
        table: The table.
        unit: The name of the unit of privacy.
        epsilon, delta: The budget.
        purposes: The purposes.
        choice: The mechanism, and its public table.
        ledger: The ledger.
        ledger_dataset: The data set of the ledger that it is charged to.
        title, office, dataset: Public words at the head of the report.
        unlearnable: "stop" or "drop".
    """

    table: str
    unit: str
    epsilon: float
    delta: float
    purposes: tuple[str, ...]
    choice: MechanismChoice
    ledger: str
    ledger_dataset: str
    title: str = ""
    office: str = ""
    dataset: str = ""
    unlearnable: str = "stop"

    @property
    def table_name(self) -> str:
        """The name of the table without its folder."""
        return table_name(self.table)


@dataclass(frozen=True)
class JobStatus:
    """The state of a run.

    Args:
        state: "running"; "stopped", if its process ended without an outcome; "failed"; "closed"; or "released".
        stage, done: Its progress.
        outcome: The content of its outcome file.
    """

    state: str
    stage: str = ""
    done: float = 0.0
    outcome: Mapping[str, Any] = field(default_factory=dict)


class JobFolder:
    """The folder of one run.

    Args:
        path: The folder.
    """

    #: The files of a run that a person may download, with their media types.
    outputs: ClassVar[Mapping[str, str]] = {
        "rows.csv": "text/csv",
        "release.margrave": "application/octet-stream",
        "report.html": "text/html",
        "schema.toml": "text/plain",
        "answers.margrave": "application/octet-stream",
    }

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = FolderLock(path / "lock")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def journal(self) -> Path:
        """The journal of the run."""
        return self.path / "journal"

    @property
    def order(self) -> Order:
        """The order of the run. A folder without one raises ``InputError``."""
        stored = self._read("order.json")
        try:
            choice = MechanismChoice(**stored["choice"])
            return Order(**{**stored, "purposes": tuple(stored["purposes"]), "choice": choice})
        except (KeyError, TypeError):
            raise InputError(
                f"The folder {self.path} does not hold the order of a run.",
                remedy="Put its file order.json back, or move the folder to another place.",
            ) from None

    def schema(self) -> Schema:
        """Return the schema of the run."""
        return Schema.load(self.path / "schema.toml", table=self.order.table)

    def has_begun(self) -> bool:
        """Return False if the run reserved nothing in the ledger, as its journal shows."""
        try:
            return holds_run(self.journal)
        except LedgerError:  # in use, or damaged
            return True

    def place(self, order: Order) -> None:
        """Write the order."""
        self._write("order.json", asdict(order))

    def start(self) -> None:
        """Start the process of the run; nothing happens if it is running."""
        if self.status().state == "running":
            return
        (self.path / "outcome.json").unlink(missing_ok=True)
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "margrave.studio.worker", "run", str(self.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # a library's warning may hold a value of the rows
            **apart,
        )

    def status(self) -> JobStatus:
        """Return the state of the run."""
        progress = self._read("progress.json")
        stage, done = str(progress.get("stage", "starting")), float(progress.get("done", 0.0))
        starting = self._process is not None and self._process.poll() is None
        if starting or self.lock.is_taken():
            return JobStatus("running", stage, done)
        outcome = self._read("outcome.json")
        return JobStatus(str(outcome.get("state", "stopped")), stage, done, outcome)

    def report(self, stage: str, done: float) -> None:
        """Write the progress. A reader sees the old one or the new one."""
        temporary = self.path / "progress.json.part"
        temporary.write_text(json.dumps({"stage": stage, "done": done}), encoding="utf-8")
        os.replace(temporary, self.path / "progress.json")

    def end(self, outcome: Mapping[str, Any]) -> None:
        """Write the outcome."""
        self._write("outcome.json", outcome)

    def can_make(self, name: str) -> bool:
        """Return True if a file of the drawn rows can be made, and is not there. A run that goes on may draw anew."""
        has_rows = self.status().state == "released" and (self.path / "rows.parquet").is_file()
        return name in row_files() and has_rows and not (self.path / name).is_file()

    def _read(self, name: str) -> dict[str, Any]:
        try:
            stored = json.loads(read_input(self.path / name))
        except (OSError, ValueError):
            return {}
        return stored if isinstance(stored, dict) else {}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        with written_whole(self.path / name, overwrite=True) as temporary:
            temporary.write_text(json.dumps(content, indent=2), encoding="utf-8")


def row_files() -> dict[str, str]:
    """Return the files that the rows of a run can be downloaded as, with the names of their formats."""
    return {f"rows{ending}": name for ending, name in named_formats().items()}
