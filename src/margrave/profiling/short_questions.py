"""The questions of a draft in short: one sentence for each kind of question, without a value of the rows.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from margrave.profiling.messages import Remark
from margrave.profiling.relations import ConstraintQuestion, in_short
from margrave.schema.column_check import LOOK
from margrave.schema.schema import Schema


def first_questions(drafted: Schema) -> tuple[str, ...]:
    """Return the questions of a draft on its header and on whose row it is, which come before all others."""
    return tuple(s for s in drafted.remarks.get("", "").splitlines() if s.startswith(LOOK))


def all_questions(
    drafted: Schema, relations: Sequence[ConstraintQuestion], notes: Sequence[str]
) -> tuple[str, ...]:
    """Return all questions of a draft in short, for who may run without answering them.

    Args:
        drafted: The draft.
        relations: Its questions on relations between columns.
        notes: Its notes for the custodian, such as those of ``backward_rows``.
    """
    held = in_short(relations)
    always = ("Is that always true? Then a schema can keep it so.",) if held else ()
    return *first_questions(drafted), *short_questions(drafted), *notes, *held, *always


def short_questions(drafted: Schema) -> tuple[str, ...]:
    """Return the questions of a draft on its columns, the most important first, with the names of the columns.

    Example:
        >>> import pyarrow as pa
        >>> from margrave.profiling.draft import draft
        >>> drafted = draft(pa.table({"glucose": [*range(60, 140)] * 5 + [-9] * 20}))
        >>> short_questions(drafted)
        ('Is a value of glucose a code for missing? Learning counts it as a value.',)
    """
    left = {name: remark for name, remark in drafted.remarks.items() if name and remark}
    found = []
    for mark, before, after in (
        ("Some of its texts are sentences", "May a text of", "name or describe a person? Categories are published."),
        (" for a missing value?", "Is a value of", "a code for missing? Learning counts it as a value."),
        ("Among the numbers there", "Do the words among the numbers of", "mean missing? They count as missing."),
        ("It is read as Stata stores it", "Are the periods of", "meant as Stata's numbers? They are read so."),
        (Remark.DECIMALS, "Is the dot in", "a decimal point? It is read as one."),
        ("Does the day come first", "Does the day come first in", "? It is read so."),
        ("Years of two digits", "Are the years of", "1969 to 2068? They are read so."),
        ("have an offset", "Are the times of", "meant in UTC? They are read so."),
        ("Most are numbers", "Should all values of", "be numbers? They are taken as categories."),
        (Remark.FEW, "Are the numbers of", "classes? They are taken as quantities."),
        (Remark.CODES, "Are the numbers of", "quantities? They are taken as categories."),
        ("By its name it follows", "Can", "be before its start? Rows in which it is count as 0."),
        ("Equal but for case", "Are values of", "one if equal but for case or blanks? They count as several."),
        (Remark.MISSPELLED, "Are rare texts of", "a frequent category, written otherwise? They count as several."),
        (Remark.USUAL, "Are the values of", "usual ones by definition, such as yes and no? Stating them is free."),
        ("Marks such as NA", "Do marks such as NA in", "mean missing? They count as categories."),
    ):  # fmt: skip
        if names := [name for name, remark in left.items() if mark.strip() in remark]:
            found.append(f"{before} {', '.join(names)} {after}".replace(" ?", "?"))
    return tuple(found)
