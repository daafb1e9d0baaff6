"""One number of a release with its interval and its verdict: a row of ``Release.numbers()``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from margrave.bounds.noisy_counts import Interval
from margrave.types import Attribute

#: Half-width of a reliable interval, as a share of the value and in standard deviations.
TOLERANCE = 0.05

#: The level of the intervals that decide a verdict, whatever the level of the others.
VERDICT_LEVEL = 0.95

#: Standard deviations from zero beyond which a share of the value is not a tolerance.
MAX_DEVIATIONS_FROM_ZERO = 3.0


@dataclass(frozen=True)
class ColumnNumber:
    """One statistic of one column: a row of ``Release.numbers()``.

    Numeric columns have ``mean``, ``total`` and the quantiles ``q05``, ``q25``, ``q50``, ``q75``,
    ``q95`` of the records that are not missing; dates and times have no total. Columns of
    categories have the ``share of`` each among all records. Columns with a missing state have the
    share ``missing``.

    The estimate is by least squares from all noisy marginals that contain the column, and for means and totals from
    weighted sums that were measured beside them. The interval
    is about the counted table, not the population. It covers the noise and the positions within
    bins, where the release draws values evenly. For a mean or a total, the mean of a bin's values
    is taken to be anywhere in the bin with the same probability, in each bin on its own. The
    interval of a quantile has whole bins. It has no end on a side where the quantile may lie beyond a learned bound.

    The interval does not cover values beyond the bounds of the schema, which are counted in the end
    cells under ``outside = "clip"``, and as missing under ``outside = "missing"``. ``clipping`` shows
    clipped ones only if an end cell holds far more than the cells beside it lead to expect; a long thin
    tail beyond a bound does not show. Nor does the interval cover the rows of a person beyond the limit of
    the unit. The list of measurements is taken as fixed, though an adaptive mechanism selects by earlier
    answers.

    A number is reliable if half the width of its 95 % interval is at most 5 % of the estimate or 0.05 standard
    deviations, if the synthetic rows differ from the estimate by no more than that, and if no clipping shows. The level
    of the stated interval does not change the verdict. For a mean or a total under public bounds, the verdict counts
    half of each bin's width: values such as round prices may all lie on edges. The standard deviation of a quantile is
    at most that of normal values with the same middle half. If the mean is more than three standard deviations from
    zero, and for dates, 5 % of the estimate does not count, except for a total. The standard deviation of a share is
    the least that its interval leaves possible, and 5 % of a share above 90 % does not count. A column that no measured
    marginal contains has no interval and is not reliable. Nor are means and totals under bounds that another run
    learned.

    Args:
        column: Name of the column.
        statistic: Name of the statistic.
        estimate: The estimate; None without a measurement, or if noise hides it. Shares are between
            0 and 1. Dates and times count the column's units since 1970-01-01.
        low: Lower end of the interval; minus infinity without one.
        high: Upper end of the interval; infinity without one.
        reliable: Whether the number can be used as it is.
        noise: Half the width of the interval by the noise alone.
        bins: Length that the positions within bins add to both ends; half the length that they add to a quantile's.
        beyond_below: Length that values beyond the learned bounds may add to the lower end; infinite if it is open.
        beyond_above: Length that they may add to the upper end. The width of the interval is twice ``noise`` and
            ``bins``, and these two. A bound at which the interval ends shortens the outer parts first.
        clipping: Share of the records that may be values from beyond the bounds; it does not depend on the level.
        synthetic: The statistic of the model, which the synthetic rows follow; None without one.
        text: The estimate as text, dates in ISO 8601; "unknown" without one.
        interval: Both ends as text, such as "3 to 5" or "3 to beyond 9", a learned bound; "not measured" without them.
        group: The group of the records as text, such as "ward = b"; empty for all records.
    """

    column: Attribute
    statistic: str
    estimate: float | None
    low: float | None
    high: float | None
    reliable: bool
    noise: float | None
    bins: float | None
    beyond_below: float | None
    beyond_above: float | None
    clipping: float | None
    synthetic: float | None
    text: str
    interval: str
    group: str = ""

    @property
    def words(self) -> str:
        """The estimate with its interval as text."""
        return f"{self.text} ({self.interval})"

    @property
    def statistic_words(self) -> str:
        """The name of the statistic in words, such as "median" for ``q50``."""
        names = {
            "q05": "5 % quantile",
            "q25": "lower quartile",
            "q50": "median",
            "q75": "upper quartile",
            "q95": "95 % quantile",
            "missing": "share of missing values",
        }
        return names.get(self.statistic, self.statistic)

    @property
    def is_of_category(self) -> bool:
        """True for the share of a category."""
        return self.statistic.startswith("share of ")

    @property
    def is_open(self) -> bool:
        """True if the interval has an open end: the quantile may lie beyond a learned bound."""
        return math.inf in (self.beyond_below, self.beyond_above)

    @property
    def may_hide_values(self) -> bool:
        """True if values beyond learned bounds count beside the noise."""
        least_part = 0.2  # of the noise; smaller parts are not worth a sentence
        room = max(self.beyond_below or 0.0, self.beyond_above or 0.0)
        return room > 0.0 and room >= least_part * (self.noise or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON: None for what is infinite, and ``group`` only if there is one."""
        found = {k: v for k, v in asdict(self).items() if k != "group" or v}
        return {k: None if v in (-math.inf, math.inf) else v for k, v in found.items()}


def number(
    column: Attribute,
    statistic: str,
    interval: Interval | None,
    *,
    show: Callable[[float, float], str],
    bins: float = 0.0,
    most_bins: float = 0.0,
    room: tuple[float, float] = (0.0, 0.0),
    limits: tuple[float, float] = (-math.inf, math.inf),
    clipping: float = 0.0,
    synthetic: float | None = None,
    tolerance: float = 0.0,
) -> ColumnNumber:
    """Return a number with its verdict.

    Args:
        column: Name of the column.
        statistic: Name of the statistic.
        interval: The interval by the noise alone; None if nothing was measured.
        show: Returns a value as text that an interval of a length contains.
        bins: Length that the positions within bins add to both ends.
        most_bins: Length that they would add if all values lay at the same end of their bins. The verdict counts it.
        room: Lengths that values beyond the learned bounds may add to the lower and the upper end.
        limits: The least and the greatest value possible.
        clipping: Share of the records that may be clipped, if the statistic depends on them.
        synthetic: The statistic of the model.
        tolerance: Largest half-width of a reliable interval.
    """
    if interval is None:
        nothing = (None, None, None, False, None, None, None, None, None, synthetic)
        return ColumnNumber(column, statistic, *nothing, "unknown", "not measured")
    estimate = None if interval.estimate is None else _within(interval.estimate, limits)
    lows = [_within(interval.low - by, limits) for by in (0.0, bins, bins + room[0])]
    highs = [_within(interval.high + by, limits) for by in (0.0, bins, bins + room[1])]
    (low, high), noise = (lows[2], highs[2]), (highs[0] - lows[0]) / 2
    parts = (noise, (highs[1] - lows[1]) / 2 - noise, lows[1] - low, high - highs[1])
    reliable = False
    if estimate is not None:
        agrees = synthetic is None or abs(synthetic - estimate) <= tolerance
        half_width = (high - low) / 2 + max(most_bins - bins, 0.0)
        reliable = half_width <= tolerance and agrees and clipping == 0
    shown = "unknown" if estimate is None else show(estimate, high - low)
    return ColumnNumber(
        column, statistic, estimate, low, high, reliable, *parts, clipping, synthetic,
        shown, f"{show(low, high - low)} to {show(high, high - low)}",
    )  # fmt: skip


def decimals_of(length: float) -> int:
    """Return the number of decimals with which the ends of an interval of a length are not rounded to each other.

    >>> decimals_of(0.008), decimals_of(25.0), decimals_of(math.inf)
    (3, -1, 0)
    """
    max_decimals = 12
    if not 0.0 < length < math.inf:
        return 0
    return min(-math.floor(math.log10(length / 2)), max_decimals)


def _within(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])
