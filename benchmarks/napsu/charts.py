"""Charts as SVG text that needs nothing from outside: dots with whiskers by group, curves with bands, intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

Dot = tuple[float, float, float]
"""A value and the ends of its whisker."""

COLOURS = {
    "nuts": ("#17697a", "#5fb8c6"), "laplace": ("#3f8f4f", "#7cc98b"), "naive": ("#c4622d", "#e8925f"),
    "bootstrap": ("#7a4fa3", "#b892dc"), "plain": ("#b39bc9", "#8f74b0"), "pgm5": ("#d3b04c", "#e6cf86"),
    "pgm10": ("#a98212", "#cfae4a"), "pgm20": ("#6f5508", "#a98f45"), "exact": ("#b5366b", "#e283a9"),
    "laplace, one": ("#6a7683", "#9fabb7"), "exact, one": ("#c4622d", "#e8925f"), "real": ("#1f2630", "#e6e8ea"),
}  # fmt: skip

LABELS = {
    "real": "no privacy", "nuts": "NAPSU-MQ, NUTS", "laplace": "NAPSU-MQ, Laplace", "naive": "one PGM table, as real",
    "bootstrap": "bootstrap of PGM", "plain": "the same, bias left in", "pgm5": "5 runs of PGM",
    "pgm10": "10 runs of PGM", "pgm20": "20 runs of PGM", "exact": "without noise-awareness",
    "laplace, one": "without multiple imputation", "exact, one": "with neither",
}  # fmt: skip

_SYMBOLS = {name: f"k{i}" for i, name in enumerate(COLOURS)}
_LIGHT = "".join(f".{_SYMBOLS[n]}{{color:{light}}}" for n, (light, _) in COLOURS.items())
_DARK = "".join(f".{_SYMBOLS[n]}{{color:{dark}}}" for n, (_, dark) in COLOURS.items())
_STYLE = f"""
svg {{ font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; --ink: #1f2630; --soft: #5d6672;
  --line: #e2dfd8; --page: #faf9f6; background: var(--page); }} {_LIGHT}
@media (prefers-color-scheme: dark) {{ svg {{ --ink: #e6e8ea; --soft: #9aa4af; --line: #303841; --page: #14181d; }}
  {_DARK} }}
text {{ fill: var(--ink); }} .s {{ fill: var(--soft); }} .m {{ text-anchor: middle; }} .e {{ text-anchor: end; }}
.a {{ stroke: var(--line); fill: none; }} .n {{ stroke: var(--soft); stroke-dasharray: 4 3; fill: none; }}
.w {{ stroke: currentColor; stroke-width: 1.5; fill: none; }} .d {{ fill: currentColor; }}
.b {{ fill: currentColor; opacity: .14; }} .o {{ opacity: .45; }}
"""

GAP, TOP, FOOT, LEFT, RIGHT = 30, 58, 46, 46, 12


@dataclass(frozen=True)
class Panel:
    """A rectangle with scales: values of x in ``across`` and of y in ``up`` are drawn inside it.

    ``log``: y has a logarithmic scale.
    """

    left: float
    width: float
    height: float
    across: tuple[float, float]
    up: tuple[float, float]
    log: bool = False

    def x(self, value: float) -> float:
        """Where a value lies, kept inside."""
        low, high = self.across
        return self.left + self.width * (min(max(value, low), high) - low) / (high - low)

    def y(self, value: float) -> float:
        """Where a value lies, kept inside."""
        low, high = self.up
        scale: Callable[[float], float] = math.log if self.log else float
        share = (scale(min(max(value, low), high)) - scale(low)) / (scale(high) - scale(low))
        return TOP + self.height * (1 - share)

    def frame(self, title: str, ticks: Sequence[float], labels: Mapping[float, str], below: str) -> list[str]:
        """Title, lines at the ticks of y, and what stands below x."""
        right, foot = self.left + self.width, TOP + self.height
        parts = [f'<text x="{self.left:.1f}" y="{TOP - 12}">{escape(title)}</text>']
        for tick in ticks:
            parts.append(f'<path class="a" d="M{self.left:.1f} {self.y(tick):.1f}H{right:.1f}"/>')
            parts.append(f'<text class="s e" x="{self.left - 6:.1f}" y="{self.y(tick) + 4:.1f}">{tick:g}</text>')
        for value, text in labels.items():
            parts.append(f'<text class="s m" x="{self.x(value):.1f}" y="{foot + 17}">{escape(text)}</text>')
        parts.append(f'<text class="s m" x="{(self.left + right) / 2:.1f}" y="{foot + 35}">{escape(below)}</text>')
        return parts

    def level(self, value: float) -> str:
        """A dashed line across."""
        return f'<path class="n" d="M{self.left:.1f} {self.y(value):.1f}H{self.left + self.width:.1f}"/>'


def panels(
    count: int, width: float, height: float, across: tuple[float, float], up: tuple[float, float]
) -> list[Panel]:
    """Side by side."""
    each = (width - LEFT - RIGHT - (count - 1) * (GAP + LEFT - 10)) / count
    return [Panel(LEFT + i * (each + GAP + LEFT - 10), each, height, across, up) for i in range(count)]


def dots(
    panel: Panel, title: str, groups: Sequence[float], series: Mapping[str, Mapping[float, Dot]],
    ticks: Sequence[float], *, line: float | None = None, below: str = "ε",
) -> list[str]:  # fmt: skip
    """A dot and whisker for every series in every group, side by side."""
    parts = panel.frame(title, ticks, {i + 0.5: f"{g:g}" for i, g in enumerate(groups)}, below)
    parts += [panel.level(line)] if line is not None else []
    for j, (name, values) in enumerate(series.items()):
        inner = []
        for i, group in enumerate(groups):
            if group in values:
                value, low, high = values[group]
                x = panel.x(i + 0.5 + 0.7 * ((j + 0.5) / len(series) - 0.5))
                told = f"<title>{escape(LABELS[name])}, ε = {group:g}: {value:.3g} ({low:.3g} to {high:.3g})</title>"
                inner.append(f'<path class="w" d="M{x:.1f} {panel.y(low):.1f}V{panel.y(high):.1f}"/>')
                inner.append(f'<circle class="d" cx="{x:.1f}" cy="{panel.y(value):.1f}" r="3.6">{told}</circle>')
        parts.append(_group(name, inner))
    return parts


def curves(panel: Panel, title: str, series: Mapping[str, Sequence[tuple[float, Dot]]]) -> list[str]:
    """A curve with a band for every series, against the diagonal."""
    ticks = (0, 0.25, 0.5, 0.75, 1)
    parts = panel.frame(title, ticks, {t: f"{t:g}" for t in ticks}, "level")
    x, y = panel.x, panel.y
    parts.append(f'<path class="n" d="M{x(0):.1f} {y(0):.1f}L{x(1):.1f} {y(1):.1f}"/>')
    for name, points in series.items():
        edge = [(v, d[2]) for v, d in points] + [(v, d[1]) for v, d in reversed(points)]
        inner = [f'<path class="b" d="M{"L".join(f"{x(v):.1f} {y(h):.1f}" for v, h in edge)}Z"/>']
        inner.append(f'<path class="w" d="M{"L".join(f"{x(v):.1f} {y(d[0]):.1f}" for v, d in points)}"/>')
        parts.append(_group(name, inner))
    return parts


def intervals(
    panel: Panel, title: str, name: str, spans: Sequence[tuple[float, float]], truth: float, ticks: Sequence[float]
) -> list[str]:
    """Intervals standing side by side; those that miss the truth are in full colour and the others faint."""
    parts = panel.frame(title, ticks, {}, "repeats")
    inner = []
    for i, (low, high) in enumerate(spans):
        faint = " o" if low <= truth <= high else ""
        inner.append(f'<path class="w{faint}" d="M{panel.x(i + 0.5):.1f} {panel.y(low):.1f}V{panel.y(high):.1f}"/>')
    return [*parts, _group(name, inner), panel.level(truth)]


def picture(names: Sequence[str], parts: Sequence[str], width: float, height: float, what: str) -> str:
    """One file: the key of the series above, the panels below."""
    key, x = [], 8.0
    for name in names:
        label = escape(LABELS[name])
        text = f'<text x="{x + 14:.0f}" y="20">{label}</text>'
        key.append(_group(name, [f'<circle class="d" cx="{x + 5:.0f}" cy="16" r="4"/>']) + text)
        x += 28 + 6.3 * len(LABELS[name])
    tall = TOP + height + FOOT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {tall:g}" role="img"'
        f' aria-label="{escape(what)}"><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" style="fill:var(--page)"/>{"".join(key)}{"".join(parts)}</svg>\n'
    )


def _group(name: str, parts: Sequence[str]) -> str:
    return f'<g class="{_SYMBOLS[name]}">{"".join(parts)}</g>'
