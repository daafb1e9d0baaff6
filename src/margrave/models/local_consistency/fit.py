"""LocalConsistencyFit: from noisy marginals to marginals that agree with each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.models.cost import Cost, FitLoad
from margrave.models.entries import EntryKind, check_kinds
from margrave.models.graphical.estimation import Operator, dot, initial_potentials, minimize
from margrave.models.local_consistency.model import PseudoMarginals
from margrave.models.local_consistency.regions import RegionGraph, intersections, regions_of
from margrave.models.protocol import SimpleFit
from margrave.models.terms import Term, single_cells, terms_of
from margrave.structural_zeros import joined
from margrave.transcript import Transcript
from margrave.types import Clique, FloatArray


@dataclass(frozen=True, kw_only=True)
class LocalConsistencyFit(SimpleFit):
    """AP-PGM: the graphical model's estimation with marginals that are only locally consistent.

    minimize over tau    Σ_r ||N tau_r − y_r||² / (2 scale_r²) − (shrinkage / max_r scale_r) · N · Σ_r H(tau_r)

    A region is a measured marginal or an intersection of some. Pseudo-marginals tau agree on the columns that
    regions share. Time and memory are linear in the cells of all regions, whatever their structure. Where the
    measured marginals form a tree, the least squares are those of `GraphicalFit`.

    Each step is one of mirror descent with the entropy Σ_r H(tau_r), implicit: it solves the problem with the pull
    towards the last step's solution instead of the uniform one. A warm start is for an estimate between rounds: one
    step, with the pull of all of them.

    Marginals outside of all regions are estimated from the regions when they are asked for. The model draws no rows.

    Args:
        shrinkage: The pull in each step: a cell of log-potential 1 moves by at most ``shrinkage`` standard
            deviations.
        steps: Number of steps. Many lead to pure least squares.
        tolerance: The gap to the optimum at which a step stops, per measured cell.
        max_sweeps: Sweeps of belief propagation at most, for each gradient.

    Privacy:
        None spent.

    References:
        McKenna, Pradhan, Sheldon, Miklau (2021), Relaxed marginal consistency for differentially private query
        answering.
    """

    gives_records: ClassVar[bool] = False
    entries: ClassVar[frozenset[EntryKind]] = frozenset({EntryKind.CELL, EntryKind.READING})

    shrinkage: float = 1.0
    steps: int = 3
    tolerance: float = 3e-3
    max_sweeps: int = 10

    def __post_init__(self) -> None:
        check_fields(self)
        # Below this the potentials of cells that tend to 0 overflow.
        min_shrinkage = 0.1
        positive = self.tolerance > 0 and self.steps >= 1 and self.max_sweeps >= 1
        if not (self.shrinkage >= min_shrinkage and positive):
            raise InputError(
                "A local consistency fit needs shrinkage >= 0.1, tolerance > 0, steps >= 1, max_sweeps >= 1."
            )

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> PseudoMarginals:
        """Return the pseudo-marginals of a transcript."""
        check_kinds(self, transcript)
        terms = [
            t for t in terms_of(domain, transcript.evidence, single_cells(transcript)) if t.clique
        ]
        total = transcript.total()
        widest = max((float(t.scales[np.isfinite(t.scales)].max()) for t in terms), default=1.0)
        steps, pull = (1, self.shrinkage / self.steps) if warm else (self.steps, self.shrinkage)
        problem = _Problem(domain, terms, total, pull / widest, self.tolerance, self.max_sweeps)
        point = problem.start(warm)
        # Estimates between rounds, and steps that only set the next center, stop at a wider gap.
        rough = 10.0
        for left in reversed(range(steps)):
            gap = problem.gap * (rough if left or warm else 1.0)
            point = minimize(problem.objective, point, gap=gap, max_calibrations=300).point
            problem.recenter(point)
            point = np.zeros_like(point)
        tables = problem.tables()
        return PseudoMarginals(domain, total, tables, problem.potentials(), problem.graph.messages)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the cells of all regions."""
        return sum(map(domain.cells, regions_of(_with_zeros(domain, cliques))))

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` with each candidate added in turn; infinite if it is too large to be estimated."""
        regions = set(regions_of(_with_zeros(domain, cliques)))
        base = sum(map(domain.cells, regions))
        sizes = []
        for c in candidates:
            new = {c, *intersections(c, regions)} - regions
            large = c in new and domain.cells(c) > PseudoMarginals.max_estimated_cells
            sizes.append(np.inf if large else base + sum(map(domain.cells, new)))
        return np.array(sizes, dtype=np.float64)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of the sweeps and the memory of the regions, for a plan."""
        seconds_per_cell, seconds_per_marginal, copies = 2e-6, 0.01, 8
        share = min(1.0, load.measured / max(1, len(load.candidates)))
        cells = load.cells * share
        estimates = load.rounds * (len(load.candidates) * seconds_per_marginal)
        seconds = (load.rounds + self.steps) * cells * seconds_per_cell + estimates
        return Cost(seconds, 8 * copies * cells / 2**20)


def _with_zeros(domain: Domain, cliques: Collection[Clique]) -> list[Clique]:
    return [domain.clique(c) for c in (*cliques, *(z.clique for z in domain.zeros))]


class _Problem:
    """One step's dual problem: F(phi) = N · A(theta) − <phi, y / scale> + entropy / 2 ||phi||².

    theta_r = base_r + phi_r / scale_r, and A is the value of belief propagation. The gap of a point is
    ||gradient||² / 2, as in `margrave.models.graphical.estimation`.
    """

    def __init__(
        self,
        domain: Domain,
        terms: Sequence[Term],
        total: float,
        entropy: float,
        tolerance: float,
        max_sweeps: int,
    ) -> None:
        self.domain, self.total, self.entropy, self.max_sweeps = domain, total, entropy, max_sweeps
        self.terms = {t.clique: t for t in terms}
        self.graph = RegionGraph(regions_of(_with_zeros(domain, list(self.terms))))
        self.base = {r: self._possible(r) for r in self.graph.regions}
        reached = self.tables()
        self.base = {r: np.where(reached[r] > 0.0, 0.0, -np.inf) for r in reached}
        # A measured count of an impossible cell is noise alone.
        self.y = self._joined(
            {c: np.where(reached[c] > 0.0, t.values, 0.0) for c, t in self.terms.items()}
        )
        self.weight = self._joined({c: 1.0 / t.scales for c, t in self.terms.items()})
        self.gap = tolerance * max(1, int(np.count_nonzero(self.weight)))

    def _possible(self, region: Clique) -> FloatArray:
        zeros = [z for z in self.domain.zeros if set(z.clique) <= set(region)]
        return np.where(joined(zeros, region, self.domain.size), 0.0, -np.inf)

    def _joined(self, arrays: Mapping[Clique, FloatArray]) -> FloatArray:
        return np.concatenate([np.zeros(0), *(arrays[c].ravel() for c in self.terms)])

    def _theta(self, point: FloatArray) -> dict[Clique, FloatArray]:
        theta, moved, at = dict(self.base), point * self.weight, 0
        for c, term in self.terms.items():
            theta[c] = theta[c] + moved[at : at + term.values.size].reshape(term.values.shape)
            at += term.values.size
        return theta

    def start(self, warm: PseudoMarginals | None) -> FloatArray:
        """Return the last round's potentials, and for new marginals what explains them alone."""
        if warm is None:
            return np.zeros_like(self.y)
        edges = self.graph.edges
        self.graph.messages = {e: m for e, m in warm.messages.items() if e in edges}
        phi = {}
        for c, term in self.terms.items():
            theta = warm.potentials.get(c)
            if theta is None:
                expected = warm.answer([c])[c]
                theta = initial_potentials(expected, term, self.entropy)
            phi[c] = np.where(np.isfinite(term.scales), np.nan_to_num(theta, neginf=0.0), 0.0)
            phi[c] *= np.where(np.isfinite(term.scales), term.scales, 0.0)
        return self._joined(phi)

    def objective(self, point: FloatArray) -> tuple[float, FloatArray, Operator]:
        """Return F, its gradient, and an approximate inverse of its Hessian."""
        # Share of the gap that an end of the sweeps may cost.
        share = 1e-3
        tables, value = self.graph.beliefs(
            self._theta(point),
            tolerance=share * self.gap / max(1.0, self.total),
            max_sweeps=self.max_sweeps,
        )
        mu = self.total * self._joined(tables)
        gradient = (mu - self.y) * self.weight + self.entropy * point
        variance = 1.0 / (np.maximum(mu, self.y) * self.weight**2 + self.entropy)
        f = self.total * value - dot(point, self.y * self.weight)
        return f + self.entropy / 2 * dot(point, point), gradient, lambda vector: vector * variance

    def recenter(self, point: FloatArray) -> None:
        """Make a point the center of the pull."""
        self.base = {
            r: np.where(t > -np.inf, t - t.max(), t) for r, t in self._theta(point).items()
        }

    def tables(self) -> dict[Clique, FloatArray]:
        """Return the pseudo-marginals of the center, consistent to many digits."""
        tables, value = self.graph.beliefs(self.base, tolerance=1e-14, max_sweeps=1000)
        if value == -np.inf:
            raise ReleaseError(
                "No record can satisfy all structural zeros at once.",
                remedy="Loosen one of the constraints.",
            )
        return tables

    def potentials(self) -> dict[Clique, FloatArray]:
        """Return the potentials of the measured marginals, for the next round."""
        return {c: self.base[c] for c in self.terms}
