"""Expected half-widths of the intervals of purposes, from public inputs alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from margrave.domain import Domain
from margrave.purposes import Purpose


@dataclass(frozen=True)
class PurposeWidth:
    """The expected half-width of a purpose's widest interval, at 95 %.

    Attributes:
        purpose: Its words.
        half_width: In ``of``; it includes the sampling of the rows.
        of: The unit in words, such as "standard deviations of price".
        wanted: The half-width that the purpose states, if it does.
        epsilon: The epsilon that would reach it; None if none would, or none is wanted.
    """

    purpose: str
    half_width: float
    of: str
    wanted: float | None = None
    epsilon: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return dict(vars(self))

    @property
    def words(self) -> str:
        """The half-width, and what would reach the one that is wanted, in a sentence."""
        said = f"about \N{PLUS-MINUS SIGN}{self.half_width:.2g} {self.of}"
        if self.wanted is None:
            return said
        if self.epsilon is None:
            return (
                f"{said}; {self.wanted:g} is below what this number of rows allows at any epsilon"
            )
        return f"{said}; epsilon {self.epsilon:.2g} would reach {self.wanted:g}"


@dataclass(frozen=True)
class _Variance:
    """The variance of an estimate: ``sampling / rows + noise · (scale / rows)²``, in units of the outcome's own."""

    sampling: float
    noise: float

    #: The 97.5 % quantile of the normal distribution.
    z: ClassVar[float] = 1.96

    def half_width(self, rows: int, scale: float) -> float:
        return self.z * math.sqrt(self.sampling / rows + self.noise * (scale / rows) ** 2)

    def scale_for(self, rows: int, half_width: float) -> float | None:
        """Return the noise scale that reaches a half-width; None if sampling alone is wider."""
        left = (half_width / self.z) ** 2 - self.sampling / rows
        return rows * math.sqrt(left / self.noise) if left > 0.0 else None


def widths_of(
    purposes: Sequence[Purpose],
    domain: Domain,
    *,
    rows: int,
    scale: float,
    rho: Fraction,
    epsilon_of: Callable[[float], float | None],
) -> tuple[PurposeWidth, ...]:
    """Return the expected half-widths of purposes.

    They are those of rows that are spread evenly over codes and groups, of columns without relation. Long tails are
    wider, and pairs that an adaptive mechanism measures late, or twice, are narrower.

    Args:
        purposes: The purposes.
        domain: The columns.
        rows: The number of rows.
        scale: The noise scale of a marginal that is chosen.
        rho: The whole budget (zCDP).
        epsilon_of: Returns the epsilon of a budget (zCDP), or None if no epsilon has that budget.

    Privacy:
        None spent: public inputs only.
    """
    found = []
    for purpose in purposes:
        variance, of = _variance(purpose, domain, max(rows, 1))
        epsilon = None
        if purpose.width is not None:
            wanted = variance.scale_for(max(rows, 1), purpose.width)
            epsilon = None if wanted is None else epsilon_of(float(rho) * (scale / wanted) ** 2)
        width = variance.half_width(max(rows, 1), scale)
        found.append(PurposeWidth(purpose.text, width, of, purpose.width, epsilon))
    return tuple(found)


def _variance(purpose: Purpose, domain: Domain, rows: int) -> tuple[_Variance, str]:
    largest = max(purpose.cliques, key=domain.cells)
    if purpose.kind == "count":
        return _Variance(0.0, float(rows) ** 2), "rows"
    outcome = purpose.outcome
    codes = domain.size(outcome)
    groups = domain.cells([a for a in largest if a != outcome])
    if purpose.kind == "share":
        return _Variance(0.25 * groups, float(groups**2)), "as a share of a group's rows"
    if purpose.kind in ("mean", "total", "quantile"):
        per = " a row" if purpose.kind == "total" else ""
        return _Variance(groups, codes * groups**2), f"standard deviations of {outcome}{per}"
    if purpose.kind == "effect":
        return _Variance(4.0, 4.0 * codes * groups), f"standard deviations of {outcome}"
    slopes = [_slope(domain, outcome, c) for c in purpose.cliques if outcome in c]
    widest = max(slopes, key=lambda v: v.noise)
    if purpose.kind == "logistic":
        return _Variance(4.0 * widest.sampling, 4.0 * widest.noise), "of a log-odds coefficient"
    return widest, f"standard deviations of {outcome}"


def _slope(domain: Domain, outcome: str, clique: Sequence[str]) -> _Variance:
    """Return the variance of a coefficient: of a standard deviation of a number, or between two groups."""
    others = [a for a in clique if a != outcome]
    codes = domain.size(outcome)
    groups = domain.cells([a for a in others if a in domain.unordered])
    cells = domain.cells([a for a in others if a not in domain.unordered])
    if groups == 1:
        return _Variance(1.0, float(codes * cells))
    return _Variance(2.0 * groups, 2.0 * codes * cells * groups**2)
