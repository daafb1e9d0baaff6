"""Grids: the counts of a pair, a number for each pair of columns, and the map of the pairs that were measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from markupsafe import Markup

from margrave._card import counted
from margrave.report.axes import Axis, Group
from margrave.report.charts.svg import count_text, drawing, element, label, text, tooltip
from margrave.report.labels import pixels, shorten
from margrave.report.scale import Scale
from margrave.report.views import PairView
from margrave.types import Attribute, Clique, FloatArray


def heat(view: PairView) -> Markup:
    """Return the joint counts of two columns as a grid; the color grows with the root of the records."""
    width, max_side = 360, 24
    down, across = (
        axis.groups(max_side, view.counts.sum(axis=1 - i)) for i, axis in enumerate(view.axes)
    )
    down, across, left_out = _without_empty(view, down, across)
    counts = _grouped(view.counts, down, across)
    single = counts[[not g.others for g in down]][:, [not g.others for g in across]]
    top = max(float(single.max()), 1e-12)
    left = min(126.0, 14.0 + max(pixels(g.label) for g in down))
    cell_w, cell_h = (width - left) / len(across), min(22.0, max(13.0, 250 / len(down)))
    parts = []
    for i, one in enumerate(down):
        for j, other in enumerate(across):
            strength = float(np.sqrt(min(max(counts[i, j] / top, 0.0), 1.0)))
            if strength >= 0.01:
                words = f"{one.label}, {other.label}: {count_text(float(counts[i, j]))}"
                parts.append(
                    element(
                        "rect",
                        [tooltip(words)],
                        class_="h",
                        x=left + j * cell_w,
                        y=i * cell_h,
                        width=cell_w,
                        height=cell_h,
                        fill_opacity=round(strength, 2),
                    )
                )
    tall = len(down) * cell_h
    labels = shorten([g.label for g in down], left - 10)
    for i, group in enumerate(down):
        parts.append(label(left - 6, (i + 0.5) * cell_h + 4, labels[i], group.label))
    parts.append(element("rect", class_="f", x=left, y=0, width=width - left, height=tall))
    below, height = _below(view.axes[1], across, left, cell_w, tall)
    most = divmod(int(np.argmax(counts)), len(across))
    largest = f"Most records: {down[most[0]].label} with {across[most[1]].label}, {count_text(float(counts.max()))}."
    return drawing(
        f"Joint counts of {' and '.join(view.names)}",
        " ".join([largest, *left_out]),
        width,
        height,
        [*parts, *below],
    )


def _without_empty(
    view: PairView, down: Sequence[Group], across: Sequence[Group]
) -> tuple[list[Group], list[Group], list[str]]:
    """Return the groups without the open category and the missing state if empty, and sentences on these."""
    shown, sentences = [], []
    for i, groups in enumerate((down, across)):
        records, rest = view.counts.sum(axis=1 - i), set(view.axes[i].rest)
        empty = [
            g for g in groups if rest.issuperset(g.codes) and records[list(g.codes)].sum() < 0.5
        ]
        shown.append([g for g in groups if g not in empty])
        if empty:
            labels = ", ".join(g.label for g in empty)
            sentences.append(f"Left out of {view.names[i]}, without records: {labels}.")
    return shown[0], shown[1], sentences


def _below(
    axis: Axis, groups: Sequence[Group], left: float, cell: float, tall: float
) -> tuple[list[Markup], float]:
    """Return the labels below a grid, and the height with them: ticks on a line, upright texts else."""
    max_upright = 100.0
    if axis.spans:
        ticks = Scale.equal(axis, groups, cell * len(groups)).ticks(left)
        return [text(left + t.place, tall + 15, t.text) for t in ticks], tall + 22
    labels = shorten([g.label for g in groups], max_upright)
    if all(pixels(words) <= cell - 4 for words in labels):
        middles = [left + (j + 0.5) * cell for j in range(len(groups))]
        return [text(x, tall + 15, w) for x, w in zip(middles, labels, strict=True)], tall + 22
    return [
        _upright(left + (j + 0.5) * cell, tall + 6, words) for j, words in enumerate(labels)
    ], tall + 14 + max(map(pixels, labels))


def _upright(x: float, y: float, words: str) -> Markup:
    return element(
        "text",
        words,
        class_="t",
        text_anchor="end",
        transform=f"translate({x + 4:.1f} {y:.1f}) rotate(-90)",
    )


def matrix(
    names: Sequence[Attribute], values: FloatArray, *, title: str, signed: bool = False
) -> Markup:
    """Return a number from 0 to 1 for each pair of columns as a grid; of ``signed`` ones the largest is strongest.

    Args:
        names: The columns.
        values: ``values[i, j]`` of columns i and j, of which the lower half is shown.
        title: The title of the grid.
        signed: Whether negative values have a color of their own, with a corner cut off.
    """
    pairs = list(combinations(range(len(names)), 2))
    furthest = max(pairs, key=lambda p: abs(float(values[p[0], p[1]])), default=None)

    top = max(float(np.abs(values).max(initial=0.0)), 1e-9) if signed else 1.0

    def cell(i: int, j: int, x: float, y: float, side: float) -> Markup:
        value = float(values[i, j])
        words = tooltip(
            f"{names[i]}, {names[j]}: {value:+z.2f}"
            if signed
            else f"{names[i]}, {names[j]}: {value:.2f}"
        )
        strength = round(min(abs(value) / top, 1.0), 3)
        style = "n" if signed and value < 0 else "h"
        if style == "n":
            path = f"M{x:.1f} {y:.1f}h{side:.1f}v{side * 0.6:.1f}l{-side * 0.4:.1f} {side * 0.4:.1f}h{-side * 0.6:.1f}z"
            return element("path", [words], class_="n", d=path, fill_opacity=strength)
        return element(
            "rect", [words], class_="h", x=x, y=y, width=side, height=side, fill_opacity=strength
        )

    described = (
        ""
        if furthest is None
        else (
            f"The largest: {names[furthest[0]]} with {names[furthest[1]]},"
            f" {float(values[furthest[0], furthest[1]]):z.2f}."
        )
    )
    return _triangle(names, cell, title, f"{counted(len(pairs), 'pair')} of columns. {described}")


def pair_map(names: Sequence[Attribute], evidence: Mapping[Clique, str]) -> Markup:
    """Return the map of all pairs of columns: measured, measured in part, public, or indirect.

    Args:
        names: The columns.
        evidence: "measured", "in part" or "public" by pair, in the order of ``names``; other pairs are indirect.
    """

    def cell(i: int, j: int, x: float, y: float, side: float) -> Markup:
        kind = evidence.get((names[j], names[i]), "indirect")
        words = tooltip(f"{names[j]}, {names[i]}: {kind}")
        half = side / 2
        if kind == "measured":
            return element("rect", [words], class_="m", x=x, y=y, width=side, height=side)
        if kind == "indirect":
            return element("circle", [words], class_="o", cx=x + half, cy=y + half, r=1.2)
        path = f"M{x:.1f} {y + side:.1f}v{-side:.1f}h{side:.1f}z"
        style = "p" if kind == "public" else "m"
        return element("path", [words], class_=style, d=path)

    measured = sum(kind == "measured" for kind in evidence.values())
    pairs = len(names) * (len(names) - 1) // 2
    were = "was" if measured == 1 else "were"
    described = f"{measured:,} of {counted(pairs, 'pair')} of columns {were} measured together."
    return _triangle(names, cell, "Map of all pairs of columns", described)


def _triangle(
    names: Sequence[Attribute],
    cell: Callable[[int, int, float, float, float], Markup],
    title: str,
    description: str,
) -> Markup:
    """Return the lower half of a grid of columns, each row with its name and each column with its name below."""
    side, gap = (
        (26.0, 2.0) if len(names) <= 12 else (17.0, 1.5) if len(names) <= 26 else (14.0, 1.0)
    )
    labels = shorten(names, 150.0)
    left = 14.0 + max(map(pixels, labels))
    parts = []
    for i, words in enumerate(labels):
        y = i * side
        parts.append(text(left - 6, y + side / 2 + 4, words, "l", "end"))
        parts += [cell(i, j, left + j * side, y, side - gap) for j in range(i)]
    tall = len(names) * side
    parts += [_upright(left + (j + 0.5) * side, tall + 4, w) for j, w in enumerate(labels)]
    return drawing(title, description, left + len(names) * side + 4, tall + left, parts, fixed=True)


def _grouped(counts: FloatArray, down: Sequence[Group], across: Sequence[Group]) -> FloatArray:
    rows = np.stack([counts[list(g.codes)].sum(axis=0) for g in down])
    return np.stack([rows[:, list(g.codes)].sum(axis=1) for g in across], axis=1)
