"""PrivPGD: noisy two-way marginals, and particles moved towards them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import HalfSpace
from margrave.mechanisms.common import (
    Progress,
    Step,
    check_fit,
    parameter,
    release_of,
    silent,
    workload_config,
    workload_or_default,
)
from margrave.models import Fit, ParticleFit
from margrave.models.entries import EntryKind
from margrave.models.particles import Constraint, Penalty
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Budget, Gaussian, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class PrivPGD:
    """Every two-way marginal with the same Gaussian noise, then records by particle gradient descent.

    ``workload``: the marginals to measure; None means all pairs of columns (of a table of one column, that column).
    Each gets an equal share of the budget; its weight in the workload plays no part. ``particles``, ``epochs`` and
    ``nominal`` are ``ParticleFit``'s. ``fit``: another estimator in the place of that one, or one with more parameters.

    ``constraints``: what the records should be like besides, in Python alone: ``KeepShare`` and ``HideShare``, whose
    shares are asked for first, with the part ``for_constraints`` of the budget, and any penalty of
    ``margrave.models.particles``. The default part is 1/25, in which the shares cost a fifth of epsilon. The paper adds
    up ε = 0.5 and ε = 2 to 2.5 and so leaves the marginals 0.65 of rho: ``for_constraints_of_paper``.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The number of records is public, or
    estimated from the noisy marginals.

    Source: Donhauser, Abad, Hulkund, Yang (2024), Privacy-preserving data release leveraging optimal transport and
    particle gradient descent, Algorithms 1 and 3. Departures: ``docs/privpgd.md``.
    """

    workload: Workload | None = None
    particles: int | None = parameter(None, "Particles; by default as many as records, 10,000 to 100,000.", above=0)
    epochs: int = parameter(200, "How often the particles are moved towards every marginal.", above=0)
    nominal: str = parameter("ordered", 'How columns of names are embedded: "ordered" or "equidistant".')
    fit: Fit | None = None
    constraints: tuple[Penalty | Constraint, ...] = ()
    for_constraints: Fraction = Fraction(1, 25)

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "constraints", tuple(self.constraints))
        object.__setattr__(self, "for_constraints", Fraction(self.for_constraints).limit_denominator(10**6))
        if not 0 < self.for_constraints < 1:
            raise InputError(
                f"for_constraints is {self.for_constraints}.",
                remedy="Give it the part of the budget that the constraints' shares cost, above 0 and below 1.",
            )
        self.estimator()

    @staticmethod
    def for_constraints_of_paper(epsilon: float = 2.5, delta: float = 1e-5) -> Fraction:
        """Return the part ``for_constraints`` that leaves the marginals what the paper leaves them.

        The paper asks for the share with (epsilon / 5, delta / 5), for the marginals with the other four fifths, and
        adds them up. The marginals then get rho(0.8 epsilon, 0.8 delta) of rho(epsilon, delta), and the shares get the
        rest here. In the paper most of that rest is lost to the addition.

        Args:
            epsilon: The whole epsilon; 2.5 in the paper's experiment.
            delta: The whole delta; 1e-5 there.

        Returns:
            The part, 0.345 for the paper's experiment.

        Raises:
            InputError: If epsilon or delta is out of range (``Budget.approx``).

        Privacy:
            None spent.

        Example:
            >>> round(float(PrivPGD.for_constraints_of_paper()), 3)
            0.345

        References:
            Donhauser, Abad, Hulkund, Yang (2024), Appendix B.
        """
        return 1 - Budget.approx(0.8 * epsilon, 0.8 * delta).rho / Budget.approx(epsilon, delta).rho

    def estimator(self) -> Fit:
        """The particles of these parameters, or what was given in their place, with the constraints for penalties."""
        fit = self.fit or ParticleFit(particles=self.particles, epochs=self.epochs, nominal=self.nominal)
        more = [c for c in self.constraints if c not in _penalties(fit)]
        if not more:
            return fit
        if not isinstance(fit, ParticleFit):
            raise InputError(
                f"{type(fit).__name__} does not know of constraints.",
                remedy="Fit by ParticleFit, or leave the constraints out.",
            )
        return replace(fit, penalties=(*fit.penalties, *more))

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The workload, and the marginals in which the constraints' shares are counted."""
        return tuple(dict.fromkeys([*self._measured(domain), *(q.clique for q in self._asked(domain))]))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The constraints' shares, each with as much; then all marginals, each with as much."""
        asked, cliques = self._asked(domain), self._measured(domain)
        each, rest = self._split(rho, len(asked))
        return [
            *(
                Step(f"share: {q.words}", [q.clique], 1, Gaussian.scale_for(each, unit, q) / q.most, single=True)
                for q in asked
            ),
            Step.of("every marginal of the workload", cliques, rest / len(cliques), unit),
        ]

    def config(self) -> dict[str, Any]:
        """The parameters; constraints are among the fit's penalties."""
        workload = workload_config(self.workload, ways=2)
        fit = self.estimator()
        asks = any(isinstance(p, Constraint) for p in _penalties(fit))
        share = {"for_constraints": str(self.for_constraints)} if asks else {}
        return {"name": "privpgd", "workload": workload, **share, **fit_config(fit)}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        kinds = {EntryKind.HALF_SPACE} if self._asked(domain) else set()
        check_fit(self.estimator(), domain, self.reads(domain), kinds=kinds)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure, then fit."""
        rng, progress = np.random.default_rng() if rng is None else rng, progress or silent
        domain, fit = private.domain, self.estimator()
        cliques, asked, reads = self._measured(domain), self._asked(domain), self.reads(domain)
        self.check(domain, private.unit)
        private.prepare(reads)
        each, rest = self._split(private.rho, len(asked))
        for query in asked:
            private.measure_queries([query], Gaussian(rho=each))
        private.measure(cliques, Gaussian(rho=rest))
        progress("moving particles", 0.0)
        model = fit(domain, private.transcript, rng=rng)
        progress("moving particles", 1.0)
        return release_of(private, model, self.config())

    def _measured(self, domain: Domain) -> list[Clique]:
        """The marginals that are measured whole."""
        return list(workload_or_default(self.workload, domain, ways=2).cliques)

    def _asked(self, domain: Domain) -> list[HalfSpace]:
        """The shares that the constraints are about, each once."""
        questions = (p.question(domain) for p in _penalties(self.estimator()) if isinstance(p, Constraint))
        return list(dict.fromkeys(q for q in questions if q is not None))

    def _split(self, rho: Fraction, asked: int) -> tuple[Fraction, Fraction]:
        """What each of the shares gets, and what all marginals together."""
        return (rho * self.for_constraints / asked, rho * (1 - self.for_constraints)) if asked else (rho, rho)


def _penalties(fit: Fit) -> tuple[Penalty | Constraint, ...]:
    """The penalties of a fit that knows of them."""
    return tuple(getattr(fit, "penalties", ()))
