"""The part of the records that a ready model is of: what ``where`` holds columns to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.inference.columns import column_of
from margrave.inference.kinds import some, value_of
from margrave.release.evidence import Condition, codes_of, widened
from margrave.schema import Schema

Where = Mapping[str, Condition] | None
"""What columns are held to, ``{"sex": "F", "age": (30, 40)}``: a plain value, a list of values, or a pair (low, high)
for a range whose ends belong to it, with None for an open one. None alone stands for missing."""


class OfPart:
    """An analysis of the records that ``where`` describes."""

    where: Where

    @property
    def held(self) -> Mapping[str, Condition]:
        """What the columns are held to."""
        return self.where or {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Which records are analysed, where it is a part of them."""
        return (f"Of the records with {in_words(self.held)}.",) if self.held else ()

    def finer(self, schema: Schema) -> tuple[str, ...]:
        """The columns that are held to values which share a code with others."""
        return tuple(a for a, wanted in self.held.items() if widened(schema, a, wanted) is not None)

    def check_part(self, frame: pd.DataFrame, schema: Schema | None) -> None:
        """The columns are there, and may hold the values."""
        if not isinstance(self.held, Mapping):
            raise InputError(f"where is {self.where!r}.", remedy='Give columns and values, such as {"sex": "F"}.')
        for name, wanted in self.held.items():
            _mask(frame, name, wanted)
            if schema is not None:
                codes_of(schema, name, wanted)

    def part(self, frame: pd.DataFrame, *, empty: bool = False) -> pd.DataFrame:
        """The records of it; a ``ValueError`` where there are none, unless it may be empty."""
        for name, wanted in self.held.items():
            frame = frame[_mask(frame, name, wanted)]
        if not empty and self.held and not len(frame):
            raise ValueError(f"no record has {in_words(self.held)}")
        return frame


def in_words(held: Mapping[str, Condition]) -> str:
    """What columns are held to.

    >>> in_words({"sex": "F", "age": (30, 40), "ward": ["a", None]})
    'sex = F, age from 30 to 40 and ward = a or missing'
    >>> in_words({"pay": (1000, None), "age": (None, 30)})
    'pay from 1000 and age up to 30'
    """
    told = [f"{name} {_of(wanted)}" for name, wanted in held.items()]
    return " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)


def _of(wanted: Condition) -> str:
    if isinstance(wanted, tuple):
        low, high = wanted
        if low is None or high is None:
            return f"up to {high}" if low is None else f"from {low}"
        return f"from {low} to {high}"
    values = wanted if isinstance(wanted, list) else [wanted]
    return f"= {some(['missing' if v is None else v for v in values], ' or ')}"


def _mask(frame: pd.DataFrame, name: str, wanted: Condition) -> Any:
    column = column_of(frame, name)
    if isinstance(wanted, tuple):
        low, high = _ends(column, name, wanted)
        above, below = (True if low is None else column >= low), (True if high is None else column <= high)
        return column.notna() & above & below
    values = wanted if isinstance(wanted, list) else [wanted]
    if not values:
        raise InputError(f"Column {name!r} is held to no value at all.", remedy="Name at least one.")
    masks = [column.isna() if v is None else column == value_of(column, name, v) for v in values]
    return np.logical_or.reduce([m.to_numpy(dtype=np.bool_, na_value=False) for m in masks])


def _ends(column: pd.Series, name: str, wanted: tuple[Any, ...]) -> tuple[Any, Any]:
    if len(wanted) != 2 or wanted == (None, None):
        raise InputError(
            f"The range for column {name!r} does not have two ends.",
            remedy="Give (low, high), None for one that is open.",
        )
    if isinstance(column.dtype, pd.CategoricalDtype) and not column.cat.ordered:
        raise InputError(f"Column {name!r} has no order, so it takes no range.", remedy="List the values instead.")
    low, high = (None if end is None else value_of(column, name, end) for end in wanted)
    return low, high
