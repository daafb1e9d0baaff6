"""Noisy marginals, and how they are made to say the same of every column before each is projected on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave.schema.domain import Domain
from margrave.typing import Attribute, Clique, FloatArray, IntArray

SWEEPS = 20
"""Times that the columns of a marginal are put right in turn: one is exact where every cell can occur."""

CLOSE = 1e-12
"""A marginal is right when no share of a code is further off than this."""


@dataclass(frozen=True, eq=False)
class Signed:
    """A noisy marginal in shares of the records, one for each of its possible ``cells``; they sum to one."""

    clique: Clique
    cells: IntArray
    shares: FloatArray
    scale: float


def agreeing(domain: Domain, marginals: Sequence[Signed]) -> list[Signed]:
    """The nearest marginals that say the same of every column.

        minimise Σ_S ‖s_S − y_S‖² / scale_S²  over s that have the same sum for every code, whatever the marginal

    A code's share is the mean of what the marginals say, each with the precision 1 / (scale_S² · cells of that code
    in S); what a marginal was off by is shared out among the cells of the code. A column that d − 1 pairs speak of has
    as much less noise, and noise of empty cells that all pairs would call far away cancels. Where combinations are
    ruled out, columns are put right in turn, which comes near that minimum.

    **Privacy:** none spent; post-processing of noisy answers.

    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> one = Signed(("a",), np.arange(2), np.array([0.8, 0.2]), 1.0)
    >>> pair = Signed(("a", "b"), np.arange(4), np.array([0.3, 0.2, 0.3, 0.2]), 1.0)
    >>> [s.shares.round(6).tolist() for s in agreeing(domain, [one, pair])]
    [[0.7, 0.3], [0.4, 0.3, 0.2, 0.1]]

    Source: least squares; Qardaji, Yang, Li (2014), PriView, make noisy views consistent by such means.
    """
    places = [_places(domain, s) for s in marginals]
    columns = {a: _column(domain, a, marginals, places) for s in marginals for a in s.clique}
    return [_put_right(s, own, columns) for s, own in zip(marginals, places, strict=True)]


def _places(domain: Domain, marginal: Signed) -> dict[Attribute, IntArray]:
    """The code that each cell has, by column."""
    shape = tuple(domain.size(a) for a in marginal.clique)
    return dict(zip(marginal.clique, np.unravel_index(marginal.cells, shape), strict=True))


def _column(
    domain: Domain, attribute: Attribute, marginals: Sequence[Signed], places: Sequence[dict[Attribute, IntArray]]
) -> FloatArray | None:
    """The shares of a column's codes; None where nothing is known of it. A code without cells somewhere has none."""
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


def _put_right(
    marginal: Signed, places: dict[Attribute, IntArray], columns: dict[Attribute, FloatArray | None]
) -> Signed:
    """The nearest marginal with these columns."""
    shares = marginal.shares.copy()
    for _ in range(SWEEPS):
        worst = 0.0
        for attribute, own in places.items():
            column = columns[attribute]
            if column is not None:
                off = column - np.bincount(own, weights=shares, minlength=len(column))
                cells = np.bincount(own, minlength=len(column))
                shares += (off / np.maximum(cells, 1))[own]
                worst = max(worst, float(np.abs(off[cells > 0]).max()))
        if worst < CLOSE:
            break
    return replace(marginal, shares=shares)
