"""The figures and tables of docs/transport.md, from what is stored.

    python -m benchmarks.transport.page [--results DIR] [--docs DIR]

Tables stand in the page between "<!-- table: NAME -->" and "<!-- end -->", and are written anew; so do the figures,
which go to docs/transport/. What has not been run says so.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.transport.__main__ import RESULTS
from benchmarks.transport.figures import NAMES, figures
from benchmarks.transport.summary import Results
from benchmarks.transport.tables import tables
from environments import REPOSITORY
from stored import filled


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transport.page", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs")
    options = parser.parse_args()
    write(Results.read(options.results), options.docs)
    return 0


def write(results: Results, docs: Path) -> None:
    """Draw the figures and fill the page."""
    drawn = figures(results)
    folder = docs / "transport"
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / f"{name}.svg").unlink(missing_ok=True)
    for name, text in drawn.items():
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    shown = {n: f"![{n}](transport/{n}.svg)" if n in drawn else "" for n in NAMES}
    parts = {name: text or "Not run yet." for name, text in {**tables(results), **shown}.items()}
    page = docs / "transport.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), parts), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
