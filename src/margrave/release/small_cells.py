"""The size of a marginal's cells relative to their noise, from public numbers alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from margrave.bounds.gls import Unbiased
from margrave.bounds.weighted_sums import summed_columns
from margrave.domain import Domain
from margrave.release.diagnostics import with_followers
from margrave.release.number import MAX_DEVIATIONS_FROM_ZERO
from margrave.transcript import Measurement, Transcript
from margrave.types import Attribute, Clique

#: The columns of a marginal, and the expected count of its cells over their noise scale.
CellSize = tuple[Clique, float]


def cell_sizes(domain: Domain, transcript: Transcript) -> tuple[CellSize, ...]:
    """Return the size of the average cell of each marginal, in noise scales.

    Args:
        domain: Its structural zeros leave out impossible cells, and add the columns that follow.
        transcript: Its row count is n. A public marginal has no noise.

    Returns:
        For each marginal, its columns and n / (cells · scale). Weighted sums of a column have no cells.

    Privacy:
        None spent.
    """
    n, public = transcript.total(), ((r.clique, math.inf) for r in transcript.readings)
    measured = (
        (m.clique, n / (_cells(domain, m) * _cell_scale(m)))
        for m in transcript.measurements
        if not summed_columns(m, domain)
    )
    return tuple((with_followers(domain, c), size) for c, size in (*measured, *public))


def sums_measured(domain: Domain, transcript: Transcript) -> tuple[tuple[Clique, Clique], ...]:
    """Return the columns with weighted sums, and the columns in whose cells they were measured, with their own.

    Two columns are those of sums of products.

    Args:
        domain: Its structural zeros add the columns that follow.
        transcript: Sums by merged codes are left out.

    Privacy:
        None spent.
    """
    return tuple(
        (columns, with_followers(domain, m.clique))
        for m in transcript.measurements
        if not m.query.groups and (columns := summed_columns(m, domain))
    )


def sum_sizes(domain: Domain, transcript: Transcript) -> tuple[CellSize, ...]:
    """Return the size of the average cell for each marginal with weighted sums of one column, in noise scales.

    The noise is that at which cells would give a sum as noisy as the one that was measured.

    Args:
        domain: Its structural zeros leave out impossible cells.
        transcript: Its row count is n.

    Returns:
        For each, its columns and n · ‖weights‖ / (cells · scale), by the first of its sums.

    Privacy:
        None spent.
    """
    n, found = transcript.total(), list[CellSize]()
    for m in transcript.measurements:
        columns = summed_columns(m, domain)
        if len(columns) == 1 and not m.query.groups:
            weights = np.linalg.norm(m.query.matrices[columns[0]][0].astype(np.float64))
            found.append((m.clique, float(n * weights / (domain.possible(m.clique) * m.scale))))
    return tuple(found)


def pooled_size(sizes: Iterable[CellSize], columns: Clique) -> float:
    """Return the size of the average cell, in noise scales, of all marginals with some columns.

    K marginals of equal size measure these columns like one with the noise scale over √K.

    Args:
        sizes: The sizes of the release's marginals.
        columns: One column or several.

    Returns:
        The root of the sum of squares; 0 if no marginal has all the columns.

    Example:
        >>> pooled_size([(("age", "sex"), 3.0), (("age", "ward"), 4.0), (("sex",), 9.0)], ("age",))
        5.0
    """
    return math.hypot(*(size for clique, size in sizes if set(columns) <= set(clique)))


def is_below_noise(sizes: Iterable[CellSize], columns: Clique) -> bool:
    """Return whether some marginal has all the columns, and the noise exceeds the average cell in all that do.

    Example:
        >>> is_below_noise([(("age", "sex"), 0.6)], ("age",)), is_below_noise([], ("age",))
        (True, False)
    """
    return 0.0 < pooled_size(sizes, columns) < 1.0


def small_levels(
    domain: Domain,
    transcript: Transcript,
    sizes: Iterable[CellSize],
    columns: Clique,
    by: Attribute,
) -> frozenset[int]:
    """Return the codes of a column at which the average cell of several columns is small beside its noise.

    It is if its expected count is within three noise scales of zero. Such cells are fewer than those of a whole
    marginal, so that the noise of one hardly makes up for that of another.

    Args:
        domain: The domain of the release.
        transcript: Its noisy counts say which share of the rows has each code.
        sizes: The sizes of the release's marginals, and of sums if these serve in place of cells.
        columns: Several columns, with ``by``.
        by: The column of the codes.

    Returns:
        The codes. None if no marginal has all the columns, or ``by`` has no noisy counts.

    Privacy:
        None spent.
    """
    size, unbiased = pooled_size(sizes, columns), Unbiased(domain, transcript)
    estimate = unbiased.estimate((by,)) if unbiased.supports((by,)) else None
    if estimate is None or not 0.0 < size < math.inf:
        return frozenset()
    own = size * estimate.values / max(float(estimate.values.mean()), 1.0)
    return frozenset(np.flatnonzero(own < MAX_DEVIATIONS_FROM_ZERO).tolist())


def hidden_pairs(sizes: Iterable[CellSize]) -> frozenset[Clique]:
    """Return the pairs of columns that are below their noise, as `is_below_noise` has it.

    Example:
        >>> sorted(hidden_pairs([(("age", "sex"), 0.6), (("age", "ward"), 4.0)]))
        [('age', 'sex')]
    """
    own = defaultdict[Clique, list[CellSize]](list)
    for clique, size in sizes:
        for pair in combinations(clique, 2):
            own[pair].append((clique, size))
    return frozenset(pair for pair, found in own.items() if is_below_noise(found, pair))


def _cells(domain: Domain, measurement: Measurement) -> int:
    return min(domain.possible(measurement.clique), measurement.values.size)


def _cell_scale(measurement: Measurement) -> float:
    """Return the root mean square noise of cells, by least squares from the answers."""
    scale = measurement.scale
    for matrix in measurement.query.matrices.values():
        weights = matrix.astype(np.float64)
        scale *= math.sqrt(np.diag(np.linalg.pinv(weights.T @ weights)).mean())
    return scale
