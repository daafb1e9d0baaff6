"""Half-spaces as queries: how many records lie beyond a threshold of a weighted sum of some columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True)
class HalfSpace:
    """One query: the records for which a weighted sum of columns, each from 0 to 1, exceeds a threshold.

        score = Σ_a coefficient_a · (2 x_a + 1) / (2 lines_a)

        answer = the number of records with score > threshold;
                 with a slope, their sum of sigmoid(slope · (score − threshold)), each rounded to a millionth

    x_a is the code of column a and ``lines_a`` its number of codes without the state for missing, whose code is the
    last. Columns of names are taken in the order of their codes. A record that misses one of the columns counts
    nothing. The answer is a whole number: of records, or with a slope of millionths of one.

    Make one with ``HalfSpace.of``, which takes ``lines`` from the domain.

    >>> domain = Domain.of({"age": 2, "cost": 4})
    >>> query = HalfSpace.of(domain, {"cost": 0.4, "age": 0.6}, 0.7)
    >>> query.describe
    '0.6 age + 0.4 cost > 0.7'
    >>> query.count(np.array([[1, 1, 1, 1], [1, 1, 9, 7]]))  # 0.6 · 0.75 + 0.4 · 0.625 is the least that is beyond
    7
    """

    #: Most that a record counts in a smooth count: an integer, so that noise can be drawn exactly.
    _millionths: ClassVar[int] = 1_000_000

    clique: Clique
    coefficients: tuple[float, ...]
    lines: tuple[int, ...]
    threshold: float
    slope: float | None = None

    #: True for a query that is a single cell of its marginal; fits refuse it if False.
    is_cell: ClassVar[bool] = False

    @staticmethod
    def of(
        domain: Domain,
        coefficients: Mapping[Attribute, float],
        threshold: float,
        slope: float | None = None,
    ) -> HalfSpace:
        """Return the query of a domain's columns, checked."""
        clique = domain.clique(coefficients)
        lines = tuple(domain.size(a) - (a in domain.missing) for a in clique)
        query = HalfSpace(
            clique, tuple(float(coefficients[a]) for a in clique), lines, float(threshold),
            None if slope is None else float(slope),
        )  # fmt: skip
        query.check(domain)
        return query

    @property
    def max_contribution(self) -> int:
        """The most that one record counts."""
        return 1 if self.slope is None else self._millionths

    def counted(self) -> IntArray:
        """Return a record's contribution by cell of the marginal without missing states, 0 to ``max_contribution``."""
        places = [c * centers(k) for c, k in zip(self.coefficients, self.lines, strict=True)]
        beyond = np.asarray(reduce(np.add.outer, places)) - self.threshold
        if self.slope is None:
            return (beyond > 0.0).astype(np.int64)
        return np.rint(self._millionths * sigmoid(self.slope * beyond)).astype(np.int64)

    def count(self, values: AnyArray) -> int | float:
        """Return the answer on the values of its marginal."""
        there = values[tuple(slice(k) for k in self.lines)]
        answer: int | float = (there * self.counted()).sum().item()
        return answer

    @property
    def describe(self) -> str:
        """The query in words, as in "0.6 age + 0.4 cost > 0.7"."""
        terms = " + ".join(
            f"{c:g} {a}" for c, a in zip(self.coefficients, self.clique, strict=True)
        )
        smoothly = "" if self.slope is None else f", smoothly with slope {self.slope:g}"
        return f"{terms.replace('+ -', '- ')} > {self.threshold:g}{smoothly}"

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as plain data."""
        return {
            "clique": list(self.clique),
            "coefficients": list(self.coefficients),
            "lines": list(self.lines),
            "threshold": self.threshold,
            "slope": self.slope,
        }

    def counting_clique(self, domain: Domain) -> Clique:
        """Return the marginal whose counts answer it: its own."""
        return self.clique

    def check(self, domain: Domain) -> None:
        """Raise an InputError unless it is of the domain's columns, in order, with numbers that mean something."""
        # Cells of the largest marginal in which a half-space is counted.
        max_cells = 50_000_000
        if not self.clique or domain.clique(self.clique) != self.clique:
            raise InputError(
                "A half-space does not name columns in the domain's order.",
                remedy="Use HalfSpace.of.",
            )
        if not len(self.clique) == len(self.coefficients) == len(self.lines):
            raise InputError(
                "A half-space needs one coefficient for each of its columns.",
                remedy="Use HalfSpace.of.",
            )
        for attribute, coefficient, lines in zip(
            self.clique, self.coefficients, self.lines, strict=True
        ):
            if not np.isfinite(coefficient) or coefficient == 0.0:
                raise InputError(
                    f"Column {attribute!r} has the coefficient {coefficient} in a half-space.",
                    remedy="Give it a number other than 0, or leave the column out.",
                )
            if lines != domain.size(attribute) - (attribute in domain.missing) or lines < 1:
                raise InputError(
                    f"A half-space is of another number of codes of column {attribute!r}, or it has none.",
                    remedy="Use HalfSpace.of, with the domain of the table.",
                )
        if not np.isfinite(self.threshold) or not (self.slope is None or 0.0 < self.slope < np.inf):
            raise InputError(
                f"A half-space has the threshold {self.threshold} and the slope {self.slope}.",
                remedy="Both are finite, and a slope is above 0.",
            )
        if domain.cells(self.clique) > max_cells:
            raise InputError(
                f"The half-space of {', '.join(self.clique)} is counted in {domain.cells(self.clique):,} cells.",
                remedy=f"Name fewer columns, or give them fewer bins: at most {max_cells:,} cells.",
            )


def centers(count: int) -> FloatArray:
    """Return the positions of codes in the unit interval: code x of ``count`` lies at (2x + 1) / 2
    count.

    >>> centers(4).tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    return np.asarray((2 * np.arange(count) + 1) / (2 * count), dtype=np.float64)


def sigmoid(values: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−values)) without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)), dtype=np.float64)
