"""Values within bins that keep a declared order: drawn evenly from those pairs of values that are in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from margrave.schema.numeric import Numeric
from margrave.schema.parsing import Mask
from margrave.types import FloatArray, IntArray

Drawn = tuple[FloatArray, Mask]


def sample_in_order(
    columns: Sequence[Numeric],
    codes: Sequence[IntArray],
    rng: np.random.Generator,
    settled: Mapping[int, Drawn] | None = None,
) -> list[Drawn]:
    """Return points for the codes of columns that are ordered from first to last, and which are
    missing.

    Rows out of order are redrawn in all columns but the ``settled`` ones, whose points are given.
    After all rounds (bins that hardly overlap) the rest gets the least values in order. Codes
    must be possible under the order. If a settled value leaves no room in another column's bin,
    that column leaves its bin.
    """
    # Number of times that values out of order are redrawn. Two values of one bin are in order
    # with probability 1/2 or more.
    rounds = 50
    settled = settled or {}
    found = [
        settled[i] if i in settled else c.draw_points(own, rng)
        for i, (c, own) in enumerate(zip(columns, codes, strict=True))
    ]
    for _ in range(rounds):
        wrong = np.flatnonzero(out_of_order(found))
        if not wrong.size:
            return found
        for i, (column, own, (values, _)) in enumerate(zip(columns, codes, found, strict=True)):
            if i not in settled:
                values[wrong] = column.draw_points(own[wrong], rng)[0]
    wrong = np.flatnonzero(out_of_order(found))
    below, floor = np.full(wrong.size, -np.inf), np.full(wrong.size, -np.inf)
    for i, (column, own, (values, null)) in enumerate(zip(columns, codes, found, strict=True)):
        empty = null[wrong]
        if i in settled:
            floor = np.where(empty, floor, np.maximum(floor, values[wrong]))
        else:
            least, greatest = (e[np.where(empty, 0, own[wrong])] for e in column.cells.extremes)
            # the last may be above a hole that an atom leaves in its bin; of three or more columns none has atoms
            chosen = greatest if i == len(columns) - 1 else np.maximum(least, below)
            chosen = np.minimum(chosen, greatest)
            for j, (later, gone) in settled.items():
                chosen = np.where(gone[wrong] | (j < i), chosen, np.minimum(chosen, later[wrong]))
            values[wrong] = np.where(empty, values[wrong], np.maximum(chosen, floor))
        below = np.where(empty, below, np.maximum(below, values[wrong]))
    return found


def out_of_order(found: Sequence[Drawn]) -> Mask:
    """Return which rows have a value below one of an earlier column. Missing values are ignored."""
    highest = np.full(len(found[0][0]), -np.inf)
    wrong = np.zeros(len(highest), dtype=np.bool_)
    for values, null in found:
        wrong |= ~null & (values < highest)
        highest = np.where(null, highest, np.maximum(highest, values))
    return wrong
