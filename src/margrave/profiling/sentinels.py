"""Marks for a missing value among numbers: -9, 999 or 9999, a date such as 1900-01-01, and words such as "unknown".

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from margrave.profiling.distinct_numbers import DistinctNumbers
from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.parsing import text
from margrave.schema.text_patterns import MIN_NUMBER_SHARE

#: Numbers below zero (if all others are not) and words are missing-value codes up to this many.
MAX_MISSING_CODES = 3


def sentinels(values: DistinctNumbers, min_rows: int = 3) -> tuple[int, int]:
    """Return how many of the least and of the greatest numbers look like missing-value codes.

    Such numbers are frequent, and far from the others or alone below zero.
    """
    # Share of the rows that a missing-value code is on at least.
    min_share = 0.001
    # Distance of a missing-value code from the other values, as a share of their range.
    min_gap = 0.5
    order, rows = values.points, values.rows
    enough = max(min_rows, min_share * values.total)
    below = int(np.searchsorted(order, 0.0))
    alone = below <= MAX_MISSING_CODES < len(order) - below and bool((rows[:below] >= enough).all())
    start, end = below if alone else 0, len(order)
    while (
        end - start > MAX_MISSING_CODES
        and order[end - 1] - order[end - 2] > min_gap * (order[end - 2] - order[start])
        and rows[end - 1] >= enough
    ):
        end -= 1
    while (
        end - start > MAX_MISSING_CODES
        and order[start + 1] - order[start] > min_gap * (order[end - 1] - order[start + 1])
        and rows[start] >= enough
    ):
        start += 1
    return start, len(order) - end


def without_words(evidence: ColumnProfile, min_rows: int = 3) -> tuple[ColumnProfile, list[str]]:
    """Return a column of numbers without its few repeated words, which count as missing; and these
    words.
    """
    texts = evidence.counts
    chosen = texts.rows >= min_rows
    chosen[chosen] = texts.keep(chosen).digits == 0
    if not 0 < chosen.sum() <= MAX_MISSING_CODES:
        return evidence, []
    words, numbers = texts.keep(chosen), texts.keep(~chosen)
    if (
        len(numbers) <= MAX_LISTED_TEXTS
        or numbers.total() < MIN_NUMBER_SHARE * texts.total()
        or not numbers.are_numbers
    ):
        return evidence, []
    return replace(evidence, counts=numbers, missing=True), [t for t, _ in words.most_common()]


def marked(
    values: DistinctNumbers,
    words: Callable[[list[str]], str],
    text_of: Callable[[Any], Any] = text,
) -> str:
    """Return a question on numbers that look like missing-value codes; no text if there are none.

    Args:
        values: Numbers of rows by value.
        words: Returns the question, from the marks.
        text_of: Returns how a value is written.
    """
    low, high = sentinels(values)
    order = values.points.tolist()
    marks = order[:low] + order[len(order) - high :]
    return words([str(text_of(v)) for v in marks]) if marks else ""
