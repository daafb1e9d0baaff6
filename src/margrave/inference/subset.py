"""Analyses of a part of the records: the values that ``where`` holds columns to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.inference.columns import check_not_person_id, column_of, value_of
from margrave.inference.fitted import Estimand
from margrave.release.conditions import Condition, codes_of, cut_of, in_words, with_missing
from margrave.schema import Schema

Where = Mapping[str, Condition] | None


@dataclass(frozen=True)
class SubsetEstimand(Estimand):
    """An analysis of all records, or of those that ``where`` selects.

    Attributes:
        where: Conditions by column, ``{"sex": "F", "age": (30, 40)}``: a value, a list of
            values, or a range (low, high) that includes its ends, None for an open end. A plain
            None selects missing values.
    """

    where: Where = field(default=None, kw_only=True, hash=False)

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """The conditions, empty if all records are analyzed."""
        return self.where or {}

    @property
    def subset_notes(self) -> tuple[str, ...]:
        """A sentence that names the part of the records, if it is a part."""
        return (
            (f"Only records with {in_words(self.conditions)} are analyzed.",)
            if self.conditions
            else ()
        )

    def check_where(self, frame: pd.DataFrame, schema: Schema | None) -> None:
        """Raise `InputError` if a condition names no column, or a value that it cannot hold."""
        if not isinstance(self.conditions, Mapping):
            raise InputError(
                f"where is {self.where!r}.", remedy='Give columns and values, such as {"sex": "F"}.'
            )
        check_not_person_id(self.conditions, frame)
        for name, condition in self.conditions.items():
            if schema is not None:
                codes_of(schema, name, condition)
                check_no_point(
                    schema, name, condition,
                    f"Give a range, where={{{name!r}: (low, high)}} in Python, or --where {name}=LOW..HIGH.",
                )  # fmt: skip
            _mask(frame, name, condition)

    def with_missing(self, schema: Schema) -> Self:
        """Return the analysis with None in place of the schema's missing-value codes."""
        if not self.conditions or not isinstance(self.conditions, Mapping):
            return self
        known = {a: wanted for a, wanted in self.conditions.items() if a in schema.domain}
        return replace(self, where={**self.conditions, **with_missing(schema, known)})

    def part(self, frame: pd.DataFrame, *, empty: bool = False) -> pd.DataFrame:
        """Return the records selected. Without ``empty``, none at all are a `ValueError`."""
        for name, condition in self.conditions.items():
            frame = frame[_mask(frame, name, condition)]
        if not empty and self.conditions and not len(frame):
            raise ValueError(f"no record has {in_words(self.conditions)}")
        return frame


def check_no_point(schema: Schema, name: str, condition: Condition, remedy: str) -> None:
    """Raise `InputError` for single values of real numbers or times, which hardly any record of a data set has."""
    cut = cut_of(schema, name, condition)
    if cut is not None and not cut.spans:
        raise InputError(
            f"{in_words({name: condition})} asks for a single value, of which the release knows the bin alone:"
            f" {cut.whole}.",
            remedy=remedy,
        )


def _mask(frame: pd.DataFrame, name: str, condition: Condition) -> Any:
    column = column_of(frame, name)
    if isinstance(condition, tuple):
        low, high = _range(column, name, condition)
        above = True if low is None else column >= low
        below = True if high is None else column <= high
        return column.notna() & above & below
    values = condition if isinstance(condition, list) else [condition]
    if not values:
        raise InputError(f"No value is given for column {name!r}.", remedy="Name at least one.")
    masks = [column.isna() if v is None else column == value_of(column, name, v) for v in values]
    return np.logical_or.reduce([m.to_numpy(dtype=np.bool_, na_value=False) for m in masks])


def _range(column: pd.Series, name: str, ends: tuple[Any, ...]) -> tuple[Any, Any]:
    if len(ends) != 2 or ends == (None, None):
        raise InputError(
            f"The range for column {name!r} does not have two ends.",
            remedy="Give (low, high), None for one that is open.",
        )
    if isinstance(column.dtype, pd.CategoricalDtype) and not column.cat.ordered:
        raise InputError(
            f"Column {name!r} has no order, so it takes no range.",
            remedy="List the values instead.",
        )
    low, high = (None if end is None else value_of(column, name, end) for end in ends)
    return low, high
