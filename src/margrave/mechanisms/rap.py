"""RAP: relaxed adaptive projection (Aydore et al. 2021), in its box and with softmax (Liu, Vietri, Wu 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import parameter
from margrave.mechanisms.rounds import Rounds
from margrave.models import Model, RelaxedFit
from margrave.schema.domain import Domain


@dataclass(frozen=True, kw_only=True)
class RAP(AdaptiveMeasurements):
    """T rounds: choose K queries that relaxed records answer worst, measure them, move the records to all answers.

    ``workload``: None means all three-way marginals; ``queries``: linear queries instead of its cells. ``granularity``:
    a round asks for "query" (cells), as the paper does, or for whole "marginal". ``each``: K. ``rounds``: T, from the
    budget by default. ``alpha``: how a round's budget goes to choosing and to measuring, as alpha² to (1 − alpha)².
    ``fit``: the records; ``RelaxedFit()`` keeps each a distribution (RAP^softmax), ``RelaxedFit(box=True)`` is RAP.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: Aydore et al. (2021), Algorithm 2; Liu, Vietri, Wu (2021), Appendix B.2. Departure: queries are chosen by
    the exponential mechanism one after the other, which is the same as report-noisy-max with Gumbel noise.
    """

    each: int = parameter(1, "Marginals a round, or queries.", above=0)
    fit: RelaxedFit = field(default_factory=RelaxedFit)

    name: ClassVar[str] = "rap"

    def estimator(self) -> RelaxedFit:
        """The relaxed records."""
        return self.fit

    def released(self, model: Model) -> Model:
        """The distribution that the records stand for."""
        return self.fit.distribution(model)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {**super().config(), "each": self.each}

    def _rounds(self, domain: Domain, **more: Any) -> Rounds:
        return super()._rounds(domain, each=self.each, **more)
