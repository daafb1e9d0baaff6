"""What a process holds of a table once the releases made of it are all that is kept.

``python -m tests.support.alive`` runs every mechanism that needs no public table, looks through all that is alive, and
prints as JSON the kinds of secrets that are left, and those that are found once some are planted. It is a program
because everything alive is looked through: in a process that ran other tests that takes long.
"""

from __future__ import annotations

import gc
import json
import sys
import weakref
from typing import Any

import numpy as np
import pyarrow as pa

import margrave
from margrave.data import MemoryTable
from margrave.domain import Codes
from margrave.marginal import closure
from margrave.mechanisms import MECHANISMS
from margrave.privacy import Private
from margrave.schema import Schema
from tests.support.conformance import ALONE, QUICK


def alive() -> list[Any]:
    """Every object that the collector knows, and what these hold that it does not: arrays, dictionaries of arrays."""
    gc.collect()
    queue = gc.get_objects()
    seen = {id(o): o for o in queue}
    while queue:
        # by type: to ask a proxy for its class fails once its object is gone
        held = [
            o for o in gc.get_referents(*queue) if issubclass(type(o), (np.ndarray, dict, tuple))
        ]
        queue = list({id(o): o for o in held if id(o) not in seen}.values())
        seen |= {id(o): o for o in queue}
    return [value for value in seen.values() if type(value) not in weakref.ProxyTypes]


def secrets_alive(truths: set[tuple[int, ...]]) -> list[Any]:
    """Gates, tables and codes in the whole process, and arrays that hold a true marginal."""
    found: list[Any] = []
    sizes = {len(t) for t in truths}
    for value in alive():
        if isinstance(value, (Private, MemoryTable, Codes)):
            found.append(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size in sizes:
            numbers = value.ravel().tolist()
            found += [value] * (tuple(sorted(numbers)) in truths)
    return found


def main() -> None:
    """Release a table by every mechanism, and print what is left; then keep the table, and print what is found."""
    sizes = {"a": 3, "b": 5, "c": 4}
    rng = np.random.default_rng(9)
    cells = [(i, j, k) for i in range(3) for j in range(5) for k in range(4)]
    rows = np.repeat(np.array(cells), rng.integers(3, 40, size=len(cells)), axis=0)
    frame = pa.table({name: rows[:, i] for i, name in enumerate(sizes)})
    schema = Schema.coded(sizes)
    counts = margrave.read_table(frame, schema).count(closure([tuple(sizes)]))
    known = {tuple(sorted(m.ravel().tolist())) for m in counts.values()}
    del counts

    before = {id(v) for v in secrets_alive(known)}
    releases = [
        margrave.synthesize(
            frame,
            schema,
            epsilon=1.0,
            delta=1e-9,
            mechanism=MECHANISMS[name](**QUICK.get(name, {})),
        )
        for name in ALONE
    ]
    left = [type(v).__name__ for v in secrets_alive(known) if id(v) not in before]

    kept = margrave.read_table(frame, schema)
    planted = [kept.count([("a", "b")])]
    found = {type(v).__name__ for v in secrets_alive(known) if id(v) not in before}
    facts = {
        "left": left,
        "found": sorted(found),
        "releases": len(releases),
        "planted": len(planted),
    }
    sys.stdout.write(json.dumps(facts))


if __name__ == "__main__":
    main()
