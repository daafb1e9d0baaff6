"""Calibration: every factor's marginal, from one walk up the junction tree and one down.

Lauritzen and Spiegelhalter (1988), in the form that divides a separator's belief by the message it sent.
Cost: two visits to every cell of every clique (one for the root), a few nanoseconds each; memory: the factors and the
separators, twice or so, never a clique's table.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.kernels import WHOLE, turn_message, walk
from margrave.types import Clique, FloatArray, IntArray

#: Innermost axes are merged until a line has ``LINE`` cells, unless the first has a quarter of them. The next are
#: merged until a tile has ``MIN_TILE`` cells; more than ``MAX_TILE`` would leave the fastest memory.
LINE, MIN_TILE, MAX_TILE = 32, 128, 4096

#: Cells from which a walk is worth splitting over threads.
MIN_SPLIT_CELLS = 150_000


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_workers(), thread_name_prefix="margrave")


if hasattr(
    os, "register_at_fork"
):  # a fork has the pool without its threads: it would wait for ever
    os.register_at_fork(after_in_child=_threads.cache_clear)


@cache
def _workers() -> int:
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, mine)


def axis_order(tree: JunctionTree) -> Clique:
    """Return one order of all attributes for every walk of a tree, outermost first.

    Small before large, since the innermost axis is the vector loop. It is the same in every node, so an array that
    varies along a node's innermost axis has it as its own last axis: runs of cells lie side by side in memory. With
    structural zeros, the attributes they are about may come first, so that impossible combinations are skipped with all
    that is under them; it is done where a rough count of steps says that it pays.
    """
    plain = sorted(tree.domain, key=tree.domain.size)  # ties: the domain's order
    fixed = {a for z in tree.domain.zeros for a in z.clique}
    if not fixed:
        return tuple(plain)
    first = [a for a in plain if a in fixed] + [a for a in plain if a not in fixed]
    return min((tuple(plain), tuple(first)), key=lambda order: _steps(tree, order))


#: Cost of a step along an outer axis, in cells of the innermost one.
STEP = 10.0


def _steps(tree: JunctionTree, order: Clique) -> float:
    domain, total = tree.domain, 0.0
    for clique in tree.cliques:
        axes = [a for a in order if a in clique]
        for i, axis in enumerate(axes):
            entered = domain.possible(domain.clique(axes[:i]))
            total += entered * domain.size(axis) * (STEP if i < len(axes) - 1 else 1.0)
    return total


def walk_order(tree: JunctionTree, node: int, order: Clique) -> Clique:
    """Return a node's axes from the outermost to the innermost."""
    return tuple(a for a in order if a in tree.cliques[node])


@dataclass(frozen=True, eq=False)
class Slot:
    """Where an array lies in the buffer: its offset and its axes, outermost first (C order)."""

    offset: int
    axes: Clique


class Calibration:
    """The layout and schedule of calibration for one tree and one list of factors.

    The buffer holds, one after the other: the factors, all messages down, all messages up, all separators' beliefs, and
    each factor's marginal. ``factor_axes[i]`` is the order of axes in which factor i and its marginal are stored.
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Clique]) -> None:
        self.tree = tree
        self.factors = tuple(factors)
        domain = tree.domain
        self.order = axis_order(tree)
        orders = [walk_order(tree, i, self.order) for i in range(len(tree.cliques))]
        homes = [tree.node_of(f) for f in self.factors]
        assert None not in homes, "every factor lies in a node of its tree"
        self.homes = tuple(h for h in homes if h is not None)
        self.factor_axes = tuple(
            tuple(a for a in orders[h] if a in f)
            for f, h in zip(self.factors, self.homes, strict=True)
        )
        sizes = [domain.cells(f) for f in self.factors]
        # a node's factors lie side by side, so that its marginals are one run
        placed = sorted(range(len(sizes)), key=lambda i: self.homes[i])
        starts = np.zeros(len(sizes), dtype=np.int64)
        starts[placed] = np.concatenate([[0], np.cumsum([sizes[i] for i in placed])])[:-1]
        self.sizes = np.array(sizes, dtype=np.int64)
        self.starts: IntArray = starts
        self.cells = int(sum(sizes))
        self.places = {
            f: (slice(start, start + size), axes)
            for f, start, size, axes in zip(
                self.factors, starts.tolist(), sizes, self.factor_axes, strict=True
            )
        }
        separators = [domain.cells(s) for s in tree.separators]
        ends = self.cells + np.cumsum([0, *separators * 3])
        down, up, belief = ends[:-1].astype(np.int64).reshape(3, -1)
        self.separators: IntArray = np.stack([up, down, belief], axis=1)
        self.added_to = int(up[0])  # where the runs begin that walks add to
        self.messages = [
            (*starts, size)
            for starts, size in zip(self.separators.tolist(), separators, strict=True)
        ]
        self.marginals = int(ends[-1])
        self.length = self.marginals + self.cells
        self._schedule(orders)
        self._readings: dict[int, tuple[tuple[Clique, ...], Reading]] = {}  # the last of each node
        self.room = self.length + max(
            (s.split.spare for s in self.walks if s.cells >= MIN_SPLIT_CELLS),
            default=0,
        )

    def buffer(self) -> FloatArray:
        """Return a buffer for calibration, zero."""
        return np.zeros(self.room)

    def _factor_slots(self, node: int, base: int) -> list[Slot]:
        return [
            Slot(base + int(self.starts[i]), self.factor_axes[i])
            for i, h in enumerate(self.homes)
            if h == node
        ]

    def _separator_slot(self, node: int, which: int, orders: list[Clique]) -> Slot:
        axes = tuple(a for a in orders[node] if a in self.tree.separators[node])
        return Slot(int(self.separators[node, which]), axes)

    def _schedule(self, orders: list[Clique]) -> None:
        n = len(self.tree.cliques)
        children: list[list[int]] = [[] for _ in range(n)]
        for i, p in enumerate(self.tree.parent):
            if p >= 0:
                children[p].append(i)
        self.known: list[list[Slot]] = []
        walks: list[tuple[int, bool, list[Slot], list[Slot]]] = []
        upward = [
            [*self._factor_slots(i, 0), *(self._separator_slot(c, 0, orders) for c in children[i])]
            for i in range(n)
        ]
        for i in range(n - 1, 0, -1):
            walks.append((i, True, upward[i], [self._separator_slot(i, 0, orders)]))
        for i in range(n):
            known = upward[i] if i == 0 else [*upward[i], self._separator_slot(i, 1, orders)]
            self.known.append(known)
            wanted = [
                *self._factor_slots(i, self.marginals),
                *(self._separator_slot(c, 2, orders) for c in children[i]),
            ]
            walks.append((i, False, known, wanted))
        self.walks = [describe(self.tree, orders[w[0]], w[2], w[3]) for w in walks]
        self.steps = [w[:2] for w in walks]
        root = [
            (
                self.marginals + int(self.starts[i]),
                self.marginals + int(self.starts[i] + self.sizes[i]),
            )
            for i, h in enumerate(self.homes)
            if h == 0
        ]
        self.scaled = [
            *(slice(*ends) for ends in root),
            *(slice(self.messages[c][2], sum(self.messages[c][2:])) for c in children[0]),
        ]

    def calibrate(self, buffer: FloatArray, total: float) -> tuple[float, float]:
        """Fill the messages, beliefs and marginals for the factors in the buffer.

        Marginals sum to ``total``. Returns log Σ Π factors and the mass seen at the root (whose own cells are not
        scaled to the total). If every cell is zero, so are the marginals, and the results are −inf and 0.
        """
        buffer[self.added_to : self.length] = 0.0
        scales, log_scale, mass = [0.0] * len(self.tree.cliques), 0.0, 0.0
        for (node, up), shape in zip(self.steps, self.walks, strict=True):
            if not up and node > 0:
                turn_message(buffer, False, *self.messages[node], scales[node])
            walked = split_walk(shape, buffer, self.length)
            if up:
                scales[node] = largest = turn_message(buffer, True, *self.messages[node], 0.0)
                log_scale += math.log(largest) if largest > 0.0 else 0.0
            elif node == 0:
                mass = walked
                # a step that is far too long leaves a mass so small that this overflows; its objective refuses it
                with np.errstate(over="ignore", invalid="ignore"):
                    for run in self.scaled:
                        buffer[run] *= total / mass if mass > 0.0 else 0.0
        return (log_scale + math.log(mass), mass) if mass > 0.0 else (-np.inf, 0.0)

    def node_marginals(
        self, node: int, cliques: Sequence[Clique], buffer: FloatArray, total: float, mass: float
    ) -> list[FloatArray]:
        """Return marginals of one node, several in one walk, from a calibrated buffer: axes in each
        clique's own order.
        """
        shape, inputs, outputs, room = self._reading(node, tuple(cliques))
        own = np.zeros(room + (shape.split.spare if shape.cells >= MIN_SPLIT_CELLS else 0))
        for to, start in inputs:
            own[to] = buffer[start : start + to.stop - to.start]
        split_walk(shape, own, room)
        scale = total / mass if node == 0 else 1.0
        return [
            np.ascontiguousarray(own[where].reshape(sizes).transpose(axes)) * scale
            for where, sizes, axes in outputs
        ]

    def _reading(self, node: int, cliques: tuple[Clique, ...]) -> Reading:
        """Return the walk that sums marginals of a node, the same for every model of this tree."""
        if (known := self._readings.get(node)) is not None and known[0] == cliques:
            return known[1]
        domain, order = self.tree.domain, walk_order(self.tree, node, self.order)
        place, inputs, copied = 0, [], []
        for slot in self.known[node]:
            size = domain.cells(slot.axes)
            inputs.append(Slot(place, slot.axes))
            copied.append((slice(place, place + size), slot.offset))
            place += size
        outputs, taken = [], []
        for clique in cliques:
            axes = tuple(a for a in order if a in clique)
            size = domain.cells(axes)
            outputs.append(Slot(place, axes))
            where = slice(place, place + size)
            taken.append((where, domain.shape(axes), [axes.index(a) for a in clique]))
            place += size
        made = describe(self.tree, order, inputs, outputs), copied, taken, place
        self._readings[node] = cliques, made
        return made


#: A walk that sums marginals, what it copies from where, and the slice, shape and axes of each marginal; cells in all.
Reading = tuple[
    "Contraction",
    list[tuple[slice, int]],
    list[tuple[slice, tuple[int, ...], list[int]]],
    int,
]


@dataclass(frozen=True, eq=False)
class Contraction:
    """The descriptor of one walk: its outer axes, then factors (``n_in`` of them) and outputs as offsets, strides,
    lines and places.

    ``spans`` is how far each output reaches in the buffer, ``cells`` how many cells no structural zero rules out,
    ``ways`` arguments for walks.
    """

    dims: IntArray
    offsets: IntArray
    strides: IntArray
    lines: IntArray
    places: IntArray
    n_in: int
    spans: IntArray
    cells: int
    ways: list[tuple[Any, ...]] = field(default_factory=list, init=False)

    @cached_property
    def path(self) -> tuple[Any, ...]:
        """The arguments of ``walk`` that describe its way; rows are sorted by the axis at which they enter."""
        outer, height, length = len(self.dims), self.lines.shape[1], self.places.shape[1]
        moves = np.column_stack([(self.strides != 0) & (self.dims > 1), self.lines.any(axis=1)])
        level = np.where(moves, np.arange(1, outer + 2), 0).max(axis=1)
        rows = np.argsort(level, kind="stable")
        first = np.searchsorted(level[rows], np.arange(outer + 2))
        steps = np.where((self.places == np.arange(length)).all(axis=1), 1, -1)
        whole = (steps == 1) & (self.lines == length * np.arange(height)).all(axis=1)
        steps[whole & (level > outer)] = WHOLE
        steps[~self.places.any(axis=1)] = 0
        far = (steps[self.n_in :] != 0) & (level[self.n_in :] <= outer)
        strides = np.vstack([np.where(self.dims > 1, self.strides, 0), self.dims])
        strides = np.insert(strides, 0, [*[0] * len(rows), 1], axis=1)
        plan = np.concatenate([rows, first])
        return strides, steps, self.lines, self.places, plan, self.n_in, bool(far.any())

    @cached_property
    def split(self) -> Split:
        """The parts of this walk that threads take."""
        axis = _split_axis(self.dims, self.cells, self.strides[self.n_in :], self.spans, _workers())
        order = [axis, *(i for i in range(len(self.dims)) if i != axis)]
        dims, strides = self.dims[order], np.ascontiguousarray(self.strides[:, order])
        turned = replace(self, dims=dims, strides=strides)
        parts = min(_workers(), int(dims[0]))
        shared = np.flatnonzero(strides[self.n_in :, 0] == 0)
        cuts = np.linspace(0, dims[0], parts + 1).astype(int).tolist()
        return Split(turned, cuts, shared, int(self.spans[shared].sum()))

    def way(self) -> tuple[Any, ...]:
        """Return the last arguments of ``walk`` for one thread: the path, and fresh memory."""
        depth, height, length = len(self.dims), self.lines.shape[1], self.places.shape[1]
        at = np.zeros((depth + 2, len(self.offsets) + 2), dtype=np.int64)
        at[0, :-2] = self.offsets
        vectors, behind = np.ones((depth + 2, length + 1)), np.zeros((depth + 2, length + 1))
        tile, numbers = np.empty((height, length)), np.empty(height)
        return *self.path, vectors, behind, tile, numbers, np.empty(height, dtype=np.int64), at


@dataclass(frozen=True, eq=False)
class Split:
    """A walk in parts: ranges of its outermost axis, between ``cuts``.

    ``shared`` are the outputs that all parts add to, with ``private`` cells together. Each part has cells of its own
    in the others.
    """

    walk: Contraction
    cuts: list[int]
    shared: IntArray
    private: int

    @property
    def spare(self) -> int:
        """The cells behind a buffer that all parts but the first add the shared outputs in."""
        return self.private * (len(self.cuts) - 2)


def describe(
    tree: JunctionTree, order: Clique, inputs: Sequence[Slot], outputs: Sequence[Slot]
) -> Contraction:
    """Return a walk over a node's axes in the given order; without an axis beyond the tile's it gets one of size 1."""
    domain = tree.domain
    dims = np.array([domain.size(a) for a in order], dtype=np.int64)
    strides = np.zeros((len(inputs) + len(outputs), len(dims)), dtype=np.int64)
    for row, slot in enumerate((*inputs, *outputs)):
        step = 1
        for attribute in reversed(slot.axes):
            strides[row, order.index(attribute)] = step
            step *= domain.size(attribute)
    offsets = np.array([s.offset for s in (*inputs, *outputs)], dtype=np.int64)
    spans = 1 + (strides[len(inputs) :] * (dims - 1)).sum(axis=1)
    alone = domain.zeros or 4 * dims[-1] >= LINE
    line = len(dims) - (1 if alone else _merged(dims, LINE, MAX_TILE))
    length = math.prod(dims[line:].tolist())
    outer = line - _merged(dims[:line], -(-MIN_TILE // length), MAX_TILE // length)
    lines = _taken_for_one(dims[outer:line], strides[:, outer:line])
    places = _taken_for_one(dims[line:], strides[:, line:])
    dims, strides = dims[:outer], np.ascontiguousarray(strides[:, :outer])
    if outer == 0:
        dims, strides = np.ones(1, dtype=np.int64), np.zeros((len(lines), 1), dtype=np.int64)
    cells = domain.possible(domain.clique(order))
    return Contraction(dims, offsets, strides, lines, places, len(inputs), spans, cells)


def _merged(dims: IntArray, enough: int, most: int) -> int:
    """Return how many last axes to merge: the fewest with ``enough`` cells, or as many as ``most`` cells admit."""
    taken, length = 0, 1
    while taken < len(dims) and length < enough and length * int(dims[-1 - taken]) <= most:
        length *= int(dims[-1 - taken])
        taken += 1
    return taken


def _taken_for_one(dims: IntArray, strides: IntArray) -> IntArray:
    """Return where each row's cells lie along several axes."""
    inner = np.indices(tuple(dims)).reshape(len(dims), math.prod(dims.tolist()))
    return np.ascontiguousarray(strides @ inner)


def split_walk(shape: Contraction, buffer: FloatArray, spare: int) -> float:
    """Return one walk, a large one over several threads: each takes a range of one axis.

    Outputs that vary along this axis are added to in place, since no two parts have a cell of theirs in common. So are
    the others by the first part. The other parts have these in the buffer from ``spare`` on (``Split.spare`` cells).

    The sums of the parts are added in a fixed order, so the result does not depend on which thread was first.
    """
    offsets, n_in = shape.offsets, shape.n_in
    if shape.cells < MIN_SPLIT_CELLS or len(shape.split.cuts) == 2:
        return _walk(shape, offsets, buffer, 0, int(shape.dims[0]))
    split = shape.split
    shared, spans = split.shared + n_in, shape.spans[split.shared]
    jobs, starts = [], spare + np.concatenate([[0], np.cumsum(spans)[:-1]]).astype(np.int64)
    buffer[spare : spare + split.spare] = 0.0
    for part, ends in enumerate(pairwise(split.cuts)):
        shifted = offsets.copy()
        if part:
            shifted[shared] = starts[: len(shared)] + split.private * (part - 1)
        jobs.append(_threads().submit(_walk, split.walk, shifted, buffer, *ends))
    mass = sum(job.result() for job in jobs)
    for part in range(len(jobs) - 1):
        for to, start, span in zip(offsets[shared], starts, spans, strict=False):
            own = start + split.private * part
            buffer[to : to + span] += buffer[own : own + span]
    return mass


def _walk(shape: Contraction, offsets: IntArray, buffer: FloatArray, low: int, high: int) -> float:
    try:
        way = shape.ways.pop()
    except IndexError:  # every thread takes its own
        way = shape.way()
    if offsets is not shape.offsets:
        way[-1][0, :-2] = offsets
    walked: float = walk(buffer, low, high, *way)
    shape.ways.append(way)
    return walked


def _split_axis(dims: IntArray, cells: int, strides: IntArray, spans: IntArray, parts: int) -> int:
    """Return the outermost axis along which a split costs little more than along any other.

    The cost is the longest part, and what parts other than the first have for themselves: outputs that do not vary
    along the axis.
    """
    # Cost of such a cell, which is cleared and added to its place; and of an axis further in, at least.
    private, worth = 2.0, 1.1
    parts_of = np.minimum(parts, dims)
    longest = -(-dims // parts_of) / dims * cells
    costs = longest + private * (spans @ (strides == 0)) * (parts_of - 1)
    return int(np.argmax(costs <= worth * costs.min()))
