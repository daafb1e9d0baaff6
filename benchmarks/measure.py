"""Run one process to its end or its timeout; say what it and its children took: wall and CPU time, peak memory."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.1
GRACE_S = 5.0


@dataclass(frozen=True)
class Usage:
    """What a process took. ``peak_mb`` is the largest resident sum over the tree that sampling saw, in 10^6 bytes."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    timed_out: bool
    status: int
    load_start: tuple[float, float, float]
    load_end: tuple[float, float, float]


def run(command: Sequence[str], log: Path, environment: Mapping[str, str], timeout_s: float) -> Usage:
    """Start the command in a session of its own, so that a timeout ends it with all its children and nothing else."""
    load_start = os.getloadavg()
    with log.open("wb") as stream:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env=dict(environment), start_new_session=True
        )
        peak, timed_out, ended = 0, False, 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, tree_bytes(process.pid))
            elapsed = time.perf_counter() - start
            if elapsed > timeout_s + GRACE_S * ended:
                # asked first, so that it may flush its output; forced after the grace
                os.killpg(process.pid, signal.SIGKILL if timed_out else signal.SIGTERM)
                timed_out, ended = True, ended + 1
            time.sleep(POLL_S if elapsed > 2.0 else 0.01)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    largest = usage.ru_maxrss * (1 if platform.system() == "Darwin" else 1024)
    return Usage(
        wall_s=wall,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=max(peak, largest) / 1e6,
        timed_out=timed_out,
        status=process.returncode,
        load_start=load_start,
        load_end=os.getloadavg(),
    )


def tree_bytes(root: int) -> int:
    """Resident bytes of a process and its descendants; 0 where the system has no /proc."""
    total, todo = 0, [str(root)]
    page = os.sysconf("SC_PAGE_SIZE")
    while todo:
        process = Path("/proc") / todo.pop()
        try:
            total += int((process / "statm").read_text().split()[1]) * page
            for thread in (process / "task").iterdir():
                todo += (thread / "children").read_text().split()
        except OSError:  # it has just ended, or there is no /proc
            continue
    return total


def machine() -> dict[str, object]:
    """The processor, its cores and the memory: enough to tell two machines apart, nothing that names one."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cores": os.cpu_count(), "memory_gb": round(memory / 2**30, 1)}
