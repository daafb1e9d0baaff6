"""Sums that purposes rest on: linear queries of their marginals, each with its own share of the budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import LinearMap
from margrave.mechanisms.common import PlannedMeasurement
from margrave.models import Fit
from margrave.models.entries import EntryKind
from margrave.privacy import Gaussian, Private
from margrave.purposes import Purpose
from margrave.schema.categorical import Coded
from margrave.schema.numeric import Numeric
from margrave.types import Clique, FloatArray, IntArray
from margrave.workload import Workload


class PurposeSum(NamedTuple):
    """One question: a marginal, the columns whose codes are weighted by their values, and its part of the budget."""

    clique: Clique
    weighted: Clique
    part: int

    def kind(self) -> tuple[bool, int, int]:
        """Return what sums of equal noise have in common."""
        return len(self.clique) > 1, len(self.weighted), self.part


@dataclass(frozen=True)
class PurposeSums:
    """Sums of numbers by groups, sums of products of numbers, and the first two moments of each number.

    A sum over a marginal's cells has the noise of each cell, times the root of the summed squares of its weights. One
    linear query of the same sum has the noise of one cell, times the largest weight.

    Args:
        asked: The questions. Coefficients depend most on the sums with the outcome, which get the largest parts.

    References:
        Wang (2018), Revisiting differentially private linear regression: sufficient statistics with noise.
    """

    asked: tuple[PurposeSum, ...]

    #: The share of the budget for a sum of part 1, and for all of them at most.
    share_of_part: ClassVar[Fraction] = Fraction(1, 32)
    max_share: ClassVar[Fraction] = Fraction(1, 4)
    #: The largest weight of a code.
    max_weight: ClassVar[int] = 16
    #: The part of a sum with the outcome, where that of any other is 1.
    outcome_part: ClassVar[int] = 4
    #: The purposes that sums serve: those whose groups alone are not weighted, and the others.
    by_groups: ClassVar[tuple[str, ...]] = ("mean", "total")
    of_products: ClassVar[tuple[str, ...]] = ("correlation", "ols")

    @classmethod
    def of(cls, workload: Workload, domain: Domain, fit: Fit) -> PurposeSums:
        """Return the sums for the purposes of a workload; none for a fit that cannot use them."""
        if EntryKind.WEIGHTED_MAP not in fit.entries:
            return cls(())
        found: dict[tuple[Clique, Clique], int] = {}
        for clique, weighted, part in _sums_of(workload, domain):
            found[clique, weighted] = max(part, found.get((clique, weighted), 0))
        columns = dict.fromkeys(a for _, weighted in found for a in weighted)
        moments = [PurposeSum((a,), (a,), 1) for a in columns]
        others = [PurposeSum(*asked, part) for asked, part in found.items() if len(asked[0]) > 1]
        return cls((*moments, *sorted(others, key=PurposeSum.kind)))

    def rho(self, rho: Fraction) -> Fraction:
        """Return the part of a budget for them (zCDP)."""
        return min(self.max_share, self.share_of_part * self._parts) * rho

    def steps(self, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the questions with the most noise that each can have, those of one kind together.

        Args:
            rho: The whole budget of the run.
            unit: The unit of privacy.
        """
        found = []
        for kind, some in groupby(self.asked, PurposeSum.kind):
            several, numbers, part = kind
            cliques = tuple(asked.clique for asked in some)
            names = tuple(map(str, range(numbers)))
            ends = np.array([[-self.max_weight, self.max_weight]])  # the largest of either sign
            bound = LinearMap(
                matrices=dict.fromkeys(names, ends if several else _with_squares(ends, self))
            )
            price, marginal = self._price(rho, part), Domain.of(dict.fromkeys(names, 2))
            scale = Gaussian.scale_for(price, unit, bound, marginal)
            words = (
                "sums of a number by group"
                if numbers == 1
                else f"sums of products of {numbers} numbers"
            )
            found.append(
                PlannedMeasurement(
                    words if several else "sums of a number and of its squares", cliques, len(cliques), scale,
                    at_most=True, sums=True, weight=self.max_weight**numbers,
                )
            )  # fmt: skip
        return found

    def _price(self, rho: Fraction, part: int) -> Fraction:
        return self.rho(rho) * part / self._parts

    @property
    def _parts(self) -> int:
        return sum(asked.part for asked in self.asked)

    def measure(
        self, private: Private, columns: Mapping[Clique, FloatArray], measured: Collection[Clique]
    ) -> None:
        """Measure the sums of marginals that are measured.

        Args:
            private: The gate.
            columns: Estimated counts of each column, which center the weights.
            measured: The marginals that the model has room for.

        Privacy:
            ``rho(private.rho)`` at most (zCDP), each sum its part.
        """
        room = [set(clique) for clique in (*columns, *measured)]
        for clique, weighted, part in self.asked:
            weights = {
                a: _weights(private.schema.column(a), columns[(a,)], self)
                for a in weighted
                if (a,) in columns
            }
            matrices = {a: w for a, w in weights.items() if w.any()}
            if not matrices or not any(c.issuperset(clique) for c in room):
                continue
            if len(clique) == 1:
                matrices = {a: _with_squares(w, self) for a, w in matrices.items()}
            price = self._price(private.rho, part)
            private.measure([clique], Gaussian(rho=price), query=LinearMap(matrices=matrices))


def _sums_of(workload: Workload, domain: Domain) -> Iterator[PurposeSum]:
    """Yield the sums that serve the purposes, also those that several have in common."""
    for text in workload.purposes:
        with suppress(InputError):  # a column of it was left out
            purpose = Purpose.of(text, domain)
            for clique in purpose.cliques:
                numbers = tuple(a for a in clique if a not in domain.unordered)
                part = PurposeSums.outcome_part if purpose.outcome in clique else 1
                if purpose.kind in PurposeSums.by_groups and purpose.outcome in clique:
                    yield PurposeSum(clique, (purpose.outcome,), part)
                elif purpose.kind in PurposeSums.of_products and numbers:
                    yield PurposeSum(clique, numbers, part)


def _weights(column: Any, counts: FloatArray, sums: PurposeSums) -> IntArray:
    """Return the weight of each code: its distance from the estimated mean, bounded; all 0 without numbers."""
    values = _values(column)
    weights: FloatArray = np.zeros(len(counts))
    if values is None:
        return weights.astype(np.int64)[None]
    known = len(values)  # a missing state comes after the values
    shares = np.maximum(counts[:known], 0.0) + 1e-9
    mean = float(np.average(values, weights=shares))
    deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=shares)))
    if deviation > 0.0:
        reach = (values - mean) / (Purpose.max_deviations * deviation)
        weights[:known] = np.rint(np.clip(reach, -1.0, 1.0) * sums.max_weight)
    return weights.astype(np.int64)[None]


def _values(column: Any) -> FloatArray | None:
    """Return the value of each code of a number; None for other columns."""
    if isinstance(column, Numeric):
        return column.cells.means
    return np.arange(column.codes, dtype=np.float64) if isinstance(column, Coded) else None


def _with_squares(weights: IntArray, sums: PurposeSums) -> IntArray:
    squares = np.rint(weights.astype(np.float64) ** 2 / sums.max_weight).astype(np.int64)
    return np.concatenate([weights, squares])
