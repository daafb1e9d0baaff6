"""HDMM + PGM: marginals with optimized weights, and a graphical model (McKenna et al. 2018, 2019)."""

from __future__ import annotations

from dataclasses import dataclass, field

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import option
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.noise_design import VARIANCE, NoisePlan, marginals
from margrave.mechanisms.planned_noise import PlannedNoise
from margrave.models import Fit, GraphicalFit
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class HDMM(PlannedNoise):
    """Marginals with the weights that serve a workload best, known before the rows are read.

    OPT_M: of all marginals S below the workload, minimize (Σ_S θ_S²) tr[(Σ_S θ_S² C(S))⁻¹ WᵀW] over the
    weights θ, with WᵀW = Σ_r c_r² C(r). Marginal S is then measured with noise of scale ∝ 1 / θ_S.

    If the model of these marginals is too large, those of smallest weight that do not fit are left out.
    The weights of the others are optimized again, for the part of the error that they can reduce.

    Args:
        workload: The marginals that matter; None means all three-way marginals.
        max_model_mb: The size of the model at most. None is the paper's form: no limit but what can
            be estimated at all, ``MAX_MODEL_MB``.
        fit: Any estimator. ``LeastSquaresFit()`` makes HDMM by itself: answers without records.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        McKenna, Miklau, Hay, Machanavajjhala (2018), Optimizing error of high-dimensional statistical
        queries, Section 6.3; McKenna, Sheldon, Miklau (2019), Graphical-model based estimation.
    """

    workload: Workload | None = None
    max_model_mb: float | None = option(1.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "hdmm"
    max_marginals = 23_000
    use = "small tables, large budgets: marginals chosen beforehand"

    def plan(self, domain: Domain, unit: Unit) -> NoisePlan:
        """Return the marginals to measure, with their weights (OPT_M)."""
        self.check_width(workload := self.workload_on(domain))
        below = workload.closure()
        columns = [r for r in below if len(r) == 1]
        plan = NoisePlan.of(domain, workload.weights, marginals(below), unit, VARIANCE)
        capacity = Capacity(self.fit, domain, self.max_model_mb)
        if self.fit.cells(domain, plan.cliques) <= capacity.cells():
            return plan
        weight = dict(zip(plan.cliques, plan.weights, strict=True))
        wider = [r for r in below if len(r) > 1]
        others = sorted(wider, key=lambda r: -weight.get(r, 0.0))
        fitting = [*columns, *capacity.beside(others, columns, 1.0)]
        return NoisePlan.of(domain, workload.weights, marginals(fitting), unit, VARIANCE)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, self.plan(domain, unit).cliques)
