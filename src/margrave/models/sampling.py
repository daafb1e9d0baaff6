"""Records from conditional distributions by randomised rounding: fewer surprises than independent draws.

Column after column, the records that agree on a column's parents form a group; each code gets its expected number of
the group's records, rounded at random without bias, and the group's records are dealt out in an order shuffled afresh
for every column. The shuffle matters: were the records of one parent dealt to several children in one order, the
children would be dependent where the model says they are not.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from margrave.typing import FloatArray, IntArray


@njit(cache=True, nogil=True)
def _deal(groups, counts, order, table, uniform, column):  # type: ignore[no-untyped-def]
    """Give every record a code: ``table[g]`` holds the weights of the codes in group g, ``order`` a random order.

    Systematic rounding: with fractions f_v and one uniform u, code v gets floor or ceil of its expectation, up
    exactly where the running sum of the fractions crosses u + an integer; each goes up with probability f_v.
    """
    n_groups, codes = table.shape
    starts = np.empty(n_groups + 1, np.int64)
    starts[0] = 0
    for g in range(n_groups):
        starts[g + 1] = starts[g] + counts[g]
    fill = starts[:-1].copy()
    grouped = np.empty(len(order), np.int64)
    for i in range(len(order)):
        row = order[i]
        grouped[fill[groups[row]]] = row
        fill[groups[row]] += 1
    for g in range(n_groups):
        n = counts[g]
        if n == 0:
            continue
        total = 0.0
        for v in range(codes):
            total += table[g, v]
        at, end = starts[g], starts[g + 1]
        seen, given = 0.0, 0
        last = -1
        for v in range(codes):
            weight = table[g, v] if total > 0.0 else 1.0
            if weight <= 0.0:
                continue
            last = v
            seen += weight
            reach = int(np.floor(n * (seen / (total if total > 0.0 else codes)) + uniform[g]))
            while given < reach and at < end:
                column[grouped[at]] = v
                at += 1
                given += 1
        while at < end:  # the last crossing may be lost to rounding
            column[grouped[at]] = last
            at += 1


def deal(groups: IntArray, table: FloatArray, rng: np.random.Generator) -> NDArray[np.uint32]:
    """One column: a code for every record given its group, in expectation as ``table[group]`` says (any scale)."""
    counts = np.bincount(groups, minlength=len(table))
    column = np.empty(len(groups), dtype=np.uint32)
    order = rng.permutation(len(groups))
    _deal(groups, counts, order, np.ascontiguousarray(table), rng.random(len(table)), column)
    return column
