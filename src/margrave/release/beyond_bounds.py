"""Values beyond learned bounds: what they may add to the interval of a mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave._card import counted, listed
from margrave.ratios import figure, percent
from margrave.release.end_cells import has_natural_end
from margrave.release.number import ColumnNumber
from margrave.schema import Column, Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import UNITS, Numeric
from margrave.schema.remedies import bounds_remedy
from margrave.schema.sources import ColumnSource


@dataclass(frozen=True)
class BeyondBounds:
    """The two parts of the interval of a learned mean: noise, and values that lie beyond the bounds.

    Args:
        below: What values that lie beyond the bounds without showing may add to the lower end.
        above: What they may add to the upper end.
        noise: What the noise adds to both ends.
        share: The share of the rows that may lie beyond the bounds, at most; 0 if the interval has no room for them.
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
    least, most = _range_with_mass(column)
    reach = most - least
    below, above = (max(0.0, min(distance, reach)) for distance in (0.0 - least, most))
    if abs(above - below) <= 1e-3 * (above + below):
        return None
    part = max((up - down) / (above - below), 0.0)  # below 0 by rounding
    return BeyondBounds(part * below, part * above, up - part * above, part)


def _range_with_mass(column: Numeric) -> tuple[float, float]:
    """Return the ends of the range in which values were seen: a public bound may lie beyond it."""
    cells = column.cells
    edges = cells.edges
    if cells.leaves is not None and cells.leaves.weights.any():
        inside = np.flatnonzero(cells.leaves.weights)
        edges = cells.leaves.edges[inside[0] : inside[-1] + 2]
    return float(edges[0]), float(edges[-1])


def hidden_share(column: Numeric) -> float:
    """Return the share of the rows that may lie beyond learned bounds, at most; 1 if it is unknown.

    It is unknown if another run learned the bounds. It is unknown too if the interval of the mean has the same length
    on both sides: then the run cut the range where it saw few values, and counts what lies beyond as noise.

    >>> from margrave.schema.numeric import Real
    >>> [hidden_share(Real("price", 0, 100, mean=mean)) for mean in ([20, 18, 23], [20, 18, 22])]
    [0.01, 1.0]
    """
    parts = beyond_bounds(column)
    if parts is None:
        return 1.0
    estimate, low, high = column.mean
    return 1.0 if math.isclose(estimate - low, high - estimate) else min(parts.share, 1.0)


def possible_limits(column: Numeric, sources: Mapping[str, ColumnSource]) -> tuple[float, float]:
    """Return the least and the greatest value that a column may have, infinite where its bound was learned.

    A learned lower bound at a natural end, such as 0, is the least value all the same: no value is expected below it.

    >>> from margrave.schema.numeric import Real
    >>> debt = Real("debt", -100, 100, mean=[20, 18, 23])
    >>> possible_limits(debt, {"debt": ColumnSource(of="learned", public=["low"])})
    (-100.0, inf)
    >>> possible_limits(Real("price", 0, 100), {"price": ColumnSource(of="learned")})
    (0.0, inf)
    """
    least, greatest = column.cells.extremes
    low, high = float(least.min()), float(greatest.max())
    source = sources.get(column.name, ColumnSource())
    if source.of == "learned" or column.mean:
        ends_there = "low" in source.public or has_natural_end(column, top=False)
        low = low if ends_there else -math.inf
        high = high if "high" in source.public else math.inf
    return low, high


def has_bounds_of_another_run(column: Numeric, limits: tuple[float, float]) -> bool:
    """Return True if another run learned a bound, so that this release does not know how many rows lie beyond it.

    Args:
        column: The column. Without a learned mean, its own run learned nothing about it.
        limits: Its ``possible_limits``.

    >>> from margrave.schema.numeric import Real
    >>> has_bounds_of_another_run(Real("price", 0, 100), (0.0, math.inf))
    True
    """
    return not column.mean and any(map(math.isinf, limits))


def columns_of_another_run(schema: Schema) -> list[Numeric]:
    """Return the columns whose bounds another run learned."""
    return [
        c
        for c in schema.columns
        if isinstance(c, NUMERIC_KINDS)
        and has_bounds_of_another_run(c, possible_limits(c, schema.sources))
    ]


def bounds_of_another_run_words(
    schema: Schema, names: Iterable[str], of: str = "means and totals"
) -> list[str]:
    """Return a sentence that names the columns of these whose bounds another run learned; none without such a column.

    Args:
        schema: The schema of the release.
        names: Names of columns.
        of: What has intervals without room for values beyond the bounds.

    >>> from margrave.schema import ColumnSource, Integer
    >>> schema = Schema([Integer("age", 6, 92)], sources={"age": ColumnSource(of="learned")})
    >>> bounds_of_another_run_words(schema, ["age"])[0].partition(". ")[0]
    'age: the bounds are those that another release learned'
    """
    wanted = set(names)
    found = [c.name for c in columns_of_another_run(schema) if c.name in wanted]
    if not found:
        return []
    return [
        f"{listed(found, 12)}: the bounds are those that another release learned. No answer of this one shows how many"
        f" rows lie beyond them, and intervals of {of} do not include these. So they are not reliable."
        f" In the schema of the next release, {bounds_remedy(open_bounds(schema, found))}"
    ]


def open_bounds(schema: Schema, names: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of the bounds that were not public in one of these columns before it was learned.

    >>> from margrave.schema import ColumnSource, Integer
    >>> schema = Schema([Integer("age", 0, 92)], sources={"age": ColumnSource(of="learned", public=["low"])})
    >>> open_bounds(schema, ["age"])
    ('high',)
    """
    return tuple(dict.fromkeys(key for name in names for key in schema.source(name).open_bounds))


def beyond_bounds_words(
    schema: Schema, numbers: Iterable[ColumnNumber], level: float = 0.95, by: str | None = None
) -> list[str]:
    """Return a sentence for each column with a mean beside whose noise values beyond learned bounds count.

    Its figures are those of the mean: they add up to the printed interval.

    Args:
        schema: The schema of the release.
        numbers: ``numbers_of`` the release.
        level: Their level.
        by: The column of groups, if the numbers are of these: all hidden values may lie in one group.
    """
    means: dict[str, list[ColumnNumber]] = {}
    for n in numbers:
        if n.statistic == "mean" and n.may_hide_values:
            means.setdefault(n.column, []).append(n)
    if by is None:
        return [
            sentence
            for (n, *_) in means.values()
            for sentence in _parts_words(n, _unit(schema.column(n.column)), level)
        ]
    return [
        f"{name}: values may lie beyond the learned bounds without showing. All of them may be in one"
        f" group of {by}, so each group's interval includes all of them at its {_sides(found)} end."
        for name, found in means.items()
    ]


def _sides(numbers: Iterable[ColumnNumber]) -> str:
    found = list(numbers)
    ends = {
        "lower": any(n.beyond_below for n in found),
        "upper": any(n.beyond_above for n in found),
    }
    return " and ".join(end for end, has_room in ends.items() if has_room)


def _parts_words(n: ColumnNumber, unit: str, level: float) -> Iterator[str]:
    """Yield the parts of the interval of a mean as a sentence; none if the noise hides the mean."""
    ends, room = (n.low, n.high), (n.beyond_below, n.beyond_above)
    if n.estimate is None or None in (*ends, *room):
        return
    below, above = (abs(end - n.estimate) for end in ends if end is not None)
    hidden = [length or 0.0 for length in room]
    noise = [length_words(below - hidden[0], unit), length_words(above - hidden[1], unit)]
    sides = {"below": hidden[0], "above": hidden[1]}
    rest = " and ".join(f"{length_words(v, unit)} {end}" for end, v in sides.items() if v > 0)
    by_noise = f"{noise[0]} on either side"
    if noise[0] != noise[1]:  # a bound cuts the interval
        by_noise = f"{noise[0]} below and {noise[1]} above"
    yield (
        f"{n.column}: the {percent(level, 'g')} interval of the mean reaches {length_words(below, unit)} below the"
        f" estimate and {length_words(above, unit)} above it. Noise is {by_noise}. The rest, {rest}, is room for values"
        " beyond the learned bounds. No answer shows whether there are any, because the noise could hide them."
    )


def learned_bounds_words(schema: Schema) -> list[str]:
    """Return the learned bounds of the columns, and what became of values beyond them, in words.

    >>> from margrave.schema import ColumnSource, Integer
    >>> columns = [Integer("age", 6, 92), Integer("stay", 1, 14)]
    >>> (words,) = learned_bounds_words(Schema(columns, sources={"age": ColumnSource(of="learned")}))
    >>> words.partition(". ")[0]
    'Learned bounds: age 6 to 92 (unknown share beyond)'
    """
    most = 20
    found = [f"{name} {ends}" for name, ends in learned_bounds(schema).items()]
    if not found:
        return []
    others = len(found) - most
    more = f"; and of {counted(others, 'more column')}" if others > 0 else ""
    return [f"Learned bounds: {'; '.join(found[:most])}{more}. {values_beyond_words()}"]


def values_beyond_words() -> str:
    """Return sentences on what became of values beyond learned bounds."""
    return (
        "They were learned from noisy counts, so they do not say what the least and the greatest real values are. The"
        " share beyond is the share of the rows that the noise may hide there. An unknown share may be large. Rows"
        " beyond a learned bound count as that bound, and no synthetic value lies beyond."
    )


def learned_bounds(schema: Schema) -> dict[str, str]:
    """Return the learned bounds of each column that has some, and the share of the rows beyond them, in words.

    Bounds that were public before the column was learned are not among them.

    >>> from margrave.schema import ColumnSource, Integer
    >>> age = Integer("age", 0, 92, mean=[20, 18, 23])
    >>> learned_bounds(Schema([age], sources={"age": ColumnSource(of="learned", public=["low"])}))
    {'age': 'up to 92 (at most 1.1 % beyond)'}
    """
    found = {}
    for column in schema.columns:
        source = schema.source(column.name)
        if not isinstance(column, NUMERIC_KINDS) or source.of != "learned":
            continue
        share = hidden_share(column)
        beyond = "unknown share" if share == 1.0 else f"at most {percent(share)}"
        low, high = (_bound(column, key) for key in ("low", "high"))
        ends = {
            (): f"{low} to {high}",
            ("low",): f"up to {high}",
            ("high",): f"from {low} on",
        }.get(tuple(sorted(source.public)))
        if ends is not None:
            found[column.name] = f"{ends} ({beyond} beyond)"
    return found


def _bound(column: Numeric, key: str) -> str:
    bound: Any = getattr(column, key)
    return f"{bound:.6g}" if isinstance(bound, float) else str(bound)


def hidden_rows_words(mean: ColumnNumber, column: Column) -> str:
    """Return how far rows beyond the learned bounds of a column may move its mean, as a sentence."""
    ends = {"down": mean.beyond_below or 0.0, "up": mean.beyond_above or 0.0}
    moves = " or ".join(
        f"{way} by as much as {length_words(by, _unit(column))}"
        for way, by in ends.items()
        if by > 0
    )
    return f"{column.name}: rows beyond the learned bounds may move its mean {moves}."


def _unit(column: Column) -> str:
    return getattr(column, "unit", "day" if column.kind == "date" else "")


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
