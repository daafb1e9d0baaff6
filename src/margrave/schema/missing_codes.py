"""Codes that a table writes for missing values, such as -9: they are read as missing, whatever the column's kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.errors import SchemaError
from margrave.schema.categorical import Categorical, Lookup, Ordinal
from margrave.schema.column import Column, Encoded, encode_each_once, with_missing_code
from margrave.schema.elapsed import Elapsed
from margrave.schema.learn import Learn
from margrave.schema.parsing import DateReader, Mask, distinct, plain
from margrave.schema.sources import ColumnSource, labels_left, spans_of_codes
from margrave.schema.text_moments import moments
from margrave.schema.validators import column_error


def codes_by_column(
    missing_codes: Mapping[str, Sequence[str]] | None,
) -> Mapping[str, Sequence[str]]:
    """Return missing-value codes by column. Raise ``SchemaError`` if they are not a mapping.

    >>> codes_by_column({"age": ["-9"]}), codes_by_column(None)
    ({'age': ['-9']}, {})
    """
    if missing_codes is not None and not isinstance(missing_codes, Mapping):
        raise SchemaError(
            "missing_codes does not list codes by column.",
            remedy='Give missing_codes={"age": ["-9"]}, say.',
        )
    return missing_codes or {}


def declared_sources(
    sources: Mapping[str, ColumnSource],
    declared: Mapping[str, Column],
    missing_codes: Mapping[str, Sequence[str]],
) -> dict[str, ColumnSource]:
    """Return the sources after columns are declared: public, with the table's missing-value codes, titles and labels.

    Args:
        sources: The sources before.
        declared: The columns whose declaration is new, by name.
        missing_codes: New codes by column, in place of its codes before.

    Example:
        >>> from margrave.schema import Integer
        >>> before = {"age": ColumnSource(read=["high"], missing_codes=["-9"])}
        >>> declared_sources(before, {"age": Integer("age", 0, 99, missing=True)}, {})["age"]
        ColumnSource(of='public', read=(), cite='', missing_codes=('-9',), public=(), title='', labels={})
    """
    found = {
        n: ColumnSource(
            missing_codes=s.missing_codes, title=s.title, labels=labels_left(s.labels, declared[n])
        )
        if n in declared
        else s
        for n, s in sources.items()
    }
    for name, codes in missing_codes.items():
        try:
            found[name] = replace(found.get(name, ColumnSource()), missing_codes=codes)
        except SchemaError:
            raise column_error(
                str(name),
                "its missing_codes are not a list of texts.",
                'Give missing_codes={"age": ["-9"]}, say.',
            ) from None
    return found


def encode_with_missing_codes(
    column: Column, values: pa.Array, missing_codes: Sequence[str]
) -> Encoded:
    """Return the codes of some values, of which those in ``missing_codes`` are missing.

    Args:
        column: A column, with a missing state if there are missing codes.
        values: Values of the table.
        missing_codes: Texts. See ``stand_for_missing``.

    Example:
        >>> from margrave.schema.numeric import Integer
        >>> found = encode_with_missing_codes(
        ...     Integer("visits", 0, 4, missing=True), pa.array([3, -9, -5, None]), ["-9"]
        ... )
        >>> found.codes.tolist(), found.empty.tolist(), found.outside.tolist()
        ([3, 5, 0, 5], [False, True, False, True], [False, False, True, False])
    """
    encoded = encode_each_once(column, values)
    if not missing_codes or isinstance(column, Elapsed):  # whose codes are of dates, not of numbers
        return encoded
    empty = encoded.empty | stand_for_missing(column, values, missing_codes)
    return with_missing_code(
        encoded.codes,
        empty,
        encoded.outside,
        encoded.unreadable,
        column.size - 1,
        encoded.decimals,
    )


def without_missing_codes(
    column: Column, values: pa.Array, missing_codes: Sequence[str]
) -> pa.Array:
    """Return values of a column with nulls in place of missing-value codes.

    >>> from margrave.schema.learn import Learn
    >>> without_missing_codes(Learn("visits", "integer"), pa.array([3, -9, 9]), ["-9"]).to_pylist()
    [3, None, 9]
    """
    if not missing_codes:
        return values
    values = plain(values)
    stands = pa.array(stand_for_missing(column, values, missing_codes))
    return pc.if_else(stands, pa.scalar(None, values.type), values)


def table_without_missing_codes(
    table: pa.Table, missing_codes: Mapping[str, Sequence[str]]
) -> tuple[pa.Table, dict[str, Sequence[str]]]:
    """Return a table with nulls in place of missing-value codes, and the codes of its columns of numbers or texts.

    >>> table = pa.table({"visits": [3, -9], "ward": ["A", "XX"]})
    >>> left, codes = table_without_missing_codes(table, {"ward": ["XX"], "age": ["998"]})
    >>> left.to_pydict(), codes
    ({'visits': [3, -9], 'ward': ['A', None]}, {'ward': ['XX']})
    """
    found = dict[str, Sequence[str]]()
    for place, field in enumerate(table.schema):
        codes = missing_codes.get(field.name, ())
        if codes and not pa.types.is_temporal(field.type):
            kind = "integer" if pa.types.is_primitive(field.type) else "categorical"
            column = table.column(place).combine_chunks()
            left = without_missing_codes(Learn(field.name, kind), column, codes)
            table = table.set_column(place, field.name, left)
            found[field.name] = codes
    return table, found


def stand_for_missing(column: Column, values: pa.Array, missing_codes: Sequence[str]) -> Mask:
    """Return which values of a column are missing-value codes.

    A number equals every way to write it, and so does a date or time. A date among times is all of its day. Among
    categories a text with leading zeros equals a code only as it is written, and so does a listed category.

    >>> from margrave.schema.learn import Learn
    >>> stand_for_missing(Learn("visits", "integer"), pa.array(["-9", "-9.0", "9", None]), ["-9"]).tolist()
    [True, True, False, False]
    >>> seen = pa.array(["1.1.1900 08:30", "2.1.1900 08:30"])
    >>> stand_for_missing(Learn("seen", "timestamp", format="%d.%m.%Y %H:%M"), seen, ["1900-01-01"]).tolist()
    [True, False]
    """
    find, is_own = Lookup(tuple(missing_codes)), _own_texts(column, missing_codes)
    rows, texts = distinct(values)
    stands = np.array(
        [t is not None and find(t) is not None and not is_own(t.strip()) for t in texts],
        dtype=np.bool_,
    )
    found = np.asarray(stands[rows])
    if spans := spans_of_codes(column, missing_codes):
        seconds, _ = moments(values, 1, DateReader(getattr(column, "format", None)))
        for first, last in spans:
            found |= (first <= seconds) & (seconds <= last)
    return found


def _own_texts(column: Column, missing_codes: Sequence[str]) -> Callable[[str], bool]:
    """Return the function that is true for texts that differ from a code, although they are the same number."""
    if column.kind not in (Categorical.kind, Ordinal.kind):
        return lambda _: False
    listed = {c.strip() for c in getattr(column, "categories", ())}
    codes, padded = {c.strip() for c in missing_codes}, re.compile(r"[-+]?0\d")
    return lambda text: text not in codes and (text in listed or padded.match(text) is not None)
