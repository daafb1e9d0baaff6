"""The declaration of a schema's column, and the counts of what reading one did to its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.schema.parsing import Mask, plain
from margrave.types import IntArray


@dataclass(frozen=True, eq=False)
class Encoded:
    """The codes of some values, and which were empty, outside the schema, or unreadable as the column's kind.

    ``decimals``: which have decimals in a column of whole numbers. ``home`` says whether the column has a state that
    empty and unreadable values belong to. For the custodian's side only, but for the codes inside the gate.
    """

    codes: IntArray
    empty: Mask
    outside: Mask
    unreadable: Mask
    home: bool
    decimals: Mask | None = None


class Column(Protocol):
    """One column: its public declaration, and the map between its values and its codes."""

    @property
    def kind(self) -> str:
        """Its kind, as in the schema file."""
        ...

    @property
    def name(self) -> str:
        """Its name in the table."""
        ...

    @property
    def missing(self) -> bool:
        """True if the column has a missing state (always the last code)."""
        ...

    @property
    def outside(self) -> str:
        """The out-of-range policy: a key of ``POLICIES``."""
        ...

    @property
    def size(self) -> int:
        """The number of codes, the missing state included."""
        ...

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of its decoded values, whatever they are."""
        ...

    def labels(self) -> list[str]:
        """Return the meaning of each code in words."""
        ...

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of every value. It never raises for a value."""
        ...

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return a value for every code, null for the missing state."""
        ...


def with_missing_code(
    codes: IntArray,
    empty: Mask,
    outside: Mask,
    unreadable: Mask,
    home: int | None,
    decimals: Mask | None = None,
) -> Encoded:
    """Return codes in which every empty or unreadable value has the code ``home``, or 0 if there is
    none.
    """
    codes = np.where(empty | unreadable, home or 0, codes)
    decimals = None if decimals is None else decimals & ~empty
    return Encoded(codes, empty, outside & ~empty, unreadable & ~empty, home is not None, decimals)


def encode_each_once(column: Column, values: pa.Array) -> Encoded:
    """Return ``column.encode`` of the values, reading each repeated text, and each of few whole numbers, once."""
    values = plain(values)
    if pa.types.is_integer(values.type) and values.type != pa.uint64():
        least, most = (b.as_py() for b in pc.min_max(values).values())
        if least is not None and most - least < min(len(values) // 4, 1 << 16):
            once = column.encode(pa.array([*range(least, most + 1), None], values.type))
            filled = pc.fill_null(values, least).to_numpy(zero_copy_only=False)
            rows = filled.astype(np.int64) - least
            if values.null_count:
                rows[values.is_null().to_numpy(zero_copy_only=False)] = most - least + 1
            return _taken(once, rows)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        coded = values.dictionary_encode()
        if len(coded.dictionary) < len(values) // 2:
            once = column.encode(
                pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
            )
            rows = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
            return _taken(once, rows)
    return column.encode(values)


def _taken(once: Encoded, rows: IntArray) -> Encoded:
    masks = (once.empty, once.outside, once.unreadable)
    empty, outside, unreadable = (
        m[rows] if m.any() else np.zeros(len(rows), np.bool_) for m in masks
    )
    decimals = None if once.decimals is None else once.decimals[rows]
    return Encoded(once.codes[rows], empty, outside, unreadable, once.home, decimals)


def with_missing(labels: list[str], missing: bool) -> list[str]:
    """Return the labels, with one for the missing state."""
    missing_label = "(missing)"
    return [*labels, missing_label] if missing else labels


def abbreviate(labels: list[str]) -> str:
    """Return the labels in a line, the middle of a long list left out."""
    return ", ".join(labels) if len(labels) <= 12 else f"{', '.join(labels[:11])}, ... {labels[-1]}"


def set_fields(column: Any, **fields: Any) -> None:
    """Set checked fields of a frozen column, while it is being made."""
    for key, value in fields.items():
        object.__setattr__(column, key, value)
