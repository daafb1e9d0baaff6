"""Parts of dates in formulas, where dates are days since 1970: ``C(year(visit))``, ``C(month(visit))``."""

from __future__ import annotations

from typing import Any

import pandas as pd

PARTS = ("year", "month", "weekday")


def year(days: Any) -> pd.Series:
    """The year of days since 1970.

    >>> year(pd.Series([0.0, 365.5])).tolist(), month(pd.Series([31.0])).tolist()
    ([1970.0, 1971.0], [2.0])
    """
    return _part(days, "year")


def month(days: Any) -> pd.Series:
    """The month, 1 to 12."""
    return _part(days, "month")


def weekday(days: Any) -> pd.Series:
    """The day of the week: 0 is Monday."""
    return _part(days, "day_of_week")


def _part(days: Any, part: str) -> pd.Series:
    """NaN where a date is missing, so numbers with fractions always."""
    return getattr(pd.to_datetime(pd.Series(days), unit="D").dt, part).astype(float)
