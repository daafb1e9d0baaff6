"""The Gaussian mechanism on a workload: noisy answers, no synthetic records."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.mechanisms.common import (
    Progress,
    Step,
    check_fit,
    release_of,
    split,
    workload_config,
    workload_or_default,
)
from margrave.models import AnswersFit, Fit
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism:
    """Every marginal of the workload, with the split of the budget that minimises the expected workload error.

    minimise Σ_r c_r cells_r scale_r subject to Σ_r 1 / (2 scale_r²) = rho gives rho_r ∝ (c_r cells_r)^(2/3)

    ``workload``: None means all three-way marginals. The release answers those marginals and all below them; ``refit``
    makes a model of them where one is small enough.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: Zhang et al. (2021), PrivSyn, Section 4.2; the baseline of the AIM paper.
    """

    workload: Workload | None = None
    fit: Fit = field(default_factory=AnswersFit)

    def __post_init__(self) -> None:
        check_parameters(self)

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The workload."""
        return workload_or_default(self.workload, domain).cliques

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Each marginal with its share."""
        shares = self._shares(domain, rho)
        return [Step.of(", ".join(clique), [clique], share, unit) for clique, share in shares.items()]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {"name": "gaussian", "workload": workload_config(self.workload), **fit_config(self.fit)}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        check_fit(self.fit, domain, workload_or_default(self.workload, domain).cliques)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure each marginal with its share."""
        rng = np.random.default_rng() if rng is None else rng
        domain = private.domain
        shares = self._shares(domain, private.rho)
        self.check(domain, private.unit)
        private.prepare(shares)
        for i, (clique, rho) in enumerate(shares.items()):
            private.measure([clique], Gaussian(rho=rho))
            if progress:
                progress("measuring", (i + 1) / len(shares))
        return release_of(private, self.fit(domain, private.transcript, rng=rng), self.config())

    def _shares(self, domain: Domain, rho: Fraction) -> dict[Clique, Fraction]:
        """rho_r ∝ (c_r cells_r)^(2/3), summing to rho exactly."""
        weights = workload_or_default(self.workload, domain).weights
        shares = split(rho, [(c * domain.cells(r)) ** (2 / 3) for r, c in weights.items()])
        return dict(zip(weights, shares, strict=True))
