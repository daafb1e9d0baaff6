r"""Public algebra of marginals with Gaussian noise: what each question adds, and the best shares.

A marginal is a sum of interactions R_A, one per subset A of its columns (`margrave.marginal.residual`).
The matrices C(S) = ⊗_{i∈S} I ⊗_{i∉S} 1·1ᵀ of marginals S commute, C(S) C(T) = (Π_{i∉S∪T} n_i) C(S∩T),
and the interactions are their eigenspaces. So no matrix of cells has to be inverted:

    q_A = Σ_{S⊇A} θ_S / Π_{i∈S∖A} n_i                                the precision of R_A
    V_r = Σ_{A⊆r} (1 / q_A) Π_{i∈A} (n_i − 1) / n_i / Π_{i∈r∖A} n_i²    the variance of a cell of r

with θ_S = 1 / scale_S². V is convex in θ, and least squares attain it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from margrave.accounting import Unit, size_is_public
from margrave.accounting.sensitivities import Sensitivity, sensitivity
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import IDENTITY, TOTAL, LinearMap, closure
from margrave.marginal.residual import degrees_of_freedom, subsets
from margrave.mechanisms.common import PlannedMeasurement, Progress
from margrave.mechanisms.parts.budget import split
from margrave.privacy import Gaussian, Private
from margrave.types import Clique, FloatArray
from margrave.unit import replaces_rows

#: The objectives: the expected squared error of the weighted workload, and its expected absolute error.
VARIANCE, ERROR = "variance", "error"


class MarginalQuestion(NamedTuple):
    """A whole marginal, or its interactions alone. Without columns it is the number of records."""

    clique: Clique
    interactions: bool = False

    def query(self, domain: Domain) -> LinearMap:
        """Return the map that is measured."""
        return LinearMap.residual(domain, self.clique) if self.interactions else IDENTITY

    def price(self, domain: Domain, unit: Unit) -> float:
        """Return the squared L2 sensitivity, in counts: the price is ``price / (2 scale²)``."""
        if not self.clique:
            return float(sensitivity(unit, TOTAL).l2_squared)
        if not self.interactions:
            return float(sensitivity(unit).l2_squared)
        return _price_of_interactions(tuple(sorted(domain.shape(self.clique))), unit)

    def planned(self, domain: Domain, rho: Fraction, unit: Unit) -> PlannedMeasurement:
        """Return what a plan shows of it."""
        if not self.clique:
            scale, counted = Gaussian.scale_for(rho, unit, TOTAL), TOTAL.counting_clique(domain)
            return PlannedMeasurement("the number of records", [counted], 1, scale, single=True)
        sizes = tuple(sorted(domain.shape(self.clique))) if self.interactions else ()
        moved = _sensitivity_of(sizes, unit)
        scale, columns = Gaussian(rho=rho).price(moved, 1).scale, ", ".join(self.clique)
        what = f"interactions of {columns}" if self.interactions else columns
        weight = domain.cells(self.clique) if self.interactions else 1
        return PlannedMeasurement(what, [self.clique], 1, scale, weight=weight)

    def measure(self, private: Private, rho: Fraction) -> None:
        """Ask the gate.

        **Privacy:** rho, exactly.
        """
        if self.clique:
            query = self.query(private.domain)
            private.measure([self.clique], Gaussian(rho=rho), query=query)
        else:
            private.measure_queries([TOTAL], Gaussian(rho=rho))


@lru_cache(maxsize=4096)
def _sensitivity_of(sizes: tuple[int, ...], unit: Unit) -> Sensitivity:
    """Return that of the interactions of columns of these sizes; without sizes, of a whole marginal."""
    if not sizes:
        return sensitivity(unit)
    domain = Domain.of({str(i): n for i, n in enumerate(sizes)})
    return sensitivity(unit, LinearMap.residual(domain, domain.attributes), domain)


def _price_of_interactions(sizes: tuple[int, ...], unit: Unit) -> float:
    return _sensitivity_of(sizes, unit).l2_squared / prod(sizes) ** 2


def marginals(cliques: Iterable[Clique]) -> tuple[MarginalQuestion, ...]:
    """Return the questions for whole marginals."""
    return tuple(MarginalQuestion(r) for r in cliques)


def interactions(
    domain: Domain, cliques: Iterable[Clique], unit: Unit
) -> tuple[MarginalQuestion, ...]:
    """Return the questions for the interactions of marginals, each by itself as far as possible.

    Whole marginals are added if some interactions are too large for exact integers, and for units of replacement.
    There a row moves all interactions together by less than the sum of their sensitivities.
    """
    below = closure(cliques)
    own = [MarginalQuestion(a, interactions=True) for a in below if min(domain.shape(a)) > 1]
    exact = [q for q in own if _is_exact(tuple(sorted(domain.shape(q.clique))))]
    total = () if size_is_public(unit) else (MarginalQuestion(()),)
    more = marginals(below) if replaces_rows(unit) or len(exact) < len(own) else ()
    return (*total, *exact, *more)


@lru_cache(maxsize=4096)
def _is_exact(sizes: tuple[int, ...]) -> bool:
    # A matrix of a column of many codes is large, and gains a share of 1 / codes over the marginal.
    max_codes = 256
    if sizes[-1] > max_codes:
        return False
    domain = Domain.of({str(i): n for i, n in enumerate(sizes)})
    try:
        LinearMap.residual(domain, domain.attributes).check(domain)
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class NoiseDesign:
    """The expected error of a workload's least-squares answers, for shares of a budget.

    Args:
        domain: The domain.
        weights: The workload.
        questions: The questions that may be asked. Interactions that none of them holds are left out of the error.
        unit: The unit of privacy.
        objective: ``VARIANCE``: Σ_r c_r² Σ_cells variance. ``ERROR``: Σ_r c_r Σ_cells standard deviation.
    """

    domain: Domain
    weights: Mapping[Clique, float]
    questions: tuple[MarginalQuestion, ...]
    unit: Unit
    objective: str = VARIANCE

    @cached_property
    def parts(self) -> dict[Clique, int]:
        """The interactions that have noise, numbered."""
        held = dict.fromkeys(
            a for q in self.questions for a in ([q.clique] if q.interactions else subsets(q.clique))
        )
        wanted = dict.fromkeys(a for r in self.weights for a in subsets(r))
        public = {()} if size_is_public(self.unit) else set()
        noisy = [a for a in wanted if a in held and a not in public and self._freedom(a)]
        return {a: i for i, a in enumerate(noisy)}

    def _freedom(self, clique: Clique) -> int:
        return degrees_of_freedom(self.domain.shape(clique))

    @cached_property
    def precision(self) -> Any:
        """The precision of each part per unit of 2 rho for each question: questions × parts, sparse."""
        rows = []
        for question in self.questions:
            cells, price = (
                self.domain.cells(question.clique),
                question.price(self.domain, self.unit),
            )
            inside = [question.clique] if question.interactions else subsets(question.clique)
            rows.append({a: self.domain.cells(a) / cells / price for a in inside})
        return self._sparse(rows)

    @cached_property
    def variance(self) -> Any:
        """The variance of a cell per variance 1 / q of each part: marginals × parts, sparse."""
        rows = []
        for r in self.weights:
            cells = self.domain.cells(r)
            rows.append({a: self._freedom(a) * self.domain.cells(a) / cells**2 for a in subsets(r)})
        return self._sparse(rows)

    def _sparse(self, rows: Sequence[Mapping[Clique, float]]) -> Any:
        try:
            from scipy.sparse import csr_array
        except ModuleNotFoundError:
            raise InputError(
                "To size the noise of each marginal needs scipy, which is not installed.",
                remedy="Install it: pip install 'margrave[inference]'; or name another mechanism, such as aim.",
            ) from None

        entries = [
            (i, self.parts[a], value)
            for i, row in enumerate(rows)
            for a, value in row.items()
            if a in self.parts
        ]
        at, parts, values = zip(*entries, strict=True) if entries else ((), (), ())
        return csr_array(
            (np.array(values, dtype=float), (np.array(at, int), np.array(parts, int))),
            shape=(len(rows), len(self.parts)),
        )

    def variances(self, shares: FloatArray, rho: float) -> FloatArray:
        """Return the variance of a cell of each marginal, infinite if it is not measured."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.variance @ (0.5 / rho / (self.precision.T @ shares)))

    def loss(self, shares: FloatArray) -> float:
        """Return the objective at a budget of 1/2."""
        variances = self.variances(shares / shares.sum(), 0.5)
        return float(self._coefficients @ (variances if self._squared else np.sqrt(variances)))

    @property
    def _squared(self) -> bool:
        return self.objective == VARIANCE

    @cached_property
    def _coefficients(self) -> FloatArray:
        cells = np.array([self.domain.cells(r) for r in self.weights], dtype=float)
        c = np.array(list(self.weights.values()))
        return np.asarray(cells * (c**2 if self._squared else c))

    def best(self) -> FloatArray:
        """Return the shares of least error that were found, 0 for questions not worth asking.

        Interactions that are each measured alone have the closed form of ResidualPlanner for ``VARIANCE``.
        Otherwise L-BFGS looks for the minimum over the roots of the shares, from the best and the last of ``starts``.
        The error is never larger than that of ``starts``.
        """
        starts = self.starts()
        if self._squared and self._alone.all():
            return starts[0]
        best = min(starts, key=self.loss)
        return min(self._improved(best), self._improved(starts[-1]), best, key=self.loss)

    def starts(self) -> list[FloatArray]:
        """Return the closed form, equal noise, PrivSyn's split and random shares, as far as they measure all parts."""
        weights = np.array([self.weights.get(q.clique, 0.0) for q in self.questions])
        weights[self._alone] = 0.0
        cells = np.array([self.domain.cells(q.clique) for q in self.questions], dtype=float)
        even = np.random.default_rng(0).uniform(0.5, 1.0, len(self.questions))
        starts = (self._closed_form(), np.sign(weights), (weights * cells) ** (2 / 3), even)
        return [s / s.sum() for s in starts if s.any() and np.isfinite(self.loss(s))]

    @cached_property
    def _alone(self) -> Any:
        return np.array([q.interactions or not q.clique for q in self.questions], dtype=bool)

    def _closed_form(self) -> FloatArray:
        """Return shares ∝ √(price_A v_A), with v_A the change of the squared error per variance of A."""
        if not self._squared:
            return np.asarray(self._alone, dtype=float)
        change = self.variance.T @ self._coefficients
        inverse_price = np.asarray(self.precision.sum(axis=1))
        held = np.asarray((self.precision > 0).astype(float) @ change)
        own = self._alone & (inverse_price > 0)
        squares = np.divide(held, inverse_price, out=np.zeros_like(held), where=own)
        return np.asarray(np.sqrt(squares))

    def _improved(self, start: FloatArray) -> FloatArray:
        from scipy.optimize import minimize

        # Keeps divisions finite where a step of the search takes a share to 0.
        least_precision = 1e-100

        def objective(roots: FloatArray) -> tuple[float, FloatArray]:
            shares = roots**2
            q = np.maximum(self.precision.T @ shares, least_precision)
            variances = self.variance @ (1.0 / q)
            spread = variances if self._squared else np.sqrt(np.maximum(variances, least_precision))
            loss, power = self._coefficients @ spread, 1.0 if self._squared else 0.5
            by_variance = self._coefficients * (1.0 if self._squared else 0.5 / spread)
            slopes = self.precision @ (-(self.variance.T @ by_variance) / q**2) / loss
            value = np.log(loss) + power * np.log(shares.sum())
            return float(value), 2.0 * roots * (slopes + power / shares.sum())

        even = np.full(len(start), 1.0 / len(start))
        found = minimize(
            objective,
            np.sqrt(0.9 * start + 0.1 * even),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 500, "maxfun": 1000, "ftol": 1e-12, "gtol": 1e-8},
        )
        return self._without_negligible(np.asarray(found.x) ** 2)

    def _without_negligible(self, shares: FloatArray) -> FloatArray:
        # Share of the precision of each of its parts below which a question is not asked.
        least_precision = 1e-6
        added = self.precision.multiply(shares[:, None]).multiply(1.0 / (self.precision.T @ shares))
        largest = added.max(axis=1).toarray().reshape(-1)
        return np.asarray(np.where(largest > least_precision, shares, 0.0))


@dataclass(frozen=True)
class NoisePlan:
    """Questions, and their weights in the budget."""

    questions: tuple[MarginalQuestion, ...]
    weights: tuple[float, ...]

    @staticmethod
    def of(
        domain: Domain,
        workload: Mapping[Clique, float],
        questions: tuple[MarginalQuestion, ...],
        unit: Unit,
        objective: str,
    ) -> NoisePlan:
        """Return the plan of least error of a workload, all of it without a look at rows."""
        return _best_plan(domain, tuple(workload.items()), questions, unit, objective)

    @property
    def cliques(self) -> list[Clique]:
        """The marginals."""
        return [q.clique for q in self.questions if q.clique]

    def shares(self, rho: Fraction) -> list[tuple[MarginalQuestion, Fraction]]:
        """Return each question with its share of rho."""
        return list(zip(self.questions, split(rho, self.weights), strict=True))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the measurements that a run will make."""
        return [q.planned(domain, share, unit) for q, share in self.shares(rho)]

    def ask(self, private: Private, progress: Progress) -> None:
        """Ask every question.

        **Privacy:** the whole budget of the gate, exactly.
        """
        for i, (question, rho) in enumerate(self.shares(private.rho)):
            question.measure(private, rho)
            progress("measuring", (i + 1) / len(self.questions))


@lru_cache(maxsize=8)
def _best_plan(
    domain: Domain,
    workload: tuple[tuple[Clique, float], ...],
    questions: tuple[MarginalQuestion, ...],
    unit: Unit,
    objective: str,
) -> NoisePlan:
    design = NoiseDesign(domain, dict(workload), questions, unit, objective)
    if not design.parts:  # without noise, whatever is asked
        asked = marginals(r for r, _ in workload)
        return NoisePlan(asked, (1.0,) * len(asked))
    asked, weights = zip(*((q, w) for q, w in zip(questions, design.best(), strict=True) if w > 0))
    return NoisePlan(asked, tuple(float(w) for w in weights))
