"""Many marginals of a mixture of products at once: outer products that share what they share, summed by BLAS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from margrave.types import AnyArray, Attribute, Clique

#: Numbers held at a time besides the table and the answers, about.
CHUNK = 1 << 22


def answers_of(
    table: AnyArray, weights: AnyArray, blocks: Mapping[Attribute, slice], cliques: Iterable[Clique]
) -> dict[Clique, AnyArray]:
    """Return ``Σ_b weights[b] Π_a table[block_a, b]`` for every combination of codes of every
    clique.

    ``table`` has one row per code and one column per component. Cliques that differ in their last attribute only are
    one product of matrices: outer products of the others' rows, times the rows of all last attributes together.
    """
    asked = list(dict.fromkeys(cliques))
    ends: dict[Clique, list[Attribute]] = {}
    for clique in asked:
        ends.setdefault(clique[:-1], []).append(clique[-1])
    found: dict[Clique, AnyArray] = {}
    for front, lasts in ends.items():
        values = _together(table, weights, [blocks[a] for a in front], [blocks[a] for a in lasts])
        shape, start = tuple(blocks[a].stop - blocks[a].start for a in front), 0
        for last in lasts:
            stop = start + blocks[last].stop - blocks[last].start
            found[*front, last] = np.ascontiguousarray(values[:, start:stop]).reshape(
                *shape, stop - start
            )
            start = stop
    return {clique: found[clique] for clique in asked}


def _together(
    table: AnyArray, weights: AnyArray, front: list[slice], lasts: list[slice]
) -> AnyArray:
    rows = np.concatenate([np.arange(s.start, s.stop) for s in lasts])
    whole = bool((np.diff(rows) == 1).all())
    combinations = int(np.prod([s.stop - s.start for s in front]))
    values = np.zeros((combinations, len(rows)), dtype=table.dtype)
    step = max(1, CHUNK // combinations)
    for start in range(0, table.shape[1], step):
        part = slice(start, start + step)
        outer = weights[None, part].astype(table.dtype)
        for block in front:
            outer = (outer[:, None, :] * table[None, block, part]).reshape(-1, outer.shape[1])
        right = table[rows[0] : rows[-1] + 1, part] if whole else table[rows, part]
        values += outer @ right.T
    return values
