"""Arrow tables as frames of pandas or Polars, with nullable numbers and orders intact."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, get_args

import narwhals as nw
import pyarrow as pa

from margrave.errors import InputError, did_you_mean

#: The kinds of frames that rows are returned as.
Kind = Literal["pandas", "polars", "arrow"]


def kind_of(table: Any) -> Kind:
    """Return the kind of frame for rows like those of a table: "arrow" unless it is of pandas or Polars."""
    if nw.dependencies.is_pandas_like_dataframe(table):
        return "pandas"
    if nw.dependencies.is_polars_dataframe(table) or nw.dependencies.is_polars_lazyframe(table):
        return "polars"
    return "arrow"


def check_kind(kind: object) -> None:
    """Raise ``InputError`` for anything but a kind of frame whose library is installed."""
    if kind not in get_args(Kind):
        raise InputError(
            f"as_ is {kind!r}, which is not a kind of frame.",
            remedy=f"{did_you_mean(kind, get_args(Kind))}Give 'pandas', 'polars' or 'arrow'.",
        )
    if kind != "arrow" and find_spec(str(kind)) is None:
        raise InputError(
            f"as_ is {kind!r}, and {kind} is not installed.",
            remedy=f"Install it: pip install {kind}, or give as_='arrow'.",
        )


def as_kind(
    table: pa.Table,
    kind: Kind,
    *,
    orders: Mapping[str, Sequence[str]] | None = None,
    without_missing: Collection[str] = (),
) -> Any:
    """Return an Arrow table as a frame of a kind. A ``note`` in its metadata is in ``attrs`` of a frame of pandas.

    Args:
        table: The rows.
        kind: "pandas", "polars" or "arrow", which is the table as it is.
        orders: The categories of ordered columns, lowest first.
        without_missing: Columns that never have a missing value. In pandas, other whole numbers and
            truth values are of the nullable types.
    """
    check_kind(kind)
    orders = orders or {}
    if kind == "polars":
        frame = nw.from_arrow(table, backend="polars")
        ranks = [nw.col(n).cast(nw.Enum(categories)) for n, categories in orders.items()]
        return frame.with_columns(*ranks).to_native() if ranks else frame.to_native()
    return _pandas(table, orders, without_missing) if kind == "pandas" else table


def _pandas(table: pa.Table, orders: Mapping[str, Sequence[str]], whole: Collection[str]) -> Any:
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    types = {
        f.name: f.type.to_pandas_dtype()
        for f in table.schema
        if f.name in whole and f.type in nullable
    }
    types |= {n: pd.CategoricalDtype(list(c), ordered=True) for n, c in orders.items()}
    frame = table.to_pandas(types_mapper=nullable.get, date_as_object=False).astype(types)
    if note := (table.schema.metadata or {}).get(b"note"):
        frame.attrs["note"] = note.decode()
    return frame
