"""A marginal: one number per cell of a clique."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.typing import AnyArray, Clique


def project_array(values: AnyArray, clique: Clique, onto: Clique) -> AnyArray:
    """Sum an array with one axis per attribute of ``clique`` down to ``onto``, axes in the order of ``onto``."""
    missing = [a for a in onto if a not in clique]
    if missing:
        raise InputError(f"The marginal of {clique} cannot be summed down to {onto}.")
    summed = values.sum(axis=tuple(i for i, a in enumerate(clique) if a not in onto))
    kept = [a for a in clique if a in onto]
    return np.ascontiguousarray(np.transpose(summed, [kept.index(a) for a in onto]))


@dataclass(frozen=True, eq=False)
class Marginal:
    """Counts (true, noisy or expected) of every cell of a clique: ``values`` has one axis per attribute.

    The axes are in the order of the schema's columns, whatever order was asked for. ``labels`` say what each
    code of an axis stands for, where a release made the marginal; else they are empty.
    """

    clique: Clique
    values: AnyArray
    labels: tuple[tuple[str, ...], ...] = ()

    def project(self, onto: Clique) -> Marginal:
        """Summed down to fewer attributes."""
        if onto == self.clique:
            return self
        labels = tuple(self.labels[self.clique.index(a)] for a in onto if self.labels)
        return Marginal(onto, project_array(self.values, self.clique, onto), labels)

    def to_dict(self) -> dict[str, list[Any]]:
        """One entry a cell, as columns of plain data: what each attribute is there, and the ``count``.

        ``pandas.DataFrame(marginal.to_dict())`` and ``pyarrow.table(marginal.to_dict())`` take it as it is.

        >>> Marginal(("sex",), np.array([3.0, 4.0]), (("f", "m"),)).to_dict()
        {'sex': ['f', 'm'], 'count': [3.0, 4.0]}
        """
        labels = self.labels or tuple(tuple(map(str, range(size))) for size in self.values.shape)
        cells = list(product(*labels))
        count = "count"
        while count in self.clique:
            count += "_"
        named = {a: [cell[i] for cell in cells] for i, a in enumerate(self.clique)}
        return {**named, count: self.values.ravel().tolist()}

    def total(self) -> float:
        """The sum of all cells."""
        return float(self.values.sum())
