"""Selections among marginals by their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from margrave.mechanisms.parts.noisy_scores import noisy_scores
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.privacy import Gaussian, MarginalGap, Private, RelativeGap
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
        estimates: The candidates, with an estimate of each.
        weights: A positive weight for each. Those of other marginals are left out.
        penalties: The records that count against each.
        rho: The price.
        generalized: Use the generalized exponential mechanism, whose noise follows each weight.

    Returns:
        The selected marginal.

    Privacy:
        ``rho`` (zCDP).
    """
    candidates = list(estimates)
    weights = {r: weights[r] for r in candidates}  # sensitivities are those of the largest
    if not generalized:
        return private.select(candidates, MarginalGap(estimates, weights, penalties), rho=rho)
    margin = RelativeGap.margin_for(len(candidates), rho, private.unit)
    return private.select(candidates, RelativeGap(estimates, weights, penalties, margin), rho=rho)


def measure_worst(
    private: Private,
    estimates: Mapping[Clique, FloatArray],
    memory: SelectionLog,
    count: int = 1,
    *,
    penalties: Mapping[Clique, float] | None = None,
    selecting: Fraction,
    measuring: Fraction,
) -> list[Clique]:
    """Select marginals by their error less their penalty, one after the other, and measure each.

    Args:
        private: The gate.
        estimates: The candidates, with an estimate of each.
        memory: Keeps what the marginals were selected by.
        count: The number of marginals.
        penalties: The records that count against each; by default none.
        selecting: The price of each selection.
        measuring: The price of each measurement.

    Returns:
        The marginals, in the order of their selection.

    Privacy:
        ``count`` times ``selecting + measuring`` (zCDP).
    """
    left, chosen = list(estimates), list[Clique]()
    gap = MarginalGap.plain(estimates)
    if penalties is not None:
        gap = replace(gap, penalties=penalties)
    for _ in range(count):
        chosen.append(private.select(left, gap, rho=selecting))
        private.measure(chosen[-1:], Gaussian(rho=measuring))
        memory.note(estimates, private.transcript)
        left.remove(chosen[-1])
    return chosen


def measure_largest(
    private: Private,
    estimates: Mapping[Clique, FloatArray],
    count: int = 1,
    *,
    selecting: Fraction,
    measuring: Fraction,
) -> None:
    """Measure the errors of all estimates as numbers, then the marginals of which they are largest.

    **Privacy:** ``count`` times ``selecting + measuring`` (zCDP).
    """
    gap = MarginalGap.plain(estimates)
    errors = noisy_scores(private, list(estimates), gap, selecting * count)
    largest = sorted(errors, key=lambda r: -errors[r])[:count]
    private.measure(largest, Gaussian(rho=measuring * count))
