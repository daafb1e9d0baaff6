"""RAP: relaxed adaptive projection (Aydore et al. 2021; with softmax Liu, Vietri, Wu 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from margrave.domain import Domain
from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import option
from margrave.mechanisms.parts.schedule import RoundSchedule
from margrave.models import Fit, RelaxedFit


@dataclass(frozen=True, kw_only=True)
class RAP(AdaptiveMeasurements):
    """T rounds: select K queries that relaxed records answer worst, measure them, move the records.

    Queries are selected by the exponential mechanism one after the other, which is the same as
    report-noisy-max with Gumbel noise.

    Args:
        workload: The marginals; None means all three-way marginals.
        queries: Linear queries instead of the cells of the workload's marginals.
        granularity: A round asks for "query" (cells), as the paper does, or for whole "marginal".
        queries_per_round: K.
        rounds: T, from the budget by default.
        alpha: Selecting and measuring get alpha² to (1 − alpha)² of each round.
        fit: The records; ``RelaxedFit()`` keeps each a distribution (RAP^softmax),
            ``RelaxedFit(clip=True)`` is RAP.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Aydore et al. (2021), Algorithm 2; Liu, Vietri, Wu (2021), Appendix B.2.
    """

    queries_per_round: int = option(1, "Marginals a round, or queries.", above=0)
    fit: Fit = field(default_factory=RelaxedFit)

    name = "rap"
    use = "many columns: relaxed records"

    def estimator(self) -> Fit:
        """Return the relaxed records."""
        return self.fit

    def schedule(self, domain: Domain, **more: Any) -> RoundSchedule:
        """Return the rounds of these parameters."""
        return super().schedule(domain, queries_per_round=self.queries_per_round, **more)
