"""Questions and reasons of a draft, for the person who checks it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from margrave.schema.categorical import OTHER


class Remark(StrEnum):
    """Sentences of a draft: why a column is left out, and questions beside its bounds."""

    PERSONS = "many codes on a few rows each: identifiers, of persons perhaps"
    UNIQUE = "nearly every row has a text of its own: an identifier or free text"
    COMMAS = (
        "numbers with commas: margrave reads a decimal point and no thousands; rewrite them in the "
        "file and draft anew"
    )
    THOUSANDS = (
        "numbers with dots between thousands, it seems, which margrave would read as decimal points; "
        "rewrite them in the file and draft anew, or add the column by hand if they are decimals"
    )
    MIXED = (
        "most are dates, but not all are written in one way; write them alike in the file, leave "
        "those empty that are not known, and draft anew"
    )
    MOSTLY = (
        "most are numbers, but some cannot be read as one; mend these in the file or leave them "
        "empty, and draft anew"
    )

    DECIMALS = (
        " All have three decimals: is 1.204 a little more than one, or twelve hundred, with a dot for"
        " thousands?"
    )
    CENTURY = (
        " Years of two digits are read as 1969 to 2068: is that right for all of them? If not, write "
        "years of four digits in the file."
    )
    OFFSET = (
        " Its times have an offset (+02:00) and are taken in UTC, where another day may have begun: "
        "write local times without one if these are meant."
    )
    SAME = "All rows have the same value: it carries no information and can be left out."
    MARKED = f" Marks such as NA become {OTHER!r} too: leave such fields empty in the file."
    NUMBERS = (
        " Most are numbers: should all be? Then mend the others in the file or leave them empty, and "
        "draft anew."
    )
    TAIL = (
        " It has a long tail, so that its edges grow; bins of equal width would misstate its mean. "
        "Are the edges public?"
    )

    HEAD = (
        "A DRAFT, made from the rows. Nothing in it is public yet: the bounds, categories and atoms "
        "below were read from the data and may reveal single persons. For each column, put what is "
        "known without looking (a codebook, the law, common sense) in their place, or learn = true if "
        "nothing is known, delete what should not be there, and then set draft = false."
    )


def far_off(marks: Sequence[str], bounds: str) -> str:
    """Return the question on numbers or dates that look like missing-value codes; ``bounds`` are
    the others'.
    """
    one = len(marks) == 1
    return (
        f" {' and '.join(marks)} {'lies' if one else 'lie'} far from all else, or alone below zero, and on many rows:"
        f" {'is it a mark' if one else 'are they marks'} for a missing value? Then write {bounds}, missing = true and"
        f' outside = "missing", which takes {"it" if one else "them"} along; or leave such fields empty in the file and'
        " draft anew."
    )


def worded(words: Sequence[str]) -> str:
    """Return the remark on words among numbers."""
    if not words:
        return ""
    listed = ", ".join(map(repr, words))
    return f" Among the numbers there {'is' if len(words) == 1 else 'are'} {listed}, which will count as missing."
