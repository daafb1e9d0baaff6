"""The forms of conditions, for people who wrote them in another way."""

from __future__ import annotations

import json
import re
from calendar import monthrange

from margrave.schema import Categorical, Column, Date, Ordinal, Timestamp


def date_form(column: Column) -> str:
    """Return how a column's dates and times are written, before a blank; "" for another column.

    >>> from datetime import date
    >>> date_form(Date("seen", date(2022, 1, 1), date(2023, 12, 31)))
    'Dates are written as year, month and day, such as 2022-01-01. '
    """
    if not isinstance(column, Date | Timestamp):
        return ""
    own = f", or by the format of the schema, {column.format}" if column.format else ""
    return f"Dates are written as year, month and day, such as {column.low.isoformat()[:10]}{own}. "


def month_form(column: Column, value: object) -> str:
    """Return how a month or a year is written for a column of dates or times; "" for any other value.

    >>> from datetime import date
    >>> month_form(Date("seen", date(2022, 1, 1), date(2023, 12, 31)), "2022-02").partition(" in Python")[0]
    "A month is a range of days: {'seen': ('2022-02-01', '2022-02-28')}"
    """
    found = re.fullmatch(r"\s*([12]\d{3})(?:[-/.](0?[1-9]|1[0-2]))?\s*", str(value))
    if not isinstance(column, Date | Timestamp) or found is None:
        return ""
    year, month = int(found[1]), int(found[2] or 0)
    first, last = (month, month) if month else (1, 12)
    ends = f"{year}-{first:02}-01", f"{year}-{last:02}-{monthrange(year, last)[1]:02}"
    command = f"{column.name}={ends[0]}..{ends[1]} on the command line"
    part = "month" if month else "year"
    return f"A {part} is a range of days: {{{column.name!r}: {ends}}} in Python, and {command}."


def several_form(column: Column, value: object) -> str:
    """Return how several values are written, if a text has categories between commas; "" for any other.

    >>> several_form(Categorical("ward", ["west", "east"]), "west, east")
    'Several values are written --where "ward=west|east" on the command line, and ["west", "east"] in Python. '
    """
    if not isinstance(column, Categorical | Ordinal) or not isinstance(value, str):
        return ""
    known = {c.lower(): c for c in column.categories}
    parts = [part.strip().lower() for part in re.split("[,;]", value)]
    if len(parts) < 2 or not all(part in known for part in parts):
        return ""
    meant = [known[part] for part in parts]
    command = f'--where "{column.name}={"|".join(meant)}"'
    return f"Several values are written {command} on the command line, and {json.dumps(meant)} in Python. "
