"""Columns whose main number is likely to be reliable: foreseen from the schema, the row count and the planned noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from margrave._card import counted
from margrave.accounting import Unit
from margrave.accounting.thresholds import threshold_for
from margrave.domain import Domain
from margrave.learning.shares import LearningShares, column_share
from margrave.marginal.cliques import closure
from margrave.mechanisms.common import PlannedMeasurement
from margrave.models import NoModel
from margrave.privacy import Gaussian
from margrave.ratios import figure
from margrave.release.numbers import headlines, numbers_of
from margrave.schema import Categorical, Learn, Real, Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.transcript import Measurement, Transcript
from margrave.types import Attribute, Clique, FloatArray
from margrave.wide_bins import WideBins


@dataclass(frozen=True)
class VerdictForecast:
    """The columns that a release is likely to call reliable, by the rule of ``Release.numbers``.

    The rule is applied to counts without noise and to the planned noise. Rounds that select marginals are taken to
    spend their budget equally on all candidates. Categories are taken to be equally frequent.
    Numbers with public bounds are taken to be normal, with a ninth of the range as standard deviation.

    Args:
        columns: The columns with a planned measurement.
        likely: Those whose main number is likely to be reliable.
        rows: The number of rows, which is public or a guess.
        epsilon: The epsilon of the plan.
        rows_for_most: The number of rows from which on more than half of the columns are; None if no number is.
        epsilon_for_most: The same of epsilon.
        never: The number columns with bins whose mean is reliable at no number of rows and no epsilon.

    Privacy:
        A function of public inputs.
    """

    columns: tuple[Attribute, ...]
    likely: tuple[Attribute, ...]
    rows: int
    epsilon: float
    rows_for_most: int | None
    epsilon_for_most: float | None
    never: tuple[Attribute, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {
            **vars(self),
            "columns": list(self.columns),
            "likely": list(self.likely),
            "never": list(self.never),
        }

    @property
    def share(self) -> str:
        """The number of columns that are likely to be reliable, of all: "2 of 7"."""
        return f"{len(self.likely):,} of {len(self.columns):,}"

    @property
    def words(self) -> str:
        """The forecast in two sentences at most.

        >>> VerdictForecast(("age", "sex"), (), 3000, 1.4, 20_400, None).words.partition(": ")[2]
        'none of 2 columns is likely to be reliable. From about 20,000 rows on most are.'
        """
        at = f"At epsilon {self.epsilon:g} and about {counted(self.rows, 'row')}"
        many = len(self.likely)
        of = counted(len(self.columns), "column")
        if many == len(self.columns):
            return f"{at}: the main numbers of all {of} are likely to be reliable."
        if not many:
            found = f"{at}: none of {of} is likely to be reliable."
        else:
            names = f" ({', '.join(self.likely)})" if many <= 6 else ""
            found = f"{at}: {many:,} of {of} {'is' if many == 1 else 'are'} likely to be reliable{names}."
        if 2 * many > len(self.columns):
            return found
        ways = []
        # above 10 little is promised
        if self.epsilon_for_most is not None and self.epsilon_for_most <= 10.0:
            ways.append(f"epsilon {figure(self.epsilon_for_most, 2)}")
        if self.rows_for_most is not None:
            ways.append(f"{figure(float(self.rows_for_most), 2)} rows")
        if not ways:
            return " ".join([found, *self._never_words])
        return f"{found} From about {' or '.join(ways)} on most are."

    @property
    def _never_words(self) -> list[str]:
        max_columns = 6
        if not self.never:
            return []
        more = len(self.never) - max_columns
        named = [*self.never[:max_columns], *[f"{more:,} more"] * (more > 0)]
        means = "its mean" if len(self.never) == 1 else "their means"
        return [
            f"{', '.join(named)}: no budget makes {means} reliable with these bins; finer bins help, or learn = true."
        ]


def forecast_verdicts(
    schema: Schema,
    likely: Domain,
    typical: Domain,
    steps: Sequence[PlannedMeasurement],
    *,
    rows: int,
    epsilon: float,
    rho: Fraction,
    threshold_delta: float,
    unit: Unit,
    epsilon_of: Callable[[float], float | None],
) -> VerdictForecast | None:
    """Return the forecast of a run; None if it plans no measurements.

    Args:
        schema: The schema.
        likely: Its columns, with as many categories as columns to learn are likely to have at most.
        typical: The same, with as many bins as numbers to learn are likely to have.
        steps: The planned measurements, without those that only count all records.
        rows: The number of rows, which is public or a guess.
        epsilon: The epsilon of the plan.
        rho: The whole budget (zCDP).
        threshold_delta: The part of delta for thresholds of categories to learn; 0 without any.
        unit: The unit of privacy.
        epsilon_of: Returns the epsilon of a budget (zCDP), or None if no epsilon has that budget.

    Privacy:
        None spent: public inputs only.
    """
    room: dict[Attribute, float] = {}
    share = column_share(rho * LearningShares.learning, max(len(schema.to_learn), 1))
    numbers = sum(c.is_number for c in schema.to_learn)
    threshold = 0
    if threshold_delta and numbers < len(schema.to_learn):
        part = Fraction(threshold_delta) / (len(schema.to_learn) - numbers)
        threshold = threshold_for(unit, Gaussian.scale_for(share, unit), part)
    pot = rho * LearningShares.learning * LearningShares.sums
    reaching = rows / threshold if threshold else math.inf
    sizes = {c.name: c.size for c in schema.columns if not isinstance(c, Learn)}
    sizes |= {
        c.name: typical.size(c.name)
        if c.is_number
        else _likely_categories(reaching, likely.size(c.name))
        for c in schema.to_learn
    }
    scales = _column_scales(Domain.of(sizes), steps)
    for column in schema.columns:
        if column.name not in scales:
            continue
        scale = scales[column.name]
        if not isinstance(column, Learn):
            bearable = _most_noise(schema, column.name)
        elif column.is_number:
            of_sum = Gaussian.scale_for(pot * min(Fraction(1, 3), Fraction(1, numbers)), unit)
            of_octave = Gaussian.scale_for(share * LearningShares.extent, unit)
            is_open = column.low is None or column.high is None
            bearable = _most_noise_of_learned_number(
                round(of_sum / scale, 3), round(of_octave / scale, 3) if is_open else 0.0
            )
        else:
            bearable = _most_noise_of_learned_categories(
                likely.size(column.name), round(threshold / scale, 1)
            )
        room[column.name] = bearable / scale
    if not room:
        return None
    # A column is reliable from 1 / room rows on. Noise falls with the root of the budget.
    of_median = sorted(room.values(), reverse=True)[len(room) // 2]
    factor = (1.0 / (of_median * max(rows, 1))) ** 2 if of_median else math.inf
    return VerdictForecast(
        tuple(room),
        tuple(a for a, r in room.items() if r * rows >= 1.0),
        rows,
        epsilon,
        math.ceil(1.0 / of_median) if of_median else None,
        epsilon_of(float(rho) * factor) if math.isfinite(factor) else None,
        tuple(
            c.name for c in schema.columns if isinstance(c, NUMERIC_KINDS) and room.get(c.name) == 0
        ),
    )


def _column_scales(
    domain: Domain, steps: Sequence[PlannedMeasurement]
) -> Mapping[Attribute, float]:
    """Return the noise scale of each column's codes by all measurements together; only columns that have any.

    Summed down to the column, a marginal has its noise times the root of the number of its other cells. The rounds of
    a step have the same precision in total, however many they become. Each candidate is equally likely to get it.
    """
    precision: dict[Attribute, float] = {}
    for step in steps:
        if step.sums or step.single or not step.cliques:
            continue
        cliques = _candidates(step)
        each = step.marginals / len(cliques) * (step.weight / step.scale) ** 2
        for clique, cells in zip(cliques, domain.cells_each(cliques), strict=True):
            for column in clique:
                others = float(cells) / domain.size(column)
                precision[column] = precision.get(column, 0.0) + each / others
    return {a: 1.0 / math.sqrt(precision[a]) for a in domain if a in precision}


def _candidates(step: PlannedMeasurement) -> Sequence[Clique]:
    """Return the marginals that a step is likely to measure.

    Rounds whose budget grows select among the marginals of a workload and all their subsets.
    """
    return closure(step.cliques) if step.adaptive and step.at_most else step.cliques


@lru_cache(maxsize=1024)
def _most_noise(schema: Schema, name: Attribute) -> float:
    """Return the most noise of a code, per row, with which the main number of a column is reliable."""
    column = schema.column(name)
    shares = np.zeros(column.size)
    codes = column.size - column.missing
    shares[:codes] = 1.0 / codes
    if isinstance(column, NUMERIC_KINDS):
        shares[: column.cells.count] = _normal_shares(*column.cells.extremes)
    return _largest(lambda noise: _is_reliable(schema, name, shares, noise))


@lru_cache(maxsize=64)
def _most_noise_of_learned_categories(likely: int, threshold: float) -> float:
    """Return the same of categories to learn, which are equally frequent.

    Args:
        likely: The greatest number of categories.
        threshold: The rows from which on a category is learned, in noise scales of a code.
    """

    def is_reliable(noise: float) -> bool:
        reaching = 1.0 / (threshold * noise) if threshold else math.inf
        many = _likely_categories(reaching, likely)
        column = Categorical("learned", [str(i) for i in range(many)])
        return _is_reliable(Schema([column]), "learned", np.full(many, 1.0 / many), noise)

    return _largest(is_reliable)


def _likely_categories(reaching: float, likely: int) -> int:
    """Return the number of categories to learn: in ratio midway between two and as many as reach the threshold."""
    fewest = 2
    return round(math.sqrt(fewest * min(max(reaching, fewest), max(likely, fewest))))


@lru_cache(maxsize=64)
def _most_noise_of_learned_number(of_sum: float, of_octave: float) -> float:
    """Return the same of a number to learn.

    Its values are mostly normal around 2, with a standard deviation of 1, and a few lie as far out as 8. Values beyond
    an open end may lie three times as far out again, in the mean.

    Args:
        of_sum: The noise scale of its clipped sum, in noise scales of a code.
        of_octave: The noise scale of a half-octave beyond an end; 0 if both bounds are public.
    """
    mean, end, excess, scales_of_a_bin = 2.0, 8.0, 3.0, 4.0

    def is_reliable(noise: float) -> bool:
        bins = int(np.clip(1.0 / (scales_of_a_bin * noise), 4, Learn.max_bins))
        half = NormalDist().inv_cdf(0.975) * noise * of_sum * (end - mean)
        beyond = (
            2.0 * math.sqrt(2.0) * noise * of_octave * excess * end
        )  # as ``learning.tail`` bounds it
        stated = [mean, mean - half, mean + half + beyond]
        column = Real("learned", 0.0, end, bins=bins, mean=stated)
        shares = _normal_shares(*column.cells.extremes, mean=mean, deviation=1.0)
        return _is_reliable(Schema([column]), "learned", shares, noise)

    return _largest(is_reliable)


def _normal_shares(
    least: FloatArray,
    greatest: FloatArray,
    mean: float | None = None,
    deviation: float | None = None,
) -> FloatArray:
    """Return the shares of cells for normal values; by default around the middle of the range."""
    low, high = float(least.min()), float(greatest.max())
    normal = NormalDist(
        (low + high) / 2 if mean is None else mean,
        ((high - low) * WideBins.usual_deviation if deviation is None else deviation) or 1.0,
    )
    between = (greatest[:-1] + least[1:]) / 2
    below = np.array([0.0, *(normal.cdf(float(edge)) for edge in between), 1.0])
    return np.diff(below)


def _is_reliable(schema: Schema, column: Attribute, shares: FloatArray, noise: float) -> bool:
    """Return the verdict of the main number of a column by counts without noise."""
    rows = 10**8  # only noise per row matters
    counts = np.rint(shares * rows).astype(np.int64)
    measured = Measurement((column,), counts, noise * rows, Fraction(1))
    absent = NoModel(schema.domain, float(rows), "a plan has none")
    numbers = numbers_of(schema, Transcript((measured,)), absent, 0.95, [column])
    return all(n.reliable for n in headlines(numbers))


def _largest(is_reliable: Callable[[float], bool]) -> float:
    """Return the largest noise per row with which a number is reliable, to 4 %; 0 if it never is."""
    least, most = 1e-7, 1.0
    if not is_reliable(least):
        return 0.0
    while most > 1.04 * least:
        middle = math.sqrt(least * most)
        least, most = (middle, most) if is_reliable(middle) else (least, middle)
    return least
