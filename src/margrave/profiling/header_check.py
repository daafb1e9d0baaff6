"""Detect a header that is really a row: without a header, the first row would be published.

**Privacy:** NOT private if it looks at values: for the custodian only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from margrave.errors import DataError, SchemaError
from margrave.profiling.messages import Remark
from margrave.schema import validators
from margrave.schema.categorical import Categorical, Ordinal
from margrave.schema.column import Column
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.parsing import MARKS
from margrave.schema.text_patterns import date_format

REMEDY = "The first line of a table must name the columns, and names are published: put such a line in front."


def check_names(names: Sequence[str]) -> None:
    """Raise ``DataError`` if a schema cannot hold the name of a column. It gives the place: the name may be a value."""
    for place, name in enumerate(names, 1):
        try:
            validators.name(name)
        except SchemaError:
            raise DataError(
                f"The name of column {place} of the table is blank, longer than 300 characters, or has a line break or"
                " another character that is not printed.",
                remedy="Rename it in the table.",
            ) from None


def reads_as_value(name: str) -> bool:
    """Return True if a name reads as a number, a date or a mark for a missing value.

    >>> [n for n in ("8", "3,5", "2021-03-04", "1.2.1980", "NA", "age", "q8", "2nd") if reads_as_value(n)]
    ['8', '3,5', '2021-03-04', '1.2.1980', 'NA']
    """
    short = name.strip()
    number = re.fullmatch(r"[-+]?[.,]?\d[\d.,]*([eE][-+]?\d+)?\s?%?", short) is not None
    return number or short.lower() in MARKS or date_format(DistinctTexts.of([short])) is not None


def value_like_names(values: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names that look like values. Raise ``DataError`` if the header is a row beyond
    doubt.
    """
    own = [n for n, texts in values.items() if n.strip() in texts]
    found = [n for n in values if n in own or reads_as_value(n)]
    if own and 2 * len(found) > len(values):
        raise DataError(
            f"The table has no header: {value_like_places(list(values), found)}.", remedy=REMEDY
        )
    return found


def columns_named_like_values(columns: Sequence[Column]) -> list[str]:
    """Return the names of a schema's columns that look like values."""
    listed = {c.name: c.categories for c in columns if isinstance(c, Categorical | Ordinal)}
    return [c.name for c in columns if reads_as_value(c.name) or c.name in listed.get(c.name, ())]


def value_like_places(names: Sequence[str], found: Sequence[str]) -> str:
    """Return a phrase on the names that look like values, by position, since they may be someone's
    values.
    """
    places = [str(i) for i, n in enumerate(names, 1) if n in found]
    shown = (
        ", ".join(places)
        if len(places) <= 10
        else f"{', '.join(places[:10])} and {len(places) - 10} more"
    )
    one = len(places) == 1
    return (
        f"the name{'' if one else 's'} of column{'' if one else 's'} {shown} read{'s' if one else ''} as"
        f" {'a value' if one else 'values'} (a number, a date), or occur{'s' if one else ''} among the column's values"
    )


def question(names: Sequence[str], found: Sequence[str]) -> str:
    """Return the question about names that look like values."""
    return f"{Remark.HEADER} It looks like a row: {value_like_places(names, found)}. {REMEDY}"
