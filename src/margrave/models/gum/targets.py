"""The counts that records are moved towards, and the columns that need no moving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margrave.domain import Domain
from margrave.models.best_response.blocks import Block, Blocks
from margrave.models.terms import Term
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CountTarget:
    """The counts of one marginal, with one axis per block of columns.

    Attributes:
        columns: The columns of each axis.
        places: The position of the block that holds them.
        parts: For each block the number of the axis's cell, by the block's choice. Every cell has a
            choice, so every cell of the marginal is possible.
        counts: The counts.
    """

    columns: tuple[Clique, ...]
    places: tuple[int, ...]
    parts: tuple[IntArray, ...]
    counts: FloatArray

    @staticmethod
    def of(domain: Domain, blocks: Blocks, term: Term) -> CountTarget:
        """Return the target of consistent counts."""
        held = [(t, b, _inside(b, term.clique)) for t, b in enumerate(blocks.sites)]
        held = [(t, b, columns) for t, b, columns in held if columns]
        order = [term.clique.index(a) for _, _, columns in held for a in columns]
        counts = term.values.transpose(order)
        counts = counts.reshape([domain.cells(columns) for _, _, columns in held])
        parts = []
        for axis, (_, block, columns) in enumerate(held):
            codes = block.choices[:, [block.clique.index(a) for a in columns]]
            flat = np.ravel_multi_index(tuple(codes.T), domain.shape(columns))
            cells, part = np.unique(flat, return_inverse=True)
            counts = np.take(counts, cells, axis=axis)
            parts.append(part.reshape(-1))
        return CountTarget(
            tuple(columns for _, _, columns in held),
            tuple(t for t, _, _ in held),
            tuple(parts),
            np.ascontiguousarray(counts),
        )

    @property
    def clique(self) -> frozenset[Attribute]:
        """All its columns."""
        return frozenset(a for columns in self.columns for a in columns)

    def without(self, place: int) -> CountTarget:
        """Return the target summed over a block."""
        axis = self.places.index(place)
        return CountTarget(
            self.columns[:axis] + self.columns[axis + 1 :],
            self.places[:axis] + self.places[axis + 1 :],
            self.parts[:axis] + self.parts[axis + 1 :],
            self.counts.sum(axis=axis),
        )

    def onto(self, place: int) -> CountTarget:
        """Return the target summed over all blocks but one."""
        axis = self.places.index(place)
        rest = tuple(i for i in range(len(self.places)) if i != axis)
        one = slice(axis, axis + 1)
        return CountTarget(
            self.columns[one], self.places[one], self.parts[one], self.counts.sum(axis=rest)
        )

    def cells(self, rows: AnyArray) -> IntArray:
        """Return the cell of each record, from its choice of every block."""
        flat = np.zeros(len(rows), dtype=np.int64)
        for place, part, size in zip(self.places, self.parts, self.counts.shape, strict=True):
            flat = flat * size + part[rows[:, place]]
        return flat

    def by_others(self, place: int) -> tuple[FloatArray, IntArray]:
        """Return the counts of a block's parts, one row for each cell of the others, and the parts."""
        axis = self.places.index(place)
        table = np.moveaxis(self.counts, axis, -1)
        return table.reshape(-1, table.shape[-1]), self.parts[axis]


def _inside(block: Block, clique: Clique) -> Clique:
    return tuple(a for a in block.clique if a in clique)


def possible_cells(domain: Domain, blocks: Blocks, clique: Clique) -> AnyArray:
    """Return which cells of a clique are possible, as an array of 0 and 1 with its axes."""
    mask = np.ones((), dtype=np.float64)
    names: list[Attribute] = []
    for block in blocks.sites:
        mine = _inside(block, clique)
        if mine:
            own = np.zeros(domain.shape(mine))
            own[tuple(block.choices[:, block.clique.index(a)] for a in mine)] = 1.0
            mask = np.multiply.outer(mask, own)
            names += mine
    return mask.transpose([names.index(a) for a in clique])


def likely_choices(domain: Domain, blocks: Blocks, terms: Sequence[Term]) -> list[FloatArray]:
    """Return a weight for each choice of each block: the product of its columns' shares."""
    columns: dict[Attribute, FloatArray] = {}
    for term in terms:
        for i, a in enumerate(term.clique):
            if a not in columns:
                counts = term.values.sum(axis=tuple(j for j in range(term.values.ndim) if j != i))
                columns[a] = counts / counts.max()
    weights = []
    for block in blocks.sites:
        likely = np.ones(len(block.choices))
        for i, a in enumerate(block.clique):
            # a choice that no count speaks for stays possible
            likely *= np.maximum(columns.get(a, np.ones(domain.size(a))), 1e-9)[block.choices[:, i]]
        weights.append(likely)
    return weights


@dataclass(frozen=True, eq=False)
class WorkOrder:
    """The targets that need moving, and the blocks that are appended after it.

    Attributes:
        groups: Targets, grouped so that two groups share no block.
        appended: Blocks that one target alone holds once those before them are gone, and that
            target. Each is drawn given the target's other blocks, the last one first.
    """

    groups: tuple[tuple[CountTarget, ...], ...]
    appended: tuple[tuple[int, CountTarget], ...]

    @staticmethod
    def of(targets: Sequence[CountTarget]) -> WorkOrder:
        """Return the order for some targets. A tree of pairs needs no moving."""
        left, appended = _widest(targets), []
        while (leaf := _leaf(left)) is not None:
            place, own = leaf
            appended.append(leaf)
            left = _widest([own.without(place) if t is own else t for t in left])
        return WorkOrder(_grouped(left), tuple(appended))


def _widest(targets: Sequence[CountTarget]) -> list[CountTarget]:
    kept: list[CountTarget] = []
    for t in sorted(targets, key=lambda t: -len(t.clique)):
        if t.clique and not any(t.clique <= other.clique for other in kept):
            kept.append(t)
    return kept


def _leaf(targets: Sequence[CountTarget]) -> tuple[int, CountTarget] | None:
    holding: dict[int, list[CountTarget]] = {}
    for t in targets:
        for place in t.places:
            holding.setdefault(place, []).append(t)
    return next(((place, own[0]) for place, own in holding.items() if len(own) == 1), None)


def _grouped(targets: Sequence[CountTarget]) -> tuple[tuple[CountTarget, ...], ...]:
    groups: list[list[CountTarget]] = []
    for t in targets:
        near = [g for g in groups if any(not set(t.places).isdisjoint(o.places) for o in g)]
        groups = [g for g in groups if g not in near]
        groups.append([*(o for g in near for o in g), t])
    return tuple(map(tuple, groups))
