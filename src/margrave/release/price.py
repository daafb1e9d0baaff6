"""The price of privacy by a release alone: at least how many real rows, published as they are, would be as far off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave.marginal.counting import count_cliques
from margrave.marginal.subsample import Subsampling
from margrave.models.protocol import Model
from margrave.release.bounds import Bound
from margrave.typing import Clique

MOST_DRAWN = 1_000_000
"""Records drawn from the model at most, to see how many rows the workload's cells hold."""

COUNTED_AT_ONCE = 20_000_000
"""Cells that are counted at a time."""


@dataclass(frozen=True)
class Price:
    """With probability ``level`` the workload error Σ_r c_r ‖M_r(D) − M_r(model)‖₁ / (n Σ_r c_r) is at most ``error``.

    ``rows``: so many real rows, drawn at random with replacement and published without privacy, would be as far off in
    expectation; the release is at least as good as they are. It is reckoned from the model's marginals, since the real
    ones are secret. None where ``error`` says nothing. ``records`` is the release's number of them, ``marginals`` the
    workload's, of which ``unbounded`` have no bound and count as 2.
    """

    error: float
    rows: int | None
    records: float
    level: float
    marginals: int
    unbounded: int

    @property
    def share(self) -> float | None:
        """``rows`` as a share of the records."""
        return None if self.rows is None or self.records <= 0 else self.rows / self.records

    def to_dict(self) -> dict[str, Any]:
        """Plain data that fits in JSON."""
        return {**vars(self), "share": self.share}


def price_of(model: Model, bounds: Mapping[Clique, Bound], weights: Mapping[Clique, float], level: float) -> Price:
    """From joint bounds of the workload's marginals."""
    errors = {r: 2.0 if (b := bounds[r]).share is None else min(b.share, 2.0) for r in weights}
    error = sum(c * errors[r] for r, c in weights.items()) / sum(weights.values())
    return Price(
        error=error,
        rows=_rows(model, weights, error),
        records=model.total,
        level=level,
        marginals=len(weights),
        unbounded=sum(bounds[r].share is None for r in weights),
    )


def _rows(model: Model, weights: Mapping[Clique, float], error: float) -> int | None:
    """The matching subsample of a table drawn from the model."""
    if error >= 2.0:
        return None
    drawn = model.sample(min(max(1, round(model.total)), MOST_DRAWN), rng=np.random.default_rng(0))
    subsampling, batch, cells = Subsampling(len(drawn)), [], 0
    heaviness = sum(weights.values())
    for place, clique in enumerate(weights, start=1):
        batch.append(clique)
        cells += model.domain.cells(clique)
        if cells > COUNTED_AT_ONCE or place == len(weights):
            for counted, counts in count_cliques(drawn, batch).items():
                subsampling.add(counts, weights[counted] / heaviness)
            batch, cells = [], 0
    return subsampling.matching(error)
