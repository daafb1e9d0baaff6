"""What is asked of a marginal: all its cells, or the sums of groups of cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from margrave.schema.domain import Domain
from margrave.typing import AnyArray, Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Query:
    """Sums over groups of codes: ``groups[a][code]`` is the group (0, 1, …) of a code of attribute ``a``.

    Attributes without an entry keep their codes. Groups partition the cells, so one record is counted in
    one cell of the answer, as in the marginal itself, and the sensitivity is the marginal's.
    """

    groups: Mapping[Attribute, IntArray] = field(default_factory=dict)

    @property
    def is_identity(self) -> bool:
        """Whether every cell is asked for as it is."""
        return not self.groups

    def within(self, clique: Clique) -> Query:
        """What it asks of one marginal: without the groups of attributes that the clique does not have.

        >>> Query({"age": np.array([0, 1, 1]), "sex": np.array([0, 0])}).within(("age", "job")).groups
        {'age': array([0, 1, 1])}
        """
        if all(a in clique for a in self.groups):
            return self
        return Query({a: groups for a, groups in self.groups.items() if a in clique})

    def domain(self, domain: Domain) -> Domain:
        """The domain of groups."""
        return Domain.of({a: self._groups_of(a, domain.size(a)) for a in domain})

    def _groups_of(self, attribute: Attribute, size: int) -> int:
        return int(self.groups[attribute].max()) + 1 if attribute in self.groups else size

    def apply(self, clique: Clique, values: AnyArray) -> AnyArray:
        """The answer on a marginal's values (one axis per attribute of the clique)."""
        for axis, attribute in enumerate(clique):
            if attribute in self.groups:
                groups = self.groups[attribute]
                shape = (*values.shape[:axis], int(groups.max()) + 1, *values.shape[axis + 1 :])
                summed = np.zeros(shape, dtype=values.dtype)
                place: Any = (*(slice(None),) * axis, groups)  # NumPy's types know of no slices here
                np.add.at(summed, place, values)
                values = summed
        return np.ascontiguousarray(values)

    def spread(self, clique: Clique, answer: FloatArray) -> FloatArray:
        """The transpose of ``apply``: every cell gets the value of its group."""
        for axis, attribute in enumerate(clique):
            if attribute in self.groups:
                answer = np.take(answer, self.groups[attribute], axis=axis)
        return np.ascontiguousarray(answer)


IDENTITY = Query()
