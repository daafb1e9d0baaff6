"""Draft a schema from the rows, for a person to correct: kinds, columns to learn, and questions.

**Privacy:** NOT private. A draft takes names and kinds of columns as public. Its other bounds and
categories are to be learned; or they are those of the rows, and then the gate refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from margrave._card import counted
from margrave.codebooks import statistical
from margrave.custodian import tell_of_draft
from margrave.data.batch_sources import Files, open_source, sampled_frame
from margrave.data.formats import FormattedFile
from margrave.error_sanitizer import hide_rows
from margrave.errors import SchemaError
from margrave.frames import each_column, names_of
from margrave.profiling.header_check import check_names, question, value_like_names
from margrave.profiling.identifiers import best_identifier, identifies, may_identify, of_persons
from margrave.profiling.messages import Remark, whose_question, worded
from margrave.profiling.proposals import names_codes, propose, taken_as_public
from margrave.profiling.read_values import propose_read
from margrave.profiling.relations import constraint_questions, with_questions
from margrave.profiling.sentinels import without_words
from margrave.profiling.short_questions import all_questions
from margrave.profiling.time_pairs import (
    backward_rows,
    elapsed_question,
    starts_by_name,
    with_elapsed_after,
)
from margrave.schema.column import Column
from margrave.schema.column_check import LOOK
from margrave.schema.column_profile import ColumnProfile, profile_column
from margrave.schema.learn import Learn
from margrave.schema.missing_codes import table_without_missing_codes
from margrave.schema.parsing import ODD
from margrave.schema.parts import parts_of
from margrave.schema.person_names import names_persons
from margrave.schema.schema import Schema
from margrave.schema.sources import ColumnSource
from margrave.schema.text_patterns import (
    comma_numbers,
    date_format,
    dotted_thousands,
    free_text,
    measured,
    mostly_numbers,
    partly_dates,
    times_of_day,
)


def draft(frame: Any, *, read: bool = False) -> Schema:
    """Return a draft schema of a frame. See ``draft_schema``."""
    columns: list[Column] = []
    ignore: list[str] = []
    remarks: dict[str, str] = {}
    sources: dict[str, ColumnSource] = {}
    left_out, reasons = list[str](), list[str]()
    persons: list[ColumnProfile] = []
    unclear: list[str] = []
    names, values, rows = names_of(frame), dict[str, Collection[str]](), 0
    check_names(names)
    for name, pieces in each_column(frame, names):
        evidence, words = without_words(profile_column(name, pieces))
        rows = max(rows, sum(map(len, pieces)))
        values[name] = {name.strip()} if name.strip() in evidence.counts else set()
        reason = reason_to_skip(evidence)
        if reason is None and not read and len(evidence.counts) == 1 and not evidence.missing:
            reason = Remark.ONE
        if says_whose(evidence, reason):
            persons.append(evidence)
        elif may_be_of_persons(evidence, reason):
            unclear.append(name)
        if reason is None:
            if read:
                column, sources[name], remark = propose_read(evidence)
            else:
                column, remark = propose(evidence)
            columns += [column, *parts_of(column, names)]
            remarks[name] = f"{remark}{worded(words)}".strip()
        else:
            ignore.append(name)
            reasons.append(reason)
            left_out.append(f"Left out: {name!r} ({reason}).")
    person, odd = best_identifier(persons), value_like_names(values)
    if not columns:
        raise _nothing_drafted(rows, reasons)
    if person is not None:
        del left_out[ignore.index(person.name)]
        ignore.remove(person.name)
    remarks[""] = "\n".join(
        [
            Remark.READ_HEAD if read else Remark.HEAD,
            *([f"{LOOK} {question(names, odd)}"] if odd else []),
            *(f"{LOOK} {whose_question(name)}" for name in unclear if person is None),
            *([] if person is None else [person_question(person)]),
            *left_out,
        ]
    )
    if not read:
        columns = with_elapsed_after(columns, starts_by_name(names))
        for column in (c for c in columns if isinstance(c, Learn) and c.since):
            asked = remarks.get(column.name, "")
            remarks[column.name] = f"{elapsed_question(column)} {asked}".strip()
    named = None if person is None else person.name
    remarks = {name: remark for name, remark in remarks.items() if remark}
    return Schema(
        columns, person=named, ignore=ignore, remarks=remarks, sources=sources, from_draft=True
    )


def _nothing_drafted(rows: int, reasons: Sequence[str]) -> SchemaError:
    """Return the refusal of a table all of whose columns are left out. It numbers them: a name may be a value."""
    if not rows:
        return SchemaError(
            "The table has no rows, and a draft is made from rows.",
            remedy="Is the file a table? Then write rows below the names of its columns.",
        )
    max_columns = 10
    listed = [f"Column {i}: {reason}." for i, reason in enumerate(reasons[:max_columns], 1)]
    others = len(reasons) - max_columns
    more = f" And {counted(others, 'more column')}." if others > 0 else ""
    one = (
        "The table has one column: is the file a table, and are its values separated by commas, semicolons, tabs or"
        " bars? "
    )
    choose = "Choose another table. In Python or a schema file, columns can be declared instead."
    return SchemaError(
        f"No column of the table can be drafted. {' '.join(listed)}{more}",
        remedy=f"{one * (len(reasons) == 1)}{choose}",
    )


def says_whose(evidence: ColumnProfile, reason: str | None) -> bool:
    """Return True if a column looks like a person ID column. ``reason``: why it cannot be synthesized."""
    return reason in (Remark.PERSONS, Remark.UNIQUE) and of_persons(evidence)


def may_be_of_persons(evidence: ColumnProfile, reason: str | None) -> bool:
    """Return True if only a person can say whether a column is a person ID column."""
    unclear = reason in (None, Remark.UNIQUE) and not names_codes(evidence.name)
    return unclear and may_identify(evidence)


def person_question(person: ColumnProfile) -> str:
    """Return the question about a column that looks like a person ID column.

    A false alarm costs one question. A person ID column that is overlooked protects rows, not
    persons.
    """
    return (
        f"{person.name!r} seems to say whose row it is, and a run then needs a unit of persons, such as"
        " add-remove-person:5. Is that wrong? Then delete the line person = ..., and list the column under ignore."
    )


def reason_to_skip(evidence: ColumnProfile) -> str | None:
    """Return the reason why a column cannot be synthesized, or None."""
    hours_of_a_day = 24  # at most this number of times of day are categories
    texts = evidence.counts
    if not texts:
        return "it has no values"
    if len(texts) == 1 and ODD in texts:
        return Remark.NESTED
    if times_of_day(texts):
        return Remark.CLOCK if len(texts) > hours_of_a_day else None
    dates = date_format(texts) is not None
    found = None if dates else unreadable(evidence)
    if found is not None:
        return found
    if not dates and identifies(evidence.name, texts) and len(texts) < 0.5 * evidence.rows:
        return Remark.PERSONS
    if not dates and free_text(texts):
        return "it is free text"
    if evidence.rows < 20 or len(texts) < 0.5 * evidence.rows:
        return None
    whole = texts.are_whole
    if whole and len(texts) == evidence.rows:
        width = texts.numbers.max() - texts.numbers.min()
        numbered = names_persons(evidence.name) or width < 2 * len(texts)
        return "it numbers the rows" if numbered else None
    if whole and identifies(evidence.name, texts):
        return Remark.PERSONS
    if texts.all_match(r"\d{16,}"):
        return Remark.UNIQUE  # a number of a card or the like: amounts have fewer digits
    if whole or dates or texts.are_numbers:
        return None
    return Remark.MOSTLY if mostly_numbers(texts) else Remark.UNIQUE


def unreadable(evidence: ColumnProfile) -> str | None:
    """Return the reason why numbers or dates could not be read, or None."""
    texts = evidence.counts
    if evidence.written and comma_numbers(texts):
        return Remark.COMMAS
    if evidence.written and dotted_thousands(texts):
        return Remark.THOUSANDS
    if evidence.written and not names_persons(evidence.name) and measured(texts):
        return Remark.SIGNS
    return Remark.MIXED if partly_dates(texts) else None


@hide_rows
def draft_schema(source: Any, *, read: bool = False) -> Schema:
    """Return a draft schema of a file or frame, for a person to check.

    Args:
        source: A table as ``read_table`` takes it. Of files, databases and streams about a million rows at most are
            read.
        read: Whether bounds and categories are read off the rows in place of ``learn = true``.
            Each such key is marked, and the gate refuses the schema until a person has replaced it.

    Returns:
        A schema with remarks on what must be checked.

    Raises:
        DataError: If the table has no header.
        SchemaError: If no column can be drafted.

    Warns:
        CustodianWarning: What a draft of columns to learn takes as public, and its questions.

    Privacy:
        NOT private: it reads the rows freely. Names and kinds of columns are taken as public, the bounds of a column
        of 0 and 1, ``low=0`` of times that follow another by their names, and the missing-value codes that a file of
        Stata, SPSS or SAS declares.

    Example:
        >>> import pyarrow as pa
        >>> schema = draft_schema(pa.table({"age": ["31", "64", None], "fee": ["1.5", "2", "7"]}))
        >>> [(c.name, c.kind) for c in schema.to_learn]
        [('age', 'integer'), ('fee', 'real')]
    """
    drafted, public, questions = _with_questions(source, read=read)
    if not read:
        tell_of_draft(public, questions)
    return drafted


@hide_rows
def accepted_draft(source: Any, on_custodian: Callable[[str], None] | None) -> Schema:
    """Return the draft of ``draft_schema`` for a fit that takes it as it is.

    Args:
        source: As in ``draft_schema``.
        on_custodian: Callback for what the draft takes as public, its questions, and how to answer them; None warns.
    """
    drafted, public, questions = _with_questions(source, read=False)
    tell_of_draft(public, questions, accepted=True, on_custodian=on_custodian)
    return drafted


@hide_rows
def quiet_draft(source: Any, *, read: bool = False) -> Schema:
    """Return the draft of ``draft_schema`` without its warning and its questions on relations."""
    return _drafted(source, read=read)[1]


def _with_questions(source: Any, *, read: bool) -> tuple[Schema, str, tuple[str, ...]]:
    """Return the draft with its questions as remarks, what it takes as public, and its questions without values."""
    frame, drafted = _drafted(source, read=read)
    relations, notes = constraint_questions(frame, drafted), backward_rows(frame, drafted)
    questions = all_questions(drafted, relations, notes)
    return with_questions(drafted, relations, notes), taken_as_public(drafted), questions


def _drafted(source: Any, *, read: bool) -> tuple[Any, Schema]:
    """Return the rows that a draft is made of, and the draft."""
    opened = open_source(source)
    if opened is None:
        return source, draft(source, read=read)
    max_rows = 1_000_000
    stated = opened.rows()
    sample = sampled_frame(source, rows=max_rows)
    file = opened.files[0] if isinstance(opened, Files) else opened
    if isinstance(file, FormattedFile):
        sample, codes = table_without_missing_codes(sample, _declared_codes(file.path))
        drafted = _with_codes(_with_notes(draft(sample, read=read), file.notes), codes)
    else:
        drafted = draft(sample, read=read)
    if sample.num_rows < max_rows if stated is None else sample.num_rows >= stated:
        return sample, drafted
    head = f"{drafted.remarks.get('', '')}\nDrafted from a sample of {sample.num_rows:,} rows."
    return sample, replace(drafted, remarks={**drafted.remarks, "": head})


def _with_notes(drafted: Schema, notes: Mapping[str, str]) -> Schema:
    """Return a draft with the notes of its file, each before the remark on its column."""
    both = {
        c.name: f"{notes[c.name]} {drafted.remarks.get(c.name, '')}".strip()
        for c in drafted.columns
        if c.name in notes
    }
    return replace(drafted, remarks={**drafted.remarks, **both})


def _declared_codes(path: Path) -> dict[str, Sequence[str]]:
    """Return the missing-value codes that a file of Stata, SPSS or SAS declares."""
    if statistical.reader_of(path) is None:
        return {}
    return {v.name: v.missing_codes for v in statistical.read_labels(path) if v.missing_codes}


def _with_codes(drafted: Schema, codes: Mapping[str, Sequence[str]]) -> Schema:
    """Return a draft that declares missing-value codes, for its columns with a missing state."""
    declared = {
        c.name: replace(drafted.source(c.name), missing_codes=codes[c.name])
        for c in drafted.columns
        if c.name in codes and c.missing
    }
    return replace(drafted, sources={**drafted.sources, **declared})
