"""The price of privacy by a release alone: at least how many real rows, published as they are, would be as far off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave.bounds.error_bounds import Bound
from margrave.bounds.matching_subsample import Subsampling
from margrave.marginal.counting import count_cliques
from margrave.models.protocol import Model
from margrave.types import Clique


@dataclass(frozen=True)
class EquivalentSample:
    """With probability ``level`` the workload error Σ_r c_r ‖M_r(D) − M_r(model)‖₁ / (n Σ_r c_r) is
    at most ``error``.

    Attributes:
        rows: Number of real rows, drawn with replacement and published without privacy, with this
            expected error; the release is at least as accurate. It is computed from the model's
            marginals, since the real ones are secret. None if ``error`` gives no bound.
        records: The release's number of records.
        marginals: Number of marginals in the workload.
        unbounded: Number of them without a bound, which count as 2.
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
        """Return plain data that fits in JSON."""
        return {**vars(self), "share": self.share}


def equivalent_sample(
    model: Model, bounds: Mapping[Clique, Bound], weights: Mapping[Clique, float], level: float
) -> EquivalentSample:
    """Return the equivalent sample size by simultaneous bounds of the workload's marginals."""
    errors = {r: 2.0 if (b := bounds[r]).share is None else min(b.share, 2.0) for r in weights}
    error = sum(c * errors[r] for r, c in weights.items()) / sum(weights.values())
    return EquivalentSample(
        error=error,
        rows=_rows(model, weights, error),
        records=model.total,
        level=level,
        marginals=len(weights),
        unbounded=sum(bounds[r].share is None for r in weights),
    )


def _rows(model: Model, weights: Mapping[Clique, float], error: float) -> int | None:
    # Records drawn from the model at most, to estimate how many rows the workload's cells hold.
    max_rows_drawn = 1_000_000
    # Cells counted at a time.
    cells_per_batch = 20_000_000
    if error >= 2.0:
        return None
    drawn = model.sample(
        min(max(1, round(model.total)), max_rows_drawn), rng=np.random.default_rng(0)
    )
    subsampling, batch, cells = Subsampling(len(drawn)), [], 0
    heaviness = sum(weights.values())
    for place, clique in enumerate(weights, start=1):
        batch.append(clique)
        cells += model.domain.cells(clique)
        if cells > cells_per_batch or place == len(weights):
            for counted, counts in count_cliques(drawn, batch).items():
                subsampling.add(counts, weights[counted] / heaviness)
            batch, cells = [], 0
    return subsampling.matching(error)
