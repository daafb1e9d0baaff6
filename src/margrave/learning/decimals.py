"""Step 1: the unit of a real column, 10 to the minus its number of decimals."""

from __future__ import annotations

import math

from margrave.schema.column_queries import DecimalCells
from margrave.transcript import ColumnAnswer


def decimals_of(answer: ColumnAnswer) -> int | None:
    """Return the least number of decimals that all but 1 % of the values have; None if there is none.

    Counts below their noise count as nothing.
    """
    most = DecimalCells.max_decimals
    counts = answer.values[: most + 2].astype(float)
    rows = max(float(answer.values.sum()), 1.0)
    for k in range(most + 1):
        beyond, cells = float(counts[k + 1 :].sum()), most + 1 - k
        if beyond <= max(0.01 * rows, answer.scale * math.sqrt(cells)):
            return k
    return None
