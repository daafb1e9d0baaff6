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

from margrave.errors import InputError
from margrave.schema.domain import Domain
from margrave.typing import AnyArray, Attribute, Clique, IntArray

BoolMatrix = NDArray[np.bool_]


@dataclass(frozen=True)
class LinearQuery:
    """One counting query: the records whose code of every attribute of the clique is among ``codes`` (one list each).

    A cell of a marginal has one code in each list; a range has a run of codes. Of no attributes at all it is the
    number of records (``TOTAL``).

    >>> young_women = LinearQuery(("age", "sex"), ((0, 1), (1,)))
    >>> young_women.count(np.array([[5, 4], [3, 2], [9, 9]]))
    6
    >>> young_women.words
    'age 0-1, sex 1'
    """

    clique: Clique
    codes: tuple[tuple[int, ...], ...]

    most: ClassVar[int] = 1
    """What one record counts at most."""

    def count(self, values: AnyArray) -> int | float:
        """The answer on the values of its marginal: a sum of cells."""
        inside = values[np.ix_(*self.codes)] if self.clique else values
        answer: int | float = inside.sum().item()
        return answer

    @property
    def is_cell(self) -> bool:
        """Whether it is a single cell of its marginal."""
        return all(len(codes) == 1 for codes in self.codes)

    @property
    def words(self) -> str:
        """What it counts, for people: the columns with their codes, as in "age 0-1, sex 1"."""
        named = zip(self.clique, self.codes, strict=True)
        return ", ".join(f"{a} {_runs_of(codes)}" for a, codes in named) or "all records"

    def plain(self) -> dict[str, Any]:
        """What defines it, as plain data."""
        return {"clique": list(self.clique), "codes": [list(codes) for codes in self.codes]}

    def counted_in(self, domain: Domain) -> Clique:
        """The marginal whose counts answer it: its own; for the total, that of the column with fewest codes."""
        return self.clique or (min(domain, key=domain.size),)

    def check(self, domain: Domain) -> None:
        """Raise ``InputError`` unless its columns are the domain's, in order, with codes of theirs in rising order."""
        if domain.clique(self.clique) != self.clique or len(self.codes) != len(self.clique):
            raise InputError("A query does not name columns in the domain's order with a list of codes for each.")
        for attribute, codes in zip(self.clique, self.codes, strict=True):
            rising = all(a < b for a, b in pairwise(codes))
            if not codes or not rising or codes[0] < 0 or codes[-1] >= domain.size(attribute):
                raise InputError(
                    f"A query names codes of column {attribute!r} that are none of it, or out of order.",
                    remedy=f"Its codes are 0 to {domain.size(attribute) - 1}; name each once, smallest first.",
                )


TOTAL = LinearQuery((), ())
"""How many records there are."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Many linear queries: for each clique every product of one set of codes per attribute.

    ``sets[a]`` is a 0/1 matrix with one row for each set of codes of attribute ``a``; without an entry the sets are the
    single codes, so that the queries of a clique are its marginal's cells. They are numbered from 0, clique after
    clique, with the last attribute changing fastest.

    >>> domain = Domain.of({"age": 3, "sex": 2})
    >>> queries = Queries.prefixes(domain, [("age", "sex")], ["age"])
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
            raise InputError("The sets of codes are not given by column.", remedy="Give a mapping: {column: matrix}.")
        for attribute, sets in self.sets.items():
            if not isinstance(sets, np.ndarray):
                raise InputError(
                    f"The sets of codes of column {attribute!r} are a {type(sets).__name__}, and no 0/1 matrix.",
                    remedy="Give a NumPy array of truth values, one row a set: np.array(..., dtype=bool).",
                )
            if sets.dtype != np.bool_ or sets.ndim != 2 or sets.shape[1] != self.domain.size(attribute):
                raise InputError(f"The sets of codes of column {attribute!r} are no 0/1 matrix over its codes.")
            if not len(sets) or not sets.any(axis=1).all():
                raise InputError(f"There is no set of codes of column {attribute!r}, or one that is empty.")
        object.__setattr__(self, "cliques", cliques)

    @staticmethod
    def cells(domain: Domain, cliques: Iterable[Clique]) -> Queries:
        """Every cell of every marginal."""
        return Queries(domain, tuple(cliques))

    @staticmethod
    def prefixes(domain: Domain, cliques: Iterable[Clique], ordered: Iterable[Attribute]) -> Queries:
        """For the ordered attributes "at most this code", for the others single codes.

        An ``InputError`` for an ordered attribute that is in no clique.
        """
        sets = {a: np.tri(domain.size(a), dtype=np.bool_) for a in ordered}
        return _met(Queries(domain, tuple(cliques), sets))

    @staticmethod
    def ranges(domain: Domain, cliques: Iterable[Clique], ordered: Iterable[Attribute]) -> Queries:
        """For the ordered attributes every run of codes, for the others single codes.

        An ``InputError`` for an ordered attribute that is in no clique.
        """
        return _met(Queries(domain, tuple(cliques), {a: _runs(domain.size(a)) for a in ordered}))

    def hash(self) -> str:
        """The sha256 of the marginals and the sets of codes: the same for the same queries in the same order."""
        sets = sorted(self.sets.items())
        named = json.dumps([self.cliques, [(a, found.shape) for a, found in sets]])
        return sha256(b"".join([named.encode(), *(np.packbits(found).tobytes() for _, found in sets)])).hexdigest()

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """How many sets each attribute of a clique has."""
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
        """The answers of one clique's queries, on the values of its marginal: one axis per attribute."""
        for axis, attribute in enumerate(clique):
            if attribute in self.sets:
                sets = self.sets[attribute].astype(values.dtype)
                values = np.moveaxis(np.tensordot(sets, values, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(values)

    def answers(self, values: Mapping[Clique, AnyArray]) -> AnyArray:
        """The answers of all queries, in their order, on the values of the marginals."""
        return np.concatenate([self.answer(c, values[c]).reshape(-1) for c in self.cliques])


def _met(queries: Queries) -> Queries:
    """The queries, if each column with sets of codes is in one of their marginals: else they ask nothing of it."""
    asked = {a for c in queries.cliques for a in c}
    unmet = next((a for a in queries.sets if a not in asked), None)
    if unmet is not None:
        raise InputError(
            f"Column {unmet!r} is named as ordered, and no marginal of the queries has it.",
            remedy="Name a marginal with it, or leave it out.",
        )
    return queries


def _runs(size: int) -> BoolMatrix:
    """Every run of codes first … last, by its first code."""
    first, last = np.triu_indices(size)
    codes = np.arange(size)
    runs: BoolMatrix = (first[:, None] <= codes) & (codes <= last[:, None])
    return runs


def _runs_of(codes: Iterable[int]) -> str:
    """Rising numbers in words, runs of them drawn together."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return " or ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
