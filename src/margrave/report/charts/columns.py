"""Charts of one column: counts with their noise, and real and synthetic shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from markupsafe import Markup

from margrave._card import counted
from margrave.ratios import percent
from margrave.report.axes import Axis, Group
from margrave.report.charts.svg import count_text, drawing, element, label, text, tooltip
from margrave.report.labels import cut, pixels, shorten
from margrave.report.scale import Scale
from margrave.report.views import ColumnView, OverlayView
from margrave.types import FloatArray


def bars(view: ColumnView) -> Markup:
    """Return a column's counts: a bar for the model, a dot and a line for the noisy count and its interval.

    Columns of many categories show the largest, and the sum of the others as one bar.
    """
    first = view.model if view.model is not None else view.measured
    chart = _Chart.of(view.axis, first, _Chart.counts_text(view.labels, first))
    series = []
    if view.model is not None:
        series.append(_Series("b", "the model", view.model))
    if view.measured is not None:
        series.append(_Series("", "the noisy count", view.measured, view.error))
    return chart.draw(view.name, series, _Amount("Counts", "records", count_text, _level_text))


def overlay(view: OverlayView) -> Markup:
    """Return a column's real and synthetic shares, one beside the other."""
    chart = _Chart.of(view.axis, view.real, _Chart.shares_text(view))
    series = [_Series("b", "real", view.real), _Series("s", "synthetic", view.synthetic)]
    amount = _Amount("Real and synthetic shares", "share", _percent, _percent)
    return chart.draw(view.name, series, amount)


def _percent(share: float) -> str:
    return percent(share, ".0f" if share >= 0.095 else ".2g")


def _level_text(count: float) -> str:
    return count_text(count) if count >= 10 or count == round(count) else f"{count:.2g}"


class _Amount(NamedTuple):
    """The amount that bars show: its title and its name, and the texts of a bar and of a level."""

    title: str
    words: str
    form: Callable[[float], str]
    level: Callable[[float], str]


@dataclass(frozen=True, eq=False)
class _Series:
    """Numbers by code, as bars of a class, or as dots with an interval."""

    style: str
    words: str
    values: FloatArray
    error: float = 0.0

    def of(self, group: Group) -> float:
        return float(self.values[list(group.codes)].sum())

    def error_of(self, group: Group) -> float:
        return self.error * float(np.sqrt(len(group.codes)))

    def ends(self, group: Group) -> tuple[float, float, float]:
        value, error = self.of(group), self.error_of(group)
        return value - error, value, value + error


@dataclass(frozen=True, eq=False)
class _Chart:
    """A chart's axis, its bars and its description."""

    axis: Axis
    groups: Sequence[Group]
    description: str

    width: ClassVar[int] = 360
    max_lying: ClassVar[int] = 30
    max_standing: ClassVar[int] = 120
    max_lying_if_ordered: ClassVar[int] = 12

    @classmethod
    def of(cls, axis: Axis, weights: FloatArray | None, description: str) -> _Chart:
        most = cls.max_standing if axis.ordered else cls.max_lying
        return cls(axis, axis.groups(most, weights), description)

    @staticmethod
    def counts_text(labels: Sequence[str], values: FloatArray | None) -> str:
        if values is None:
            return f"{counted(len(labels), 'value')}; no counts."
        top = np.argsort(-values, kind="stable")[:3]
        largest = "; ".join(f"{labels[i]}: {count_text(float(values[i]))}" for i in top)
        return f"{counted(len(labels), 'value')}. Largest counts: {largest}."

    @staticmethod
    def shares_text(view: OverlayView) -> str:
        furthest = int(np.argmax(np.abs(view.real - view.synthetic)))
        if view.real[furthest] == view.synthetic[furthest]:
            return f"{counted(len(view.axis.labels), 'value')}. All shares are equal."
        return (
            f"{counted(len(view.axis.labels), 'value')}. The largest difference is at {view.axis.labels[furthest]}:"
            f" {percent(float(view.real[furthest]), '.3g')} real,"
            f" {percent(float(view.synthetic[furthest]), '.3g')} synthetic."
        )

    def draw(self, name: str, series: Sequence[_Series], amount: _Amount) -> Markup:
        standing = bool(self.axis.spans) or (
            self.axis.ordered and len(self.groups) > self.max_lying_if_ordered
        )
        return (self._standing if standing else self._lying)(name, series, amount)

    def _lying(self, name: str, series: Sequence[_Series], amount: _Amount) -> Markup:
        stripes = [s for s in series if s.style]
        row, thick = (20, 13) if len(stripes) < 2 else (25, 9)
        left = min(160.0, 16.0 + max(pixels(g.label) for g in self.groups))
        room = self.width - left - 52
        top = max([1e-12, *(s.ends(g)[2] for s in series for g in self.groups if not g.others)])
        parts = []
        labels = shorten([g.label for g in self.groups], left - 12)
        for i, g in enumerate(self.groups):
            y = i * row
            parts.append(label(left - 8, y + row / 2 + 4, labels[i], g.label))
            for k, s in enumerate([] if g.others else stripes):
                tall = _fit(s.of(g), top, room)
                parts.append(
                    element(
                        "rect",
                        [tooltip(self._words(g, series, amount.form))],
                        class_=s.style,
                        x=left,
                        y=y + 3 + k * (thick + 1),
                        width=tall,
                        height=thick,
                        rx=2,
                    )
                )
            parts += [
                _whisker_across(s, g, top, room, left, y + row / 2)
                for s in series
                if not s.style and not g.others
            ]
            parts.append(
                text(self.width, y + row / 2 + 4, amount.form(series[0].of(g)), "v", "end")
                if series
                else Markup("")
            )
        parts.insert(0, element("path", class_="a", d=f"M{left:.1f} 0V{len(self.groups) * row}"))
        title = f"{amount.title} of {name}"
        return drawing(title, self.description, self.width, len(self.groups) * row + 4, parts)

    def _words(self, group: Group, series: Sequence[_Series], form: Callable[[float], str]) -> str:
        said = [
            f"{s.words} {form(s.of(group))}"
            + (f" \N{PLUS-MINUS SIGN} {form(s.error_of(group))}" if s.error else "")
            for s in series
        ]
        return f"{group.label}: {', '.join(said)}"

    def _standing(self, name: str, series: Sequence[_Series], amount: _Amount) -> Markup:
        on_line = [
            g for g in self.groups if not self.axis.spans or g.codes[0] < len(self.axis.spans)
        ]
        left = 40.0
        wide = self.width - left - 6
        scale = Scale.of(self.axis, on_line, wide)
        places = list(zip(on_line, scale.starts + left, scale.widths, scale.sizes, strict=True))
        caption = scale.caption(amount.words, cut(name, 150.0))
        height, head = 132, 30
        base = head + height
        top = max([1e-12, *(s.ends(g)[2] / size for s in series for g, _, _, size in places)])
        parts = [text(0, 10, caption or amount.words, "t", "start")]
        for level in _levels(top):
            y = base - _fit(level, top, height)
            parts.append(element("path", class_="g", d=f"M{left:.0f} {y:.1f}H{self.width}"))
            parts.append(text(left - 5, y + 4, amount.level(level), "t", "end"))
        for g, x, slot, size in places:
            for s in series:
                tall = _fit(s.of(g) / size, top, height)
                gap = min(slot * 0.06, 0.5)
                if s.style == "b":
                    bar = {"x": x + gap, "width": slot - 2 * gap, "height": tall}
                    words = tooltip(self._words(g, series, amount.form))
                    parts.append(element("rect", [words], class_="b", y=base - tall, **bar))
                elif not s.style:
                    ends = [base - _fit(v / size, top, height) for v in s.ends(g)]
                    parts.append(_whisker_up(ends, x + slot / 2, slot))
        for s in series:
            if s.style == "s":
                steps = (
                    f"V{base - _fit(s.of(g) / size, top, height):.1f}h{slot:.2f}"
                    for g, _, slot, size in places
                )
                outline = f"M{left:.1f} {base}{''.join(steps)}V{base}"
                parts.append(element("path", class_="s", d=outline))
        parts.append(element("path", class_="a", d=f"M{left:.0f} {base}H{self.width}"))
        parts += [text(left + t.place, base + 16, t.text) for t in scale.ticks(left)]
        missing = [self._words(g, series, amount.form) for g in self.groups if g not in on_line]
        parts += [text(self.width, base + 31, words, "t", "end") for words in missing]
        return drawing(
            f"{amount.title} of {name}",
            f"{self.description} {caption}".strip(),
            self.width,
            base + (36 if missing else 21),
            parts,
        )


def _whisker_across(
    series: _Series, group: Group, top: float, room: float, left: float, y: float
) -> Markup:
    low, value, high = (left + _fit(v, top, room) for v in series.ends(group))
    dot = element("circle", class_="d", cx=f"{value:.1f}", cy=f"{y:.1f}", r=2.6)
    return element("path", class_="w", d=f"M{low:.1f} {y:.1f}H{high:.1f}") + dot


def _whisker_up(ends: Sequence[float], x: float, slot: float) -> Markup:
    low, value, high = ends
    radius = min(2.4, max(slot / 3, 0.8))
    dot = element("circle", class_="d", cx=f"{x:.1f}", cy=f"{value:.1f}", r=radius)
    return element("path", class_="w", d=f"M{x:.1f} {low:.1f}V{high:.1f}") + dot


def _levels(top: float) -> list[float]:
    """Return two to five round numbers from 0 to the highest bar."""
    power = 10.0 ** np.floor(np.log10(top))
    step = next(m * power for m in (0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0) if top / (m * power) <= 4.5)
    return [float(v) for v in np.arange(0.0, top * 1.001, step)]


def _fit(value: float, top: float, room: float) -> float:
    return min(max(value / top, 0.0), 1.04) * room
