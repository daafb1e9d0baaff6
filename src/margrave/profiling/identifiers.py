"""Which column says whose row it is, by its name and its values: for drafts and checks.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.person_names import names_a_key, names_no_person, names_persons
from margrave.schema.text_patterns import date_format, free_text, partly_dates


def identifies(name: str, counts: DistinctTexts) -> bool:
    """Return True if a column looks like a person ID column: many codes, most of them on few rows."""
    # Share of the rows beyond which distinct codes are identifiers; a fifth of it is enough for
    # long ones.
    min_share = 0.1
    if len(counts) <= MAX_LISTED_TEXTS or measures(counts):
        return False
    share, named, key = len(counts) / counts.total(), names_persons(name), names_a_key(name)
    if counts.all_match(r"(0|[1-9]\d*)(\.0+)?"):
        return key or (named and share > min_share / 2)
    digits, lengths = counts.digits, counts.lengths
    codes = counts.matches(r"\S*") & (key | (lengths >= 5)) & (digits > 0)
    coded = int((codes & (key | (digits >= 4) | (lengths >= 8))).sum())
    long = int((codes & ((digits >= 6) | (lengths >= 12))).sum())
    most = 0.9 * len(counts)
    return coded >= most and (
        key or named or share > min_share or (long >= most and share > min_share / 5)
    )


def measures(counts: DistinctTexts) -> bool:
    """Return True if all texts are numbers and some have decimals: amounts, not identifiers.

    >>> samples = ["57000.0", "135000.5"], ["57000.0", "135000.0"]
    >>> [measures(DistinctTexts.of(texts)) for texts in samples]
    [True, False]
    """
    if not counts.all_match(r"-?\d+(\.\d+)?([eE][-+]?\d+)?"):
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.mod(counts.numbers, 1) != 0).any())


def of_persons(evidence: ColumnProfile) -> bool:
    """Return True if a column looks like an identifier of persons of whom some have several rows."""
    texts = evidence.counts
    if not texts or measures(texts) or date_format(texts) is not None or partly_dates(texts):
        return False
    named = names_persons(evidence.name) and len(texts) > max(MAX_LISTED_TEXTS, evidence.rows / 2)
    return evidence.rows > len(texts) and (named or identifies(evidence.name, texts))


def may_identify(evidence: ColumnProfile) -> bool:
    """Return True if very many values are on few rows each, as those of persons are, and its name is of nothing else.

    A draft then asks, since values alone do not show which it is.
    """
    min_values, min_share = 100, 0.05
    # Rows for each value; the most rows of a value as a multiple of these; and digits of a number.
    min_repeats, max_heap, min_digits = 1.05, 50, 4
    name, texts, rows = evidence.name, evidence.counts, evidence.rows
    if len(texts) < max(min_values, min_share * rows) or rows < min_repeats * len(texts):
        return False
    if names_no_person(name) or texts.rows.max() > max_heap * rows / len(texts):
        return False
    whole = texts.matches(r"(0|[1-9]\d*)(\.0+)?")
    if whole.all():
        long = int(texts.matches(rf"\d{{{min_digits},}}(\.0+)?").sum())
        return 2 * long > len(texts)
    if whole.any() or date_format(texts) is not None or partly_dates(texts) or free_text(texts):
        return False
    return not texts.all_match(r"[-+]?[\d.,]+([eE][-+]?\d+)?")


def best_identifier(found: Sequence[ColumnProfile]) -> ColumnProfile | None:
    """Return the column most likely to be the person ID column: by its name, then by the fewest
    persons.
    """
    return min(
        found,
        key=lambda e: (not names_a_key(e.name), not names_persons(e.name), len(e.counts)),
        default=None,
    )
