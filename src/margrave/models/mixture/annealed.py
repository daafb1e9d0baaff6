"""AnnealedFit: relaxed records whose numbers are points, trained through sigmoids that become steeper (RAP++)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.models.cost import Cost, FitLoad
from margrave.models.entries import ALL, EntryKind
from margrave.models.mixture.fit import check
from margrave.models.mixture.model import MixtureModel
from margrave.models.protocol import Needs, SimpleFit
from margrave.transcript import Transcript
from margrave.types import Clique


class AnnealedModel(MixtureModel):
    """The mixture of trained records, and the weights that the next round's training starts from."""

    def __init__(self, domain: Domain, total: float, probabilities: Any, trained: Any) -> None:
        super().__init__(domain, total, probabilities)
        self.trained = trained


@dataclass(frozen=True, kw_only=True)
class AnnealedFit(SimpleFit):
    """``components`` relaxed records: a point in [0, 1] for each number, a softmax for every other column.

    A number is a column with an order and three codes or more. In training, a point x lies above an edge or a
    threshold b by the share sigmoid(slope · (x − b)), and a half-space holds the share
    sigmoid(slope · (<h, x> − b)) of a record. Adam lowers the sum of squared errors. The slope doubles after ``steps``,
    or when the loss no longer falls by the share ``tolerance`` in 5 steps, and step sizes fall by 1 / sqrt(2). The
    model has the codes of the points.

    Training sees the point of a number, and an answer the middle of its bin. So a half-space of several columns may be
    off by the records within half a bin of its boundary, and bins should be narrow.

    Args:
        components: Number of records.
        rate: First step size of points.
        logit_rate: First step size of the softmax's logits.
        slope: First slope. A gentle one moves records far, also those that fit earlier answers.
        steps: Steps at most for each slope.
        doublings: How often the slope doubles.
        tolerance: The share by which the loss has to fall; 0 stops where it does not fall.

    Privacy:
        None spent.

    References:
        Vietri et al. (2022), Private synthetic data for multitask learning and marginal queries, Algorithm 2.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL
    finishes_anew: ClassVar[bool] = False

    components: int = 500
    rate: float = 0.01
    logit_rate: float = 0.1
    slope: float = 16.0
    steps: int = 30
    doublings: int = 5
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        positive = (
            min(self.components, self.steps) >= 1
            and min(self.rate, self.logit_rate, self.slope) > 0
        )
        if not (positive and self.doublings >= 0 and 0 <= self.tolerance < 1):
            raise InputError(
                "Annealed records need components, steps, a slope and rates above 0, doublings >= 0, tolerance below 1."
            )

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> AnnealedModel:
        """Return the records after training on all answers."""
        check(domain, None)  # before the optional libraries are imported
        from margrave.models.mixture.annealed_jax import codes_of, started, trained

        weights = started(domain, self.components, rng) if warm is None else warm.trained
        slopes = [self.slope * 2.0**k for k in range(self.doublings + 1)]
        rates = (self.logit_rate, self.rate)
        weights = trained(weights, domain, transcript, rates, self.steps, slopes, self.tolerance)
        return AnnealedModel(domain, transcript.total(), codes_of(weights, domain), weights)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise if a library is missing, or the domain has structural zeros."""
        check(domain, None)
        super().check(domain, needs)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the size of the records' table, whatever is measured."""
        return self.components * sum(domain.sizes)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of compiling and of training after each round."""
        jax_seconds, jax_mb, copies = 10.0, 350.0, 10
        seconds_per_entry = 1.5e-8  # of a code of a record, in one step
        steps = self.steps * (1 + self.doublings)
        training = steps * self.components * sum(domain.sizes) * seconds_per_entry
        mb = copies * 4 * self.components * sum(domain.sizes) / 2**20
        return Cost(jax_seconds + (1 + load.rounds) * training, jax_mb + mb)
