"""The compiled loops: walk the cells of a clique, multiply what comes in, add up what goes out.

A clique's table is never stored. Its cells are visited once; the factors inside it (exponentiated potentials and
messages) are multiplied, and each product is added into every output (a separator, measured marginals). Factors and
outputs are flat runs of one buffer, with a stride for each of the clique's axes, 0 where an axis is absent. The
innermost axis is a plain vector loop; where axes have few codes, several of them are taken for one, and what varies
along some of these only is looked up by a list of places. A factor that does not vary along the inner axes is
multiplied in further out, an output that does not is added to further out, and a product that is zero further out (a
structural zero) skips all cells under it. One compiled program serves every structure.
"""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel


@kernel(fast=True, forceinline=True)
def _multiply(vector, buffer, start, places, f, step):  # type: ignore[no-untyped-def]
    """Multiply a vector by factor f's cells."""
    length = places.shape[1]
    if step == 1:
        run = buffer[start : start + length]
        for j in range(length):
            vector[j] *= run[j]
    else:
        for j in range(length):
            vector[j] *= buffer[start + places[f, j]]


@kernel(fast=True, forceinline=True)
def _add(buffer, start, places, f, step, vector):  # type: ignore[no-untyped-def]
    """Add a vector to output f's cells."""
    length = places.shape[1]
    if step == 1:
        run = buffer[start : start + length]
        for j in range(length):
            run[j] += vector[j]
    else:
        for j in range(length):
            buffer[start + places[f, j]] += vector[j]


@kernel(fast=True)
def walk(buffer, low, high, strides, places, plan, n_in, gathers, at, work):  # type: ignore[no-untyped-def]
    """Walk the cells whose outermost index is in [low, high) and return the sum of all products.

    ``dims``, the last row of ``strides``, has two axes or more. The first ``n_in`` rows of ``at[0]``, their offsets,
    and of ``strides`` are the factors, the others the outputs, which are added to (the caller clears them). Along the
    innermost axis a row's stride is 0, 1, or −1: its cells then lie at ``places``, which may repeat.

    A row is *long* if it varies along the innermost axis, else *short*; its level is the deepest other axis along
    which it varies, −1 for none. ``plan`` begins with ``rows``, which are sorted by level: those of level l
    are rows[first[l + 1]] to rows[first[l + 2] - 1]. Factors are multiplied in, and outputs added to, at their level:
    short ones as numbers (``product``, ``mass``), long ones as vectors along the innermost axis (``vectors``,
    ``behind``). ``gathers`` if any long output belongs further out than the last level.

    ``at`` and ``work`` are memory. Each level has a row in ``at``, ``vectors`` and ``behind``. That of ``at`` ends
    with the current index and the row of ``vectors`` to go on from; that of ``vectors`` with ``product``, that of
    ``behind`` with ``mass``. ``cell`` holds the current cells. ``mass`` and ``behind`` are 0 before and after, but
    for level 0.
    """
    dims, rows, first = strides[-1], plan[: len(places)], plan[len(places) :]
    vectors, behind, cell = work[0], work[1], work[2, 0]
    last, length = strides.shape[1] - 1, places.shape[1]
    index, source = len(rows), len(rows) + 1
    level = np.int64(0)
    vectors[0, length], behind[0, length] = 1.0, 0.0
    for j in range(length):
        vectors[0, j], behind[0, j] = 1.0, 0.0
    for q in range(first[1]):
        f = rows[q]
        if f < n_in:
            if strides[f, last] == 0:
                vectors[0, length] *= buffer[at[0, f]]
            else:
                _multiply(vectors[0], buffer, at[0, f], places, f, strides[f, last])
    if vectors[0, length] == 0.0:
        return 0.0
    at[0, index], at[0, source] = low, 0
    while True:
        if at[level, index] == (high if level == 0 else dims[level]):
            # everything under the current index of the level above is done: hand up what was gathered
            for q in range(first[level], first[level + 1]):
                f = rows[q]
                if f >= n_in:
                    if strides[f, last] == 0:
                        buffer[at[level, f]] += behind[level, length]
                    else:
                        _add(buffer, at[level, f], places, f, strides[f, last], behind[level])
            if level == 0:
                return behind[0, length]
            behind[level - 1, length] += behind[level, length]
            behind[level, length] = 0.0
            if gathers:
                for j in range(length):
                    behind[level - 1, j] += behind[level, j]
                    behind[level, j] = 0.0
            level -= 1
            at[level, index] += 1
            continue
        i = at[level, index]
        p = vectors[level, length]
        for q in range(first[level + 1], first[level + 2]):
            f = rows[q]
            a = at[level, f] + i * strides[f, level]
            at[level + 1, f] = a
            if f < n_in and strides[f, last] == 0:
                p *= buffer[a]
        if p == 0.0:
            at[level, index] += 1
            continue
        for q in range(first[level + 2], len(rows)):  # of the other rows only deeper ones move
            f = rows[q]
            at[level + 1, f] = at[level, f] + i * strides[f, level]
        here = at[level, source]
        if level < last - 1:
            level += 1
            for q in range(first[level], first[level + 1]):
                f = rows[q]
                if f < n_in and strides[f, last] != 0:
                    if here < level:
                        for j in range(length):
                            vectors[level, j] = vectors[here, j]
                        here = level
                    _multiply(vectors[level], buffer, at[level, f], places, f, strides[f, last])
            vectors[level, length], at[level, source], at[level, index] = p, here, 0
            continue
        for j in range(length):
            cell[j] = p * vectors[here, j]
        for q in range(first[level + 1], first[level + 2]):
            f = rows[q]
            if f < n_in and strides[f, last] != 0:
                _multiply(cell, buffer, at[last, f], places, f, strides[f, last])
        total = 0.0
        for j in range(length):
            total += cell[j]
        if total != 0.0:
            behind[level, length] += total
            if gathers:
                for j in range(length):
                    behind[level, j] += cell[j]
            for q in range(first[level + 1], first[level + 2]):
                f = rows[q]
                if f >= n_in:
                    if strides[f, last] == 0:
                        buffer[at[last, f]] += total
                    else:
                        _add(buffer, at[last, f], places, f, strides[f, last], cell)
        at[level, index] += 1


@kernel(error_model="numpy")
def turn_message(buffer, upward, message, down, belief, size, scale):  # type: ignore[no-untyped-def]
    """Scale a message to a maximum of 1 after a walk up, and return what it was divided by.

    Before a walk down, divide the parent's belief by this message, times the scale that it had (0 / 0 = 0).
    """
    # Messages below this count as zero: their reciprocals would overflow.
    min_message, largest = 1e-250, 0.0
    if upward:
        for j in range(message, message + size):
            largest = max(largest, buffer[j])
    for j in range(size):
        if upward:
            buffer[message + j] /= largest if largest > 0.0 else 1.0
        else:
            sent, rest = buffer[message + j], buffer[belief + j]
            buffer[down + j] = rest / (sent * scale) if sent > min_message else 0.0
    return largest
