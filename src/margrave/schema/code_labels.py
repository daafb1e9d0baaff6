"""Digests of what the codes of a column stand for."""

from __future__ import annotations

import json
from hashlib import sha256

from margrave.domain import Meaning
from margrave.schema.categorical import Coded
from margrave.schema.column import Column
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.elapsed import Elapsed, since_of
from margrave.schema.numeric import Timestamp


def meaning_of(column: Column) -> Meaning:
    """Digest the labels, the bounds and the bins of a column: equal where codes mean the same.

    >>> from margrave.schema.numeric import Integer
    >>> one, two = (meaning_of(Integer("age", 0, high, bins=10)) for high in (99, 199))
    >>> one.labels == two.labels, one.bounds == two.bounds
    (True, False)
    """
    if isinstance(column, NUMERIC_KINDS):
        cells, since = column.cells, since_of(column)
        unit = column.unit if isinstance(column, Timestamp | Elapsed) else ""
        return Meaning(
            _digest([column.kind, unit, column.missing, *([since] if since else [])]),
            _digest([float(cells.edges[0]).hex(), float(cells.edges[-1]).hex()]),
            sha256(cells.edges.tobytes() + b"|" + cells.atoms.tobytes()).hexdigest(),
        )
    words = [column.kind, column.codes] if isinstance(column, Coded) else column.labels()
    return Meaning(_digest([words, column.missing]))


def _digest(facts: list[object]) -> str:
    return sha256(json.dumps(facts).encode("utf-8")).hexdigest()
