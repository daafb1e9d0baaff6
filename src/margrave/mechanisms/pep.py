"""PEP: private entropy projection on every cell of the domain (Liu, Vietri, Wu 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from margrave.errors import InputError
from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import parameter
from margrave.mechanisms.rounds import Rounds
from margrave.models import EntropyProjectionFit, Fit
from margrave.schema.domain import Domain


@dataclass(frozen=True, kw_only=True)
class PEP(AdaptiveMeasurements):
    """T rounds: choose the query that the weights miss most, measure it, make the weights explain all answers so far.

    Round t moves ``D_{t−1}`` to weights that differ by gamma at most from every answer, and as little as can be from
    the uniform ones: D_t(x) ∝ exp(Σ_i lambda_i q_i(x)). It holds one weight for every cell of the domain.

    As in the authors' code, and unlike Algorithm 2, a round goes on from the weights of the one before and not from
    uniform ones, and answers are kept strictly between 0 and 1, since no step leads beyond. A query that is asked again
    counts once, by the mean of its answers, whose noise is the smaller.

    ``workload``: None means all three-way marginals. ``queries``: None means every cell of the workload's
    marginals. ``granularity``: "marginal" chooses and measures whole marginals; "query", the papers' form, single
    queries, at half the price where rows are replaced. These left a smaller largest error on a table of 48,842 rows at
    epsilon 0.1, and twice the mean error at any. ``rounds``: None means what the budget is worth (``best_rounds``;
    ``best_marginal_rounds``, and at least one per column, of pairs two). ``alpha``: choosing and measuring get alpha²
    to (1 − alpha)² of each round.
    ``gamma``: the tolerance in standard deviations of an answer's noise (``EntropyProjectionFit.gamma_of_paper`` is
    the paper's). ``max_iterations``: steps in a round at most; 25 in the paper's experiments. ``anneal``: halve the
    rounds that are left where one taught less than its noise (``Rounds``). ``fit``: another estimator in the place of
    these weights.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: Liu, Vietri, Wu (2021), Algorithms 1 and 2.
    """

    gamma: float = parameter(1.0, "How far off answers may stay, in deviations of their noise.", least=0)
    max_iterations: int = parameter(25, "Steps of the projection in a round, at most.", above=0)
    anneal: bool = parameter(False, "Whether rounds that teach less than their noise make way for fewer, dearer ones.")
    max_model_mb: float | None = parameter(1024.0, "Size of the model at most, in MB.", above=0)
    fit: Fit | None = None

    name: ClassVar[str] = "pep"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit is not None and (self.gamma, self.max_iterations) != (1.0, 25):
            raise InputError("gamma and max_iterations are PEP's own.", remedy="Leave them, or the fit, out.")
        self.estimator()

    @property
    def most_mb(self) -> float | None:
        """The size of the model at most."""
        return self.max_model_mb

    def estimator(self) -> Fit:
        """The entropy projection of these parameters, or what was given in their place."""
        return self.fit or EntropyProjectionFit(gamma=self.gamma, max_iterations=self.max_iterations)

    def config(self) -> dict[str, Any]:
        """The parameters; those of the projection where no other fit was given, which has its own."""
        own = {"anneal": self.anneal, "max_model_mb": self.max_model_mb}
        projection = {"gamma": self.gamma, "max_iterations": self.max_iterations} if self.fit is None else {}
        return {**super().config(), **projection, **own}

    def _rounds(self, domain: Domain, **more: Any) -> Rounds:
        return super()._rounds(domain, anneal=self.anneal, **more)
