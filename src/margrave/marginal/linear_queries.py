"""Linear queries as data: how many records have, in each of some columns, one of some codes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.types import AnyArray, Attribute, Clique, IntArray

BoolMatrix = NDArray[np.bool_]


@dataclass(frozen=True)
class LinearQuery:
    """One counting query: the records whose code of every attribute of the clique is among ``codes`` (one list each).

    A cell of a marginal has one code in each list; a range has a run of codes. Of no attributes at all it is the
    number of records (``TOTAL``).

    >>> young_women = LinearQuery(("age", "sex"), ((0, 1), (1,)))
    >>> young_women.count(np.array([[5, 4], [3, 2], [9, 9]]))
    6
    >>> young_women.describe
    'age 0-1, sex 1'
    """

    clique: Clique
    codes: tuple[tuple[int, ...], ...]

    #: The most that one record counts.
    max_contribution: ClassVar[int] = 1

    def count(self, values: AnyArray) -> int | float:
        """Return the answer on the values of its marginal: a sum of cells."""
        inside = values[np.ix_(*self.codes)] if self.clique else values
        answer: int | float = inside.sum().item()
        return answer

    @property
    def is_cell(self) -> bool:
        """True if the query is a single cell of its marginal."""
        return all(len(codes) == 1 for codes in self.codes)

    @property
    def describe(self) -> str:
        """The query in words: the columns with their codes, as in "age 0-1, sex 1"."""
        named = zip(self.clique, self.codes, strict=True)
        return ", ".join(f"{a} {_runs_of(codes)}" for a, codes in named) or "all records"

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as plain data."""
        return {"clique": list(self.clique), "codes": [list(codes) for codes in self.codes]}

    def counting_clique(self, domain: Domain) -> Clique:
        """Return the marginal whose counts answer it: its own; for the total, that of the column
        with fewest codes.
        """
        return self.clique or (min(domain, key=domain.size),)

    def check(self, domain: Domain) -> None:
        """Raise ``InputError`` unless its columns are the domain's, in order, with codes of theirs in rising order."""
        if domain.clique(self.clique) != self.clique or len(self.codes) != len(self.clique):
            raise InputError(
                "A query does not name columns in the domain's order with a list of codes for each."
            )
        for attribute, codes in zip(self.clique, self.codes, strict=True):
            rising = all(a < b for a, b in pairwise(codes))
            if not codes or not rising or codes[0] < 0 or codes[-1] >= domain.size(attribute):
                raise InputError(
                    f"A query names codes of column {attribute!r} that do not exist or are out of order.",
                    remedy=f"Its codes are 0 to {domain.size(attribute) - 1}; name each once, smallest first.",
                )


#: The query that counts all records.
TOTAL = LinearQuery((), ())


@dataclass(frozen=True, eq=False)
class QueryFamily:
    """Many linear queries: for each clique every product of one set of codes per attribute.

    ``sets[a]`` is a 0/1 matrix with one row for each set of codes of attribute ``a``; without an entry the sets are the
    single codes, so that the queries of a clique are its marginal's cells. They are numbered from 0, clique after
    clique, with the last attribute changing fastest.

    >>> domain = Domain.of({"age": 3, "sex": 2})
    >>> queries = QueryFamily.prefixes(domain, [("age", "sex")], ["age"])
    >>> queries.answer(("age", "sex"), np.array([[5, 4], [3, 2], [9, 9]])).tolist()
    [[5, 4], [8, 6], [17, 15]]
    >>> queries[3]
    LinearQuery(clique=('age', 'sex'), codes=((0, 1), (1,)))
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    sets: Mapping[Attribute, BoolMatrix] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cliques = tuple(self.domain.clique(c) for c in self.cliques)
        if not cliques or not all(cliques) or len(set(cliques)) < len(cliques):
            raise InputError("The queries name no marginal, one of no columns, or one twice.")
        if not isinstance(self.sets, Mapping):
            raise InputError(
                "The sets of codes are not given by column.",
                remedy="Give a mapping: {column: matrix}.",
            )
        for attribute, sets in self.sets.items():
            if not isinstance(sets, np.ndarray):
                raise InputError(
                    f"The sets of codes of column {attribute!r} are a {type(sets).__name__}, and no 0/1 matrix.",
                    remedy="Give a NumPy array of truth values, one row a set: np.array(..., dtype=bool).",
                )
            if (
                sets.dtype != np.bool_
                or sets.ndim != 2
                or sets.shape[1] != self.domain.size(attribute)
            ):
                raise InputError(
                    f"The sets of codes of column {attribute!r} are not a 0/1 matrix over its codes."
                )
            if not len(sets) or not sets.any(axis=1).all():
                raise InputError(
                    f"There is no set of codes of column {attribute!r}, or one that is empty."
                )
        object.__setattr__(self, "cliques", cliques)

    @staticmethod
    def cells(domain: Domain, cliques: Iterable[Clique]) -> QueryFamily:
        """Return every cell of every marginal."""
        return QueryFamily(domain, tuple(cliques))

    @staticmethod
    def prefixes(
        domain: Domain, cliques: Iterable[Clique], ordered: Iterable[Attribute]
    ) -> QueryFamily:
        """Return "at most this code" for the ordered attributes, and single codes for the others.

        Raises ``InputError`` for an ordered attribute that is in no clique.
        """
        sets = {a: np.tri(domain.size(a), dtype=np.bool_) for a in ordered}
        return _met(QueryFamily(domain, tuple(cliques), sets))

    @staticmethod
    def ranges(
        domain: Domain, cliques: Iterable[Clique], ordered: Iterable[Attribute]
    ) -> QueryFamily:
        """Return every run of codes for the ordered attributes, and single codes for the others.

        Raises ``InputError`` for an ordered attribute that is in no clique.
        """
        return _met(
            QueryFamily(domain, tuple(cliques), {a: _runs(domain.size(a)) for a in ordered})
        )

    def hash(self) -> str:
        """Return the sha256 of the marginals and the sets of codes: the same for the same queries
        in the same order.
        """
        sets = sorted(self.sets.items())
        named = json.dumps([self.cliques, [(a, found.shape) for a, found in sets]])
        return sha256(
            b"".join([named.encode(), *(np.packbits(found).tobytes() for _, found in sets)])
        ).hexdigest()

    def facts(self) -> dict[str, Any]:
        """Return plain data: the marginals, how many sets of codes columns have, and the hash."""
        sets = {a: len(found) for a, found in self.sets.items()}
        cliques = [list(c) for c in self.cliques]
        return {"count": len(self), "cliques": cliques, "sets": sets, "sha256": self.hash()}

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """Return the number of sets of each attribute of a clique."""
        return tuple(len(self.sets[a]) if a in self.sets else self.domain.size(a) for a in clique)

    @cached_property
    def starts(self) -> IntArray:
        """The number of each clique's first query, and at the end how many queries there are."""
        return np.cumsum([0, *(int(np.prod(self.shape(c))) for c in self.cliques)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, number: int) -> LinearQuery:
        if not 0 <= number < len(self):
            raise IndexError(number)
        place = int(np.searchsorted(self.starts, number, side="right")) - 1
        clique = self.cliques[place]
        at = np.unravel_index(number - int(self.starts[place]), self.shape(clique))
        codes = (
            tuple(np.flatnonzero(self.sets[a][i]).tolist()) if a in self.sets else (int(i),)
            for a, i in zip(clique, at, strict=True)
        )
        return LinearQuery(clique, tuple(codes))

    def answer(self, clique: Clique, values: AnyArray) -> AnyArray:
        """Return the answers of one clique's queries, on the values of its marginal: one axis per
        attribute.
        """
        for axis, attribute in enumerate(clique):
            if attribute in self.sets:
                sets = self.sets[attribute].astype(values.dtype)
                values = np.moveaxis(np.tensordot(sets, values, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(values)

    def answers(self, values: Mapping[Clique, AnyArray]) -> AnyArray:
        """Return the answers of all queries, in their order, on the values of the marginals."""
        return np.concatenate([self.answer(c, values[c]).reshape(-1) for c in self.cliques])


def _met(queries: QueryFamily) -> QueryFamily:
    asked = {a for c in queries.cliques for a in c}
    unmet = next((a for a in queries.sets if a not in asked), None)
    if unmet is not None:
        raise InputError(
            f"Column {unmet!r} is named as ordered, and no marginal of the queries has it.",
            remedy="Name a marginal with it, or leave it out.",
        )
    return queries


def _runs(size: int) -> BoolMatrix:
    first, last = np.triu_indices(size)
    codes = np.arange(size)
    runs: BoolMatrix = (first[:, None] <= codes) & (codes <= last[:, None])
    return runs


def _runs_of(codes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for code in codes:
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return " or ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
