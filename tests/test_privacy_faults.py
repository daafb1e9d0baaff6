"""Kills, power cuts, full disks, failing disks, lack of memory and interrupts at every point of a run's writing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from faults import DENIALS, KILLS

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the faults are played by way of /proc")


def tried(kind: str, every: int) -> int:
    """Play every so-manieth point; how many there were. Each is followed by a second fault, and a run to the end."""
    command = [sys.executable, "faults.py", kind, "--every", str(every)]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["failed"] == []
    assert done.returncode == 0
    return int(found["points"])


@pytest.mark.parametrize(("kind", "every"), [("kill", 13), ("power", 29), ("full", 31)])
def test_some_points(kind: str, every: int) -> None:
    assert tried(kind, every) >= 90 // every


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KILLS, *DENIALS])
def test_every_point(kind: str) -> None:
    """Seven kinds at some ninety points each."""
    assert tried(kind, 1) >= 80
