"""Compiled loops over weights that lie in one run of memory: of a grid's cells, or of records.

A box is the cells that a linear query selects. On a grid it is walked as a product of axes: neighboring attributes
that the query does not name are one long axis, so nothing outside the box is touched and nothing is copied.
"""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel


@kernel
def _lay(one, other, named, sizes, starts, counts, strides, lists, codes):  # type: ignore[no-untyped-def]
    """Write the axes of the cells in both boxes, outermost first; return their number, 0 for no
    cells.

    ``one`` and ``other`` mark for every code of every attribute whether it is inside. Axis k has
    ``counts[k]`` steps of ``strides[k]``, or, if ``lists[k]`` is not negative, the positions
    ``codes[lists[k]:]`` in units of that.
    """
    axes, filled, stride = 0, 0, 1
    for a in range(len(sizes)):
        stride *= sizes[a]
    free = 1
    for a in range(len(sizes)):
        stride //= sizes[a]
        if not named[a]:
            free *= sizes[a]
            if a + 1 < len(sizes):
                continue
        if free > 1:
            counts[axes], lists[axes] = free, -1
            strides[axes] = stride if not named[a] else stride * sizes[a]
            axes, free = axes + 1, 1
        if named[a]:
            first = filled
            for v in range(starts[a], starts[a] + sizes[a]):
                if one[v] and other[v]:
                    codes[filled] = v - starts[a]
                    filled += 1
            if filled == first:
                return 0
            counts[axes], strides[axes], lists[axes] = filled - first, stride, first
            axes += 1
    while axes < 2:  # the walk below takes at least two
        counts[axes], strides[axes], lists[axes] = 1, 0, -1
        axes += 1
    return axes


@kernel
def _walk(weights, axes, counts, strides, lists, codes, factor):  # type: ignore[no-untyped-def]
    place = np.zeros(axes, np.int64)
    total = 0.0
    while True:
        base = 0
        for k in range(axes - 2):
            base += strides[k] * (place[k] if lists[k] < 0 else codes[lists[k] + place[k]])
        for i in range(counts[axes - 2]):
            at = codes[lists[axes - 2] + i] if lists[axes - 2] >= 0 else i
            row = base + strides[axes - 2] * at
            run = 0.0
            if lists[axes - 1] < 0:
                step = strides[axes - 1]
                if factor == 1.0:
                    for j in range(counts[axes - 1]):
                        run += weights[row + step * j]
                else:
                    for j in range(counts[axes - 1]):
                        run += weights[row + step * j]
                        weights[row + step * j] *= factor
            else:
                for j in range(counts[axes - 1]):
                    cell = row + strides[axes - 1] * codes[lists[axes - 1] + j]
                    run += weights[cell]
                    weights[cell] *= factor
            total += run
        k = axes - 3
        while k >= 0:
            place[k] += 1
            if place[k] < counts[k]:
                break
            place[k] = 0
            k -= 1
        if k < 0:
            return total


@kernel
def box_sums(weights, inside, named, sizes, starts, box):  # type: ignore[no-untyped-def]
    """Return the sum of every box; of its part in ``box``, if that is not negative."""
    most = len(sizes) + 2
    counts, strides, lists = (
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    codes, both = np.empty(inside.shape[1], np.int64), np.empty(len(sizes), np.bool_)
    found = np.zeros(len(inside))
    for j in range(len(inside)):
        other = j if box < 0 else box
        for a in range(len(sizes)):
            both[a] = named[j, a] or named[other, a]
        axes = _lay(inside[j], inside[other], both, sizes, starts, counts, strides, lists, codes)
        if axes:
            found[j] = _walk(weights, axes, counts, strides, lists, codes, 1.0)
    return found


@kernel
def scale_box(weights, inside, named, sizes, starts, box, factor):  # type: ignore[no-untyped-def]
    """Multiply the cells of one box; their sum before."""
    most = len(sizes) + 2
    counts, strides, lists = (
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    codes = np.empty(inside.shape[1], np.int64)
    axes = _lay(inside[box], inside[box], named[box], sizes, starts, counts, strides, lists, codes)
    return _walk(weights, axes, counts, strides, lists, codes, factor)


@kernel
def _in_range(weights, mass):  # type: ignore[no-untyped-def]
    if 1e-100 < mass < 1e100:
        return mass
    for i in range(len(weights)):
        weights[i] /= mass
    return 1.0


@kernel
def weigh_boxes(weights, inside, named, sizes, starts, answers, tolerances, step, mass):  # type: ignore[no-untyped-def]
    """Update multiplicatively, box after box; return the mass afterwards and whether any box was
    updated.
    """
    most = len(sizes) + 2
    counts, strides, lists = (
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    codes, moved = np.empty(inside.shape[1], np.int64), False
    for j in range(len(answers)):
        axes = _lay(inside[j], inside[j], named[j], sizes, starts, counts, strides, lists, codes)
        held = _walk(weights, axes, counts, strides, lists, codes, 1.0)
        gap = answers[j] - held / mass
        if abs(gap) > tolerances[j]:
            factor = np.exp(step * gap)
            _walk(weights, axes, counts, strides, lists, codes, factor)
            mass = _in_range(weights, mass + (factor - 1.0) * held)
            moved = True
    return mass, moved


@kernel
def spread_factors(weights, factors, counts, steps):  # type: ignore[no-untyped-def]
    """Multiply every cell of a grid of two axes or more by its factor: axis k moves on ``steps[k]`` of them."""
    axes = len(counts)
    place = np.zeros(axes, np.int64)
    cell, step = 0, steps[axes - 1]
    while True:
        first = 0
        for k in range(axes - 2):
            first += steps[k] * place[k]
        for i in range(counts[axes - 2]):
            at = first + steps[axes - 2] * i
            if step == 0:
                factor = factors[at]
                for _ in range(counts[axes - 1]):
                    weights[cell] *= factor
                    cell += 1
            else:
                for j in range(counts[axes - 1]):
                    weights[cell] *= factors[at + step * j]
                    cell += 1
        k = axes - 3
        while k >= 0:
            place[k] += 1
            if place[k] < counts[k]:
                break
            place[k] = 0
            k -= 1
        if k < 0:
            return


@kernel
def cells_of(values, members, sizes, cells):  # type: ignore[no-untyped-def]
    """Return the cell of a marginal that each record lies in."""
    for i in range(len(cells)):
        cells[i] = 0
    for k in range(len(members)):
        column = values[members[k]]
        for i in range(len(cells)):
            cells[i] = cells[i] * sizes[k] + column[i]


@kernel
def tally(weights, values, members, sizes, sums):  # type: ignore[no-untyped-def]
    """Add every record's weight to its cell of a marginal."""
    for i in range(len(weights)):
        cell = 0
        for k in range(len(members)):
            cell = cell * sizes[k] + values[members[k], i]
        sums[cell] += weights[i]


@kernel
def list_sums(weights, starts, rows, one):  # type: ignore[no-untyped-def]
    """Return the sum of the records of every list; of those also in list ``one``, if that is not
    negative.
    """
    marked = np.zeros(len(weights) if one >= 0 else 0, np.bool_)
    if one >= 0:
        for i in range(starts[one], starts[one + 1]):
            marked[rows[i]] = True
    found = np.zeros(len(starts) - 1)
    for j in range(len(found)):
        for i in range(starts[j], starts[j + 1]):
            if one < 0 or marked[rows[i]]:
                found[j] += weights[rows[i]]
    return found


@kernel
def weigh_lists(weights, starts, rows, answers, tolerances, step, mass):  # type: ignore[no-untyped-def]
    """Update multiplicatively, list after list; return the mass afterwards and whether any list was
    updated.
    """
    moved = False
    for j in range(len(answers)):
        held = 0.0
        for i in range(starts[j], starts[j + 1]):
            held += weights[rows[i]]
        gap = answers[j] - held / mass
        if abs(gap) > tolerances[j]:
            factor = np.exp(step * gap)
            for i in range(starts[j], starts[j + 1]):
                weights[rows[i]] *= factor
            mass = _in_range(weights, mass + (factor - 1.0) * held)
            moved = True
    return mass, moved


@kernel
def blend(average, weights, share):  # type: ignore[no-untyped-def]
    """Move an average by a share of the way towards new weights."""
    for i in range(len(average)):
        average[i] += share * (weights[i] - average[i])
