"""What the texts of a column look like, for drafting: dates and how they are written, numbers, free text.

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

import re
from collections import Counter
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

NUMBER = re.compile(r"[-+]?(\d+([.,]\d+)?|\d{1,3}(\.\d{3})+(,\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)")
"""A number with a point or a comma, of decimals or of thousands."""
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)|\d{1,2}[- ]?\.?[^\W\d]{3,9}\.?[- ]\d{2,4}"
    r"|[^\W\d]{3,9}\.? \d{1,2}, \d{4})([T ]\d{1,2}:\d\d.*)?"
)
"""What looks like a date, and perhaps a time."""
MOST = 0.9


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
    >>> comma_numbers(["1,234.50", "12.5"])
    True
    """
    listed = list(texts)
    return any("," in t for t in listed) and all(NUMBER.fullmatch(t) for t in listed)


def dotted_thousands(texts: Iterable[str]) -> bool | None:
    """Whether these are whole numbers with dots between thousands; None if they may be, or numbers of three decimals.

    >>> dotted_thousands(["871", "12.345"]), dotted_thousands(["1.204.000"]), dotted_thousands(["3.250", "2.980"])
    (True, True, None)
    >>> dotted_thousands(["12.345", "0.871"]), dotted_thousands(["12.345", "12.5"]), dotted_thousands(["871", "1204"])
    (False, False, False)
    """
    listed = list(texts)
    dots = {t.count(".") for t in listed}
    if dots <= {0} or not all(re.fullmatch(r"[-+]?(\d{1,3}|[1-9]\d{0,2}(\.\d{3})+)", t) for t in listed):
        return False
    return None if dots == {1} else True


def partly_dates(counts: Counter[str]) -> bool:
    """Whether most rows hold what looks like a date, however it is written.

    >>> partly_dates(Counter(["31/12/2023", "2023-12-31", "unknown"])), partly_dates(Counter(["1.2", "10.11.12"]))
    (True, False)
    """
    return 2 * sum(n for t, n in counts.items() if DATE.fullmatch(t)) > counts.total()


def mostly_numbers(counts: Counter[str]) -> bool:
    """Whether nearly all rows hold a number, and some do not."""
    numbers = sum(n for t, n in counts.items() if NUMBER.fullmatch(t))
    return MOST * counts.total() <= numbers < counts.total()


def alike(texts: Iterable[str]) -> list[list[str]]:
    """Texts that are equal but for case and blanks, together.

    >>> alike(["SURGERY", "Surgery", "general  ward", "General ward", "ICU"])
    [['General ward', 'general  ward'], ['SURGERY', 'Surgery']]
    """
    groups: dict[str, list[str]] = {}
    for text in sorted(texts):
        groups.setdefault(folded(text), []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def folded(text: str) -> str:
    """A text without what tells apart those that are equal but for case and blanks."""
    return " ".join(text.split()).casefold()


def free_text(texts: Collection[str]) -> bool:
    """Whether these are sentences and no categories."""
    if len(texts) <= FEW:
        return False
    length, words = (sum(f(t) for t in texts) / len(texts) for f in (len, lambda t: len(t.split())))
    return length > LONG or words >= WORDY
