"""Columns whose main number is likely to be reliable: foreseen from the schema, the row count and the planned noise."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from margrave._card import counted, listed
from margrave.accounting import Unit
from margrave.accounting.budget import MIN_EPSILON
from margrave.accounting.thresholds import threshold_for
from margrave.column_noise import ColumnNoise, column_noises
from margrave.domain import Domain
from margrave.learning.shares import LearningShares, column_share
from margrave.mechanisms.common import PlannedMeasurement
from margrave.models import NoModel
from margrave.privacy import Gaussian
from margrave.ratios import figure
from margrave.release.numbers import headlines, numbers_of
from margrave.schema import Categorical, Learn, Real, Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.remedies import bins_remedy
from margrave.transcript import Measurement, Transcript
from margrave.types import Attribute, FloatArray
from margrave.wide_bins import WideBins


@dataclass(frozen=True)
class VerdictForecast:
    """The columns that a release is likely to call reliable, by the rule of ``Release.numbers``.

    The rule is applied to counts without noise and to the planned noise, which gives the greatest noise of each column.
    Categories are taken to have the shares of a stick that is broken at random, and numbers with public bounds to be
    normal, with a ninth of the range as standard deviation. Rounds that select marginals are taken to select all
    candidates equally often. The logarithm of the noise over its greatest is taken to be normal. Its deviation is that
    of the values, and of the number of rounds in which a column is.

    Args:
        columns: The columns with a planned measurement.
        likely: Those whose main number is more likely to be reliable than not.
        expected: The expected number of reliable columns, from and to: with one standard deviation more and less noise.
        rows: The number of rows, which is public or a guess.
        epsilon: The epsilon of the plan.
        rows_for_most: The number of rows, in two digits, at which a forecast expects more than half of the columns even
            with more noise. None if this one does, or none up to 100 times the rows does.
        epsilon_for_most: The same of epsilon, up to 20.
        never: The number columns with bins whose mean is reliable at no number of rows and no epsilon.

    Privacy:
        A function of public inputs.
    """

    columns: tuple[Attribute, ...]
    likely: tuple[Attribute, ...]
    expected: tuple[int, int]
    rows: int
    epsilon: float
    rows_for_most: int | None
    epsilon_for_most: float | None
    never: tuple[Attribute, ...] = ()

    #: The greatest epsilon, and the greatest multiple of the rows, at which it is forecast again.
    max_epsilon: ClassVar[float] = 20.0
    max_times_rows: ClassVar[int] = 100

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {
            **vars(self),
            "columns": list(self.columns),
            "likely": list(self.likely),
            "expected": list(self.expected),
            "never": list(self.never),
        }

    @property
    def share(self) -> str:
        """The expected number of reliable columns, of all: "1 to 3 of 7"."""
        low, high = self.expected
        return f"{f'{low:,} to ' * (low < high)}{high:,} of {len(self.columns):,}"

    @property
    def words(self) -> str:
        """The forecast in a few sentences.

        >>> VerdictForecast(("age", "sex"), (), (0, 0), 3000, 1.4, 20_000, None).words.partition(": ")[2]
        'none of 2 columns is likely to be reliable. From about 20,000 rows on most are. Epsilon 20 is not enough.'
        """
        at = f"At epsilon {self.epsilon:g} and about {counted(self.rows, 'row')}"
        low, high = self.expected
        of = counted(len(self.columns), "column")
        if low == len(self.columns):
            numbers = "numbers of all" if low > 1 else "number of"
            return (
                f"{at}: the main {numbers} {of} {'are' if low > 1 else 'is'} likely to be reliable."
            )
        if not high:
            found = f"{at}: none of {of} is likely to be reliable."
        else:
            verb = "is" if high == 1 else "are"
            most = "most likely " * (low < high)
            names = f" ({most}{', '.join(self.likely)})" if 0 < len(self.likely) <= 6 else ""
            columns = "column" if len(self.columns) == 1 else "columns"
            found = f"{at}: {self.share} {columns} {verb} likely to be reliable{names}."
        if _is_most(self.expected, len(self.columns)):
            return found
        return " ".join([found, *self._ways])

    def words_beside(self, wide: Iterable[WideBins]) -> str:
        """Return ``words`` for a text that also has sentences on columns with wide bins, and their remedy."""
        named = {w.column for w in wide}
        return replace(self, never=tuple(a for a in self.never if a not in named)).words

    @property
    def _ways(self) -> list[str]:
        ways, limits = list[str](), list[str]()
        if self.epsilon_for_most is not None:
            ways.append(f"epsilon {figure(self.epsilon_for_most, 2)}")
        elif self.epsilon < self.max_epsilon:
            limits.append(f"epsilon {self.max_epsilon:g}")
        if self.rows_for_most is not None:
            ways.append(f"{figure(float(self.rows_for_most), 2)} rows")
        else:
            limits.append(f"{self.max_times_rows} times the rows")
        if not ways:
            neither = "Neither " if len(limits) > 1 else "Not even "
            return [f"{neither}{' nor '.join(limits)} is enough for most.", *self._never_words]
        found = [f"From about {' or '.join(ways)} on most are."]
        return found + [f"{limit[0].upper()}{limit[1:]} is not enough." for limit in limits]

    @property
    def _never_words(self) -> list[str]:
        if not self.never:
            return []
        means = "its mean" if len(self.never) == 1 else "their means"
        return [
            f"{listed(self.never, 6)}: no budget is likely to make {means} reliable with these bins. In the schema,"
            f" {bins_remedy()}"
        ]


def forecast_verdicts(
    schema: Schema,
    likely: Domain,
    typical: Callable[[int, float], Domain],
    steps: Sequence[PlannedMeasurement],
    *,
    rows: int,
    epsilon: float,
    rho: Fraction,
    threshold_delta: float,
    unit: Unit,
    rho_of: Callable[[float], Fraction],
) -> VerdictForecast | None:
    """Return the forecast of a run; None if it plans no measurements.

    If it does not expect most columns, it is made again at other epsilons and at other numbers of rows: at about seven
    each, by bisection.

    Args:
        schema: The schema.
        likely: Its columns, with as many categories as columns to learn are likely to have at most.
        typical: Returns the same with as many bins as numbers to learn are likely to have, for a number of rows and a
            multiple of the planned noise.
        steps: The planned measurements, without those that only count all records.
        rows: The number of rows, which is public or a guess.
        epsilon: The epsilon of the plan.
        rho: The whole budget (zCDP).
        threshold_delta: The part of delta for thresholds of categories to learn; 0 without any.
        unit: The unit of privacy.
        rho_of: Returns the budget (zCDP) of an epsilon.

    Privacy:
        None spent: public inputs only.
    """
    numbers = sum(c.is_number for c in schema.to_learn)
    categories = len(schema.to_learn) - numbers
    part = Fraction(threshold_delta) / categories if categories else Fraction(0)

    @cache
    def noises(sizes: tuple[int, ...]) -> Mapping[Attribute, ColumnNoise]:
        return column_noises(Domain(schema.domain.attributes, sizes), steps)

    def ratios(rows: int, rho_there: Fraction) -> dict[Attribute, tuple[float, float]]:
        """Return the greatest noise of each column over the planned one, and the deviation of that."""
        share = column_share(rho_there * LearningShares.learning, max(len(schema.to_learn), 1))
        threshold = threshold_for(unit, Gaussian.scale_for(share, unit), part) if part else 0
        pot = rho_there * LearningShares.learning * LearningShares.sums
        times_noise = math.sqrt(rho / rho_there)
        bins = typical(rows, times_noise)
        reaching = rows / threshold if threshold else math.inf
        sizes = {c.name: c.size for c in schema.columns if not isinstance(c, Learn)}
        sizes |= {
            c.name: bins.size(c.name)
            if c.is_number
            else _likely_categories(reaching, likely.size(c.name))
            for c in schema.to_learn
        }
        found: dict[Attribute, tuple[float, float]] = {}
        planned = noises(tuple(sizes[a] for a in schema.domain))
        for column in (c for c in schema.columns if c.name in planned):
            scale = planned[column.name].scale * times_noise
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
            deviation = planned[column.name].deviation
            found[column.name] = (bearable * max(rows, 1) / scale, deviation)
        return found

    def is_most(rows: int, rho_there: Fraction) -> bool:
        found = ratios(rows, rho_there)
        return _is_most(_expected([*found.values()]), len(found))

    here = ratios(rows, rho)
    if not here:
        return None
    expected = _expected([*here.values()])
    rows_for_most: float | None = None
    epsilon_for_most: float | None = None
    if not _is_most(expected, len(here)):
        more = _of_two_digits(max(rows, 1), VerdictForecast.max_times_rows * max(rows, 1))
        rows_for_most = _first(more, lambda r: is_most(int(r), rho))
        larger = _of_two_digits(max(epsilon, MIN_EPSILON), VerdictForecast.max_epsilon)
        epsilon_for_most = _first(larger, lambda e: is_most(rows, rho_of(e)))
    return VerdictForecast(
        tuple(here),
        tuple(a for a, (ratio, _) in here.items() if ratio >= 1.0),
        expected,
        rows,
        epsilon,
        None if rows_for_most is None else int(rows_for_most),
        epsilon_for_most,
        tuple(
            c.name
            for c in schema.columns
            if isinstance(c, NUMERIC_KINDS) and here.get(c.name, (1.0, 0.0))[0] == 0
        ),
    )


def _is_most(expected: tuple[int, int], columns: int) -> bool:
    return 2 * expected[0] > columns


def _of_two_digits(above: float, most: float) -> list[float]:
    """Return the numbers of two significant digits above one number and up to another.

    >>> _of_two_digits(9.75, 12.0), _of_two_digits(20.0, 20.0)
    ([9.8, 9.9, 10.0, 11.0, 12.0], [])
    """
    powers = range(math.floor(math.log10(above)) - 1, math.floor(math.log10(most)) + 1)
    numbers = (float(f"{digits}e{power}") for power in powers for digits in range(10, 100))
    return [n for n in numbers if above < n <= most]


def _first(values: Sequence[float], is_enough: Callable[[float], bool]) -> float | None:
    """Return the first value for which ``is_enough`` is true, by bisection; None without one."""
    place = bisect_left(values, True, key=is_enough)
    return values[place] if place < len(values) else None


def _expected(ratios: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Return the expected number of reliable columns, with one standard deviation more and less noise.

    Args:
        ratios: For each column, the greatest noise over the planned one, and the standard deviation of the logarithm
            of the planned one.

    >>> _expected([(1.0, 0.0)] * 25), _expected([(1.2, 0.0)] * 25), _expected([(9.0, 0.0)] * 25)
    ((4, 21), (9, 24), (25, 25))
    """
    of_values = 0.3  # values that differ from those assumed here move the greatest noise by a third
    scores = [math.log(r) / math.hypot(of_values, own) for r, own in ratios if r > 0]
    low, high = (sum(NormalDist().cdf(z + shift) for z in scores) for shift in (-1.0, 1.0))
    return round(low), round(high)


@lru_cache(maxsize=1024)
def _most_noise(schema: Schema, name: Attribute) -> float:
    """Return the most noise of a code, per row, with which the main number of a column is reliable."""
    column = schema.column(name)
    shares = np.zeros(column.size)
    codes = column.size - column.missing
    shares[:codes] = _broken_stick(codes)
    if isinstance(column, NUMERIC_KINDS):
        least, greatest = column.cells.extremes
        low, high = float(least.min()), float(greatest.max())
        deviation = (high - low) * WideBins.usual_deviation or 1.0
        shares[: column.cells.count] = _normal_shares(least, greatest, (low + high) / 2, deviation)
    return _largest(lambda noise: _is_reliable(schema, name, shares, noise))


@lru_cache(maxsize=64)
def _most_noise_of_learned_categories(likely: int, threshold: float) -> float:
    """Return the same of categories to learn.

    Args:
        likely: The greatest number of categories.
        threshold: The rows from which on a category is learned, in noise scales of a code.
    """

    def is_reliable(noise: float) -> bool:
        reaching = 1.0 / (threshold * noise) if threshold else math.inf
        many = _likely_categories(reaching, likely)
        column = Categorical("learned", [str(i) for i in range(many)])
        return _is_reliable(Schema([column]), "learned", _broken_stick(many), noise)

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


def _broken_stick(categories: int) -> FloatArray:
    """Return the mean shares of categories, the largest first, if all shares with sum 1 are equally likely.

    >>> _broken_stick(2).tolist()
    [0.75, 0.25]
    """
    return np.cumsum(1.0 / np.arange(categories, 0, -1))[::-1] / categories


def _normal_shares(
    least: FloatArray, greatest: FloatArray, mean: float, deviation: float
) -> FloatArray:
    """Return the shares of cells for normal values."""
    normal = NormalDist(mean, deviation)
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
