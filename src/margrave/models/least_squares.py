"""Answers only: least squares over all that was measured, consistent and without bias."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.marginal import TOTAL, closure
from margrave.marginal.residual import degrees_of_freedom, reconstruct, subsets
from margrave.marginal.symmetric_maps import interactions_of
from margrave.models.answers import AnswersFit
from margrave.models.decode import cliques_of, floats_of, total_of
from margrave.models.precision_means import PrecisionMeans
from margrave.models.protocol import FittedAnswers, ModelState
from margrave.structural_zeros import joined
from margrave.transcript import PublicTotal, Transcript
from margrave.types import AnyArray, Clique, FloatArray


class LeastSquaresAnswers(FittedAnswers):
    """Marginals put together from their interactions: consistent and unbiased, possibly negative.

    ``interactions`` are estimates of R_A (`margrave.marginal.residual`), whose noise is independent between subsets A.
    ``variances`` are 1 / q_A: the noise of R_A is the interaction of independent noise with this variance in each cell
    of A. It is 0 if R_A is public.
    """

    def __init__(
        self,
        domain: Domain,
        total: float,
        interactions: Mapping[Clique, FloatArray],
        variances: Mapping[Clique, float],
    ) -> None:
        self._domain, self._total = domain, total
        self.interactions, self.variances = dict(interactions), dict(variances)

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return the estimates of many marginals. Impossible cells are 0.

        Raises:
            ReleaseError: If an interaction of some marginal was not measured.
        """
        return {c: self._answered(c) for c in cliques}

    def variance(self, clique: Clique) -> float:
        """Return the variance of the noise in each cell of a marginal, exact; 0 if it is known.

        Raises:
            ReleaseError: If an interaction of the marginal was not measured.
        """
        cells = self._domain.cells(clique)
        return sum(
            degrees_of_freedom(self._domain.shape(inner))
            * self._domain.cells(inner)
            / cells**2
            * self.variances[inner]
            for inner in self._inside(clique)
        )

    def _answered(self, clique: Clique) -> FloatArray:
        inside = {inner: self.interactions[inner] for inner in self._inside(clique)}
        values = reconstruct(inside, clique, self._domain.shape(clique))
        zeros = [z for z in self._domain.zeros if set(z.clique) <= set(clique)]
        return np.where(joined(zeros, clique, self._domain.size), values, 0.0)

    def _inside(self, clique: Clique) -> list[Clique]:
        ordered = self._domain.clique(clique)
        inside = [a for a in subsets(ordered) if degrees_of_freedom(self._domain.shape(a))]
        if any(inner not in self.interactions for inner in inside):
            raise ReleaseError(
                f"The marginal of {', '.join(clique)} was not measured, nor any that contains it.",
                remedy="Refit it with a model: release.refit('graphical') (margrave refit --fit graphical),"
                " at no further cost to privacy.",
            )
        return inside

    def state(self) -> ModelState:
        """Return the interactions and their variances."""
        cliques = [c for c in self.interactions if c]
        arrays: dict[str, AnyArray] = {
            f"values{i}": self.interactions[c] for i, c in enumerate(cliques)
        }
        arrays["variances"] = np.array([self.variances[c] for c in cliques])
        if () in self.interactions:
            arrays["count"] = np.array([float(self.interactions[()]), self.variances[()]])
        facts = {"total": self._total, "cliques": [list(c) for c in cliques]}
        return ModelState("least-squares", facts, arrays)


@dataclass(frozen=True, kw_only=True)
class LeastSquaresFit(AnswersFit):
    """No model: the marginals of least variance among all unbiased linear estimates from the measurements.

    Every subset of a measured marginal's columns has an interaction, which each measurement estimates with noise of
    its own precision, independent of all others. The estimate is their mean with these precisions as weights. Whole
    marginals, the interactions of a marginal (``LinearMap.residual``) and the number of records are used. Other
    linear maps, merged codes and single queries are left out.

    Structural zeros are answered as 0, which the other cells of a marginal do not make up for.

    Privacy:
        None spent.
    """

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> LeastSquaresAnswers:
        """Return the precision-weighted means of all interactions."""
        means = PrecisionMeans[Clique]()
        for m in transcript.measurements:
            for inner, values, precision in interactions_of(m.query, m.clique, domain, m.values):
                precision /= m.scale**2
                means.add(inner, precision * values, np.full(values.shape, precision))
        for answer in transcript.answers:
            if answer.query == TOTAL:
                means.add((), answer.value / answer.scale**2, answer.scale**-2)
        interactions, variances = dict[Clique, FloatArray](), dict[Clique, float]()
        for clique, values, precisions in means:
            interactions[clique], variances[clique] = values, 1.0 / float(precisions.flat[0])
        for entry in transcript:
            if isinstance(entry, PublicTotal):
                interactions[()], variances[()] = np.array(float(entry.total)), 0.0
        return LeastSquaresAnswers(domain, transcript.total(), interactions, variances)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the cells of all interactions below what is measured."""
        distinct = set(cliques)
        most = sum(prod(n + 1 for n in domain.shape(c)) for c in distinct)
        # Beyond this many cells their number is estimated from above: to count them takes as long as to fit.
        max_counted_cells = 2**24
        return most if most > max_counted_cells else sum(map(domain.cells, closure(distinct))) + 1

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` with each candidate added in turn."""
        known = tuple(cliques)
        return np.array([self.cells(domain, (*known, c)) for c in candidates], dtype=np.float64)


def load_least_squares(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> LeastSquaresAnswers:
    """Return the answers that ``state`` described; a malformed state is a ReleaseError."""
    cliques = cliques_of(domain, facts)
    each = floats_of(arrays, "variances", (len(cliques),))
    values = {c: floats_of(arrays, f"values{i}", domain.shape(c)) for i, c in enumerate(cliques)}
    variances = dict(zip(cliques, each.tolist(), strict=True))
    if "count" in arrays:
        count, variance = floats_of(arrays, "count", (2,))
        values[()], variances[()] = np.array(count), float(variance)
    finite = all(np.isfinite(v).all() for v in values.values())
    if not (finite and (each > 0).all() and variances.get((), 0.0) >= 0.0):
        raise ReleaseError("The release's interactions are not numbers with a variance each.")
    return LeastSquaresAnswers(domain, total_of(facts), values, variances)
