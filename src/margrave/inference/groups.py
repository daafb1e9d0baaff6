"""An estimate for each group of records: means by ward, shares by sex."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import block_diag

from margrave.errors import InputError
from margrave.inference.columns import column_of
from margrave.inference.fits import Fitted
from margrave.inference.kinds import is_number, is_truth, levels_of
from margrave.inference.models import Mean, Proportion, Quantile
from margrave.inference.sources import ROWS, TOTAL, size_of
from margrave.inference.totals import Count, Total
from margrave.release.evidence import Condition
from margrave.schema import Integer, Schema
from margrave.typing import Clique, FloatArray

MOST = 50
"""Groups, at the most."""
KINDS = ("categorical", "ordinal", "boolean", "integer", "coded")

Grouped = Mean | Proportion | Quantile | Total | Count


@dataclass(frozen=True)
class By:
    """A ready model for each value of a column of categories: ``By(Mean("stay"), "ward")``.

    The estimates are ``mean(stay) | ward = a`` and so on; a group that a data set has too few records of is left out
    there, but its total is 0. Records that lack the group are in none.

    >>> frame = pd.DataFrame({"x": [1.0, 3.0, 5.0, 9.0], "g": ["a", "a", "b", "b"]})
    >>> fitted = By(Mean("x"), "g")(frame)
    >>> fitted.names, fitted.estimates.tolist()
    (('mean(x) | g = a', 'mean(x) | g = b'), [2.0, 7.0])
    """

    model: Grouped
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the model, and the groups'."""
        return tuple(dict.fromkeys([*self.model.columns, self.column]))

    @property
    def held(self) -> Mapping[str, Condition]:
        """What the model's columns are held to."""
        return self.model.held

    def singles(self, name: str) -> Mapping[str, Condition]:
        """The group that an estimate is of."""
        return {self.column: name.partition(f" | {self.column} = ")[2]}

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the model."""
        return tuple(getattr(self.model, "notes", ()))

    @property
    def bounds(self) -> Any:
        """Those of the model."""
        return getattr(self.model, "bounds", None)

    def leans(self, name: str, apart: Clique) -> bool:
        """All estimates are about all of the columns."""
        return True

    def joins(self, name: str) -> Clique:
        """All of them."""
        return self.columns

    def by_value(self, schema: Schema) -> tuple[str, ...]:
        """Those of the model, and the groups' where they are whole numbers, which may share bins."""
        groups = (self.column,) if isinstance(schema.column(self.column), Integer) else ()
        return tuple(dict.fromkeys([*self.model.by_value(schema), *groups]))

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The model's column is right, and the groups' one has few values."""
        self.model.check(frame, schema)
        column_of(frame, self.column)
        if schema is None:
            return
        column = schema.column(self.column)
        if column.kind not in KINDS:
            raise _no_groups(self.column, "holds no categories")
        values = column.high - column.low + 1 if isinstance(column, Integer) else column.size - column.missing
        if values > MOST:
            raise _no_groups(self.column, f"has {values} values")

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        found = list(self._groups(frame))
        if not found:
            raise ValueError(f"no group of column {self.column!r} has enough records")
        names = tuple(f"{f.names[0]} | {self.column} = {level}" for level, f in found)
        estimates = np.array([f.estimates[0] for _, f in found])
        matrix = block_diag(*(f.covariance for _, f in found)) + self._shared(estimates, frame)
        fitted = Fitted.of(names, estimates, matrix)
        return Fitted(
            fitted.names, fitted.estimates, fitted.variances, fitted.covariance, chosen=True, days=found[0][1].days
        )

    def _groups(self, frame: pd.DataFrame) -> Iterator[tuple[Any, Fitted]]:
        column, total = column_of(frame, self.column), isinstance(self.model, Total | Count)
        for level in _levels(column, self.column):
            part = frame[(column == level).fillna(False).astype(bool)]
            part.attrs = dict(zip((TOTAL, ROWS), size_of(frame), strict=True))
            try:
                found = self.model(part) if total or len(part) else None
            except ValueError:  # too few records
                found = None
            if found is not None:
                yield level, found

    def _shared(self, estimates: FloatArray, frame: pd.DataFrame) -> FloatArray:
        """The covariance between groups: none of means, but totals of a sample of n share it: −t_a t_b / n."""
        k = len(estimates)
        if not isinstance(self.model, Total | Count):
            return np.zeros((k, k))
        return np.asarray((np.eye(k) - 1.0) * np.outer(estimates, estimates) / size_of(frame)[1])


def _levels(column: pd.Series, name: str) -> list[Any]:
    """The groups: the values of a column of whole numbers too, in which truths come as 0 and 1 if some are missing."""
    if is_truth(column):
        return [False, True]
    levels = levels_of(column)
    if levels is None and is_number(column) and not (column.dropna() % 1).any():
        levels = sorted(int(v) for v in column.dropna().unique())
    if levels is None:
        raise _no_groups(name, "holds no categories")
    if len(levels) > MOST:
        raise _no_groups(name, f"has {len(levels)} values")
    return levels


def _no_groups(name: str, why: str) -> InputError:
    return InputError(
        f"Column {name!r} {why}, which makes no groups.",
        remedy=f"Name a column of at most {MOST} categories, or choose records in a function: frame[frame.age > 65].",
    )
