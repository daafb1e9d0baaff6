"""Records from conditional distributions: by randomized rounding, with fewer surprises than independent draws; or so.

Column after column, the records that agree on a column's parents form a group, and each code gets its expected number
of the group's records, rounded at random without bias, and up in some groups for down in the groups before them, which
have most parents' codes in common. Which of the records get it is random too, but spread: the group's
records are sorted by other columns, equal ones in random order, and each code goes to records all along. So the code
meets the other columns' codes nearly as often as under independence, which is what the model says, where a shuffle
would leave that to chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from margrave._kernel import kernel, run_or_compile
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray


@kernel
def _chance(fraction, rest, extra):  # type: ignore[no-untyped-def]
    """Return the chance that a code is rounded up, given the records left for it and for all codes after it together.

    ``fraction`` and ``rest`` are the fractions of their two expectations. ``extra`` is how many records are left above
    the two floors: 0, 1 or 2, with the chances that make each of the two go up as often as its fraction says.
    """
    if extra != 1.0:
        return min(max(extra, 0.0), 1.0)
    if fraction + rest < 1.0:
        return fraction / (fraction + rest) if fraction > 0.0 else 0.0
    return (1.0 - rest) / (2.0 - fraction - rest)


@kernel
def _paced(chance, ahead):  # type: ignore[no-untyped-def]
    """Return the chance of going up now, if earlier groups went up ``ahead`` times more often than they were due to.

    On average each goes up with its own chance. In each unit of the running sum of chances one goes up, at a uniform
    place, so ``ahead`` stays between -1 and 1. A place that is the same in all units could fall on one parent's code.
    """
    if ahead > 0.0:
        return max(0.0, (chance - ahead) / (1.0 - ahead))
    return min(1.0, chance / (1.0 + ahead))


@kernel
def _deal(grouped, starts, table, rng, ahead, dealt, column):  # type: ignore[no-untyped-def]
    """Give every record a code: ``table[g]`` holds the weights of the codes in group g.

    Group g's records, in order, are ``grouped`` from ``starts[g]`` on. ``dealt`` has room for the largest group.

    Controlled rounding: each code gets the floor or ceiling of its expectation, and so do all codes after it together.
    It goes up with a chance that is its fraction on average. ``ahead[v]``, 0 at first, is how often code v went up less
    the sum of its chances: roundings cancel from group to group.

    A group's n records get the codes at ranks a, a + s, a + 2s, ... modulo n, where s is near n divided
    by the golden ratio and coprime to n: any stretch of records gets each code nearly in proportion. The start a is
    uniform, so each record is as likely to get a code as any other of its group.
    """
    n_groups, codes = table.shape
    for g in range(n_groups):
        n = starts[g + 1] - starts[g]
        if n == 0:
            continue
        total = 0.0
        for v in range(codes):
            total += table[g, v]
        even = not total > 0.0
        if even:
            total = float(codes)
        seen, given, last = 0.0, 0, 0
        for v in range(codes):
            weight = 1.0 if even else table[g, v]
            if weight <= 0.0:
                continue
            if given == n:
                break
            last = v
            seen += weight
            expected, after = n * (weight / total), n * ((total - seen) / total)
            floor, rest = np.floor(expected), np.floor(after)
            chance = _chance(expected - floor, after - rest, n - given - floor - rest)
            up = 0.0
            if chance > 0.0:
                up = 1.0 if rng.random() < _paced(chance, ahead[v]) else 0.0
                ahead[v] += up - chance
            reach = min(n, given + int(floor + up))
            while given < reach:
                dealt[given] = v
                given += 1
        while given < n:  # sums of floats may lose the last record
            dealt[given] = last
            given += 1
        stride = max(1, int(n * 0.6180339887498949))
        left, right = stride, n
        while right:  # Euclid's algorithm, until they are coprime
            left, right = right, left % right
            if right == 0 and left > 1:
                stride += 1
                left, right = stride, n
        rank = min(int(rng.random() * n), n - 1)
        for i in range(starts[g], starts[g + 1]):
            column[grouped[i]] = dealt[rank]
            rank = (rank + stride) % n


def deal(
    groups: IntArray, table: FloatArray, rng: np.random.Generator, order: IntArray | None = None
) -> NDArray[np.uint32]:
    """Return one column: a code for every record given its group, distributed as ``table[group]``
    (any scale) in expectation.
    """
    counts = np.bincount(groups, minlength=len(table))
    column = np.empty(len(groups), dtype=np.uint32)
    order = rng.permutation(len(groups)) if order is None else order
    starts = np.concatenate([[0], np.cumsum(counts)])
    run_or_compile(
        _deal,
        len(groups) + table.size,
        _grouped(groups, order, len(table)),
        starts,
        np.ascontiguousarray(table),
        rng,
        np.zeros(table.shape[1]),
        np.empty(counts.max(initial=0), dtype=np.int64),
        column,
    )
    return column


def _grouped(groups: IntArray, order: IntArray, n_groups: int) -> IntArray:
    # keys of 16 bits are sorted in linear time
    keys = groups.astype(np.uint16) if n_groups <= 1 << 16 else groups
    return order[np.argsort(keys[order], kind="stable")]


@kernel
def _draw(groups, reached, uniform, column):  # type: ignore[no-untyped-def]
    codes = reached.shape[1]
    for i in range(len(groups)):
        row = reached[groups[i]]
        whole = row[codes - 1]
        if whole <= 0.0:
            column[i] = min(int(uniform[i] * codes), codes - 1)
            continue
        target, low, high = uniform[i] * whole, 0, codes - 1
        while low < high:
            middle = (low + high) // 2
            if row[middle] > target:
                high = middle
            else:
                low = middle + 1
        column[i] = low


def draw(groups: IntArray, table: FloatArray, rng: np.random.Generator) -> NDArray[np.uint32]:
    """Return one column: an independent code for every record, with probabilities ``table[group]``
    (any scale).
    """
    column = np.empty(len(groups), dtype=np.uint32)
    _draw(groups, np.cumsum(table, axis=1), rng.random(len(groups)), column)
    return column


def spread_order(
    domain: Domain, columns: Mapping[Attribute, AnyArray], rows: int, rng: np.random.Generator
) -> IntArray:
    """Return the records sorted by as many of these columns as fit into short keys, taken in random
    order.
    """
    # Keys below this are sorted in linear time.
    sortable = 1 << 16
    # Number of keys: more of them gain little for their time.
    keys = 2
    names = list(columns)
    rng.shuffle(names)
    order = rng.permutation(rows)
    for _ in range(keys):
        key, size = np.zeros(rows, dtype=np.int64), 1
        for name in list(names):
            if size * domain.size(name) <= sortable:
                key = key * domain.size(name) + columns[name]
                size *= domain.size(name)
                names.remove(name)
        if size > 1:
            order = order[np.argsort(key[order].astype(np.uint16), kind="stable")]
    return order


def ancestral(
    domain: Domain,
    conditionals: Iterable[tuple[Attribute, FloatArray, Clique]],
    rows: int,
    *,
    rng: np.random.Generator,
    independent: bool = False,
) -> Codes:
    """Return records drawn column after column, each given its parents among the columns before it.

    They have the columns that the conditionals are of.

    Args:
        domain: The domain.
        conditionals: Each column, a row of weights for each combination of its parents' codes, and the parents.
        rows: The number of records.
        rng: Randomness.
        independent: Draw each record on its own, instead of by randomized rounding.

    Raises:
        InputError: The number of records is negative.
    """
    if rows < 0:
        raise InputError(f"{rows} records cannot be drawn.", remedy="Ask for 0 or more.")
    columns: dict[Attribute, AnyArray] = {}
    for attribute, table, parents in conditionals:
        groups = np.zeros(rows, dtype=np.int64)
        for parent in parents:
            groups *= domain.size(parent)
            groups += columns[parent]
        if independent:
            columns[attribute] = draw(groups, table, rng)
            continue
        others = {a: codes for a, codes in columns.items() if a not in parents}
        order = spread_order(domain, others, rows, rng)
        columns[attribute] = deal(groups, table, rng, order)
    return Codes.of(domain.project(columns), columns)
