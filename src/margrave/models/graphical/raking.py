"""Raking: columns of a model that contradict their own noisy counts are scaled to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from margrave.domain import Domain
from margrave.models.graphical.model import GraphicalModel
from margrave.models.precision_means import column_mean
from margrave.models.terms import compress, terms_of
from margrave.transcript import Measurement
from margrave.types import Attribute, FloatArray, IntArray

#: A column's noisy counts, and the precision of each.
NoisyCounts = tuple[FloatArray, FloatArray]


def noisy_columns(
    domain: Domain, measurements: Iterable[Measurement], groups: Mapping[Attribute, IntArray]
) -> dict[Attribute, NoisyCounts]:
    """Return the noisy counts of each measured column, on groups of codes.

    The noise of a measurement is independent of that of others, and of its selection. So precisions add up. Public
    marginals, single answers and weighted sums do not count here, nor do columns with structural zeros.

    Args:
        domain: The columns and their codes.
        measurements: The measurements on these codes.
        groups: The groups of codes that the model merges.
    """
    ruled = {a for zeros in domain.zeros for a in zeros.clique}
    cells = [m for m in measurements if m.query.is_partition]
    coarse, counts, _ = compress(domain, cells, groups)
    terms = [(t.clique, t.values, t.scales) for t in terms_of(coarse, counts)]
    columns = dict.fromkeys(a for clique, *_ in terms for a in clique)
    return {a: column_mean(a, [t for t in terms if a in t[0]]) for a in columns if a not in ruled}


def raked(model: GraphicalModel, noisy: Mapping[Attribute, NoisyCounts]) -> GraphicalModel:
    """Return the model with the columns scaled that contradict their own noisy counts.

    A fit has no negative counts, so noise in empty cells adds up. A rare code of a column with many large
    marginals gets too many records from each of them. The sum of the noisy counts of a code has no such bias.
    A column contradicts these sums if its squared distance from them, in deviations, is three of its own deviations
    above that of noise. The worst column is scaled first, as long as the columns together contradict them less.

    Args:
        model: The model.
        noisy: The noisy counts of its columns.
    """
    most_steps, least = 3, np.inf
    found = model
    for _ in range(most_steps * len(noisy) + 1):
        counts = model.answer([(a,) for a in noisy])
        scaled = {a: _scaled(counts[(a,)], *noisy[a]) for a in noisy}
        excess = sum(max(e, 0.0) for _, e in scaled.values())
        if excess >= least:
            break
        found, least = model, excess
        if not excess:
            break
        worst = max(scaled, key=lambda a: scaled[a][1])
        model = model.tilted(worst, scaled[worst][0])
    return found


def _scaled(
    counts: FloatArray, noisy: FloatArray, precision: FloatArray
) -> tuple[FloatArray, float]:
    """Return the factors that lead to the noisy counts, and by how much the contradiction exceeds noise."""
    deviations, largest = 3.0, 10.0
    some, factors = counts > 0.0, np.ones(len(counts))
    codes = int(some.sum())
    if codes < 2:
        return factors, 0.0
    own = counts[some]
    target = _nearest(noisy[some], precision[some], float(own.sum()))
    factors[some] = np.clip(target / own, 1.0 / largest, largest)
    distance = float((((factors[some] - 1.0) * own) ** 2 * precision[some]).sum())
    return factors, distance - (codes - 1) - deviations * np.sqrt(2.0 * (codes - 1))


def _nearest(noisy: FloatArray, precision: FloatArray, total: float) -> FloatArray:
    """Return the likeliest counts that are not negative and have this sum."""
    pull = noisy * precision
    order = np.argsort(-pull)
    amounts = (np.cumsum(noisy[order]) - total) / np.cumsum(1.0 / precision[order])
    amount = amounts[np.flatnonzero(pull[order] > amounts)[-1]]
    return np.asarray(np.maximum(noisy - amount / precision, 0.0), dtype=np.float64)
