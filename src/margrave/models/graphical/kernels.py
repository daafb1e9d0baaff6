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
def _multiply(vector, buffer, start, places, f, step):  # type: ignore[no-untyped-def]
    """Multiply a vector by factor f's cells."""
    if step > 0:
        run = buffer[start : start + len(vector)]
        for j in range(len(vector)):
            vector[j] *= run[j]
    else:
        for j in range(len(vector)):
            vector[j] *= buffer[start + places[f, j]]


@kernel(fast=True, forceinline=True, no_cpython_wrapper=True)
def _add(buffer, start, places, f, step, vector):  # type: ignore[no-untyped-def]
    """Add a vector to output f's cells."""
    if step > 0:
        run = buffer[start : start + len(vector)]
        for j in range(len(vector)):
            run[j] += vector[j]
    else:
        for j in range(len(vector)):
            buffer[start + places[f, j]] += vector[j]


@kernel(fast=True, no_cpython_wrapper=True)
def _walk_tile(  # type: ignore[no-untyped-def]
    buffer, p, vector, at, rows, steps, lines, places, n_in, gathered, tile, numbers, alive
):
    """Walk one tile: multiply p, a vector along its lines and the factors in ``rows``; add to the outputs in it.

    Return the sum of all products, and add the lines up in ``gathered`` if that is not empty. Only lines that p and the
    short factors leave possible are in ``tile``, one after the other: their numbers are in ``alive``.
    """
    length, height, count = places.shape[1], lines.shape[1], 0
    for k in range(height):
        numbers[k] = p
    for f in rows:
        if f < n_in and steps[f] == 0:
            for k in range(height):
                numbers[k] *= buffer[at[f] + lines[f, k]]
    for k in range(height):
        number, line = numbers[k], tile[count * length : (count + 1) * length]
        if number != 0.0:
            for j in range(length):
                line[j] = number * vector[j]
            alive[count] = k
            count += 1
    for f in rows:
        if f < n_in and steps[f] != 0:
            if steps[f] == WHOLE and count == height:
                _multiply(tile, buffer, at[f], places, f, steps[f])
            else:
                for c in range(count):
                    line = tile[c * length : (c + 1) * length]
                    _multiply(line, buffer, at[f] + lines[f, alive[c]], places, f, steps[f])
    total = 0.0
    for c in range(count):
        line, mass = tile[c * length : (c + 1) * length], 0.0
        for j in range(length):
            mass += line[j]
        numbers[c] = mass
        total += mass
        for j in range(len(gathered)):
            gathered[j] += line[j]
    if total == 0.0:
        return total
    for f in rows:
        if f >= n_in:
            if steps[f] == 0:
                for c in range(count):
                    buffer[at[f] + lines[f, alive[c]]] += numbers[c]
            elif steps[f] == WHOLE and count == height:
                _add(buffer, at[f], places, f, steps[f], tile)
            else:
                for c in range(count):
                    line = tile[c * length : (c + 1) * length]
                    _add(buffer, at[f] + lines[f, alive[c]], places, f, steps[f], line)
    return total


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
    work,
    tile,
    numbers,
    alive,
    at,
):
    """Walk the cells whose outermost index is in [low, high) and return the sum of all products.

    The axes are the outer ones, whose sizes are ``dims``, the last row of ``strides``, and the two of a tile: its
    lines, and the places along them. The first ``n_in`` rows of ``at[0]``, their offsets, and of ``strides`` are the
    factors, the others the outputs, which are added to (the caller clears them). Line k of row f begins at
    ``lines[f, k]``. Its step along a line is 0, 1, ``WHOLE`` (1, and the lines lie side by side), or −1: its cells then
    lie at ``places[f]``, which may repeat.

    A row is *long* if it varies along lines, else *short*; its level is the deepest other axis along which it
    varies, −1 for none. ``plan`` begins with ``rows``, which are sorted by level: those of level l
    are rows[first[l + 1]] to rows[first[l + 2] - 1]. Factors are multiplied in, and outputs added to, at their level:
    short ones as numbers (``product``, ``mass``), long ones as vectors along a line (``vectors``,
    ``behind``). ``gathers`` if any long output belongs further out than the tile.

    The rest is memory. Each level has a row in ``at``, ``vectors`` and ``behind``. That of ``at`` ends
    with the current index and the row of ``vectors`` to go on from; that of ``vectors`` with ``product``, that of
    ``behind`` with ``mass``. ``mass`` and ``behind`` are 0 before and after, but for level 0.
    """
    dims, rows, first = strides[-1], plan[: len(places)], plan[len(places) :]
    vectors, behind = work[0], work[1]
    outer, length = strides.shape[1], places.shape[1]
    index, source = len(rows), len(rows) + 1
    level = np.int64(0)
    vectors[0, length], behind[0, length] = 1.0, 0.0
    for j in range(length):
        vectors[0, j], behind[0, j] = 1.0, 0.0
    for q in range(first[1]):
        f = rows[q]
        if f < n_in:
            if steps[f] == 0:
                vectors[0, length] *= buffer[at[0, f]]
            else:
                _multiply(vectors[0, :length], buffer, at[0, f], places, f, steps[f])
    if vectors[0, length] == 0.0:
        return 0.0
    at[0, index], at[0, source] = low, 0
    while True:
        p, here = vectors[level, length], at[level, source]
        if level < outer and at[level, index] < (high if level == 0 else dims[level]):
            i = at[level, index]
            for q in range(first[level + 1], len(rows)):  # the others do not move
                f = rows[q]
                at[level + 1, f] = at[level, f] + i * strides[f, level]
                if q < first[level + 2] and f < n_in and steps[f] == 0:
                    p *= buffer[at[level + 1, f]]
            if p == 0.0:
                at[level, index] += 1
                continue
            level += 1
            for q in range(first[level], first[level + 1]):
                f = rows[q]
                if f < n_in and steps[f] != 0:
                    if here < level:
                        for j in range(length):
                            vectors[level, j] = vectors[here, j]
                        here = level
                    _multiply(vectors[level, :length], buffer, at[level, f], places, f, steps[f])
            vectors[level, length], at[level, source], at[level, index] = p, here, 0
            continue
        if level == outer:
            own, gathered = rows[first[outer + 1] :], behind[level, : length if gathers else 0]
            behind[level, length] = _walk_tile(
                buffer,
                p,
                vectors[here],
                at[level],
                own,
                steps,
                lines,
                places,
                n_in,
                gathered,
                tile,
                numbers,
                alive,
            )
        # everything under the current index of the level above is done: hand up what was gathered
        for q in range(first[level], first[level + 1]):
            f = rows[q]
            if f >= n_in:
                if steps[f] == 0:
                    buffer[at[level, f]] += behind[level, length]
                else:
                    _add(buffer, at[level, f], places, f, steps[f], behind[level, :length])
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
