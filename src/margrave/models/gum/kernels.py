"""Compiled loops of the gradual update: which records leave their cells, and where they go."""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel


@kernel
def find_cells(rows, columns, starts, parts, cells, counts):  # type: ignore[no-untyped-def]
    """Write down the cell of every record, and the number of records in each cell.

    The cell is the sum of ``parts[starts[j] + choice]`` over the marginal's columns j.
    """
    counts[:] = 0
    for i in range(len(rows)):
        cell = 0
        for j in range(len(columns)):
            cell += parts[starts[j] + rows[i, columns[j]]]
        cells[i] = cell
        counts[cell] += 1


@kernel
def find_moves(counts, targets, alpha, offset, added, freed):  # type: ignore[no-untyped-def]
    """Write down how many records each cell gets and gives; return their number, equal for both.

    With S records for a target of T, a cell gets ``min(T − S, alpha S)``, or ``alpha T`` if S = 0, and
    gives ``min(S − T, beta S)``, where beta makes both sums equal. Fractions are rounded by one draw.
    """
    total = 0.0
    for c in range(len(counts)):
        gap = targets[c] - counts[c]
        if gap > 0:
            total += min(gap, alpha * (counts[c] if counts[c] > 0 else targets[c]))
    low, high = 0.0, 1.0
    for _ in range(40):
        beta = (low + high) / 2
        given = 0.0
        for c in range(len(counts)):
            if counts[c] > targets[c]:
                given += min(counts[c] - targets[c], beta * counts[c])
        if given < total:
            low = beta
        else:
            high = beta
    moved, got, gave = 0, offset, offset
    for c in range(len(counts)):
        freed[c] = 0
        if counts[c] > targets[c]:
            before = np.floor(gave)
            gave += min(counts[c] - targets[c], high * counts[c])
            freed[c] = min(int(np.floor(gave) - before), counts[c])
            moved += freed[c]
    left = moved
    for c in range(len(counts)):
        added[c] = 0
        gap = targets[c] - counts[c]
        if gap > 0:
            before = np.floor(got)
            got += min(gap, alpha * (counts[c] if counts[c] > 0 else targets[c]))
            added[c] = min(int(np.floor(got) - before), left)
            left -= added[c]
    return moved - left


@kernel
def find_records(cells, counts, copies, freed, uniform, donors, places):  # type: ignore[no-untyped-def]
    """Write down random records of each cell to copy, and random ones to free.

    One pass: the next record of a cell is taken with chance (still wanted) / (still to come).
    """
    copied, gone = 0, 0
    coming, copies, freed = counts.copy(), copies.copy(), freed.copy()
    for i in range(len(cells)):
        c = cells[i]
        if freed[c] > 0:
            if uniform[i] * coming[c] < freed[c]:
                freed[c] -= 1
                places[gone] = i
                gone += 1
        elif copies[c] > 0 and uniform[i] * coming[c] < copies[c]:
            copies[c] -= 1
            donors[copied] = i
            copied += 1
        coming[c] -= 1
    return copied, gone
