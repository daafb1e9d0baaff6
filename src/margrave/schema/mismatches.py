"""Guess from their texts why values do not match the schema: for the custodian's check.

**Privacy:** NOT private: counts by the look of single values. ``read_table`` does not use it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from margrave.schema.categorical import NO, OTHER, YES, Boolean, Categorical, Coded, Ordinal
from margrave.schema.column import Column, Encoded
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.parsing import MARKS, ODD, distinct, plain
from margrave.schema.spellings import folded
from margrave.schema.text_patterns import NUMBER, date_format

MARK, COMMA, SIGNS, ALIKE, LABEL, WAY, NESTED, NAMED = (
    "mark", "comma", "signs", "alike", "label", "way", "nested", "named",
)  # fmt: skip
#: Causes of a value outside the schema, each with its remedy. ``NAMED`` values are the word for all unlisted ones.
CAUSES = {
    MARK: "a mark for a missing value, such as NA",
    COMMA: "a number with a comma, or with dots between thousands: write them in the table with a decimal point alone",
    SIGNS: "a number with other signs (a unit, <, >, blanks between thousands): mend them in the table",
    ALIKE: 'a listed category but for case or blanks: write same = "case" in the schema, or write them alike',
    LABEL: "the label of a category: write the categories themselves in the table (raw codes, in an export)",
    WAY: "a date written in another way than the column's: write them alike in the table, or set format",
    NESTED: "a list, a record or another value that is not a single one: put single values into its cells",
}
SPELLING = (
    "Are they spelled as in the schema, with the same case? A column of truth values has 'true' and 'false'."
    " A cell holds one value, not a list or a record."
)
#: Likely reasons why a column of some kind cannot be read.
ADVICE = {
    "categorical": SPELLING,
    "ordinal": SPELLING,
    "boolean": f"Read are {', '.join(YES)} and {', '.join(NO)}, in either case:"
    " for other words write kind = 'categorical'.",
    "date": 'Say how they are written, such as format = "%d/%m/%Y".',
    "elapsed": 'Say how they are written, such as format = "%d/%m/%Y %H:%M".',
    "timestamp": 'Say how they are written, such as format = "%d/%m/%Y %H:%M".',
    **dict.fromkeys(
        ("integer", "real"),
        "Numbers have a decimal point, not a comma, and no separators of thousands: mend the file, or"
        " the column's kind.",
    ),
}


def advice(kind: str, form: str = "") -> str:
    """Return a sentence on what a column of a kind reads, which may state the ``form`` of its dates."""
    if form:
        return (
            f'They are not written as format = "{form}" says: give the format that they have, or none if they are'
            " written like 2020-12-31."
        )
    return ADVICE.get(kind, "Correct the column's kind, or what it may hold.")


def count_causes(
    column: Column, values: pa.Array, encoded: Encoded, labels: Mapping[str, str]
) -> dict[str, int]:
    """Return the number of unreadable or unlisted values by cause, and of those that are ``NAMED``.

    ``labels`` are those of the column's categories.
    """
    lost = (
        encoded.outside
        if isinstance(column, Categorical | Ordinal | Boolean)
        else encoded.unreadable
    )
    named = _named_other(column, encoded)
    if not lost.any():
        return named
    labelled = frozenset(map(folded, labels.values()))
    rows, texts = distinct(plain(values).filter(pa.array(lost)))
    known = _known(column)
    found: Counter[str] = Counter(named)
    for text, count in zip(texts, np.bincount(rows, minlength=len(texts)).tolist(), strict=True):
        cause = None if text is None or not count else _cause(column, text.strip(), known, labelled)
        if cause is not None:
            found[cause] += count
    return dict(found)


def _named_other(column: Column, encoded: Encoded) -> dict[str, int]:
    if not isinstance(column, Categorical) or not column.other or OTHER in column.categories:
        return {}
    other = encoded.codes == column.labels().index(OTHER)
    count = int((other & ~encoded.outside & ~encoded.unreadable & ~encoded.empty).sum())
    return {NAMED: count} if count else {}


def _known(column: Column) -> frozenset[str]:
    return (
        frozenset(map(folded, column.categories))
        if isinstance(column, Categorical | Ordinal)
        else frozenset()
    )


def _cause(
    column: Column, text: str, known: frozenset[str], labelled: frozenset[str]
) -> str | None:
    if text.startswith(ODD):
        return NESTED
    if text.lower() in MARKS:
        return MARK
    if folded(text) in labelled:
        return LABEL
    if isinstance(column, Categorical | Ordinal):
        return ALIKE if folded(text) in known else None
    if isinstance(column, Date | Timestamp):
        return WAY if date_format(DistinctTexts.of([text])) is not None else None
    if not isinstance(column, Integer | Real | Coded):
        return None
    if NUMBER.fullmatch(text) and ("," in text or text.count(".") > 1):
        return COMMA
    return (
        SIGNS
        if re.fullmatch(r"[^\d]{0,5}\d[\d.,'\s]*[^\d]{0,10}", text) and not NUMBER.fullmatch(text)
        else None
    )


def main_cause(causes: Mapping[str, int], among: int) -> str:
    """Return a sentence on the cause of more than half of the values; empty if there is none."""
    looks = ((cause, count) for cause, count in causes.items() if cause in CAUSES)
    cause, count = max(looks, key=lambda found: found[1], default=("", 0))
    if 2 * count <= among:
        return ""
    return f" {'All' if count >= among else f'Most ({count:,})'} look like {CAUSES[cause]}."
