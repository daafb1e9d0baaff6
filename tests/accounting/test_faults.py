"""Kills, power cuts, copies, bad disks, lack of memory and interrupts at every point of a run's writing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import vfs
from tests.support.faults import COPIES, DENIALS, KILLS

pytestmark = pytest.mark.skipif(not vfs.available(), reason="SQLite's VFS cannot be wrapped")


def tried(kind: str, every: int) -> int:
    """Play every so-manieth point; how many there were. Each is followed by a second fault, and a run to the end."""
    command = [sys.executable, "-m", "tests.support.faults", kind, "--every", str(every)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["failed"] == []
    assert done.returncode == 0
    return int(found["points"])


@pytest.mark.parametrize(
    "kind",
    [
        *("kill", "full", "copy"),
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("power", "reordered", "interrupt")),
    ],
)
def test_some_points(kind: str) -> None:
    assert tried(kind, 197) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KILLS, *DENIALS, *COPIES])
def test_every_point(kind: str) -> None:
    """Statements for lack of memory and interrupts; else all that reaches the disk."""
    assert tried(kind, 1) >= 300
