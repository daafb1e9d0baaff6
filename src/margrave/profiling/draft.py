"""Draft a schema from the rows, for a person to correct: kinds, bounds, categories and missing
states.

**Privacy:** NOT private. Bounds and categories come from the rows, so the schema is marked a draft.
The gate refuses it until someone has replaced them by public ones.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from margrave.data.loading import is_path
from margrave.data.readers import read_frame
from margrave.error_sanitizer import hide_rows
from margrave.errors import SchemaError
from margrave.frames import each_column, names_of
from margrave.profiling.bin_edges import growing_edges
from margrave.profiling.header_check import question, value_like_names
from margrave.profiling.identifiers import best_identifier, identifies, names_persons, of_persons
from margrave.profiling.messages import Remark, far_off, worded
from margrave.profiling.sentinels import sentinels, without_words
from margrave.schema.bins import EXACT
from margrave.schema.categorical import OTHER, Boolean, Categorical
from margrave.schema.column import Column
from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile, profile_column
from margrave.schema.line import BINS
from margrave.schema.numeric import UNITS, Date, Integer, Real, Timestamp
from margrave.schema.parsing import at_midnight, in_utc, number, parser, text
from margrave.schema.schema import Schema
from margrave.schema.text_patterns import (
    alike,
    comma_numbers,
    date_format,
    dotted_thousands,
    either_way,
    free_text,
    mostly_numbers,
    partly_dates,
)
from margrave.schema.validation import LOOK

#: Categories beyond which only the most frequent are listed; the rest count as other.
MAX_CATEGORIES = 100


def draft(frame: Any) -> Schema:
    """Return a draft schema of a frame, with remarks on what must be checked.

    **Privacy:** NOT private: it reads the rows freely. The gate refuses it until ``confirmed``.

    >>> import pyarrow as pa
    >>> schema = draft(pa.table({"age": ["31", "64", None], "name": ["Ann", "Bo", "Cy"]}))
    >>> schema.draft, [c.kind for c in schema.columns]
    (True, ['integer', 'categorical'])

    Raises ``DataError`` for a table without a header, and ``SchemaError`` where no column can be drafted.
    """
    columns: list[Column] = []
    ignore: list[str] = []
    remarks: dict[str, str] = {}
    left_out = []
    persons: list[ColumnProfile] = []
    names, values = names_of(frame), dict[str, Collection[str]]()
    for name, pieces in each_column(frame, names):
        evidence, words = without_words(profile_column(name, pieces), _is_number)
        values[name] = evidence.counts.keys() & {name.strip()}
        reason = reason_to_skip(evidence)
        if reason in (Remark.PERSONS, Remark.UNIQUE) and of_persons(evidence):
            persons.append(evidence)
        if reason is None:
            column, remark = propose(evidence)
            columns.append(column)
            remarks[name] = f"{remark}{worded(words)}"
        else:
            ignore.append(name)
            left_out.append(f"Left out: {name!r} ({reason}).")
    person, odd = best_identifier(persons), value_like_names(values)
    if not columns:
        raise SchemaError(
            "No column of the table can be drafted: all are empty or identify single rows.",
            remedy="Write the schema by hand.",
        )
    if person is not None:
        del left_out[ignore.index(person.name)]
        ignore.remove(person.name)
        left_out.append(person_question(person))
    remarks[""] = "\n".join(
        [Remark.HEAD, *([f"{LOOK} {question(names, odd)}"] if odd else []), *left_out]
    )
    named = None if person is None else person.name
    return Schema(columns, draft=True, person=named, ignore=ignore, remarks=remarks)


def person_question(person: ColumnProfile) -> str:
    """Return the question about a column that looks like a person ID column.

    A false alarm costs one question. A person ID column that is overlooked protects rows, not
    persons.
    """
    return (
        f"{person.name!r} seems to say whose row it is, and a run then wants a unit of persons (--unit"
        " add-remove-person:K). Is that wrong? Then delete the line person = ..., and list the column under ignore."
    )


def reason_to_skip(evidence: ColumnProfile) -> str | None:
    """Return the reason why a column cannot be synthesized, or None."""
    texts = evidence.counts
    if not texts:
        return "it has no values"
    if not evidence.name.isprintable() or not evidence.name.strip():
        return "its name is not printable"
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
    whole = _all(texts, _is_whole)
    if whole and len(texts) == evidence.rows:
        values = [int(float(t)) for t in texts]
        numbered = names_persons(evidence.name) or max(values) - min(values) < 2 * len(values)
        return "it numbers the rows" if numbered else None
    if whole and identifies(evidence.name, texts):
        return Remark.PERSONS
    if whole or dates or _all(texts, _is_number):
        return None
    return Remark.MOSTLY if mostly_numbers(texts) else Remark.UNIQUE


def unreadable(evidence: ColumnProfile) -> str | None:
    """Return the reason why numbers or dates could not be read, or None."""
    texts = evidence.counts
    if evidence.written and comma_numbers(texts):
        return Remark.COMMAS
    if evidence.written and dotted_thousands(texts):
        return Remark.THOUSANDS
    return Remark.MIXED if partly_dates(texts) else None


def propose(evidence: ColumnProfile) -> tuple[Column, str]:
    """Return a column and a remark for the person who checks it."""
    column, remark = _proposed(evidence)
    if len(evidence.counts) == 1 and not evidence.missing:
        remark = f"{Remark.SAME} {remark}"
    return column, remark.rstrip()


def _proposed(evidence: ColumnProfile) -> tuple[Column, str]:
    texts = evidence.counts
    if evidence.truth or _all(texts, lambda t: t.lower() in ("true", "false")):
        return Boolean(evidence.name, missing=evidence.missing), _missing_remark(evidence)
    pattern = date_format(texts)
    if pattern is not None:
        return _dated(evidence, pattern)
    if _all(texts, _is_whole):
        return _integer(evidence)
    if _all(texts, _is_number):
        return _real(evidence)
    return _categorical(evidence)


def _integer(evidence: ColumnProfile) -> tuple[Column, str]:
    values: Counter[int] = Counter()
    for written, count in evidence.counts.items():
        values[int(float(written))] += count
    low, high = (int(v) for v in rounded_outwards(Decimal(min(values)), Decimal(max(values))))
    few = max(values) - min(values) < BINS
    low, high = (min(values), max(values)) if few else (max(low, -EXACT + 1), min(high, EXACT - 1))
    atoms = [] if few else _heaps(values, evidence.rows)
    edges = [int(e) for e in growing_edges(values, atoms, low, high, whole=True)] or None
    column = Integer(evidence.name, low, high, edges=edges, atoms=atoms, missing=evidence.missing)
    return column, _number_remark(evidence, atoms, edges) + _far(values, _whole_bounds)


def _whole_bounds(low: int, high: int) -> str:
    if high - low >= BINS:
        low, high = (int(v) for v in rounded_outwards(Decimal(low), Decimal(high)))
    return f"low = {low} and high = {high}"


def _real_bounds(low: float, high: float) -> str:
    down, up = rounded_outwards(Decimal(repr(low)), Decimal(repr(high)))
    return f"low = {float(down)} and high = {float(up)}"


def _day_bounds(low: int, high: int) -> str:
    first, last = _whole_months(*(datetime.fromordinal(day) for day in (low, high)))
    return f"low = {first} and high = {last}"


def _far(
    values: Counter[Any], bounds: Callable[[Any, Any], str], text_of: Callable[[Any], Any] = text
) -> str:
    marks = sentinels(values)
    if not marks:
        return ""
    rest = [v for v in values if v not in marks]
    return far_off([str(text_of(v)) for v in marks], bounds(min(rest), max(rest)))


def _real(evidence: ColumnProfile) -> tuple[Column, str]:
    exact = [Decimal(t) for t in evidence.counts]
    low, high = (float(v) for v in rounded_outwards(min(exact), max(exact)))
    if low == high:
        apart = max(1.0, abs(low) / 2**20)  # beyond 2^53 one more is the same float
        low, high = low - apart, high + apart
    values: Counter[float] = Counter()
    for written, count in evidence.counts.items():
        values[number(written)] += count
    atoms = _heaps(values, evidence.rows)
    places = max(max(0, -int(v.normalize().as_tuple().exponent)) for v in exact)
    fits = places <= 6 and max(abs(low), abs(high)) * 10**places < EXACT
    edges = [float(e) for e in growing_edges(values, atoms, low, high, whole=False)] or None
    decimals = places if fits else None
    column = Real(
        evidence.name,
        low,
        high,
        edges=edges,
        atoms=atoms,
        decimals=decimals,
        missing=evidence.missing,
    )
    thousands = evidence.written and dotted_thousands(evidence.counts) is None
    remark = _number_remark(evidence, atoms, edges) + (Remark.DECIMALS if thousands else "")
    return column, remark + _far(values, _real_bounds)


def _dated(evidence: ColumnProfile, pattern: str) -> tuple[Column, str]:
    read = [m for m in map(parser(pattern or None), evidence.counts) if m is not None]
    moments = [m for m in map(in_utc, read) if m is not None]
    low, high = _whole_months(min(moments), max(moments))
    swap = " Does the day come first, as in its format? All rows can be read either way."
    asked = f"Are low and high public?{swap if pattern and either_way(pattern, evidence.counts) else ''}"
    asked += Remark.CENTURY if "%y" in pattern else ""
    asked += Remark.OFFSET if any(m.utcoffset() for m in read) else ""
    days: Counter[int] = Counter()
    for written, count in evidence.counts.items():
        moment = parser(pattern or None)(written)
        moment = None if moment is None else in_utc(moment)
        days.update({} if moment is None else {moment.toordinal(): count})
    far = _far(days, _day_bounds, date.fromordinal)
    remark, form = _missing_remark(evidence, asked) + far, pattern or None
    if all(m == datetime(m.year, m.month, m.day) for m in moments):
        return Date(evidence.name, low, high, format=form, missing=evidence.missing), remark
    unit = "second" if any(m.second or m.microsecond for m in moments) else "minute"
    if all(m.minute == 0 and m.second == 0 and m.microsecond == 0 for m in moments):
        unit = "hour"
    start, end = at_midnight(low), at_midnight(high) + timedelta(seconds=86400 - UNITS[unit])
    return Timestamp(
        evidence.name, start, end, unit=unit, format=form, missing=evidence.missing
    ), remark


def _categorical(evidence: ColumnProfile) -> tuple[Column, str]:
    often = [t for t, _ in evidence.counts.most_common()]
    if len(often) <= MAX_CATEGORIES:
        column = Categorical(evidence.name, sorted(often), missing=evidence.missing)
        return column, _missing_remark(
            evidence, f"May all of these categories be known to exist?{_spelling(evidence)}"
        )
    column = Categorical(
        evidence.name, sorted(often[:MAX_CATEGORIES]), other=True, missing=evidence.missing
    )
    remark = (
        f"May these categories be known to exist? The {MAX_CATEGORIES} most frequent are listed;"
        f" others become {OTHER!r}."
    )
    remark += Remark.MARKED if evidence.marked else ""
    return column, _missing_remark(evidence, f"{remark}{_spelling(evidence)}")


def _spelling(evidence: ColumnProfile) -> str:
    remark = (
        Remark.NUMBERS
        if mostly_numbers(evidence.counts) and len(evidence.counts) > MAX_LISTED_TEXTS
        else ""
    )
    groups = [
        g for g in alike(t for t, _ in evidence.counts.most_common(MAX_CATEGORIES)) if len(g) > 1
    ]
    if groups:
        shown = "; ".join(" and ".join(map(repr, g)) for g in groups[:3])
        more = f"; and {len(groups) - 3} more" if len(groups) > 3 else ""
        remark += f" Equal but for case or blanks: {shown}{more}. Write them alike in the file."
    return remark


def _number_remark(evidence: ColumnProfile, atoms: list[Any], edges: list[Any] | None) -> str:
    heaps = " Are the atoms (values with a cell of their own) public?" if atoms else ""
    grow = Remark.TAIL if edges else ""
    return _missing_remark(
        evidence, f"Are low and high public? Values beyond them are moved to them.{heaps}{grow}"
    )


def _missing_remark(evidence: ColumnProfile, question: str = "") -> str:
    asked = [question] if question else []
    if evidence.missing:
        asked.append("It may be missing.")
    return " ".join(asked)


def rounded_outwards(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Return bounds around two values, multiples of a round step (1, 2 or 5 and zeros), about a
    tenth of their distance.
    """
    width = (high - low) / 10 if high > low else max(abs(high), Decimal(1))
    power = Decimal(10) ** math.floor(width.log10())
    step = max(n * power for n in (1, 2, 5) if n * power <= width)
    down = (low / step).to_integral_value(ROUND_FLOOR) * step
    up = (high / step).to_integral_value(ROUND_CEILING) * step
    return down, up


def _whole_months(low: datetime, high: datetime) -> tuple[date, date]:
    first, last = date(low.year, low.month, 1), date(high.year, high.month, 28)
    if (high - low).days > 730:
        first, last = date(low.year, 1, 1), date(high.year, 12, 31)
    while last < date.max and (last + timedelta(days=1)).month == last.month:
        last += timedelta(days=1)
    return first, last


def _heaps(values: Counter[Any], rows: int) -> list[Any]:
    # Share of the rows from which a number gets a cell of its own.
    min_share = 0.2
    return sorted(v for v, n in values.items() if n > min_share * rows)[:5]


def _all(texts: Iterable[str], test: Callable[[str], bool]) -> bool:
    return all(map(test, texts))


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"-?(0|[1-9][0-9]{0,14})(\.0+)?", text) is not None


def _is_number(text: str) -> bool:
    return (
        re.fullmatch(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?", text) is not None
        and abs(number(text)) < 1e100
    )


@hide_rows
def draft_schema(source: Any) -> Schema:
    """Return a draft schema of a file or frame, for a person to check. See ``draft``.

    **Privacy:** NOT private: its bounds and categories are those of the rows. The gate refuses it until confirmed.
    """
    return draft(read_frame(source) if is_path(source) else source)
