"""Numbers for persons, by their identifiers."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pyarrow as pa

from margrave.errors import DataError, PersonWarning
from margrave.schema.parsing import distinct, plain
from margrave.schema.person_check import PersonCheck
from margrave.schema.persons import person_name
from margrave.types import AnyArray, IntArray


class Persons:
    """Numbers for persons, in the order they are met. See ``schema.persons`` for which identifiers are one.

    A placeholder names nobody, nor does a value without a text: taken as one person, it would let the rows of many
    count beside their own. ``accepted`` placeholders are identifiers.
    """

    def __init__(self, accepted: Collection[str] = ()) -> None:
        self._accepted = frozenset(accepted)
        self._ids: dict[str, int] = {}

    def names(self) -> Iterator[str]:
        """Return the identifiers numbered so far, for the custodian alone."""
        return iter(self._ids)

    def number(self, pieces: Iterable[pa.Array]) -> tuple[IntArray, int]:
        """Return the number of each row's person, and how many rows have none (these count as one person)."""
        found: list[AnyArray] = [np.empty(0, dtype=np.int64)]
        nameless = 0
        for piece in pieces:
            _check_exact(plain(piece).type)
            rows, texts = distinct(piece)
            names = [person_name(t, self._accepted) for t in texts]
            ids = [-1 if n is None else self._ids.setdefault(n, len(self._ids)) for n in names]
            found.append(np.array(ids, dtype=np.int64)[rows])
            nameless += int((found[-1] < 0).sum())
        return np.concatenate(found), nameless

    def check(self, persons: IntArray) -> PersonCheck:
        """Return what the custodian should know of the persons with these numbers, one a row."""
        return PersonCheck.of(persons, self.names())

    def warn(self, persons: IntArray, accepted: Collection[str] = ()) -> None:
        """Warn of identifiers that may be of nobody, or several of one person, but for accepted alarms."""
        for alarm in self.check(persons).alarms():
            if alarm.key not in accepted:
                warnings.warn(str(alarm), PersonWarning, stacklevel=2)


def _check_exact(kind: pa.DataType) -> None:
    """Raise ``DataError`` for floats of 16 and 32 bits: above 2,048 and 16,777,216 different numbers are one."""
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        raise DataError(
            f"The column of persons holds floats of {kind.bit_width} bits, in which different identifiers are one.",
            remedy="Read the identifiers as text, or as whole numbers.",
        )
