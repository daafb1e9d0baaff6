"""The one compiled loop: walk the cells of a clique, multiply what comes in, add up what goes out.

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
from numba import njit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"}, boundscheck=False)
def walk(depth, dims, offsets, strides, places, n_in, buffer, low, high):  # type: ignore[no-untyped-def]
    """Walk the cells whose outermost index is in [low, high) and return the sum of all products.

    ``dims`` has ``depth`` >= 2 axes. The first ``n_in`` rows of ``offsets`` and ``strides`` are the factors, the rest
    the outputs, which are added to (the caller clears them). Along the innermost axis a row's stride is 0, 1, or −1:
    its cells then lie at ``places``, which may repeat.

    A row is *long* if it varies along the innermost axis, else *short*; its level is the deepest other axis along
    which it varies, −1 if there is none. Factors are multiplied in, and outputs added to, at their level: short ones
    as numbers (``product``, ``mass``), long ones as vectors along the innermost axis (``ahead``, ``behind``).
    """
    n = len(offsets)
    last = depth - 1
    length = dims[last]
    level_of = np.full(n, -1, np.int64)
    step = np.empty(n, np.int64)
    at = np.empty((depth + 1, n), np.int64)
    gathers = False  # does any long output belong further out than the last level?
    for f in range(n):
        at[0, f] = offsets[f]
        step[f] = strides[f, last] if length > 1 else 0
        for axis in range(last):
            if strides[f, axis] != 0 and dims[axis] > 1:
                level_of[f] = axis
        if f >= n_in and step[f] != 0 and level_of[f] < last - 1:
            gathers = True
    # rows sorted by level: those of level l are rows[first[l + 1]] to rows[first[l + 2] - 1]
    rows = np.empty(n, np.int64)
    first = np.zeros(depth + 2, np.int64)
    placed = 0
    for q in range(depth + 2):
        first[q] = placed
        for f in range(n):
            if level_of[f] == q - 1:
                rows[placed] = f
                placed += 1
    product = np.ones(depth + 1)
    mass = np.zeros(depth)
    ahead = np.ones((depth + 1, length))
    source = np.zeros(depth + 1, np.int64)
    behind = np.zeros((depth, length))
    cell = np.empty(length)
    index = np.zeros(depth, np.int64)
    for f in range(n_in):
        if level_of[f] == -1:
            if step[f] == 0:
                product[0] *= buffer[offsets[f]]
            else:
                for j in range(length):
                    ahead[0, j] *= buffer[offsets[f] + (j if step[f] == 1 else places[f, j])]
    if product[0] == 0.0:
        return 0.0
    index[0] = low
    level = 0
    while True:
        if index[level] == (high if level == 0 else dims[level]):
            # everything under the current index of the level above is done: hand up what was gathered
            for q in range(first[level], first[level + 1]):
                f = rows[q]
                if f >= n_in:
                    a = at[level, f]
                    if step[f] == 0:
                        buffer[a] += mass[level]
                    else:
                        if step[f] == 1:
                            run = buffer[a : a + length]
                            for j in range(length):
                                run[j] += behind[level, j]
                        else:
                            for j in range(length):
                                buffer[a + places[f, j]] += behind[level, j]
            if level == 0:
                return mass[0]
            mass[level - 1] += mass[level]
            mass[level] = 0.0
            if gathers:
                for j in range(length):
                    behind[level - 1, j] += behind[level, j]
                    behind[level, j] = 0.0
            level -= 1
            index[level] += 1
            continue
        i = index[level]
        p = product[level]
        for q in range(first[level + 1], first[level + 2]):
            f = rows[q]
            a = at[level, f] + i * strides[f, level]
            at[level + 1, f] = a
            if f < n_in and step[f] == 0:
                p *= buffer[a]
        if p == 0.0:
            index[level] += 1
            continue
        for q in range(first[level + 2], n):  # of the other rows only deeper ones move
            f = rows[q]
            at[level + 1, f] = at[level, f] + i * strides[f, level]
        if level < last - 1:
            product[level + 1] = p
            here = source[level]
            for q in range(first[level + 1], first[level + 2]):
                f = rows[q]
                if f < n_in and step[f] != 0:
                    a = at[level + 1, f]
                    if step[f] == 1:
                        run = buffer[a : a + length]
                        for j in range(length):
                            ahead[level + 1, j] = ahead[here, j] * run[j]
                    else:
                        for j in range(length):
                            ahead[level + 1, j] = ahead[here, j] * buffer[a + places[f, j]]
                    here = level + 1
            source[level + 1] = here
            level += 1
            index[level] = 0
            continue
        here = source[level]
        for j in range(length):
            cell[j] = p * ahead[here, j]
        for q in range(first[level + 1], first[level + 2]):
            f = rows[q]
            if f < n_in and step[f] != 0:
                a = at[last, f]
                if step[f] == 1:
                    run = buffer[a : a + length]
                    for j in range(length):
                        cell[j] *= run[j]
                else:
                    for j in range(length):
                        cell[j] *= buffer[a + places[f, j]]
        total = 0.0
        for j in range(length):
            total += cell[j]
        if total != 0.0:
            mass[level] += total
            if gathers:
                for j in range(length):
                    behind[level, j] += cell[j]
            for q in range(first[level + 1], first[level + 2]):
                f = rows[q]
                if f >= n_in:
                    a = at[last, f]
                    if step[f] == 0:
                        buffer[a] += total
                    elif step[f] == 1:
                        run = buffer[a : a + length]
                        for j in range(length):
                            run[j] += cell[j]
                    else:
                        for j in range(length):
                            buffer[a + places[f, j]] += cell[j]
        index[level] += 1


#: The three kinds of walk: a message to the parent; the root's beliefs; beliefs given the parent's.
UP, ROOT, DOWN = 0, 1, 2


@njit(cache=True, nogil=True)
def pre_message(w, kind, message, separators, buffer, state):  # type: ignore[no-untyped-def]
    """Divide the parent's belief by this subtree's message before a walk down (0 / 0 = 0)."""
    # Messages below this (their largest is 1) count as zero: their reciprocals would overflow.
    min_message = 1e-250
    if kind[w] == DOWN:
        size, scale = message[w, 1], state[3 + message[w, 0]]
        up, down, belief = (
            separators[message[w, 0], 0],
            separators[message[w, 0], 1],
            separators[message[w, 0], 2],
        )
        for j in range(size):
            upward = buffer[up + j]
            buffer[down + j] = (
                buffer[belief + j] / (upward * scale) if upward > min_message else 0.0
            )


@njit(cache=True, nogil=True)
def post_message(w, kind, message, separators, scaled, buffer, state):  # type: ignore[no-untyped-def]
    """Scale a message to a maximum of 1 after a walk, or the root's beliefs to the total number of
    records.

    ``state`` holds the log of all scales so far, the total, the root's mass, and then each node's
    scale.
    """
    if kind[w] == UP:
        size = message[w, 1]
        up = separators[message[w, 0], 0]
        largest = 0.0
        for j in range(size):
            largest = max(largest, buffer[up + j])
        if largest > 0.0:
            for j in range(size):
                buffer[up + j] /= largest
            state[0] += np.log(largest)
        state[3 + message[w, 0]] = largest
    elif kind[w] == ROOT:
        scale = state[1] / state[2] if state[2] > 0.0 else 0.0
        for r in range(len(scaled)):
            for j in range(scaled[r, 0], scaled[r, 1]):
                buffer[j] *= scale
