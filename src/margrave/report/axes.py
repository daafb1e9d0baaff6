"""Axes of charts: a column's codes with their labels, their places on a number line, and ticks with real values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np

from margrave.schema import Column
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.elapsed import Elapsed
from margrave.schema.numeric import Numeric
from margrave.schema.parts import TimePart
from margrave.types import FloatArray


class Group(NamedTuple):
    """Codes that share one bar, and its label; ``others`` are the many small categories, which have no bar."""

    codes: Sequence[int]
    label: str
    others: bool = False


class Tick(NamedTuple):
    """A place on an axis, in bars from its start, and its text."""

    place: float
    text: str


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
        even: Whether all cells are bins of one width.
        temporal: Whether the values are dates or times.
        missing: Whether the last code of categories is the missing state, which is nobody's neighbor.
        unit: What follows a number of the line: " days" for time elapsed.
    """

    labels: Sequence[str]
    ordered: bool = False
    spans: Sequence[Span] = ()
    form: Callable[[float], str] = str
    even: bool = False
    temporal: bool = False
    missing: bool = False
    unit: str = ""

    @staticmethod
    def of(column: Column) -> Axis:
        """Return the axis of a column of a schema.

        >>> from margrave.schema import Integer
        >>> axis = Axis.of(Integer("age", 0, 99, bins=4))
        >>> [t.text for t in axis.ticks(axis.groups(4), 300.0)]
        ['0', '20', '40', '60', '80', '100']
        """
        labels = column.labels()
        if not isinstance(column, NUMERIC_KINDS):
            ordered = column.kind in ("ordinal", "coded") or isinstance(column, TimePart)
            return Axis(labels, ordered=ordered, missing=column.missing)
        spans = [Span(first, last) for first, last, _, _ in column.cells.spans()]
        temporal = column.kind in ("date", "timestamp")
        edges = np.diff(column.cells.edges)
        several = all(s.last > s.first for s in spans)
        even = several and len(spans) == len(edges) and bool(np.ptp(edges) <= 0.02 * edges.max())
        unit = f" {column.unit}s" if isinstance(column, Elapsed) else ""
        return Axis(labels, True, spans, _form(column, temporal), even, temporal, unit=unit)

    def groups(self, max_bars: int, weights: FloatArray | None = None) -> list[Group]:
        """Return the bars: neighbors together on an ordered axis, else the largest and the sum of the others."""
        size = len(self.labels)
        if size <= max_bars:
            return [Group((code,), label) for code, label in enumerate(self.labels)]
        if not self.ordered:
            weights = np.zeros(size) if weights is None else weights
            order = np.argsort(-weights, kind="stable").tolist()
            largest = [Group((code,), self.labels[code]) for code in order[:max_bars]]
            return [*largest, Group(order[max_bars:], f"{size - max_bars:,} others", others=True)]
        line = len(self.spans) or size - self.missing
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

    def ticks(self, groups: Sequence[Group], width: float, margin: float = 0.0) -> list[Tick]:
        """Return ticks that do not overlap, the missing state not among them.

        Args:
            groups: The bars.
            width: Width of all bars together.
            margin: Room to the left of the bars, into which the first text may reach.
        """
        found = self._ticks(groups)
        if self.unit:
            found[-1] = Tick(found[-1].place, f"{found[-1].text}{self.unit}")
        return _apart(found, width / max(len(groups), 1), width, margin)

    def _ticks(self, groups: Sequence[Group]) -> list[Tick]:
        if not self.spans:
            return [Tick(i + 0.5, short(g.label, 14)) for i, g in enumerate(groups)]
        on_line = [g for g in groups if g.codes[0] < len(self.spans)]
        whole = all(len(g.codes) == len(on_line[0].codes) for g in on_line)
        if self.even and not self.temporal and whole and len(on_line) > 3:
            return self._round(len(on_line))
        return self._edges(on_line)

    def _round(self, bars: int) -> list[Tick]:
        """Return round values on an axis of equal bins."""
        low = self.spans[0].first
        cell = self.spans[1].first - low
        high = low + cell * len(self.spans)
        rough = (high - low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough)
        values = np.arange(math.ceil(low / step - 1e-9) * step, high + 1e-9 * step, step)
        return [Tick((v - low) / (high - low) * bars, self.form(float(v))) for v in values]

    def _edges(self, groups: Sequence[Group]) -> list[Tick]:
        """Return the start of each bar, and the middle of bars of a single value."""
        found: list[Tick] = []
        for i, g in enumerate(groups):
            first, last = self.spans[g.codes[0]].first, self.spans[g.codes[-1]].last
            single = first == last
            found.append(Tick(i + 0.5 * single, self.form(first)))
            if not single and i == len(groups) - 1:
                found.append(Tick(i + 1.0, self.form(last)))
        texts = [t.text for t in found]
        if self.temporal:
            texts = _short_times(texts)
        return [Tick(t.place, text) for t, text in zip(found, texts, strict=True)]


def _short_times(texts: list[str]) -> list[str]:
    """Return days in place of times if no day stands twice, and no seconds if all are 0."""
    days = [t[:10] for t in texts]
    if len(set(days)) == len(days):
        return days
    return (
        [t.removesuffix(":00") for t in texts] if all(t.endswith(":00") for t in texts) else texts
    )


def short(text: str, max_characters: int) -> str:
    """Return a text cut to a number of characters, with its beginning and its end.

    >>> short("Municipality of 012", 12)
    'Municip… 012'
    """
    if len(text) <= max_characters:
        return text
    tail = (max_characters - 1) * 2 // 5
    return f"{text[: max_characters - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - tail :]}"


def pixels(text: str) -> float:
    """Return about how wide a label of a chart is, in the pixels of its drawing, in a wide font.

    >>> pixels("WW") > pixels("mm") - 1 > pixels("ab") > pixels("il")
    True
    """
    return sum(map(_pixels, text))


def _pixels(letter: str) -> float:
    if letter in "mwMW@%" or east_asian_width(letter) in "WF":
        return 12.0
    if letter in " ijl.,;:'|!()-/":
        return 4.6
    return 8.4 if letter.isupper() else 7.3


def cut(text: str, max_pixels: float) -> str:
    """Return a text cut to a width in pixels, with its beginning and its end.

    >>> cut("Municipality of 012", 80), cut("Bern", 80)
    ('Munici… 012', 'Bern')
    """
    lengths = range(len(text), 4, -1)
    return next((s for n in lengths if pixels(s := short(text, n)) <= max_pixels), text[:4])


def plain_number(value: float) -> str:
    """Return a number in few characters; years have no thousands separator.

    >>> plain_number(2026.0), plain_number(25_000.0), plain_number(0.125), plain_number(1.5e6)
    ('2026', '25,000', '0.125', '1.5M')
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.6g}M" if abs(value) < 1e12 else f"{value:.3g}"
    if value == round(value) and abs(value) < 1e4:
        return f"{value:.0f}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _form(column: Numeric, temporal: bool) -> Callable[[float], str]:
    def written(value: float) -> str:
        return str(column.written(np.array([math.floor(value)]), np.array([False]))[0].as_py())

    return written if temporal else plain_number


def _apart(ticks: list[Tick], slot: float, width: float, margin: float) -> list[Tick]:
    """Return every k-th tick and the last one, for the smallest k that leaves room between the texts."""

    def placed(tick: Tick) -> Tick:
        half = _half_width(tick.text)
        return Tick(min(max(tick.place, (half - margin) / slot), (width - half) / slot), tick.text)

    centers = [placed(t) for t in ticks]
    for stride in range(1, len(centers) + 1):
        found = centers[::stride]
        if found[-1] != centers[-1]:
            if len(found) > 1 and not _fit_beside(found[-1], centers[-1], slot):
                found.pop()
            found.append(centers[-1])
        if all(_fit_beside(a, b, slot) for a, b in pairwise(found)):
            return found
    return centers[:1]


def _half_width(text: str) -> float:
    return 3.1 * len(text)


def _fit_beside(one: Tick, other: Tick, slot: float) -> bool:
    room = 8.0
    return (other.place - one.place) * slot >= _half_width(one.text) + _half_width(
        other.text
    ) + room
