"""Columns of a frame as the ready models take them, and what they give back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.inference.fits import Fitted
from margrave.inference.kinds import days_of, is_date, is_number, some
from margrave.typing import FloatArray


def scalar(name: str, estimate: float, variance: float, *, days: bool = False) -> Fitted:
    """One estimate."""
    return replace(Fitted.of((name,), [float(estimate)], [[float(variance)]]), days=days)


def column_of(frame: pd.DataFrame, name: str) -> pd.Series:
    """The column of that name, or an InputError."""
    if not isinstance(name, str) or name not in frame.columns:
        raise InputError(f"There is no column {name!r}.", remedy=f"The columns are: {some(frame.columns)}.")
    return frame[name]


def line_of(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of numbers, or of dates as days since 1970; missing ones are NaN."""
    column = column_of(frame, name)
    if is_date(column):
        column = days_of(column)
    if not is_number(column):
        raise InputError(
            f"Column {name!r} holds no numbers.", remedy="For a column of categories, ask for a proportion."
        )
    return column.astype(float)


def numbers_of(frame: pd.DataFrame, name: str) -> FloatArray:
    """The numbers that are not missing. An empty frame, whose types alone are looked at, gives none."""
    x = line_of(frame, name).dropna().to_numpy(dtype=np.float64)
    if len(frame):
        enough(len(x), name)
    return np.asarray(x)


def enough(n: int, name: str) -> None:
    """A ValueError where there are too few values for a variance."""
    if n < 2:
        raise ValueError(f"column {name!r} has {n} values that are not missing")
