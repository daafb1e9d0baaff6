"""Marks for a missing value among numbers: -9, 999 or 9999, a date such as 1900-01-01, and words such as "unknown".

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.parsing import text
from margrave.schema.text_patterns import MIN_NUMBER_SHARE

V = TypeVar("V", int, float)

#: Numbers below zero (if all others are not) and words are missing-value codes up to this many.
MAX_MISSING_CODES = 3


def sentinels(values: Mapping[V, int], min_rows: int = 3) -> list[V]:
    """Return numbers that look like missing-value codes: frequent, and far from the others or alone
    below zero.
    """
    # Share of the rows that a missing-value code is on at least.
    min_share = 0.001
    # Distance of a missing-value code from the other values, as a share of their range.
    min_gap = 0.5
    order, enough = sorted(values), max(min_rows, min_share * sum(values.values()))
    below = [v for v in order if v < 0]
    alone = len(below) <= MAX_MISSING_CODES < len(order) - len(below) and all(
        values[v] >= enough for v in below
    )
    rest = order[len(below) :] if alone else order
    while (
        len(rest) > MAX_MISSING_CODES
        and rest[-1] - rest[-2] > min_gap * (rest[-2] - rest[0])
        and values[rest[-1]] >= enough
    ):
        rest = rest[:-1]
    while (
        len(rest) > MAX_MISSING_CODES
        and rest[1] - rest[0] > min_gap * (rest[-1] - rest[1])
        and values[rest[0]] >= enough
    ):
        rest = rest[1:]
    return [v for v in order if not rest[0] <= v <= rest[-1]] if rest else []


def without_words(
    evidence: ColumnProfile, is_number: Callable[[str], bool], min_rows: int = 3
) -> tuple[ColumnProfile, list[str]]:
    """Return a column of numbers without its few repeated words, which count as missing; and these
    words.
    """
    texts = evidence.counts
    words = [t for t, n in texts.most_common() if not re.search(r"\d", t) and n >= min_rows]
    numbers = Counter({t: n for t, n in texts.items() if t not in words})
    if (
        not words
        or len(words) > MAX_MISSING_CODES
        or len(numbers) <= MAX_LISTED_TEXTS
        or numbers.total() < MIN_NUMBER_SHARE * texts.total()
    ):
        return evidence, []
    return (
        (replace(evidence, counts=numbers, missing=True), words)
        if all(map(is_number, numbers))
        else (evidence, [])
    )


def marked(
    values: Mapping[Any, int],
    words: Callable[[list[str]], str],
    text_of: Callable[[Any], Any] = text,
) -> str:
    """Return a question on numbers that look like missing-value codes; no text if there are none.

    Args:
        values: Numbers of rows by value.
        words: Returns the question, from the marks.
        text_of: Returns how a value is written.
    """
    marks = sentinels(values)
    return words([str(text_of(v)) for v in marks]) if marks else ""
