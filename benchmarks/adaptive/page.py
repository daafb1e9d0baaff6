"""The figures and tables of docs/adaptive.md, from what is stored.

    python -m benchmarks.adaptive.page [--results DIR] [--docs DIR]

Tables stand in the page between "<!-- table: NAME -->" and "<!-- end -->", and are written anew; so do the figures,
which go to docs/adaptive/. What has not been run is listed at the page's end, and nowhere else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.adaptive.figures import captioned, figures, layouts
from benchmarks.adaptive.missing import missing
from benchmarks.adaptive.summary import read_all
from benchmarks.adaptive.tables import tables
from benchmarks.adaptive.tasks import TASKS
from environments import HERE, REPOSITORY
from stored import filled


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.adaptive.page", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=HERE / "results" / "adaptive")
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs")
    options = parser.parse_args()
    results = read_all(options.results, TASKS)
    drawn = figures(results)
    folder = options.docs / "adaptive"
    folder.mkdir(parents=True, exist_ok=True)
    for name in layouts():
        (folder / f"{name}.svg").unlink(missing_ok=True)
    for name, text in drawn.items():
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    scaled = (options.results / "scaling.jsonl").exists()
    made = {"figures": captioned(drawn), "missing": missing(results, drawn, scaled=scaled)}
    page = options.docs / "adaptive.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), {**tables(results, options.results), **made}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
