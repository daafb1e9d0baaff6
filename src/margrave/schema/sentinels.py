"""Marks for a missing value among numbers: -9, 999 or 9999, a date such as 1900-01-01, and words such as "unknown".

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from margrave.schema.evidence import FEW, Evidence
from margrave.schema.looks import MOST

V = TypeVar("V", int, float)

OFTEN, SHARE = 3, 0.001
"""A mark is on so many rows at least, and on more than this share of them."""
FAR = 0.5
"""It lies further from all else than this share of all else's own range."""
MARKS_AT_MOST = 3
"""Numbers below zero where all else is not, and words, are marks if there are no more than so many."""


def sentinels(values: Mapping[V, int]) -> list[V]:
    """Numbers that look like marks: often there, and far from all else, or alone below zero.

    >>> ages = Counter(dict.fromkeys(range(100), 5))
    >>> sentinels(ages + Counter({-9: 20, 999: 20})), sentinels(ages), sentinels(ages + Counter({999: 1}))
    ([-9, 999], [], [])
    >>> sentinels(Counter({0: 40, 1: 30, 2: 30, 9: 9})), sentinels(Counter({-1: 9, 0: 9, 1: 9}))
    ([9], [])
    """
    order, enough = sorted(values), max(OFTEN, SHARE * sum(values.values()))
    below = [v for v in order if v < 0]
    alone = len(below) <= MARKS_AT_MOST < len(order) - len(below) and all(values[v] >= enough for v in below)
    rest = order[len(below) :] if alone else order
    while len(rest) > MARKS_AT_MOST and rest[-1] - rest[-2] > FAR * (rest[-2] - rest[0]) and values[rest[-1]] >= enough:
        rest = rest[:-1]
    while len(rest) > MARKS_AT_MOST and rest[1] - rest[0] > FAR * (rest[-1] - rest[1]) and values[rest[0]] >= enough:
        rest = rest[1:]
    return [v for v in order if not rest[0] <= v <= rest[-1]] if rest else []


def without_words(evidence: Evidence, is_number: Callable[[str], bool]) -> tuple[Evidence, list[str]]:
    """A column of numbers without the few words in it, each on several rows, which then count as missing; and these.

    Read by pandas or the like before, such words would be gone: a draft of a CSV file is to be that of its Parquet.
    """
    texts = evidence.counts
    words = [t for t, n in texts.most_common() if not re.search(r"\d", t) and n >= OFTEN]
    numbers = Counter({t: n for t, n in texts.items() if t not in words})
    if not words or len(words) > MARKS_AT_MOST or len(numbers) <= FEW or numbers.total() < MOST * texts.total():
        return evidence, []
    return (replace(evidence, counts=numbers, missing=True), words) if all(map(is_number, numbers)) else (evidence, [])
