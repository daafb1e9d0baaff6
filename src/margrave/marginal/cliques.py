"""Sets of cliques: downward closure, maximal members, cover."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, groupby

from margrave.types import Clique


def closure(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return every non-empty subset of every clique, each once, smaller ones first.

    >>> closure([("a", "b")])
    (('a',), ('b',), ('a', 'b'))
    """
    found: dict[Clique, None] = {}
    for clique in cliques:
        for k in range(1, len(clique) + 1):
            found.update(dict.fromkeys(combinations(clique, k)))
    return tuple(sorted(found, key=len))


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return the cliques that lie in no other, in the order given.

    >>> maximal([("a",), ("a", "b"), ("c",)])
    (('a', 'b'), ('c',))
    """
    distinct = list(dict.fromkeys(cliques))
    holding: dict[
        str, list[frozenset[str]]
    ] = {}  # those kept so far, by attribute: all larger than what comes
    kept: dict[Clique, frozenset[str]] = {}
    for _, same in groupby(sorted(distinct, key=len, reverse=True), key=len):
        new = {}
        for clique in same:
            members = frozenset(clique)
            larger = (
                min((holding.get(a, []) for a in members), key=len)
                if members
                else list(kept.values())
            )
            if not any(members < c for c in larger):
                new[clique] = members
        kept |= new
        for members in new.values():
            for a in members:
                holding.setdefault(a, []).append(members)
    return tuple(c for c in distinct if c in kept)


def covers(cliques: Iterable[Clique], clique: Clique) -> bool:
    """Return True if some clique contains this one."""
    wanted = set(clique)
    return any(wanted <= set(c) for c in cliques)
