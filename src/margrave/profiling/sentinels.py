"""Marks for a missing value: among numbers -9, 999 or 9999, a date such as 1900-01-01, and words such as "unknown";
among texts -9, 99 or "unknown".

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from margrave.profiling.distinct_numbers import DistinctNumbers
from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.learn import Learn
from margrave.schema.parsing import text
from margrave.schema.persons import is_placeholder
from margrave.types import FloatArray, IntArray

#: Numbers below zero (if another is not) and words are missing-value codes up to this many.
MAX_MISSING_CODES = 3


def sentinels(values: DistinctNumbers, min_rows: int = 3) -> tuple[int, int]:
    """Return how many of the least and of the greatest numbers look like missing-value codes.

    Such numbers are on several rows, and far from the others or alone below zero.
    """
    order, rows = values.points, values.rows
    below = int(np.searchsorted(order, 0.0))
    few = len(order) - below <= MAX_MISSING_CODES
    signs = few and bool(np.isin(-order[:below], order[below:]).any())  # -1, 0 and 1
    signs = signs and bool(rows[:below].sum() >= rows[below:].min())  # the rarest may be a code
    alone = below <= MAX_MISSING_CODES and below < len(order) and not signs
    alone = alone and bool((rows[:below] >= min_rows).all())
    start, end = below if alone else 0, len(order)

    while found := _far_codes(order[start:end], rows[start:end], values.total, min_rows):
        end -= found
    while found := _far_codes(
        -order[start:end][::-1], rows[start:end][::-1], values.total, min_rows
    ):
        start += found
    return start, len(order) - end


def _far_codes(points: FloatArray, rows: IntArray, total: int, min_rows: int) -> int:
    """Return how many of the greatest points are far from the others and on several rows.

    Several are codes together only if they are written as codes usually are, such as 998 and 999. Such a code needs two
    other values, and another number three.
    """
    # Distance of a missing-value code from the other values, as a share of their range, if it is on a share of the
    # rows; and the distance from which a few rows are enough.
    min_gap, min_share, large_gap = 0.5, 0.001, 2.0
    steps = 2.0  # the least distance, in the largest one between the other values: 12, 24, 36, 60 has no mark
    for codes in range(1, MAX_MISSING_CODES + 1):
        others, far = points[:-codes], points[-codes:]
        usual = all(map(_is_usual_code, far.tolist()))
        if len(others) < (2 if usual else MAX_MISSING_CODES) or (codes > 1 and not usual):
            continue
        gap, width, often = far[0] - others[-1], others[-1] - others[0], int(rows[-codes:].sum())
        is_far = gap > steps * float(np.diff(others).max(initial=0.0))
        least = large_gap if often < min_share * total else min_gap
        if is_far and often >= min_rows and gap > least * width:
            return codes
    return 0


def _is_usual_code(point: float) -> bool:
    """Return True for 7, 8 or 9, alone or repeated or behind nines.

    >>> [n for n in (9, 88, 997, 9999, -9, 6, 79, 9.5) if _is_usual_code(n)]
    [9, 88, 997, 9999, -9]
    """
    return re.fullmatch(r"9*[789]|7+|8+", f"{abs(point):g}") is not None


def without_words(evidence: ColumnProfile, min_rows: int = 3) -> tuple[ColumnProfile, list[str]]:
    """Return a column of numbers without its few repeated words, which count as missing; and these
    words.
    """
    # Share of the rows that hold numbers, at least.
    min_number_share = 0.5
    texts = evidence.counts
    chosen = texts.rows >= min_rows
    chosen[chosen] = texts.keep(chosen).digits == 0
    if not 0 < chosen.sum() <= MAX_MISSING_CODES:
        return evidence, []
    words, numbers = texts.keep(chosen), texts.keep(~chosen)
    if (
        len(numbers) <= MAX_LISTED_TEXTS
        or numbers.total() < min_number_share * texts.total()
        or not numbers.are_numbers
    ):
        return evidence, []
    return replace(evidence, counts=numbers, missing=True), [t for t, _ in words.most_common()]


def marks_in(values: DistinctNumbers, text_of: Callable[[Any], Any] = text) -> dict[str, int]:
    """Return the numbers that look like missing-value codes, as ``text_of`` writes them, with their numbers of rows."""
    low, high = sentinels(values)
    order = [*range(low), *range(len(values) - high, len(values))]
    return {str(text_of(values.points[i].item())): int(values.rows[i]) for i in order}


def text_codes(texts: DistinctTexts, min_rows: int = 3) -> dict[str, int]:
    """Return the categories that look like missing-value codes, with their numbers of rows, the most frequent first.

    They are words such as "unknown", signs, and negative numbers; also zeros and runs of 7, 8 or 9 if no other
    category has a digit.

    Example:
        >>> samples = ["F", "M", "-9", "99", "-9"], ["<30", ">30", "99"]
        >>> [text_codes(DistinctTexts.of(texts), min_rows=1) for texts in samples]
        [{'-9': 2, '99': 1}, {}]
    """
    listed = texts.most_common(Learn.max_categories)
    words = [t for t, _ in listed if is_placeholder(t) and not re.fullmatch(r"[-+]?0+", t)]
    numbers = [t for t, _ in listed if re.fullmatch(r"[-+]?0+|7{1,4}|8{1,4}|9{1,4}", t)]
    others = [t for t, _ in listed if t not in words and t not in numbers]
    codes = words if any(c.isdigit() for t in others for c in t) else [*words, *numbers]
    found = {t: n for t, n in listed if t in codes and n >= min_rows}
    return found if 0 < len(found) <= MAX_MISSING_CODES and others else {}


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
    marks = marks_in(values, text_of)
    return words(list(marks)) if marks else ""
