"""The compiled loops of the descent: ranks by a histogram, gradients and steps for the particles that are moved.

On a line the transport from m particles to a target depends on ranks alone. A histogram of ``BUCKETS`` equal buckets
gives them in O(m): a particle's rank is the number of particles in the buckets below its own, and inside its own the
share that lies before it. The target's atoms fall into the same buckets, where a bucket stands for the mean of its
atoms. Every rank counts all particles; the transport is computed for those alone that the step moves.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BUCKETS = 4096
"""A bucket is 1/4096 of the range of the atoms on a line, and a margin: an eightieth of one of 32 codes and less."""

BLOCK = 16
"""Particles that a step moves, or leaves, together. They are alike, so that chance alone decides either way."""

MARGIN = 0.25
"""How far beyond the atoms ranks are told apart, as a share of their range; beyond, particles are in one bucket."""

RUN = 512
"""Particles whose buckets are found in one go."""


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp"}, boundscheck=False)
def transport(start, stop, particles, coordinates, dims, directions, atoms, shares, places, plan):  # type: ignore[no-untyped-def]
    """Plan the transport on lines ``start`` to ``stop``: what ranks and destinations are read from.

    Line t is along ``directions[t]`` of the ``dims[t]`` coordinates ``coordinates[t]``; its ``places[t, 2]`` atoms are
    coordinate by coordinate in ``atoms[places[t, 0]:]``, their shares in ``shares[places[t, 1]:]``. The plan:
    ``edges[t]``, the lower end of the buckets and how many of them a unit holds; ``below[t, b]``, the particles below
    bucket b; ``masses[t, i]`` and ``means[t, i]``, the share of the atoms up to the i-th bucket that holds any, and
    their mean there; ``first[t, b]``, the i at which the ranks of bucket b begin.
    """
    edges, below, first, masses, means = plan
    m = particles.shape[1]
    for t in range(start, stop):
        _lay(t, dims, directions, atoms, shares, places, edges, masses, means)
        counts = np.zeros(BUCKETS, np.int32)
        position = np.empty(RUN, np.float32)
        bucket = np.empty(RUN, np.int32)
        for i in range(0, m, RUN):
            n = min(RUN, m - i)
            position[:] = np.float32(-edges[t, 0] * edges[t, 1])
            for k in range(dims[t]):
                along = np.float32(directions[t, k] * edges[t, 1])
                row = particles[coordinates[t, k], i:]
                for j in range(n):
                    position[j] += along * row[j]
            for j in range(n):
                bucket[j] = np.int32(min(np.float32(BUCKETS - 1), max(np.float32(0.0), position[j])))
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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp"}, boundscheck=False)
def _lay(t, dims, directions, atoms, shares, places, edges, masses, means):  # type: ignore[no-untyped-def]
    """Put the atoms of line t into buckets; the last mass is 2, so that no rank lies beyond it."""
    count = places[t, 2]
    line = np.zeros(count)
    for k in range(dims[t]):
        for i in range(count):
            line[i] += directions[t, k] * atoms[places[t, 0] + k * count + i]
    low, high = line.min(), line.max()
    margin = MARGIN * (high - low) + 1e-6
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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp"}, boundscheck=False)
def pull(start, stop, particles, blocks, coordinates, dims, directions, factors, slots, plan, gradients):  # type: ignore[no-untyped-def]
    """Add m times the gradient of Σ_t factor_t · W2²(particles, atoms) on line t, for ``blocks[start:stop]``.

    ``gradients`` has a row for each coordinate of the step (``slots`` says which is a line's), and ``BLOCK`` columns
    for each block. The sum is by lines first, so that one line's plan stays in the cache.
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


@njit(cache=True, nogil=True, boundscheck=False)
def step(start, stop, particles, blocks, rows, gradients, rate):  # type: ignore[no-untyped-def]
    """Move some rows of the particles of ``blocks[start:stop]`` against the gradient."""
    m = particles.shape[1]
    for q in range(start, stop):
        at = blocks[q] * BLOCK
        for s in range(len(rows)):
            for i in range(min(BLOCK, m - at)):
                particles[rows[s], at + i] -= rate * gradients[s, q * BLOCK + i]


@njit(cache=True, nogil=True, boundscheck=False)
def adam(start, stop, particles, moments, squares, blocks, rows, gradients, rate, fades):  # type: ignore[no-untyped-def]
    """The same by Adam; the moments of all other entries stay as they are.

    ``fades`` are what the two moments are divided by for having begun at 0.
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
                particles[row, at + i] -= rate * (mean / fades[0]) / (np.sqrt(square / fades[1]) + np.float32(1e-8))
