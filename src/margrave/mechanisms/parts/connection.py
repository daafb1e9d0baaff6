"""The marginals of NAPSU-MQ, and the pairs that join the columns that they leave apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from margrave.domain import Domain
from margrave.marginal import maximal
from margrave.mechanisms.common import one_way, two_way
from margrave.mechanisms.parts.tree import joinable
from margrave.models import Fit
from margrave.types import Clique
from margrave.workload import Workload


@dataclass(frozen=True)
class Connection:
    """A workload on a domain, and the small pairs that can join its parts.

    Args:
        workload: The workload; None for none.
        domain: The domain.
        fit: The fit, whose room for parameters bounds the pairs.
        connect: Whether pairs are to join the parts.
    """

    workload: Workload | None
    domain: Domain
    fit: Fit
    connect: bool

    @cached_property
    def marginals(self) -> list[Clique]:
        """The maximal marginals of the workload."""
        if self.workload is None:
            return []
        return list(maximal(Workload.of(self.domain, self.workload.weights).cliques))

    @cached_property
    def whole(self) -> list[Clique]:
        """The workload, and every column outside it."""
        covered = {a for c in self.marginals for a in c}
        return [*self.marginals, *((a,) for a in self.domain if a not in covered)]

    @cached_property
    def pairs(self) -> list[Clique]:
        """Pairs so small that any tree of them leaves the posterior few enough parameters."""
        pairs = two_way(self.domain) if self.connect else []
        edges = joinable(self.domain, self.marginals, pairs)
        if not edges:
            return []
        room = self.fit.room(self.domain, [*self.whole, *one_way(self.domain)])
        return [r for r in pairs if self._parameters(r) <= room / edges]

    @cached_property
    def joins(self) -> int:
        """The number of pairs to select."""
        return joinable(self.domain, self.marginals, self.pairs)

    def _parameters(self, pair: Clique) -> int:
        a, b = pair
        return (self.domain.size(a) - 1) * (self.domain.size(b) - 1)
