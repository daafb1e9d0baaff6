"""Patterns in the texts of a column, for drafts: dates and their formats, numbers, free text.

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import product

from margrave.schema.column_profile import MAX_LISTED_TEXTS
from margrave.schema.parsing import parse_moment, parser
from margrave.schema.spellings import folded

#: A number with a point or comma, for decimals or thousands.
NUMBER = re.compile(r"[-+]?(\d+([.,]\d+)?|\d{1,3}(\.\d{3})+(,\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)")
#: Share of rows that must hold a number for a column to be a column of numbers.
MIN_NUMBER_SHARE = 0.9


def date_format(texts: Collection[str]) -> str | None:
    """Return the format of all texts as dates or times: a pattern, "" for ISO 8601, None if there
    is none.

    >>> date_format(["31/12/2023", "01/02/2023"]), date_format(["2023-12-31"]), date_format(["12/31/2023 05:00"])
    ('%d/%m/%Y', '', '%m/%d/%Y %H:%M')
    >>> date_format(["31/12/2023", "unknown"]) is None
    True
    """
    days = (
        "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
        "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    )  # fmt: skip
    times = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
    iso = ""
    if all(re.match(r"\d{4}-\d\d-\d\d", t) and parse_moment(t) is not None for t in texts):
        return iso
    first = next(iter(texts))
    likely = [
        f"{day}{time}"
        for day, time in product(days, times)
        if parser(f"{day}{time}")(first) is not None
    ]
    return next((p for p in likely if _dates(p, texts)), None)


def _dates(pattern: str, texts: Iterable[str]) -> bool:
    compact = pattern.startswith("%Y%m%d")  # or a number of eight digits
    read = parser(pattern)
    return all(
        (moment := read(t)) is not None
        and (not compact or (len(t) >= 8 and 1900 <= moment.year < 2100))
        for t in texts
    )


def either_way(pattern: str, texts: Collection[str]) -> bool:
    """Return True if day and month could be swapped in all of the texts."""
    # Orders of day and month that one text may fit both of. Most countries write the day first.
    otherwise = {"%d/%m": "%m/%d", "%d-%m": "%m-%d"}
    swapped = next(
        (pattern.replace(a, b) for a, b in otherwise.items() if pattern.startswith(a)), None
    )
    return swapped is not None and _dates(swapped, texts)


def comma_numbers(texts: Iterable[str]) -> bool:
    """Return True if the texts are numbers with commas, for decimals or thousands."""
    listed = list(texts)
    return any("," in t for t in listed) and all(NUMBER.fullmatch(t) for t in listed)


def dotted_thousands(texts: Iterable[str]) -> bool | None:
    """Return True if these are whole numbers with dots between thousands; None if they may be, or
    numbers of three decimals.

    >>> dotted_thousands(["871", "12.345"]), dotted_thousands(["1.204.000"]), dotted_thousands(["3.250", "2.980"])
    (True, True, None)
    >>> dotted_thousands(["12.345", "0.871"]), dotted_thousands(["12.345", "12.5"]), dotted_thousands(["871", "1204"])
    (False, False, False)
    """
    listed = list(texts)
    dots = {t.count(".") for t in listed}
    if dots <= {0} or not all(
        re.fullmatch(r"[-+]?(\d{1,3}|[1-9]\d{0,2}(\.\d{3})+)", t) for t in listed
    ):
        return False
    return None if dots == {1} else True


def partly_dates(counts: Counter[str]) -> bool:
    """Return True if most rows hold what looks like a date, however it is written.

    >>> partly_dates(Counter(["31/12/2023", "2023-12-31", "unknown"])), partly_dates(Counter(["1.2", "10.11.12"]))
    (True, False)
    """
    # A text like a date, with or without a time.
    date = re.compile(
        r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)|\d{1,2}[- ]?\.?[^\W\d]{3,9}\.?[- ]\d{2,4}"
        r"|[^\W\d]{3,9}\.? \d{1,2}, \d{4})([T ]\d{1,2}:\d\d.*)?"
    )
    return 2 * sum(n for t, n in counts.items() if date.fullmatch(t)) > counts.total()


def mostly_numbers(counts: Counter[str]) -> bool:
    """Return True if nearly all rows hold a number, and some do not."""
    numbers = sum(n for t, n in counts.items() if NUMBER.fullmatch(t))
    return MIN_NUMBER_SHARE * counts.total() <= numbers < counts.total()


def alike(texts: Iterable[str]) -> list[list[str]]:
    """Return groups of texts that are equal up to case and blanks."""
    groups: dict[str, list[str]] = {}
    for text in sorted(texts):
        groups.setdefault(folded(text), []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def free_text(texts: Collection[str]) -> bool:
    """Return True if the texts are sentences, not categories."""
    if len(texts) <= MAX_LISTED_TEXTS:
        return False
    length, words = (sum(f(t) for t in texts) / len(texts) for f in (len, lambda t: len(t.split())))
    return length > 40 or words >= 6


def has_sentences(texts: Collection[str]) -> bool:
    """Return True if a text is a sentence, so that it may say something about a single person.

    >>> has_sentences(["Fell at home.", "no"]), has_sentences(["Called Mrs Jones about her result", "no"])
    (True, True)
    >>> has_sentences(["Never married", "Married, spouse in the army", "St. Mary's"])
    False
    """
    return any(
        len(words) >= 6 or (len(words) >= 3 and text.rstrip().endswith((".", "!", "?")))
        for text in texts
        for words in [text.split()]
    )
