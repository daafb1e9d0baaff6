"""The compiled loops: walk the cells of a clique, multiply what comes in, add up what goes out.

A clique's table is never stored. Its cells are visited once; the factors inside it (exponentiated potentials and
messages) are multiplied, and each product is added into every output (a separator, measured marginals). Factors and
outputs are flat runs of one buffer, with a stride for each of the clique's axes, 0 where an axis is absent. The
two innermost axes make a tile, which stays in the fastest memory: a factor that varies along both is one run of cells,
multiplied in by one vector loop. Where axes have few codes, several of them are taken for one, and what varies
along some of these only is looked up by a list of places. A factor that does not vary along the inner axes is
multiplied in further out, an output that does not is added to further out, and a product that is zero further out (a
structural zero) skips all cells under it. One compiled program serves every structure.
"""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel

#: The step of a row whose tile is one run of cells.
WHOLE = 2


@kernel(fast=True, forceinline=True, no_cpython_wrapper=True)
def _multiply(vectors, i, length, buffer, start, places, f, step):  # type: ignore[no-untyped-def]
    """Multiply the numbers from the start of vector i on by factor f's cells; vectors lie side by side."""
    if step > 0:
        run = buffer[start : start + length]
        for j in range(length):
            vectors[i, j] *= run[j]
    else:
        for j in range(length):
            vectors[i, j] *= buffer[start + places[f, j]]


@kernel(fast=True, forceinline=True, no_cpython_wrapper=True)
def _add(buffer, start, places, f, step, vectors, i, length):  # type: ignore[no-untyped-def]
    """Add the numbers from the start of vector i on to output f's cells."""
    if step > 0:
        run = buffer[start : start + length]
        for j in range(length):
            run[j] += vectors[i, j]
    else:
        for j in range(length):
            buffer[start + places[f, j]] += vectors[i, j]


@kernel(fast=True)
def walk(  # type: ignore[no-untyped-def]
    buffer,
    low,
    high,
    strides,
    steps,
    lines,
    places,
    plan,
    n_in,
    gathers,
    vectors,
    behind,
    tile,
    numbers,
    alive,
    at,
):
    """Walk the cells whose outermost index is in [low, high) and return the sum of all products.

    The axes are one of size 1, the outer ones, whose sizes are the last row of ``strides``, and the two of a tile: its
    lines, and the places along them. The first ``n_in`` rows of ``at[0]``, their offsets, and of ``strides`` are the
    factors, the others the outputs, which are added to (the caller clears them). Line k of row f begins at
    ``lines[f, k]``. Its step along a line is 0, 1, ``WHOLE`` (1, and the lines lie side by side), or −1: its cells then
    lie at ``places[f]``, which may repeat.

    A row is *long* if it varies along lines, else *short*; its level is the deepest other axis along which it
    varies, 0 for none. ``plan`` begins with the n rows, sorted by level, and ends with where each level begins among
    them: those of level l are plan[plan[n + l]] to plan[plan[n + l + 1] - 1]. Factors are multiplied in, and outputs
    added to, at their level: short ones as numbers (``p``, ``mass``), long ones as vectors along a line (``vectors``,
    ``behind``). ``gathers`` if any long output belongs further out than the tile.

    The rest is memory. Each level has a row in ``at``, ``vectors`` and ``behind``. That of ``at`` ends
    with the current index and the row of ``vectors`` to go on from; that of ``vectors`` with ``p``, that of
    ``behind`` with ``mass``. Row 0 of ``vectors`` is 1. ``behind`` is 0 before and after, but for row 0, which is
    never read.
    """
    outer, n = strides.shape[1], len(places)
    length, height = places.shape[1], lines.shape[1]
    index, source = n, n + 1
    level = np.int64(0)
    at[0, index] = 0
    while True:
        p, here = vectors[level, length], at[level, source]
        if level < outer and at[level, index] < (high if level == 1 else strides[n, level]):
            i = at[level, index]
            for q in range(plan[n + level], n):  # the others do not move
                f = plan[q]
                at[level + 1, f] = at[level, f] + i * strides[f, level]
                if q < plan[n + level + 1] and f < n_in and steps[f] == 0:
                    p *= buffer[at[level + 1, f]]
            if p == 0.0:
                if level == 0:
                    return p
                at[level, index] += 1
                continue
            level += 1
            for q in range(plan[n + level - 1], plan[n + level]):
                f = plan[q]
                if f < n_in and steps[f] != 0:
                    if here < level:
                        for j in range(length):
                            vectors[level, j] = vectors[here, j]
                        here = level
                    _multiply(vectors, level, length, buffer, at[level, f], places, f, steps[f])
            vectors[level, length], at[level, source] = p, here
            at[level, index] = low if level == 1 else 0
            continue
        if level == outer:
            # a tile: only lines that are not ruled out are in it, one after the other
            count, total = 0, 0.0
            for k in range(height):
                numbers[k] = p
            for q in range(plan[n + outer], n):
                f = plan[q]
                if f < n_in and steps[f] == 0:
                    for k in range(height):
                        numbers[k] *= buffer[at[level, f] + lines[f, k]]
            for k in range(height):
                number = numbers[k]
                if number != 0.0:
                    for j in range(length):
                        tile[count, j] = number * vectors[here, j]
                    alive[count] = k
                    count += 1
            for q in range(plan[n + outer], n):
                f = plan[q]
                if f < n_in and steps[f] != 0:
                    whole = steps[f] == WHOLE and count == height
                    for c in range(1 if whole else count):
                        _multiply(
                            tile,
                            c,
                            height * length if whole else length,
                            buffer,
                            at[level, f] + lines[f, alive[c]],
                            places,
                            f,
                            steps[f],
                        )
            for c in range(count):
                mass = 0.0
                for j in range(length):
                    mass += tile[c, j]
                numbers[c] = mass
                total += mass
                if gathers:
                    for j in range(length):
                        behind[level, j] += tile[c, j]
            if total != 0.0:
                for q in range(plan[n + outer], n):
                    f = plan[q]
                    if f >= n_in:
                        if steps[f] == 0:
                            for c in range(count):
                                buffer[at[level, f] + lines[f, alive[c]]] += numbers[c]
                        else:
                            whole = steps[f] == WHOLE and count == height
                            for c in range(1 if whole else count):
                                _add(
                                    buffer,
                                    at[level, f] + lines[f, alive[c]],
                                    places,
                                    f,
                                    steps[f],
                                    tile,
                                    c,
                                    height * length if whole else length,
                                )
            behind[level, length] = total
        # everything under the current index of the level above is done: hand up what was gathered
        for q in range(plan[n + level - 1], plan[n + level]):
            f = plan[q]
            if f >= n_in:
                if steps[f] == 0:
                    buffer[at[level, f]] += behind[level, length]
                else:
                    _add(buffer, at[level, f], places, f, steps[f], behind, level, length)
        mass = behind[level, length]
        behind[level, length] = 0.0
        behind[level - 1, length] += mass
        if gathers:
            for j in range(length):
                behind[level - 1, j] += behind[level, j]
                behind[level, j] = 0.0
        level -= 1
        if level == 0:
            return mass
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
            if buffer[j] > largest:
                largest = buffer[j]
        if largest > 0.0:
            for j in range(message, message + size):
                buffer[j] /= largest
    else:
        for j in range(size):
            sent, rest = buffer[message + j], buffer[belief + j]
            buffer[down + j] = rest / (sent * scale) if sent > min_message else 0.0
    return largest
