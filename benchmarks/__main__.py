"""`python -m benchmarks`: every task by margrave, then the table of all results. `--peers` runs everyone (hours).

Other options are passed on to run.py."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="run the peers too, each in an environment of its own")
    options, rest = parser.parse_known_args()  # the rest is for run.py
    sys.path.insert(0, str(HERE))
    from tasks import TASKS  # beside this file, not in a package: run.py is a program

    who = [] if options.peers else ["--contender", "margrave"]
    worst = 0
    for name in TASKS:
        print(f"\n{name}: {TASKS[name].what}", flush=True)
        worst |= subprocess.run([sys.executable, str(HERE / "run.py"), name, *who, *rest], check=False).returncode
    print()
    return worst | subprocess.run([sys.executable, str(HERE / "report.py")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
