"""Totals and counts over all records, as ready models: a mean times the number of records, which is noisy itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pandas as pd

from margrave.errors import InputError
from margrave.inference.columns import column_of, line_of, scalar
from margrave.inference.fits import Fitted
from margrave.inference.kinds import holds, is_date
from margrave.inference.models import OfOneColumn, Proportion
from margrave.inference.parts import Where
from margrave.inference.sources import size_of
from margrave.schema import Schema


@dataclass(frozen=True)
class Total(OfOneColumn):
    """The total of a column of numbers over all records; those that lack a value add nothing.

    With N the number of real records that a data set stands for, n its own and x̄ their mean: N x̄, with the variance
    N² s² / n. N differs among the data sets as far as the noise leaves it open, so that intervals hold its
    uncertainty too; where the number of records is public (a unit that replaces them) it has none.

    **Of which population.** As with all of these analyses, that from which the real records were sampled: the interval
    is for N μ, what as many records have on average. The total of the very records in the table is nearer: where the
    table is itself the whole population, the interval is too wide, by what sampling adds. For a population
    of another, known size M, take M times the interval of ``Mean``.

    >>> fitted = Total("x")(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
    >>> fitted.names, fitted.estimates.tolist(), round(float(fitted.variances[0]), 6)
    (('total(x)',), [6.0], 3.0)
    """

    column: str
    where: Where = field(default=None, kw_only=True, hash=False)

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The column is there and holds numbers."""
        self.check_part(frame, schema)
        line_of(frame, self.column)
        if is_date(frame[self.column]):
            raise InputError(f"Column {self.column!r} holds dates, which have no total.", remedy="Ask for their mean.")

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        self.check(frame)
        return _total(f"total({self.column})", line_of(self.part(frame, empty=True), self.column), frame)


@dataclass(frozen=True)
class Count(OfOneColumn):
    """How many records have a value, None for the missing one: N times their share of all records.

    N, and the population, are those of :class:`Total`. The variance is N² p̃ (1 − p̃) / n with
    p̃ = (count + ½) / (n + 1), so that a value that no record has still leaves some uncertainty.
    """

    column: str
    value: Any
    where: Where = field(default=None, kw_only=True, hash=False)
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)

    def by_value(self, schema: Schema) -> tuple[str, ...]:
        """The column, where the value shares its code with others."""
        return Proportion(self.column, self.value, where=self.where).by_value(schema)

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The column is there and may hold the value."""
        Proportion(self.column, self.value, where=self.where).check(frame, schema)

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        has = holds(column_of(self.part(frame, empty=True), self.column), self.column, self.value)
        total, rows = size_of(frame)
        shrunk = (has.sum() + 0.5) / (rows + 1.0)
        name = f"{self.column} missing" if self.value is None else f"{self.column} = {self.value}"
        return scalar(f"count({name})", total * has.sum() / rows, total**2 * shrunk * (1.0 - shrunk) / rows)


def _total(name: str, x: pd.Series, frame: pd.DataFrame) -> Fitted:
    """Of values in a data set or in a part of it: the records outside of the part add nothing."""
    total, rows = size_of(frame)
    if rows < 2:
        raise ValueError(f"{name} of {rows} records has no variance")
    mean = float(x.sum()) / rows
    variance = (float((x**2).sum()) / rows - mean**2) * rows / (rows - 1)
    return scalar(name, total * mean, total**2 * variance / rows)
