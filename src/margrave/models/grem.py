"""GReM-LNN: marginals from noisy interactions, consistent and not negative, without a joint distribution."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import maximal, project_array
from margrave.marginal.residual import reconstruct, residual, subsets
from margrave.marginal.simplex import clip_and_rescale
from margrave.models.cost import Cost, FitLoad
from margrave.models.entries import EntryKind, check_kinds
from margrave.models.least_squares import LeastSquaresAnswers, LeastSquaresFit
from margrave.models.local_consistency import PseudoMarginals
from margrave.models.measured_cells import MeasuredCellsFit
from margrave.structural_zeros import joined
from margrave.transcript import Transcript
from margrave.types import Clique, FloatArray


@dataclass(frozen=True, kw_only=True)
class GReMFit(MeasuredCellsFit):
    """GReM-LNN: the least squares of all measurements, with no cell of a measured marginal below 0.

    minimize over R    Σ_A ||R_A − y_A||² / (2 v_A)    subject to  M_r(R) ≥ 0 for every measured r

    The interactions y_A and the variances v_A of their noise are those of `LeastSquaresFit`, and so is the solution
    if no cell is negative. Otherwise the solution is nearer to the true marginals in this norm, whatever the noise.
    Whole marginals, the interactions of marginals (``LinearMap.residual``) and the number of records are used. An
    interaction is left out if those below it were not measured.

    Time and memory are linear in the cells of the measured marginals, of any structure. Other marginals are
    estimated when they are asked for (`PseudoMarginals`). The model draws no rows.

    Args:
        tolerance: The ascent ends when no cell is below 0 by more than this number of standard deviations of its
            measurement's noise. Such cells are then answered as 0.
        max_steps: Steps at most.

    Privacy:
        None spent.

    References:
        Mullins, Fuentes, Xiao, Kifer, Musco, Sheldon (2024), Efficient and private marginal reconstruction with local
        non-negativity.
    """

    gives_records: ClassVar[bool] = False
    entries: ClassVar[frozenset[EntryKind]] = frozenset({EntryKind.WEIGHTED_MAP})

    tolerance: float = 1e-2
    max_steps: int = 2000

    def __post_init__(self) -> None:
        check_fields(self)
        if not (self.tolerance > 0.0 and self.max_steps >= 1):
            raise InputError("GReM needs tolerance > 0 and max_steps >= 1.")

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> PseudoMarginals:
        """Return the reconstructed marginals of a transcript."""
        check_kinds(self, transcript)
        known = LeastSquaresFit().estimate(domain, transcript, rng=rng)
        ascent = _DualAscent(domain, known)
        marginals = ascent.marginals(self.tolerance, self.max_steps)
        total = max((float(m.sum()) for m in marginals.values()), default=transcript.total())
        tables = {}
        for r, values in marginals.items():
            tables[r] = np.zeros_like(values)
            tables[r][ascent.possible[r]] = clip_and_rescale(values[ascent.possible[r]])
        return PseudoMarginals(domain, max(1.0, total), tables)

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` with each candidate added in turn; infinite if it is too large to be estimated."""
        sizes = super().sizes_with(domain, cliques, candidates)
        large = [domain.cells(c) > PseudoMarginals.max_estimated_cells for c in candidates]
        return np.where(large, np.inf, sizes)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of the ascent and the memory of the marginals, for a plan."""
        seconds_per_cell, seconds_per_marginal, copies = 2e-5, 0.01, 8
        share = min(1.0, load.measured / max(1, len(load.candidates)))
        cells = load.cells * share
        estimates = load.rounds * len(load.candidates) * seconds_per_marginal
        return Cost(
            (load.rounds / 2 + 1) * cells * seconds_per_cell + estimates, 8 * copies * cells / 2**20
        )


class _DualAscent:
    """The dual problem: a multiplier λ_r ≥ 0 for each cell of each measured marginal r that lies in no other.

    R_A(λ) = y_A + v_A · residual(Σ_{r ⊇ A} Σ_{r∖A} λ_r / cells(r∖A)) minimizes the Lagrangian, and −M_r(R(λ)) is the
    gradient of the dual in λ_r. Impossible cells are 0 instead: their multipliers have any sign.
    """

    def __init__(self, domain: Domain, known: LeastSquaresAnswers) -> None:
        self.domain, self.y, self.variances = domain, known.interactions, known.variances
        supported = [r for r in self.y if r and all(a in self.y for a in subsets(r))]
        self.inside = {r: subsets(r) for r in maximal(supported)}
        zeros = {r: [z for z in domain.zeros if set(z.clique) <= set(r)] for r in self.inside}
        self.possible = {r: joined(z, r, domain.size) for r, z in zeros.items()}

    def marginals(self, tolerance: float, max_steps: int) -> dict[Clique, FloatArray]:
        """Return M(R(λ)) after accelerated ascent, restarted where momentum leads downwards."""
        multipliers = {r: np.zeros(self.domain.shape(r)) for r in self.inside}
        point, momentum, steps = multipliers, 1.0, self.step_sizes()
        scales = {r: np.sqrt(self.variances[r]) for r in self.inside}
        for _ in range(max_steps):
            marginals = self.primal(point)
            new = {}
            for r, values in marginals.items():
                least = np.where(self.possible[r], 0.0, -np.inf)
                new[r] = np.maximum(least, point[r] - steps[r] * values)
            moves = {r: (new[r] - point[r]) / steps[r] for r in new}
            if all(np.abs(moves[r]).max() <= tolerance * scales[r] for r in moves):
                break
            if sum(float((moves[r] * (new[r] - multipliers[r])).sum()) for r in moves) < 0.0:
                momentum = 1.0
            faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            pace = (momentum - 1.0) / faster
            point = {r: new[r] + pace * (new[r] - multipliers[r]) for r in new}
            multipliers, momentum = new, faster
        return marginals

    def primal(self, multipliers: Mapping[Clique, FloatArray]) -> dict[Clique, FloatArray]:
        """Return M_r(R(λ)) for all r."""
        pulls: dict[Clique, FloatArray] = {}
        for r, values in multipliers.items():
            for a in self.inside[r]:
                mean = project_array(values, r, a) * (self.domain.cells(a) / values.size)
                pulls[a] = pulls[a] + mean if a in pulls else mean
        solution = {a: self.y[a] + self.variances[a] * residual(p) for a, p in pulls.items()}
        return {
            r: reconstruct({a: solution[a] for a in inside}, r, self.domain.shape(r))
            for r, inside in self.inside.items()
        }

    def step_sizes(self) -> dict[Clique, float]:
        """Return the largest safe step of each λ_r, in proportion to the precision 1 / v_r.

        The Hessian maps the part of λ_r in the space of R_A to Σ_s v_A λ_s / cells(s∖A), and no part to another.
        """
        curvature: dict[Clique, float] = {}
        for r, inside in self.inside.items():
            for a in inside:
                share = self.domain.cells(a) / self.domain.cells(r)
                curvature[a] = curvature.get(a, 0.0) + self.variances[a] * share / self.variances[r]
        most = max(curvature.values(), default=1.0)
        return {r: 1.0 / (most * self.variances[r]) for r in self.inside}
