"""PrivLCM: latent classes with a posterior (Nixon, Barrientos, Reiter, Slavković 2022)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress, one_way, two_way
from margrave.models import Fit, LatentClassFit
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator


@dataclass(frozen=True, kw_only=True)
class PrivLCM(Mechanism):
    """All pairs of columns with equal noise, and the posterior of a model of latent classes.

    ``release.draws(m)`` then gives tables whose differences show what the noise and the sampling of
    the records leave open, and ``margrave.analyze`` intervals for the population. Every pair takes
    the same share of the budget, so the noise grows with the number of columns. Use it for tables of
    a few columns with few codes each.

    Args:
        fit: The latent classes and their posterior.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Nixon, Barrientos, Reiter, Slavković (2022), A latent class modeling approach for
        differentially private synthetic data for contingency tables.
    """

    fit: Fit = field(default_factory=LatentClassFit)

    name = "privlcm"
    use = "inference: a posterior over latent classes, for few columns"
    default_ways = None

    def reads(self, domain: Domain) -> list[Clique]:
        """Return all pairs, or the only column."""
        return two_way(domain) or one_way(domain)

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return an equal share for every pair."""
        pairs = self.reads(domain)
        return [PlannedMeasurement.of("every pair", pairs, rho / len(pairs), unit)]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, self.reads(domain))

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure every pair, then find the posterior."""
        domain, rng, progress = self.begin(private, rng, progress)
        private.measure(self.reads(domain), Gaussian(rho=private.rho))
        progress("finding the posterior", 1.0)
        return self.release(private, self.fit(domain, private.transcript, rng=rng))
