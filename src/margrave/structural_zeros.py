"""Structural zeros: combinations of codes that cannot occur, and what several of them say together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from margrave.types import AnyArray, Attribute, Clique

#: Returns the number of codes of an attribute.
Size = Callable[[Attribute], int]

#: Cells of the largest table that is built to combine declarations.
MAX_JOINED = 1 << 20


@dataclass(frozen=True, eq=False)
class StructuralZeros:
    """Combinations of codes that cannot occur, as public knowledge.

    ``possible`` has one axis per attribute of ``clique`` and is False where the combination is impossible.
    """

    clique: Clique
    possible: NDArray[np.bool_]

    @cached_property
    def key(self) -> tuple[Clique, str]:
        """The attributes sorted by name, and a digest of the combinations: equal where the same ones cannot occur."""
        order = sorted(range(len(self.clique)), key=self.clique.__getitem__)
        packed = np.packbits(self.possible.transpose(order))
        return tuple(self.clique[i] for i in order), sha256(packed.tobytes()).hexdigest()


def joined(zeros: Sequence[StructuralZeros], onto: Clique, size: Size) -> NDArray[np.bool_]:
    """Return which combinations of ``onto`` all declarations allow, as a mask with one axis per
    attribute.

    The attributes of the declarations must be among ``onto``.
    """
    possible = np.ones([size(a) for a in onto], dtype=np.bool_)
    for z in zeros:
        order = sorted(range(len(z.clique)), key=lambda i: onto.index(z.clique[i]))
        shape = [size(a) if a in z.clique else 1 for a in onto]
        possible &= z.possible.transpose(order).reshape(shape)
    return possible


def violating(
    zeros: Sequence[StructuralZeros], codes: Callable[[Attribute], AnyArray], rows: int
) -> NDArray[np.bool_]:
    """Return which records have an impossible combination, as a mask.

    ``codes`` returns a column's codes; ``rows`` is the number of records.
    """
    wrong = np.zeros(rows, dtype=np.bool_)
    for z in zeros:
        wrong |= ~z.possible[tuple(codes(a) for a in z.clique)]
    return wrong


def connected(zeros: Sequence[StructuralZeros]) -> list[list[StructuralZeros]]:
    """Return the declarations in groups that share no attribute."""
    groups: list[tuple[set[Attribute], list[StructuralZeros]]] = []
    for z in zeros:
        touching = [g for g in groups if not g[0].isdisjoint(z.clique)]
        groups = [g for g in groups if g[0].isdisjoint(z.clique)]
        merged = {a for g in touching for a in g[0]} | set(z.clique)
        groups.append((merged, [m for g in touching for m in g[1]] + [z]))
    return [members for _, members in groups]


def count_possible(zeros: Sequence[StructuralZeros], clique: Clique, size: Size) -> int:
    """Return the number of combinations of a clique's codes that the declarations allow, or an
    upper bound.

    The number is exact if each group of connected declarations fits in ``MAX_JOINED`` cells. For a
    larger group the declarations that share no attribute are multiplied, the most restrictive
    first.

    >>> city = StructuralZeros(("city", "state"), np.array([[True, False], [True, False], [False, True]]))
    >>> count_possible([city], ("city", "state", "age"), {"city": 3, "state": 2, "age": 10}.__getitem__)
    30
    """
    members = set(clique)
    count, left = 1, set(clique)
    for group in connected([z for z in zeros if members.issuperset(z.clique)]):
        attributes = tuple(a for a in clique if any(a in z.clique for z in group))
        if math.prod(map(size, attributes)) <= MAX_JOINED:
            count *= int(joined(group, attributes, size).sum())
            left.difference_update(attributes)
            continue
        for z in sorted(group, key=lambda z: float(z.possible.mean())):
            if left.issuperset(z.clique):
                count *= int(z.possible.sum())
                left.difference_update(z.clique)
    return count * math.prod(map(size, left))


def any_possible(zeros: Sequence[StructuralZeros], size: Size) -> bool | None:
    """Return True if some record satisfies all declarations; None where finding out takes too large
    a table.
    """
    left = projected(zeros, (), size)
    return None if left is None else all(bool(z.possible.all()) for z in left)


def projected(
    zeros: Sequence[StructuralZeros], onto: Clique, size: Size
) -> list[StructuralZeros] | None:
    """Return what all declarations together imply for some attributes; None if that takes too large
    a table.

    The other attributes are eliminated one by one, the cheapest first: the tables that contain one
    are joined, and the attribute is summed out.

    >>> z = StructuralZeros(("a", "b"), np.array([[True, False], [False, False]]))
    >>> projected([z], ("a",), {"a": 2, "b": 2}.__getitem__)[0].possible.tolist()
    [True, False]
    """
    tables = list(zeros)
    while True:
        names = dict.fromkeys(a for z in tables for a in z.clique if a not in onto)
        if not names:
            return tables
        scopes = {
            a: tuple(dict.fromkeys(b for z in tables if a in z.clique for b in z.clique))
            for a in names
        }
        cells = {a: math.prod(map(size, scope)) for a, scope in scopes.items()}
        first = min(names, key=cells.__getitem__)
        if cells[first] > 64 * MAX_JOINED:
            return None
        scope = scopes[first]
        table = joined([z for z in tables if first in z.clique], scope, size).any(
            axis=scope.index(first)
        )
        rest = tuple(a for a in scope if a != first)
        tables = [z for z in tables if first not in z.clique] + [
            StructuralZeros(rest, np.asarray(table))
        ]
