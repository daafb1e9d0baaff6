"""What real marginals are compared with: the model of a release, or a table of synthetic rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np

from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.models.protocol import Model, Reaching
from margrave.typing import Clique, FloatArray

BATCH = 64


class Reference(Protocol):
    """What the real marginals are compared with."""

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Its counts, scaled to the release's number of records, without those that are out of reach."""
        ...

    def beyond_model(self, cliques: Sequence[Clique]) -> Mapping[Clique, float]:
        """Its L1 distance from the model; cliques for which that is out of reach are left out."""
        ...


class ModelReference:
    """The model itself."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Expected counts."""
        return exact_answers(self.model, cliques)

    def beyond_model(self, cliques: Sequence[Clique]) -> Mapping[Clique, float]:
        """No distance at all."""
        return dict.fromkeys(cliques, 0.0)


class TableReference:
    """A table of synthetic rows, as counts of their codes: of every clique that may be asked about."""

    def __init__(self, model: Model, counts: Mapping[Clique, FloatArray]) -> None:
        self.model, self.counts = model, counts

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Scaled counts."""
        return {r: self.counts[r] for r in cliques}

    def beyond_model(self, cliques: Sequence[Clique]) -> Mapping[Clique, float]:
        """How far the rows are from the model that they were drawn from."""
        expected = exact_answers(self.model, cliques)
        return {r: float(np.abs(self.counts[r] - m).sum()) for r, m in expected.items()}


def exact_answers(
    model: Model, cliques: Sequence[Clique], limit: int | None = None, in_all: float = float("inf")
) -> dict[Clique, FloatArray]:
    """The model's exact marginals, as many at a time as ``limit`` lets it, without those that are out of reach.

    ``in_all``: how many cells a model that is ``Reaching`` computes for them at most.
    """
    if isinstance(model, Reaching):
        with suppress(ReleaseError):
            return model.within_reach(cliques, limit, in_all)
    if len(cliques) > BATCH:
        batches = (cliques[start : start + BATCH] for start in range(0, len(cliques), BATCH))
        return {r: m for batch in batches for r, m in exact_answers(model, batch, limit).items()}
    with suppress(ModelTooLargeError, ReleaseError):
        return model.answer(cliques, limit=limit)
    if len(cliques) < 2:
        return {}
    half = len(cliques) // 2
    return exact_answers(model, cliques[:half], limit) | exact_answers(model, cliques[half:], limit)
