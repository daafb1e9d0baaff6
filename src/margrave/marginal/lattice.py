"""Many marginals of a few tables at once: what they have in common is summed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import prod

import numpy as np

from margrave._kernel import kernel
from margrave.marginal.axes import project_array
from margrave.types import AnyArray, Clique

#: Cells of the largest table whose marginals are summed one by one, without shared sums.
MAX_DIRECT_CELLS = 2048


def marginals_of(
    tables: Mapping[Clique, AnyArray], cliques: Iterable[Clique]
) -> dict[Clique, AnyArray]:
    """Sum tables down to many cliques, each clique from the smallest table that contains it.

    A smaller table is made once for all cliques that lie in it. The tables on the way hold together
    at most as many cells as the table itself, if every attribute has two codes or more, and a hundred
    cliques take a few passes over a table.

    Args:
        tables: Arrays of counts or weights with one axis per attribute, by clique. None is modified.
        cliques: Cliques that lie in one of the tables, attributes in any order.

    Returns:
        For each clique an array of its own, with the axes in the clique's order. A clique that is one
        of the tables gets a copy.

    Example:
        >>> found = marginals_of({("age", "sex"): np.array([[1, 2], [3, 4]])}, [("sex",), ()])
        >>> {clique: values.tolist() for clique, values in found.items()}
        {('sex',): [4, 6], (): 10}
    """
    wanted = list(dict.fromkeys(cliques))
    sources = [(frozenset(c), c) for c in sorted(tables, key=lambda c: tables[c].size)]
    by_source: dict[Clique, list[Clique]] = {}
    for clique in wanted:
        source = next(c for members, c in sources if members.issuperset(clique))
        by_source.setdefault(source, []).append(clique)
    found: dict[Clique, AnyArray] = {}
    for source, inside in by_source.items():
        found.update(_in_one_table(tables[source], source, inside))
    return {c: found[c] for c in wanted}


def _in_one_table(table: AnyArray, source: Clique, cliques: list[Clique]) -> dict[Clique, AnyArray]:
    bits = {a: 1 << i for i, a in enumerate(source)}
    masks = {c: sum(bits[a] for a in c) for c in cliques}
    summed: dict[int, AnyArray] = {}
    _descend(
        table, table.shape, (1 << len(source)) - 1, list(dict.fromkeys(masks.values())), summed
    )
    found = {}
    for clique, mask in masks.items():
        own = summed[mask]
        ordered = tuple(source[i] for i in _members(mask))
        found[clique] = own if ordered == clique else project_array(own, ordered, clique)
    return found


def _descend(
    table: AnyArray,
    sizes: tuple[int, ...],
    attributes: int,
    masks: list[int],
    summed: dict[int, AnyArray],
) -> None:
    """Fill in marginals of a table; sets of attributes are bit masks, by position in the source.

    The largest attribute that some marginal lacks is summed out for those that lack it. The others
    go on with the same table.
    """
    while masks and table.size > MAX_DIRECT_CELLS:
        common, union = attributes, 0
        for mask in masks:
            common &= mask
            union |= mask
        lacked = attributes & ~union or attributes & ~common
        if not lacked:  # all that is left is the table itself
            break
        split = max(_members(lacked), key=sizes.__getitem__)
        bit = 1 << split
        smaller = _sum_out(table, _members(attributes).index(split))
        _descend(smaller, sizes, attributes ^ bit, [m for m in masks if not m & bit], summed)
        masks = [m for m in masks if m & bit]
    members = _members(attributes)
    for mask in masks:
        axes = tuple(axis for axis, i in enumerate(members) if not mask >> i & 1)
        summed[mask] = np.asarray(table.sum(axis=axes)) if axes else table.copy()


def _sum_out(table: AnyArray, axis: int) -> AnyArray:
    shape = table.shape
    rest = shape[:axis] + shape[axis + 1 :]
    summed = np.empty(rest, dtype=table.dtype)
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    sum_middle(table.reshape(outer, shape[axis], inner), summed.reshape(outer, inner))
    return summed


@kernel
def sum_middle(values, summed):  # type: ignore[no-untyped-def]
    """Add up the middle axis of three: ``summed[i, k] = Σ_j values[i, j, k]``."""
    outer, middle, inner = values.shape
    if inner == 1:
        for i in range(outer):
            total = values[i, 0, 0]
            for j in range(1, middle):
                total += values[i, j, 0]
            summed[i, 0] = total
        return
    for i in range(outer):
        for k in range(inner):
            summed[i, k] = values[i, 0, k]
        for j in range(1, middle):
            for k in range(inner):
                summed[i, k] += values[i, j, k]


@cache
def _members(mask: int) -> tuple[int, ...]:
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)
