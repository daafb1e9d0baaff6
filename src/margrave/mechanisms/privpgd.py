"""PrivPGD: noisy two-way marginals, and particles moved towards them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.mechanisms.common import (
    Progress,
    Step,
    check_size,
    parameter,
    release_of,
    silent,
    workload_config,
)
from margrave.models import Fit, ParticleFit
from margrave.privacy import Gaussian, Private, Unit
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

    def __post_init__(self) -> None:
        self.estimator()

    def estimator(self) -> Fit:
        """The particles of these parameters, or what was given in their place."""
        return self.fit or ParticleFit(particles=self.particles, epochs=self.epochs, nominal=self.nominal)

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The workload."""
        workload = Workload.all_kway(domain, 2) if self.workload is None else self.workload
        return Workload.of(domain, workload.weights).cliques

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Equal shares for all."""
        cliques = list(self.reads(domain))
        return [Step.of("every marginal of the workload", cliques, rho / len(cliques), unit)]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        workload = "all 2-way" if self.workload is None else workload_config(self.workload)
        return {"name": "privpgd", "workload": workload, "fit": repr(self.estimator())}

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure, then fit."""
        rng, progress = np.random.default_rng() if rng is None else rng, progress or silent
        domain, fit = private.domain, self.estimator()
        cliques = list(self.reads(domain))
        check_size(fit, domain, cliques)
        private.prepare(cliques)
        private.measure(cliques, Gaussian(rho=private.rho))
        progress("moving particles", 0.0)
        model = fit(domain, private.transcript, rng=rng)
        progress("moving particles", 1.0)
        return release_of(private, model, self.config())
