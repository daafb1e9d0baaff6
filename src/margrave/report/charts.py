"""Charts as inline SVG text: bars with the noise beside them, and heat maps. Colors come from the page's style."""

from __future__ import annotations

from html import escape

import numpy as np

from margrave.report.views import ColumnView, PairView
from margrave.types import AnyArray, FloatArray

WIDTH = 360


def bars(view: ColumnView) -> str:
    """Return a column's counts: a bar for the model, a dot and a line for the noisy answer and its
    interval.
    """
    max_standing = 16
    labels, model, measured, error = _coarse(view)
    shown = [v for v in (model, measured) if v is not None]
    top = max([1.0, *(float(v.max()) for v in shown)])
    drawing = _lying if len(labels) <= max_standing else _standing
    return drawing(view.name, labels, model, measured, error, top)


def _coarse(view: ColumnView) -> tuple[list[str], FloatArray | None, FloatArray | None, float]:
    max_bars = 120
    step = -(-len(view.labels) // max_bars)
    if step == 1:
        return view.labels, view.model, view.measured, view.error
    starts = np.arange(0, len(view.labels), step)
    model = None if view.model is None else np.add.reduceat(view.model, starts)
    measured = None if view.measured is None else np.add.reduceat(view.measured, starts)
    return _spans(view.labels, starts), model, measured, view.error * float(np.sqrt(step))


def _spans(labels: list[str], starts: AnyArray) -> list[str]:
    ends = [*starts[1:], len(labels)]
    return [
        labels[a] if b - a == 1 else f"{labels[a]} \N{HORIZONTAL ELLIPSIS} {labels[b - 1]}"
        for a, b in zip(starts, ends, strict=True)
    ]


def _lying(
    name: str,
    labels: list[str],
    model: FloatArray | None,
    measured: FloatArray | None,
    error: float,
    top: float,
) -> str:
    label_width = 120
    row = 19
    left = min(label_width, 14.0 + 6.8 * max(len(label) for label in labels))
    room = WIDTH - left - 52
    parts = []
    for i, label in enumerate(labels):
        y = i * row
        parts.append(
            f'<text class="l" x="{left - 8:.0f}" y="{y + 13}">{escape(_short(label, 17))}</text>'
        )
        value = 0.0
        if model is not None:
            value = float(model[i])
            parts.append(
                f'<rect class="b" x="{left:.1f}" y="{y + 3}" width="{_fit(value, top, room):.1f}" height="12" rx="2"/>'
            )
        if measured is not None:
            value = float(measured[i]) if model is None else value
            parts.append(_whisker_across(float(measured[i]), error, (left, top, room), y + 9))
        parts.append(f'<text class="v" x="{WIDTH}" y="{y + 13}">{_count(value)}</text>')
    return _svg(f"Counts of {name}", len(labels) * row + 4, parts)


def _whisker_across(value: float, error: float, axis: tuple[float, float, float], y: float) -> str:
    left, top, room = axis
    low, mid, high = (left + _fit(v, top, room) for v in (value - error, value, value + error))
    return f'<path class="w" d="M{low:.1f} {y}H{high:.1f}"/><circle class="d" cx="{mid:.1f}" cy="{y}" r="2.6"/>'


def _standing(
    name: str,
    labels: list[str],
    model: FloatArray | None,
    measured: FloatArray | None,
    error: float,
    top: float,
) -> str:
    height, slot = 140, WIDTH / len(labels)
    parts = [f'<path class="a" d="M0 {height}H{WIDTH}"/>']
    for i in range(len(labels)):
        x = i * slot
        if model is not None:
            tall = _fit(float(model[i]), top, height - 20)
            parts.append(
                f'<rect class="b" x="{x + slot * 0.1:.2f}" y="{height - tall:.1f}" width="{slot * 0.8:.2f}"'
                f' height="{tall:.1f}"><title>{escape(labels[i])}</title></rect>'
            )
        if measured is not None:
            parts.append(
                _whisker_up(
                    float(measured[i]), error, top, height, x + slot / 2, min(2.4, slot / 3)
                )
            )
    for i in sorted({0, len(labels) // 2, len(labels) - 1}):
        anchor = "start" if i == 0 else "end" if i == len(labels) - 1 else "middle"
        x = min(max((i + 0.5) * slot, 0), WIDTH)
        label = escape(_short(labels[i].split(" to ")[0], 16))
        parts.append(
            f'<text class="t" x="{x:.1f}" y="{height + 15}" text-anchor="{anchor}">{label}</text>'
        )
    parts.append(
        f'<text class="t" x="{WIDTH}" y="10" text-anchor="end">highest {_count(top)}</text>'
    )
    return _svg(f"Counts of {name}", height + 22, parts)


def _whisker_up(
    value: float, error: float, top: float, height: float, x: float, radius: float
) -> str:
    low, mid, high = (
        height - _fit(v, top, height - 20) for v in (value - error, value, value + error)
    )
    return (
        f'<path class="w" d="M{x:.1f} {low:.1f}V{high:.1f}"/>'
        f'<circle class="d" cx="{x:.1f}" cy="{mid:.1f}" r="{radius:.1f}"/>'
    )


def heat(view: PairView) -> str:
    """Return the joint counts of two columns as a grid; the color grows with the root of the
    records.
    """
    down, across = view.labels
    counts, down = _coarse_axis(view.counts, down, 0)
    counts, across = _coarse_axis(counts, across, 1)
    top = max(float(counts.max()), 1e-12)
    left, side = 84, WIDTH - 84
    cell_w, cell_h = side / len(across), min(22.0, max(5.0, 240 / len(down)))
    parts = []
    for i in range(len(down)):
        for j in range(len(across)):
            strength = float(np.sqrt(max(counts[i, j], 0.0) / top))
            if strength >= 0.01:
                parts.append(
                    f'<rect class="h" x="{left + j * cell_w:.1f}" y="{i * cell_h:.1f}" width="{cell_w:.2f}"'
                    f' height="{cell_h:.2f}" fill-opacity="{strength:.2f}"/>'
                )
    tall = len(down) * cell_h
    every = max(1, int(np.ceil(12 / cell_h)))
    for i in range(0, len(down), every):
        label = escape(_short(down[i].split(" to ")[0], 12))
        parts.append(
            f'<text class="l" x="{left - 6}" y="{(i + 0.5) * cell_h + 4:.1f}">{label}</text>'
        )
    ends = [(0, "start"), (len(across) - 1, "end")] if len(across) > 1 else [(0, "start")]
    for j, anchor in ends:
        x = left if anchor == "start" else WIDTH
        label = escape(_short(across[j].split(" to ")[0], 18))
        parts.append(
            f'<text class="t" x="{x}" y="{tall + 15:.1f}" text-anchor="{anchor}">{label}</text>'
        )
    parts.append(f'<rect class="f" x="{left}" y="0" width="{side}" height="{tall:.1f}"/>')
    return _svg(f"Joint counts of {' and '.join(view.names)}", tall + 22, parts)


def _coarse_axis(counts: FloatArray, labels: list[str], axis: int) -> tuple[FloatArray, list[str]]:
    max_side = 40
    step = -(-len(labels) // max_side)
    if step == 1:
        return counts, labels
    starts = np.arange(0, len(labels), step)
    return np.add.reduceat(counts, starts, axis=axis), _spans(labels, starts)


def _svg(title: str, height: float, parts: list[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'


def _fit(value: float, top: float, room: float) -> float:
    return min(max(value / top, 0.0), 1.04) * room


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _count(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{value:.0f}"
