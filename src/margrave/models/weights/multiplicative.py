"""Multiplicative weights: how noisy answers move the weights of MWEM and PMW^Pub.

Answers are shares of all records.
"""

from __future__ import annotations

import numpy as np

from margrave.models.weights.grid_support import Support
from margrave.models.weights.mass import within_range
from margrave.models.weights.observations import Observations
from margrave.types import Clique


def multiply(
    places: Support, known: Observations, *, step: float, passes: int, threshold: float
) -> None:
    """Multiply the weights of the records that a query counts, query after query, pass after pass.

        D(x) ← D(x) · exp(step · q(x) (answer − q(D)))

    An answer within ``threshold`` standard deviations of its noise is left alone; a pass that finds
    all of them so is the last. The cells of a marginal measured whole are updated together: they
    count no record twice.

    References:
        Hardt, Ligett, McSherry (2012), the update of MWEM.
    """
    known = known.clip_to_support(places, 0.0)
    selected = places.selected_by(known.queries)
    mass = float(places.weights.sum())
    for _ in range(passes):
        mass, change = selected.multiplicative_pass(
            known.answers, threshold * known.scales, step, mass
        )
        for m in known.marginals:
            sums = places.marginals([m.clique])[m.clique]
            gaps = m.shares - m.shares_in(sums)
            gaps[np.abs(gaps) <= threshold * m.scale] = 0.0
            if gaps.any():
                factors = m.query.spread(m.clique, np.exp(step * gaps))
                places.rescale(m.clique, factors)
                mass, change = float((factors * sums).sum()), True
        if not change:
            break
        mass = within_range(places, mass)


def multiply_at_once(
    places: Support, known: Observations, latest: Clique | None, *, step: float
) -> None:
    """Multiply once, by every answer that is off by half as much as the latest one, or more.

        D(x) ← D(x) · exp(step · Σ_q q(x) (answer − q(D)))

    All shares are those before the update, so that the order of queries plays no part. A marginal
    measured whole is as far off as its worst cell. ``latest`` is the marginal that was measured
    last, None if it was a single query, the first of those known.

    References:
        Liu, Vietri, Wu (2021), Appendix B.2, and their code.
    """
    # Liu et al. leave alone what is off by less than this share of what the round's own answer is
    # off by.
    min_relative_error = 0.5
    known = known.clip_to_support(places, 0.0)
    selected = places.selected_by(known.queries)
    gaps = known.answers - selected.sums() / float(places.weights.sum())
    sums = places.marginals(known.cliques)
    tables = [m.shares - m.shares_in(sums[m.clique]) for m in known.marginals]
    furthest = [float(np.abs(table).max()) for table in tables]
    of_latest = float(abs(gaps[0])) if latest is None else furthest[known.cliques.index(latest)]
    change = 0.0
    for i in np.flatnonzero(np.abs(gaps) >= min_relative_error * of_latest):
        selected.scale(int(i), float(np.exp(step * gaps[i])))
        change = _within_reach(places, change + step * abs(float(gaps[i])))
    for m, table, off in zip(known.marginals, tables, furthest, strict=True):
        if off >= min_relative_error * of_latest:
            places.rescale(m.clique, m.query.spread(m.clique, np.exp(step * table)))
            change = _within_reach(places, change + step * off)


def _within_reach(places: Support, change: float) -> float:
    """Return how far weights can have change, in logarithms, since their sum was in range."""
    # Updates may move a weight so far, in logarithms, before the sum is computed again.
    max_log_move = 100.0
    if change <= max_log_move:
        return change
    within_range(places, float(places.weights.sum()))
    return 0.0
