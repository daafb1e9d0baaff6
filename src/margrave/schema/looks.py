"""What the texts of a column look like, for drafting: dates and how they are written, numbers, free text.

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import product

from margrave.schema.evidence import FEW
from margrave.schema.values import parse_moment, parser

LONG, WORDY = 40, 6
"""Texts of so many characters, or words, on average are sentences."""

DAYS = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
    "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
ISO = ""
OTHERWISE = {"%d/%m": "%m/%d", "%d-%m": "%m-%d"}
"""Orders of day and month that one text may have both of; days come first in most countries."""


def date_format(texts: Collection[str]) -> str | None:
    """How all of these texts are written as dates or times: a pattern, "" for ISO 8601, None if they are none.

    >>> date_format(["31/12/2023", "01/02/2023"]), date_format(["2023-12-31"]), date_format(["12/31/2023 05:00"])
    ('%d/%m/%Y', '', '%m/%d/%Y %H:%M')
    >>> date_format(["31/12/2023", "unknown"]) is None
    True
    """
    if all(re.match(r"\d{4}-\d\d-\d\d", t) and parse_moment(t) is not None for t in texts):
        return ISO
    first = next(iter(texts))
    likely = [f"{day}{time}" for day, time in product(DAYS, TIMES) if parser(f"{day}{time}")(first) is not None]
    return next((p for p in likely if _dates(p, texts)), None)


def _dates(pattern: str, texts: Iterable[str]) -> bool:
    compact = pattern.startswith("%Y%m%d")  # or a number of eight digits
    read = parser(pattern)
    return all(
        (moment := read(t)) is not None and (not compact or (len(t) >= 8 and 1900 <= moment.year < 2100)) for t in texts
    )


def either_way(pattern: str, texts: Collection[str]) -> bool:
    """Whether day and month could be the other way round in all of the texts."""
    swapped = next((pattern.replace(a, b) for a, b in OTHERWISE.items() if pattern.startswith(a)), None)
    return swapped is not None and _dates(swapped, texts)


def comma_numbers(texts: Iterable[str]) -> bool:
    """Whether these are numbers with commas, decimal or of thousands.

    >>> comma_numbers(["81,5", "70"]), comma_numbers(["1.234,50"]), comma_numbers(["1,234.5"]), comma_numbers(["70"])
    (True, True, True, False)
    """
    listed = list(texts)
    forms = r"[-+]?(\d+(,\d+)?|\d{1,3}(\.\d{3})+(,\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)"
    return all(re.fullmatch(forms, t) for t in listed) and any("," in t for t in listed)


def free_text(texts: Collection[str]) -> bool:
    """Whether these are sentences and no categories."""
    if len(texts) <= FEW:
        return False
    length, words = (sum(f(t) for t in texts) / len(texts) for f in (len, lambda t: len(t.split())))
    return length > LONG or words >= WORDY
