"""Weights of all cells of a domain, in one array: what is done to them touches only the cells that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Codes, Domain
from margrave.errors import ModelTooLargeError
from margrave.marginal import LinearQuery
from margrave.marginal.lattice import marginals_of
from margrave.models.conditional import Given, drawn_within
from margrave.models.weights import kernels
from margrave.types import AnyArray, Clique, FloatArray, IntArray

#: Weights copied at a time to complete records.
CELLS_PER_BATCH = 1 << 24


class Support(Protocol):
    """Where weights lie: the cells of a domain, or records. ``weights`` is flat; their sum may be any number."""

    weights: FloatArray

    @property
    def domain(self) -> Domain:
        """The attributes."""
        ...

    @property
    def kind(self) -> str:
        """The kind of a model on these places, in release files."""
        ...

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """The arrays that define the places, beside the domain."""
        ...

    def copy(self) -> Support:
        """Return the same places with weights of their own."""
        ...

    def apply_zeros(self) -> None:
        """Take the weight from places that structural zeros declare impossible."""
        ...

    def selected_by(self, queries: Sequence[LinearQuery]) -> QuerySet:
        """Return the places that each of the queries counts."""
        ...

    def marginals(
        self, cliques: Iterable[Clique], limit: int | None = None
    ) -> dict[Clique, FloatArray]:
        """Return the sums of the weights in the cells of each clique, axes in the clique's order."""
        ...

    def rescale(self, clique: Clique, factors: FloatArray) -> None:
        """Multiply the weights in every cell of a clique by the cell's factor."""
        ...

    def codes(self, places: AnyArray) -> Codes:
        """Return the records that lie in these places."""
        ...

    def match(self, groups: Given, rng: np.random.Generator) -> IntArray:
        """Return for each row a place with its known codes, drawn by the weights; −1 if none has
        weight.
        """
        ...


class QuerySet(Protocol):
    """The places that each of some queries counts, and what is asked of and done to them."""

    def sums(self) -> FloatArray:
        """Return the sum of the weights that each query counts."""
        ...

    def overlaps(self, number: int) -> FloatArray:
        """Return the sum of the weights that each query counts together with one of them."""
        ...

    def scale(self, number: int, factor: float) -> None:
        """Multiply the weights that one query counts."""
        ...

    def multiplicative_pass(
        self, answers: FloatArray, tolerances: FloatArray, step: float, mass: float
    ) -> tuple[float, bool]:
        """Multiply, query after query, what it counts by ``exp(step · (answer − share))`` where that is off.

        Shares are of ``mass``, the sum of all weights; what it is then, and whether any query was off by more than its
        tolerance.
        """
        ...


class GridSupport:
    """One weight for every cell of the domain, the last attribute changing fastest."""

    kind = "histogram"

    def __init__(self, domain: Domain, weights: FloatArray) -> None:
        self.domain = domain
        self.weights = weights

    @staticmethod
    def uniform(domain: Domain) -> GridSupport:
        """Return the same weight everywhere but in cells that cannot occur."""
        cells = domain.cells()
        grid = GridSupport(domain, np.full(cells, 1.0 / cells))
        grid.apply_zeros()
        return grid

    def apply_zeros(self) -> None:
        """Take the weight from cells that structural zeros declare impossible."""
        for zeros in self.domain.zeros:
            clique = self.domain.clique(zeros.clique)
            order = [zeros.clique.index(a) for a in clique]
            self.rescale(
                clique, np.ascontiguousarray(zeros.possible.transpose(order), dtype=np.float64)
            )

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """Nothing: the domain names its cells."""
        return {}

    def copy(self) -> GridSupport:
        """Return the same cells with weights of their own."""
        return GridSupport(self.domain, self.weights.copy())

    def selected_by(self, queries: Sequence[LinearQuery]) -> BoxSet:
        """Return the boxes of some queries."""
        return BoxSet.of(self, queries)

    def marginals(
        self, cliques: Iterable[Clique], limit: int | None = None
    ) -> dict[Clique, FloatArray]:
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
        table = self.weights.reshape(self.domain.sizes)
        return marginals_of({self.domain.attributes: table}, wanted)

    def rescale(self, clique: Clique, factors: FloatArray) -> None:
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
        """Return the records that lie in these cells."""
        found = np.unravel_index(places.astype(np.int64), self.domain.sizes)
        return Codes.of(self.domain, dict(zip(self.domain, found, strict=True)))

    def match(self, groups: Given, rng: np.random.Generator) -> IntArray:
        """Return for each row a cell with its known codes; the weights of those cells are copied in
        batches.
        """
        known, lacking = groups.codes.domain.attributes, groups.lacking
        shape, cells = self.domain.shape(lacking), self.domain.cells(lacking)
        whole = self.weights.reshape(self.domain.sizes)
        whole = whole.transpose([self.domain.index(a) for a in (*known, *lacking)])
        found = np.empty(len(groups.which), dtype=np.int64)
        batch = max(1, CELLS_PER_BATCH // cells)
        for start in range(0, len(groups), batch):
            codes = groups.codes.take(np.arange(start, min(start + batch, len(groups))))
            mine = np.flatnonzero((groups.which >= start) & (groups.which < start + batch))
            weights = whole[tuple(codes.column(a) for a in known)].reshape(-1)
            starts = np.arange(len(codes)) * cells
            drawn = drawn_within(weights, starts, starts + cells, groups.which[mine] - start, rng)
            at = dict(
                zip(lacking, np.unravel_index(np.maximum(drawn, 0) % cells, shape), strict=True)
            )
            at |= {a: groups.codes.column(a)[groups.which[mine]] for a in known}
            places = np.ravel_multi_index(
                [at[a].astype(np.int64) for a in self.domain], self.domain.sizes
            )
            found[mine] = np.where(drawn < 0, -1, places)
        return found


@dataclass(frozen=True, eq=False)
class BoxSet:
    """The cells that each of some queries counts: for every code of every attribute whether it is inside."""

    grid: GridSupport
    inside: NDArray[np.bool_]
    named: NDArray[np.bool_]
    sizes: IntArray
    starts: IntArray

    @staticmethod
    def of(grid: GridSupport, queries: Sequence[LinearQuery]) -> BoxSet:
        """Return queries of the grid's domain."""
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
        return BoxSet(grid, inside, named, sizes, starts)

    def sums(self) -> FloatArray:
        """Return the sum of each box."""
        return self.overlaps(-1)

    def overlaps(self, number: int) -> FloatArray:
        """Return the sum of what each box has in common with one of them."""
        weights = self.grid.weights
        found: FloatArray = kernels.box_sums(
            weights, self.inside, self.named, self.sizes, self.starts, number
        )
        return found

    def scale(self, number: int, factor: float) -> None:
        """Multiply the cells of one box."""
        kernels.scale_box(
            self.grid.weights, self.inside, self.named, self.sizes, self.starts, number, factor
        )

    def multiplicative_pass(
        self, answers: FloatArray, tolerances: FloatArray, step: float, mass: float
    ) -> tuple[float, bool]:
        """Update multiplicatively, box after box."""
        mass, moved = kernels.weigh_boxes(
            self.grid.weights,
            self.inside,
            self.named,
            self.sizes,
            self.starts,
            answers,
            tolerances,
            step,
            mass,
        )
        return float(mass), bool(moved)
