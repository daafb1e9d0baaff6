"""The score of a selection among marginals: by the plain or the generalized exponential mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from margrave.privacy import MarginalGap, Private, RelativeGap
from margrave.types import Clique, FloatArray


def select_marginal(
    private: Private,
    estimates: Mapping[Clique, FloatArray],
    weights: Mapping[Clique, float],
    penalties: Mapping[Clique, float],
    *,
    rho: Fraction,
    generalized: bool = False,
) -> Clique:
    """Select a marginal by its weighted error less its penalty.

    Args:
        private: The gate.
        estimates: An estimate of each candidate.
        weights: The candidates, with a positive weight for each.
        penalties: The records that count against each.
        rho: The price.
        generalized: Use the generalized exponential mechanism, whose noise follows each weight.

    Returns:
        The selected marginal.

    Privacy:
        ``rho`` (zCDP).
    """
    candidates = list(weights)
    if not generalized:
        return private.select(candidates, MarginalGap(estimates, weights, penalties), rho=rho)
    margin = RelativeGap.margin_for(len(candidates), rho, private.unit)
    return private.select(candidates, RelativeGap(estimates, weights, penalties, margin), rho=rho)
