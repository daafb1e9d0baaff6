"""GraphicalFit: from noisy marginals to a graphical model."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.models.empty_codes import WithoutEmpty, non_empty
from margrave.models.entries import ALL, EntryKind
from margrave.models.graphical import logspace
from margrave.models.graphical.coordinates import Coordinates
from margrave.models.graphical.elimination import sizes_with
from margrave.models.graphical.estimation import (
    Operator,
    Solution,
    dot,
    initial_potentials,
    minimize,
)
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.mapped import MappedAnswers
from margrave.models.graphical.model import GraphicalModel
from margrave.models.graphical.propagation import Calibration
from margrave.models.graphical.raking import noisy_columns, raked
from margrave.models.graphical.rebalance import rebalance
from margrave.models.graphical.state import GraphicalState
from margrave.models.progress import ShareProgress, no_progress
from margrave.models.protocol import Answerer, Fit, Model
from margrave.models.scale_weights import weighted_by_scale
from margrave.models.terms import Term, common_groups, compress, single_cells, terms_of
from margrave.transcript import Measurement, Transcript
from margrave.types import Clique, FloatArray


@dataclass(frozen=True, kw_only=True)
class GraphicalFit(Fit):
    """Maximum-entropy estimation from marginals with noise, each weighted by its own 1 / scale².

    minimize over distributions p    Σ_r ||N M_r(p) − y_r||² / (2 scale_r²) − (shrinkage / max_r scale_r) · N · H(p)

    ``shrinkage`` weighs the pull towards independence beyond what was measured: a cell of log-potential 1 is pulled
    by at most so many standard deviations of its noise. ``steps`` repeats the problem with the pull towards the last
    step's solution instead (the proximal point method): few steps take back most of what the pull distorts and little
    of the noise it keeps out, many lead to pure least squares. A warm start is for an estimate between rounds: one
    step, with the pull of all of them, ``shrinkage / steps``. Below 0.1 that problem is too stiff for floating point.

    ``tolerance`` is the certified gap to the optimum at which a step stops, per measured cell: at the optimum the loss
    itself is about a half per cell. Of several steps the last stops at 0.3 times that, the one before it at 3 times,
    others at 30 times; a warm start stops at 3 times, and from readings whose cells have scales of their own after 60
    passes. ``max_calibrations`` bounds the passes over the junction tree in each step.

    ``empty_below`` is a threshold in noise scales: codes with smaller counts may be left out as empty, by the rule of
    ``models.empty_codes.kept_codes``. 0 leaves none out, as in the paper.

    ``weights``: "scale" weighs measurements by 1 / scale, as AIM's paper does; "variance" is the least-squares weight.

    ``rake``: the last estimate is scaled to the noisy counts of columns it contradicts (``models.graphical.raking``).

    **Privacy:** none is spent; the fit sees the transcript only.

    Source: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for differential privacy.
    """

    #: Least weight of the entropy: below it, potentials of cells that tend to zero overflow.
    _shrinkage: ClassVar[float] = 0.1

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.SET, EntryKind.HALF_SPACE}

    shrinkage: float = 1.0
    tolerance: float = 3e-3
    empty_below: float = WithoutEmpty.below
    max_calibrations: int = 1000
    steps: int = 3
    weights: Literal["variance", "scale"] = "variance"
    rake: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        if not (
            self.shrinkage >= self._shrinkage
            and self.tolerance > 0
            and self.empty_below >= 0
            and self.max_calibrations >= 1
            and self.steps >= 1
        ):
            raise InputError(
                "A graphical fit needs shrinkage >= 0.1, tolerance > 0, empty_below >= 0, max_calibrations >= 1,"
                " steps >= 1."
            )

    def init(self, domain: Domain, *, rng: np.random.Generator) -> GraphicalState:
        """Return the state before any answer."""
        return GraphicalState(domain)

    def update(
        self,
        state: GraphicalState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        done: float = 0.0,
    ) -> GraphicalState:
        """Return the next estimate: a quick one from the last round's; a careful one, if there is none."""
        return self._estimate(state, transcript)

    def model(self, state: GraphicalState) -> Answerer:
        """Return the last estimate."""
        assert state.estimate is not None
        return state.estimate

    def finish(
        self,
        state: GraphicalState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> Model:
        """Return the estimate of the whole transcript from the start."""
        found = self._estimate(GraphicalState(state.domain), transcript, last=True).estimate
        assert found is not None
        return found

    def _estimate(
        self, before: GraphicalState, transcript: Transcript, *, last: bool = False
    ) -> GraphicalState:
        domain, total = before.domain, transcript.total()
        small = WithoutEmpty(non_empty(domain, transcript, self.empty_below, all_marginals=last))
        weighted = weighted_by_scale(transcript) if self.weights == "scale" else transcript
        cells, left, known = single_cells(weighted), small.domain(domain), small.evidence(weighted)
        merged = common_groups(left, known.evidence, cells)
        plain = [m for m in known.evidence if m.query.is_partition]
        maps = [m for m in known.measurements if not m.query.is_partition]
        coarse, measured, shares = compress(left, plain, merged) if merged else (left, plain, {})
        groups, shares = small.groups(merged, shares)
        model = self._fit(coarse, before.on(groups), terms_of(coarse, measured, cells), maps, total)
        if last and self.rake:
            noisy = small.evidence(transcript).measurements
            model = raked(model, noisy_columns(left, noisy, merged))
        return GraphicalState(domain, model, groups, shares)

    def _fit(
        self,
        domain: Domain,
        warm: GraphicalModel | None,
        terms: Sequence[Term],
        maps: Sequence[Measurement],
        total: float,
    ) -> GraphicalModel:
        rough = 3.0  # stopping gap of an estimate between rounds, in units of the tolerance
        # Calibrations of an estimate between rounds at most if scales differ between cells. The next one continues
        # from there.
        between = 60
        scales = [float(t.scales[np.isfinite(t.scales)].max()) for t in terms]
        scales += [m.scale / math.sqrt(m.query.one_row().l2_squared) for m in maps]
        widest = max(scales, default=1.0)
        pull = self.shrinkage if warm is None else max(self._shrinkage, self.shrinkage / self.steps)
        problem = Problem(domain, terms, total, pull / widest, maps)
        steps = self.steps if warm is None else 1
        gap = 1.0 if steps == 1 else _gap(steps - 1)
        most = self.max_calibrations
        if warm is not None:
            gap = rough
            if not all(np.ptp(t.scales) == 0.0 for t in terms):
                most = min(most, between)
        point = self._step(problem, problem.start(warm), gap, most).point
        potentials = (
            problem.potentials(point) if steps == 1 else self._towards_least_squares(problem, point)
        )
        return GraphicalModel(domain, total, potentials, problem.program)

    def _step(self, problem: Problem, start: FloatArray, gap: float, most: int) -> Solution:
        gap *= self.tolerance * max(1, problem.measured)
        return minimize(problem.objective, start, gap=gap, max_calibrations=most)

    def _towards_least_squares(
        self, problem: Problem, point: FloatArray
    ) -> dict[Clique, FloatArray]:
        best, best_loss = problem.potentials(point), problem.loss_at(point)
        for left in reversed(range(self.steps - 1)):
            problem.recenter(point)
            if problem.infeasible():
                break
            solution = self._step(problem, np.zeros_like(point), _gap(left), self.max_calibrations)
            point = solution.point
            loss = problem.loss_at(point)
            if loss < best_loss:
                best, best_loss = problem.potentials(point), loss
            if not solution.converged:
                break  # potentials of cells that tend to zero have outgrown floating point
        return best

    def distinguished(
        self, domain: Domain, transcript: Transcript, *, last: bool = False
    ) -> Domain:
        """Return the domain without the codes that are left out as empty."""
        kept = non_empty(domain, transcript, self.empty_below, all_marginals=last)
        return WithoutEmpty(kept).domain(domain)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the possible cells of the junction tree's cliques together."""
        return _tree(domain, _with_zeros(domain, cliques)).cells()

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` with each candidate added in turn."""
        return sizes_with(domain, cliques, candidates)

    def max_forest_cells(self, domain: Domain) -> float:
        """Return the size of as many of the largest pair as a tree has, and of all columns."""
        sizes = sorted(domain.sizes)
        if domain.zeros or not sizes or sizes[0] < 2:
            return math.inf  # greedy elimination may then join columns that no pair joins
        return sum(sizes) + (len(sizes) - 1) * math.prod(sizes[-2:])


def _gap(left: int) -> float:
    # Stopping gaps of the last proximal step, the one before, and all earlier ones, in tolerances.
    # Earlier steps only set the center of the next.
    gaps = (0.3, 3.0, 30.0)
    return gaps[min(left, len(gaps) - 1)]


def _with_zeros(domain: Domain, cliques: Collection[Clique]) -> tuple[Clique, ...]:
    return tuple(dict.fromkeys((*cliques, *(z.clique for z in domain.zeros))))


@functools.lru_cache(maxsize=4)
def _tree(domain: Domain, cliques: tuple[Clique, ...]) -> JunctionTree:
    return JunctionTree.of(domain, cliques)


@functools.lru_cache(maxsize=4)
def _program(domain: Domain, cliques: tuple[Clique, ...]) -> Calibration:
    return Calibration(_tree(domain, cliques), cliques)


class Problem:
    """The dual of the estimation problem, laid out for one junction tree.

    Whitened potentials phi = scale · theta have one entry per cell of each term's answer; cells of structural zeros
    have potential −inf whatever phi says. A point is phi in ``Coordinates``, which leave out what changes nothing.
    """

    def __init__(
        self,
        domain: Domain,
        terms: Sequence[Term],
        total: float,
        entropy: float,
        maps: Sequence[Measurement] = (),
    ) -> None:
        self.domain, self.total, self.entropy = domain, total, entropy
        self.terms = {t.clique: t for t in terms}
        cliques = _with_zeros(domain, [*self.terms, *(m.clique for m in maps)])
        self.cliques = cliques
        self.program = program = _program(domain, cliques)
        self.buffer = program.buffer()
        self.evaluated: FloatArray | None = None  # the point whose marginals are in the buffer
        self.measured = sum(int(np.isfinite(t.scales).sum()) for t in terms)
        self.weight = np.zeros(program.cells)  # 1 / scale, 0 where nothing is measured
        self.base = np.zeros(program.cells)  # 0, or −inf at structural zeros
        self.y = np.zeros(program.cells)
        for term in terms:
            self._place(self.y, term.clique, term.values)
            self._place(self.weight, term.clique, 1.0 / term.scales)
        if domain.zeros:
            self._rule_out()
            self.terms = {
                c: Term(c, self._taken(self.y, c), t.scales) for c, t in self.terms.items()
            }
        self.coordinates = Coordinates(
            domain,
            axes={c: axes for c, (_, axes) in program.places.items()},
            starts={c: where.start for c, (where, _) in program.places.items()},
            scales={t.clique: t.scales for t in terms},
            cells=program.cells,
        )
        self.maps = MappedAnswers(maps, program.cells, self._place, self._taken)
        self.measured += self.maps.size
        self.white = np.concatenate(
            [self.coordinates.from_cells(self.y * self.weight), self.maps.white]
        )
        order = np.argsort(program.starts, kind="stable")
        self.runs = program.starts[order]
        self.run_sizes = program.sizes[order]

    def _rule_out(self) -> None:
        """Exclude cells in which no record can lie by all structural zeros together.

        Measurements there are noise, or rows that violate the declarations. No model explains them,
        and they would only pull potentials apart. The optimum is the same without them.
        """
        for zeros in self.domain.zeros:
            self._place(self.base, zeros.clique, np.where(zeros.possible, 0.0, -np.inf))
        cells, program = self.program.cells, self.program
        self.buffer[:cells] = np.exp(self.base)
        program.calibrate(self.buffer, 1.0)
        reached = self.buffer[program.marginals : program.marginals + cells] > 0.0
        if not reached.any():
            raise ReleaseError(
                "No record can satisfy all structural zeros at once.",
                remedy="Loosen one of the constraints.",
            )
        self.base[~reached] = -np.inf
        self.y[~reached] = 0.0

    def _place(self, vector: FloatArray, clique: Clique, values: FloatArray) -> None:
        where, axes = self.program.places[clique]
        vector[where] = np.transpose(values, [clique.index(a) for a in axes]).ravel()

    def _taken(self, vector: FloatArray, clique: Clique) -> FloatArray:
        where, axes = self.program.places[clique]
        values = vector[where].reshape(self.domain.shape(axes))
        return np.ascontiguousarray(np.transpose(values, [axes.index(a) for a in clique]))

    def start(self, warm: GraphicalModel | None) -> FloatArray:
        """Return the point to begin with: an earlier model's potentials, and a guess for every
        marginal it was not fitted to.

        The guess makes the expected marginal m of the earlier model (without one: of independent columns) explain the
        new measurement as well as one potential on its own can: m · exp(theta) + tau · scale² · theta = y.
        """
        phi = np.zeros(self.program.cells)
        known = self._known({} if warm is None else warm.potentials)
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
            elif (
                len(clique) <= 2
            ):  # guesses for larger cliques would count what they share several times
                expected = self.total * functools.reduce(
                    np.multiply.outer, [columns[a] for a in clique]
                )
            else:
                continue
            term = self.terms[clique]
            theta = initial_potentials(expected, term, self.entropy)
            self._place(phi, clique, _whitened(theta, term))
            if len(clique) == 1:
                fitted = expected * np.exp(theta)
                columns[clique[0]] = fitted / fitted.sum()
        return np.concatenate([self.coordinates.from_cells(phi), np.zeros(self.maps.size)])

    def _known(self, potentials: Mapping[Clique, FloatArray]) -> dict[Clique, FloatArray]:
        return {
            c: t if np.isfinite(t).all() else np.nan_to_num(t, neginf=0.0)
            for c, t in potentials.items()
            if c in self.terms
        }

    def objective(self, point: FloatArray) -> tuple[float, FloatArray, Operator]:
        """Return F(phi) = N · A(theta) − <phi, y / scale> + entropy / 2 ||phi||², its gradient, an
        approximate inverse Hessian.
        """
        cells, program, coordinates = self.program.cells, self.program, self.coordinates
        self.evaluated = point
        if not cells:
            return 0.0, point, np.copy
        log_partition = self._calibrate(self._theta(point))
        if log_partition == -np.inf:  # every cell underflowed, or nearly: much too far a step
            return np.inf, point, np.copy
        mu = self.buffer[program.marginals : program.marginals + cells]
        if not np.isfinite(mu.sum()):  # a mass so small that dividing by it overflowed: as far
            return np.inf, point, np.copy
        gradient = self._answers(mu) - self.white + self.entropy * point
        value = self.total * log_partition - dot(point, self.white)
        variance = 1.0 / (np.maximum(mu, self.y) * self.weight**2 + self.entropy)
        of_maps = 1.0 / (self.maps.variances(mu) + self.entropy)
        own = coordinates.size

        def inverse(vector: FloatArray) -> FloatArray:
            cells = coordinates.from_cells(coordinates.to_cells(vector[:own]) * variance)
            return np.concatenate([cells, vector[own:] * of_maps])

        return value + self.entropy / 2 * dot(point, point), gradient, inverse

    def _theta(self, point: FloatArray) -> FloatArray:
        own = self.coordinates.size
        theta = self.coordinates.to_cells(point[:own]) * self.weight + self.base
        return theta + self.maps.to_cells(point[own:]) if self.maps.size else theta

    def _answers(self, mu: FloatArray) -> FloatArray:
        cells = self.coordinates.from_cells(mu * self.weight)
        return np.concatenate([cells, self.maps.from_cells(mu)])

    def _calibrate(self, theta: FloatArray) -> float:
        """Fill the buffer with the marginals; return log Σ exp(Σ theta), or −inf on underflow."""
        min_mass = 1e-280  # the least by which a total can be divided without overflow
        cells, program = self.program.cells, self.program
        if self.domain.zeros and program.tree.table_cells() <= logspace.MAX_CELLS:
            potentials = {c: self._taken(theta, c) for c in self.cliques}
            if logspace.needs_log_space(potentials.values()):
                log_partition, tables = logspace.log_calibrate(program.tree, potentials)
                marginals = np.empty(cells)
                for c in self.cliques:
                    shares = logspace.marginal_of(program.tree, tables, c)
                    self._place(marginals, c, self.total * shares)
                self.buffer[program.marginals : program.marginals + cells] = marginals
                return log_partition
        largest = np.maximum.reduceat(theta, self.runs)
        np.exp(theta - np.repeat(largest, self.run_sizes), out=self.buffer[:cells])
        log_mass, mass = program.calibrate(self.buffer, self.total)
        return log_mass + float(largest.sum()) if mass >= min_mass else -np.inf

    def recenter(self, point: FloatArray) -> None:
        """Make a point the center of the pull: from here on it is phi = 0."""
        self.evaluated = None
        for clique, theta in rebalance(self.potentials(point)).items():
            self._place(self.base, clique, theta)

    def infeasible(self) -> bool:
        """Return True if some factor leaves nothing possible."""
        return bool(self.runs.size and np.isneginf(np.maximum.reduceat(self.base, self.runs)).any())

    def loss_at(self, point: FloatArray) -> float:
        """Return Σ ||mu − y||² / (2 scale²) at a point."""
        if point is not self.evaluated:
            self.objective(point)
        mu = self.buffer[self.program.marginals : self.program.marginals + self.program.cells]
        off = np.concatenate(
            [(mu - self.y) * self.weight, self.maps.from_cells(mu) - self.maps.white]
        )
        return float((off**2).sum()) / 2

    def potentials(self, point: FloatArray) -> dict[Clique, FloatArray]:
        """Return theta per clique, axes in the clique's order."""
        theta = self._theta(point)
        return {c: self._taken(theta, c) for c in self.cliques}


def _whitened(theta: FloatArray, term: Term) -> FloatArray:
    return np.multiply(theta, term.scales, out=np.zeros_like(theta), where=np.isfinite(term.scales))
