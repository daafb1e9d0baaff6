"""Sets of cliques: downward closure, maximal members, cover."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from margrave.typing import Clique


def closure(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Every non-empty subset of every clique, each once, smaller ones first.

    >>> closure([("a", "b")])
    (('a',), ('b',), ('a', 'b'))
    """
    found: dict[Clique, None] = {}
    for clique in cliques:
        for k in range(1, len(clique) + 1):
            found.update(dict.fromkeys(combinations(clique, k)))
    return tuple(sorted(found, key=len))


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """The cliques that lie in no other, in the order given.

    >>> maximal([("a",), ("a", "b"), ("c",)])
    (('a', 'b'), ('c',))
    """
    distinct = list(dict.fromkeys(cliques))
    sets = [frozenset(c) for c in distinct]
    by_attribute: dict[str, list[int]] = {}
    for i, members in enumerate(sets):
        for a in members:
            by_attribute.setdefault(a, []).append(i)
    kept = []
    for i, clique in enumerate(distinct):
        rivals = min((by_attribute[a] for a in clique), key=len, default=range(len(sets)))
        if not any(j != i and sets[i] < sets[j] for j in rivals):
            kept.append(clique)
    return tuple(kept)


def covers(cliques: Iterable[Clique], clique: Clique) -> bool:
    """Whether some clique contains this one."""
    wanted = set(clique)
    return any(wanted <= set(c) for c in cliques)
