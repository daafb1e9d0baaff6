"""The room that a model has for more marginals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import compress
from operator import itemgetter
from typing import Any

import numpy as np

from margrave.domain import Domain
from margrave.models import CELLS_PER_MB, MAX_MODEL_MB, Fit
from margrave.transcript import Transcript
from margrave.types import Clique, FloatArray


@dataclass(frozen=True)
class Capacity:
    """The largest model of a fit, and the marginals that fit into it.

    Args:
        fit: The fit whose model grows with what is measured.
        domain: The domain.
        max_model_mb: The size of the model at most, in MB of 8 bytes a cell; None means
            ``MAX_MODEL_MB``.
    """

    fit: Fit
    domain: Domain
    max_model_mb: float | None = None

    @staticmethod
    def released(
        fit: Fit, domain: Domain, transcript: Transcript, max_model_mb: float | None
    ) -> Capacity:
        """Return the room beside the codes that the released model of a transcript would have.

        Codes that counts of their columns leave out can come back with later marginals, and enlarge each that has them.
        """
        return Capacity(fit, fit.distinguished(domain, transcript, last=True), max_model_mb)

    def cells(self, share: float = 1.0) -> float:
        """Return a share of the largest size, in cells."""
        largest = MAX_MODEL_MB if self.max_model_mb is None else self.max_model_mb
        return share * largest * CELLS_PER_MB

    def up_to(
        self, cells: float, candidates: Collection[Clique], measured: Collection[Clique]
    ) -> list[Clique]:
        """Return the candidates with which the model has at most so many cells."""
        sizes = np.asarray(self.sizes(candidates, measured))
        return [*compress(candidates, (sizes <= cells).tolist())]

    def within(
        self, candidates: Collection[Clique], measured: Collection[Clique], share: float = 1.0
    ) -> list[Clique]:
        """Return the candidates that keep the model within a share of its size or do not enlarge it."""
        return self.up_to(self.limit(measured, share), candidates, measured)

    def holds_any_forest(self) -> bool:
        """Return whether there is room for every forest of pairs, beside all columns."""
        return self.fit.max_forest_cells(self.domain) <= self.cells()

    def limit(self, measured: Collection[Clique], share: float = 1.0) -> float:
        """Return a share of the largest size in cells, or the model's own size if it is larger."""
        return max(self.cells(share), self.fit.cells(self.domain, tuple(measured)))

    def sizes(self, candidates: Collection[Clique], measured: Collection[Clique]) -> FloatArray:
        """Return the cells of the model with each candidate added in turn."""
        return self.fit.sizes_with(self.domain, tuple(measured), tuple(candidates))

    def beside(
        self, candidates: Collection[Clique], measured: Collection[Clique], share: float
    ) -> list[Clique]:
        """Return the candidates, in their order, that a share of the largest model holds together."""
        # Candidates that are sized at once: those that do not fit yet never will.
        block = 256
        found: list[Clique] = []
        for start in range(0, len(ordered := tuple(candidates)), block):
            some = ordered[start : start + block]
            for r in self.up_to(self.cells(share), some, [*measured, *found]):
                found += self.up_to(self.cells(share), [r], [*measured, *found])
        return found

    def smallest(self, candidates: Collection[Clique]) -> Clique:
        """Return the candidate that leads to the smallest model, if it alone is measured."""
        sizes = self.sizes(candidates, ())
        return min(zip(candidates, sizes, strict=True), key=itemgetter(1))[0]


def fit_within(fit: Fit, domain: Domain, transcript: Transcript, max_model_mb: float | None) -> Fit:
    """Return a fit whose released model is within a size because it leaves more rare codes out; else the smallest.

    Columns that are measured last bring codes back, and each code enlarges every pair that has it.
    """
    own: Any = fit
    factors = (1.0, 1.5, 2.0, 3.0) if fit.empty_below else ()
    fits: list[Fit] = [replace(own, empty_below=k * fit.empty_below) for k in factors]
    sizes = list[int]()
    for some in fits:
        capacity = Capacity.released(some, domain, transcript, max_model_mb)
        sizes.append(some.cells(capacity.domain, transcript.cliques))
        if sizes[-1] <= capacity.cells():
            break
    return fits[int(np.argmin(sizes))] if sizes else fit
