"""Rows drawn from a model: seeds, numbers of rows, and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from margrave._fields import is_whole
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.frame_kinds import Kind, as_kind, check_kind
from margrave.models.protocol import Model
from margrave.schema import Ordinal, Schema


def check_seed(seed: object) -> None:
    """Raise ``InputError`` unless a seed is None or a whole number of 0 or more."""
    if not (seed is None or is_whole(seed, 0)):
        raise InputError(f"{seed!r} is not a seed.", remedy="A seed is a whole number, 0 or more.")


def generator(seed: int | None) -> np.random.Generator:
    """Return random numbers for post-processing, the same for the same seed."""
    check_seed(seed)
    return np.random.default_rng(seed)


def row_count_is_known(total: float, deviation: float) -> bool:
    """Return whether the row count is large against its standard deviation."""
    # Least ratio of the row count to its standard deviation. The count is then known to about a
    # quarter, and an empty table passes for one with records three times in a hundred thousand.
    min_row_count_snr = 4.0
    return total >= min_row_count_snr * deviation


def rows_if_unknown() -> int:
    """Return the number of rows that a run draws if the noise hides how many there are."""
    return 1000


def check_row_count(total: float, deviation: float) -> None:
    """Raise ``InputError`` if the row count is lost in noise."""
    if not row_count_is_known(total, deviation):
        raise InputError(
            f"The noise hides how many records there are: about {total:,.0f} by the noisy answers, give or take"
            f" {deviation:,.0f}.",
            remedy="Give the number of rows to draw: sample(1000), rows=1000, or --rows 1000.",
        )


def check_rows(n: object) -> None:
    """Raise ``InputError`` unless a number of rows is None or a whole number of 0 or more."""
    if not (n is None or is_whole(n, 0)):
        raise InputError(
            f"{n!r} rows cannot be drawn.",
            remedy="The number of rows n is a whole number, at least 0.",
        )


def check_memory(rows: int, columns: int) -> None:
    """Raise ``InputError`` for more rows than the memory of this machine can hold."""
    # Memory that a value takes at least while rows are drawn: its code twice, and the value.
    bytes_per_value_drawn = 16
    room = _memory() // (bytes_per_value_drawn * max(1, columns))
    if rows > room:
        raise _too_many(rows, f"at most {room:,} of {columns} columns")


@contextmanager
def memory_errors_as_input_errors(rows: int | None) -> Iterator[None]:
    """Raise the same ``InputError`` if memory runs out."""
    try:
        yield
    except MemoryError:
        raise _too_many(rows, "the memory that is free is less than these take") from None


def draw_rows(schema: Schema, model: Model, n: int | None, seed: int | None, kind: Kind) -> Any:
    """Return ``n`` synthetic rows of a model, decoded by the schema, as a frame of a kind."""
    check_kind(kind)
    return as_frame(schema, draw_table(schema, model, n, generator(seed)), kind)


def draw_table(
    schema: Schema,
    model: Model,
    n: int | None,
    rng: np.random.Generator,
    *,
    as_numbers: bool = False,
) -> pa.Table:
    """Return ``n`` synthetic rows of a model, decoded by the schema. Elapsed columns may stay numbers."""
    codes = draw_codes(model, n, rng)  # sampling is post-processing
    with memory_errors_as_input_errors(n):
        return schema.decode(codes, rng=rng, as_numbers=as_numbers)


def as_frame(schema: Schema, table: pa.Table, kind: Kind) -> Any:
    """Return synthetic rows as a frame of a kind."""
    orders = {c.name: c.categories for c in schema.columns if isinstance(c, Ordinal)}
    whole = [c.name for c in schema.output_columns if not c.missing]
    with memory_errors_as_input_errors(table.num_rows):
        return as_kind(table, kind, orders=orders, without_missing=whole)


def draw_codes(model: Model, n: int | None, rng: np.random.Generator) -> Codes:
    """Return the codes of ``n`` synthetic rows, in random order; without ``n`` of the model's total."""
    check_rows(n)
    check_memory(round(model.total) if n is None else n, len(model.domain))
    with memory_errors_as_input_errors(n):
        codes = model.sample(n, rng=rng)
        return codes.take(rng.permutation(len(codes)))


def _too_many(rows: int | None, limit: str) -> InputError:
    number = "So many rows" if rows is None else f"{rows:,} rows"
    return InputError(
        f"{number} are more than this machine can hold at once: {limit}.",
        remedy="Draw fewer (--rows, in Python sample(n)), several times with other seeds if that many are needed.",
    )


def _memory() -> int:
    # Assumed where the system does not report its memory.
    default_memory_bytes = 1 << 40
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system reports it
        return default_memory_bytes
