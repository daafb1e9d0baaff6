"""Expected half-widths of the intervals of purposes, from public inputs alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from margrave.domain import Domain
from margrave.purposes import Purpose
from margrave.ratios import figure, percent
from margrave.schema import Column
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Numeric
from margrave.types import Attribute, Clique


@dataclass(frozen=True)
class PurposeWidth:
    """The expected half-width of a purpose's widest interval, at 95 %.

    Attributes:
        purpose: Its words.
        half_width: In ``of``; it includes the sampling of the rows.
        of: The unit in words, such as "in the unit of price", or "standard deviations of price" where its bounds are
            not public.
        groups: The number of groups of equal size that are compared; 1 without groups.
        wanted: The half-width that the purpose states in the same unit, if it does.
        epsilon: The epsilon that would reach it; None if none would, or none is wanted.
        by_share: The half-widths of groups of other sizes, by their share of the rows; empty without groups.
        rests_on: What it assumes of the outcome's values, in words; empty if it does not depend on them.
    """

    purpose: str
    half_width: float
    of: str
    groups: int = 1
    wanted: float | None = None
    epsilon: float | None = None
    by_share: Mapping[float, float] = field(default_factory=dict)
    rests_on: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        of_groups = [{"share": s, "half_width": w} for s, w in self.by_share.items()]
        return {**vars(self), "by_share": of_groups}

    @property
    def words(self) -> str:
        """The half-width, and what would reach the one that is wanted, in a sentence."""
        said = f"about \N{PLUS-MINUS SIGN}{figure(self.half_width, 2)} {self.of}"
        if self.groups > 1:
            other = (
                f"\N{PLUS-MINUS SIGN}{figure(w, 2)} of {percent(s, '.0f')}"
                for s, w in self.by_share.items()
            )
            said += f", for groups of 1/{self.groups:,} of the rows ({', '.join(other)})"
        if self.rests_on:
            said += f", {self.rests_on}"
        if self.wanted is None:
            return said
        if self.epsilon is None:
            return (
                f"{said}; {self.wanted:g} is below what this number of rows allows at any epsilon"
            )
        return f"{said}; epsilon {figure(self.epsilon, 2)} would reach {self.wanted:g}"


@dataclass(frozen=True)
class _Variance:
    """The variance of an estimate: ``sampling / rows + noise / rows²``, in units of the outcome's own."""

    sampling: float
    noise: float
    groups: int = 1

    #: The 97.5 % quantile of the normal distribution.
    z: ClassVar[float] = 1.96

    def half_width(self, rows: int) -> float:
        return self.z * math.sqrt(self.sampling / rows + self.noise / rows**2)

    def times(self, factor: float) -> _Variance:
        """Return the variance of the estimate times a factor."""
        return replace(self, sampling=self.sampling * factor**2, noise=self.noise * factor**2)

    def of_group(self, share: float) -> _Variance:
        """Return the variance for groups with a share of the rows."""
        larger = 1.0 / (share * self.groups)
        return _Variance(self.sampling * larger, self.noise * larger**2)

    def budget_factor(self, rows: int, half_width: float) -> float | None:
        """Return the multiple of the budget that reaches a half-width; None if sampling alone is wider."""
        left = (half_width / self.z) ** 2 - self.sampling / rows
        return self.noise / rows**2 / left if left > 0.0 else None


def widths_of(
    purposes: Sequence[Purpose],
    domain: Domain,
    *,
    rows: int,
    learned: Collection[Attribute],
    columns: Iterable[Column] = (),
    scale_of: Callable[[Clique], float],
    sum_scale_of: Callable[[Clique], float] = lambda _: math.inf,
    rho: Fraction,
    epsilon_of: Callable[[float], float | None],
) -> tuple[PurposeWidth, ...]:
    """Return the expected half-widths of purposes.

    They are those of rows that are spread evenly over codes and groups, of columns without relation, and of
    normal values in learned bins. In the unit of a column with public bounds they hardly depend on how its values are
    spread, since noise is in all of its codes. They leave out what the width of bins and values beyond learned
    bounds add to an interval. The number of groups of a column to learn is not known, so
    the half-widths of groups with 50 %, 10 % and 2 % of the rows are stated too.

    Args:
        purposes: The purposes.
        domain: The columns.
        rows: The number of rows.
        learned: The columns of numbers whose bins are learned.
        columns: The columns of the schema. Means, totals, quantiles and effects of those with public bounds are stated
            in their own unit.
        scale_of: Returns the noise scale of a marginal by all its measurements.
        sum_scale_of: Returns the noise scale of a marginal's sums, in the largest weight of a row; infinity if none
            are measured.
        rho: The whole budget (zCDP).
        epsilon_of: Returns the epsilon of a budget (zCDP), or None if no epsilon has that budget.

    Privacy:
        None spent: public inputs only.
    """
    found = []
    known = {c.name: c for c in columns if isinstance(c, NUMERIC_KINDS)}
    for purpose in purposes:
        noise = _SumNoise(domain, learned, scale_of, sum_scale_of)
        variance, of = _variance(purpose, noise, max(rows, 1))
        column = known.get(purpose.outcome)
        if column is not None and purpose.kind in Purpose.in_a_unit:
            variance = variance.times(_even_deviation(column))
            of = _unit_words(column, purpose.kind)
        rests_on = _rests_on(purpose, column, learned)
        epsilon = None
        if purpose.width is not None:
            factor = variance.budget_factor(max(rows, 1), purpose.width)
            epsilon = None if factor is None else epsilon_of(float(rho) * factor)
        width, groups = variance.half_width(max(rows, 1)), variance.groups
        shares = (0.5, 0.1, 0.02) if groups > 1 else ()
        by_share = {s: variance.of_group(s).half_width(max(rows, 1)) for s in shares}
        found.append(
            PurposeWidth(
                purpose.text, width, of, groups, purpose.width, epsilon, by_share, rests_on
            )
        )
    return tuple(found)


def _even_deviation(column: Numeric) -> float:
    """Return the standard deviation of a column whose codes are equally frequent."""
    return float(column.cells.means.std()) or 1.0


def _unit_words(column: Numeric, kind: str) -> str:
    unit = getattr(column, "unit", "day" if column.kind == "date" else "")
    words = f"{unit}s of {column.name}" if unit else f"in the unit of {column.name}"
    return f"{words}, a row" if kind == "total" else words


def _rests_on(purpose: Purpose, column: Numeric | None, learned: Collection[Attribute]) -> str:
    """Return what a half-width assumes of the outcome's values, in words."""
    if purpose.kind == "correlation":
        names = ", ".join(c for c in purpose.columns if c in learned)
        tail = f" ({names} {'are' if ', ' in names else 'is'} learned; a long tail makes it wider)"
        return (
            f"if values are normal{tail}"
            if names
            else "if values are spread evenly between their bounds; more if they lie closer together"
        )
    if purpose.kind not in (*Purpose.in_a_unit, "ols"):
        return ""
    if purpose.outcome in learned:
        return (
            f"if values are normal ({purpose.outcome} is learned, so its unit is not known here; a long tail makes it"
            " wider)"
        )
    if column is None:
        return "if its codes are equally frequent"
    even = f"if values are spread evenly from {column.low} to {column.high}"
    if purpose.kind in Purpose.in_a_unit:
        return f"{even}, up to twice that if the mean is near an end"
    deviation = f"{figure(_even_deviation(column), 2)} {_unit_words(column, purpose.kind)}"
    return f"{even}, where one is {deviation}; more of them if values lie closer together"


@dataclass(frozen=True)
class _SumNoise:
    """The variances of sums over a marginal's cells, in variances of the columns that weigh them."""

    domain: Domain
    learned: Collection[Attribute]
    scale_of: Callable[[Clique], float]
    sum_scale_of: Callable[[Clique], float]

    def of_cells(self, clique: Clique, numbers: Iterable[Attribute]) -> float:
        """Return the variance of a sum of noisy cells."""
        return self.scale_of(clique) ** 2 * math.prod(map(self._squares, numbers))

    def of_sum(self, clique: Clique, numbers: Iterable[Attribute]) -> float:
        """Return the variance of a sum by the cells and by the sum that was measured together."""
        cells = self.of_cells(clique, numbers)
        asked = self.sum_scale_of(clique) ** 2 * math.prod(map(self._largest_square, numbers))
        return 1.0 / (1.0 / cells + 1.0 / asked)

    def _squares(self, column: Attribute) -> float:
        """Return the sum over codes of their squared distance from the mean, in variances of the column."""
        # Learned bins have 0.6 of equal shares of the rows and 0.4 of equal shares of |z| times the root of them
        # (``learning.bins``). For normal z the mean of z² is 1 over the first and 4 over the second.
        mean_square_of_learned = 0.6 * 1.0 + 0.4 * 4.0
        return self.domain.size(column) * (
            mean_square_of_learned if column in self.learned else 1.0
        )

    def _largest_square(self, column: Attribute) -> float:
        """Return the square of a sum's largest weight, in variances of the column."""
        of_even_codes = 3.0
        return Purpose.max_deviations**2 if column in self.learned else of_even_codes


def _variance(purpose: Purpose, noise: _SumNoise, rows: int) -> tuple[_Variance, str]:
    domain = noise.domain
    largest = max(purpose.cliques, key=domain.cells)
    if purpose.kind == "count":
        share = 1.0 / domain.cells(largest)
        of_one_row = _Variance(share * (1.0 - share), noise.of_cells(largest, ()))
        return of_one_row.times(float(rows)), "rows"
    outcome = purpose.outcome
    of = f"standard deviations of {outcome}"
    groups = domain.cells([a for a in largest if a != outcome])
    if purpose.kind == "share":
        variance = noise.of_cells(largest, ()) * groups**2
        return _Variance(0.25 * groups, variance, groups), "as a share of a group's rows"
    if purpose.kind in ("mean", "total", "quantile"):
        per = " a row" if purpose.kind == "total" else ""
        of_sum = noise.of_cells if purpose.kind == "quantile" else noise.of_sum
        return _Variance(groups, of_sum(largest, (outcome,)) * groups**2, groups), f"{of}{per}"
    if purpose.kind == "effect":
        return _Variance(4.0, noise.of_cells(largest, (outcome,)) * 4.0 * groups), of
    cliques = [c for c in purpose.cliques if outcome in c]
    slopes = [_slope(purpose, c, noise) for c in cliques]
    if purpose.kind == "logistic":
        slopes = [_log_odds(s, c, outcome, noise) for s, c in zip(slopes, cliques, strict=True)]
        of = "of a log-odds coefficient, per standard deviation of a column of numbers"
    if purpose.kind == "correlation":
        of = "as a correlation coefficient"
    widest = max(slopes, key=lambda v: v.half_width(rows))
    return widest, of


def _slope(purpose: Purpose, clique: Clique, noise: _SumNoise) -> _Variance:
    """Return the variance of a coefficient: of a standard deviation of a number, or between two groups."""
    others = [a for a in clique if a != purpose.outcome]
    unordered = noise.domain.unordered
    groups = noise.domain.cells([a for a in others if a in unordered])
    numbers = [purpose.outcome, *(a for a in others if a not in unordered)]
    of_sum = noise.of_cells if purpose.kind == "logistic" else noise.of_sum
    variance = of_sum(clique, numbers)
    if groups == 1:
        return _Variance(1.0, variance)
    return _Variance(2.0 * groups, variance * 2.0 * groups**2, groups)


def _log_odds(slope: _Variance, clique: Clique, outcome: Attribute, noise: _SumNoise) -> _Variance:
    """Return the variance of a log-odds coefficient, from that of the slope of an outcome with variance 1.

    A quarter of the rows have the outcome. Numbers with declared bounds are normal, with the codes as 3 standard
    deviations around their mean: no sums of their own make up for the noise of cells in the tails.
    """
    share, square_of_codes = 0.25, 3.0
    variance = share * (1 - share)
    of_outcome = (share**2 + (1 - share) ** 2) / variance / 2
    numbers = [
        a
        for a in clique
        if a != outcome and a not in noise.domain.unordered and a not in noise.learned
    ]
    factor = square_of_codes ** len(numbers) * of_outcome
    return replace(slope, sampling=slope.sampling / variance, noise=slope.noise * factor / variance)
