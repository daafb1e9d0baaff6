"""Independent: every column on its own. The baseline that anything cleverer must beat."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.mechanisms.common import Progress, Step, check_fit, one_way, parameter, release_of
from margrave.models import Fit, GraphicalFit
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique


@dataclass(frozen=True, kw_only=True)
class Independent:
    """All one-way marginals with Gaussian noise, and a model in which columns are independent.

    Columns that the schema's constraints join are as independent as these allow; ``max_model_mb`` bounds their model.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: the baseline of McKenna, Mullins, Sheldon, Miklau (2022), Section 6.1.
    """

    max_model_mb: float = parameter(1000.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    def __post_init__(self) -> None:
        check_parameters(self)

    def reads(self, domain: Domain) -> Collection[Clique]:
        """All one-way marginals."""
        return one_way(domain)

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """An equal share for every column."""
        return [Step.of("every column", one_way(domain), rho / len(domain), unit)]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {"name": "independent", "max_model_mb": self.max_model_mb, **fit_config(self.fit)}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        check_fit(self.fit, domain, one_way(domain), self.max_model_mb)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure and fit."""
        rng = np.random.default_rng() if rng is None else rng
        self.check(private.domain, private.unit)
        private.measure(one_way(private.domain), Gaussian(rho=private.rho))
        if progress:
            progress("fitting", 1.0)
        return release_of(private, self.fit(private.domain, private.transcript, rng=rng), self.config())
