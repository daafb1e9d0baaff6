"""Columns of any data frame, as Arrow arrays. Frames of every kind that narwhals reads come through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from margrave.errors import DataError
from margrave.schema.values import arrow_of, chunks

T = TypeVar("T")
Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def names_of(frame: Any) -> list[str]:
    """The names of a frame's columns."""
    return _sealed(lambda: list(_wrapped(frame).collect_schema().names()), frame)


def columns_of(frame: Any, names: Sequence[str]) -> dict[str, list[pa.Array]]:
    """The named columns, each in one or more pieces. Their rows stay in order."""
    found = names_of(frame)
    absent = [n for n in names if n not in found]
    if absent:
        raise DataError(
            f"The table has no column {', '.join(map(repr, absent))}, which the schema names.",
            remedy="Add it to the table, or take it out of the schema.",
        )
    return _sealed(lambda: _read(_wrapped(frame), names), frame)


def collected(frame: Any, names: Sequence[str]) -> pa.Table:
    """The named columns, read once: a frame that is a query may give its rows in another order the next time."""
    pieces = columns_of(frame, names)
    return pa.Table.from_arrays([pa.chunked_array(p) for p in pieces.values()], names=list(pieces))


def _wrapped(frame: Any) -> Frame:
    try:
        wrapped: Frame = nw.from_native(frame)
        return wrapped
    except TypeError:
        raise _NoFrame from None


def _read(frame: Frame, names: Sequence[str]) -> dict[str, list[pa.Array]]:
    chosen = frame.select(list(names))
    eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    return {name: _pieces(eager[name]) for name in names}


def _pieces(series: nw.Series[Any]) -> list[pa.Array]:
    """One column as Arrow. Python objects become texts one by one: their common type would depend on all of them."""
    if _objects(getattr(series.to_native(), "dtype", None)):
        return [_of_objects(series.to_list())]
    try:
        return chunks(series.to_arrow())
    except (pa.ArrowException, TypeError, ValueError):
        return [_of_objects(series.to_list())]


def _objects(kind: Any) -> bool:
    """Whether a column of pandas holds Python objects; its periods and intervals have another text in Arrow."""
    inner = getattr(getattr(kind, "categories", None), "dtype", kind)
    return bool(kind == np.dtype(object)) or str(inner).startswith(("period", "interval"))


def _of_objects(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.string(), from_pandas=True)  # quick, where all are text
    except (pa.ArrowException, TypeError, ValueError):
        return arrow_of(values)


def _twice(frame: Any) -> str:
    """Which columns have one name. Not which name: of a file that was read without a header it would be a value."""
    try:
        names = [str(n) for n in getattr(frame, "column_names", None) or frame.columns]
        second = next(i for i, n in enumerate(names) if n in names[:i])
    except Exception:  # an engine's own
        return ""
    return f": columns {names.index(names[second]) + 1} and {second + 1} have the same"


class _NoFrame(Exception):
    """What was given is no table."""


def _sealed(work: Callable[[], T], frame: Any) -> T:
    """The result of work on rows. An engine's own error may quote them, so ours does not even point to it."""
    try:
        return work()
    except DuplicateError:
        failure = DataError(
            f"This is not a table with distinct column names{_twice(frame)}.", remedy="Rename one of the two."
        )
    except _NoFrame:
        failure = DataError(
            "This is not a table with distinct column names.",
            remedy="Give a path to a CSV or Parquet file, or a frame of pandas, Polars, PyArrow or DuckDB.",
        )
    except Exception:
        failure = DataError(
            "The table could not be read by its engine.", remedy="Try to read all of it there first."
        )
    raise failure
