"""Round bounds around values, for drafts.

**Privacy:** NOT private: the bounds depend on the rows.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def rounded_outwards(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Return bounds around two values, multiples of a round step (1, 2 or 5 and zeros), about a
    tenth of their distance.
    """
    width = (high - low) / 10 if high > low else max(abs(high), Decimal(1))
    power = Decimal(10) ** math.floor(width.log10())
    step = max(n * power for n in (1, 2, 5) if n * power <= width)
    down = (low / step).to_integral_value(ROUND_FLOOR) * step
    up = (high / step).to_integral_value(ROUND_CEILING) * step
    return down, up


def whole_months(low: datetime, high: datetime) -> tuple[date, date]:
    first, last = date(low.year, low.month, 1), date(high.year, high.month, 28)
    if (high - low).days > 730:
        first, last = date(low.year, 1, 1), date(high.year, 12, 31)
    while last < date.max and (last + timedelta(days=1)).month == last.month:
        last += timedelta(days=1)
    return first, last


def of_whole_period(low: date, high: date) -> bool:
    """Return True if bounds are those of one month, of one year or of two: the time that a table is about.

    >>> of_whole_period(date(2024, 1, 1), date(2024, 12, 31)), of_whole_period(date(1931, 1, 1), date(2024, 12, 31))
    (True, False)
    """
    after = high + timedelta(days=1)
    months = 12 * (after.year - low.year) + after.month - low.month
    return low.day == after.day == 1 and months in (1, 12, 24) and (months == 1 or low.month == 1)


def day_of(ordinal: float) -> date:
    """Return the date of its ordinal number."""
    return date.fromordinal(int(ordinal))
