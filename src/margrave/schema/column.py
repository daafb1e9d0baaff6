"""What a column of a schema is, whatever its kind, and what reading one tells the custodian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.schema.values import Mask, plain
from margrave.typing import IntArray

MISSING_LABEL = "(missing)"


@dataclass(frozen=True, eq=False)
class Encoded:
    """The codes of some values, and which were empty, outside the schema, or unreadable as the column's kind.

    ``home`` says whether the column has a state that empty and unreadable values belong to. For the custodian's side
    only, but for the codes inside the gate.
    """

    codes: IntArray
    empty: Mask
    outside: Mask
    unreadable: Mask
    home: bool


class Column(Protocol):
    """One column: its public declaration, and the map between its values and its codes."""

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Its name in the table."""
        ...

    @property
    def missing(self) -> bool:
        """Whether it has a missing state (always the last code)."""
        ...

    @property
    def outside(self) -> str:
        """What a value outside the schema becomes: a key of ``POLICIES``."""
        ...

    @property
    def size(self) -> int:
        """How many codes it has, the missing state included."""
        ...

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of its decoded values, whatever they are."""
        ...

    def labels(self) -> list[str]:
        """What each code stands for, in words."""
        ...

    def encode(self, values: pa.Array) -> Encoded:
        """The code of every value. It never raises for a value."""
        ...

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """A value for every code, null for the missing state."""
        ...


def placed(codes: IntArray, empty: Mask, outside: Mask, unreadable: Mask, home: int | None) -> Encoded:
    """Codes in which every empty or unreadable value lies in the cell ``home``, or in the first if there is none."""
    codes = np.where(empty | unreadable, home or 0, codes)
    return Encoded(codes, empty, outside & ~empty, unreadable & ~empty, home is not None)


def encode_each_once(column: Column, values: pa.Array) -> Encoded:
    """``column.encode``, but of texts that repeat each one is read once. The codes are the same."""
    values = plain(values)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        coded = values.dictionary_encode()
        if len(coded.dictionary) < len(values) // 2:
            once = column.encode(pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)]))
            rows = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
            masks = (once.empty[rows], once.outside[rows], once.unreadable[rows])
            return Encoded(once.codes[rows], *masks, once.home)
    return column.encode(values)


def with_missing(labels: list[str], missing: bool) -> list[str]:
    """The labels, with one for the missing state."""
    return [*labels, MISSING_LABEL] if missing else labels


def some_of(labels: list[str]) -> str:
    """The labels in a line, the middle of a long list left out."""
    return ", ".join(labels) if len(labels) <= 12 else f"{', '.join(labels[:11])}, ... {labels[-1]}"


def settled(column: Any, **fields: Any) -> None:
    """Set checked fields of a frozen column, while it is being made."""
    for key, value in fields.items():
        object.__setattr__(column, key, value)
