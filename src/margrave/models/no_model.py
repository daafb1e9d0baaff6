"""NoModel: the place of a model that a release does not have, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NoReturn

import numpy as np

from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.models.decode import total_of
from margrave.models.protocol import FittedAnswers, ModelState
from margrave.types import AnyArray, Clique, FloatArray


class NoModel(FittedAnswers):
    """A model that answers nothing: every question is a ReleaseError with the reason and the remedy.

    ``total`` is the number of records by the noisy answers alone. ``kept`` is the state of a model of a kind that this
    installation cannot read: ``state`` returns it, so that a release that is saved again still has it. ``remedy`` is
    a sentence or more.
    """

    #: The remedy if there are noisy marginals.
    refit: ClassVar[str] = (
        "Fit one to its noisy answers at no cost: release.refit(...), or margrave refit."
    )

    def __init__(
        self,
        domain: Domain,
        total: float,
        reason: str,
        kept: ModelState | None = None,
        remedy: str = refit,
    ) -> None:
        self._domain, self._total, self._kept = domain, total, kept
        self.absent, self.remedy = one_line(reason), f"{one_line(remedy)}."

    def refuse(self) -> NoReturn:
        """Raise the ReleaseError that gives the reason."""
        raise ReleaseError(f"This release has no model: {self.absent}.", remedy=self.remedy)

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

    def distribution(self) -> NoReturn:
        """Raise a ReleaseError."""
        self.refuse()

    def state(self) -> ModelState:
        """Return the state that was kept, or the reason as plain data."""
        kind = "none"
        if self._kept is not None:
            return self._kept
        facts = {"total": self._total, "reason": self.absent, "remedy": self.remedy}
        return ModelState(kind, facts, {})


def one_line(text: str) -> str:
    """Return a text as one line of printable characters that ends without a full stop.

    A long text ends with its last whole sentence that fits, or else with "…".
    """
    max_reason_characters = 400
    shown = "".join(c if c.isprintable() else "?" for c in " ".join(text.split())).rstrip(". ")
    if len(shown) <= max_reason_characters:
        return shown
    cut = shown[: max_reason_characters - 1]
    return cut.rpartition(". ")[0] or f"{cut}…"


def load_absent(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> NoModel:
    """Return the place of a model by what ``state`` described; a malformed state is a ReleaseError."""
    reason, remedy = facts.get("reason"), facts.get("remedy")
    if not (isinstance(reason, str) and isinstance(remedy, str)):
        raise ReleaseError("The release has no model, and does not say why.")
    return NoModel(domain, total_of(facts), reason, remedy=remedy)
