"""Questions and reasons of a draft, for the person who checks it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from margrave.schema.categorical import OTHER
from margrave.schema.toml_text import string, written


class Remark(StrEnum):
    """Sentences of a draft: why a column is left out, and questions beside its bounds."""

    HEADER = "Is this a header?"
    PERSONS = "many codes on a few rows each: identifiers, of persons perhaps"
    UNIQUE = "nearly every row has a text of its own: an identifier or free text"
    COMMAS = (
        "numbers with commas: margrave reads a decimal point and no thousands; rewrite them in the "
        "table and draft anew"
    )
    THOUSANDS = (
        "numbers with dots between thousands, it seems, which margrave would read as decimal points; "
        "rewrite them in the table and draft anew, or add the column by hand if they are decimals"
    )
    SIGNS = (
        "numbers with a unit or another sign (kg, %, <) or with blanks between thousands: margrave reads plain "
        "numbers; rewrite them in the table and draft anew, or add the column by hand if they are categories"
    )
    MIXED = (
        "most are dates, but not all are written in one way that drafts know; write them alike in the table, such as "
        "2023-12-31 or 2023-12-31 08:15, leave those empty that are not known, and draft anew"
    )
    NESTED = "its values are lists, records or others that are not single values: put single values into its cells"
    CLOCK = "times of day without a date: write whole minutes since midnight, or the date as well, and draft anew"
    MOSTLY = (
        "most are numbers, but some cannot be read as one; mend these in the table or leave them "
        "empty, and draft anew"
    )

    DECIMALS = (
        " All have three decimals: is 1.204 a little more than one, or twelve hundred, with a dot for"
        " thousands?"
    )
    CENTURY = (
        " Years of two digits are read as 1969 to 2068: is that right for all of them? If not, write "
        "years of four digits in the table."
    )
    OFFSET = (
        " Its times have an offset (+02:00) or a time zone and are taken in UTC, where another day may have begun: "
        "write local times without one if these are meant."
    )
    SAME = "All rows have the same value: it carries no information and can be left out."
    MARKED = f" Marks such as NA become {OTHER!r} too: leave such fields empty in the table."
    MISSPELLED = (
        " Some rare texts are nearly those of a frequent category: are they it, written otherwise?"
    )
    SENTENCES = (
        " Some of its texts are sentences or have many words. May one name or describe a person? Then leave the column"
        " out: its categories are published as they are written."
    )
    NUMBERS = (
        " Most are numbers: should all be? Then mend the others in the table or leave them empty, and "
        "draft anew."
    )
    TAIL = (
        " It has a long tail, so that its edges grow; bins of equal width would misstate its mean. "
        "Are the edges public?"
    )

    ONE = "all rows have the same value, which carries no information"
    CODES = 'Its name suggests codes, so it is taken as categories. If it is a quantity, write kind = "integer".'
    FEW = 'A few whole numbers. If they are classes or answers, write kind = "categorical".'
    MARKS = " Marks such as NA are categories like any text: leave such fields empty in the table."

    USUAL = " Is it by its definition"

    HEAD = (
        "A DRAFT. It takes as public the names and kinds of the columns, the units of times, the way in which dates "
        "are written, and the columns that are left out. A column of 0 and 1 gets these bounds, one of true and false "
        "is boolean, and a time since another column gets low = 0. Codes for missing values that a file of Stata, SPSS "
        "or SAS declares are taken too. All but the names and such codes were seen in the rows: check that they "
        "are public. Other bounds and categories are learned under the privacy budget (learn = true). Where they are "
        "known without looking, write them in place of learn = true, with where they stand (cite = "
        '"Codebook, p. 12"): that saves budget.'
    )
    READ_HEAD = (
        "A DRAFT, made from the rows. Nothing in it is public yet: the values of the keys that read "
        "lists may reveal single persons. For each column, put what is known without looking (a "
        "codebook, the law, common sense) in their place and take the key out of read, or write "
        "learn = true; and delete what should not be there."
    )


def far_off(marks: Sequence[str]) -> str:
    """Return the question on numbers or dates that look like missing-value codes."""
    one = len(marks) == 1
    return (
        f" {' and '.join(marks)} {'lies' if one else 'lie'} far from all else, or alone below zero, and on several"
        f" rows: {'is it a mark' if one else 'are they marks'} for a missing value?"
    )


def far_off_read(marks: Sequence[str]) -> str:
    """Return this question with its answers, for a column whose bounds were read off the rows."""
    return (
        f"{far_off(marks)} Then write the bounds of the code book as low and high, missing = true and missing_codes ="
        f" {written(marks)}; or leave such fields empty in the table and draft anew."
    )


def far_off_learned(marks: Sequence[str]) -> str:
    """Return this question with its answers, for a column to learn."""
    return (
        f"{far_off(marks)} Then leave such fields empty in the table and draft anew; or write missing_codes ="
        f" {written(marks)} beside learn = true; or declare it: in place of learn = true, write the bounds of the code"
        f" book as low and high (never those of the rows), missing = true and missing_codes = {written(marks)}."
    )


def code_like(codes: Sequence[str]) -> str:
    """Return the question on texts among categories that look like missing-value codes."""
    one = len(codes) == 1
    return (
        f" {' and '.join(map(string, codes))} {'looks' if one else 'look'} like {'a code' if one else 'codes'}:"
        f" {'is it a mark' if one else 'are they marks'} for a missing value? Then leave such fields empty in the table"
        " and draft anew; or"
    )


def code_like_read(codes: Sequence[str]) -> str:
    """Return this question with its answers, for a column whose categories were read off the rows."""
    return (
        f"{code_like(codes)} take {'it' if len(codes) == 1 else 'them'} out of categories, and write missing = true and"
        f" missing_codes = {written(codes)}."
    )


def code_like_learned(codes: Sequence[str]) -> str:
    """Return this question with its answers, for a column to learn."""
    return f"{code_like(codes)} write missing_codes = {written(codes)} beside learn = true."


def usual_question(categories: Sequence[str], codes: Sequence[str], words: Sequence[str]) -> str:
    """Return the question on a column to learn whose values are usual ones, which are public if it has no others.

    Args:
        categories: The values as the column writes them; none if they are truth values.
        codes: The values that look like missing-value codes.
        words: The words of truth values, which a column of them does not keep.
    """
    missing = (
        f", missing = true and missing_codes = {written(codes)}" if codes else " and missing = true"
    )
    listed = " or ".join(map(string, categories))
    what, key = (
        (f"{listed} alone", f"categories = {written(categories)}")
        if categories
        else ("yes or no, or true or false", 'kind = "boolean"')
    )
    keep = (
        " The release then says true and false: to keep the words, keep the kind categorical and write categories ="
        f" {written(words)} instead."
    )
    return (
        f"{Remark.USUAL} {what}? Then write {key}{missing} in place of learn = true: that is public and costs no"
        f" budget.{keep if words else ''}"
    )


def whose_question(name: str) -> str:
    """Return the question about a column that may be a person ID column by its values, though not by its name."""
    return (
        f"Does {name!r} say whose row it is? It has very many values, each on few rows, as numbers of persons have. If"
        f" so, write person = {string(name)} in [schema], and take its [[column]] out. Without a person ID column a run"
        " protects single rows, and no persons who have several."
    )


def worded(words: Sequence[str]) -> str:
    """Return the remark on words among numbers."""
    if not words:
        return ""
    listed = ", ".join(map(repr, words))
    return f" Among the numbers there {'is' if len(words) == 1 else 'are'} {listed}, which will count as missing."
