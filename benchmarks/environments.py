"""A virtual environment of its own for each contender, so that no two have to agree on versions."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent


def python_for(contender: str, folder: Path, given: str | None = None) -> str:
    """The interpreter to run a contender with; its environment is made if there is none.

    margrave runs in the environment that runs this program where it is installed there (`make bench`).
    """
    if given:
        return given
    if contender == "margrave" and importlib.util.find_spec("margrave") is not None:
        return sys.executable
    home = folder / contender
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / ".ready"
    wanted = requirements(contender)
    if not ready.exists() or ready.read_text() != "\n".join(wanted):
        print(f"making the environment of {contender}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *wanted], check=True)
        ready.write_text("\n".join(wanted))
    return str(python)


def requirements(contender: str) -> list[str]:
    """What pip is told to install."""
    if contender == "margrave":
        return ["--editable", str(REPOSITORY)]
    lines = (HERE / "peers" / contender / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]
