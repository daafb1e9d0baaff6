"""The common task of the AIM studies: all triples, 80 MB, add or remove one row."""

from __future__ import annotations

from benchmarks.core import library as lib
from benchmarks.core.suite import Table, Task, kway
from benchmarks.core.tables import load_codes

DELTA, MODEL_MB = 1e-9, 80.0


def aim_task(name: str) -> Task:
    """Return the task of one table."""
    return Task(
        name, lambda data: Table(load_codes(data, name)), kway(3), DELTA, lib.AddRemoveRow()
    )
