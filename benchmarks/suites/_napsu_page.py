"""The tables and figures of docs/research/napsu.md, from stored rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.core import charts
from benchmarks.core.charts import Dot
from benchmarks.core.page import Page, markdown
from benchmarks.core.results import View
from benchmarks.core.store import Row

Array = NDArray[np.float64]

EPSILONS = {"toy": (0.1, 0.3, 0.5, 1.0, 10.0, 100.0), "adult": (0.1, 0.3, 0.5, 1.0)}
LEVEL = 0.95
LEVELS = (*np.round(np.arange(0.05, 0.96, 0.05), 2).tolist(), 0.99)
TRUTH = np.array([0.0, 1.0, 0.0])
"""The coefficients of the toy's population. Those of Adult are the real table's."""
MIN_REPEATS = 5
"""Repeats below which coverage and widths are not shown."""
BOOTSTRAPS = 2000
WIDTH, HEIGHT = 1060.0, 220.0

ONE_TABLE = ("sampled", "pep", "rap")
REPEATED = ("pgm5", "pgm10", "pgm20")
FIGURE_1 = ("laplace", "bootstrap", *ONE_TABLE, "pgm10", "privlcm")
TOY = ("laplace", "bootstrap", "plain", "naive", *ONE_TABLE, *REPEATED, "privlcm")
ABLATION = ("laplace", "laplace, one", "exact", "exact, one")
ADULT = ("nuts", "laplace", "naive", "bootstrap", "plain", *REPEATED)


@dataclass(frozen=True, eq=False)
class Cell:
    """One contender at one epsilon: (repeats × coefficients), NaN where there is no interval.

    ``df`` is infinite for an ordinary interval.
    """

    rows: Sequence[Row]
    estimate: Array
    variance: Array
    df: Array

    @staticmethod
    def of(rows: Sequence[Row], field: str) -> Cell:
        """Return the numbers of rows; ``field`` "one" is the first of their data sets alone."""
        ordered = sorted(rows, key=lambda row: int(row["repeat"]))
        columns = ("estimate", "variance", "df")
        return Cell(ordered, *(numbers(ordered, field, column) for column in columns))

    def half(self, level: float) -> Array:
        """Return half the width of the intervals."""
        return quantile(self.df, level) * np.sqrt(self.variance)

    def covered(self, truth: Array, level: float) -> Array:
        """Return 1 where an interval holds the truth. No interval is a miss."""
        return np.asarray(np.abs(self.estimate - truth) <= self.half(level), dtype=np.float64)

    def like(self, other: Cell) -> Cell:
        """Return those repeats that another cell has."""
        repeats = {row["repeat"] for row in other.rows}
        at = [i for i, row in enumerate(self.rows) if row["repeat"] in repeats]
        rows = [self.rows[i] for i in at]
        return Cell(rows, self.estimate[at], self.variance[at], self.df[at])

    @property
    def finished(self) -> list[Row]:
        """The rows of runs that gave intervals."""
        return [row for row in self.rows if row["outcome"] == "finished"]


def numbers(rows: Sequence[Row], field: str, column: str) -> Array:
    """Return one number of every coefficient in every row; NaN where there is no interval."""
    size = max(len(row.get(field, [])) for row in rows)
    lists = [row.get(field, [None] * size) for row in rows]
    return np.array([[np.nan if e is None else e.get(column, np.inf) for e in x] for x in lists])


def quantile(df: Array, level: float) -> Array:
    """Return the two-sided quantile of Student's t; infinity without degrees of freedom."""
    upper = (1 + level) / 2
    with np.errstate(invalid="ignore"):
        student = special.stdtrit(np.where(np.isinf(df), 1.0, df), upper)
        cells = np.where(np.isinf(df), float(special.ndtri(upper)), student)
    return np.asarray(np.where(df <= 1e-3, np.inf, cells))


def by_the_paper(cell: Cell) -> Cell:
    """Return the same data sets by the paper's rules, without our floors.

    T = (1 + 1/m) b − v̄, or v̄ where that is negative; df = (m − 1) (1 − v̄ / ((1 + 1/m) b))².
    """
    columns = ("used", "within", "between")
    m, within, between = (numbers(cell.rows, "estimates", column) for column in columns)
    spread = (1 + 1 / m) * between
    total, df = spread - within, (m - 1) * (1 - within / spread) ** 2
    return Cell(cell.rows, cell.estimate, np.where(total < 0, within, total), df)


ByEpsilon = Mapping[float, Cell]


class Experiment:
    """All contenders of one task that have rows, at every epsilon."""

    def __init__(self, view: View, task: str) -> None:
        self.task, self.contenders, self.label = task, view.contenders, view.label
        self.legend, self.epsilons = charts.Legend.of(view.contenders), EPSILONS[task]
        self.stored: dict[str, dict[float, Cell]] = {}
        for name in view.contenders:
            who, _, field = name.partition(", ")
            rows = view.rows(task, who)
            by = {e: [r for r in rows if r.get("epsilon") == e] for e in self.epsilons}
            cells = {e: Cell.of(r, field or "estimates") for e, r in by.items() if r}
            if cells and (field or view.contenders[name].facts["run"] is not None):
                self.stored[name] = cells

    def of(self, *names: str) -> dict[str, dict[float, Cell]]:
        """Return those contenders that have enough repeats, where they have."""
        enough = {
            n: {e: c for e, c in self.stored.get(n, {}).items() if len(c.rows) >= MIN_REPEATS}
            for n in names
        }
        return {name: by for name, by in enough.items() if by}

    def covered(self, cell: Cell, epsilon: float, level: float = LEVEL) -> Array:
        """Return 1 where an interval holds the truth: (repeats × coefficients)."""
        real = self.stored["real"][epsilon]
        return cell.covered(TRUTH if self.task == "toy" else real.like(cell).estimate, level)

    def widths(self, cell: Cell, epsilon: float) -> Array:
        """Return the widths over those of the real table."""
        return cell.half(LEVEL) / self.stored["real"][epsilon].like(cell).half(LEVEL)

    def width(self, cell: Cell, epsilon: float) -> Dot:
        """Return the median of medians, and its interval over repeats."""
        widths = self.widths(cell, epsilon)
        return median_of_medians(widths), *bootstrap_interval(widths, median_of_medians)


def median_of_medians(widths: Array) -> float:
    """Return the median over repeats, and then over coefficients."""
    return float(np.nanmedian(np.nanmedian(widths, axis=0)))


def average(hits: Array) -> Dot:
    """Return the mean, and its interval over repeats."""
    return float(hits.mean()), *bootstrap_interval(hits.mean(axis=1), np.mean)


def bootstrap_interval(values: Array, statistic: Any, seed: int = 0) -> tuple[float, float]:
    """Return a 95 % interval of a statistic of rows, which are independent."""
    rng, n = np.random.default_rng(seed), len(values)
    drawn = [statistic(values[rng.integers(0, n, n)]) for _ in range(BOOTSTRAPS)]
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Return a 95 % interval for a probability, from independent trials."""
    z, p = 1.959964, hits / of
    middle, half = p + z * z / (2 * of), z * np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return float((middle - half) / (1 + z * z / of)), float((middle + half) / (1 + z * z / of))


def page(view: View) -> Page:
    """Return all tables and figures, without the contenders that have no row."""
    small, large = (Experiment(view, task) for task in ("toy", "adult"))
    return Page(
        {**toy_tables(small), **adult_tables(large)}, {**toy_figures(small), **adult_figures(large)}
    )


# Tables


def toy_tables(view: Experiment) -> dict[str, str]:
    """Return coverage, widths, rules, and the cost of the runs."""

    def coverage(cell: Cell, epsilon: float) -> str:
        return percent(view.covered(cell, epsilon).mean(axis=0))

    def width(cell: Cell, epsilon: float) -> str:
        return " · ".join(f"{w:.2f}" for w in np.nanmedian(view.widths(cell, epsilon), axis=0))

    return {
        "toy-coverage": table(view, view.of("real", *TOY), coverage),
        "toy-widths": table(view, view.of(*TOY, "exact"), width),
        "toy-ablation": table(view, view.of(*ABLATION), coverage),
        "toy-rules": paper_table(view, view.of("laplace", "bootstrap", *REPEATED), coverage),
        "toy-runs": runs(view, "real", *TOY, "exact"),
    }


def adult_tables(view: Experiment) -> dict[str, str]:
    """Return coverage, calibration, widths, and the cost of the runs."""
    rows = view.of(*ADULT)

    def coverage(cell: Cell, epsilon: float) -> str:
        middle, low, high = average(view.covered(cell, epsilon))
        return f"{100 * middle:.0f} ({100 * low:.0f} to {100 * high:.0f})"

    def off(cell: Cell, epsilon: float) -> str:
        gaps = {level: view.covered(cell, epsilon, level).mean() - level for level in LEVELS}
        upper = [gap for level, gap in gaps.items() if level >= 0.5]
        every, above = (100 * float(np.mean(list(g))) for g in (gaps.values(), upper))
        return f"{every:+.0f}, at most {100 * max(gaps.values(), key=abs):+.0f}; {above:+.0f}"

    def width(cell: Cell, epsilon: float) -> str:
        middle, low, high = view.width(cell, epsilon)
        return f"{middle:.2f} ({low:.2f} to {high:.2f})"

    def used(cell: Cell, epsilon: float) -> str:
        shares = [
            [0 if e is None else e["used"] / row["data_sets"] for e in row["estimates"]]
            for row in cell.finished
        ]
        return percent(np.mean(shares, axis=0)) if shares else ""

    several = {n: by for n, by in rows.items() if n != "naive"}
    each = table(view, rows, lambda c, e: percent(view.covered(c, e).mean(axis=0)))
    return {
        "adult-coverage": table(view, rows, coverage), "adult-each": each,
        "adult-used": table(view, several, used), "adult-calibration": table(view, rows, off),
        "adult-widths": table(view, rows, width),
        "adult-rules": paper_table(view, several, coverage), "adult-runs": runs(view, *ADULT),
        "adult-nuts": chains(view, "nuts"), "adult-nuts-full": chains(view, "nuts-full"),
    }  # fmt: skip


def percent(shares: Array) -> str:
    """Return shares of coefficients as percentages."""
    return " · ".join(f"{100 * s:.0f}" for s in shares)


Text = Callable[[Cell, float], str]


def table(view: Experiment, rows: Mapping[str, ByEpsilon], text: Text, end: str = "") -> str:
    """Return a line for each contender, a column for each epsilon."""
    body = [
        (
            f"{view.label(name)}{end}",
            *(text(by[e], e) if e in by else "" for e in view.epsilons),
        )
        for name, by in rows.items()
    ]
    head = "| | " + " | ".join(f"ε = {e:g}" for e in view.epsilons) + " |"
    return "\n".join([head, "| --- |" + " --- |" * len(view.epsilons), *markdown_lines(body)])


def markdown_lines(body: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table below its head."""
    return markdown([""], body).splitlines()[2:]


def paper_table(view: Experiment, rows: Mapping[str, ByEpsilon], text: Text) -> str:
    """Return the same by the paper's rules."""
    paper = {n: {e: by_the_paper(c) for e, c in by.items()} for n, by in rows.items()}
    return table(view, paper, text, ", by the paper's rules")


def runs(view: Experiment, *names: str) -> str:
    """Return how often there was no interval, how many fits were left out, and seconds."""
    body = []
    for name, epsilon, cell in (
        (n, e, c) for n in names for e, c in view.stored.get(n, {}).items()
    ):
        used = [
            e["used"] for row in cell.rows for e in row.get("estimates", []) if e and "used" in e
        ]
        sets = [row["data_sets"] for row in cell.rows if "data_sets" in row]
        dropped = f"{100 * (1 - sum(used) / (len(used) * sets[0])):.2f} %" if used else ""
        seconds = [f"{statistics.median(taken(cell, kind)):.2g}" for kind in ("cpu", "wall")]
        refused, none = len(cell.rows) - len(cell.finished), int(np.isnan(cell.variance).sum())
        first = (view.label(name), f"{epsilon:g}", len(cell.rows), refused)
        body.append((*first, none, dropped, *seconds))
    head = "| | ε | repeats | refused | coefficients without an interval | regressions left out | CPU, s | wall, s |"
    return "\n".join([head, "| --- |" + " --- |" * 7, *markdown_lines(body)])


def taken(cell: Cell, kind: str) -> list[float]:
    """Return the seconds of each repeat, all stages together."""
    return [sum(v for k, v in row.items() if k.endswith(f"_{kind}_s")) for row in cell.rows]


def chains(view: Experiment, name: str) -> str:
    """Return NUTS's diagnostics and seconds: medians, and the worst run."""
    worst = {"r_hat": max, "effective": min, "diverged": max, "draws": max, "cpu": max}
    body = []
    for epsilon, cell in view.stored.get(name, {}).items():
        facts = [{**row["posterior"], "cpu": row["fit_cpu_s"]} for row in cell.finished]
        bad = sum(p["r_hat"] > 1.01 or p["effective"] < 400 or p["diverged"] > 0.01 for p in facts)
        texts = (
            f"{statistics.median(p[k] for p in facts):.4g} (worst {f(p[k] for p in facts):.4g})"
            for k, f in worst.items()
        )
        body.append((f"{epsilon:g}", len(facts), bad, *texts))
    head = ("ε", "runs", "not mixed", "R̂", "effective", "diverged", "draws per chain", "CPU, s")
    return markdown(head, body) or "Not run yet."


# Figures


def toy_figures(view: Experiment) -> dict[str, str]:
    """Return figures 1, 3 (a) and 3 (b) of the paper."""
    if not view.of(*view.contenders):
        return {}
    cells, ablation = view.of(*FIGURE_1), view.of(*ABLATION)
    shares, times = (0.2, 0.4, 0.6, 0.8, 0.95), (1, 2, 4, 8, 16)
    hits = "coverage of 95 % intervals"

    def coverage(cell: Cell, epsilon: float, j: int) -> Dot:
        covered = view.covered(cell, epsilon)[:, j]
        return float(covered.mean()), *wilson(int(covered.sum()), len(covered))

    def width(cell: Cell, epsilon: float, j: int) -> Dot:
        widths = view.widths(cell, epsilon)[:, j]
        low, middle, high = np.nanquantile(widths, (0.25, 0.5, 0.75)).tolist()
        return middle, low, high

    return {
        "toy-coverage": by_coefficient(view, cells, coverage, hits, (0.2, 1.0), shares, LEVEL),
        "toy-intervals": toy_intervals(view),
        "toy-widths": by_coefficient(
            view, cells, width, "median relative width", (0.8, 22.0), times, 1.0, log=True
        ),
        "toy-ablation": by_coefficient(view, ablation, coverage, hits, (0.2, 1.0), shares, LEVEL),
    }


def by_coefficient(
    view: Experiment, cells: Mapping[str, ByEpsilon], number: Callable[[Cell, float, int], Dot],
    what: str, up: tuple[float, float], ticks: Sequence[float], line: float, *, log: bool = False,
) -> str:  # fmt: skip
    """Return a panel for each coefficient, with one number of every contender and epsilon."""
    legend, parts = view.legend, []
    row = charts.panels(3, WIDTH, HEIGHT, (0, len(view.epsilons)), up)
    for j, (panel, name) in enumerate(zip(row, ("intercept, 0", "a, 1", "b, 0"), strict=True)):
        series = {n: {e: number(c, e, j) for e, c in by.items()} for n, by in cells.items()}
        title = f"{what}: {name}"
        frame = replace(panel, log=log)
        parts += charts.dots(legend, frame, title, view.epsilons, series, ticks, line=line)
    return charts.picture(legend, list(cells), parts, WIDTH, HEIGHT, f"Toy experiment: {what}")


def toy_intervals(view: Experiment) -> str:
    """Return the intervals of the coefficient 1 at ε = 0.5, by two contenders."""
    cells = {n: by[0.5] for n, by in view.of("laplace", "sampled").items() if 0.5 in by}
    legend, parts = view.legend, []
    frames = charts.panels(2, WIDTH, HEIGHT, (0, 100), (0.2, 1.8))
    for panel, (name, cell) in zip(frames, cells.items(), strict=False):
        low, high = ((cell.estimate + s * cell.half(LEVEL))[:, 1].tolist() for s in (-1, 1))
        title = f"{legend.labels[name]}: 95 % intervals of the coefficient of a, ε = 0.5"
        spans = list(zip(low, high, strict=True))
        parts += charts.intervals(legend, panel, title, name, spans, 1.0, (0.5, 1, 1.5))
    what = "Intervals in the toy experiment"
    return charts.picture(legend, list(cells), parts, WIDTH, HEIGHT, what)


def adult_figures(view: Experiment) -> dict[str, str]:
    """Return figure 4 of the paper."""
    if "real" not in view.stored:
        return {}
    cells, legend, parts = view.of(*ADULT), view.legend, []
    frames = charts.panels(4, WIDTH, HEIGHT, (0, 1), (0, 1))
    for panel, e in zip(frames, view.epsilons, strict=True):
        curves = {
            n: [(level, average(view.covered(by[e], e, level))) for level in LEVELS]
            for n, by in cells.items() if e in by
        }  # fmt: skip
        parts += charts.curves(legend, panel, f"coverage, ε = {e:g}", curves)
    frame = charts.panels(1, WIDTH, HEIGHT, (0, len(view.epsilons)), (0.9, 64.0))[0]
    dots = {n: {e: view.width(c, e) for e, c in by.items()} for n, by in cells.items()}
    widths = charts.dots(legend, replace(frame, log=True), "width of 95 % intervals over that of the real table",
                         view.epsilons, dots, (1, 2, 4, 8, 16, 32, 64), line=1.0)  # fmt: skip
    named = {"adult-coverage": ("Coverage by level, Adult", parts),
             "adult-widths": ("Widths, Adult", widths)}  # fmt: skip
    return {
        name: charts.picture(legend, list(cells), drawn, WIDTH, HEIGHT, what)
        for name, (what, drawn) in named.items()
    }
