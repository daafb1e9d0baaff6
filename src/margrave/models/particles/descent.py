"""Particle gradient descent: mini-batches of marginals, each seen along a few fresh random lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from margrave.errors import InputError
from margrave.marginal.counting import THREADS
from margrave.models.particles import kernels
from margrave.models.particles.penalties import Prepared
from margrave.models.particles.targets import Target
from margrave.types import AnyArray, FloatArray, IntArray

Optimizer = Literal["transport", "adam"]


@dataclass(frozen=True)
class Schedule:
    """The schedule of a descent: ``epochs``, each of which uses every marginal once, ``batch`` at a
    time.

    ``lines``: fresh random lines for each marginal. ``kept``: share of the particles that a step
    moves. ``rate``: the first step size, multiplied by ``decay`` 20 times, after equal numbers of
    epochs.
    """

    optimizer: str
    epochs: int
    batch: int
    lines: int | None
    kept: float
    rate: float
    decay: float

    def __post_init__(self) -> None:
        if self.optimizer not in get_args(Optimizer):
            raise InputError(
                f"Particles cannot be moved by {self.optimizer!r}.",
                remedy='Move them by "transport" or "adam".',
            )
        if min(self.epochs, self.batch, 1 if self.lines is None else self.lines) < 1:
            raise InputError("Particles need at least 1 epoch, marginal and line each.")
        if not (0.0 < self.kept <= 1.0 and 0.0 < self.decay <= 1.0 and 0.0 < self.rate < np.inf):
            raise InputError(
                "Particles need a rate above 0, and kept and decay above 0 and not above 1."
            )

    @property
    def adaptive(self) -> bool:
        """True for Adam."""
        return self.optimizer == "adam"

    def rate_at(self, epoch: int) -> float:
        """Return the rate in an epoch."""
        # Number of times that the rate falls in a descent: every 50 of 1000 epochs, as in the
        # paper.
        decays = 20
        return float(self.rate * self.decay ** (epoch * decays // self.epochs))


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of one step, one row each: their coordinates, directions and points.

    ``slots`` are the coordinates' positions among the step's. ``atoms`` are the offsets of the
    target's points and shares, and their number. Unused coordinates of a line have direction 0.
    """

    coordinates: IntArray
    slots: IntArray
    dims: IntArray
    directions: FloatArray
    factors: AnyArray
    atoms: IntArray


class Descent:
    """Particles on their way to targets: ``particles`` has a row for each coordinate, and is moved in place.

    minimize Σ_S weight_S · SW2²(particles_S, target_S) + Σ_R weight_R · R(particles)

    A step takes a batch of marginals S and sees each along fresh lines. It moves the coordinates of its marginals and
    penalties, of the particles that it has kept:

    - "transport": by gradients of (weight_S / 2) · Σ_line W2², on lines at right angles to each other (the mean over
      several such frames): at rate 1 the whole way to where the marginal is the target's on each of the lines;
    - "adam": by gradients of weight_S · (the mean over independent lines of W2²), through Adam, whose moments of other
      entries stay as they are ("sparse Adam").

    The result is the same for any number of threads.

    Source: Donhauser, Abad, Hulkund, Yang (2024), Algorithm 3 and Section 4.1 ("adam"); Pitié, Kokaram, Dahyot (2007),
    Automated color grading using color distribution transfer, for the moves of "transport".
    """

    def __init__(
        self,
        particles: AnyArray,
        targets: Sequence[Target],
        penalties: Sequence[Prepared],
        schedule: Schedule,
    ) -> None:
        self.particles, self.targets, self.penalties = particles, list(targets), list(penalties)
        self.schedule = schedule
        self.moments, self.squares = (
            np.zeros_like(particles if schedule.adaptive else particles[:0]) for _ in "12"
        )
        self.steps = 0
        self.points = np.concatenate([np.empty(0), *(t.points.reshape(-1) for t in self.targets)])
        self.shares = np.concatenate([np.empty(0), *(t.shares for t in self.targets)])
        sizes = [(t.points.size, t.shares.size) for t in self.targets]
        self.starts = np.cumsum([(0, 0), *sizes], axis=0)
        self.rows: dict[tuple[int, ...], IntArray] = {}
        self.penalized = np.unique(
            np.concatenate([np.empty(0, np.int64), *(p.coordinates for p in self.penalties)])
        )

    def run(self, rng: np.random.Generator) -> None:
        """Run all epochs."""
        with ThreadPoolExecutor(THREADS) as pool:
            for epoch in range(self.schedule.epochs):
                rate = self.schedule.rate_at(epoch)
                for batch in self._batches(rng):
                    self._step(batch, rate, rng, pool)

    def _batches(self, rng: np.random.Generator) -> Iterator[list[int]]:
        order, size = rng.permutation(len(self.targets)).tolist(), self.schedule.batch
        yield from (order[i : i + size] for i in range(0, len(order), size))
        if not order and self.penalties:
            yield []

    def _step(
        self, batch: list[int], rate: float, rng: np.random.Generator, pool: ThreadPoolExecutor
    ) -> None:
        blocks = self._blocks(rng)
        rows = self._rows(tuple(batch))
        gradients = np.zeros((len(rows), len(blocks) * kernels.BLOCK), dtype=np.float32)
        if batch:
            self._pull(self._lines(batch, rows, rng), blocks, gradients, pool)
        for penalty in self.penalties:
            self._push(penalty, blocks, rows, gradients)
        self.steps += 1
        moved = (blocks, rows, gradients, np.float32(rate))
        if self.schedule.adaptive:
            fades = (np.float32(1.0 - 0.9**self.steps), np.float32(1.0 - 0.999**self.steps))
            given = (self.particles, self.moments, self.squares, *moved, fades)
            self._split(pool, kernels.adam, len(blocks), len(rows), *given)
        else:
            self._split(pool, kernels.step, len(blocks), len(rows), self.particles, *moved)

    def _rows(self, batch: tuple[int, ...]) -> IntArray:
        if batch not in self.rows:
            found = np.unique(
                np.concatenate([self.penalized, *(self.targets[s].coordinates for s in batch)])
            )
            if len(batch) > 1:
                return found
            self.rows[batch] = found
        return self.rows[batch]

    def _blocks(self, rng: np.random.Generator) -> IntArray:
        count = -(-self.particles.shape[1] // kernels.BLOCK)
        return np.sort(rng.permutation(count)[: max(1, round(self.schedule.kept * count))])

    def _lines(self, batch: list[int], rows: IntArray, rng: np.random.Generator) -> Lines:
        targets = [self.targets[s] for s in batch]
        widest = max(len(t.coordinates) for t in targets)
        found: list[tuple[Target, int, FloatArray, float]] = []
        for s, target in zip(batch, targets, strict=True):
            directions, factor = self._directions(len(target.coordinates), rng)
            found += [(target, s, direction, target.weight * factor) for direction in directions]
        coordinates = np.zeros((len(found), widest), dtype=np.int64)
        directions = np.zeros((len(found), widest))
        for t, (target, _, direction, _) in enumerate(found):
            coordinates[t, : len(direction)] = target.coordinates
            coordinates[t, len(direction) :] = target.coordinates[0]
            directions[t, : len(direction)] = direction
        return Lines(
            coordinates, np.searchsorted(rows, coordinates), np.array([len(d) for _, _, d, _ in found]), directions,
            np.array([factor for *_, factor in found], dtype=np.float32),
            np.array([(*self.starts[s], len(target.shares)) for target, s, _, _ in found]),
        )  # fmt: skip

    def _directions(self, dims: int, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """Return unit vectors, and the weight of the squared distance along each in the loss."""
        # Orthogonal lines along which a marginal is moved in one step, at most.
        most_axes = 64
        lines = self.schedule.lines
        if self.schedule.adaptive:
            count = 1 if dims == 1 else lines or 10
            found = rng.standard_normal((count, dims))
            return found / np.linalg.norm(found, axis=1)[:, None], 1.0 / count
        axes = min(dims, most_axes)
        frames = 1 if dims == 1 or lines is None else -(-lines // axes)
        turned = np.linalg.qr(rng.standard_normal((frames, dims, axes)))[0]
        return np.swapaxes(turned, 1, 2).reshape(-1, dims), 0.5 / frames

    def _pull(
        self, lines: Lines, blocks: IntArray, gradients: AnyArray, pool: ThreadPoolExecutor
    ) -> None:
        """Add the gradient of the loss, times the number of particles."""
        count, buckets = len(lines.dims), kernels.BUCKETS
        edges, below = np.empty((count, 2)), np.empty((count, buckets + 1), dtype=np.int32)
        masses = np.empty((count, buckets), dtype=np.float32)
        plan = (edges, below, np.empty_like(below), masses, np.empty_like(masses))
        along = (lines.coordinates, lines.dims, lines.directions)
        atoms = (self.points, self.shares, lines.atoms)
        self._split(
            pool,
            kernels.transport,
            count,
            self.particles.shape[1],
            self.particles,
            *along,
            *atoms,
            plan,
        )
        given = (self.particles, blocks, *along, lines.factors, lines.slots, plan, gradients)
        self._split(pool, kernels.pull, len(blocks), count * kernels.BLOCK, *given)

    def _push(
        self, penalty: Prepared, blocks: IntArray, rows: IntArray, gradients: AnyArray
    ) -> None:
        """Add a penalty's gradient, times the number of particles."""
        # Largest step of a coordinate by one penalty in "transport", at rate 1: steep penalties
        # would overshoot.
        max_step = 0.1
        count = self.particles.shape[1]
        _, slopes = penalty(self.particles[penalty.coordinates].astype(np.float64))
        kept = (blocks[:, None] * kernels.BLOCK + np.arange(kernels.BLOCK)).reshape(-1)
        inside = np.flatnonzero(kept < count)
        at = np.searchsorted(rows, penalty.coordinates)
        push = penalty.weight * count * slopes[:, kept[inside]]
        if not self.schedule.adaptive:
            push = np.clip(push, -max_step, max_step)
        gradients[np.ix_(at, inside)] += push.astype(np.float32)

    def _split(
        self, pool: ThreadPoolExecutor, kernel: Any, count: int, each: int, *arguments: Any
    ) -> None:
        """Run a kernel on numbers 0 … count − 1, in threads where there is enough to do."""
        # Particles times lines up to which a second thread does not pay.
        min_threaded_work = 200_000
        parts = THREADS if count * each > min_threaded_work else 1
        ends = [count * i // parts for i in range(parts + 1)]
        if parts == 1:
            kernel(0, count, *arguments)
            return
        for done in [pool.submit(kernel, ends[i], ends[i + 1], *arguments) for i in range(parts)]:
            done.result()
