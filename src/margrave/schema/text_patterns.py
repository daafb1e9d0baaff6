"""Patterns in the texts of a column, for drafts: dates and their formats, numbers, free text.

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

import pyarrow.compute as pc

from margrave.schema.column_profile import MAX_LISTED_TEXTS
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.learn import is_nameable
from margrave.schema.parsing import SPACES, DateReader, Mask
from margrave.schema.spellings import folded

#: A number with a point or comma, for decimals or thousands.
NUMBER = re.compile(r"[-+]?(\d+([.,]\d+)?|\d{1,3}(\.\d{3})+(,\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)")
#: Share of rows that must hold a number for a column to be a column of numbers.
MIN_NUMBER_SHARE = 0.9


def date_format(texts: DistinctTexts) -> str | None:
    """Return the format of all texts as dates or times: a pattern, "" for ISO 8601, None if there
    is none.

    >>> samples = ["31/12/2023", "01/02/2023"], ["2023-12-31"], ["12/31/2023 05:00"], ["31/12/2023", "unknown"]
    >>> [date_format(DistinctTexts.of(texts)) for texts in samples]
    ['%d/%m/%Y', '', '%m/%d/%Y %H:%M', None]
    """
    days = (
        "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
        "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%y-%m-%d", "%y/%m/%d",
        "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    )  # fmt: skip
    times = (
        "", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p",
    )  # fmt: skip
    iso = ""
    if texts.all_match(r"\d{4}-\d\d-\d\d(?s:.*)") and texts.dates(iso) is not None:
        return iso
    first = next(iter(texts))
    likely = [
        f"{day}{time}"
        for day, time in product(days, times)
        if DateReader(f"{day}{time}")(first) is not None
    ]
    return next((p for p in likely if _are_dates(p, texts)), None)


def times_of_day(texts: DistinctTexts) -> bool:
    """Return True if all texts are times of day without a date.

    Hours up to 47 are of the next day.

    >>> samples = ["08:15", "23:59:00.5"], ["08:15", "25:40"], ["08:15", "late"], ["2020-01-01 08:15"]
    >>> [times_of_day(DistinctTexts.of(texts)) for texts in samples]
    [True, True, False, False]
    """
    return texts.all_match(r"([0-3]?\d|4[0-7]):[0-5]\d(:[0-5]\d(\.\d+)?)?")


def _are_dates(pattern: str, texts: DistinctTexts) -> bool:
    found = texts.dates(pattern)
    if found is None or not pattern.startswith("%Y%m%d"):
        return found is not None
    years = found.times.astype("datetime64[Y]").astype(int) + 1970  # or a number of eight digits
    return bool((texts.lengths >= 8).all() and (years >= 1900).all() and (years < 2100).all())


def either_way(pattern: str, texts: DistinctTexts) -> bool:
    """Return True if the month, or a year of two digits, could come first in all of the texts.

    >>> samples = ["20-01-15", "21-11-30"], ["45-01-15"], ["15-01-45"]
    >>> [either_way("%d-%m-%y", DistinctTexts.of(texts)) for texts in samples]
    [True, True, False]
    """
    # Orders of day, month and year that one text may fit several of. Most countries write the day first.
    otherwise = (
        ("%d/%m", "%m/%d"), ("%d-%m", "%m-%d"),
        *((f"%d{sign}%m{sign}%y", f"%y{sign}%m{sign}%d") for sign in "/-"),
    )  # fmt: skip
    swapped = (pattern.replace(a, b) for a, b in otherwise if pattern.startswith(a))
    return any(_are_dates(other, texts) for other in swapped)


def comma_numbers(texts: DistinctTexts) -> bool:
    """Return True if the texts are numbers with commas, for decimals or thousands."""
    return texts.all_match(NUMBER.pattern) and bool(texts.counts_of(",").any())


def dotted_thousands(texts: DistinctTexts) -> bool | None:
    """Return True if these are whole numbers with dots between thousands; None if they may be, or
    numbers of three decimals.

    >>> samples = ["871", "12.345"], ["1.204.000"], ["3.250", "2.980"], ["12.345", "0.871"], ["871", "1204"]
    >>> [dotted_thousands(DistinctTexts.of(texts)) for texts in samples]
    [True, True, None, False, False]
    """
    if not texts.all_match(r"[-+]?(\d{1,3}|[1-9]\d{0,2}(\.\d{3})+)"):
        return False
    dots = texts.counts_of(r"\.")
    if not dots.any():
        return False
    return None if (dots == 1).all() else True


def measured(texts: DistinctTexts) -> bool:
    """Return True if nearly all rows hold a number, and many have a unit, a sign or blanks between thousands.

    >>> ways = [str, "{} kg".format, "{}%".format, "<{}".format, "{} A".format, "P{}".format, "1 {}".format]
    >>> [measured(DistinctTexts.of(map(way, [*range(100, 140), 7]))) for way in ways[:4]]
    [False, True, True, True]
    >>> [measured(DistinctTexts.of(map(way, [*range(100, 140)]))) for way in ways[5:]]
    [False, False]
    """
    # Rows whose number has the same unit, at least.
    min_unit_share = 0.9
    if len(texts) <= MAX_LISTED_TEXTS:
        return False
    blank, currency, less = "[ '\u2019\u00a0\u202f]", "[$\u20ac\u00a3]", "[<>\u2264\u2265~]"
    grouped = rf"\d{{1,3}}({blank}\d{{3}})+"
    if texts.all_match(grouped) and texts.lengths.min() == texts.lengths.max():
        return False  # numbers of phones and the like
    units = "kg|g|mg|cm|mm|m|km|h|d|min|s|ml|l|mmhg|bpm|eur|usd|gbp|chf"
    unit = rf"(\s?(%|{currency}|(?i:{units}))|\s[^\W\d]{{1,10}})?"
    amounts = texts.matches(rf"{less}?\s?({currency}\s?)?[-+]?(\d+|{grouped})([.,]\d+)?{unit}")
    numbers = texts.rows[texts.matches(NUMBER.pattern)].sum()
    enough = MIN_NUMBER_SHARE * texts.total()
    if numbers >= enough or texts.rows[amounts].sum() < enough:
        return False
    found = pc.utf8_trim(pc.replace_substring_regex(texts.texts, r"^.*[0-9]", ""), SPACES)
    letters = DistinctTexts.joined(found, texts.rows)
    named = letters.keep(letters.matches(r"[^\W\d]+"))
    return not len(named) or bool(named.rows.max() >= min_unit_share * named.total())


def partly_dates(counts: DistinctTexts) -> bool:
    """Return True if most rows hold what looks like a date, however it is written.

    >>> samples = ["31/12/2023", "2023-12-31", "unknown"], ["1.2", "10.11.12"]
    >>> [partly_dates(DistinctTexts.of(texts)) for texts in samples]
    [True, False]
    """
    # A text like a date, with or without a time.
    date = (
        r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)|\d{1,2}[- ]?\.?[^\W\d]{3,9}\.?[- ]\d{2,4}"
        r"|[^\W\d]{3,9}\.? \d{1,2}, \d{4})([T ]\d{1,2}:\d\d.*)?"
    )
    return bool(2 * counts.rows[counts.matches(date)].sum() > counts.total())


def mostly_numbers(counts: DistinctTexts) -> bool:
    """Return True if nearly all rows hold a number, and some do not."""
    numbers = counts.rows[counts.matches(NUMBER.pattern)].sum()
    return bool(MIN_NUMBER_SHARE * counts.total() <= numbers < counts.total())


def alike(texts: Iterable[str]) -> list[list[str]]:
    """Return groups of texts that are equal up to case and blanks."""
    groups: dict[str, list[str]] = {}
    for text in sorted(texts):
        groups.setdefault(folded(text), []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def free_text(texts: DistinctTexts) -> bool:
    """Return True if the texts are sentences or other texts of several words, not categories.

    A few long texts are categories if each stands on many rows on average.

    >>> notes = [f"Fell on day {i % 7} (Dr. {i})" for i in range(400)]
    >>> free_text(DistinctTexts.of(notes * 2)), free_text(DistinctTexts.of(["Fell at home", "Fell at work"] * 99))
    (True, False)
    """
    # Distinct texts up to which only long ones on few rows each are not categories; and their shares of the rows
    # above which they are not, if they have several words on average, or if a part of them are sentences. Texts that
    # are nearly unique are left out for that reason.
    max_categories, max_share_of_words, max_share_of_sentences, near_unique = 100, 0.1, 0.01, 0.5
    min_words, min_sentences = 4, 0.1
    if len(texts) <= MAX_LISTED_TEXTS:
        return False
    share = len(texts) / texts.total()
    if texts.lengths.mean() > 40 or texts.words.mean() >= 6:
        listed = len(texts) <= max_categories and all(map(is_nameable, texts))
        return not listed or share > max_share_of_words
    if len(texts) <= max_categories or share >= near_unique:
        return False
    if share > max_share_of_words and texts.words.mean() >= min_words:
        return True
    return share > max_share_of_sentences and bool(_sentences(texts).mean() >= min_sentences)


def has_sentences(texts: DistinctTexts) -> bool:
    """Return True if a text is a sentence, so that it may say something about a single person.

    >>> samples = ["Fell at home."], ["Called Mrs Jones about her result"], ["Never married", "St. Mary's"]
    >>> [has_sentences(DistinctTexts.of(texts)) for texts in samples]
    [True, True, False]
    """
    return bool(_sentences(texts).any())


def _sentences(texts: DistinctTexts) -> Mask:
    ended = texts.matches(r"(?s:.*)[.!?]")
    found: Mask = (texts.words >= 6) | ((texts.words >= 3) & ended)
    return found
