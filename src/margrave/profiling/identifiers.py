"""Which column says whose row it is, by its name and its values: for drafts and checks.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.person_names import names_a_key, names_persons
from margrave.schema.text_patterns import date_format


def identifies(name: str, counts: Counter[str]) -> bool:
    """Return True if a column looks like a person ID column: many codes, most of them on few rows."""
    # Share of the rows beyond which distinct codes are identifiers; a fifth of it is enough for
    # long ones.
    min_share = 0.1
    if len(counts) <= MAX_LISTED_TEXTS or measures(counts):
        return False
    share, named, key = len(counts) / counts.total(), names_persons(name), names_a_key(name)
    if all(re.fullmatch(r"(0|[1-9]\d*)(\.0+)?", t) for t in counts):
        return key or (named and share > min_share / 2)
    codes = [
        t
        for t in counts
        if not re.search(r"\s", t) and (key or len(t) >= 5) and re.search(r"\d", t)
    ]
    digits = [sum(map(str.isdigit, t)) for t in codes]
    coded = sum(key or d >= 4 or len(t) >= 8 for t, d in zip(codes, digits, strict=True))
    long = sum(d >= 6 or len(t) >= 12 for t, d in zip(codes, digits, strict=True))
    most = 0.9 * len(counts)
    return coded >= most and (
        key or named or share > min_share or (long >= most and share > min_share / 5)
    )


def measures(counts: Counter[str]) -> bool:
    """Return True if all texts are numbers and some have decimals: amounts, not identifiers.

    >>> measures(Counter(["57000.0", "135000.5"])), measures(Counter(["57000.0", "135000.0"]))
    (True, False)
    """
    numbers = [re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", t) for t in counts]
    return all(numbers) and any(float(t) % 1 for t in counts)


def of_persons(evidence: ColumnProfile) -> bool:
    """Return True if a column looks like an identifier of persons of whom some have several rows."""
    texts = evidence.counts
    if not texts or measures(texts) or date_format(texts) is not None:
        return False
    named = names_persons(evidence.name) and len(texts) > max(MAX_LISTED_TEXTS, evidence.rows / 2)
    return evidence.rows > len(texts) and (named or identifies(evidence.name, texts))


def best_identifier(found: Sequence[ColumnProfile]) -> ColumnProfile | None:
    """Return the column most likely to be the person ID column: by its name, then by the fewest
    persons.
    """
    return min(
        found,
        key=lambda e: (not names_a_key(e.name), not names_persons(e.name), len(e.counts)),
        default=None,
    )
