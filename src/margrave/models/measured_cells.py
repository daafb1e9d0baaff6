"""Fits whose size is one of their own and the cells of what is measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from margrave.domain import Domain
from margrave.models.protocol import SimpleFit
from margrave.types import Clique, FloatArray


class MeasuredCellsFit(SimpleFit):
    """A fit of `own_cells`, and of as many cells again as all measured marginals have, each counted once."""

    #: Cells of 8 bytes for each measured cell.
    cells_per_measured: ClassVar[int] = 1

    def own_cells(self, domain: Domain) -> int:
        """Return the cells that do not depend on what is measured: none, unless a subclass has some."""
        return 0

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return its own cells, and those of what is measured."""
        measured = sum(domain.cells(c) for c in set(cliques))
        return self.own_cells(domain) + self.cells_per_measured * measured

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` with each candidate added in turn."""
        known, base = set(cliques), self.cells(domain, cliques)
        per_cell = self.cells_per_measured
        more = [0 if c in known else per_cell * domain.cells(c) for c in candidates]
        return np.array([base + cells for cells in more], dtype=np.float64)
