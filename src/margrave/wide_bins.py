"""Columns whose bins may be too wide for a reliable mean: foreseen from the schema alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from margrave._card import counted
from margrave.release.beyond_bounds import length_words
from margrave.release.number import TOLERANCE
from margrave.release.numeric_numbers import has_edges_for_heaps
from margrave.schema import Column
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Date, Numeric, Timestamp
from margrave.schema.remedies import bins_remedy
from margrave.types import Attribute


@dataclass(frozen=True)
class WideBins:
    """A column whose bins are too wide for a reliable mean if its values concentrate.

    Args:
        column: Its name.
        deviation: The standard deviation from which on positions within bins leave the mean reliable.
        mean: The mean from which on they do, since 5 % of it is tolerated near zero; None if that does not count.
        unit: The unit of a date, a time or time elapsed; empty for numbers.

    Privacy:
        A function of the schema.
    """

    column: Attribute
    deviation: float
    mean: float | None = None
    unit: str = ""

    #: The standard deviation of values between distant bounds, as a share of their range.
    usual_deviation: ClassVar[float] = 1 / 9

    @property
    def words(self) -> str:
        """The column with what would leave its mean reliable."""
        found = f"its standard deviation is above {_about(self.deviation, self.unit)}"
        if self.mean is not None:
            found += f", or its mean above {_about(self.mean, self.unit)}"
        return f"{self.column}, unless {found}"


def wide_bins(columns: Iterable[Column]) -> tuple[WideBins, ...]:
    """Return the columns whose bins need a larger standard deviation than values between distant bounds have.

    Values that heap may move a mean by half a bin (``has_edges_for_heaps``). Other positions are independent: for
    normal values of standard deviation s in bins of width w, the squared shares of the bins add up to w / (2 √π s),
    and the position within each bin has the variance w² / 12. The median bin is taken, since finer edges are where
    values concentrate.

    Args:
        columns: The columns of a schema. Columns to learn are passed over.

    Returns:
        The columns for which s must exceed a ninth of the range. Default bins are mostly narrower than that.

    Example:
        >>> from margrave.schema import Integer
        >>> found = wide_bins([Integer("age", 0, 99, bins=10), Integer("stay", 1, 14)])
        >>> [(w.column, round(w.deviation)) for w in found]
        [('age', 90)]
    """
    deviations = 1.96
    found = []
    for column in columns:
        if not isinstance(column, NUMERIC_KINDS):
            continue
        least, greatest = column.cells.extremes
        unknown = float(np.median(greatest - least))
        width = unknown + column.cells.whole
        of_normal = deviations * unknown * math.sqrt(width / (2 * math.sqrt(math.pi) * 12))
        needed = (of_normal / TOLERANCE) ** (2 / 3)
        of_heaps = unknown / 2 if has_edges_for_heaps(column) else 0.0
        needed = max(needed, of_heaps / TOLERANCE)
        usual = WideBins.usual_deviation * float(greatest.max() - least.min())
        if needed > usual:
            mean = max(of_normal / math.sqrt(usual), of_heaps) / TOLERANCE
            moment = isinstance(column, Date | Timestamp)
            near = not moment and least.min() >= 0 and mean < greatest.max()
            found.append(WideBins(column.name, needed, mean if near else None, _unit(column)))
    return tuple(found)


def wide_bins_words(columns: Sequence[WideBins]) -> list[str]:
    """Return a sentence on the columns, with a remedy; none without columns.

    >>> wide_bins_words([WideBins("age", 31.4)])[0].partition(". ")[0]
    'The bins are too wide for a reliable mean of age, unless its standard deviation is above about 31'
    """
    max_columns = 12
    if not columns:
        return []
    named = [w.words for w in columns[:max_columns]]
    more = len(columns) - max_columns
    named += [f"of {counted(more, 'more column')}"] * (more > 0)
    return [
        f"The bins are too wide for a reliable mean of {'; of '.join(named)}. In the schema, {bins_remedy()}"
    ]


def _about(length: float, unit: str) -> str:
    return f"about {length_words(float(f'{length:.2g}'), unit)}"


def _unit(column: Numeric) -> str:
    return str(getattr(column, "unit", "day" if column.kind == "date" else ""))
