"""One estimand: its estimate from all data sets together, and everything that follows from its t distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy import special

from margrave.parameters import check_level
from margrave.typing import Clique

MARK = "[!]"
FOOTNOTE = f"{MARK} may be off by far more than its interval says: the notes that begin with {MARK} tell why."
FAR = 3.0
"""Standard errors (without the bias itself) of bias beyond which taking it off is no remedy."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of a population quantity, taken to be t distributed around the truth.

    ``variance`` is the total variance T; ``df`` the degrees of freedom; ``within`` the mean v̄ of the variances that
    the data sets gave, ``between`` the variance b of their estimates; ``used`` the number of data sets they come from,
    of ``data_sets``; ``ratio`` the records of a data set over the real ones, None where the latter is unknown.
    ``floored``: T by the rule was less than the real records alone would have. ``bias``: what refits showed;
    the estimate is ``corrected`` by it, or not. ``unmeasured``: columns that it is about and that were never measured
    together, so that it rests on an assumption. ``binned``: columns of which it takes values that share a bin, of which
    the release knows nothing finer; ``ends``: what a mean would be with all values at the low, at the high ends of
    their bins.
    ``clipped``: columns of which it takes values that may have been moved to the schema's bounds. ``elsewhere``: its
    data sets were drawn elsewhere, and what of their spread is privacy's is not known. ``bounds``: between them all
    possible values lie, and intervals are cut off there. A quantity whose interval is refused has NaN for its estimate
    and variance.
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
    binned: tuple[str, ...] = ()
    ends: tuple[float, float] | None = None
    clipped: tuple[str, ...] = ()
    elsewhere: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def doubtful(self) -> bool:
        """Whether it may be off by far more than its interval says, as the notes tell."""
        return bool(self.unmeasured or self.clipped or self.biased)

    @property
    def biased(self) -> bool:
        """Whether the bias that refits showed is too large to be taken off, or to be left in."""
        own = self.variance - self.bias**2 if self.corrected else self.variance
        return self.known and self.bias**2 > FAR**2 * own

    @property
    def marked(self) -> str:
        """Its name, with a mark where it is doubtful."""
        return f"{self.name} {MARK}" if self.doubtful else self.name

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.estimate) and math.isfinite(self.variance) and self.variance > 0

    @property
    def standard_error(self) -> float:
        """``sqrt(T)``."""
        return math.sqrt(self.variance) if self.known else math.nan

    @property
    def privacy_share(self) -> float:
        """``1 − ratio v̄ / T``, in 0 … 1: the share of the variance that the real records alone would not have.

        ``ratio v̄`` is the variance of the same analysis of as many real records. The rest is the noise added for
        privacy, and the little that the number of data sets being finite adds. NaN where the ratio is unknown, and of
        tables drawn elsewhere.
        """
        if self.ratio is None or self.elsewhere or not self.known:
            return math.nan
        return min(max(1.0 - self.ratio * self.within / self.variance, 0.0), 1.0)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """``estimate ± t_df((1 + level) / 2) sqrt(T)``: it holds the population's value with probability ``level``.

        Cut off at the ``bounds``.
        """
        check_level(level)
        if not self.known:
            return math.nan, math.nan
        half = float(special.stdtrit(self.df, (1.0 + level) / 2.0)) * self.standard_error
        return max(self.estimate - half, self.bounds[0]), min(self.estimate + half, self.bounds[1])

    def p_value(self, null: float = 0.0) -> float:
        """The two-sided p-value of the hypothesis that the population's value is ``null``."""
        if not self.known:
            return math.nan
        t = abs(self.estimate - null) / self.standard_error
        return float(2.0 * special.stdtr(self.df, -t))

    def to_dict(self, level: float = 0.95, null: float = 0.0) -> dict[str, Any]:
        """Plain data; None where there is nothing."""
        low, high = self.interval(level)
        found = {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": low,
            "high": high,
            "df": self.df,
            "p_value": self.p_value(null),
            "privacy_share": self.privacy_share,
            "bias": self.bias,
        }
        numbers = {key: value if math.isfinite(value) else None for key, value in found.items()}
        unmeasured = [list(u) for u in self.unmeasured]
        places = {"used": self.used, "data_sets": self.data_sets}
        bins = {"binned": list(self.binned), "ends": None if self.ends is None else list(self.ends)}
        doubts = {"doubtful": self.doubtful, "unmeasured": unmeasured, "clipped": list(self.clipped)}
        return {"name": self.name, **numbers, **places, **doubts, **bins}
