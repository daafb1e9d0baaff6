"""Expected projected error: the part of a measurement's noise that remains after projection to
counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from margrave._kernel import kernel
from margrave.domain import Domain
from margrave.types import Clique, FloatArray

#: Bins of counts per octave: two more bits than the exponent of a double.
PER_OCTAVE = 4
BITS = 50
#: Octaves from 1/1024 of the noise, where counts are practically 0, to 8 times the noise.
OCTAVES = 13
BINS = OCTAVES * PER_OCTAVE + 1
#: The table of E max(x + z, 0): points per unit, and its reach either way.
FINE, REACH = 256, 12


@cache
def _above() -> FloatArray:
    x = np.arange(-REACH * FINE, REACH * FINE + 1) / FINE
    below = np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in x])
    return np.asarray(x * below + np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


@kernel
def _positive(x, above):  # type: ignore[no-untyped-def]
    if x <= -REACH:
        return 0.0
    if x >= REACH:
        return x
    at = (x + REACH) * FINE
    low = int(at)
    if low >= len(above) - 1:
        return above[low]
    return above[low] + (at - low) * (above[low + 1] - above[low])


@kernel
def _left(cells, means, bins, large, above):  # type: ignore[no-untyped-def]
    """Return the expected error in units of the noise: ``cells`` of mean ``means`` in
    the first ``bins``, and ``large`` ones beyond noise.

    ``shift`` is subtracted from all cells so that, clipped at 0, they keep their sum.
    """
    low, high = 0.0, float(REACH)
    for _ in range(24):
        shift = (low + high) / 2
        gained = -shift * large
        for b in range(bins):
            gained += cells[b] * (_positive(means[b] - shift, above) - means[b])
        if gained > 0.0:
            low = shift
        else:
            high = shift
    shift = (low + high) / 2
    over, under = _positive(-shift, above), _positive(shift, above)
    error = large * (over + under)
    for b in range(bins):
        error += cells[b] * (over + under - _positive(shift - means[b], above))
    return error


@kernel
def _survives(  # type: ignore[no-untyped-def]
    values, bits, sizes, impossible, base, centers, scale, above, cells, means, errors
):
    start, last = 0, len(centers)
    for m in range(len(sizes)):
        near = 0.0
        for b in range(last + 1):
            cells[b] = 0
        for i in range(start, start + sizes[m]):
            place = (bits[i] >> BITS) - base
            if place <= 0:
                place = 0
                near += values[i]
            cells[min(place, last)] += 1
        start += sizes[m]
        cells[0] = max(0, cells[0] - impossible[m])
        large, bins = cells[last], np.int64(0)
        for b in range(last):
            if cells[b] > 0:
                means[bins] = centers[b] if b > 0 else max(near, 0.0) / scale / cells[0]
                cells[bins] = cells[b]
                bins += 1
        errors[m] = scale * _left(cells, means, bins, large, above)


def _by_cells(estimates: Mapping[Clique, FloatArray]) -> Iterator[list[Clique]]:
    # Cells copied side by side: one call for many small marginals.
    cells_at_once = 1 << 20
    run, cells = list[Clique](), 0
    for clique, values in estimates.items():
        if run and cells + values.size > cells_at_once:
            yield run
            run, cells = [], 0
        run.append(clique)
        cells += values.size
    if run:
        yield run


def projected_error(
    estimates: Mapping[Clique, FloatArray], scale: float, domain: Domain
) -> dict[Clique, float]:
    """Return E ‖Π(m + N(0, scale²)) − m‖₁ of every marginal m; Π projects to counts ≥ 0 with m's
    sum.

    Most cells of a large marginal are empty, and the projection removes most of the noise there:
    the rest is far below sqrt(2/pi) · scale · cells. With t so that Σ E max(m_i + scale z − t, 0) =
    Σ m_i, z standard normal, it is

        Σ_i E |max(m_i + scale z − t, 0) − m_i|.

    Counts are binned in quarters of an octave: accurate to a few per cent. The result is on the
    grid of scores. Cost: O(cells), a pass over the estimates.

    **Privacy:** none spent: estimates follow from noisy answers.
    """
    # Results are multiples of 1 / this, as scores are, so that their grid reveals nothing.
    per_record = 1 << 10
    above = _above()
    smallest = np.float64(scale) / 2 ** (OCTAVES - 3)
    base = int(smallest.view(np.int64)) >> BITS
    floors = (np.arange(base, base + BINS + 1, dtype=np.int64) << BITS).view(np.float64)
    centers = np.sqrt(floors[:-1] * floors[1:]) / scale
    found: dict[Clique, float] = {}
    for together in _by_cells(estimates):
        values = np.concatenate([estimates[c].reshape(-1) for c in together], dtype=np.float64)
        sizes = np.array([estimates[c].size for c in together])
        impossible = sizes - np.array(
            [domain.possible(c) for c in together]
        )  # these are known to be 0
        errors = np.empty(len(together))
        _survives(
            values, values.view(np.int64), sizes, impossible, base, centers, scale, above,
            np.empty(len(centers) + 1, np.int64), np.empty(len(centers)), errors,
        )  # fmt: skip
        found |= zip(together, (np.round(errors * per_record) / per_record).tolist(), strict=True)
    return found
