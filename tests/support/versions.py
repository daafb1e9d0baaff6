"""A telling part of the tests with the lowest and the highest dependencies, on each Python.

`make versions` runs it: a line for each environment, and the exit code 1 if a test fails in one. A Python that is
neither installed nor offered for download is skipped, and its line has the reason.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.pages import ROOT

#: Folder of the environments, one at a time: each is removed after its tests.
FOLDER = ROOT / ".versions"
#: What a dependency or a Python can break: files, noise, kernels, JAX, solvers, release files, the command line.
TESTS = (
    "tests/boundary/test_wrong_inputs.py",
    "tests/cli/test_bad_input.py",
    "tests/data/test_formats.py",
    "tests/face/test_frames.py",
    "tests/house/test_golden.py",
    "tests/inference/test_analyze.py",
    "tests/privacy/test_noise.py",
    "tests/release/test_release.py",
    "tests/test_zeros.py",
)


class Environment(NamedTuple):
    """A Python and the file that states the versions of its dependencies."""

    python: str
    pins: str

    @property
    def name(self) -> str:
        return f"Python {self.python}, {self.pins}"


ENVIRONMENTS = (
    Environment("3.11", "lowest"),
    *(Environment(f"3.{minor}", "lock") for minor in (11, 12, 13, 14)),
)


def run(*command: str) -> str:
    """Run a command; return its last line of output if it fails, else an empty text."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return "" if done.returncode == 0 else (lines or ["no output"])[-1].strip()


def tested(environment: Environment, uv: str) -> tuple[str, str]:
    """Return the result of one environment (passed, failed or skipped), and a line about it."""
    python = str(FOLDER / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    shutil.rmtree(FOLDER, ignore_errors=True)
    if reason := run(uv, "venv", "--quiet", "--python", environment.python, str(FOLDER)):
        return "skipped", f"this Python was not available: {reason}"
    pins = ("--constraints", f"requirements/{environment.pins}.txt", "--editable", ".[dev]")
    if reason := run(uv, "pip", "install", "--quiet", "--python", python, *pins):
        return "failed", f"its dependencies cannot be installed: {reason}"
    start = time.monotonic()
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], cwd=ROOT, check=False
    )
    result = "passed" if done.returncode == 0 else "failed"
    return result, f"{time.monotonic() - start:.0f} s of tests"


def main() -> int:
    """Test the environments that the arguments name, all by default; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", help="only these versions of Python, such as 3.12")
    parser.add_argument("--pins", nargs="*", help="only these pins: lowest, lock")
    options = parser.parse_args()
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        print("uv is not installed. Run `make versions`, which installs it.")
        return 1
    results = {}
    for environment in ENVIRONMENTS:
        if environment.python in (options.python or [environment.python]) and environment.pins in (
            options.pins or [environment.pins]
        ):
            results[environment] = tested(environment, uv)
            shutil.rmtree(FOLDER, ignore_errors=True)
    print(*(f"{e.name}: {result}, {line}" for e, (result, line) in results.items()), sep="\n")
    return int(any(result == "failed" for result, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main())
