"""Fresh processes in their own environments, with their seconds and memory."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.core.store import Row
from benchmarks.core.suite import HERE, Places

POLL_S, FIRST_POLL_S, GRACE_S = 0.1, 0.005, 5.0
SCRIPTS = HERE / "contenders"
Moment = tuple[float, float]


@dataclass(frozen=True)
class Usage:
    """Seconds of a process and its children, their largest resident sum in 10^6 bytes, its end."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    timed_out: bool
    status: int


class Watch(threading.Thread):
    """Thread that samples the memory of a process tree and ends it at the timeout."""

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
        """Ask the session of the process to end, and force it after the grace."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process, sign)
            except ProcessLookupError:
                return
            if self.ended.wait(GRACE_S):
                return


def run(command: Sequence[str], log: Path, timeout_s: float, **environment: str) -> Usage:
    """Run a command in its own session, and return its use of time and memory."""
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    with log.open("wb") as stream:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env=variables, start_new_session=True
        )
        watch = Watch(process.pid, timeout_s)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    watch.ended.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    # The system's own maximum begins at this program's size, so it is the second choice.
    peak = watch.peak or usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    seconds = usage.ru_utime + usage.ru_stime
    return Usage(wall, seconds, peak / 1e6, watch.timed_out, process.returncode)


def tree_bytes(root: int) -> int:
    """Return the resident bytes of a process and its descendants; 0 without /proc."""
    total, left = 0, [str(root)]
    page = os.sysconf("SC_PAGE_SIZE")
    while left:
        process = Path("/proc") / left.pop()
        try:
            total += int((process / "statm").read_text().split()[1]) * page
            for thread in (process / "task").iterdir():
                left += (thread / "children").read_text().split()
        except (OSError, IndexError):  # it has just ended, or there is no /proc
            continue
    return total


def tree_clock(root: int) -> Moment:
    """Return wall seconds, and the processor seconds of a process and its descendants, also those that ended."""
    ticks, left = 0, [str(root)]
    while left:
        process = Path("/proc") / left.pop()
        try:
            ticks += sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:15]))
            for thread in (process / "task").iterdir():
                left += (thread / "children").read_text().split()
        except (OSError, ValueError):  # it has just ended, or there is no /proc
            continue
    return time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK")


def high_water(process: int) -> int:
    """Return the largest resident size of one process so far, in bytes; 0 without /proc."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    match = re.search(r"^VmHWM:\s+(\d+)", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def clock() -> Moment:
    """Return wall and processor seconds."""
    return time.perf_counter(), time.process_time()


def stage_seconds(**stages: tuple[Moment, Moment]) -> dict[str, float]:
    """Return the wall and processor seconds of each stage."""
    return {
        f"{stage}_{kind}_s": round(end[i] - start[i], 3)
        for stage, (start, end) in stages.items()
        for i, kind in enumerate(("wall", "cpu"))
    }


def machine() -> Row:
    """Return the processor, its cores and the memory: nothing that names a machine."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        match = re.search(r"^model name\s*:\s*(.*)$", cpuinfo.read_text(), re.MULTILINE)
        model = match[1].strip() if match else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cores": os.cpu_count(), "memory_gb": round(memory / 2**30, 1)}


@dataclass(frozen=True)
class Script:
    """A contender's script: its dependencies, its jobs, and the module it imports.

    The script's first comment says so, as TOML (PEP 723 inline metadata).
    """

    name: str
    dependencies: tuple[str, ...]
    jobs: tuple[str, ...]
    module: str

    @staticmethod
    def of(name: str) -> Script:
        """Return the script ``contenders/run_NAME.py`` by its header."""
        text = (SCRIPTS / f"run_{name}.py").read_text(encoding="utf-8")
        block = re.search(r"(?ms)^# /// script\n(.*?)^# ///$", text)
        assert block is not None, f"run_{name}.py has no header"
        header = tomllib.loads(re.sub(r"(?m)^# ?", "", block[1]))
        own = header["tool"]["benchmarks"]
        return Script(name, tuple(header["dependencies"]), tuple(own["jobs"]), own["module"])

    def python(self, folder: Path) -> str:
        """Return the interpreter to use. The environment is made if there is none."""
        if not self.dependencies:  # margrave itself
            return sys.executable
        home = folder / self.name
        python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        ready, packages = home / ".ready", "\n".join(self.dependencies)
        if not ready.exists() or ready.read_text() != packages:
            print(f"making the environment of {self.name}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            install = [str(python), "-m", "pip", "install", "--quiet"]
            subprocess.run([*install, *self.dependencies], check=True)
            ready.write_text(packages)
        return str(python)


def scripts() -> dict[str, Script]:
    """Return all scripts by their names."""
    names = sorted(path.stem.removeprefix("run_") for path in SCRIPTS.glob("run_*.py"))
    return {name: Script.of(name) for name in names}


@dataclass(frozen=True)
class Job:
    """A finished job: its usage, the facts in its result, and the folder of its outputs."""

    usage: Usage
    facts: Row
    out: Path

    @property
    def outcome(self) -> Row:
        """Outcome and reason, as stored."""
        if self.usage.timed_out:
            return {"outcome": "timed out", "why": "it took too long"}
        if self.usage.status:
            return {"outcome": "failed", "why": last_words(self.out / "log.txt", self.out)}
        return {"outcome": "finished"}


def run_job(
    script: Script, arguments: Mapping[str, Any], out: Path, places: Places, *, cold: bool = False
) -> Job:
    """Run one job of a script in a fresh process.

    Args:
        script: Whose environment and code are used.
        arguments: Passed on as JSON. ``job`` names the function; "import" only imports.
        out: A folder for the outputs and the log.
        places: Environments and timeout.
        cold: Whether to begin with an empty cache of compiled kernels.
    """
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**arguments, "out": str(out)})
    words = [str(SCRIPTS / f"run_{script.name}.py"), text]
    if arguments["job"] == "import":
        words = ["-c", f"import {script.module}"]
    fresh = {"NUMBA_CACHE_DIR": str(out / "numba")} if cold else {}
    command = [script.python(places.environments), *words]
    usage = run(command, out / "log.txt", places.timeout, **fresh)
    result = out / "result.json"
    facts: Row = json.loads(result.read_text()) if result.exists() else {}
    progress = out / "progress.jsonl"
    if progress.exists() and "rounds" not in facts:
        seconds = [json.loads(line)["seconds"] for line in progress.read_text().splitlines()]
        facts |= {"rounds_seen": len(seconds), "rounds_seen_s": seconds}
    return Job(usage, facts, out)


def last_words(log: Path, *folders: Path) -> str:
    """Return the last line of a log, without the folders of this machine."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    text = lines[-1][:300] if lines else "no output"
    for folder in (*folders, HERE, HERE.parent, Path(sys.prefix), Path.home()):
        text = text.replace(str(folder.absolute()), folder.name)
    return text.replace(tempfile.gettempdir(), "TMP")
