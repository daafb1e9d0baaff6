"""Values beyond learned bounds: what they may add to the interval of a mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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
    """

    below: float
    above: float
    noise: float


def beyond_bounds(column: Numeric) -> BeyondBounds | None:
    """Return the parts of the interval of a learned mean; None if the column was not learned.

    Both ends have the same noise, and one number of hidden values times the distance of their bound from zero. So
    the parts follow from the interval, unless the bounds are as far from zero on both sides.

    >>> from margrave.schema.numeric import Real
    >>> found = beyond_bounds(Real("price", 0, 100, mean=[20, 18, 23]))
    >>> found.below, found.above, found.noise
    (0.0, 1.0, 2.0)
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
    return BeyondBounds(part * below, part * above, up - part * above)


def beyond_bounds_words(columns: Iterable[Column]) -> list[str]:
    """Return a sentence for each learned column whose hidden values count beside the noise.

    >>> from margrave.schema.numeric import Real
    >>> (sentence,) = beyond_bounds_words([Real("price", 0, 100, mean=[20, 18, 23])])
    >>> sentence.partition(". ")[2]
    "They add 1 to the upper end of the mean's interval; the noise alone is 2 on either side."
    """
    least_part = 0.2  # of the noise; smaller parts are not worth a sentence
    found = []
    for column in columns:
        parts = beyond_bounds(column) if isinstance(column, NUMERIC_KINDS) else None
        if parts is None or max(parts.below, parts.above) < least_part * parts.noise:
            continue
        ends = {"lower": parts.below, "upper": parts.above}
        unit = getattr(column, "unit", "day" if column.kind == "date" else "")
        added = " and ".join(
            f"{length_words(v, unit)} to the {end} end" for end, v in ends.items() if v > 0
        )
        found.append(
            f"{column.name}: values may lie beyond the learned bounds without showing. They add {added} of the"
            f" mean's interval; the noise alone is {length_words(parts.noise, unit)} on either side."
        )
    return found


def learned_bounds_words(schema: Schema, names: Iterable[str] | None = None) -> list[str]:
    """Return the learned bounds of the columns, and what became of values beyond them, in a sentence.

    >>> from margrave.schema import ColumnSource, Integer
    >>> columns = [Integer("age", 6, 92), Integer("stay", 1, 14)]
    >>> (words,) = learned_bounds_words(Schema(columns, sources={"age": ColumnSource(of="learned")}))
    >>> words.partition(". ")[0]
    'Learned bounds: age 6 to 92'
    """
    most = 20
    found = [
        f"{c.name} {_bound(c.low)} to {_bound(c.high)}"
        for c in (schema.columns if names is None else map(schema.column, names))
        if isinstance(c, NUMERIC_KINDS)
        and schema.sources.get(c.name, ColumnSource()).of == "learned"
    ]
    if not found:
        return []
    more = f"; and of {len(found) - most:,} more columns" if len(found) > most else ""
    return [
        f"Learned bounds: {'; '.join(found[:most])}{more}. Real values may lie beyond them: these count as the"
        " nearer bound, and no synthetic value lies beyond."
    ]


def _bound(bound: Any) -> str:
    return f"{bound:.6g}" if isinstance(bound, float) else str(bound)


def length_words(length: float, unit: str) -> str:
    """Return a length on a number line, or a time in the largest unit of which it has two.

    >>> length_words(2.25, ""), length_words(69_400, "minute"), length_words(90, "minute")
    ('2.25', '48.2 days', '90 minutes')
    """
    if not unit:
        return f"{length:.3g}"
    seconds = length * UNITS[unit]
    smaller = {name: size for name, size in UNITS.items() if seconds >= 2 * size}
    found = max(smaller, key=UNITS.__getitem__, default=unit)
    return f"{seconds / UNITS[found]:.3g} {found}s"
