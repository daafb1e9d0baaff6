"""Numbers for persons, by their identifiers."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.errors import DataError, PersonWarning
from margrave.schema.parsing import distinct, plain
from margrave.schema.person_check import PersonCheck
from margrave.schema.persons import PLACEHOLDERS, person_name
from margrave.types import AnyArray, IntArray


class Persons:
    """Numbers for persons, in the order they are met. See ``schema.persons`` for which identifiers are one.

    A placeholder names nobody, nor does a value without a text: taken as one person, it would let the rows of many
    count beside their own. ``accepted`` placeholders are identifiers.
    """

    def __init__(self, accepted: Collection[str] = ()) -> None:
        self._accepted = frozenset(accepted)
        self._ids = defaultdict[str, int]()
        self._ids.default_factory = self._ids.__len__  # a name that is new gets the next number

    def names(self) -> Iterator[str]:
        """Return the identifiers numbered so far, for the custodian alone."""
        return iter(self._ids)

    def number(self, pieces: Iterable[pa.Array]) -> tuple[IntArray, int]:
        """Return the number of each row's person, and how many rows have none (these count as one person)."""
        found: list[AnyArray] = [np.empty(0, dtype=np.int64)]
        nameless = 0
        for piece in pieces:
            coded = person_names(piece, self._accepted).dictionary_encode()
            names = coded.dictionary.to_pylist()
            ids = np.full(len(names) + 1, -1, dtype=np.int64)
            ids[:-1] = list(map(self._ids.__getitem__, names))
            rows = pc.fill_null(coded.indices, len(names)).to_numpy(zero_copy_only=False)
            found.append(ids[rows])
            nameless += int((found[-1] < 0).sum())
        return np.concatenate(found), nameless

    def check(self, persons: IntArray) -> PersonCheck:
        """Return what the custodian should know of the persons with these numbers, one a row."""
        return PersonCheck.of(persons, self.names())


def warn_of_persons(check: PersonCheck, accepted: Collection[str] = ()) -> None:
    """Warn of identifiers that may be of nobody, or several of one person, but for accepted alarms."""
    for alarm in check.alarms():
        if alarm.key not in accepted:
            warnings.warn(str(alarm), PersonWarning, stacklevel=2)


def person_names(piece: pa.Array, accepted: Collection[str] = ()) -> pa.Array:
    """Return the identifier of each row's person in its one form, null if the row has none (``person_name``).

    Texts that are plain are read by vector code, all others one by one.

    >>> person_names(pa.array([" P1", "unknown", "0", None])).to_pylist()
    ['P1', None, None, None]
    """
    values = plain(piece)
    _check_exact(values.type)
    if pa.types.is_integer(values.type):
        names, odd = values.cast(pa.string()), pc.less_equal(values, 0)
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        blanks = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
        names = pc.ascii_trim(values, characters=blanks)
        odd = pc.or_(pc.invert(pc.string_is_ascii(names)), _may_name_nobody(names))
    else:
        return _one_by_one(values, accepted)
    odd = pc.fill_null(odd, False)
    if not pc.any(odd).as_py():
        return names.cast(pa.large_string())
    read = _one_by_one(values.filter(odd), accepted)
    return pc.replace_with_mask(names.cast(pa.large_string()), odd, read)


def _may_name_nobody(names: pa.Array) -> pa.Array:
    # a superset of what person_name takes for nobody, and of texts with a prefix of their own
    looks = r"^([-+]?[0.,]+|-[\d.,]+|[\W_]*|\d{16,}\.0|\d(\.\d+)?[eE]\+\d+)$|[\x00-\x1f\x7f]"
    listed = pa.array(sorted(PLACEHOLDERS), names.type)
    return pc.or_(
        pc.match_substring_regex(names, looks), pc.is_in(pc.ascii_lower(names), value_set=listed)
    )


def _one_by_one(values: pa.Array, accepted: Collection[str]) -> pa.Array:
    rows, texts = distinct(values)
    names = [person_name(t, accepted) for t in texts]
    return pa.array(names, pa.large_string()).take(pa.array(rows))


def _check_exact(kind: pa.DataType) -> None:
    """Raise ``DataError`` for floats of 16 and 32 bits: above 2,048 and 16,777,216 different numbers are one."""
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        raise DataError(
            f"The column of persons holds floats of {kind.bit_width} bits, in which different identifiers are one.",
            remedy="Read the identifiers as text, or as whole numbers.",
        )
