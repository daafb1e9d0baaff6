"""Run one process to its end or its timeout; say what it and its children took: wall and CPU time, peak memory."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.1
FIRST_POLL_S = 0.005
GRACE_S = 5.0


@dataclass(frozen=True)
class Usage:
    """What a process took. ``peak_mb`` is the largest resident sum over the tree that was seen, in 10^6 bytes."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    timed_out: bool
    status: int
    load_start: tuple[float, float, float]
    load_end: tuple[float, float, float]


class Watch(threading.Thread):
    """Samples the memory of a process tree, more and more rarely, and ends the tree at the timeout."""

    def __init__(self, process: int, timeout_s: float) -> None:
        super().__init__(daemon=True)
        self.process, self.timeout_s = process, timeout_s
        self.peak, self.timed_out = 0, False
        self.ended = threading.Event()

    def run(self) -> None:
        start, pause = time.perf_counter(), FIRST_POLL_S
        while not self.ended.wait(pause):
            self.peak = max(self.peak, tree_bytes(self.process), high_water(self.process))
            pause = min(POLL_S, pause * 1.1)
            if time.perf_counter() - start > self.timeout_s:
                self.timed_out = True
                self.stop()
                return

    def stop(self) -> None:
        """Ask, so that output may be flushed; force after the grace. The session holds only what we started."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process, sign)
            except ProcessLookupError:
                return
            if self.ended.wait(GRACE_S):
                return


def run(command: Sequence[str], log: Path, environment: Mapping[str, str], timeout_s: float) -> Usage:
    """Start the command in a session of its own, wait for it, and take what the system says it used."""
    load_start = os.getloadavg()
    with log.open("wb") as stream:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env=dict(environment), start_new_session=True
        )
        watch = Watch(process.pid, timeout_s)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    watch.ended.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    # The system's own maximum starts from this program's size, which the process had between fork and exec: it is used
    # only where there is nothing better.
    peak = watch.peak or usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Usage(
        wall_s=wall,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=peak / 1e6,
        timed_out=watch.timed_out,
        status=process.returncode,
        load_start=load_start,
        load_end=os.getloadavg(),
    )


def clock() -> tuple[float, float]:
    """Wall and processor seconds."""
    return time.perf_counter(), time.process_time()


def spent(**stages: tuple[tuple[float, float], tuple[float, float]]) -> dict[str, float]:
    """Seconds of each stage."""
    return {
        f"{stage}_{kind}_s": round(end[i] - start[i], 3)
        for stage, (start, end) in stages.items()
        for i, kind in enumerate(("wall", "cpu"))
    }


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
        except (OSError, IndexError):  # it has just ended, or there is no /proc
            continue
    return total


def high_water(process: int) -> int:
    """The largest resident size that one process ever had, in bytes: it catches what falls between two samples."""
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


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
