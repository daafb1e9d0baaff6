"""PrivPGD: noisy two-way marginals, and particles moved towards them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.marginal import HalfSpace
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress, option
from margrave.mechanisms.parts import constraint_shares
from margrave.models import Fit, ParticleFit
from margrave.models.entries import EntryKind
from margrave.models.particles import ConstraintPenalty, Penalty
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class PrivPGD(Mechanism):
    """Every two-way marginal with equal noise, then records by particle gradient descent.

    Args:
        workload: The marginals to measure, with equal shares; None means all pairs of columns.
        particles: ``ParticleFit``'s, as ``epochs`` and ``embedding``.
        fit: Another estimator in the place of that one, or one with more parameters.
        constraints: What records should be like, in Python alone: ``KeepShare`` and ``HideShare``,
            whose shares are measured first, and any penalty of ``margrave.models.particles``.
        constraint_fraction: The part of the budget that these shares get; 1/25 costs a fifth of
            epsilon. The paper's is ``constraint_fraction_of_paper``, which adds up epsilons.

    Privacy:
        The whole budget, exactly. The number of records is public, or estimated.

    References:
        Donhauser, Abad, Hulkund, Yang (2024), Privacy-preserving data release leveraging optimal
        transport and particle gradient descent, Algorithms 1 and 3.
    """

    workload: Workload | None = None
    particles: int | None = option(
        None, "Particles; by default as many as records, 10,000 to 100,000.", above=0, of_fit=True
    )
    epochs: int = option(
        200, "Number of moves of the particles towards every marginal.", above=0, of_fit=True
    )
    embedding: str = option(
        "ordered", 'Embedding of unordered columns: "ordered" or "equidistant".', of_fit=True
    )
    fit: Fit | None = None
    constraints: tuple[Penalty | ConstraintPenalty, ...] = ()
    constraint_fraction: Fraction = field(
        default=Fraction(1, 25), metadata={"above": 0, "below": 1}
    )

    name = "privpgd"
    use = "all pairs of columns with an order"
    weighs_marginals = False
    default_ways = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.estimator()

    constraint_fraction_of_paper = staticmethod(constraint_shares.fraction_of_paper)

    def estimator(self) -> Fit:
        """Return the particles, or the fit in their place, with the constraints for penalties."""
        fit = self.fit or ParticleFit(
            particles=self.particles, epochs=self.epochs, embedding=self.embedding
        )
        more = [c for c in self.constraints if c not in fit.penalties]
        return fit.with_penalties(more) if more else fit

    def idle(self) -> Collection[str]:
        """Return the fields that are not stated: the fit states the constraints."""
        free = () if constraint_shares.any_in(self.estimator()) else ("constraint_fraction",)
        return {*super().idle(), "constraints", *free}

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the workload, and the marginals in which the constraints' shares are counted."""
        counted = (q.clique for q in self._shares(domain))
        return list(dict.fromkeys([*self.workload_on(domain).cliques, *counted]))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the constraints' shares with equal noise, then all marginals with equal noise."""
        shares, cliques = self._shares(domain), self.workload_on(domain).cliques
        each, rest = constraint_shares.split(rho, self.constraint_fraction, len(shares))
        what, equal = "every marginal of the workload", rest / len(cliques)
        marginals = PlannedMeasurement.of(what, cliques, equal, unit)
        return [*(constraint_shares.planned(q, each, unit) for q in shares), marginals]

    def on_learned(self, domain: Domain) -> Self:
        """Return it without the constraints and marginals of columns that could not be learned."""
        kept = tuple(c for c in self.constraints if set(domain).issuperset(c.attributes))
        return Mechanism.on_learned(replace(self, constraints=kept), domain)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        kinds = {EntryKind.HALF_SPACE} if self._shares(domain) else set()
        self.check_fit(domain, self.reads(domain), kinds=kinds)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure, then fit (Algorithm 1)."""
        domain, rng, progress = self.begin(private, rng, progress)
        shares = self._shares(domain)
        each, rest = constraint_shares.split(private.rho, self.constraint_fraction, len(shares))
        for query in shares:
            private.measure_queries([query], Gaussian(rho=each))
        private.measure(list(self.workload_on(domain).cliques), Gaussian(rho=rest))
        progress("moving particles", 0.0)
        model = self.estimator()(domain, private.transcript, rng=rng)
        progress("moving particles", 1.0)
        return self.release(private, model)

    def _shares(self, domain: Domain) -> list[HalfSpace]:
        return constraint_shares.of_fit(self.estimator(), domain)
