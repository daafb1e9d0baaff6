"""The places of bars side by side: as wide as their bins where each can be seen, and ticks with real values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from margrave.report.axes import Axis, Group
from margrave.report.labels import plain_number, shorten
from margrave.schema.numeric import UNITS
from margrave.types import FloatArray


class Tick(NamedTuple):
    """A place on an axis, in pixels from its start, and its text."""

    place: float
    text: str


@dataclass(frozen=True, eq=False)
class Scale:
    """The places of bars along an axis.

    Args:
        axis: The axis.
        groups: The bars. The missing state has no place on a number line and comes last.
        width: Width of all bars together, in pixels.
        starts: The start of each bar, in pixels.
        widths: The width of each bar, in pixels.
        sizes: The length of each bar in units; 1 if its height is its number of records.
        unit: The unit in words, such as "10 days"; empty if heights are numbers of records.
        linear: Whether a pixel is the same length of the number line everywhere.
    """

    axis: Axis
    groups: Sequence[Group]
    width: float
    starts: FloatArray
    widths: FloatArray
    sizes: FloatArray
    unit: str = ""
    linear: bool = True

    @staticmethod
    def of(axis: Axis, groups: Sequence[Group], width: float) -> Scale:
        """Return the scale of bars: as wide as their bins if these differ and the narrowest can be seen.

        >>> from margrave.schema import Integer
        >>> axis = Axis.of(Integer("age", 0, 99, edges=[20, 30]))
        >>> scale = Scale.of(axis, axis.groups(9), 300.0)
        >>> scale.widths.tolist(), scale.sizes.tolist(), scale.unit
        ([60.0, 30.0, 210.0], [2.0, 1.0, 7.0], '10')
        """
        min_pixels = 2.0
        equal = Scale.equal(axis, groups, width)
        if equal.linear or len(equal._cells()) < len(groups):
            return equal
        lows, highs = equal._cells().T
        lengths, length = highs - lows, highs[-1] - lows[0]
        pixels = lengths * width / length
        if pixels.min() < min_pixels or (lows[1:] < highs[:-1]).any():
            return equal
        one, unit = _unit(axis, float(lengths.min()))
        starts = (lows - lows[0]) * width / length
        return Scale(axis, groups, width, starts, pixels, lengths / one, unit)

    @staticmethod
    def equal(axis: Axis, groups: Sequence[Group], width: float) -> Scale:
        """Return the scale of bars that are equally wide."""
        ones, slot = np.ones(len(groups)), width / max(len(groups), 1)
        starts = np.arange(len(groups), dtype=np.float64) * slot
        found = Scale(axis, groups, width, starts, ones * slot, ones)
        return replace(found, linear=found._even())

    def _cells(self) -> FloatArray:
        """Return the start and the stop of the bars on the number line."""
        spans = self.axis.spans
        return np.array([
            (spans[g.codes[0]].first, spans[g.codes[-1]].last + self.axis.whole)
            for g in self.groups
            if g.codes[0] < len(spans)
        ]).reshape(-1, 2)  # fmt: skip

    def _even(self) -> bool:
        lengths = np.diff(self._cells())
        return not lengths.size or bool(np.ptp(lengths) <= 0.02 * lengths.max())

    def caption(self, amount: str, name: str) -> str:
        """Return what the heights are, in words; empty for the amounts of equal bins.

        Args:
            amount: What is counted, such as "records".
            name: The column.
        """
        if self.unit:
            return f"{amount} per {self.unit} of {name}"
        return "" if self.linear else f"{amount}. Bars are equally wide, those of wider bins too."

    def ticks(self, margin: float = 0.0) -> list[Tick]:
        """Return ticks that do not overlap, the missing state not among them.

        Args:
            margin: Room to the left of the bars, into which the first text may reach.
        """
        found = self._ticks()
        if self.axis.unit:
            found[-1] = Tick(found[-1].place, f"{found[-1].text}{self.axis.unit}")
        return _apart(found, self.width, margin)

    def _ticks(self) -> list[Tick]:
        max_pixels = 100.0
        cells, middles = self._cells(), self.starts + self.widths / 2
        if not self.axis.spans:
            texts = shorten([self.axis.labels[g.codes[0]] for g in self.groups], max_pixels)
            return [Tick(*tick) for tick in zip(middles.tolist(), texts, strict=True)]
        spans = [
            (self.axis.spans[g.codes[0]].first, self.axis.spans[g.codes[-1]].last)
            for g in self.groups[: len(cells)]
        ]
        single = [first == last for first, last in spans]
        if self.linear and not self.axis.seconds and len(cells) > 3 and not all(single):
            return self._round(cells[0, 0], cells[-1, 1], 0.5 if any(single) else 0.0)
        ends = self.starts + self.widths
        found = [
            Tick(float(middles[i] if single[i] else self.starts[i]), self.axis.form(spans[i][0]))
            for i in range(len(cells))
        ]
        if not single[-1]:
            found.append(Tick(float(ends[len(cells) - 1]), self.axis.form(spans[-1][1])))
        if self.axis.seconds:
            texts = _short_times([t.text for t in found])
            found = [Tick(t.place, text) for t, text in zip(found, texts, strict=True)]
        return found

    def _round(self, low: float, high: float, middle: float) -> list[Tick]:
        """Return round values; ``middle`` is where a value stands in the room of 1 that it takes."""
        rough = (high - low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        steps = [m * power for m in (1, 2, 2.5, 5, 10, 20)]
        step = next(s for s in steps if s >= rough and (s == round(s) or not self.axis.whole))
        values = np.arange(math.ceil(low / step - 1e-9) * step, high - middle + 1e-9 * step, step)
        ends = self.starts + self.widths
        room = ends[len(self._cells()) - 1] / (high - low)
        return [Tick((float(v) + middle - low) * room, self.axis.form(float(v))) for v in values]


def _unit(axis: Axis, shortest: float) -> tuple[float, str]:
    """Return a round length of the number line, at most that of the shortest bar, and its name."""
    base, name = 1.0, axis.unit.strip().removesuffix("s")
    if axis.seconds:
        name = max((u for u in UNITS if UNITS[u] <= shortest * axis.seconds), key=UNITS.__getitem__)
        base = UNITS[name] / axis.seconds
    power = 10.0 ** math.floor(math.log10(shortest / base) + 1e-9)
    if power == 1 and axis.whole:
        return base, name or "value"
    named = f" {name}{'s' * (power != 1)}" if name else ""
    return power * base, f"{plain_number(power)}{named}"


def _short_times(texts: list[str]) -> list[str]:
    """Return days in place of times if no day stands twice, and no seconds if all are 0."""
    days = [t[:10] for t in texts]
    if len(set(days)) == len(days):
        return days
    return (
        [t.removesuffix(":00") for t in texts] if all(t.endswith(":00") for t in texts) else texts
    )


def _apart(ticks: list[Tick], width: float, margin: float) -> list[Tick]:
    """Return every k-th tick and the last one, for the smallest k that leaves room between the texts."""

    def placed(tick: Tick) -> Tick:
        half = _half_width(tick.text)
        return Tick(min(max(tick.place, half - margin), width - half), tick.text)

    centers = [placed(t) for t in ticks]
    for stride in range(1, len(centers) + 1):
        found = centers[::stride]
        if found[-1] != centers[-1]:
            if len(found) > 1 and not _fit_beside(found[-1], centers[-1]):
                found.pop()
            found.append(centers[-1])
        if all(_fit_beside(a, b) for a, b in pairwise(found)):
            return found
    return centers[:1]


def _half_width(text: str) -> float:
    return 3.1 * len(text)


def _fit_beside(one: Tick, other: Tick) -> bool:
    room = 8.0
    return other.place - one.place >= _half_width(one.text) + _half_width(other.text) + room
