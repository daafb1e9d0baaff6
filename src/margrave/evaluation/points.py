"""Two tables as weighted points: the occupied cells of a marginal, each at the center of its codes in the unit cube."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from margrave.data import Table
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.evaluation.inputs import check_codes, real_table
from margrave.evaluation.queries import batches, fits_in_memory, share
from margrave.marginal.counting import count_cliques
from margrave.marginal.half_space import centers
from margrave.types import AnyArray, Clique, FloatArray


@dataclass(frozen=True, eq=False)
class Points:
    """The cells of one marginal that either table has rows in: ``places[a]`` is where they lie along attribute a.

    ``real`` and ``synthetic`` are the shares of each table's rows in them; both sum to 1.
    """

    places: FloatArray
    real: FloatArray
    synthetic: FloatArray

    @staticmethod
    def of(real: AnyArray, synthetic: AnyArray) -> Points:
        """Return the points of two arrays of counts, with one axis per attribute."""
        occupied = np.nonzero((real > 0) | (synthetic > 0))
        places = np.array([centers(k)[at] for k, at in zip(real.shape, occupied, strict=True)])
        return Points(places, share(real)[occupied], share(synthetic)[occupied])


def points_of(
    real: Table, synthetic: Codes, cliques: Iterable[Clique]
) -> Iterator[tuple[Clique, Points]]:
    """Yield the points of each clique, some counted at a time to bound the memory."""
    wanted = list(dict.fromkeys(cliques))
    fits_in_memory(real.domain, wanted)
    for batch in batches(real.domain, wanted):
        left, right = real.count(batch), count_cliques(synthetic, batch)
        for clique in batch:
            yield clique, Points.of(left[clique], right[clique])


def comparable(real: Table, synthetic: Codes) -> None:
    """Raise ``InputError`` unless they are a table and codes of the same columns, and have rows."""
    real_table(real)
    check_codes("The synthetic table", synthetic)
    if difference := real.domain.difference(synthetic.domain):
        raise InputError(
            f"The two tables do not have the same schema: {difference}.",
            remedy="Read both with the same schema.",
        )
    if not real.rows() or not len(synthetic):
        raise InputError("One of the two tables has no rows to compare.")
