"""Weighted consistency: noisy marginals adjusted until they agree on every column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave.domain import Domain
from margrave.types import Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SignedMeasure:
    """A noisy marginal: the share of the records in each possible cell, positive or negative.

    ``cells`` are flat indices of the possible cells, ``shares`` one number for each, with the sum 1;
    ``scale`` is the standard deviation of the noise of a share.
    """

    clique: Clique
    cells: IntArray
    shares: FloatArray
    scale: float


def agreeing(domain: Domain, marginals: Sequence[SignedMeasure]) -> list[SignedMeasure]:
    """Return the nearest marginals that agree on the share of every code of every column.

        minimize Σ_S ‖s_S − y_S‖² / scale_S²  over s with equal one-way sums

    A code's agreed share is the mean over the marginals with its column, each with the precision
    1 / (scale_S² · cells of that code in S). The difference is spread evenly over the code's cells. The
    result is the minimum if all cells are possible. Otherwise columns are adjusted in turn, which comes
    near it.

    Args:
        domain: The attributes.
        marginals: Noisy marginals, in any order.

    Returns:
        Marginals of the same cells and scales, in the same order.

    Example:
        >>> domain = Domain.of({"a": 2, "b": 2})
        >>> one = SignedMeasure(("a",), np.arange(2), np.array([0.8, 0.2]), 1.0)
        >>> pair = SignedMeasure(("a", "b"), np.arange(4), np.array([0.3, 0.2, 0.3, 0.2]), 1.0)
        >>> [s.shares.round(6).tolist() for s in agreeing(domain, [one, pair])]
        [[0.7, 0.3], [0.4, 0.3, 0.2, 0.1]]

    References:
        Qardaji, Yang, Li (2014), PriView: least squares consistency of noisy views.
    """
    places = [_places(domain, s) for s in marginals]
    columns = {a: _column(domain, a, marginals, places) for s in marginals for a in s.clique}
    return [_adjusted(s, own, columns) for s, own in zip(marginals, places, strict=True)]


def _places(domain: Domain, marginal: SignedMeasure) -> dict[Attribute, IntArray]:
    shape = tuple(domain.size(a) for a in marginal.clique)
    return dict(zip(marginal.clique, np.unravel_index(marginal.cells, shape), strict=True))


def _column(
    domain: Domain,
    attribute: Attribute,
    marginals: Sequence[SignedMeasure],
    places: Sequence[dict[Attribute, IntArray]],
) -> FloatArray | None:
    k = domain.size(attribute)
    sums, precision, can = np.zeros(k), np.zeros(k), np.ones(k, dtype=bool)
    for marginal, own in zip(marginals, places, strict=True):
        if attribute in own:
            cells = np.bincount(own[attribute], minlength=k)
            weight = marginal.scale**-2 / np.maximum(cells, 1)
            sums += weight * np.bincount(own[attribute], weights=marginal.shares, minlength=k)
            precision += weight
            can &= cells > 0
    if not can.any() or not precision[can].all():
        return None
    shares = np.where(can, sums / np.where(can, precision, 1.0), 0.0)
    return np.where(can, shares + (1.0 - shares.sum()) / can.sum(), 0.0)


def _adjusted(
    marginal: SignedMeasure,
    places: dict[Attribute, IntArray],
    columns: dict[Attribute, FloatArray | None],
) -> SignedMeasure:
    # Sweeps over the columns of a marginal; one is exact if every cell is possible.
    max_sweeps = 20
    # Largest difference of a code's share from the agreed one, after which sweeps stop.
    share_tolerance = 1e-12
    shares = marginal.shares.copy()
    for _ in range(max_sweeps):
        worst = 0.0
        for attribute, own in places.items():
            column = columns[attribute]
            if column is not None:
                off = column - np.bincount(own, weights=shares, minlength=len(column))
                cells = np.bincount(own, minlength=len(column))
                shares += (off / np.maximum(cells, 1))[own]
                worst = max(worst, float(np.abs(off[cells > 0]).max()))
        if worst < share_tolerance:
            break
    return replace(marginal, shares=shares)
