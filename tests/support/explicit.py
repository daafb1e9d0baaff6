"""The estimation problem on the full table of a tiny domain: its value anywhere, and its optimum by other means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Domain
from margrave.models import GraphicalFit, GraphicalModel, Model
from margrave.models.terms import Term
from margrave.transcript import Measurement
from margrave.types import FloatArray
from tests.support.strategies import marginal_of, spread_sum


def graphical(model: Model) -> GraphicalModel:
    assert isinstance(model, GraphicalModel)
    return model


def joint_of(model: GraphicalModel) -> FloatArray:
    """Expected counts of every cell of the domain, from the potentials alone."""
    log_joint = spread_sum(model.domain, model.potentials)
    joint = np.exp(log_joint - log_joint.max())
    return model.total * joint / joint.sum()


def loss_of(answers: list[FloatArray], noisy: list[Measurement]) -> float:
    """Σ ||answer − y||² / (2 scale²)."""
    pairs = zip(answers, noisy, strict=True)
    return sum(float((((a.ravel() - m.values.ravel()) / m.scale) ** 2).sum()) / 2 for a, m in pairs)


def allowed(domain: Domain) -> NDArray[np.bool_]:
    """Which cells of the whole domain its structural zeros leave possible."""
    possible = np.ones(domain.sizes, dtype=bool)
    for zeros in domain.zeros:
        possible &= spread_sum(domain, {zeros.clique: zeros.possible - 1.0}) > -0.5
    return possible


@dataclass(frozen=True, eq=False)
class Explicit:
    """The problem on the full table: P(x) = Σ_r ||x_r − y_r||² / (2 scale_r²) + entropy · Σ x log(x / N), Σ x = N."""

    domain: Domain
    terms: list[Term]
    total: float
    entropy: float

    def value(self, joint: FloatArray) -> float:
        loss = sum(
            float((((marginal_of(self.domain, joint, t.clique) - t.values) / t.scales) ** 2).sum())
            / 2
            for t in self.terms
        )
        cells = joint[joint > 0]
        return loss + self.entropy * float((cells * np.log(cells / self.total)).sum())

    def optimum(self) -> float:
        """The least value over all tables, to within what the last line proves, by damped Newton steps."""
        free = np.flatnonzero(allowed(self.domain))
        rows, targets = [np.zeros((0, free.size))], [np.zeros(0)]
        where = np.indices(self.domain.sizes).reshape(len(self.domain), -1)[:, free]
        for t in self.terms:
            index = np.ravel_multi_index(
                [where[self.domain.index(a)] for a in t.clique], t.values.shape
            )
            rows.append((np.arange(t.values.size)[:, None] == index) / t.scales.reshape(-1, 1))
            targets.append((t.values / t.scales).ravel())
        design, wanted = np.vstack(rows), np.concatenate(targets)
        x = np.full(free.size, self.total / free.size)

        def value(x: FloatArray) -> float:
            x = np.maximum(x, 1e-290)
            loss = float(((design @ x - wanted) ** 2).sum()) / 2
            return loss + self.entropy * float((x * np.log(x / self.total)).sum())

        def slope(x: FloatArray) -> FloatArray:
            return design.T @ (design @ x - wanted) + self.entropy * (np.log(x / self.total) + 1.0)

        for _ in range(400):
            gradient = slope(x)
            if gradient @ x - self.total * gradient.min() < 1e-10:
                break
            half = np.sqrt(x)  # Newton in the metric in which the entropy's Hessian is the identity
            scaled = design * half
            hessian = scaled.T @ scaled + self.entropy * np.eye(free.size)
            both = np.linalg.solve(hessian, np.stack([half * gradient, half], axis=1))
            step = -half * (both[:, 0] - both[:, 1] * (half @ both[:, 0]) / (half @ both[:, 1]))
            shrinking = step < 0
            size = (
                min(1.0, 0.95 * float((-x[shrinking] / step[shrinking]).min()))
                if shrinking.any()
                else 1.0
            )
            while size > 1e-12 and value(x + size * step) > value(x) + 1e-13 * abs(value(x)):
                size /= 2
            x = np.maximum(x + size * step, 1e-290)
        gradient = slope(x)
        # convexity: no table is better by more than this
        assert gradient @ x - self.total * gradient.min() < 1e-6 * max(1.0, abs(value(x)))
        return value(x)


def entropy_of(fit: GraphicalFit, terms: list[Term]) -> float:
    """The weight of the entropy, as GraphicalFit states it."""
    return fit.shrinkage / max(float(t.scales[np.isfinite(t.scales)].max()) for t in terms)
