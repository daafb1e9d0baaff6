"""The mean, the total and the quantiles of a numeric column, by its noisy counts and by the model's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from margrave.bounds.noisy_counts import Interval, NoisyCounts, quantile_place
from margrave.ratios import figure
from margrave.release.beyond_bounds import beyond_bounds, has_bounds_of_another_run, hidden_share
from margrave.release.end_cells import (
    MIN_EXCESS_FACTOR,
    MIN_EXCESS_SHARE,
    has_natural_end,
    last_cell,
)
from margrave.release.number import (
    MAX_DEVIATIONS_FROM_ZERO,
    TOLERANCE,
    ColumnNumber,
    decimals_of,
    number,
)
from margrave.schema.elapsed import Elapsed
from margrave.schema.numeric import Numeric, Timestamp
from margrave.types import FloatArray

#: The quantiles by name, as shares of the records below.
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


def has_edges_for_heaps(column: Numeric) -> bool:
    """Return True if values that heap, such as round prices, may all lie at the same end of their bins.

    Whole numbers, dates and times may if their bins begin at multiples of a step, after a first one. Real numbers may
    if their bins begin at multiples of the greatest power of ten within the narrowest. Bins of one value do not count.

    >>> from margrave.schema import Integer, Real
    >>> ages = Integer("age", 0, 99), Integer("age", 0, 99, bins=10), Integer("age", 0, 99, bins=100)
    >>> [has_edges_for_heaps(column) for column in ages]
    [False, True, False]
    >>> [has_edges_for_heaps(Real("price", 0, 100, bins=bins)) for bins in (20, 32)]
    [True, False]
    """
    least, greatest = column.cells.extremes
    wide = greatest > least
    starts = least[wide][1:]
    if not wide.any():
        return False
    if column.cells.whole:
        return bool(np.gcd.reduce(np.diff(starts.astype(np.int64))) != 1)
    steps = starts / 10.0 ** math.floor(math.log10(float((greatest - least)[wide].min())))
    return bool(np.allclose(steps, np.rint(steps), rtol=0.0, atol=1e-6))


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """A numeric column's counts, and what its statistics are made of.

    Args:
        column: A column of numbers, dates or times.
        noisy: The noisy counts of its codes; None if it was not measured.
        expected: The model's counts of its codes; None without a model.
        rows_per_row: Number of all rows with a value for each of the group that the counts are of; None if they are of
            all.
        limits: The least and the greatest value that the column may have: its ``possible_limits``.
        quantiles: The quantiles by name, as shares of the records below.
        clips: The end cells may hold values from beyond the bounds.
    """

    column: Numeric
    noisy: NoisyCounts | None
    expected: FloatArray | None
    rows_per_row: float | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)
    quantiles: Mapping[str, float] = field(default_factory=lambda: QUANTILES)
    clips: bool = True

    def numbers(self) -> Iterator[ColumnNumber]:
        """Yield the mean, the total and the quantiles. A total of dates has no meaning."""
        total = () if pa.types.is_temporal(self.column.type) else ("total",)
        synthetic = {} if self.expected is None else self._of(self.expected)
        for name in ("mean", *total, *self.quantiles):
            own = synthetic.get(name)
            if self.noisy is None:
                yield number(self.column.name, name, None, show=self._words, synthetic=own)
            elif name in self.quantiles:
                yield self._quantile(name, self.noisy, own)
            else:
                yield self._moment(name, self.noisy, own)

    def _of(self, counts: FloatArray) -> dict[str, float]:
        """Return the statistics of the model's counts; none if all records are missing."""
        counts = counts[: self._cells]
        if counts.sum() <= 0:
            return {}
        total = float(counts @ self._middles)
        found = {"mean": total / float(counts.sum()), "total": total}
        return found | {
            q: self._at(*quantile_place(counts, at)) for q, at in self.quantiles.items()
        }

    def _moment(self, name: str, noisy: NoisyCounts, synthetic: float | None) -> ColumnNumber:
        size, limits = float(self._present @ noisy.counts), self.limits
        interval, scale = noisy.mean(self._padded(self._middles), self._present), 1.0
        mean = interval.estimate
        if name == "total":
            interval, scale = noisy.total(self._padded(self._middles)), max(size, 1.0)
            limits = self._total_limits(noisy)
        tolerance, bins = scale * self._tolerance(noisy, mean, mean), scale * self._shift(noisy)
        heaps = not self.column.mean and has_edges_for_heaps(self.column)
        most_bins = scale * float(self._lengths(noisy).sum()) / 2 if heaps else 0.0
        room = (0.0, 0.0)
        if self.column.mean and self.rows_per_row is None:
            (interval, room), bins = self._learned(noisy, name == "total"), 0.0
        elif self.column.mean:
            room = self._hidden(scale)
        if name == "total":  # which is 0 only without values, however far these are from 0
            tolerance = max(tolerance, TOLERANCE * abs(interval.estimate or 0.0))
        found = number(
            self.column.name, name, interval, bins=bins, most_bins=most_bins, room=room,
            limits=limits, clipping=sum(self.clipped(noisy)), tolerance=tolerance,
            show=self._words, synthetic=synthetic,
        )  # fmt: skip
        of_another = has_bounds_of_another_run(self.column, self.limits)
        return replace(found, reliable=False) if of_another else found

    def _total_limits(self, noisy: NoisyCounts) -> tuple[float, float]:
        """Return the least and the greatest total: a bound times the least, or the greatest number of values."""
        size = noisy.total(self._present)
        numbers = np.maximum([size.low, size.high], 0.0)
        low, high = self.limits
        least = float((low * numbers).min()) if math.isfinite(low) else low
        return least, float((high * numbers).max()) if math.isfinite(high) else high

    def _hidden(self, scale: float) -> tuple[float, float]:
        """Return what values beyond learned bounds may add to both ends in a group: all may be in it."""
        estimate, low, high = self.column.mean
        parts, factor = beyond_bounds(self.column), scale * (self.rows_per_row or 1.0)
        below, above = (
            (estimate - low, high - estimate) if parts is None else (parts.below, parts.above)
        )
        return factor * below, factor * above

    def _learned(self, noisy: NoisyCounts, total: bool) -> tuple[Interval, tuple[float, float]]:
        """Return the mean that was learned with the column, or its product with the number of values.

        The interval is by the noise alone. The lengths beside it are what values beyond the bounds may add to its ends.
        The column states an interval of 95 %; its half-widths are rescaled to the level of others.
        """
        (estimate, low, high), parts = self.column.mean, beyond_bounds(self.column)
        below, above = (0.0, 0.0) if parts is None else (parts.below, parts.above)
        size = noisy.total(self._present) if total else Interval(1.0, 1.0, 1.0)

        def between(down: float, up: float) -> Interval:
            factor = noisy.deviations / 1.96
            ends = estimate - factor * down, estimate + factor * up
            corners = [end * number for end in ends for number in (size.low, size.high)]
            return Interval(estimate * (size.estimate or 0.0), min(corners), max(corners))

        whole = between(estimate - low, high - estimate)
        alone = between(estimate - low - below, high - estimate - above)
        return alone, (max(alone.low - whole.low, 0.0), max(whole.high - alone.high, 0.0))

    def _quantile(self, name: str, noisy: NoisyCounts, synthetic: float | None) -> ColumnNumber:
        first, last = noisy.quantile_codes(self.quantiles[name], self._cells)
        value = self._at(*quantile_place(noisy.counts[: self._cells], self.quantiles[name]))
        low, high = float(self._least[first]), float(self._greatest[last])
        between = float(self._middles[last] - self._middles[first])
        bottom, top = self.clipped(noisy)
        mean = noisy.mean(self._padded(self._middles), self._present).estimate
        tolerance = self._tolerance(noisy, value, mean, self._middle_deviation(noisy))
        found = number(
            self.column.name, name, Interval(min(max(value, low), high), low, high),
            room=self._open(name, first, last),
            clipping=bottom * (first == 0) + top * (last == self._cells - 1),
            tolerance=tolerance, show=self._words, synthetic=synthetic,
        )  # fmt: skip
        return replace(found, noise=between / 2, bins=(high - low - between) / 2)

    def _open(self, name: str, first: int, last: int) -> tuple[float, float]:
        """Return how far a quantile may lie beyond the first and the last cell: infinity beyond a learned bound, or 0.

        Rows beyond it count in the end cell. If it is unknown how many there may be, as under bounds that another
        run learned, all of that cell may be beyond. All rows that may be hidden may be in one group.
        """
        hidden = hidden_share(self.column) * (self.rows_per_row or 1.0)
        q, (low, high) = self.quantiles[name], self.limits
        bottom = first == 0 and q <= hidden and math.isinf(low)
        top = last == self._cells - 1 and 1.0 - q <= hidden and math.isinf(high)
        return math.inf if bottom else 0.0, math.inf if top else 0.0

    def _middle_deviation(self, noisy: NoisyCounts) -> float:
        """Return the least standard deviation by the middle half of the records, which no tail reaches.

        It is that of normal values whose quartiles are as near to each other as the noise and the bins leave possible.
        """
        normal_quartiles = 1.349  # their distance, in standard deviations
        ends = [noisy.quantile_codes(q, self._cells) for q in (0.25, 0.75)]
        between = float(self._least[ends[1][0]] - self._greatest[ends[0][1]])
        return max(between, 0.0) / normal_quartiles

    def _tolerance(
        self, noisy: NoisyCounts, value: float | None, mean: float | None, most: float = math.inf
    ) -> float:
        """Return the largest half-width of a reliable interval around a value.

        The standard deviation is the low end of its own interval: noise in the cells of a long tail
        makes an estimate too large. It is ``most`` at most.
        """
        if value is None or mean is None:
            return 0.0
        squares = (self._middles - mean) ** 2 + self.column.cells.variances
        variance = noisy.mean(self._padded(squares), self._present)
        near = abs(mean) <= MAX_DEVIATIONS_FROM_ZERO * math.sqrt(variance.estimate or 0.0)
        share = abs(value) if near and not pa.types.is_temporal(self.column.type) else 0.0
        return TOLERANCE * max(min(math.sqrt(variance.low), most), share)

    def _shift(self, noisy: NoisyCounts) -> float:
        """Return by how much the positions within bins may shift the mean.

        The mean of a bin's values is anywhere in the bin with the same probability, in each bin on
        its own. At most all values are at one end of their bins.
        """
        lengths = self._lengths(noisy)
        likely = noisy.deviations * math.sqrt((lengths**2).sum() / 12)
        return min(likely, float(lengths.sum()) / 2)

    def _lengths(self, noisy: NoisyCounts) -> FloatArray:
        counts = np.maximum(noisy.counts[: self._cells], 0.0)
        return counts * (self._greatest - self._least) / max(float(counts.sum()), 1.0)

    def clipped(self, noisy: NoisyCounts) -> tuple[float, float]:
        """Return the share of the records that may be clipped at the lower and the upper bound.

        An end bin must hold more than the bins beside it lead to expect, whatever the noise did to these.
        """
        if not self.clips or self.column.mean:  # whose interval says what learned bounds may hide
            return 0.0, 0.0
        counts = noisy.counts[: self._cells]
        size = max(float(counts.sum()), 1.0)
        shares = np.maximum(counts, 0.0) / size
        noise = noisy.deviations * noisy.estimate.spread / size
        found = []
        for top in (False, True):
            last, expected = last_cell(self.column, shares, top, noise)
            large = last - expected - noise > MIN_EXCESS_SHARE
            large &= last > MIN_EXCESS_FACTOR * expected
            found.append(last if large and not has_natural_end(self.column, top) else 0.0)
        return found[0], found[1]

    @property
    def _cells(self) -> int:
        return self.column.cells.count

    @cached_property
    def _least(self) -> FloatArray:
        return self.column.cells.extremes[0]

    @cached_property
    def _greatest(self) -> FloatArray:
        return self.column.cells.extremes[1]

    @cached_property
    def _middles(self) -> FloatArray:
        return self.column.cells.means

    @cached_property
    def _present(self) -> FloatArray:
        return self._padded(np.ones(self._cells))

    def _padded(self, values: FloatArray) -> FloatArray:
        """Return values of cells as values of codes: 0 for the missing state."""
        return np.concatenate([values, np.zeros(self.column.size - self._cells)])

    def _at(self, code: int, fraction: float) -> float:
        """Return the value below which a fraction of a cell's evenly spread values lie."""
        least, greatest = float(self._least[code]), float(self._greatest[code])
        if not self.column.cells.whole:
            return least + fraction * (greatest - least)
        values = greatest - least + 1
        return least + min(math.floor(fraction * values), values - 1)

    def _words(self, value: float, length: float) -> str:
        if math.isinf(value):
            bound = self._least.min() if value < 0 else self._greatest.max()
            return f"beyond {self._words(float(bound), length)}"
        if pa.types.is_temporal(self.column.type):
            written = self.column.written(np.array([round(value)]), np.array([False]))[0].as_py()
            minutes = isinstance(self.column, Timestamp) and self.column.unit != "second"
            return written.isoformat(" ", timespec="minutes") if minutes else str(written)
        if abs(value) < np.finfo(np.float64).tiny:  # the greatest value of a bin that ends at 0
            value = 0.0
        whole = math.floor(math.log10(abs(value))) + 1 if value else 1
        digits = whole + decimals_of(length)
        shown = figure(value, digits if digits > max(4, whole) else 0)
        if isinstance(self.column, Elapsed):
            return f"{shown} {self.column.unit}{'s' * (shown != '1')}"
        return shown
