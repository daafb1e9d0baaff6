"""Moving a set of models together, so that their mean has given one-way marginals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from margrave.models.expanded import ExpandedModel
from margrave.models.graphical import GraphicalModel
from margrave.models.graphical.estimation import Operator, minimise
from margrave.typing import Attribute, Clique, FloatArray

FURTHEST = 4.0
"""The most, as a factor, that a code's share is taken to be off: few models tell little about rare codes."""

PRECISION = 0.3
"""How near to the targets the mean comes, in standard errors of a mean of so many models."""

Tilted = GraphicalModel | ExpandedModel


def reflected(center: FloatArray, mean: FloatArray) -> FloatArray:
    """Shares 2 · center − mean where the mean is below the center; center² / mean, the same to first order, above.

    The second form keeps shares positive. Both are on the mean's scale, and sum to one in the end.
    """
    ratio = np.divide(center, mean, out=np.ones_like(center), where=mean > 0)
    ratio = np.clip(ratio, 1.0 / FURTHEST, FURTHEST)
    target = mean * np.where(ratio < 1.0, ratio**2, 2.0 * ratio - 1.0)
    return np.asarray(target / target.sum(), dtype=np.float64)


def recentred(models: Sequence[Tilted], center: Mapping[Clique, FloatArray]) -> list[Tilted]:
    """The models times one factor per code and column, so that their mean one-way shares are ``reflected``.

    ``center`` holds the one-way counts, in any scale, of the estimate whose bias the models show.

    With f_a the factors, p_i(x) Π_a f_a(x_a) / Z_i(f) for every i. The logs of the factors minimise the convex

        mean_i log Z_i(f) − Σ_a <log f_a, target_a>

    whose gradient is what the mean still misses. Relations among columns stay, as odds ratios, as each model has them.
    """
    shares = [_shares(m) for m in models]
    own = {a: center[a,] / center[a,].sum() for a in models[0].domain}
    target = np.concatenate([reflected(own[a], np.mean([s[a] for s in shares], axis=0)) for a in own])
    spread = float(np.var([np.concatenate(list(s.values())) for s in shares], axis=0).sum()) / len(models)
    start = [m.log_partition for m in models]
    sizes = [len(own[a]) for a in own]

    def factors(log_factors: FloatArray) -> dict[Attribute, FloatArray]:
        parts = np.split(np.exp(log_factors), np.cumsum(sizes)[:-1])
        return dict(zip(own, parts, strict=True))

    def objective(log_factors: FloatArray) -> tuple[float, FloatArray, Operator]:
        moved = [m.reweighted(factors(log_factors)) for m in models]
        mean = np.mean([np.concatenate(list(_shares(m).values())) for m in moved], axis=0)
        value = float(np.mean([m.log_partition - z for m, z in zip(moved, start, strict=True)]))

        def inverse(vector: FloatArray) -> FloatArray:
            return np.asarray(vector / np.maximum(np.maximum(mean, target), 1e-9), dtype=np.float64)

        return value - float(log_factors @ target), mean - target, inverse

    gap = max(PRECISION**2 * spread / 2, 1e-18)
    solution = minimise(objective, np.zeros(len(target)), gap=gap, max_calibrations=40)
    return [m.reweighted(factors(solution.point)) for m in models]


def _shares(model: Tilted) -> Mapping[Attribute, FloatArray]:
    found = model.answer([(a,) for a in model.domain])
    return {a: found[a,] / found[a,].sum() for a in model.domain}
