"""The budget of a round, which grows after rounds that improve the model by less than their noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

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
