"""Axes of charts: a column's codes with their labels and their cells on a number line, and the bars that share them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrave._card import counted
from margrave.report.labels import plain_number
from margrave.schema import Column, ColumnSource
from margrave.schema.categorical import OTHER
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.elapsed import Elapsed
from margrave.schema.numeric import UNITS, Numeric
from margrave.schema.parts import TimePart
from margrave.schema.sources import code_words
from margrave.types import FloatArray


class Group(NamedTuple):
    """Codes that share one bar, and its label; ``others`` are the many small categories, which have no bar."""

    codes: Sequence[int]
    label: str
    others: bool = False


class Span(NamedTuple):
    """The first and the last value of a cell on a number line."""

    first: float
    last: float


@dataclass(frozen=True, eq=False)
class Axis:
    """The codes of a column as a chart shows them.

    Args:
        labels: One label per code.
        ordered: Whether neighboring codes are neighboring values.
        spans: The first and last value of each cell, without the missing state; none for categories.
        form: Returns a value of the line as text.
        whole: Whether the values are whole numbers, so that each takes a room of 1 on the line.
        seconds: The length of 1 on a line of dates or times; 0 for numbers.
        rest: The codes of categories that are the open category or the missing state.
        unit: What follows a number of the line: " days" for time elapsed.
    """

    labels: Sequence[str]
    ordered: bool = False
    spans: Sequence[Span] = ()
    form: Callable[[float], str] = str
    whole: bool = False
    seconds: int = 0
    rest: Sequence[int] = ()
    unit: str = ""

    @staticmethod
    def of(column: Column, source: ColumnSource | None = None) -> Axis:
        """Return the axis of a column of a schema, with the labels of its source.

        >>> from margrave.schema import Integer
        >>> axis = Axis.of(Integer("age", 0, 99, bins=4))
        >>> axis.groups(2)[0].label, axis.spans[0]
        ('0 to 49', Span(first=0.0, last=24.0))
        """
        labels = code_words(column, source or ColumnSource())
        missing = [len(labels) - 1] if column.missing else []
        if not isinstance(column, NUMERIC_KINDS):
            ordered = column.kind in ("ordinal", "coded") or isinstance(column, TimePart)
            other = [column.labels().index(OTHER)] if getattr(column, "other", False) else []
            return Axis(labels, ordered=ordered, rest=[*other, *missing])
        spans = [Span(first, last) for first, last, _, _ in column.cells.spans()]
        temporal = column.kind in ("date", "timestamp")
        seconds = UNITS[getattr(column, "unit", "day")] if temporal else 0
        unit = f" {column.unit}s" if isinstance(column, Elapsed) else ""
        form = _form(column) if temporal else plain_number
        return Axis(labels, True, spans, form, column.whole, seconds, missing, unit)

    def groups(self, max_bars: int, weights: FloatArray | None = None) -> list[Group]:
        """Return the bars: neighbors together on an ordered axis, else the largest and the sum of the others."""
        size = len(self.labels)
        if size <= max_bars:
            return [Group((code,), label) for code, label in enumerate(self.labels)]
        if not self.ordered:
            weights = np.zeros(size) if weights is None else weights
            order = np.argsort(-weights, kind="stable").tolist()
            largest = [Group((code,), self.labels[code]) for code in order[:max_bars]]
            return [
                *largest,
                Group(order[max_bars:], counted(size - max_bars, "other"), others=True),
            ]
        line = len(self.spans) or size - len(self.rest)
        step = -(-line // max_bars)
        found = [range(a, min(a + step, line)) for a in range(0, line, step)]
        found += [range(a, a + 1) for a in range(line, size)]
        return [Group(codes, self._joined(codes)) for codes in found]

    def _joined(self, codes: Sequence[int]) -> str:
        first, last = self.labels[codes[0]], self.labels[codes[-1]]
        if len(codes) == 1 and (
            codes[0] >= len(self.spans) or first == self.form(self.spans[codes[0]].first)
        ):
            return first
        if self.spans:
            ends = self.spans[codes[0]].first, self.spans[codes[-1]].last
            return f"{' to '.join(map(self.form, ends))}{self.unit}"
        return f"{first} \N{HORIZONTAL ELLIPSIS} {last}"


def _form(column: Numeric) -> Callable[[float], str]:
    def written(value: float) -> str:
        return str(column.written(np.array([math.floor(value)]), np.array([False]))[0].as_py())

    return written
