"""Weights of the distinct records of a public table: a distribution on its support."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import InputError, ModelTooLargeError
from margrave.marginal import LinearQuery
from margrave.models.conditional import Given, drawn_within
from margrave.models.weights import kernels
from margrave.public_table import PublicTable
from margrave.structural_zeros import violating
from margrave.types import AnyArray, Clique, FloatArray, IntArray


class RecordSupport:
    """One weight for every distinct record: ``values`` has a row of codes per attribute."""

    kind = "support"

    def __init__(self, domain: Domain, values: AnyArray, weights: FloatArray) -> None:
        self.domain = domain
        self.values = values
        self.weights = weights

    @staticmethod
    def of(domain: Domain, public: PublicTable) -> RecordSupport:
        """Return the public table's records, each weighted by how often it stands there, without
        those that cannot occur.
        """
        return RecordSupport.distinct(domain, RecordSupport.one_by_one(domain, public).values)

    @staticmethod
    def one_by_one(domain: Domain, public: PublicTable) -> RecordSupport:
        """Return the records in the public table's order with equal weights; repeated ones stay
        apart.
        """
        public.needs(domain, "a distribution on public records")
        values = public.codes.values[[public.domain.index(a) for a in domain]]
        values = Codes(domain, values).values
        possible = ~violating(domain.zeros, lambda a: values[domain.index(a)], values.shape[1])
        if not possible.any():
            raise InputError(
                "Every record of the public table has a combination that the schema declares impossible.",
                remedy="Give another public table, or mend the schema's constraints.",
            )
        kept = values[:, possible]
        return RecordSupport(domain, kept, np.full(kept.shape[1], 1.0 / kept.shape[1]))

    @staticmethod
    def distinct(domain: Domain, values: AnyArray) -> RecordSupport:
        """Return each record once, weighted by how often it stands there; the weights sum to 1."""
        values = values[:, np.lexsort(values[::-1])]
        first = np.ones(values.shape[1], dtype=np.bool_)
        first[1:] = (values[:, 1:] != values[:, :-1]).any(axis=0)
        often = np.diff(np.flatnonzero(np.append(first, True)))
        return RecordSupport(
            domain, np.ascontiguousarray(values[:, first]), often / values.shape[1]
        )

    def apply_zeros(self) -> None:
        """Take the weight from records that structural zeros declare impossible."""
        wrong = violating(
            self.domain.zeros, lambda a: self.values[self.domain.index(a)], len(self.weights)
        )
        self.weights[wrong] = 0.0

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """The records. They are public, or found from noisy answers and choices."""
        return {"records": self.values}

    def copy(self) -> RecordSupport:
        """Return the same records with weights of their own."""
        return RecordSupport(self.domain, self.values, self.weights.copy())

    def selected_by(self, queries: Sequence[LinearQuery]) -> RecordLists:
        """Return the records that each query counts."""
        return RecordLists.of(self, queries)

    def marginals(
        self, cliques: Iterable[Clique], limit: int | None = None
    ) -> dict[Clique, FloatArray]:
        """Return the marginals, one pass over the records for each clique."""
        wanted = list(dict.fromkeys(cliques))
        needed = sum(map(self.domain.cells, wanted))
        if limit is not None and needed > limit:
            raise ModelTooLargeError(
                f"These marginals have {needed:,} cells.", remedy="Ask for fewer at once."
            )
        found = {}
        for clique in wanted:
            sums = np.zeros(self.domain.cells(clique))
            kernels.tally(self.weights, self.values, *self._layout(clique), sums)
            found[clique] = sums.reshape(self.domain.shape(clique))
        return found

    def rescale(self, clique: Clique, factors: FloatArray) -> None:
        """Multiply the weights of the records in every cell of a clique by the cell's factor."""
        cells = np.empty(len(self.weights), dtype=np.int64)
        kernels.cells_of(self.values, *self._layout(clique), cells)
        self.weights *= factors.reshape(-1)[cells]

    def codes(self, places: AnyArray) -> Codes:
        """Return the records at these positions."""
        return Codes(self.domain, self.values[:, places])

    def match(self, groups: Given, rng: np.random.Generator) -> IntArray:
        """Return for each row a record with its known codes; all records are sorted by them."""
        known = groups.codes.domain
        mine = self.values[[self.domain.index(a) for a in known]]
        which = Given.of(
            known, Codes(known, np.concatenate([groups.codes.values, mine], axis=1))
        ).which
        wanted, which = which[: len(groups)], which[len(groups) :]
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], wanted, side="left")
        ends = np.searchsorted(which[order], wanted, side="right")
        found = drawn_within(self.weights[order], starts, ends, groups.which, rng)
        return np.where(found < 0, -1, order[found])

    def _layout(self, clique: Clique) -> tuple[IntArray, IntArray]:
        members = np.array([self.domain.index(a) for a in clique], dtype=np.int64)
        return members, np.array(self.domain.shape(clique), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RecordLists:
    """The records that each of some queries counts: those of query j are ``rows[starts[j]:starts[j + 1]]``."""

    records: RecordSupport
    starts: IntArray
    rows: IntArray

    @staticmethod
    def of(records: RecordSupport, queries: Sequence[LinearQuery]) -> RecordLists:
        """Return queries of the records' domain."""
        lists = []
        for query in queries:
            counted = np.ones(len(records.weights), dtype=np.bool_)
            for attribute, codes in zip(query.clique, query.codes, strict=True):
                inside = np.zeros(records.domain.size(attribute), dtype=np.bool_)
                inside[list(codes)] = True
                counted &= inside[records.values[records.domain.index(attribute)]]
            lists.append(np.flatnonzero(counted))
        starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return RecordLists(records, starts, np.concatenate([np.empty(0, dtype=np.int64), *lists]))

    def sums(self) -> FloatArray:
        """Return the sum of each list's weights."""
        return self.overlaps(-1)

    def overlaps(self, number: int) -> FloatArray:
        """Return the sum of what each list has in common with one of them."""
        found: FloatArray = kernels.list_sums(self.records.weights, self.starts, self.rows, number)
        return found

    def scale(self, number: int, factor: float) -> None:
        """Multiply the weights of one list."""
        self.records.weights[self.rows[self.starts[number] : self.starts[number + 1]]] *= factor

    def multiplicative_pass(
        self, answers: FloatArray, tolerances: FloatArray, step: float, mass: float
    ) -> tuple[float, bool]:
        """Update multiplicatively, list after list."""
        weights = self.records.weights
        mass, moved = kernels.weigh_lists(
            weights, self.starts, self.rows, answers, tolerances, step, mass
        )
        return float(mass), bool(moved)
