"""Codes that a table writes for missing values, such as -9: they are read as missing, whatever the column's kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.errors import SchemaError
from margrave.schema.categorical import Lookup
from margrave.schema.column import Column, Encoded, encode_each_once, with_missing_code
from margrave.schema.elapsed import Elapsed
from margrave.schema.parsing import Mask, distinct
from margrave.schema.sources import ColumnSource
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
    declared: Collection[str],
    missing_codes: Mapping[str, Sequence[str]],
) -> dict[str, ColumnSource]:
    """Return the sources after columns are declared: public, with the missing-value codes of the table.

    Args:
        sources: The sources before.
        declared: The names of columns whose declaration is new.
        missing_codes: New codes by column, in place of its codes before.

    Example:
        >>> before = {"age": ColumnSource(read=["high"], missing_codes=["-9"])}
        >>> declared_sources(before, ["age"], {})["age"]
        ColumnSource(of='public', read=(), cite='', missing_codes=('-9',), public=())
    """
    found = {
        n: ColumnSource(missing_codes=s.missing_codes) if n in declared else s
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
        missing_codes: Texts. A number equals every way to write it.

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
    empty = encoded.empty | stand_for_missing(values, missing_codes)
    return with_missing_code(
        encoded.codes, empty, encoded.outside, encoded.unreadable, column.size - 1
    )


def without_missing_codes(values: pa.Array, missing_codes: Sequence[str]) -> pa.Array:
    """Return values with nulls in place of missing-value codes.

    >>> without_missing_codes(pa.array([3, -9, 9]), ["-9"]).to_pylist()
    [3, None, 9]
    """
    if not missing_codes:
        return values
    return pc.if_else(pa.array(stand_for_missing(values, missing_codes)), None, values)


def stand_for_missing(values: pa.Array, missing_codes: Sequence[str]) -> Mask:
    """Return which values are missing-value codes.

    >>> stand_for_missing(pa.array(["-9", "-9.0", "9", None]), ["-9"]).tolist()
    [True, True, False, False]
    """
    find = Lookup(tuple(missing_codes))
    rows, texts = distinct(values)
    stands = np.array([t is not None and find(t) is not None for t in texts], dtype=np.bool_)
    return np.asarray(stands[rows])
