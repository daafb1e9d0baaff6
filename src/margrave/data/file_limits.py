"""Limits of the files of other programs: a table beyond them is refused, from its schema alone where that suffices."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from margrave._card import counted
from margrave.data.file_columns import FileColumn, has_whole_categories
from margrave.errors import InputError
from margrave.schema import Boolean, Schema
from margrave.schema.bins import EXACT


@dataclass(frozen=True)
class FileLimits:
    """Greatest sizes, and the names, that a file of one program holds.

    Args:
        program: The program's name.
        is_name: Returns True for a name that a column may have; its second argument is whether the column has value
            labels.
        name_rule: The rule for names, in a sentence.
        folds_names: Whether names that differ in case alone are one.
        max_columns, max_rows: The most columns and rows.
        text_size: Returns the size of a text.
        max_text: The largest size of a text.
        text_unit: What ``text_size`` counts.
        has_nul: Whether a text may hold the character NUL.
        first_day: The first day that a date may be.
        max_number: The largest absolute value of a number.
        max_whole: The largest whole number; None if it has no limit.
    """

    program: str
    is_name: Callable[[str, bool], bool] = lambda _name, _labelled: True
    name_rule: str = ""
    folds_names: bool = False
    max_columns: int = sys.maxsize
    max_rows: int = sys.maxsize
    text_size: Callable[[str], int] = len
    max_text: int = sys.maxsize
    text_unit: str = "characters"
    has_nul: bool = True
    first_day: date = date.min
    max_number: float = sys.float_info.max
    max_whole: int | None = EXACT
    #: The remedy for what a format cannot hold.
    other_file: ClassVar[str] = "name a .parquet or .csv file"


def _is_stata_name(name: str, labelled: bool) -> bool:
    # The library names a set of value labels by its column and a number of up to three digits.
    max_characters = 29 if labelled else 32
    reserved = "_all|_b|_coef|_cons|_n|_N|_pi|_pred|_rc|_skip|byte|double|float|if|in|int|long|strL|using|with"
    return (
        re.fullmatch(rf"(?!(?:{reserved}|str[0-9]+)\Z)[^\W\d]\w*", name) is not None
        and len(name) <= max_characters
    )


def _is_spss_name(name: str, _labelled: bool) -> bool:
    max_bytes = 64
    reserved = "all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with"
    return (
        re.fullmatch(rf"(?i)(?!(?:{reserved})\Z)[^\W\d_][\w.$#@]*(?<!\.)", name) is not None
        and len(name.encode()) <= max_bytes
    )


def stata_limits() -> FileLimits:
    """Return the limits of files of Stata."""
    return FileLimits(
        "Stata",
        is_name=_is_stata_name,
        name_rule="A name there has letters, digits and underscores, at most 32 (29 with value labels), begins with a"
        " letter or an underscore, and is not a word of Stata's such as int, if or with.",
        max_columns=32_767,
        has_nul=False,
        first_day=date(100, 1, 1),
        max_number=8.9e307,
    )


def spss_limits() -> FileLimits:
    """Return the limits of files of SPSS."""
    return FileLimits(
        "SPSS",
        is_name=_is_spss_name,
        name_rule="A name there has letters, digits and the characters . _ $ # @, at most 64 bytes, begins with a"
        " letter, does not end in a period, and is not a word of SPSS's such as by, to or with.",
        folds_names=True,
        text_size=lambda text: len(text.encode()),
        max_text=32_767,
        text_unit="bytes",
        has_nul=False,
        first_day=date(1582, 10, 15),
    )


def excel_limits() -> FileLimits:
    """Return the limits of sheets of Excel."""
    return FileLimits(
        "Excel",
        max_columns=16_384,
        max_rows=1_048_575,  # and the names above them
        text_size=lambda text: len(text.encode("utf-16-le")) // 2,
        max_text=32_767,
    )


def json_limits() -> FileLimits:
    """Return the limits of JSON Lines."""
    return FileLimits("JSON", max_whole=None)


def check_schema(limits: FileLimits, schema: Schema, rows: int | None) -> None:
    """Raise ``InputError`` if the schema says that its rows do not fit, or if they are to be too many.

    Args:
        limits: The limits of the file.
        schema: The schema of the rows.
        rows: The number of rows; None if it is not known yet.

    Privacy:
        None spent: reads the schema alone.

    Example:
        >>> check_schema(stata_limits(), Schema.coded({"with": 2}), None)
        Traceback (most recent call last):
        ...
        margrave.errors.InputError: A file of Stata cannot hold a column named 'with'. A name there has letters, ...
    """
    labelled = {}
    for column in schema.output_columns:
        codes = column.kind == "coded" or has_whole_categories(column) or not _is_declared(column)
        labelled[column.name] = isinstance(column, Boolean) or (
            codes and bool(schema.source(column.name).labels)
        )
    rename = f"Rename the column in the table and in the schema, or {limits.other_file}."
    _check_shape(limits, labelled, rows, rename)
    for column in schema.output_columns:
        _check_texts(limits, column.name, getattr(column, "categories", ()))
        low = getattr(column, "low", None)
        if isinstance(low, date):
            _check_day(limits, column.name, low)


def check_columns(limits: FileLimits, columns: Iterable[FileColumn]) -> None:
    """Raise ``InputError`` if the columns of a file do not fit.

    Args:
        limits: The limits of the file.
        columns: The columns with their values.
    """
    columns = list(columns)
    labelled = {
        c.name: not c.has_texts and (bool(c.labels) or pa.types.is_boolean(c.values.type))
        for c in columns
    }
    rows = len(columns[0].values) if columns else 0
    rename = f"{limits.other_file.capitalize()}, and rename the column in the rows."
    _check_shape(limits, labelled, rows, rename)
    for column in columns:
        values = column.values
        if column.has_texts:
            longest = pc.max(pc.binary_length(values)).as_py() or 0
            nul = not limits.has_nul and pc.any(pc.match_substring(values, "\0")).as_py()
            if longest > limits.max_text or nul:
                _check_texts(limits, column.name, pc.unique(values.drop_null()).to_pylist())
        elif column.has_moments:
            first = pc.min(values).as_py()
            _check_day(limits, column.name, date.max if first is None else first)
        elif column.has_numbers:
            _check_numbers(limits, column.name, values)


def _is_declared(column: Any) -> bool:
    return not getattr(column, "learn", False)


def _check_shape(
    limits: FileLimits, labelled: Mapping[str, bool], rows: int | None, rename: str
) -> None:
    for name, has_labels in labelled.items():
        if not limits.is_name(name, has_labels):
            raise InputError(
                f"A file of {limits.program} cannot hold a column named {name!r}.",
                remedy=f"{limits.name_rule} {rename}",
            )
    seen: dict[str, str] = {}
    for name in labelled if limits.folds_names else ():
        if (first := seen.setdefault(name.casefold(), name)) != name:
            raise InputError(
                f"The columns {first!r} and {name!r} have one name in a file of {limits.program}.",
                remedy=rename,
            )
    if len(labelled) > limits.max_columns:
        raise InputError(
            f"A file of {limits.program} holds {limits.max_columns:,} columns, and the rows have {len(labelled):,}.",
            remedy=f"{limits.other_file.capitalize()}.",
        )
    if rows is not None and rows > limits.max_rows:
        raise InputError(
            f"A sheet of {limits.program} holds {limits.max_rows:,} rows below the names, and"
            f" {counted(rows, 'row')} would be written.",
            remedy=f"Draw fewer (--rows), or {limits.other_file}.",
        )


def _check_texts(limits: FileLimits, name: str, texts: Iterable[str]) -> None:
    for text in texts:
        if "\0" in text and not limits.has_nul:
            raise InputError(
                f"Column {name!r} has a text with the character NUL, which a file of {limits.program} cannot hold.",
                remedy=f"{limits.other_file.capitalize()}.",
            )
        if limits.text_size(text) > limits.max_text:
            raise InputError(
                f"Column {name!r} has a text of more than {limits.max_text:,} {limits.text_unit}, which is the most"
                f" that {limits.program} holds.",
                remedy=f"{limits.other_file.capitalize()}.",
            )


def _check_day(limits: FileLimits, name: str, first: date) -> None:
    day = first.date() if isinstance(first, datetime) else first
    if day < limits.first_day:
        raise InputError(
            f"Column {name!r} has dates before {limits.first_day.isoformat()}, the first that {limits.program} has.",
            remedy=f"{limits.other_file.capitalize()}, or raise the column's low.",
        )


def _check_numbers(limits: FileLimits, name: str, values: pa.Array) -> None:
    whole = pa.types.is_integer(values.type)
    limit = limits.max_whole if whole else limits.max_number
    ends = pc.min_max(values)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if limit is not None and low is not None and max(-low, high) > limit:
        what = "a whole number beyond 2^53" if whole else "a number that is infinite or too large"
        raise InputError(
            f"Column {name!r} has {what}, which {limits.program} cannot hold exactly.",
            remedy=f"{limits.other_file.capitalize()}.",
        )
