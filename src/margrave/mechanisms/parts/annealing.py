"""The budget of a round, which grows after rounds that improve the model by less than their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from margrave.domain import Domain
from margrave.mechanisms.common import PlannedMeasurement
from margrave.models.cost import halvings_above_noise, marginals_per_halving
from margrave.privacy import Gaussian, Private


@dataclass
class AnnealedBudget:
    """The budget of a round, by AIM's annealing.

    Args:
        private: The gate.
        rho: The budget of the first round (zCDP).
        alpha: The share of a round's budget that measures. The rest selects.

    Privacy:
        None spent. Rounds that cost ``selecting`` and ``measuring`` spend what remains, to the last fraction.

    References:
        McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithm 3.
    """

    private: Private
    rho: Fraction
    alpha: Fraction

    @property
    def selecting(self) -> Fraction:
        """The budget of the round's selection."""
        return (1 - self.alpha) * self.rho

    @property
    def measuring(self) -> Fraction:
        """The budget of the round's measurement."""
        return self.alpha * self.rho

    @property
    def scale(self) -> float:
        """The noise scale of the round's measurement."""
        return Gaussian.scale_for(self.measuring, self.private.unit)

    @property
    def spent(self) -> float:
        """The share of the whole budget that is spent."""
        return float(1 - self.private.remaining / self.private.rho)

    @property
    def spent_after(self) -> float:
        """The share of the whole budget that is spent once the round is."""
        return float(1 - (self.private.remaining - self.rho) / self.private.rho)

    def another_round(self) -> bool:
        """Return whether there is another round. One that leaves too little for the next takes all that remains."""
        if self.private.remaining <= 2 * self.rho:
            self.rho = self.private.remaining
        return self.private.remaining > 0

    def anneal(self, learned: float, noise: float) -> None:
        """Quadruple the budget, which halves the noise, if the model's answer moved by no more than the noise."""
        if learned <= noise:
            self.rho *= 4


def expected_rounds(domain: Domain, steps: Sequence[PlannedMeasurement], records: int) -> int:
    """Return about how many rounds annealing makes of a budget, for a plan.

    Each halving of the noise makes k more marginals worth a round. Marginals that are above the first round's noise
    by h halvings, on average, take k · h rounds of its budget. Each k rounds after them cost four times as much:
    k · (4 + 16 + … + 4^l) is what remains, so there are k · (h + l) rounds.

    Args:
        domain: The domain.
        steps: The planned measurements; those of rounds are adaptive.
        records: A guess of the number of rows.

    Returns:
        The number of rounds, at most that of the steps.

    Privacy:
        None spent: no row is read.
    """
    each, found = marginals_per_halving(domain), 0
    for step in (s for s in steps if s.adaptive):
        above = halvings_above_noise(domain, step.cliques, records, step.scale / step.weight)
        first = each * float(above.mean())
        left = max(0.0, step.marginals - first)
        dearer = each * math.log(1 + 3 * left / (4 * each), 4)
        found += min(step.marginals, math.ceil(first + dearer))
    return found
