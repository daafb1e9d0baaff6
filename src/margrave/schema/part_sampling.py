"""Values of ordered columns, and dates and times at their hours and weekdays as far as bins allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from margrave.schema.column import Column
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.constraints import Constraint, Ordered
from margrave.schema.elapsed_values import names_behind
from margrave.schema.numeric import UNITS, Date, Numeric, Timestamp
from margrave.schema.order_sampling import Drawn, out_of_order, sample_in_order
from margrave.schema.parts import Hour, TimePart, Weekday, parts_by_column
from margrave.types import IntArray

Codes = Mapping[str, IntArray]


def decode_lines(
    constraints: Sequence[Constraint],
    columns: Mapping[str, Column],
    codes: Codes,
    rng: np.random.Generator,
    known: Mapping[str, Drawn],
) -> dict[str, pa.Array]:
    """Return values of the columns with an order constraint, with parts, or with ``known`` points."""
    parts = parts_by_column(tuple(columns.values()))
    found = dict(known)
    for constraint in constraints:
        chain = [columns[c] for c in constraint.columns] if isinstance(constraint, Ordered) else []
        lines = [c for c in chain if isinstance(c, NUMERIC_KINDS)]
        if lines:
            settled = {i: known[c.name] for i, c in enumerate(lines) if c.name in known}
            drawn = sample_in_order(lines, [codes[c.name] for c in lines], rng, settled)
            moved = moved_in_order(lines, parts, codes, drawn, tuple(known), rng)
            found.update({c.name: d for c, d in zip(lines, moved, strict=True)})
    for name in parts:
        if name not in found:
            drawn_alone = _line(columns[name]).draw_points(codes[name], rng)
            found[name] = moved_to_parts(columns[name], parts[name], codes, drawn_alone, rng)
    return {name: _line(columns[name]).written(*points) for name, points in found.items()}


def drawn_together(
    columns: Sequence[Column], constraints: Sequence[Constraint], names: Iterable[str]
) -> set[str]:
    """Return names of columns with those that their values are drawn with: to keep an order, as parts, or since when.

    >>> from margrave.schema.constraints import Ordered
    >>> from margrave.schema.numeric import Integer
    >>> columns = [Integer(name, 0, 9) for name in "abc"]
    >>> sorted(drawn_together(columns, [Ordered(["a", "b"])], ["a"]))
    ['a', 'b']
    """
    groups = [set(c.columns) for c in constraints if isinstance(c, Ordered)]
    groups += [set(names_behind(c)) for c in columns]
    found, grown = set(names), True
    while grown:
        more = found.union(*(g for g in groups if not found.isdisjoint(g)))
        grown, found = more != found, more
    known = {c.name for c in columns}
    return found & known


def _line(column: Column) -> Numeric:
    assert isinstance(column, NUMERIC_KINDS)
    return column


def moved_in_order(
    columns: Sequence[Numeric],
    parts: Mapping[str, Sequence[TimePart]],
    codes: Codes,
    drawn: Sequence[Drawn],
    settled: Sequence[str],
    rng: np.random.Generator,
) -> list[Drawn]:
    """Return points of columns that stay in order, moved to their hours and weekdays where the order allows.

    Args:
        columns: The columns, from first to last.
        parts: The parts by column.
        codes: The codes of the columns and their parts.
        drawn: Points in order.
        settled: Columns whose points are given and stay.
        rng: The source of randomness.
    """
    # Attempts to move a row's values without breaking their order. Each draws new minutes and weeks.
    attempts = 8
    found = [(values.copy(), null) for values, null in drawn]
    movable = [i for i, c in enumerate(columns) if parts.get(c.name) and c.name not in settled]
    rows = np.arange(len(found[0][0]) if movable else 0)
    for _ in range(attempts):
        if not rows.size:
            break
        own = {name: c[rows] for name, c in codes.items()}
        trial = [(values[rows], null[rows]) for values, null in drawn]
        for i in movable:
            trial[i] = moved_to_parts(columns[i], parts[columns[i].name], own, trial[i], rng)
        kept = ~out_of_order(trial)
        for i in movable:
            found[i][0][rows[kept]] = trial[i][0][kept]
        rows = rows[~kept]
    return found


def moved_to_parts(
    column: Column, parts: Sequence[TimePart], codes: Codes, drawn: Drawn, rng: np.random.Generator
) -> Drawn:
    """Return each point moved to the nearest day with its weekday, at its hour, within its bin.

    A point whose bin holds no such moment stays. Without an hour the time of the day stays; without a
    weekday the day does, if the bin holds its hour.
    """
    assert isinstance(column, Date | Timestamp)
    values, null = drawn
    cells = np.where(null, 0, codes[column.name]).astype(np.int64)
    low, high = (e[cells] for e in column.cells.extremes)
    seconds = 86400 if isinstance(column, Date) else UNITS[column.unit]
    units = 86400 // seconds
    day = np.floor(values / units)
    starts, length = values - day * units, np.ones(len(values))
    shift, period = np.zeros(len(values)), np.ones(len(values))
    for part in parts:
        wanted = codes[part.name]
        known = wanted < len(part.words)
        if isinstance(part, Hour):
            slot = 3600 // seconds
            starts = np.where(known, wanted * slot, starts)
            length = np.where(known, slot, length)
        if isinstance(part, Weekday):
            own = part.codes_at(day.astype(np.int64) * 86400)
            shift = np.where(known, (wanted - own) % 7, shift)
            period = np.where(known, 7, period)
    moved = values.copy()
    todo = ~null & (high > low)
    # The days beside the drawn one, the nearer more often first: a day at a bin's end may be cut.
    back = rng.random(len(values)) * period < shift
    for step in (0, 1, -1, 2, -2):
        first = (day + shift + period * (step - back)) * units + starts
        least, most = np.maximum(first, low), np.minimum(first + length - 1, high)
        fits = todo & (least <= most)
        moved[fits] = rng.integers(least[fits].astype(np.int64), most[fits].astype(np.int64) + 1)
        todo &= ~fits
    return moved, null
