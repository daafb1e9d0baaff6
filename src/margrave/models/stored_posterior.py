"""A posterior whose draws a model carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave.errors import ReleaseError
from margrave.models.protocol import Model


@dataclass(frozen=True, eq=False)
class StoredPosterior:
    """Models drawn from a posterior: a ``Posterior``.

    Attributes:
        family: The model family in a few words.
        facts: The sampler's settings and diagnostics.
        stored: The number of stored draws.
        at: Builds the model of a stored draw. Its generator draws what the draw leaves open.
        remedy: How to refit if the draws failed their checks.
    """

    family: str
    facts: Mapping[str, Any]
    stored: int
    at: Callable[[int, np.random.Generator], Model]
    remedy: str

    @property
    def method(self) -> str:
        """The sampler in words."""
        return f"{self.family} posterior, {self.facts['method']}"

    def draws(self, m: int, *, rng: np.random.Generator) -> Iterator[Model]:
        """Yield ``m`` models; a stored draw repeats only after all have been used."""
        if not self.facts.get("good"):
            raise ReleaseError(
                f"The posterior cannot be drawn from: {self.facts.get('why', 'its draws failed their checks')}.",
                remedy=f"{self.remedy}; or, to use them as they are, with accept=True.",
            )
        order = np.concatenate([rng.permutation(self.stored) for _ in range(-(-m // self.stored))])
        for i in order[:m]:
            yield self.at(int(i), rng)


def posterior_facts(facts: Mapping[str, object]) -> dict[str, Any]:
    """Return the facts of a posterior that a model's state holds.

    Raises:
        ReleaseError: If they are malformed.
    """
    posterior = facts.get("posterior")
    if not isinstance(posterior, dict) or len(posterior) > 50:
        raise ReleaseError("The release's posterior does not say how it was made.")
    for name, value in posterior.items():
        if name in ("method", "why"):
            fits = isinstance(value, str) and len(value) <= 1000
        elif name == "good":
            fits = isinstance(value, bool)
        else:
            fits = (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and 0 <= value <= 1e30
            )
        if not fits:
            raise ReleaseError("The facts of the release's posterior are malformed.")
    if "method" not in posterior or "good" not in posterior:
        raise ReleaseError("The release's posterior does not say how it was made.")
    return posterior
