"""NoModel: the place of a model that a release does not have, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from margrave.errors import ReleaseError
from margrave.marginal import Marginal
from margrave.models.loading import total_of
from margrave.models.protocol import Model, ModelState
from margrave.schema.domain import Codes, Domain
from margrave.typing import AnyArray, Attribute, Clique, FloatArray

KIND = "none"
MAX_REASON_CHARACTERS = 400


class NoModel:
    """A model that answers nothing: every question is a ReleaseError with the reason and the remedy.

    ``total`` is the number of records by the noisy answers alone. ``kept`` is the state of a model of a kind that this
    installation cannot read: ``state`` returns it, so that a release that is saved again still has it.
    """

    def __init__(self, domain: Domain, total: float, reason: str, kept: ModelState | None = None) -> None:
        self._domain, self._total, self._kept = domain, total, kept
        self.reason = one_line(reason)

    @property
    def domain(self) -> Domain:
        """The attributes of the table."""
        return self._domain

    @property
    def total(self) -> float:
        """The number of records, public or estimated."""
        return self._total

    def refuse(self) -> NoReturn:
        """Raise the ReleaseError that gives the reason."""
        raise ReleaseError(
            f"This release has no model: {self.reason}.",
            remedy="Fit one to its noisy answers at no cost: release.refit(...), or margrave refit.",
        )

    def project(self, clique: Clique) -> Marginal:
        """Raise a ReleaseError."""
        self.refuse()

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Raise a ReleaseError."""
        self.refuse()

    def sample(
        self, rows: int | None = None, *, rng: np.random.Generator, independent: bool = False
    ) -> Codes:
        """Raise a ReleaseError."""
        self.refuse()

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> Model:
        """Raise a ReleaseError."""
        self.refuse()

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Raise a ReleaseError."""
        self.refuse()

    def posterior(self) -> None:
        """Return None: there is no distribution."""
        return

    def state(self) -> ModelState:
        """Return the state that was kept, or the reason as plain data."""
        if self._kept is not None:
            return self._kept
        return ModelState(KIND, {"total": self._total, "reason": self.reason}, {})


def one_line(text: str) -> str:
    """Return a text as one line of printable characters that ends without a full stop."""
    shown = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return shown[:MAX_REASON_CHARACTERS].rstrip(". ")


def load_absent(domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> NoModel:
    """Return the place of a model by what ``state`` described; a malformed state is a ReleaseError."""
    reason = facts.get("reason")
    if not isinstance(reason, str):
        raise ReleaseError("The release has no model, and does not say why.")
    return NoModel(domain, total_of(facts), reason)
