"""Compiled loops of the descent: ranks by a histogram, gradients and steps for the moved particles.

On a line the transport from m particles to a target depends on ranks alone. A histogram of
``BUCKETS`` equal buckets gives them in O(m): a particle's rank is the number of particles in lower
buckets, plus a share within its own. The target's points fall into the same buckets, each of which
stands for the mean of its points. Ranks count all particles; the transport is computed only for
those that the step moves.
"""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel

#: Buckets over the range of the points on a line and a margin.
BUCKETS = 4096

#: Particles that a step moves, or leaves, together. They are exchangeable, so a common draw is
#: enough.
BLOCK = 16


@kernel(fastmath={"reassoc", "contract", "arcp"})
def transport(start, stop, particles, coordinates, dims, directions, atoms, shares, places, plan):  # type: ignore[no-untyped-def]
    """Plan the transport on lines ``start`` to ``stop``: the tables from which ranks and
    destinations follow.

    Line t is along ``directions[t]`` of the ``dims[t]`` coordinates ``coordinates[t]``. Its
    ``places[t, 2]`` points are coordinate by coordinate in ``atoms[places[t, 0]:]``, their shares
    in ``shares[places[t, 1]:]``. The plan: ``edges[t]``, the lower end of the buckets and their
    number per unit; ``below[t, b]``, the particles below bucket b; ``masses[t, i]`` and ``means[t,
    i]``, the share of the points up to the i-th non-empty bucket, and their mean there; ``first[t,
    b]``, the i at which the ranks of bucket b begin.
    """
    # Particles whose buckets are found at once.
    run = 512
    edges, below, first, masses, means = plan
    m = particles.shape[1]
    for t in range(start, stop):
        _lay(t, dims, directions, atoms, shares, places, edges, masses, means)
        counts = np.zeros(BUCKETS, np.int32)
        position = np.empty(run, np.float32)
        bucket = np.empty(run, np.int32)
        for i in range(0, m, run):
            n = min(run, m - i)
            position[:] = np.float32(-edges[t, 0] * edges[t, 1])
            for k in range(dims[t]):
                along = np.float32(directions[t, k] * edges[t, 1])
                row = particles[coordinates[t, k], i:]
                for j in range(n):
                    position[j] += along * row[j]
            for j in range(n):
                bucket[j] = np.int32(
                    min(np.float32(BUCKETS - 1), max(np.float32(0.0), position[j]))
                )
            for j in range(n):
                counts[bucket[j]] += 1
        running, at = 0, 0
        for b in range(BUCKETS):
            below[t, b] = running
            while masses[t, at] * m <= running:
                at += 1
            first[t, b] = at
            running += counts[b]
        below[t, BUCKETS] = running
        while masses[t, at] < 1.5:
            at += 1
        first[t, BUCKETS] = at


@kernel(fastmath={"reassoc", "contract", "arcp"})
def _lay(t, dims, directions, atoms, shares, places, edges, masses, means):  # type: ignore[no-untyped-def]
    """Put the points of line t into buckets; the last mass is 2, so that no rank lies beyond it."""
    # Distance beyond the points up to which ranks are resolved, as a share of their range.
    margin_share = 0.25
    count = places[t, 2]
    line = np.zeros(count)
    for k in range(dims[t]):
        for i in range(count):
            line[i] += directions[t, k] * atoms[places[t, 0] + k * count + i]
    low, high = line.min(), line.max()
    margin = margin_share * (high - low) + 1e-6
    low -= margin
    scale = BUCKETS / (high + margin - low)
    edges[t, 0], edges[t, 1] = low, scale
    mass = np.zeros(BUCKETS)
    moment = np.zeros(BUCKETS)
    for i in range(count):
        b = min(BUCKETS - 1, max(0, int((line[i] - low) * scale)))
        mass[b] += shares[places[t, 1] + i]
        moment[b] += shares[places[t, 1] + i] * line[i]
    n, total = 0, 0.0
    for b in range(BUCKETS):
        if mass[b] > 0.0:
            total += mass[b]
            masses[t, n] = min(total, 1.0)
            means[t, n] = moment[b] / mass[b]
            n += 1
    masses[t, n - 1] = 2.0


@kernel(fastmath={"reassoc", "contract", "arcp"})
def pull(  # type: ignore[no-untyped-def]
    start, stop, particles, blocks, coordinates, dims, directions, factors, slots, plan, gradients
):
    """Add m times the gradient of Σ_t factor_t · W2²(particles, points) on line t, for
    ``blocks[start:stop]``.

    ``gradients`` has a row for each coordinate of the step (``slots`` maps a line's coordinates to
    them), and ``BLOCK`` columns for each block. The sum is by lines first, so that one line's plan
    stays cached.
    """
    edges, below, first, masses, means = plan
    m = particles.shape[1]
    line = np.empty(BLOCK, np.float32)
    for t in range(len(dims)):
        low, scale = np.float32(edges[t, 0]), np.float32(edges[t, 1])
        for q in range(start, stop):
            n = min(BLOCK, m - blocks[q] * BLOCK)
            line[:] = 0.0
            for k in range(dims[t]):
                along = np.float32(directions[t, k])
                row = particles[coordinates[t, k], blocks[q] * BLOCK :]
                for i in range(n):
                    line[i] += along * row[i]
            for i in range(n):
                position = min(np.float32(BUCKETS), max(np.float32(0.0), (line[i] - low) * scale))
                b = min(BUCKETS - 1, int(position))
                one, other = first[t, b], first[t, b + 1]
                if one < other:
                    rank = (below[t, b] + (position - b) * (below[t, b + 1] - below[t, b])) / m
                    while one < other:
                        middle = (one + other) >> 1
                        if masses[t, middle] <= rank:
                            one = middle + 1
                        else:
                            other = middle
                line[i] = factors[t] * (line[i] - means[t, one])
            for k in range(dims[t]):
                along = np.float32(2.0 * directions[t, k])
                out = gradients[slots[t, k], q * BLOCK :]
                for i in range(n):
                    out[i] += along * line[i]


@kernel
def step(start, stop, particles, blocks, rows, gradients, rate):  # type: ignore[no-untyped-def]
    """Move some rows of the particles of ``blocks[start:stop]`` against the gradient."""
    m = particles.shape[1]
    for q in range(start, stop):
        at = blocks[q] * BLOCK
        for s in range(len(rows)):
            for i in range(min(BLOCK, m - at)):
                particles[rows[s], at + i] -= rate * gradients[s, q * BLOCK + i]


@kernel
def adam(start, stop, particles, moments, squares, blocks, rows, gradients, rate, fades):  # type: ignore[no-untyped-def]
    """Move the blocks by Adam; the moments of all other entries stay.

    ``fades`` are the bias corrections of the two moments.
    """
    m = particles.shape[1]
    for q in range(start, stop):
        at = blocks[q] * BLOCK
        for s in range(len(rows)):
            row = rows[s]
            for i in range(min(BLOCK, m - at)):
                g = gradients[s, q * BLOCK + i]
                mean = np.float32(0.9) * moments[row, at + i] + np.float32(0.1) * g
                square = np.float32(0.999) * squares[row, at + i] + np.float32(0.001) * g * g
                moments[row, at + i], squares[row, at + i] = mean, square
                particles[row, at + i] -= (
                    rate * (mean / fades[0]) / (np.sqrt(square / fades[1]) + np.float32(1e-8))
                )
