"""Weights of all cells of a domain, in one array: what is done to them touches only the cells that it is about."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margrave.errors import ModelTooLargeError
from margrave.marginal import LinearQuery
from margrave.models.completing import Given, drawn_within
from margrave.models.weights import kernels
from margrave.schema.domain import Codes, Domain
from margrave.typing import AnyArray, Attribute, Clique, FloatArray, IntArray

BATCH = 1 << 24
"""Weights that are copied at a time to complete records."""


class Places(Protocol):
    """Where weights lie: the cells of a domain, or records. ``weights`` is flat; their sum may be any number."""

    weights: FloatArray

    @property
    def domain(self) -> Domain:
        """The attributes."""
        ...

    @property
    def told(self) -> dict[str, AnyArray]:
        """What says which places these are, beside the domain."""
        ...

    def copy(self) -> Places:
        """The same places with weights of their own."""
        ...

    def rule_out(self) -> None:
        """Take the weight from places that structural zeros declare impossible."""
        ...

    def selected_by(self, queries: Sequence[LinearQuery]) -> Selected:
        """The places that each of the queries counts."""
        ...

    def marginals(self, cliques: Iterable[Clique], limit: int | None = None) -> dict[Clique, FloatArray]:
        """The sums of the weights in the cells of each clique, axes in the clique's order."""
        ...

    def spread(self, clique: Clique, factors: FloatArray) -> None:
        """Multiply the weights in every cell of a clique by the cell's factor."""
        ...

    def codes(self, places: AnyArray) -> Codes:
        """The records that lie in these places."""
        ...

    def like(self, given: Given, rng: np.random.Generator) -> IntArray:
        """For each row a place that has its known codes, drawn by the weights; −1 where none has any weight."""
        ...


class Selected(Protocol):
    """The places that each of some queries counts, and what is asked of and done to them."""

    def sums(self) -> FloatArray:
        """The sum of the weights that each query counts."""
        ...

    def overlaps(self, number: int) -> FloatArray:
        """The sum of the weights that each query counts together with one of them."""
        ...

    def scale(self, number: int, factor: float) -> None:
        """Multiply the weights that one query counts."""
        ...

    def weigh(
        self, answers: FloatArray, tolerances: FloatArray, step: float, mass: float
    ) -> tuple[float, bool]:
        """Multiply, query after query, what it counts by ``exp(step · (answer − share))`` where that is off.

        Shares are of ``mass``, the sum of all weights; what it is then, and whether any query was off by more than its
        tolerance.
        """
        ...


class Grid:
    """One weight for every cell of the domain, the last attribute changing fastest."""

    def __init__(self, domain: Domain, weights: FloatArray) -> None:
        self.domain = domain
        self.weights = weights

    @staticmethod
    def uniform(domain: Domain) -> Grid:
        """The same weight everywhere but in cells that cannot occur."""
        cells = domain.cells()
        grid = Grid(domain, np.full(cells, 1.0 / cells))
        grid.rule_out()
        return grid

    def rule_out(self) -> None:
        """Take the weight from cells that structural zeros declare impossible."""
        for zeros in self.domain.zeros:
            clique = self.domain.clique(zeros.clique)
            order = [zeros.clique.index(a) for a in clique]
            self.spread(clique, np.ascontiguousarray(zeros.possible.transpose(order), dtype=np.float64))

    @property
    def told(self) -> dict[str, AnyArray]:
        """Nothing: the domain names its cells."""
        return {}

    def copy(self) -> Grid:
        """The same cells with weights of their own."""
        return Grid(self.domain, self.weights.copy())

    def selected_by(self, queries: Sequence[LinearQuery]) -> Boxes:
        """The boxes of some queries."""
        return Boxes.of(self, queries)

    def marginals(self, cliques: Iterable[Clique], limit: int | None = None) -> dict[Clique, FloatArray]:
        """Sums down a tree: a table of fewer attributes is made once for all cliques that lie in it.

        The tables in between hold at most as many cells as the grid, together, and the work is a few passes over it
        for a hundred cliques as for one.
        """
        wanted = list(dict.fromkeys(cliques))
        needed = sum(map(self.domain.cells, wanted)) + (self.weights.size if len(wanted) else 0)
        if limit is not None and needed > limit:
            raise ModelTooLargeError(
                f"Answering these marginals takes tables of {needed:,} cells.",
                remedy="Ask for fewer at once, or count them in sampled records.",
            )
        found: dict[Clique, FloatArray] = {}
        _sum_down(self.domain, self.weights, self.domain.attributes, frozenset(), set(wanted), found)
        return {c: found[c] for c in wanted}

    def spread(self, clique: Clique, factors: FloatArray) -> None:
        """Multiply the weights in every cell of a clique by the cell's factor."""
        counts: list[int] = []
        steps: list[int] = []
        step = factors.size
        for attribute in self.domain:
            size, inside = self.domain.size(attribute), attribute in clique
            step //= size if inside else 1
            if counts and not inside and steps[-1] == 0:
                counts[-1] *= size
            else:
                counts.append(size)
                steps.append(step if inside else 0)
        counts, steps = [1, *counts], [0, *steps]
        flat = np.ascontiguousarray(factors, dtype=np.float64).reshape(-1)
        kernels.spread_factors(self.weights, flat, np.array(counts), np.array(steps))

    def codes(self, places: AnyArray) -> Codes:
        """The records that lie in these cells."""
        found = np.unravel_index(places.astype(np.int64), self.domain.sizes)
        return Codes.of(self.domain, dict(zip(self.domain, found, strict=True)))

    def like(self, given: Given, rng: np.random.Generator) -> IntArray:
        """For each row a cell that has its known codes; the weights of those cells are copied, a batch at a time."""
        known, lacking = given.codes.domain.attributes, given.lacking
        shape, cells = self.domain.shape(lacking), self.domain.cells(lacking)
        whole = self.weights.reshape(self.domain.sizes)
        whole = whole.transpose([self.domain.index(a) for a in (*known, *lacking)])
        found = np.empty(len(given.which), dtype=np.int64)
        batch = max(1, BATCH // cells)
        for start in range(0, len(given), batch):
            codes = given.codes.take(np.arange(start, min(start + batch, len(given))))
            mine = np.flatnonzero((given.which >= start) & (given.which < start + batch))
            weights = whole[tuple(codes.column(a) for a in known)].reshape(-1)
            starts = np.arange(len(codes)) * cells
            drawn = drawn_within(weights, starts, starts + cells, given.which[mine] - start, rng)
            at = dict(zip(lacking, np.unravel_index(np.maximum(drawn, 0) % cells, shape), strict=True))
            at |= {a: given.codes.column(a)[given.which[mine]] for a in known}
            places = np.ravel_multi_index([at[a].astype(np.int64) for a in self.domain], self.domain.sizes)
            found[mine] = np.where(drawn < 0, -1, places)
        return found


@dataclass(frozen=True, eq=False)
class Boxes:
    """The cells that each of some queries counts: for every code of every attribute whether it is inside."""

    grid: Grid
    inside: NDArray[np.bool_]
    named: NDArray[np.bool_]
    sizes: IntArray
    starts: IntArray

    @staticmethod
    def of(grid: Grid, queries: Sequence[LinearQuery]) -> Boxes:
        """Queries of the grid's domain."""
        domain = grid.domain
        sizes = np.array(domain.sizes, dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        inside = np.ones((len(queries), int(sizes.sum())), dtype=np.bool_)
        named = np.zeros((len(queries), len(domain)), dtype=np.bool_)
        for j, query in enumerate(queries):
            for attribute, codes in zip(query.clique, query.codes, strict=True):
                a = domain.index(attribute)
                named[j, a] = True
                inside[j, starts[a] : starts[a] + sizes[a]] = False
                inside[j, starts[a] + np.array(codes)] = True
        return Boxes(grid, inside, named, sizes, starts)

    def sums(self) -> FloatArray:
        """The sum of each box."""
        return self.overlaps(-1)

    def overlaps(self, number: int) -> FloatArray:
        """The sum of what each box has in common with one of them."""
        weights = self.grid.weights
        found: FloatArray = kernels.box_sums(weights, self.inside, self.named, self.sizes, self.starts, number)
        return found

    def scale(self, number: int, factor: float) -> None:
        """Multiply the cells of one box."""
        kernels.scale_box(self.grid.weights, self.inside, self.named, self.sizes, self.starts, number, factor)

    def weigh(
        self, answers: FloatArray, tolerances: FloatArray, step: float, mass: float
    ) -> tuple[float, bool]:
        """Multiplicative updates, box after box."""
        mass, moved = kernels.weigh_boxes(
            self.grid.weights, self.inside, self.named, self.sizes, self.starts, answers, tolerances, step, mass
        )
        return float(mass), bool(moved)


def _sum_down(
    domain: Domain,
    table: FloatArray,
    attributes: tuple[Attribute, ...],
    kept: frozenset[Attribute],
    wanted: Collection[Clique],
    found: dict[Clique, FloatArray],
) -> None:
    """Fill in the wanted cliques from a flat table of these attributes; all of them have the ``kept`` ones.

    The largest attribute that some clique lacks is summed out for those that lack it; the others keep it, and go on
    with the same table.
    """
    left = set(wanted)
    if attributes in left:
        left.remove(attributes)
        found[attributes] = table.reshape(domain.shape(attributes)).copy()
    if not left:
        return
    lacked = [a for a in attributes if a not in kept and any(a not in c for c in left)]
    split = max(lacked, key=lambda a: (all(a not in c for c in left), domain.size(a)))
    without = {c for c in left if split not in c}
    rest = tuple(a for a in attributes if a != split)
    _sum_down(domain, _summed(domain, table, attributes, split), rest, kept, without, found)
    _sum_down(domain, table, attributes, kept | {split}, left - without, found)


def _summed(
    domain: Domain, table: FloatArray, attributes: tuple[Attribute, ...], out: Attribute
) -> FloatArray:
    """The table without one of its attributes."""
    at = attributes.index(out)
    outer, inner = (math.prod(map(domain.size, part)) for part in (attributes[:at], attributes[at + 1 :]))
    summed = np.empty((outer, inner))
    kernels.sum_out(table.reshape(outer, domain.size(out), inner), summed)
    return summed.reshape(-1)
