"""The figures and tables of docs/napsu.md, from what is stored.

    python -m benchmarks.napsu.page [--results DIR] [--docs DIR]

Tables stand in the page between "<!-- table: NAME -->" and "<!-- end -->", and are written anew; figures go to
docs/napsu/. What has not been run is left out.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from benchmarks.napsu import charts
from benchmarks.napsu.charts import LABELS, Dot
from benchmarks.napsu.summary import (
    Array,
    Cell,
    bootstrapped,
    by_the_paper,
    cells,
    matched,
    median_of_medians,
    seconds,
    spans,
    wilson,
)
from benchmarks.napsu.tasks import EPSILONS, toy
from environments import HERE, REPOSITORY

LEVEL = 0.95
LEVELS = (*np.round(np.arange(0.05, 0.96, 0.05), 2).tolist(), 0.99)

MAIN = ("nuts", "laplace", "naive", "bootstrap")
ABLATION = ("laplace", "laplace, one", "exact", "exact, one")
ADULT = ("nuts", "laplace", "naive", "bootstrap", "pgm5", "pgm10", "pgm20")

ByEpsilon = dict[float, Cell]


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


class Experiment:
    """All contenders of one task that have lines."""

    def __init__(self, results: Path, task: str) -> None:
        found = {name: cells(results, task, name) for name in LABELS if ", one" not in name}
        for name in ("laplace", "exact"):
            found[f"{name}, one"] = cells(results, task, name, field="one")
        self.cells: dict[str, ByEpsilon] = {name: c for name, c in found.items() if c}
        self.real = found["real"]
        self.task = task

    def of(self, *names: str) -> dict[str, ByEpsilon]:
        """Those of the contenders that there are."""
        return {n: self.cells[n] for n in names if n in self.cells}

    def truth(self, cell: Cell, epsilon: float) -> Array:
        """What the intervals should hold: the population's coefficients, or the real table's."""
        known = toy().truth if self.task == "toy" else None
        return np.array(known) if known is not None else matched(cell, self.real[epsilon]).estimate

    def covered(self, cell: Cell, epsilon: float, level: float = LEVEL) -> Array:
        """1 where an interval holds the truth: (repeats × coefficients)."""
        return cell.covered(self.truth(cell, epsilon), level).astype(np.float64)

    def widths(self, cell: Cell, epsilon: float) -> Array:
        """Over those of the real table."""
        return cell.half(LEVEL) / matched(cell, self.real[epsilon]).half(LEVEL)


def toy_figures(small: Experiment) -> dict[str, str]:
    """Figures 1, 3 (a) and 3 (b) of the paper."""
    if not small.cells:
        return {}
    found, width, height = small.of(*MAIN), 1060.0, 230.0
    size = len(EPSILONS)
    three = charts.panels(3, width, height, (0, size), (0.2, 1.0))
    shares = (0.2, 0.4, 0.6, 0.8, 0.95)
    parts = [
        p
        for j, (panel, name) in enumerate(zip(three, ("intercept, 0", "coefficient of a, 1", "coefficient of b, 0"),
                                              strict=True))
        for p in charts.dots(panel, f"coverage of 95 % intervals: {name}", EPSILONS, coverage_dots(small, found, j),
                             shares, line=LEVEL)
    ]  # fmt: skip
    figures = {"toy-coverage": charts.picture(list(found), parts, width, height, "Coverage in the toy experiment")}
    figures["toy-intervals"] = toy_intervals(small, width, height)
    three = charts.panels(3, width, height, (0, size), (0.0, 7.0))
    parts = [
        p
        for j, (panel, name) in enumerate(zip(three, ("intercept", "a", "b"), strict=True))
        for p in charts.dots(panel, f"median width over that without privacy: {name}", EPSILONS,
                             width_dots(small, found, j), (1, 2, 3, 4, 5, 6, 7), line=1.0)
    ]  # fmt: skip
    figures["toy-widths"] = charts.picture(list(found), parts, width, height, "Widths in the toy experiment")
    ablation = small.of(*ABLATION)
    three = charts.panels(3, width, height, (0, size), (0.2, 1.0))
    parts = [
        p
        for j, (panel, name) in enumerate(zip(three, ("intercept", "a", "b"), strict=True))
        for p in charts.dots(panel, f"coverage of 95 % intervals: {name}", EPSILONS,
                             coverage_dots(small, ablation, j), shares, line=LEVEL)
    ]  # fmt: skip
    figures["toy-ablation"] = charts.picture(list(ablation), parts, width, height, "The ablation study")
    return figures


def coverage_dots(small: Experiment, found: Mapping[str, ByEpsilon], j: int) -> dict[str, dict[float, Dot]]:
    """Coverage of one coefficient, with Wilson's intervals."""
    dots: dict[str, dict[float, Dot]] = {}
    for name, by in found.items():
        for epsilon, cell in by.items():
            hits = small.covered(cell, epsilon)[:, j]
            ends = wilson(int(hits.sum()), len(hits))
            dots.setdefault(name, {})[epsilon] = (float(hits.mean()), *ends)
    return dots


def width_dots(small: Experiment, found: Mapping[str, ByEpsilon], j: int) -> dict[str, dict[float, Dot]]:
    """The median relative width of one coefficient, and the middle half of the repeats."""
    dots: dict[str, dict[float, Dot]] = {}
    for name, by in found.items():
        for epsilon, cell in by.items():
            low, middle, high = np.nanquantile(small.widths(cell, epsilon)[:, j], (0.25, 0.5, 0.75)).tolist()
            dots.setdefault(name, {})[epsilon] = (middle, low, high)
    return dots


def toy_intervals(small: Experiment, width: float, height: float) -> str:
    """The intervals of the coefficient 1 at ε = 0.5, by two contenders."""
    names = [n for n in ("laplace", "naive") if 0.5 in small.cells.get(n, {})]
    parts = []
    for panel, name in zip(charts.panels(2, width, height, (0, 100), (-0.5, 2.5)), names, strict=False):
        cell = small.cells[name][0.5]
        low, high = (cell.estimate + s * cell.half(LEVEL) for s in (-1, 1))
        told = list(zip(low[:, 1].tolist(), high[:, 1].tolist(), strict=True))
        parts += charts.intervals(panel, f"{LABELS[name]}: 95 % intervals of the coefficient of a, ε = 0.5", name, told,
                                  1.0, (0, 1, 2))  # fmt: skip
    return charts.picture(names, parts, width, height, "Intervals in the toy experiment")


def adult_figures(large: Experiment) -> dict[str, str]:
    """Figure 4 of the paper."""
    if not large.real:
        return {}
    found, width, height = large.of(*ADULT), 1060.0, 215.0
    parts: list[str] = []
    for panel, epsilon in zip(charts.panels(4, width, height, (0, 1), (0, 1)), EPSILONS, strict=True):
        series = {n: calibration(large, by[epsilon], epsilon) for n, by in found.items() if epsilon in by}
        parts += charts.curves(panel, f"coverage, ε = {epsilon:g}", series)
    figures = {"adult-coverage": charts.picture(list(found), parts, width, height, "Coverage by level, Adult")}
    panel = charts.panels(1, width, height, (0, len(EPSILONS)), (0.0, 16.0))[0]
    dots: dict[str, dict[float, Dot]] = {
        n: {e: relative_width(large, c, e) for e, c in by.items()} for n, by in found.items()
    }
    parts = charts.dots(panel, "width of 95 % intervals over that of the real table", EPSILONS, dots,
                        (1, 2, 4, 6, 8, 10, 12, 14, 16), line=1.0)  # fmt: skip
    figures["adult-widths"] = charts.picture(list(found), parts, width, height, "Widths, Adult")
    return figures


def calibration(large: Experiment, cell: Cell, epsilon: float) -> list[tuple[float, Dot]]:
    """Coverage at every level, averaged over coefficients and repeats, with the bootstrap's intervals over repeats."""
    return [(level, averaged(large.covered(cell, epsilon, level))) for level in LEVELS]


def averaged(hits: Array) -> Dot:
    """The mean, and its interval over repeats."""
    return float(hits.mean()), *bootstrapped(hits.mean(axis=1), np.mean)


def relative_width(large: Experiment, cell: Cell, epsilon: float) -> Dot:
    """The median of medians, and its interval over repeats."""
    widths = large.widths(cell, epsilon)
    return median_of_medians(widths), *bootstrapped(widths, median_of_medians)


def toy_tables(small: Experiment) -> dict[str, str]:
    """Coverage, widths, the rules, and what the runs took."""
    rows = small.of("real", *MAIN, *ABLATION[1:])

    def coverage(cell: Cell, epsilon: float) -> str:
        return " · ".join(f"{100 * c:.0f}" for c in small.covered(cell, epsilon).mean(axis=0))

    def width(cell: Cell, epsilon: float) -> str:
        return " · ".join(f"{w:.2f}" for w in np.nanmedian(small.widths(cell, epsilon), axis=0))

    paper = {n: {e: by_the_paper(c) for e, c in by.items()} for n, by in small.of("laplace", "bootstrap").items()}
    return {
        "toy-coverage": table(rows, coverage),
        "toy-widths": table(small.of(*MAIN, "exact"), width),
        "toy-rules": table(paper, coverage, end=", by the paper's rules"),
        "toy-runs": runs(small, "real", *MAIN, "exact"),
    }


def adult_tables(large: Experiment) -> dict[str, str]:
    """Coverage, calibration, widths, and what the runs took."""
    rows = large.of(*ADULT)

    def coverage(cell: Cell, epsilon: float) -> str:
        middle, low, high = averaged(large.covered(cell, epsilon))
        return f"{100 * middle:.0f} ({100 * low:.0f} to {100 * high:.0f})"

    def off(cell: Cell, epsilon: float) -> str:
        gaps = [large.covered(cell, epsilon, level).mean() - level for level in LEVELS]
        return f"{100 * float(np.mean(gaps)):+.0f}, at most {100 * max(gaps, key=abs):+.0f}"

    def width(cell: Cell, epsilon: float) -> str:
        middle, low, high = relative_width(large, cell, epsilon)
        return f"{middle:.2f} ({low:.2f} to {high:.2f})"

    paper = {n: {e: by_the_paper(c) for e, c in by.items()} for n, by in rows.items() if n != "naive"}
    return {
        "adult-coverage": table(rows, coverage),
        "adult-calibration": table(rows, off),
        "adult-widths": table(rows, width),
        "adult-rules": table(paper, coverage, end=", by the paper's rules"),
        "adult-runs": runs(large, *ADULT),
        "adult-nuts": chains(large),
    }


def table(rows: Mapping[str, ByEpsilon], text: Callable[[Cell, float], str], *, end: str = "") -> str:
    """A line a contender, a column an epsilon."""
    out = ["| | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |", "| --- |" + " --- |" * len(EPSILONS)]
    for name, by in rows.items():
        told = [text(by[e], e) if e in by else "" for e in EPSILONS]
        out.append(f"| {LABELS[name]}{end} | " + " | ".join(told) + " |")
    return "\n".join(out)


def runs(found: Experiment, *names: str) -> str:
    """How often there was no interval, how many fits were left out, and processor seconds."""
    out = [
        "| | ε | repeats | refused | coefficients without an interval | regressions left out | CPU, s | wall, s |",
        "| --- |" + " --- |" * 7,
    ]
    for name, by in found.of(*names).items():
        for epsilon, cell in by.items():
            refused = sum(x["outcome"] != "finished" for x in cell.lines)
            used = spans(cell)
            per = [x["data_sets"] for x in cell.lines if "data_sets" in x]
            dropped = f"{100 * (1 - sum(used) / (len(used) * per[0])):.2f} %" if used else ""
            took = [f"{statistics.median(seconds(cell, kind)):.2g}" for kind in ("cpu", "wall")]
            told = (LABELS[name], f"{epsilon:g}", len(cell.lines), refused, cell.none, dropped, *took)
            out.append("| " + " | ".join(map(str, told)) + " |")
    return "\n".join(out)


def chains(large: Experiment) -> str:
    """What NUTS said of itself: medians, and the worst run."""
    out = ["| ε | runs | not mixed | R̂ | effective | diverged | draws a chain |", "|" + " --- |" * 7]
    for epsilon, cell in large.cells.get("nuts", {}).items():
        told = [x["posterior"] for x in cell.lines if "posterior" in x]
        bad = sum(p["r_hat"] > 1.01 or p["effective"] < 400 or p["diverged"] > 0.01 for p in told)
        worst = {"r_hat": max, "effective": min, "diverged": max, "draws": max}
        texts = [
            f"{statistics.median(p[k] for p in told):.4g} (worst {f(p[k] for p in told):.4g})"
            for k, f in worst.items()
        ]
        out.append(f"| {epsilon:g} | {len(told)} | {bad} | " + " | ".join(texts) + " |")
    return "\n".join(out) if len(out) > 2 else "Not run yet."


def filled(page: str, tables: Mapping[str, str]) -> str:
    """The page with its tables written anew."""
    for name, text in tables.items():
        mark = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = mark.sub(lambda m, text=text: f"{m[1]}{text}\n{m[2]}", page)  # type: ignore[misc]
    return page


if __name__ == "__main__":
    sys.exit(main())
