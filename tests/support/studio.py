"""A studio without processes and without a browser, and the table that its tests begin with."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

pytest.importorskip("starlette")

from margrave.errors import MargraveError
from margrave.studio import worker
from margrave.studio.job import JobFolder
from margrave.studio.project import Project
from margrave.studio.server import application
from tests.support.web import PORT, Answer, Visitor

CANARIES = ("Zanzibar-77", "314159265", "NHS-7719283")


def write_table(path: Path, rows: int = 400) -> None:
    rng = np.random.default_rng(3)
    stay = rng.integers(0, 9, rows)
    stay[0] = 314159265
    ward = rng.choice(["north", "south"], rows).astype(object)
    ward[1] = "Zanzibar-77"
    table = {
        "patient_id": [f"NHS-{7719283 + i // 2}" for i in range(rows)],
        "ward": ward,
        "stay": stay,
        "ill": stay % 2,
    }
    pyarrow.csv.write_csv(pa.table(table), path)


class Studio:
    """A studio without processes: the worker is called in this one."""

    def __init__(self, folder: Path, start: Callable[[JobFolder], Any] = worker.run) -> None:
        (folder / "studio").mkdir(exist_ok=True)
        self.project = Project(folder / "studio", folder, ask=worker.answer, start=start)
        guard = application(self.project, PORT, lambda: None)
        self.visitor = Visitor(guard)
        self.visitor.get(guard.address.partition(str(PORT))[2])

    def get(self, path: str) -> Answer:
        return self.visitor.get(path)

    def post(self, path: str, **form: str) -> Answer:
        """Post a form as the page of now has it, unless its fingerprint is given."""
        place = path.split("?")[0].split("/")
        step = "confirm" if path == "/run" else place[1]
        if (
            step in ("columns", "unit", "purposes", "budget", "confirm")
            and "fingerprint" not in form
        ):
            with suppress(MargraveError):  # a page that cannot be shown has no form
                form["fingerprint"] = self.project.fingerprint(step)
        return self.visitor.post(path, {k.replace("__", "."): v for k, v in form.items()})

    def end(self, finding: Callable[[], Any]) -> None:
        for _ in range(600):
            if not finding().is_open:
                break
            time.sleep(0.02)

    def wait(self, finding: Callable[[], Any]) -> Mapping[str, Any]:
        self.end(finding)
        assert finding().error is None
        found: Mapping[str, Any] = finding().found
        return found

    def read(self, table: str = "visits.csv") -> Mapping[str, Any]:
        self.post("/table", table=table)
        return self.wait(self.project.reading)

    def settle(self, **columns: str) -> None:
        """Go from the table to the budget."""
        self.read()
        self.post("/columns", **columns)
        self.post("/unit", protects="rows")
        self.post("/purposes")

    def to_confirm(self, **budget: str) -> Answer:
        form = {"epsilon": "9", "rows": "400", "delta": "1e-9", "cap_epsilon": "5", **budget}
        return self.post("/budget", **form)

    def run(self, number: int = 1) -> Answer:
        return self.post("/run", number=str(number), agreed="yes")


def fingerprint_of(page: Answer) -> str:
    """Return the fingerprint in the form of a page."""
    found = re.search(r'name="fingerprint" value="(\w+)"', page.text)
    assert found is not None
    return found[1]


#: The columns of the table as their forms state them: the draft leaves out the person ID column.
STATED = {
    "0__way": "declare",
    "0__categories": "north, south",
    "0__other": "on",
    "1__way": "declare",
    "1__low": "0",
    "1__high": "9",
    "1__missing": "on",
    "2__way": "keep",
}


def kept_files(folder: Path) -> str:
    """All that the studio keeps of itself, as text."""
    names = [p for p in folder.rglob("*") if p.is_file()]
    return "".join(p.read_bytes().decode("latin-1") for p in names)
