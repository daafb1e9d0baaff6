"""Pairs of dates or times of which one follows the other: by the names of their columns, or as their rows show.

**Privacy:** names and kinds of columns are public. The order of two dates in the rows is not, so a draft asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from margrave._card import counted
from margrave.data.batch_sources import open_source, sampled_frame
from margrave.error_sanitizer import hide_rows
from margrave.schema.column import Column
from margrave.schema.elapsed import Elapsed, since_of
from margrave.schema.elapsed_values import as_written
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Timestamp
from margrave.schema.parts import source_name
from margrave.schema.schema import Schema
from margrave.types import FloatArray


def starts_by_name(names: Iterable[str]) -> dict[str, str]:
    """Return by each column whose name says that it follows another, that other.

    Names agree but for a pair of words such as start and end. Words such as date and time make no difference.

    >>> starts_by_name(["admission_date", "DischargeTime", "bed"])
    {'DischargeTime': 'admission_date'}
    >>> starts_by_name(["tpep_pickup_datetime", "tpep_dropoff_datetime", "start_a", "end_b", "date_in"])
    {'tpep_dropoff_datetime': 'tpep_pickup_datetime'}
    """
    pairs = (
        ("start", "end"), ("start", "stop"), ("start", "finish"), ("begin", "end"), ("beginning", "end"),
        ("admission", "discharge"), ("admit", "discharge"), ("admit", "disch"), ("adm", "disch"),
        ("pickup", "dropoff"), ("in", "out"), ("checkin", "checkout"), ("entry", "exit"), ("from", "to"),
        ("from", "until"), ("open", "close"), ("birth", "death"), ("born", "died"), ("issue", "expiry"),
    )  # fmt: skip
    words = {name: _words(name) for name in names}
    found = {}
    for name, own in words.items():
        starts = {
            other
            for first, second in pairs
            if second in own
            for other, theirs in words.items()
            if first in theirs
            and other != name
            and _without(own, second) == _without(theirs, first)
        }
        if len(starts) == 1:
            found[name] = starts.pop()
    return {name: start for name, start in found.items() if start not in found}


def _words(name: str) -> tuple[str, ...]:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    plain = re.sub(r"(pick|drop|check)[^a-z0-9]?(up|off|in|out)(?![a-z])", r"\1\2", plain)
    plain = re.sub(r"(?<=[a-z])(datetime|date|time)(?![a-z])", "", plain)
    general = {"date", "time", "datetime", "timestamp", "day", "at", "on", "dt", "ts", "dttm"}
    base = {"started": "start", "ended": "end", "stopped": "stop", "finished": "finish", "began": "begin",
            "admitted": "admit", "discharged": "discharge", "opened": "open", "closed": "close",
            "issued": "issue", "expires": "expiry", "expired": "expiry"}  # fmt: skip
    split = [w for w in re.split(r"[^a-z0-9]+", plain) if w and w not in general]
    return tuple(base.get(w, w) for w in split)


def _without(words: Sequence[str], word: str) -> tuple[str, ...]:
    at = words.index(word)
    return (*words[:at], *words[at + 1 :])


def elapsed_after(column: Column, since: str) -> Learn | None:
    """Return a column of dates or times to learn as the time since another, never before it; None for other columns."""
    if not isinstance(column, Learn) or column.of not in (Date.kind, Timestamp.kind):
        return None
    unit = column.unit or "day"
    return Learn(column.name, Elapsed.kind, low=0, unit=unit, format=column.format, since=since)


def apart(column: Column) -> Learn:
    """Return an elapsed column as one of dates or times of its own, to be learned."""
    learned = as_written(column)
    assert isinstance(learned, Learn)
    return learned


def with_elapsed_after(columns: Sequence[Column], starts: Mapping[str, str]) -> list[Column]:
    """Return the columns. Those with a start are the time since it and have no hours and weekdays."""
    times = {c.name for c in columns if c.kind in (Date.kind, Timestamp.kind)}
    known = {n: s for n, s in starts.items() if {n, s} <= times}
    made = {c.name: elapsed_after(c, known[c.name]) for c in columns if c.name in known}
    replaced = {name: column for name, column in made.items() if column is not None}
    return [
        replaced.get(c.name, c)
        for c in columns
        if c.name in replaced or source_name(c) not in replaced
    ]


def elapsed_question(column: Learn) -> str:
    """Return the question of a draft on a column that is the time since another by its name."""
    own = apart(column)
    keys = "low and since" if own.unit else "low, since and unit"
    return (
        f"By its name it follows {column.since!r}: it is kept as the {column.unit}s since then, and never before (low ="
        f" 0). Rows in which it is earlier count as 0. Is it not always later? Then leave low = 0 out. Does it not"
        f' follow? Then write kind = "{own.of}", and leave {keys} out.'
    )


@hide_rows
def backward_rows(source: Any, schema: Schema) -> tuple[str, ...]:
    """Return a sentence for each elapsed column that is before its start in some rows, though its bounds exclude it.

    Privacy:
        NOT private: true counts, for the custodian alone.
    """
    bounded = [c for c in schema.to_learn if since_of(c) and c.low is not None and c.low >= 0]
    if not bounded:
        return ()
    frame = source if open_source(source) is None else sampled_frame(source)
    found = schema.pieces_of(frame, [c.name for c in bounded])
    return tuple(
        f"In {counted(rows, 'row')} {c.name!r} is before {c.since!r}. {'It counts' if rows == 1 else 'They count'} as"
        f" {c.low} {c.unit}{'' if c.low == 1 else 's'}. Correct {'it' if rows == 1 else 'them'}, or take low"
        f" out of {c.name!r} if it may be earlier."
        for c in bounded
        if (rows := sum(int((_units(c, p) < c.low).sum()) for p in found[c.name]))
    )


def _units(column: Learn, piece: Any) -> FloatArray:
    points, empty = column.reader.points(piece)
    return np.where(empty | np.isnan(points), np.inf, points)
