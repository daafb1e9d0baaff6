"""A marginal: one number per cell of a clique."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Counts (true, noisy or expected) of every cell of a clique: ``values`` has one axis per attribute."""

    clique: Clique
    values: AnyArray

    def project(self, onto: Clique) -> Marginal:
        """Summed down to fewer attributes."""
        return self if onto == self.clique else Marginal(onto, project_array(self.values, self.clique, onto))

    def total(self) -> float:
        """The sum of all cells."""
        return float(self.values.sum())
