"""The measurements of AIM before its rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import PlannedMeasurement, Progress, one_way
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.penalty import budget_factor
from margrave.mechanisms.parts.purpose_sums import PurposeSums
from margrave.models import Answerer, Fit
from margrave.privacy import Gaussian, Private
from margrave.types import Clique, FloatArray, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The columns, which the paper measures, and purposes, their sums and columns of few rows again, which it does not.

    Args:
        workload: The marginals that matter, on the domain.
        domain: The domain.
        fit: The estimator.
        max_model_mb: The size of the model at most.
        measurements: Number of measurements that the budget is sized for, if there are fewer columns and purposes.
        alpha: The share of a round's budget that measures.
        column_error: Columns are measured again if their mean expected projected error is above this share of the
            row count, with what it needs, up to half of the budget. Rounds then begin with half the budget of a
            column. None never measures them again.

    References:
        McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithm 2.
    """

    workload: Workload
    domain: Domain
    fit: Fit
    max_model_mb: float | None
    measurements: int
    alpha: Fraction
    column_error: float | None

    #: The share of the largest model that the marginals of purposes may fill.
    purpose_share: ClassVar[float] = 0.5
    #: Columns get the whole budget if an error of twice ``column_error`` would take more than this share of it.
    alone_above: ClassVar[Fraction] = Fraction(2, 5)

    @cached_property
    def columns(self) -> list[Clique]:
        """The columns of the workload, each by itself."""
        closure = set(self.workload.closure())
        return [r for r in one_way(self.domain) if r in closure]

    @cached_property
    def sums(self) -> PurposeSums:
        """The sums for the purposes of the workload."""
        return PurposeSums.of(self.workload, self.domain, self.fit)

    @property
    def rounds(self) -> int:
        """The number of measurements that the budget is meant for, the columns and purposes among them."""
        return max(self.measurements, len(self.columns) + len(self.workload.first) + 1)

    def rho(self, rho: Fraction) -> Fraction:
        """Return the budget of a round (zCDP), of the whole budget."""
        return (rho - self.sums.rho(rho)) / self.rounds

    def steps(self, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the columns, the purposes, their sums, and rounds of the first budget at most."""
        each, first = self.alpha * self.rho(rho), self.workload.first
        columns = PlannedMeasurement.of("every column", self.columns, each, unit)
        purposes = [PlannedMeasurement.of("purposes, at most", first, each, unit)] if first else []
        left = self.rounds - len(self.columns) - len(first)
        chosen = PlannedMeasurement.rounds(self.workload.cliques, left, columns.scale)
        return [columns, *purposes, *self.sums.steps(rho, unit), chosen]

    def measure(
        self, private: Private, rng: Generator, progress: Progress
    ) -> tuple[Any, Answerer, Fraction]:
        """Measure all of it.

        Args:
            private: The gate.
            rng: Random numbers of the fit.
            progress: Called with the share of the budget that is spent, if more than the columns was measured.

        Returns:
            The state of the fit, its model, and the budget of a round.

        Privacy:
            Measurements at the price of a round each, ``sums.rho`` and the columns again; what remains, at most.
        """
        rho, columns = self.rho(private.rho), self.columns
        private.measure(columns, Gaussian(rho=self.alpha * rho * len(columns)))
        state = self.fit.update(self.fit.init(self.domain, rng=rng), private.transcript, rng=rng)
        model: Answerer = self.fit.model(state)
        answers = model.answer(columns)
        left = self.fit.distinguished(self.domain, private.transcript)
        capacity = Capacity(self.fit, left, self.max_model_mb)
        purposes = capacity.beside(self.workload.first, columns, self.purpose_share)
        if purposes:
            private.measure(purposes, Gaussian(rho=self.alpha * rho * len(purposes)))
        self.sums.measure(private, answers, purposes)
        factor = self._columns_again(private, answers, rho, left)
        if len(private.transcript.measurements) > len(columns):
            state = self.fit.update(state, private.transcript, rng=rng)
            model = self.fit.model(state)
            progress("measuring", float(1 - private.remaining / private.rho))
        return state, model, rho * factor

    def _columns_again(
        self, private: Private, columns: Mapping[Clique, FloatArray], rho: Fraction, left: Domain
    ) -> int:
        """Measure the columns again if the rows are few, and return the factor of a round's budget."""
        # with fewer rounds, columns would take more of them than planned
        few_rounds = private.rho < rho * (4 * len(columns) + 2 * len(self.workload.first))
        if self.column_error is None or few_rounds:
            return 1
        scale = Gaussian.scale_for(self.alpha * rho, private.unit)
        error = self.column_error * private.transcript.total()
        largest = private.rho / (rho * len(columns))  # the factor that would take the whole budget
        alone = budget_factor(columns, scale, 2 * error, left) > self.alone_above * largest
        factor = min(budget_factor(columns, scale, error, left), math.floor(largest / 2))
        start = max(1, factor // 2)
        again = self.alpha * rho * (factor - 1) * len(columns)
        if alone or again + rho * start > private.remaining:
            again = private.remaining
        if again > 0:
            private.measure(list(columns), Gaussian(rho=again))
        return start
