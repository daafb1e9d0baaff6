"""One population quantity: its estimate from all data sets together, and what limits it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import special

from margrave._fields import check_level, is_number
from margrave.errors import InputError
from margrave.inference.columns import date_text
from margrave.ratios import figure, percent
from margrave.types import Clique

Bounds = tuple[float | None, float | None]

#: Stands beside an estimate that may be far off, and before the notes that say why.
MARK = "[!]"
FOOTNOTE = (
    f"{MARK} may be off by far more than its interval says, or is not reliable: see the notes that begin with"
    f" {MARK}."
)
#: Standard errors (without the bias itself) beyond which a bias cannot be corrected.
MAX_BIAS = 3.0


@dataclass(frozen=True)
class Caveat:
    """A fact that a reader must know before using some estimates.

    Attributes:
        kind: The check that found it, such as ``"unmeasured"`` or ``"clipped"``.
        names: The estimates it is about; empty if it is about the analysis as a whole.
        decisive: The estimates may be off by far more than their intervals say, or are not reliable.
        text: One or more sentences.
        general: A sentence that holds for other analyses of the release too; "" for none.
    """

    kind: str
    names: tuple[str, ...]
    decisive: bool
    text: str
    general: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (MARK if self.decisive else "", self.text, self.general)))


@dataclass(frozen=True)
class WholeBins:
    """The bins of the column of a quantile, of which the interval contains whole ones.

    A release knows how many records lie beyond each end of a bin, and not where they lie within it. A quantile
    of the drawn values is in the same bin as that of the real ones.

    Attributes:
        column: The column.
        low: The low ends of its bins, in the unit of the estimate.
        high: The high ends.
        is_open: Whether the quantile may lie beyond the first and the last bin: an interval that reaches it is open.
    """

    column: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    is_open: tuple[bool, bool] = (False, False)

    @property
    def are_wide(self) -> bool:
        """True if a bin has more than one value."""
        return self.low != self.high

    def around(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval with the whole of the bins that its ends lie in."""
        below, above = (e for e in self.low if e <= low), (e for e in self.high if e >= high)
        ends, (least, most) = (max(below, default=low), min(above, default=high)), self.extremes
        opened = (self.is_open[0] and ends[0] <= least), (self.is_open[1] and ends[1] >= most)
        return -math.inf if opened[0] else ends[0], math.inf if opened[1] else ends[1]

    @property
    def extremes(self) -> tuple[float, float]:
        """The low end of the first bin and the high end of the last."""
        return min(self.low), max(self.high)

    def times(self, weight: float) -> WholeBins:
        """Return the bins of a multiple of the column."""
        low, high = (tuple(weight * e for e in ends) for ends in (self.low, self.high))
        if weight > 0:
            return WholeBins(self.column, low, high, self.is_open)
        return WholeBins(self.column, high, low, self.is_open[::-1])


@dataclass(frozen=True, repr=False)
class Estimate:
    """An estimate of a population quantity, t distributed around the truth.

    Attributes:
        estimate: The estimate; NaN if it is withheld.
        variance: Its total variance T; NaN if unknown.
        df: Degrees of freedom, at least 1.
        within: Mean v̄ of the variances from the data sets.
        between: Variance b of the estimates from the data sets.
        used: Data sets that it comes from, of ``data_sets``.
        ratio: Records of a data set over real ones; None if unknown.
        floored: The rule gave a T below that of the real records alone.
        bias: The bias that refits show; ``corrected`` says that it was taken off.
        unmeasured: Columns it is about that were never measured together: it assumes a relation.
        below_noise: Columns it is about whose cells, or those of a level, are small beside the noise in all marginals.
        mostly_noise: Columns whose spread the noise hides, so that it is noise for the most part.
        unreliable: Its column, if the release states the same number and calls it not reliable.
        coarse: Columns whose bins are too wide for its interval.
        binned: Columns whose values it uses more finely than their bins.
        ends: Its value with the column's values all at the low, all at the high ends of their bins.
        clipped: Columns whose values it uses may have been clipped to the schema's bounds.
        external: Its data sets were drawn elsewhere, so privacy's share of T is unknown.
        bounds: Least and greatest possible value, at which intervals end.
        bins: Bins that intervals contain as a whole; None if they need not.
        tests_zero: The value 0 is a hypothesis, and printed tables have its p-value.
        days: It is a date, in days since 1970, and printed tables have the date.
    """

    name: str
    estimate: float
    variance: float
    df: float
    within: float
    between: float
    used: int
    data_sets: int
    ratio: float | None = None
    floored: bool = False
    bias: float = 0.0
    corrected: bool = True
    unmeasured: tuple[Clique, ...] = ()
    below_noise: tuple[Clique, ...] = ()
    mostly_noise: tuple[str, ...] = ()
    unreliable: tuple[str, ...] = ()
    coarse: tuple[str, ...] = ()
    binned: tuple[str, ...] = ()
    ends: tuple[float, float] | None = None
    clipped: tuple[str, ...] = ()
    external: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    bins: WholeBins | None = None
    tests_zero: bool = True
    days: bool = False

    #: The headings of a printed estimate.
    headings: ClassVar[tuple[str, ...]] = (
        "estimate", "std error", "low", "high", "p-value", "privacy", "data sets",
    )  # fmt: skip

    def cells(self, level: float) -> tuple[str, ...]:
        """Return its numbers as texts, in the order of ``headings``; a dash for an unknown one."""
        share = percent(self.fmi_privacy, ".0f")
        least = 1e-4  # smaller p-values are beyond what the intervals are accurate for
        p = self.pvalue()
        test = "<0.0001" if p < least else figure(p, 2)
        numbers = (
            self._shown(self.estimate),
            f"{figure(self.bse)}{' days' if self.days and self.has_interval else ''}",
            *self.ends_as_texts(level, self._shown), test if self.tests_zero else "", share,
        )  # fmt: skip
        used = f"{self.used} of {self.data_sets}"
        return (*("-" if text in ("nan", "unknown") else text for text in numbers), used)

    def _shown(self, value: float) -> str:
        return date_text(value) if self.days and math.isfinite(value) else figure(value)

    def __repr__(self) -> str:
        """Return its name, its value, its interval at 95 %, and the p-value of 0 if that is a hypothesis."""
        estimate, _, low, high, p, *_ = self.cells(0.95)
        test = f", p = {p}" if self.tests_zero else ""
        return f"Estimate({self.label}: {estimate}, 95 % interval {low} to {high}{test})"

    @property
    def flagged(self) -> bool:
        """True if the truth may be far outside the interval, or the estimate is not reliable: the notes say why."""
        by_noise = (self.unmeasured, self.below_noise, self.mostly_noise, self.unreliable)
        return self.biased or any(map(bool, (*by_noise, self.coarse, self.clipped)))

    @property
    def biased(self) -> bool:
        """True if the bias that refits show is too large to be corrected, or to be left in."""
        own = self.variance - self.bias**2 if self.corrected else self.variance
        return self.has_interval and self.bias**2 > MAX_BIAS**2 * own

    @property
    def label(self) -> str:
        """Its name, with a mark if it is flagged."""
        return f"{self.name} {MARK}" if self.flagged else self.name

    @property
    def has_interval(self) -> bool:
        """True if estimate and variance are finite and the variance is positive."""
        return math.isfinite(self.estimate) and math.isfinite(self.variance) and self.variance > 0

    @property
    def is_in_one_bin(self) -> bool:
        """True if all data sets gave one value without a variance, whose bin is the interval."""
        return self.variance == 0 and math.isfinite(self.estimate) and self.bins is not None

    @property
    def bse(self) -> float:
        """The standard error ``sqrt(T)``; NaN without an interval."""
        return math.sqrt(self.variance) if self.has_interval else math.nan

    @property
    def fmi_privacy(self) -> float:
        """The fraction of information missing because of privacy, ``1 − ratio v̄ / T`` in 0 … 1.

        ``ratio v̄`` is the variance of the same analysis of the real records. The rest is the noise
        added for privacy, and a little for the finite number of data sets. NaN if the ratio is
        unknown, the tables were drawn elsewhere, or the estimate assumes a relation that no marginal measured.
        """
        if self.ratio is None or self.external or self.unmeasured or not self.has_interval:
            return math.nan
        return min(max(1.0 - self.ratio * self.within / self.variance, 0.0), 1.0)

    def half_width(self, level: float = 0.95) -> float:
        """Return ``t_df((1 + level) / 2) sqrt(T)``, half the width of an interval without bounds and bins."""
        check_level(level)
        return float(special.stdtrit(self.df, (1.0 + level) / 2.0)) * self.bse

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """Return ``estimate ± half_width(level)``, moved out to the ends of ``bins``, cut off at the ``bounds``."""
        half = 0.0 if self.is_in_one_bin else self.half_width(level)
        if not (self.has_interval or self.is_in_one_bin):
            return math.nan, math.nan
        low, high = self.estimate - half, self.estimate + half
        if self.bins is not None:
            low, high = self.bins.around(low, high)
        return max(low, self.bounds[0]), min(high, self.bounds[1])

    def ends_as_texts(self, level: float, show: Callable[[float], str] = figure) -> tuple[str, str]:
        """Return both ends of ``conf_int`` as texts, an open one as "beyond" the last bin."""
        low, high = self.conf_int(level)
        if self.bins is None:
            return show(low), show(high)
        least, most = self.bins.extremes
        return (
            f"beyond {show(least)}" if low == -math.inf else show(low),
            f"beyond {show(most)}" if high == math.inf else show(high),
        )

    def distance(self, value: float) -> float:
        """Return how far the estimate is from a value; from the bin of the value, if it has ``bins``."""
        low, high = (value, value) if self.bins is None else self.bins.around(value, value)
        return max(low - self.estimate, self.estimate - high, 0.0)

    def pvalue(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of the hypothesis that the population's value is ``null``."""
        if not self.has_interval:
            return math.nan
        return float(2.0 * special.stdtr(self.df, -self.distance(null) / self.bse))

    def to_dict(self, level: float = 0.95, null: float = 0.0) -> dict[str, Any]:
        """Return plain data, None for what is unknown and for an open end of an interval."""
        low, high = self.conf_int(level)
        numbers = {
            "estimate": self.estimate, "bse": self.bse, "low": low, "high": high, "df": self.df,
            "pvalue": self.pvalue(null), "fmi_privacy": self.fmi_privacy, "bias": self.bias,
        }  # fmt: skip
        return {
            "name": self.name,
            **{key: value if math.isfinite(value) else None for key, value in numbers.items()},
            "used": self.used, "data_sets": self.data_sets, "flagged": self.flagged,
            "unmeasured": [list(u) for u in self.unmeasured],
            "below_noise": [list(c) for c in self.below_noise], "clipped": list(self.clipped),
            "mostly_noise": list(self.mostly_noise), "unreliable": list(self.unreliable),
            "coarse": list(self.coarse), "binned": list(self.binned),
            "ends": None if self.ends is None else list(self.ends),
        }  # fmt: skip


def check_bounds(bounds: Any) -> None:
    """Raise `InputError` unless bounds are a pair (least, greatest), or such pairs by name."""
    for pair in bounds.values() if isinstance(bounds, Mapping) else [bounds]:
        if pair is not None and not _is_pair(pair):
            raise InputError(
                f"bounds are {bounds!r}.",
                remedy="Give the least and the greatest possible value, (0, 1), None for no bound; or such by name.",
            )


def within_bounds(estimates: Sequence[Estimate], bounds: Any) -> tuple[Estimate, ...]:
    """Return estimates moved into their bounds, with intervals around that which end there.

    The interval around a moved estimate includes every possible value that the one before did.

    Raises:
        InputError: ``bounds`` names something that is not an estimate.
    """
    names = [e.name for e in estimates]
    for unknown in (n for n in bounds if n not in names) if isinstance(bounds, Mapping) else ():
        raise InputError(
            f"bounds names {unknown!r}, which is not an estimate.",
            remedy=f"They are: {', '.join(names)}.",
        )
    found = []
    for e in estimates:
        pair = _ends(bounds.get(e.name) if isinstance(bounds, Mapping) else bounds)
        found.append(replace(e, estimate=float(np.clip(e.estimate, *pair)), bounds=pair))
    return tuple(found)


def _ends(pair: Bounds | None) -> tuple[float, float]:
    low, high = (None, None) if pair is None else pair
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _is_pair(pair: Any) -> bool:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return False
    if not all(p is None or is_number(p) for p in pair):
        return False
    low, high = _ends((pair[0], pair[1]))
    return low < high
