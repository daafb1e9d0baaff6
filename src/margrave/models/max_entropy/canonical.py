"""Canonical queries: enough indicator queries to say all that some marginals say, and none that follows from others."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from margrave.domain import Domain
from margrave.marginal import closure
from margrave.structural_zeros import joined
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Canonical:
    """a_(S,v)(x) = 1 if x_S = v, for every S in the closure of the cliques and every v without a reference code.

    One query per S and v: p = Σ_S Π_(a in S) (size(a) − 1) in all, before structural zeros. With the constant 1 they
    span the indicators of all cells of the cliques, and no combination of them is constant.

    Where structural zeros make queries depend on others, those are left out too (``kept``).

    Source: napsu-mq.txt, Appendix C; Koller and Friedman (2009), Section 4.4.2.1 (canonical parameterization).
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    reference: Mapping[Attribute, int]

    @cached_property
    def subsets(self) -> tuple[Clique, ...]:
        """The closure of the cliques, small sets first."""
        return tuple(
            sorted(closure(self.cliques), key=lambda c: (len(c), [self.domain.index(a) for a in c]))
        )

    @cached_property
    def starts(self) -> dict[Clique, int]:
        """Where each subset's queries begin among all of them."""
        starts, at = {}, 0
        for s in self.subsets:
            starts[s] = at
            at += self.free_cells(s)
        return starts

    @cached_property
    def size(self) -> int:
        """The number of queries, before any are left out."""
        return sum(self.free_cells(s) for s in self.subsets)

    def free_cells(self, clique: Clique) -> int:
        """Return the number of cells of a marginal without a reference code."""
        return math.prod(self.domain.size(a) - 1 for a in clique)

    def query(self, position: int) -> dict[Attribute, int]:
        """Return the query at a position: a code of each attribute of its subset."""
        s = next(s for s in self.subsets if 0 <= position - self.starts[s] < self.free_cells(s))
        shape = [self.domain.size(a) - 1 for a in s]
        codes = np.unravel_index(position - self.starts[s], shape)
        return {a: int(self.order(a)[1:][i]) for a, i in zip(s, codes)}

    def order(self, attribute: Attribute) -> IntArray:
        """Return the codes of an attribute, its reference code first."""
        codes = np.arange(self.domain.size(attribute))
        first = self.reference[attribute]
        return np.concatenate([[first], codes[codes != first]]).astype(np.int64)

    def codes(self, attribute: Attribute, *, free: bool) -> IntArray:
        """Return the codes other than the reference code if free, else that code alone."""
        order = self.order(attribute)
        return order[1:] if free else order[:1]

    @cached_property
    def kept(self) -> IntArray:
        """The queries that do not follow from earlier ones on the records that are possible."""
        kept = np.ones(self.size, dtype=bool)
        if self.domain.zeros:
            around = [z.clique for z in self.domain.zeros]
            for clique in (*self.cliques, *_unions(self.cliques, around)):
                self._leave_out(clique, kept)
        return np.flatnonzero(kept)

    def _leave_out(self, clique: Clique, kept: AnyArray) -> None:
        """Leave out what is dependent on a clique's possible cells, by orthogonalization in the queries' order."""
        # Share of its length outside the span of others, below which a query follows from them.
        dependent = 1e-9
        inside = [z for z in self.domain.zeros if set(z.clique) <= set(clique)]
        if not inside:
            return
        possible = np.broadcast_to(
            joined(inside, clique, self.domain.size), self.domain.shape(clique)
        ).ravel()
        columns, indices = self.indicators(
            clique, [s for s in self.subsets if set(s) <= set(clique)]
        )
        basis: list[FloatArray] = [np.ones(int(possible.sum())) / np.sqrt(possible.sum())]
        for j in np.argsort(indices):
            if not kept[indices[j]]:
                continue
            column = columns[possible, j]
            length = float(np.linalg.norm(column))
            for _ in range(2):  # twice is enough for orthogonality to machine precision
                column = column - sum(b * (b @ column) for b in basis)
            left = float(np.linalg.norm(column))
            if left <= dependent * max(length, 1.0):
                kept[indices[j]] = False
            else:
                basis.append(column / left)

    def answers(self, clique: Clique) -> tuple[IntArray, FloatArray, AnyArray] | None:
        """Return how the cells of a clique with structural zeros follow from the total and the kept
        queries.

        Returns:
            The queries' positions, a matrix (cells, 1 + queries), and a mask of the clique's
            possible cells, which the rows stand for. None if indicators on the possible records are
            not combinations of the kept queries, or the records are too many to enumerate.
        """
        # Cells of a clique and the zeros that touch it, up to which they are enumerated.
        largest_union = 5000
        near = [z for z in self.domain.zeros if set(z.clique) & set(clique)]
        union = self.domain.clique({*clique, *(a for z in near for a in z.clique)})
        if self.domain.cells(union) > largest_union:
            return None
        possible = joined(
            [z for z in near if set(z.clique) <= set(union)], union, self.domain.size
        ).ravel()
        columns, positions = self.indicators(
            union, [s for s in self.subsets if set(s) <= set(union)]
        )
        is_kept = np.isin(positions, self.kept)
        known = np.concatenate([np.ones((len(columns), 1)), columns[:, is_kept]], axis=1)[possible]
        codes = np.indices(self.domain.shape(union)).reshape(len(union), -1)[:, possible]
        own = np.ravel_multi_index(
            [codes[union.index(a)] for a in clique], self.domain.shape(clique)
        )
        here = np.bincount(own, minlength=self.domain.cells(clique)) > 0
        wanted = np.eye(self.domain.cells(clique))[own][:, here]
        weights = np.linalg.lstsq(known, wanted, rcond=None)[0]
        if np.abs(known @ weights - wanted).max(initial=0.0) > 1e-8:
            return None
        return positions[is_kept], weights.T, here

    def identifies(self, clique: Clique) -> bool:
        """Return True if the kept queries determine all possible cells of a measured clique.

        Without structural zeros they do.
        """
        touched = any(set(z.clique) & set(clique) for z in self.domain.zeros)
        return not touched or self.answers(clique) is not None

    def indicators(self, clique: Clique, subsets: Sequence[Clique]) -> tuple[FloatArray, IntArray]:
        """Return the queries of some subsets of a clique, on its cells (last attribute fastest),
        and which ones they are.

        A matrix of 0 and 1, (cells, queries), and the queries' positions among all.
        """
        blocks, positions = (
            [np.zeros((self.domain.cells(clique), 0))],
            [np.zeros(0, dtype=np.int64)],
        )
        for s in subsets:
            axes = []
            for a in clique:
                eye = np.eye(self.domain.size(a))
                axes.append(eye[:, self.order(a)[1:]] if a in s else np.ones((len(eye), 1)))
            blocks.append(reduce(lambda x, y: np.asarray(np.kron(x, y)), axes))
            places = self.starts[s] + np.arange(self.free_cells(s)).reshape(
                [self.domain.size(a) - 1 for a in s]
            )
            positions.append(np.transpose(places, [s.index(a) for a in clique if a in s]).ravel())
        return np.concatenate(blocks, axis=1), np.concatenate(positions)

    def columns_of(self, clique: Clique) -> IntArray:
        """Return for each cell of a clique's canonical table the position of its query plus one; 0
        for the total.

        The table has one axis per attribute, codes in ``order``; code 0 on an axis means that it is
        summed out.
        """
        table = np.zeros(self.domain.shape(clique), dtype=np.int64)
        for s in self.subsets:
            if set(s) <= set(clique):
                where = tuple(slice(1, None) if a in s else 0 for a in clique)
                shape = tuple(self.domain.size(a) - 1 for a in s)
                table[where] = 1 + self.starts[s] + np.arange(self.free_cells(s)).reshape(shape)
        return table

    def potentials(self, theta: FloatArray) -> dict[Clique, FloatArray]:
        """Return θᵀ a(x) as one table per clique; θ has one number per kept query."""
        full = np.zeros(self.size + 1)
        full[1 + self.kept] = theta
        tables, done = {}, {0}
        for clique in self.cliques:
            columns = self.columns_of(clique)
            table = full[np.where(np.isin(columns, list(done)), 0, columns)]
            done.update(columns.ravel().tolist())
            for axis, a in enumerate(clique):
                # adding what holds of a summed code to every code of the axis, and back to the domain's order
                lead = np.take(table, [0], axis=axis)
                rest = np.take(table, range(1, table.shape[axis]), axis=axis)
                table = np.concatenate([lead, rest + lead], axis=axis)
                table = np.take(table, np.argsort(self.order(a)), axis=axis)
            tables[clique] = np.ascontiguousarray(table)
        return tables


def _unions(cliques: Collection[Clique], zeros: Collection[Clique]) -> list[Clique]:
    return [z for z in zeros if not any(set(z) <= set(c) for c in cliques)]
