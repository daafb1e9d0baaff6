"""The cells that a run counts behind the gate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Protocol, TypeVar

from margrave.domain import Domain
from margrave.errors import ModelTooLargeError
from margrave.types import Clique
from margrave.workload import Workload


class Counting(Protocol):
    """A mechanism, by what it counts."""

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Return the marginals that it may count."""

    def workload_on(self, domain: Domain) -> Workload:
        """Return its workload."""


M = TypeVar("M", bound=Counting)

#: Cells counted behind the gate, over all marginals of a run: 8 GiB of counts.
MAX_COUNTED = 1 << 30


def check_counts(domain: Domain, mechanism: Counting) -> None:
    """Refuse a run whose counts would not fit in memory, and name the column that weighs most."""
    reads = set(mechanism.reads(domain))
    total = sum(map(domain.cells, reads))
    if total > MAX_COUNTED:
        weight = {a: sum(domain.cells(r) for r in reads if a in r) for a in domain}
        widest = max(domain, key=lambda a: (weight[a], domain.size(a)))
        raise ModelTooLargeError(
            f"The marginals of this workload have {total:,} cells, more than can be counted; column {widest!r} with"
            f" {domain.size(widest):,} codes is in the largest of them.",
            remedy="Give it fewer bins or categories, or name a workload without it.",
        )


def countable(domain: Domain, mechanism: M) -> M:
    """Return the mechanism without the largest marginals of its workload, if all have too many cells to be counted."""
    reads = set(mechanism.reads(domain))
    if sum(map(domain.cells, reads)) <= MAX_COUNTED:
        return mechanism
    workload = mechanism.workload_on(domain)
    room = MAX_COUNTED - sum(domain.cells(r) for r in reads.difference(workload.weights))
    kept = {}
    for clique in sorted(workload.cliques, key=domain.cells):
        room -= domain.cells(clique)
        if room >= 0:
            kept[clique] = workload.weights[clique]
    first = tuple(c for c in workload.first if c in kept)
    return replace(mechanism, workload=Workload(kept, workload.purposes, first))  # type: ignore[type-var]
