"""Privacy mutants: bugs planted one by one in a copy of the source; the named tests must notice each.

``python -m tests.support.mutants`` runs all of ``mutants.toml``, names on the command line run those alone. It ends
with 0 if
every mutant was killed. A test that breaks before it asserts (an import that fails) is no kill.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Mutant:
    """A planted bug, the tests that must notice it, and the row of docs/hazards.md that it belongs to."""

    name: str
    hazard: int
    file: str
    old: str
    new: str
    killers: list[str]


@dataclass(frozen=True)
class Outcome:
    """Which test killed a mutant ("" if it survived), or why it could not be planted; and in how many seconds."""

    mutant: Mutant
    killer: str
    trouble: str
    seconds: float


def mutants() -> list[Mutant]:
    """All of them, in the order of the file."""
    with (ROOT / "tests" / "mutants.toml").open("rb") as file:
        return [Mutant(**entry) for entry in tomllib.load(file)["mutant"]]


class Copy:
    """A copy of the source in which one text at a time is changed. Compiled kernels are copied along."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("*.pyc"))
        self._changes = 0

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """The mutant in its place, and the sound text again afterwards."""
        path = self.source / "margrave" / mutant.file
        sound, state = path.read_text(encoding="utf-8"), path.stat()
        if sound.count(mutant.old) != 1:
            raise ValueError(f"its text occurs {sound.count(mutant.old)} times in {mutant.file}")
        try:
            self._write(path, sound.replace(mutant.old, mutant.new))
            yield
        finally:
            path.write_text(sound, encoding="utf-8")
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".py":
            compile(text, str(path), "exec")
        self._changes += (
            1  # Python compares whole seconds to tell whether compiled code is out of date
        )
        os.utime(path, (time.time() + 10 * self._changes,) * 2)

    def test(self, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run these tests, up to the first that fails, on the copy."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-rfE",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            "-n0",
            "-m",
            "",  # also slow tests
        ]
        environment = {**os.environ, "PYTHONPATH": str(self.source)}
        return subprocess.run(
            [*command, *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def killed_by(copy: Copy, mutant: Mutant) -> Outcome:
    """Plant it, run its killers, and say which of them failed."""
    begin = time.perf_counter()
    try:
        with copy.planted(mutant):
            done = copy.test(mutant.killers)
    except (ValueError, OSError, SyntaxError, subprocess.TimeoutExpired) as error:
        return Outcome(mutant, "", str(error), time.perf_counter() - begin)
    failed = re.search(r"^FAILED (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    killer = failed[1] if done.returncode == 1 and failed else ""
    trouble = "" if killer or done.returncode == 0 else (done.stdout + done.stderr)[-600:]
    return Outcome(mutant, killer, trouble, time.perf_counter() - begin)


def sound(copy: Copy, chosen: Iterable[Mutant]) -> str:
    """What is wrong with the killers on the copy before anything is planted: nothing, if all is well."""
    where = subprocess.run(
        [sys.executable, "-c", "import margrave; print(margrave.__file__)"],
        env={**os.environ, "PYTHONPATH": str(copy.source)}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if str(copy.source) not in where:
        return f"tests would run on {where.strip()}, not on the copy"
    done = copy.test(sorted({k for m in chosen for k in m.killers}))
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]


def run(chosen: Sequence[Mutant]) -> Iterator[Outcome]:
    """The outcome of each, one after the other. Raises if their killers fail on the sound source."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        if trouble := sound(copy, chosen):
            raise RuntimeError(f"The sound source does not pass: {trouble}")
        for mutant in chosen:
            yield killed_by(copy, mutant)


def main(names: Sequence[str]) -> int:
    """Run them, say what became of each, and count the survivors."""
    known = mutants()
    if unknown := sorted(set(names) - {m.name for m in known}):
        print(f"Not in tests/mutants.toml: {', '.join(map(repr, unknown))}.", file=sys.stderr)
        return 2
    chosen = [m for m in known if not names or m.name in names]
    survivors = 0
    for outcome in run(chosen):
        told = outcome.killer or f"SURVIVED {outcome.trouble}"
        survivors += not outcome.killer
        print(f"{outcome.mutant.name} ({outcome.seconds:.1f} s)\n    {told}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed.")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
