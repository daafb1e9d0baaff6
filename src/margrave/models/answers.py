"""Answers only: the noisy marginals themselves, made no more consistent than averaging makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.marginal import Marginal, project_array
from margrave.models.cost import Cost, FitLoad
from margrave.models.decode import cliques_of, floats_of, total_of
from margrave.models.entries import ALL, EntryKind
from margrave.models.measured_cells import MeasuredCellsFit
from margrave.models.protocol import FittedAnswers, ModelState, Needs
from margrave.models.terms import Term, terms_of
from margrave.structural_zeros import joined
from margrave.transcript import Transcript
from margrave.types import AnyArray, Clique, FloatArray


class Answers(FittedAnswers):
    """The measured marginals and everything below them; unbiased, possibly negative, not consistent with each other."""

    def __init__(self, domain: Domain, total: float, terms: Sequence[Term]) -> None:
        self._domain = domain
        self._total = total
        self.terms = tuple(terms)

    def project(self, clique: Clique) -> Marginal:
        """Return the inverse-variance average of all measured marginals that contain this one.

        Each is summed to the clique first. Impossible cells are 0.
        """
        remedy = (
            "Refit it with a model: release.refit('graphical') (margrave refit --fit graphical),"
            " at no further cost to privacy."
        )
        above = [t for t in self.terms if set(clique) <= set(t.clique)]
        if not above:
            raise ReleaseError(
                f"The marginal of {', '.join(clique)} was not measured, nor any that contains it.",
                remedy=remedy,
            )
        weighted, weight = (
            np.zeros(self._domain.shape(clique)),
            np.zeros(self._domain.shape(clique)),
        )
        for term in above:
            precision = 1.0 / project_array(term.scales**2, term.clique, clique)
            weighted += precision * project_array(term.values, term.clique, clique)
            weight += precision
        inside = [z for z in self._domain.zeros if set(z.clique) <= set(clique)]
        possible = joined(inside, clique, self._domain.size)
        return Marginal(clique, np.where(possible, weighted / weight, 0.0))

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return many marginals, each as ``project`` answers it."""
        return {c: np.asarray(self.project(c).values) for c in cliques}

    def state(self) -> ModelState:
        """Return the averaged measurements."""
        arrays: dict[str, AnyArray] = {}
        for i, term in enumerate(self.terms):
            arrays[f"values{i}"], arrays[f"scales{i}"] = term.values, term.scales
        return ModelState(
            "answers",
            {"total": self._total, "cliques": [list(t.clique) for t in self.terms]},
            arrays,
        )


@dataclass(frozen=True, kw_only=True)
class AnswersFit(MeasuredCellsFit):
    """No model: what was measured, repeated measurements averaged. **Privacy:** none is spent."""

    entries: ClassVar[frozenset[EntryKind]] = ALL
    gives_records: ClassVar[bool] = False

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> FittedAnswers:
        """Return the answers of the measurements that keep every code. Single queries are left out."""
        whole = [m for m in transcript.measurements if m.query.is_identity]
        return Answers(domain, transcript.total(), terms_of(domain, whole))

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise `InputError` if marginals that were not measured are to be estimated."""
        if needs.adaptive:
            raise InputError(
                f"{type(self).__name__}() estimates nothing that was not measured, and this mechanism chooses by such"
                " estimates.",
                remedy=f"Give it another fit, and refit the release with {type(self).__name__}() if you like.",
            )
        super().check(domain, needs)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the memory of the answers and their scales."""
        return Cost(mb=16 * load.cells / 2**20)


def load_answers(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> Answers:
    """Return the answers that ``state`` described; a malformed state is a ReleaseError."""
    terms = []
    for i, clique in enumerate(cliques_of(domain, facts)):
        values, scales = (
            floats_of(arrays, f"{what}{i}", domain.shape(clique)) for what in ("values", "scales")
        )
        if not (np.isfinite(values).all() and (scales > 0).all()):
            raise ReleaseError("The release's answers are not numbers with a scale of noise each.")
        terms.append(Term(clique, values, scales))
    return Answers(domain, total_of(facts), terms)
