"""Who takes part: mechanisms as the library sets them, with all pairs for a workload where they take one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.transport.tasks import DELTA, Task

from margrave import Budget, MemoryTable, ReplaceRow, protect
from margrave.mechanisms import AIM, GEM, MST, RAP, PrivateGSD, PrivPGD
from margrave.models import ParticleFit
from margrave.schema import Codes
from margrave.workload import Workload

CONTENDERS: dict[str, Callable[[Workload], Any]] = {
    "privpgd": lambda pairs: PrivPGD(),
    "private-gsd": lambda pairs: PrivateGSD(),
    "mst": lambda pairs: MST(),
    "aim": lambda pairs: AIM(workload=pairs),
    "gem": lambda pairs: GEM(workload=pairs),
    "rap": lambda pairs: RAP(workload=pairs),
    "privpgd-apart": lambda pairs: PrivPGD(fit=ParticleFit(consistent=False)),
    "privpgd-paper": lambda pairs: PrivPGD(fit=ParticleFit.of_paper()),
}
"""Cheap ones first: this is the order in which they run."""

REFERENCES = ("real", "bootstrap")
"""The private rows themselves, and as many of them drawn with replacement: neither is private, nor has an epsilon."""

LABELS = {
    "privpgd": "PrivPGD", "aim": "AIM", "mst": "MST", "private-gsd": "Private-GSD", "gem": "GEM",
    "rap": "RAP softmax", "privpgd-apart": "PrivPGD, pairs apart", "privpgd-paper": "PrivPGD, the paper's descent",
    "bootstrap": "bootstrap, not private", "real": "the private rows",
}  # fmt: skip


def records(task: Task, name: str, epsilon: float | None, run: int) -> Codes:
    """As many records as there are private rows: noise from the operating system; ``run`` seeds fits and draws."""
    rng = np.random.default_rng([run, len(task.private)])
    if epsilon is None:
        n = len(task.private)
        return task.private if name == "real" else task.private.take(rng.integers(0, n, n))
    mechanism = CONTENDERS[name](Workload.all_kway(task.schema.domain, 2))
    table = MemoryTable(task.schema, task.private)
    with protect(table, unit=ReplaceRow(), budget=Budget.approx(epsilon, DELTA)) as private:
        model = mechanism.run(private, rng=rng).model
    found: Codes = model.sample(len(task.private), rng=rng)
    return found
