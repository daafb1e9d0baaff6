"""Latent classes with draws of their posterior: each draw is a mixture, and so is their mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.models.decode import floats_of
from margrave.models.mixture import MixtureModel, load_mixture
from margrave.models.protocol import ModelState
from margrave.models.stored_posterior import StoredPosterior, posterior_facts
from margrave.types import AnyArray, FloatArray


class LatentClassModel(MixtureModel):
    """The posterior mean of latent classes: the mixture of all draws' classes.

    Args:
        domain: The domain.
        total: The number of records that it stands for.
        probabilities: One row per class of each draw, one column per code; the classes of a draw
            follow each other.
        weights: The weights of these classes; those of each draw have the same sum.
        totals: The number of records of each draw.
        facts: The sampler's settings and diagnostics.
    """

    def __init__(
        self,
        domain: Domain,
        total: float,
        probabilities: AnyArray,
        weights: AnyArray,
        totals: FloatArray,
        facts: Mapping[str, Any],
    ) -> None:
        super().__init__(domain, total, probabilities, weights)
        self.totals = totals
        self.facts = facts

    def draw(self, i: int) -> MixtureModel:
        """Return the i-th draw."""
        classes = len(self.weights) // len(self.totals)
        own = slice(i * classes, (i + 1) * classes)
        return MixtureModel(
            self.domain, float(self.totals[i]), self.probabilities[own], self.weights[own]
        )

    def posterior(self) -> StoredPosterior:
        """Return the draws that came with it."""
        return StoredPosterior(
            "latent-class",
            self.facts,
            len(self.totals),
            lambda i, rng: self.draw(i),
            "Refit with more sweeps, release.refit(LatentClassFit(max_sweeps=100000))",
        )

    def state(self) -> ModelState:
        """Return the classes of all draws, the totals, and the sampler's facts."""
        mixture = super().state()
        return replace(
            mixture,
            kind="latent-classes",
            facts={**mixture.facts, "posterior": dict(self.facts)},
            arrays={**mixture.arrays, "totals": self.totals},
        )


def load_latent_classes(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> LatentClassModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    mixture = load_mixture(domain, facts, arrays)
    known = arrays.get("totals")
    draws = len(known) if known is not None and known.ndim == 1 else 0
    totals = floats_of(arrays, "totals", (draws,))
    weights = mixture.weights
    if not draws or len(weights) % draws or not ((totals > 0) & (totals <= 1e30)).all():
        raise ReleaseError("The release's posterior is malformed.")
    if not np.allclose(weights.reshape(draws, -1).sum(axis=1), 1.0 / draws):
        raise ReleaseError("The release's posterior holds numbers that are not weights.")
    return LatentClassModel(
        domain,
        mixture.total,
        mixture.probabilities,
        arrays["weights"],
        totals,
        posterior_facts(facts),
    )
