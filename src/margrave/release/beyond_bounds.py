"""Values beyond learned bounds: what they may add to the interval of a mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from margrave._card import listed
from margrave.ratios import figure, percent
from margrave.release.end_cells import has_natural_end
from margrave.schema import Column, Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import UNITS, Numeric
from margrave.schema.sources import ColumnSource


@dataclass(frozen=True)
class BeyondBounds:
    """The two parts of the interval of a learned mean: noise, and values that lie beyond the bounds.

    Args:
        below: What values that lie beyond the bounds without showing may add to the lower end.
        above: What they may add to the upper end.
        noise: What the noise adds to both ends.
        share: The share of the rows that may lie beyond the bounds, at most.
    """

    below: float
    above: float
    noise: float
    share: float


def beyond_bounds(column: Numeric) -> BeyondBounds | None:
    """Return the parts of the interval of a learned mean; None if the column was not learned.

    Both ends have the same noise, and one number of hidden values times the distance of their bound from zero. So
    the parts follow from the interval, unless the bounds are as far from zero on both sides.

    >>> from margrave.schema.numeric import Real
    >>> found = beyond_bounds(Real("price", 0, 100, mean=[20, 18, 23]))
    >>> found.below, found.above, found.noise, found.share
    (0.0, 1.0, 2.0, 0.01)
    """
    if not column.mean:
        return None
    estimate, low, high = column.mean
    down, up = estimate - low, high - estimate
    least, most = (float(end) for end in column.cells.edges[[0, -1]])
    reach = most - least
    below, above = (max(0.0, min(distance, reach)) for distance in (0.0 - least, most))
    if abs(above - below) <= 1e-3 * (above + below):
        return None
    part = max((up - down) / (above - below), 0.0)  # below 0 by rounding
    return BeyondBounds(part * below, part * above, up - part * above, part)


def public_limits(column: Numeric, sources: Mapping[str, ColumnSource]) -> tuple[float, float]:
    """Return the least and the greatest value that a column may have, infinite where its bound was learned.

    >>> from margrave.schema.numeric import Real
    >>> price = Real("price", 0, 100, mean=[20, 18, 23])
    >>> public_limits(price, {"price": ColumnSource(of="learned", public=["low"])})
    (0.0, inf)
    """
    least, greatest = column.cells.extremes
    low, high = float(least.min()), float(greatest.max())
    source = sources.get(column.name, ColumnSource())
    if source.of == "learned" or column.mean:
        low = low if "low" in source.public else -math.inf
        high = high if "high" in source.public else math.inf
    return low, high


def has_bounds_of_another_run(column: Numeric, limits: tuple[float, float]) -> bool:
    """Return True if another run learned a bound, so that this release does not know how many rows lie beyond it.

    Args:
        column: The column. Without a learned mean, its own run learned nothing about it.
        limits: Its ``public_limits``.

    >>> from margrave.schema.numeric import Real
    >>> has_bounds_of_another_run(Real("price", 0, 100), (0.0, math.inf))
    True
    """
    low = math.isinf(limits[0]) and not has_natural_end(column, top=False)
    return not column.mean and (low or math.isinf(limits[1]))


def bounds_of_another_run_words(schema: Schema, names: Iterable[str]) -> list[str]:
    """Return a sentence that names the columns of these whose bounds another run learned; none without such a column.

    >>> from margrave.schema import ColumnSource, Integer
    >>> schema = Schema([Integer("age", 6, 92)], sources={"age": ColumnSource(of="learned")})
    >>> bounds_of_another_run_words(schema, ["age"])[0].partition(". ")[0]
    'age: the bounds are those that another release learned'
    """
    wanted = set(names)
    found = [
        c.name
        for c in schema.columns
        if isinstance(c, NUMERIC_KINDS)
        and c.name in wanted
        and has_bounds_of_another_run(c, public_limits(c, schema.sources))
    ]
    if not found:
        return []
    return [
        f"{listed(found, 12)}: the bounds are those that another release learned. No answer of this one shows how many"
        " rows lie beyond them, and intervals of means and totals have no room for these. So they are not reliable."
        " In the schema of the next release, declare public bounds, or write learn = true."
    ]


def beyond_bounds_words(
    columns: Iterable[Column], level: float = 0.95, by: str | None = None
) -> list[str]:
    """Return a sentence for each learned column whose hidden values count beside the noise.

    Its parts add up to the interval of the mean at the level.

    Args:
        columns: The columns.
        level: The level of the intervals.
        by: The column of groups, if the means are of these: all hidden values may lie in one group.

    >>> from margrave.schema.numeric import Real
    >>> (sentence,) = beyond_bounds_words([Real("price", 0, 100, mean=[20, 18, 23])])
    >>> sentence.partition(". ")[0]
    'price: the 95 % interval of the mean reaches 2 below the estimate and 3 above it'
    """
    least_part = 0.2  # of the noise; smaller parts are not worth a sentence
    found = []
    for column in columns:
        parts = beyond_bounds(column) if isinstance(column, NUMERIC_KINDS) else None
        if parts is None or max(parts.below, parts.above) < least_part * parts.noise:
            continue
        factor = NormalDist().inv_cdf((1 + level) / 2) / NormalDist().inv_cdf(0.975)
        unit = getattr(column, "unit", "day" if column.kind == "date" else "")
        noise, below, above = (
            length_words(factor * length, unit)
            for length in (parts.noise, parts.noise + parts.below, parts.noise + parts.above)
        )
        ends = {"below": parts.below, "above": parts.above}
        rest = " and ".join(
            f"{length_words(factor * v, unit)} {end}" for end, v in ends.items() if v > 0
        )
        if by is not None:
            sides = " and ".join(
                end for end, v in {"lower": parts.below, "upper": parts.above}.items() if v > 0
            )
            found.append(
                f"{column.name}: values may lie beyond the learned bounds without showing. All of them may be in one"
                f" group of {by}, so each group's interval has room for all at its {sides} end."
            )
            continue
        found.append(
            f"{column.name}: the {percent(level, 'g')} interval of the mean reaches {below} below the estimate and"
            f" {above} above it. Noise is {noise} on either side. The rest, {rest}, is room for values beyond the"
            " learned bounds. No answer shows whether there are any, because the noise could hide them."
        )
    return found


def learned_bounds_words(schema: Schema) -> list[str]:
    """Return the learned bounds of the columns, and what became of values beyond them, in a sentence.

    >>> from margrave.schema import ColumnSource, Integer
    >>> columns = [Integer("age", 6, 92), Integer("stay", 1, 14)]
    >>> (words,) = learned_bounds_words(Schema(columns, sources={"age": ColumnSource(of="learned")}))
    >>> words.partition(". ")[0]
    'Learned bounds: age 6 to 92'
    """
    most = 20
    found = [f"{name} {ends}" for name, ends in learned_bounds(schema).items()]
    if not found:
        return []
    more = f"; and of {len(found) - most:,} more columns" if len(found) > most else ""
    return [f"Learned bounds: {'; '.join(found[:most])}{more}. {values_beyond_words()}"]


def values_beyond_words() -> str:
    """Return a sentence on what became of values beyond learned bounds."""
    return (
        "They were learned from noisy counts, so they do not say what the least and the greatest real values are. A few"
        " real values may lie beyond them. These count as the nearer bound, and no synthetic value lies beyond."
    )


def learned_bounds(schema: Schema) -> dict[str, str]:
    """Return the learned bounds of each column that has some, in words.

    >>> from margrave.schema import ColumnSource, Integer
    >>> learned_bounds(Schema([Integer("age", 6, 92)], sources={"age": ColumnSource(of="learned")}))
    {'age': '6 to 92'}
    """
    return {
        c.name: f"{_bound(c.low)} to {_bound(c.high)}"
        for c in schema.columns
        if isinstance(c, NUMERIC_KINDS)
        and schema.sources.get(c.name, ColumnSource()).of == "learned"
    }


def _bound(bound: Any) -> str:
    return f"{bound:.6g}" if isinstance(bound, float) else str(bound)


def length_words(length: float, unit: str) -> str:
    """Return a length on a number line, or a time in the largest unit of which it has two.

    >>> length_words(2.25, ""), length_words(69_400, "minute"), length_words(90, "minute")
    ('2.25', '48.2 days', '90 minutes')
    """
    if not unit:
        return figure(length, 3)
    seconds = length * UNITS[unit]
    smaller = {name: size for name, size in UNITS.items() if seconds >= 2 * size}
    found = max(smaller, key=UNITS.__getitem__, default=unit)
    return f"{figure(seconds / UNITS[found], 3)} {found}s"
