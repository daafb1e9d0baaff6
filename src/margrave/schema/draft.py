"""A first schema from the rows, for a person to correct: kinds, bounds, categories and missing states as they occur.

**Privacy:** NOT private. Bounds and categories read from the rows tell of the rows, so the schema is marked a draft,
which the gate refuses until someone has put what is public in their place.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.cells import EXACT
from margrave.schema.column import Column
from margrave.schema.discrete import OTHER, Boolean, Categorical
from margrave.schema.evidence import FEW, Evidence, gather
from margrave.schema.frames import each_column, names_of
from margrave.schema.headers import question, suspects
from margrave.schema.identity import identifies, likeliest, names_persons, of_persons
from margrave.schema.looks import (
    alike,
    comma_numbers,
    date_format,
    dotted_thousands,
    either_way,
    free_text,
    mostly_numbers,
    partly_dates,
)
from margrave.schema.numeric import BINS, UNITS, Date, Integer, Real, Timestamp
from margrave.schema.preflight import LOOK
from margrave.schema.questions import (
    CENTURY,
    COMMAS,
    DECIMALS,
    HEAD,
    MARKED,
    MIXED,
    MOSTLY,
    NUMBERS,
    OFFSET,
    PERSONS,
    SAME,
    TAIL,
    THOUSANDS,
    UNIQUE,
    far_off,
    worded,
)
from margrave.schema.schema import Schema
from margrave.schema.sentinels import sentinels, without_words
from margrave.schema.skew import growing_edges
from margrave.schema.values import at_midnight, in_utc, number, parser, text

MANY = 100
"""More categories than this are cut to the most frequent, and the rest counted as other."""
HEAPED = 0.2
"""A number that this share of the rows has gets a cell of its own."""


def draft(frame: Any) -> Schema:
    """A draft schema of a frame, with remarks on what must be checked.

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
    persons: list[Evidence] = []
    names, values = names_of(frame), dict[str, Collection[str]]()
    for name, pieces in each_column(frame, names):
        evidence, words = without_words(gather(name, pieces), _is_number)
        values[name] = evidence.counts.keys() & {name.strip()}
        reason = useless(evidence)
        if reason in (PERSONS, UNIQUE) and of_persons(evidence):
            persons.append(evidence)
        if reason is None:
            column, remark = propose(evidence)
            columns.append(column)
            remarks[name] = f"{remark}{worded(words)}"
        else:
            ignore.append(name)
            left_out.append(f"Left out: {name!r} ({reason}).")
    person, odd = likeliest(persons), suspects(values)
    if not columns:
        raise SchemaError(
            "No column of the table can be drafted: all are empty or identify single rows.",
            remedy="Write the schema by hand.",
        )
    if person is not None:
        del left_out[ignore.index(person.name)]
        ignore.remove(person.name)
        left_out.append(whose(person))
    remarks[""] = "\n".join([HEAD, *([f"{LOOK} {question(names, odd)}"] if odd else []), *left_out])
    named = None if person is None else person.name
    return Schema(columns, draft=True, person=named, ignore=ignore, remarks=remarks)


def whose(person: Evidence) -> str:
    """What to check of the column that seems to say whose row it is.

    Taken for one by mistake, it costs a question; overlooked, single rows are protected and persons are not.
    """
    return (
        f"{person.name!r} seems to say whose row it is, and a run then wants a unit of persons (--unit"
        " add-remove-person:K). Is that wrong? Then delete the line person = ..., and list the column under ignore."
    )


def useless(evidence: Evidence) -> str | None:
    """Why a column cannot be synthesised, if so."""
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
        return PERSONS
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
        return PERSONS
    if whole or dates or _all(texts, _is_number):
        return None
    return MOSTLY if mostly_numbers(texts) else UNIQUE


def unreadable(evidence: Evidence) -> str | None:
    """Why numbers or dates could not be read as what they are, if so."""
    texts = evidence.counts
    if evidence.written and comma_numbers(texts):
        return COMMAS
    if evidence.written and dotted_thousands(texts):
        return THOUSANDS
    return MIXED if partly_dates(texts) else None


def propose(evidence: Evidence) -> tuple[Column, str]:
    """A column and a remark for the person who checks it."""
    column, remark = _proposed(evidence)
    if len(evidence.counts) == 1 and not evidence.missing:
        remark = f"{SAME} {remark}"
    return column, remark.rstrip()


def _proposed(evidence: Evidence) -> tuple[Column, str]:
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


def _integer(evidence: Evidence) -> tuple[Column, str]:
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


def _far(values: Counter[Any], bounds: Callable[[Any, Any], str], shown: Callable[[Any], Any] = text) -> str:
    """What is asked about numbers that look like marks for a missing value, with the bounds of the others."""
    marks = sentinels(values)
    if not marks:
        return ""
    rest = [v for v in values if v not in marks]
    return far_off([str(shown(v)) for v in marks], bounds(min(rest), max(rest)))


def _real(evidence: Evidence) -> tuple[Column, str]:
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
    column = Real(evidence.name, low, high, edges=edges, atoms=atoms, decimals=decimals, missing=evidence.missing)
    thousands = evidence.written and dotted_thousands(evidence.counts) is None
    remark = _number_remark(evidence, atoms, edges) + (DECIMALS if thousands else "")
    return column, remark + _far(values, _real_bounds)


def _dated(evidence: Evidence, pattern: str) -> tuple[Column, str]:
    read = [m for m in map(parser(pattern or None), evidence.counts) if m is not None]
    moments = [m for m in map(in_utc, read) if m is not None]
    low, high = _whole_months(min(moments), max(moments))
    swap = " Does the day come first, as in its format? All rows can be read either way."
    asked = f"Are low and high public?{swap if pattern and either_way(pattern, evidence.counts) else ''}"
    asked += CENTURY if "%y" in pattern else ""
    asked += OFFSET if any(m.utcoffset() for m in read) else ""
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
    return Timestamp(evidence.name, start, end, unit=unit, format=form, missing=evidence.missing), remark


def _categorical(evidence: Evidence) -> tuple[Column, str]:
    often = [t for t, _ in evidence.counts.most_common()]
    if len(often) <= MANY:
        column = Categorical(evidence.name, sorted(often), missing=evidence.missing)
        return column, _missing_remark(evidence, f"May all of these categories be known to exist?{_spelling(evidence)}")
    column = Categorical(evidence.name, sorted(often[:MANY]), other=True, missing=evidence.missing)
    remark = f"May these categories be known to exist? The {MANY} most frequent are listed; others become {OTHER!r}."
    remark += MARKED if evidence.marked else ""
    return column, _missing_remark(evidence, f"{remark}{_spelling(evidence)}")


def _spelling(evidence: Evidence) -> str:
    """What to mend in the file before its texts are categories. Rare ones are not quoted."""
    remark = NUMBERS if mostly_numbers(evidence.counts) and len(evidence.counts) > FEW else ""
    groups = [g for g in alike(t for t, _ in evidence.counts.most_common(MANY)) if len(g) > 1]
    if groups:
        shown = "; ".join(" and ".join(map(repr, g)) for g in groups[:3])
        more = f"; and {len(groups) - 3} more" if len(groups) > 3 else ""
        remark += f" Equal but for case or blanks: {shown}{more}. Write them alike in the file: they are told apart."
    return remark


def _number_remark(evidence: Evidence, atoms: list[Any], edges: list[Any] | None) -> str:
    heaps = " Are the atoms (values with a cell of their own) public?" if atoms else ""
    grow = TAIL if edges else ""
    return _missing_remark(evidence, f"Are low and high public? Values beyond them are moved to them.{heaps}{grow}")


def _missing_remark(evidence: Evidence, question: str = "") -> str:
    asked = [question] if question else []
    if evidence.missing:
        asked.append("It may be missing.")
    return " ".join(asked)


def rounded_outwards(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds around two values, multiples of a round step (1, 2 or 5 and zeros), about a tenth of their distance.

    >>> rounded_outwards(Decimal(17), Decimal(90))
    (Decimal('15'), Decimal('90'))
    >>> rounded_outwards(Decimal(1), Decimal(2359))
    (Decimal('0'), Decimal('2400'))
    """
    width = (high - low) / 10 if high > low else max(abs(high), Decimal(1))
    power = Decimal(10) ** math.floor(width.log10())
    step = max(n * power for n in (1, 2, 5) if n * power <= width)
    down = (low / step).to_integral_value(ROUND_FLOOR) * step
    up = (high / step).to_integral_value(ROUND_CEILING) * step
    return down, up


def _whole_months(low: datetime, high: datetime) -> tuple[date, date]:
    """The first day of a month and the last of one (of years, past two years)."""
    first, last = date(low.year, low.month, 1), date(high.year, high.month, 28)
    if (high - low).days > 730:
        first, last = date(low.year, 1, 1), date(high.year, 12, 31)
    while last < date.max and (last + timedelta(days=1)).month == last.month:
        last += timedelta(days=1)
    return first, last


def _heaps(values: Counter[Any], rows: int) -> list[Any]:
    return sorted(v for v, n in values.items() if n > HEAPED * rows)[:5]


def _all(texts: Iterable[str], test: Callable[[str], bool]) -> bool:
    return all(map(test, texts))


def _is_whole(text: str) -> bool:
    """A whole number of at most 15 digits: a leading zero makes it a code."""
    return re.fullmatch(r"-?(0|[1-9][0-9]{0,14})(\.0+)?", text) is not None


def _is_number(text: str) -> bool:
    return (
        re.fullmatch(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?", text) is not None
        and abs(number(text)) < 1e100
    )
