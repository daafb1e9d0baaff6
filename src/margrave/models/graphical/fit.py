"""GraphicalFit: from noisy marginals to a graphical model."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.models.entries import EntryKind
from margrave.models.expanded import ExpandedModel
from margrave.models.graphical.balance import balanced
from margrave.models.graphical.coordinates import Coordinates
from margrave.models.graphical.elimination import cells_with
from margrave.models.graphical.estimation import Operator, Solution, dot, minimise
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.logspace import MAX_CELLS, log_calibrate, marginal_of, wide
from margrave.models.graphical.model import GraphicalModel
from margrave.models.graphical.propagation import Program
from margrave.models.protocol import Model
from margrave.models.terms import Term, common_groups, compress, single_cells, terms_of
from margrave.parameters import check_parameters
from margrave.schema.domain import Domain
from margrave.transcript import Transcript
from margrave.typing import Clique, FloatArray

SHRINKAGE = 0.1
"""The least pull: with less, potentials of cells that tend to zero outgrow floating point."""

GAPS = (0.3, 3.0, 30.0)
"""Where the last of several steps stops, the one before it, and all earlier ones, in units of the tolerance.

Those before the last only say where the pull of the next is centred, and a rough centre does as well as an exact one:
a quarter of all calibrations is saved, and losses and errors stay what they were.
"""

ROUGH = 3.0
"""Where an estimate between rounds stops, in units of the tolerance, when scales differ from cell to cell.

Such problems are stiff: the last digits take most of the steps, and choices made by either estimate do as well. At 10
units JAM's errors were larger by a few percent.
"""

BETWEEN = 60
"""After so many calibrations such an estimate stops wherever it is: most take a tenth to a half of that, some hundreds,
where what was measured contradicts what was read. The next one goes on from there, and the last starts from nothing.
"""


@dataclass(frozen=True, kw_only=True)
class GraphicalFit:
    """Maximum-entropy estimation from marginals with noise, each weighted by its own 1 / scale².

    minimise over distributions p    Σ_r ||N M_r(p) − y_r||² / (2 scale_r²) − (shrinkage / max_r scale_r) · N · H(p)

    ``shrinkage`` weighs the pull towards independence beyond what was measured: a cell of log-potential 1 is pulled
    by at most so many standard deviations of its noise. ``steps`` repeats the problem with the pull towards the last
    step's solution instead (the proximal point method): few steps take back most of what the pull distorts and little
    of the noise it keeps out, many lead to pure least squares. A warm start is for an estimate between rounds: one
    step, with the pull of all of them, ``shrinkage / steps``. Below 0.1 that problem is too stiff for floating point.

    ``tolerance`` is the certified gap to the optimum at which a step stops, per measured cell: at the optimum the loss
    itself is about a half per cell. Of several steps the last stops at 0.3 times that, the one before it at 3 times,
    others at 30 times; a warm start from readings whose cells have scales of their own stops at 3 times, or after 60
    passes. ``max_calibrations`` bounds the passes over the junction tree in each step.

    **Privacy:** none is spent; the fit sees the transcript only.

    Source: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for differential privacy.
    """

    entries: ClassVar[frozenset[EntryKind]] = frozenset({EntryKind.MERGED, EntryKind.CELL, EntryKind.READING})

    shrinkage: float = 1.0
    tolerance: float = 3e-3
    max_calibrations: int = 1000
    steps: int = 3

    def __post_init__(self) -> None:
        check_parameters(self)
        if not (
            self.shrinkage >= SHRINKAGE and self.tolerance > 0 and self.max_calibrations >= 1 and self.steps >= 1
        ):
            raise InputError(
                "A graphical fit needs shrinkage >= 0.1, tolerance > 0, max_calibrations >= 1, steps >= 1."
            )

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> Model:
        """The model; codes that every measurement of several columns merges share their group's probability."""
        total, cells = transcript.total(), single_cells(transcript)
        groups = common_groups(domain, transcript.evidence, cells)
        if not groups:
            return self._fit(domain, terms_of(domain, transcript.evidence, cells), total, warm)
        coarse, measurements, shares = compress(domain, transcript.evidence, groups)
        model = self._fit(coarse, terms_of(coarse, measurements, cells), total, None)
        return ExpandedModel(domain, model, groups, shares)

    def _fit(self, domain: Domain, terms: Sequence[Term], total: float, warm: Model | None) -> GraphicalModel:
        widest = max((float(t.scales[np.isfinite(t.scales)].max()) for t in terms), default=1.0)
        pull = self.shrinkage if warm is None else max(SHRINKAGE, self.shrinkage / self.steps)
        problem = Problem(domain, terms, total, pull / widest)
        steps = self.steps if warm is None else 1
        gap = 1.0 if steps == 1 else _gap(steps - 1)
        most = self.max_calibrations
        if warm is not None and not all(np.ptp(t.scales) == 0.0 for t in terms):
            gap = ROUGH
            most = min(most, BETWEEN)
        point = self._step(problem, problem.start(warm), gap, most).point
        potentials = problem.potentials(point) if steps == 1 else self._towards_least_squares(problem, point)
        return GraphicalModel(domain, total, potentials, problem.program)

    def _step(self, problem: Problem, start: FloatArray, gap: float, most: int) -> Solution:
        """One minimisation, up to a gap in units of the tolerance or so many calibrations."""
        gap *= self.tolerance * max(1, problem.measured)
        return minimise(problem.objective, start, gap=gap, max_calibrations=most)

    def _towards_least_squares(self, problem: Problem, point: FloatArray) -> dict[Clique, FloatArray]:
        """The proximal steps after the first; the potentials with the least loss of all."""
        best, best_loss = problem.potentials(point), problem.loss_at(point)
        for left in reversed(range(self.steps - 1)):
            problem.recentre(point)
            if problem.hopeless():
                break
            solution = self._step(problem, np.zeros_like(point), _gap(left), self.max_calibrations)
            point = solution.point
            loss = problem.loss_at(point)
            if loss < best_loss:
                best, best_loss = problem.potentials(point), loss
            if not solution.converged:
                break  # potentials of cells that tend to zero have outgrown floating point
        return best

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The possible cells of the junction tree's cliques together (8 bytes each in the literature's measure)."""
        return _tree(domain, _with_zeros(domain, cliques)).cells()

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """``cells`` with each candidate added in turn."""
        return cells_with(domain, cliques, candidates)


def _gap(left: int) -> float:
    """Where a step stops that so many others follow."""
    return GAPS[min(left, len(GAPS) - 1)]


def _with_zeros(domain: Domain, cliques: Collection[Clique]) -> tuple[Clique, ...]:
    return tuple(dict.fromkeys((*cliques, *(z.clique for z in domain.zeros))))


@functools.lru_cache(maxsize=4)
def _tree(domain: Domain, cliques: tuple[Clique, ...]) -> JunctionTree:
    """A junction tree. The last ones are kept: rounds ask for the size of what was fitted, and fit the same again."""
    return JunctionTree.of(domain, cliques)


@functools.lru_cache(maxsize=4)
def _program(domain: Domain, cliques: tuple[Clique, ...]) -> Program:
    """How factors on these cliques are calibrated."""
    return Program(_tree(domain, cliques), cliques)


TINY = 1e-280
"""The least mass by which a total can be divided without overflow."""


class Problem:
    """The dual of the estimation problem, laid out for one junction tree.

    Whitened potentials phi = scale · theta have one entry per cell of each term's answer; cells of structural zeros
    have potential −inf whatever phi says. A point is phi in ``Coordinates``, which leave out what changes nothing.
    """

    def __init__(self, domain: Domain, terms: Sequence[Term], total: float, entropy: float) -> None:
        self.domain, self.total, self.entropy = domain, total, entropy
        self.terms = {t.clique: t for t in terms}
        cliques = _with_zeros(domain, self.terms)
        self.cliques = cliques
        self.program = program = _program(domain, cliques)
        self.buffer = program.buffer()
        self.measured = sum(int(np.isfinite(t.scales).sum()) for t in terms)
        self.weight = np.zeros(program.cells)  # 1 / scale, 0 where nothing is measured
        self.base = np.zeros(program.cells)  # 0, or −inf at structural zeros
        self.y = np.zeros(program.cells)
        for term in terms:
            self._place(self.y, term.clique, term.values)
            self._place(self.weight, term.clique, 1.0 / term.scales)
        if domain.zeros:
            self._rule_out()
            self.terms = {c: Term(c, self._taken(self.y, c), t.scales) for c, t in self.terms.items()}
        self.coordinates = Coordinates(
            domain,
            axes=dict(zip(cliques, program.factor_axes, strict=True)),
            starts={c: int(start) for c, start in zip(cliques, program.starts, strict=True)},
            scales={t.clique: t.scales for t in terms},
            cells=program.cells,
        )
        self.white = self.coordinates.from_cells(self.y * self.weight)
        order = np.argsort(program.starts, kind="stable")
        self.runs = program.starts[order]
        self.run_sizes = program.sizes[order]

    def _rule_out(self) -> None:
        """Give no cell of any factor a say in which, by all structural zeros together, no record can lie.

        What was measured there is noise, or rows that the declarations deny: no model explains it, and left in place
        it would only pull potentials apart. The optimum is the same without.
        """
        for zeros in self.domain.zeros:
            self._place(self.base, zeros.clique, np.where(zeros.possible, 0.0, -np.inf))
        cells, program = self.program.cells, self.program
        self.buffer[:cells] = np.exp(self.base)
        program.calibrate(self.buffer, 1.0)
        reached = self.buffer[program.marginals : program.marginals + cells] > 0.0
        if not reached.any():
            raise ReleaseError(
                "No record can satisfy all structural zeros at once.", remedy="Loosen one of the constraints."
            )
        self.base[~reached] = -np.inf
        self.y[~reached] = 0.0

    def _slice(self, clique: Clique) -> tuple[slice, Clique]:
        i = self.cliques.index(clique)
        start = int(self.program.starts[i])
        return slice(start, start + int(self.program.sizes[i])), self.program.factor_axes[i]

    def _place(self, vector: FloatArray, clique: Clique, values: FloatArray) -> None:
        where, axes = self._slice(clique)
        vector[where] = np.transpose(values, [clique.index(a) for a in axes]).ravel()

    def _taken(self, vector: FloatArray, clique: Clique) -> FloatArray:
        where, axes = self._slice(clique)
        values = vector[where].reshape(self.domain.shape(axes))
        return np.ascontiguousarray(np.transpose(values, [axes.index(a) for a in clique]))

    def start(self, warm: Model | None) -> FloatArray:
        """The point to begin with: an earlier model's potentials, and a guess for every marginal it was not fitted to.

        The guess makes the expected marginal m of the earlier model (without one: of independent columns) explain the
        new measurement as well as one potential on its own can: m · exp(theta) + tau · scale² · theta = y.
        """
        phi = np.zeros(self.program.cells)
        known = self._potentials_of(warm)
        for clique, theta in known.items():
            self._place(phi, clique, _whitened(theta, self.terms[clique]))
        new = sorted((c for c in self.terms if c not in known), key=len)
        columns = {a: np.full(self.domain.size(a), 1.0 / self.domain.size(a)) for a in self.domain}
        for clique in new:
            if warm is not None:
                try:
                    expected = np.asarray(warm.project(clique).values)
                except ModelTooLargeError:
                    continue  # a start without a guess: a fit must not fail once its answers are paid for
            elif len(clique) <= 2:  # guesses for larger cliques would count what they share several times
                expected = self.total * functools.reduce(np.multiply.outer, [columns[a] for a in clique])
            else:
                continue
            term = self.terms[clique]
            theta = _explain(expected, term, self.entropy)
            self._place(phi, clique, _whitened(theta, term))
            if len(clique) == 1:
                fitted = expected * np.exp(theta)
                columns[clique[0]] = fitted / fitted.sum()
        return self.coordinates.from_cells(phi)

    def _potentials_of(self, warm: Model | None) -> dict[Clique, FloatArray]:
        """The potentials of an earlier graphical model for cliques that are still measured."""
        if warm is None:
            return {}
        state = warm.state()
        if state.kind != "graphical":
            return {}
        cliques = (tuple(names) for names in state.facts["cliques"])
        found = {c: state.arrays[f"potential{i}"] for i, c in enumerate(cliques)}
        found = {c: theta for c, theta in found.items() if c in self.terms}
        return {c: t if np.isfinite(t).all() else np.nan_to_num(t, neginf=0.0) for c, t in found.items()}

    def objective(self, point: FloatArray) -> tuple[float, FloatArray, Operator]:
        """F(phi) = N · A(theta) − <phi, y / scale> + entropy / 2 ||phi||², its gradient, a rough inverse Hessian."""
        cells, program, coordinates = self.program.cells, self.program, self.coordinates
        if not cells:
            return 0.0, point, np.copy
        theta = coordinates.to_cells(point) * self.weight + self.base
        log_partition = self._calibrate(theta)
        if log_partition == -np.inf:  # every cell underflowed, or nearly: much too far a step
            return np.inf, point, np.copy
        mu = self.buffer[program.marginals : program.marginals + cells]
        if not np.isfinite(mu.sum()):  # a mass so small that dividing by it overflowed: as far
            return np.inf, point, np.copy
        gradient = coordinates.from_cells(mu * self.weight) - self.white + self.entropy * point
        value = self.total * log_partition - dot(point, self.white)
        variance = 1.0 / (np.maximum(mu, self.y) * self.weight**2 + self.entropy)

        def inverse(vector: FloatArray) -> FloatArray:
            return coordinates.from_cells(coordinates.to_cells(vector) * variance)

        return value + self.entropy / 2 * dot(point, point), gradient, inverse

    def _calibrate(self, theta: FloatArray) -> float:
        """Fill the buffer with the marginals; log Σ exp(Σ theta), or −inf where floats cannot tell."""
        cells, program = self.program.cells, self.program
        if self.domain.zeros and program.tree.table_cells() <= MAX_CELLS:
            potentials = {c: self._taken(theta, c) for c in self.cliques}
            if wide(potentials.values()):
                log_partition, tables = log_calibrate(program.tree, potentials)
                marginals = np.empty(cells)
                for c in self.cliques:
                    self._place(marginals, c, self.total * marginal_of(program.tree, tables, c))
                self.buffer[program.marginals : program.marginals + cells] = marginals
                return log_partition
        largest = np.maximum.reduceat(theta, self.runs)
        np.exp(theta - np.repeat(largest, self.run_sizes), out=self.buffer[:cells])
        log_mass, mass = program.calibrate(self.buffer, self.total)
        return log_mass + float(largest.sum()) if mass >= TINY else -np.inf

    def recentre(self, point: FloatArray) -> None:
        """Make a point the centre of the pull: from here on it is phi = 0."""
        for clique, theta in balanced(self.potentials(point)).items():
            self._place(self.base, clique, theta)

    def hopeless(self) -> bool:
        """Whether some factor leaves nothing possible."""
        return bool(self.runs.size and np.isneginf(np.maximum.reduceat(self.base, self.runs)).any())

    def loss_at(self, point: FloatArray) -> float:
        """Σ ||mu − y||² / (2 scale²) at a point."""
        self.objective(point)
        mu = self.buffer[self.program.marginals : self.program.marginals + self.program.cells]
        return float((((mu - self.y) * self.weight) ** 2).sum()) / 2

    def potentials(self, point: FloatArray) -> dict[Clique, FloatArray]:
        """theta per clique, axes in the clique's order."""
        theta = self.coordinates.to_cells(point) * self.weight + self.base
        return {c: self._taken(theta, c) for c in self.cliques}


def _whitened(theta: FloatArray, term: Term) -> FloatArray:
    """scale · theta, and 0 for a cell of which nothing is known."""
    return np.multiply(theta, term.scales, out=np.zeros_like(theta), where=np.isfinite(term.scales))


def _explain(expected: FloatArray, term: Term, entropy: float) -> FloatArray:
    """theta with expected · exp(theta) + entropy · scale² · theta = y, cell by cell, by Newton's method.

    The left side is increasing and convex, so steps from the right of the solution never overshoot it. A cell of which
    nothing is known keeps theta = 0.
    """
    known = np.isfinite(term.scales)
    stiffness = np.where(known, entropy * term.scales**2, 1.0)
    expected = np.maximum(expected, 1e-9)  # without it, the start would be left of the solution
    theta = np.log(np.maximum(term.values, expected) / expected)
    for _ in range(30):
        moved = expected * np.exp(theta)
        step = (moved + stiffness * theta - term.values) / (moved + stiffness)
        theta -= step
        if np.abs(step).max(initial=0.0) < 1e-9:
            break  # what is left is less than the square of it
    return np.where(known, theta, 0.0)
