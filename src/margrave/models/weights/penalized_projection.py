"""Weights between their start and the noisy answers, with a penalty on each."""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel
from margrave.models.weights.empirical_bayes import Spreads
from margrave.models.weights.grid_support import Support
from margrave.models.weights.mass import SHARE_TOLERANCE, within_range
from margrave.models.weights.observations import Observations
from margrave.types import FloatArray


def project_penalized(places: Support, known: Observations, found: Spreads, *, sweeps: int) -> None:
    """Set the weights D, starting from D_0, to the minimizer, with q_i(D) the share of answer i, of

        RE(D || D_0) + Σ_i (answer_i − q_i(D))² / (2 b_i),    b_i = scale_i² / spread_i

    They are D(x) ∝ D_0(x) exp(Σ_i lambda_i q_i(x)) with b_i lambda_i = answer_i − q_i(D). The
    answers (those of a whole marginal together) are solved for in turn until none changes.
    Contradictory answers are met half-way by their noise, and many answers weigh more than one.

    Cost: in each sweep, a pass over the places for each answer at most.
    """
    # Change of answers in a sweep at convergence, in standard deviations of their noise.
    settled = 0.05
    spread, *spreads = found.spreads
    step = _Steps(places, known)
    for _ in range(sweeps):
        moved = [step.query(j, known.scales[j] ** 2 / spread[j]) for j in range(len(known.queries))]
        moved += [step.marginal(j, m.scale**2 / spreads[j]) for j, m in enumerate(known.marginals)]
        if max(moved, default=0.0) < settled:
            break


class _Steps:
    """The change of the weights by every answer so far."""

    def __init__(self, places: Support, known: Observations) -> None:
        self.places, self.known = places, known
        self.selected = places.selected_by(known.queries)
        self.mass = within_range(places, float(places.weights.sum()))
        self.by_query = np.zeros((len(known.queries), 1))
        self.by_marginal = [np.zeros(m.shares.size) for m in known.marginals]

    def query(self, j: int, b: float) -> float:
        """Settle one query; by how many deviations of its noise its share moved."""
        both = self.selected.overlaps(j)
        now, scale = np.array([both[j] / self.mass]), float(self.known.scales[j])
        if not SHARE_TOLERANCE < now[0] < 1.0 - SHARE_TOLERANCE:
            return 0.0
        factors = self._factors(
            now, 1.0 - now[0], self.known.answers[j : j + 1], np.array([b]), self.by_query[j]
        )
        self.selected.scale(j, float(factors[0]))
        self.mass = within_range(self.places, float(self.mass + (factors[0] - 1.0) * both[j]))
        return _in_scales(both[j] * factors[0] / self.mass - now[0], scale)

    def marginal(self, j: int, b: FloatArray) -> float:
        """Settle a whole marginal; by how many deviations of its noise a cell moved at most."""
        m = self.known.marginals[j]
        now = m.shares_in(self.places.marginals([m.clique])[m.clique])
        flat = np.ascontiguousarray(now).reshape(-1)
        factors = self._factors(flat, 0.0, m.shares.reshape(-1), b.reshape(-1), self.by_marginal[j])
        total = float((factors * flat).sum())
        self.places.rescale(
            m.clique, m.query.spread(m.clique, (factors / total).reshape(now.shape))
        )
        self.mass = within_range(self.places, float(self.places.weights.sum()))
        return _in_scales(factors * flat / total - flat, m.scale)

    def _factors(
        self, now: FloatArray, rest: float, answers: FloatArray, b: FloatArray, lambdas: FloatArray
    ) -> FloatArray:
        # Largest change of a weight by one answer, in logarithms.
        max_log_change = 20.0
        before = lambdas.copy()
        _settled(now, rest, answers, np.maximum(b, SHARE_TOLERANCE), lambdas, max_log_change)
        return np.asarray(np.exp(lambdas - before))


def _in_scales(lambdas: FloatArray | float, scale: float) -> float:
    return float(np.max(np.abs(lambdas))) / max(scale, SHARE_TOLERANCE)


@kernel
def _settled(now, rest, answers, b, lambdas, furthest):  # type: ignore[no-untyped-def]
    """Return lambda with b lambda = answer − q and q ∝ r exp(lambda), where r are the shares
    without it.

    With Z the normalizer, q / b = w where w + log w = answer / b + log(r / b) − log Z. That gives q
    for any log Z. Their sum is 1 for one log Z, found by Newton's method within a bracket.
    """
    cells = len(now)
    bases, w, total = np.zeros(cells), np.zeros(cells), rest
    for c in range(cells):
        bases[c] = now[c] * np.exp(-lambdas[c])
        total += bases[c]
    low, high, z = -furthest, furthest, 0.0
    for _ in range(100):
        found, slope = rest / total * np.exp(-z), rest / total * np.exp(-z)
        for c in range(cells):
            if bases[c] <= 0.0:
                continue
            base = bases[c] / total
            at = answers[c] / b[c]
            if b[c] < 1e300:
                y = at + np.log(base) - np.log(b[c]) - z
                w[c] = _omega(y)
                by = at - w[c]
            else:
                by = 0.0
            if by > furthest or by < -furthest or b[c] >= 1e300:
                by = min(max(by, -furthest), furthest)
                share = base * np.exp(by - z)
                slope += share
            else:
                share = b[c] * w[c]
                slope += share / (1.0 + w[c])
            lambdas[c] = by
            found += share
        if abs(found - 1.0) < 1e-12:
            return
        if found > 1.0:
            low = z
        else:
            high = z
        z += (found - 1.0) / slope
        if not low < z < high:
            z = (low + high) / 2.0
        if high - low < 1e-13:
            return


@kernel
def _omega(y):  # type: ignore[no-untyped-def]
    if y < -30.0:
        return np.exp(y)
    w = np.exp(y) if y < -1.0 else (y - np.log(y) if y > 2.0 else np.exp((y - 1.0) / 2.0))
    for _ in range(20):
        step = w * (y - w - np.log(w)) / (1.0 + w)
        w = max(w + step, 0.1 * w)
        if abs(step) <= 1e-14 * w:
            break
    return w
