"""From stored lines to coverage and widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.napsu.tasks import EPSILONS
from numpy.typing import NDArray
from scipy import special
from stored import read_lines

Array = NDArray[np.float64]
Facts = dict[str, Any]

BOOTSTRAPS = 2000


@dataclass(frozen=True, eq=False)
class Cell:
    """One contender at one epsilon: estimate, variance and degrees of freedom, (repeats × coefficients), NaN for none.

    ``lines`` are what they were read from; ``df`` is infinite for an ordinary interval.
    """

    lines: list[Facts]
    estimate: Array
    variance: Array
    df: Array

    def half(self, level: float) -> Array:
        """Half the width of the intervals."""
        return quantile(self.df, level) * np.sqrt(self.variance)

    def covered(self, truth: Array, level: float) -> NDArray[np.bool_]:
        """Which intervals hold the truth; none is a miss."""
        return np.asarray(np.abs(self.estimate - truth) <= self.half(level))

    @property
    def none(self) -> int:
        """Coefficients without an interval."""
        return int(np.isnan(self.variance).sum())


def quantile(df: Array, level: float) -> Array:
    """Of the t distribution, two-sided; an infinite number where there are no degrees of freedom at all."""
    normal = float(special.ndtri((1 + level) / 2))
    with np.errstate(invalid="ignore"):
        found = np.where(np.isinf(df), normal, special.stdtrit(np.where(np.isinf(df), 1.0, df), (1 + level) / 2))
    return np.asarray(np.where(df <= 1e-3, np.inf, found))


def cells(results: Path, task: str, contender: str, *, field: str = "estimates") -> dict[float, Cell]:
    """Every epsilon of one contender; ``field`` "one" is what the first of its data sets says alone."""
    found = {}
    stored = list(read_lines(results / f"{task}_{contender}.jsonl"))
    for epsilon in EPSILONS:
        lines = sorted((x for x in stored if x["epsilon"] == epsilon), key=lambda x: x["repeat"])
        if lines:
            found[epsilon] = Cell(lines, *(_numbers(lines, field, key) for key in ("estimate", "variance", "df")))
    return found


def _numbers(lines: list[Facts], field: str, key: str) -> Array:
    """One number of every coefficient; NaN where there is no interval."""
    size = max(len(x.get(field, [])) for x in lines)
    told = [x.get(field, [None] * size) for x in lines]
    return np.array([[np.nan if e is None else e.get(key, np.inf) for e in line] for line in told])


def by_the_paper(cell: Cell) -> Cell:
    """The same data sets by the paper's rules, without our floor under T and the degrees of freedom.

    T = (1 + 1/m) b − v̄, or v̄ where that is negative; df = (m − 1) (1 − v̄ / ((1 + 1/m) b))².
    """
    m, within, between = (_numbers(cell.lines, "estimates", key) for key in ("used", "within", "between"))
    spread = (1 + 1 / m) * between
    total = spread - within
    df = (m - 1) * (1 - within / spread) ** 2
    return Cell(cell.lines, cell.estimate, np.where(total < 0, within, total), df)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """A 95 % interval for a probability, from independent trials."""
    z, p = 1.959964, hits / of
    middle, half = p + z * z / (2 * of), z * np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return float((middle - half) / (1 + z * z / of)), float((middle + half) / (1 + z * z / of))


def bootstrapped(values: Array, statistic: Any, seed: int = 0) -> tuple[float, float]:
    """A 95 % interval of a statistic of the rows, which are the independent repeats."""
    rng = np.random.default_rng(seed)
    drawn = [statistic(values[rng.integers(0, len(values), len(values))]) for _ in range(BOOTSTRAPS)]
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def median_of_medians(widths: Array) -> float:
    """Over the repeats, and then over the coefficients."""
    return float(np.nanmedian(np.nanmedian(widths, axis=0)))


def matched(cell: Cell, other: Cell) -> Cell:
    """Those of the other cell's repeats that this one has."""
    repeats = [x["repeat"] for x in cell.lines]
    at = [i for i, x in enumerate(other.lines) if x["repeat"] in repeats]
    return Cell([other.lines[i] for i in at], other.estimate[at], other.variance[at], other.df[at])


def seconds(cell: Cell, kind: str) -> list[float]:
    """What each repeat took, all stages together."""
    return [sum(v for k, v in x.items() if k.endswith(f"_{kind}_s")) for x in cell.lines]


def spans(cell: Cell) -> Sequence[int]:
    """The data sets that each coefficient was combined from, as told."""
    return [e["used"] for x in cell.lines for e in x.get("estimates", []) if e is not None and "used" in e]
