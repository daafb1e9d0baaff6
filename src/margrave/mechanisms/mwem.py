"""MWEM: multiplicative weights on every cell of the domain (Hardt, Ligett, McSherry 2012)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import option
from margrave.mechanisms.parts.schedule import RoundSchedule
from margrave.models import Fit, MultiplicativeWeightsFit


@dataclass(frozen=True, kw_only=True)
class MWEM(AdaptiveMeasurements):
    """T rounds: select the query that the weights miss most, measure it, move the weights.

    Round t measures ``a_t = q_t(D) + noise`` and moves ``D_t(x) ∝ D_{t−1}(x) exp(q(x) (a − q(D)) /
    2)``, in shares, for the answers so far, each brought to between 0 and 1 first, as the code of
    Liu et al. does, and a marginal to the nearest distribution (``MultiplicativeWeightsFit``). It
    holds one weight for every cell of the domain.

    Args:
        workload: The marginals; None means all three-way marginals.
        queries: Linear queries; None means every cell of the workload's marginals.
        granularity: "marginal" selects and measures whole marginals; "query", the papers' form,
            single queries, at half the price where rows are replaced. These left a smaller largest
            error on a table of 48,842 rows at epsilon 0.1, and twice the mean error at any.
        rounds: None means what the budget is worth: ``default_rounds``, or
            ``default_marginal_rounds`` up to ``MAX_MARGINAL_ROUNDS``.
        alpha: Selecting and measuring get alpha² to (1 − alpha)² of each round.
        passes: How often a round's update goes over all answers so far; 0 uses its own alone.
        at_once: Instead, a round moves the weights once, by all answers that are off by half as
            much as its own, or more: the form of Liu et al., for single queries. Its errors are
            mostly larger, and a few rounds of whole marginals move the weights next to nowhere.
        average: Release the average over the weights after each round and not the last.
        anneal: Halve the rounds that are left after one that improved the model by less than its
            noise.
        max_model_mb: The size of the weights at most.
        fit: Another estimator in the place of these weights.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Hardt, Ligett, McSherry (2012); Liu, Vietri, Wu (2021), Algorithm 1 and Appendix B.2.
    """

    passes: int = option(
        100,
        "Passes of a round over all answers so far; 0: its own only.",
        least=0,
        of_fit=True,
    )
    at_once: bool = option(
        False,
        "Update once a round, by all answers with a large error: as published, for single queries.",
        of_fit=True,
    )
    average: bool = option(False, "Release the average over rounds, not the last.", of_fit=True)
    anneal: bool = option(
        False,
        "If a round improves the model by less than its noise, use fewer rounds with more budget each.",
    )
    max_model_mb: float | None = option(1024.0, "Size of the model at most, in MB.", above=0)
    fit: Fit | None = None

    name = "mwem"
    use = "a small domain: one weight for each cell"

    def __post_init__(self) -> None:
        super().__post_init__()
        own = (self.passes, self.average, self.at_once)
        if self.fit is not None and own != (100, False, False):
            raise InputError(
                "passes, average and at_once are MWEM's own.", remedy="Leave them, or the fit, out."
            )
        self.estimator()

    def estimator(self) -> Fit:
        """Return the multiplicative weights of these parameters, or the fit in their place."""
        return self.fit or MultiplicativeWeightsFit(
            passes=self.passes, average=self.average, at_once=self.at_once
        )

    def idle(self) -> Collection[str]:
        """Return the fields that play no part: there are no passes where the weights move once."""
        return {*super().idle(), *(("passes",) if self.at_once else ())}

    def schedule(self, domain: Domain, **more: Any) -> RoundSchedule:
        """Return the rounds of these parameters; not too many for the passes over all answers."""
        # Rounds of whole marginals by default. Each goes over all answers so far, up to
        # ``passes`` times: the time of a run grows with the square of the rounds.
        max_marginal_rounds = 40
        limit = {"limit": max_marginal_rounds} if self.fit is None and self.passes else {}
        return super().schedule(domain, anneal=self.anneal, **limit, **more)
