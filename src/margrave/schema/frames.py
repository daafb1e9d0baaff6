"""Columns of any data frame, as Arrow arrays. Frames of every kind that narwhals reads come through here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from margrave.errors import DataError
from margrave.schema.values import arrow_of, chunks


def names_of(frame: Any) -> list[str]:
    """The names of a frame's columns."""
    wrapped = _wrapped(frame)
    try:
        return list(wrapped.collect_schema().names())
    except Exception:
        raise _unreadable() from None


def columns_of(frame: Any, names: Sequence[str]) -> dict[str, list[pa.Array]]:
    """The named columns, each in one or more pieces. Their rows stay in order."""
    wrapped = _wrapped(frame)
    absent = [n for n in names if n not in names_of(frame)]
    if absent:
        raise DataError(
            f"The table has no column {', '.join(map(repr, absent))}, which the schema names.",
            remedy="Add it to the table, or take it out of the schema.",
        )
    try:
        chosen = wrapped.select(list(names))
        eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    except Exception:
        raise _unreadable() from None
    return {name: _pieces(eager[name]) for name in names}


def _wrapped(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    try:
        wrapped: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
        return wrapped
    except Exception:  # names that occur twice, or no frame at all; the message could quote the frame
        raise DataError(
            "This is not a table with distinct column names.",
            remedy="Give a path to a CSV or Parquet file, or a frame of pandas, Polars, PyArrow or DuckDB.",
        ) from None


def _pieces(series: nw.Series[Any]) -> list[pa.Array]:
    """One column as Arrow; values of mixed types become texts."""
    try:
        return chunks(series.to_arrow())
    except Exception:
        return [arrow_of(series.to_list())]


def _unreadable() -> DataError:
    # The engine's own message is left out: it may quote values.
    return DataError("The table could not be read by its engine.", remedy="Try to read all of it there first.")
