"""The score of the generalized exponential mechanism: marginal gaps of different sensitivities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from margrave.accounting import Unit, sensitivity
from margrave.domain import Domain
from margrave.privacy.exponential import epsilon_of
from margrave.privacy.scores import PER_RECORD, GridScores, MarginalGap
from margrave.types import Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RelativeGap:
    """``min_j (q_r − q_j) / (w_r + w_j)`` with ``q_r = w_r (‖M_r(D) − estimate_r‖₁ − penalty_r − margin)``.

    q_r is the score of ``MarginalGap``, and w_r its own sensitivity. A selection by q_r has noise for the largest
    weight. This score is 0 for the best candidate, negative for the others, and has the sensitivity 1 for all. The
    gain is large if a few candidates have much larger weights than the others.

    Args:
        estimates: By candidate, the estimate of its marginal.
        weights: By candidate, a positive number.
        penalties: By candidate, a number of records.
        margin: The records that a candidate's gap must exceed, so that its weight is worth its noise
            (``margin_for``). Any public number is private.

    Privacy:
        None spent by itself. If the counts change by K in L1, q_r changes by at most w_r K. So each
        quotient changes by at most K, and so does the least of them: ``lipschitz = 1``. Scores are
        rounded down to multiples of 2^-10. K is a whole number, so rounding moves no difference above it.

    References:
        Raskhodnikova, Smith (2016), Lipschitz extensions for node-private graph statistics and the
        generalized exponential mechanism; McKenna et al. (2022), AIM, Section 4.
    """

    estimates: Mapping[Clique, FloatArray]
    weights: Mapping[Clique, float]
    penalties: Mapping[Clique, float]
    margin: float = 0.0

    lipschitz = 1.0

    @staticmethod
    def margin_for(candidates: int, rho: Fraction, unit: Unit) -> float:
        """Return the margin of the paper, ``2 l1 ln(candidates / 0.05) / epsilon``, in records.

        Args:
            candidates: Their number.
            rho: The price of the selection.
            unit: The unit of privacy. Its L1 sensitivity of a marginal is l1.

        Returns:
            The records that the noise of the selection exceeds with probability 0.05.

        Privacy:
            None spent.
        """
        miss = 0.05
        moved = sensitivity(unit).l1
        return 2.0 * moved * math.log(candidates / miss) / float(epsilon_of(rho))

    @property
    def _gap(self) -> MarginalGap:
        raised = {c: penalty + self.margin for c, penalty in self.penalties.items()}
        return MarginalGap(self.estimates, self.weights, raised)

    def check(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        """Raise ``InputError`` as ``MarginalGap`` does."""
        self._gap.check(domain, candidates)

    def terms(self, candidates: Sequence[Clique]) -> dict[str, FloatArray]:
        """Return weights, penalties and, for each candidate, the margin."""
        own = MarginalGap(self.estimates, self.weights, self.penalties).terms(candidates)
        return {**own, "margin": np.full(len(candidates), self.margin)}

    def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
        """Return no candidates: all are measured."""
        return ()

    def __call__(
        self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        """Return the scores of the candidates, from their true counts."""
        values, grid = self._gap(candidates, counts)
        weights = [Fraction(self.weights[c]) for c in candidates]
        best: dict[Fraction, int] = {}  # the best candidate of each weight is the nearest rival
        for weight, value in zip(weights, values, strict=True):
            best[weight] = max(value, best.get(weight, value))
        found = tuple(
            min(_floor(value - rival, grid / (weight + other)) for other, rival in best.items())
            for weight, value in zip(weights, values, strict=True)
        )
        return GridScores(found, Fraction(1, PER_RECORD))


def _floor(difference: int, unit: Fraction) -> int:
    return difference * unit.numerator * PER_RECORD // unit.denominator
