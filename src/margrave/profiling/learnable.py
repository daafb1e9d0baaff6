"""From a draft to a schema that holds nothing of the rows but names and kinds: the rest is learned."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from margrave.schema.categorical import Categorical, Ordinal
from margrave.schema.column import Column
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.schema import Schema


def learnable(draft: Schema) -> Schema:
    """Return a draft with ``learn = true`` in place of every bound and category that was read from the rows.

    The names and kinds of columns remain, which numbers are 0 or 1, the formats of dates and times,
    and which columns are ignored or identify persons. Whoever uses the schema takes these as public.

    >>> from margrave.schema import Boolean
    >>> made = learnable(Schema([Integer("age", 17, 90), Boolean("sex")], draft=True))
    >>> made.draft, [type(c).__name__ for c in made.columns], made.columns[0].low
    (False, ['Learn', 'Boolean'], None)
    """
    return replace(draft, columns=tuple(map(_learned, draft.columns)), draft=False, remarks={})


def _learned(column: Column) -> Column:
    match column:
        case Integer() if is_zero_or_one(column):
            return Integer(column.name, 0, 1, missing=True, outside="missing")
        case Integer() | Real():
            return Learn(column.name, column.kind)
        case Date():
            return Learn(column.name, "date", format=column.format)
        case Timestamp():
            return Learn(column.name, "timestamp", unit=column.unit, format=column.format)
        case Categorical() | Ordinal():
            return Learn(column.name, "categorical")
        case _:
            return replace(column, missing=True, outside="")  # type: ignore[type-var]


def is_zero_or_one(column: Column) -> bool:
    """Return True for whole numbers of which only 0 and 1 occur."""
    return isinstance(column, Integer) and (column.low, column.high) == (0, 1)


def taken_as_public(schema: Schema) -> str:
    """Return what a learnable schema takes as public, in a sentence."""
    names = defaultdict(list)
    for column in schema.columns:
        names["0 or 1" if is_zero_or_one(column) else column.kind].append(column.name)
    kinds = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in sorted(names.items()))
    ignored = f" Left out: {', '.join(schema.ignore)}." if schema.ignore else ""
    person = "" if schema.person is None else f" Person ID column: {schema.person}."
    return f"Taken as public: the names and kinds of the columns ({kinds}).{ignored}{person}"
