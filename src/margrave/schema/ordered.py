"""Values within bins that keep a declared order: drawn evenly from those pairs of values that are in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from margrave.schema.column import Column
from margrave.schema.constraints import Constraint, Ordered
from margrave.schema.elements import LINES
from margrave.schema.numeric import Numeric
from margrave.schema.numeric import drawn as drawn_one
from margrave.schema.values import Mask
from margrave.typing import FloatArray, IntArray

ROUNDS = 50
"""How often values out of order are drawn again; two of one bin are in order at least every other time."""

Drawn = tuple[FloatArray, Mask]


def decode_in_order(
    constraints: Sequence[Constraint],
    columns: Mapping[str, Column],
    codes: Mapping[str, IntArray],
    rng: np.random.Generator,
    known: Mapping[str, Drawn] | None = None,
) -> dict[str, pa.Array]:
    """Values of the columns on a line that a constraint orders, and of the ``known`` ones; nothing for all others."""
    known = known or {}
    found = {name: _line(columns[name]).written(*points) for name, points in known.items()}
    for constraint in constraints:
        chain = [columns[c] for c in constraint.columns] if isinstance(constraint, Ordered) else []
        lines = [c for c in chain if isinstance(c, LINES)]
        if lines:
            settled = {i: known[c.name] for i, c in enumerate(lines) if c.name in known}
            drawn = drawn_in_order(lines, [codes[c.name] for c in lines], rng, settled)
            found.update({c.name: c.written(*d) for c, d in zip(lines, drawn, strict=True)})
    return found


def _line(column: Column) -> Numeric:
    assert isinstance(column, LINES)
    return column


def drawn_in_order(
    columns: Sequence[Numeric],
    codes: Sequence[IntArray],
    rng: np.random.Generator,
    settled: Mapping[int, Drawn] | None = None,
) -> list[Drawn]:
    """Points for the codes of columns that are ordered from first to last, and which are missing.

    Rows out of order are drawn again, all of their columns but the ``settled`` ones, whose points are given. What is
    not in order after ``ROUNDS`` (bins that hardly overlap) takes the least values that are. Codes must be possible
    under the order; where a settled value leaves no room in another column's bin, that one leaves its bin.
    """
    settled = settled or {}
    found = [
        settled[i] if i in settled else drawn_one(c, own, rng)
        for i, (c, own) in enumerate(zip(columns, codes, strict=True))
    ]
    for _ in range(ROUNDS):
        wrong = np.flatnonzero(out_of_order(found))
        if not wrong.size:
            return found
        for i, (column, own, (values, _)) in enumerate(zip(columns, codes, found, strict=True)):
            if i not in settled:
                values[wrong] = drawn_one(column, own[wrong], rng)[0]
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
    """Which rows have a value below one of an earlier column; missing values are passed over."""
    highest = np.full(len(found[0][0]), -np.inf)
    wrong = np.zeros(len(highest), dtype=np.bool_)
    for values, null in found:
        wrong |= ~null & (values < highest)
        highest = np.where(null, highest, np.maximum(highest, values))
    return wrong
