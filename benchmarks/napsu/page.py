"""The figures and tables of docs/napsu.md, from what is stored.

    python -m benchmarks.napsu.page [--results DIR] [--docs DIR]

Tables stand in the page between "<!-- table: NAME -->" and "<!-- end -->", and are written anew; figures go to
docs/napsu/. What has not been run is left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.napsu.experiment import Experiment
from benchmarks.napsu.figures import adult_figures, toy_figures
from benchmarks.napsu.tables import adult_tables, toy_tables
from environments import HERE, REPOSITORY
from stored import filled


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.napsu.page", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=HERE / "results" / "napsu")
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs")
    options = parser.parse_args()
    small, large = Experiment(options.results, "toy"), Experiment(options.results, "adult")
    figures = options.docs / "napsu"
    figures.mkdir(parents=True, exist_ok=True)
    for name, text in {**toy_figures(small), **adult_figures(large)}.items():
        (figures / f"{name}.svg").write_text(text, encoding="utf-8")
    page = options.docs / "napsu.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), {**toy_tables(small), **adult_tables(large)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
