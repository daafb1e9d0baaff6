"""References that real marginals are compared with: a release's model, or a table of synthetic
rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np

from margrave.domain import Codes
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.marginal import closure
from margrave.marginal.counting import count_cliques
from margrave.models.protocol import Answerer, ExactMarginals
from margrave.types import Clique, FloatArray

BATCH = 64


class Reference(Protocol):
    """A reference that the real marginals are compared with."""

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Return its counts, scaled to the release's number of records, without those that are too
        large.
        """
        ...

    def distance_to_model(self, cliques: Sequence[Clique]) -> Mapping[Clique, float]:
        """Return its L1 distance from the model, without cliques for which it is too expensive."""
        ...


class ModelReference:
    """The model itself."""

    def __init__(self, model: Answerer) -> None:
        self.model = model

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Return expected counts."""
        return exact_answers(self.model, cliques)

    def distance_to_model(self, cliques: Sequence[Clique]) -> Mapping[Clique, float]:
        """Return 0 for every clique."""
        return dict.fromkeys(cliques, 0.0)


class TableReference:
    """A table of synthetic rows, as counts of their codes: of every clique that may be asked about."""

    def __init__(self, model: Answerer, counts: Mapping[Clique, FloatArray]) -> None:
        self.model, self.counts = model, counts

    @classmethod
    def of(cls, model: Answerer, codes: Codes, cliques: Sequence[Clique]) -> TableReference:
        """Count the codes, scaled to the model's total.

        Raises:
            InputError: If they are of another domain, or there are none.
        """
        if difference := model.domain.difference(codes.domain):
            raise InputError(
                f"The table is not of this release's schema: {difference}.",
                remedy="Draw one with sample() or codes().",
            )
        if not len(codes):
            raise InputError(
                "The table has no rows of this release's schema.", remedy="Draw some with sample()."
            )
        scale, counted = model.total / len(codes), count_cliques(codes, closure(cliques))
        return cls(model, {c: np.asarray(v * scale) for c, v in counted.items()})

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Return scaled counts."""
        return {r: self.counts[r] for r in cliques}

    def distance_to_model(self, cliques: Sequence[Clique]) -> Mapping[Clique, float]:
        """Return the distance of the rows from the model that they were drawn from."""
        expected = exact_answers(self.model, cliques)
        return {r: float(np.abs(self.counts[r] - m).sum()) for r, m in expected.items()}


def exact_answers(
    model: Answerer,
    cliques: Sequence[Clique],
    limit: int | None = None,
    in_all: float = float("inf"),
) -> dict[Clique, FloatArray]:
    """Return the model's exact marginals, in batches by ``limit``, without those that are too
    large.

    ``in_all``: cells that a model with ``ExactMarginals`` computes for them at most.
    """
    if isinstance(model, ExactMarginals):
        with suppress(ReleaseError):
            return model.exact(cliques, limit, in_all)
    if len(cliques) > BATCH:
        batches = (cliques[start : start + BATCH] for start in range(0, len(cliques), BATCH))
        return {r: m for batch in batches for r, m in exact_answers(model, batch, limit).items()}
    with suppress(ModelTooLargeError, ReleaseError):
        return model.answer(cliques, limit=limit)
    if len(cliques) < 2:
        return {}
    half = len(cliques) // 2
    return exact_answers(model, cliques[:half], limit) | exact_answers(model, cliques[half:], limit)
