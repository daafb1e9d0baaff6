"""Charts as SVG text that needs nothing from outside: dots with whiskers, lines, curves with bands, intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.core.suite import Contender

Dot = tuple[float, float, float]
"""A value and the ends of its whisker."""

GAP, TOP, FOOT, LEFT, RIGHT = 30, 58, 46, 46, 12
KEY_LINE = 18


@dataclass(frozen=True)
class Legend:
    """The series of a page's charts: what they are called, and their colors on a light and on a dark page."""

    labels: Mapping[str, str]
    colors: Mapping[str, tuple[str, str]]

    @staticmethod
    def of(contenders: Mapping[str, Contender]) -> Legend:
        """Return the legend of a suite's contenders."""
        labels = {name: contender.label for name, contender in contenders.items()}
        return Legend(labels, {name: c.colors for name, c in contenders.items() if c.colors})

    def group(self, name: str, parts: Sequence[str]) -> str:
        """Return parts in the color of a series."""
        return f'<g class="k{list(self.colors).index(name)}">{"".join(parts)}</g>'

    def key(self, names: Sequence[str], width: float) -> str:
        """Return a dot and the label of each series, in as many lines as the width needs."""
        key, x, y = [], 8.0, 20
        for name in names:
            long = 28 + 6.3 * len(self.labels[name])
            if x + long - 14 > width:
                x, y = 8.0, y + KEY_LINE
            text = f'<text x="{x + 14:.0f}" y="{y}">{escape(self.labels[name])}</text>'
            key.append(
                self.group(name, [f'<circle class="d" cx="{x + 5:.0f}" cy="{y - 4}" r="4"/>'])
                + text
            )
            x += long
        return "".join(key)

    def style(self) -> str:
        """Return the style sheet of a picture."""
        light, dark = (
            "".join(f".k{i}{{color:{pair[shade]}}}" for i, pair in enumerate(self.colors.values()))
            for shade in (0, 1)
        )
        return f"""
svg {{ font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; --ink: #1f2630; --soft: #5d6672;
  --line: #e2dfd8; --page: #faf9f6; background: var(--page); }} {light}
@media (prefers-color-scheme: dark) {{ svg {{ --ink: #e6e8ea; --soft: #9aa4af; --line: #303841; --page: #14181d; }}
  {dark} }}
text {{ fill: var(--ink); }} .s {{ fill: var(--soft); }} .m {{ text-anchor: middle; }} .e {{ text-anchor: end; }}
.a {{ stroke: var(--line); fill: none; }} .n {{ stroke: var(--soft); stroke-dasharray: 4 3; fill: none; }}
.w {{ stroke: currentColor; stroke-width: 1.5; fill: none; }} .d {{ fill: currentColor; }}
.b {{ fill: currentColor; opacity: .14; }} .o {{ opacity: .45; }}
"""


@dataclass(frozen=True)
class Panel:
    """A rectangle with scales: values of x in ``across`` and of y in ``up`` are drawn inside it.

    ``log``: y has a logarithmic scale; ``log_across``: x has.
    """

    left: float
    width: float
    height: float
    across: tuple[float, float]
    up: tuple[float, float]
    log: bool = False
    log_across: bool = False
    top: float = TOP

    def x(self, value: float) -> float:
        """Return where a value lies, clipped to the panel."""
        return self.left + self.width * _share(value, self.across, self.log_across)

    def y(self, value: float) -> float:
        """Return where a value lies, clipped to the panel."""
        return self.top + self.height * (1 - _share(value, self.up, self.log))

    def frame(
        self, title: str, ticks: Sequence[float], labels: Mapping[float, str], below: str
    ) -> list[str]:
        """Return the title, lines at the ticks of y, and the labels of x."""
        right, foot = self.left + self.width, self.top + self.height
        parts = [f'<text x="{self.left:.1f}" y="{self.top - 12}">{escape(title)}</text>']
        for tick in ticks:
            parts.append(f'<path class="a" d="M{self.left:.1f} {self.y(tick):.1f}H{right:.1f}"/>')
            parts.append(
                f'<text class="s e" x="{self.left - 6:.1f}" y="{self.y(tick) + 4:.1f}">{tick:g}</text>'
            )
        for value, text in labels.items():
            parts.append(
                f'<text class="s m" x="{self.x(value):.1f}" y="{foot + 17}">{escape(text)}</text>'
            )
        parts.append(
            f'<text class="s m" x="{(self.left + right) / 2:.1f}" y="{foot + 35}">{escape(below)}</text>'
        )
        return parts

    def level(self, value: float) -> str:
        """Return a dashed line across."""
        return f'<path class="n" d="M{self.left:.1f} {self.y(value):.1f}H{self.left + self.width:.1f}"/>'


def panels(
    count: int, width: float, height: float, across: tuple[float, float], up: tuple[float, float]
) -> list[Panel]:
    """Return panels side by side."""
    each = (width - LEFT - RIGHT - (count - 1) * (GAP + LEFT - 10)) / count
    return [
        Panel(LEFT + i * (each + GAP + LEFT - 10), each, height, across, up) for i in range(count)
    ]


def dots(
    legend: Legend, panel: Panel, title: str, groups: Sequence[float], series: Mapping[str, Mapping[float, Dot]],
    ticks: Sequence[float], *, line: float | None = None, below: str = "ε", labels: Mapping[float, str] | None = None,
) -> list[str]:  # fmt: skip
    """Return a dot and whisker for every series in every group; ``labels`` name the groups."""
    names = {g: f"{g:g}" for g in groups} if labels is None else labels
    parts = panel.frame(title, ticks, {i + 0.5: names[g] for i, g in enumerate(groups)}, below)
    parts += [panel.level(line)] if line is not None else []
    for j, (name, values) in enumerate(series.items()):
        inner = []
        for i, group in enumerate(groups):
            if group in values:
                x = panel.x(i + 0.5 + 0.7 * ((j + 0.5) / len(series) - 0.5))
                where = f"{below} = {names[group]}" if labels is None else names[group]
                inner += _dot(panel, x, values[group], f"{legend.labels[name]}, {where}")
        parts.append(legend.group(name, inner))
    return parts


def lines(
    legend: Legend, panel: Panel, title: str, series: Mapping[str, Mapping[float, Dot]], ticks: Sequence[float],
    labels: Mapping[float, str], *, below: str = "ε",
) -> list[str]:  # fmt: skip
    """Return the dots and whiskers of every series, joined by a line."""
    parts = panel.frame(title, ticks, labels, below)
    for name, values in series.items():
        points = "L".join(
            f"{panel.x(x):.1f} {panel.y(d[0]):.1f}" for x, d in sorted(values.items())
        )
        inner = [f'<path class="w" d="M{points}"/>'] if len(values) > 1 else []
        for x, dot in sorted(values.items()):
            inner += _dot(panel, panel.x(x), dot, f"{legend.labels[name]}, {below} = {x:g}")
        parts.append(legend.group(name, inner))
    return parts


def curves(
    legend: Legend, panel: Panel, title: str, series: Mapping[str, Sequence[tuple[float, Dot]]]
) -> list[str]:
    """Return a curve with a band for every series, against the diagonal."""
    ticks = (0, 0.25, 0.5, 0.75, 1)
    parts = panel.frame(title, ticks, {t: f"{t:g}" for t in ticks}, "level")
    x, y = panel.x, panel.y
    parts.append(f'<path class="n" d="M{x(0):.1f} {y(0):.1f}L{x(1):.1f} {y(1):.1f}"/>')
    for name, points in series.items():
        edge = [(v, d[2]) for v, d in points] + [(v, d[1]) for v, d in reversed(points)]
        inner = [f'<path class="b" d="M{"L".join(f"{x(v):.1f} {y(h):.1f}" for v, h in edge)}Z"/>']
        inner.append(
            f'<path class="w" d="M{"L".join(f"{x(v):.1f} {y(d[0]):.1f}" for v, d in points)}"/>'
        )
        parts.append(legend.group(name, inner))
    return parts


def intervals(
    legend: Legend, panel: Panel, title: str, name: str, spans: Sequence[tuple[float, float]], truth: float,
    ticks: Sequence[float],
) -> list[str]:  # fmt: skip
    """Return intervals side by side, in full color if they miss the truth and faint if not."""
    parts = panel.frame(title, ticks, {}, "repeats")
    inner = []
    for i, (low, high) in enumerate(spans):
        faint = " o" if low <= truth <= high else ""
        inner.append(
            f'<path class="w{faint}" d="M{panel.x(i + 0.5):.1f} {panel.y(low):.1f}V{panel.y(high):.1f}"/>'
        )
    return [*parts, legend.group(name, inner), panel.level(truth)]


def picture(
    legend: Legend,
    names: Sequence[str],
    parts: Sequence[str],
    width: float,
    height: float,
    what: str,
) -> str:
    """Return one file: the key of the series above, the panels below."""
    tall = TOP + height + FOOT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {tall:g}" role="img"'
        f' aria-label="{escape(what)}"><style>{legend.style()}</style>'
        f'<rect width="100%" height="100%" style="fill:var(--page)"/>{legend.key(names, width)}{"".join(parts)}</svg>\n'
    )


def _dot(panel: Panel, x: float, dot: Dot, words: str) -> list[str]:
    """Return a dot, its whisker, and the words that appear over it."""
    value, low, high = dot
    title = f"<title>{escape(words)}: {value:.3g} ({low:.3g} to {high:.3g})</title>"
    return [
        f'<path class="w" d="M{x:.1f} {panel.y(low):.1f}V{panel.y(high):.1f}"/>',
        f'<circle class="d" cx="{x:.1f}" cy="{panel.y(value):.1f}" r="3.6">{title}</circle>',
    ]


def _share(value: float, between: tuple[float, float], log: bool) -> float:
    """Return how far a value lies from the first end to the second, from 0 to 1."""
    low, high = between
    scale: Callable[[float], float] = math.log if log else float
    return (scale(min(max(value, low), high)) - scale(low)) / (scale(high) - scale(low))
