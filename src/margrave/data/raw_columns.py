"""The raw values of columns to learn: points of a line, or texts, one per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.data.row_hash import RowKey
from margrave.domain import Codes
from margrave.schema import Column, Schema
from margrave.schema.elapsed import Elapsed
from margrave.schema.missing_codes import without_missing_codes
from margrave.types import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class RawColumns:
    """Sensitive values, for the gate only.

    Args:
        points: For each number, date or time a point per row, NaN for a missing value.
        texts: For each categorical column a text per row, null for a missing value.
    """

    points: Mapping[str, FloatArray] = field(default_factory=dict)
    texts: Mapping[str, pa.Array] = field(default_factory=dict)

    @staticmethod
    def of(frame: Any, schema: Schema) -> RawColumns:
        """Return the values of a frame in the columns that its schema leaves to learn."""
        found = schema.pieces_of(frame, [c.name for c in schema.to_learn])
        points, texts = {}, {}
        for column in schema.to_learn:
            source, pieces = schema.sources.get(column.name), found[column.name]
            if source is not None and column.of != Elapsed.kind:  # whose codes are of dates
                pieces = [without_missing_codes(column, p, source.missing_codes) for p in pieces]
            if column.is_number:
                read = [column.points(piece) for piece in pieces]
                points[column.name] = np.concatenate([np.empty(0), *read])
            else:
                texts[column.name] = pa.concat_arrays(
                    [pa.nulls(0, pa.string()), *map(column.texts, pieces)]
                )
        return RawColumns(points, texts)

    @staticmethod
    def joined(pieces: Sequence[RawColumns]) -> RawColumns:
        """Return the rows of all pieces, in order."""
        first = pieces[0]
        points = {n: np.concatenate([p.points[n] for p in pieces]) for n in first.points}
        texts = {n: pa.concat_arrays([p.texts[n] for p in pieces]) for n in first.texts}
        return RawColumns(points, texts)

    @property
    def text_bytes(self) -> int:
        """The memory of the texts."""
        return sum(texts.nbytes for texts in self.texts.values())

    def take(self, rows: IntArray) -> RawColumns:
        """Return some of the rows."""
        points = {n: values[rows] for n, values in self.points.items()}
        return RawColumns(points, {n: t.take(pa.array(rows)) for n, t in self.texts.items()})

    def value_counts(self, name: str) -> tuple[AnyArray, IntArray]:
        """Return the distinct texts of a column, and their counts; the last count is of nulls."""
        found = pc.value_counts(self.texts[name].drop_null())
        texts = np.array(found.field(0).to_pylist(), dtype=np.object_)
        counts = found.field(1).to_numpy(zero_copy_only=False)
        return texts, np.append(counts, self.texts[name].null_count).astype(np.int64)

    def value_points(self, name: str) -> tuple[FloatArray, IntArray]:
        """Return the distinct points of a column, NaN for missing values, and their counts."""
        return np.unique(self.points[name], return_counts=True)

    def words(self, key: RowKey) -> list[AnyArray]:
        """Return words of 64 bits in which rows of different values differ, each of one word per row."""
        found: list[AnyArray] = []
        for values in self.points.values():
            alike = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
            found.append(alike.view(np.uint64))
        for texts in self.texts.values():
            hashes = key.of_texts(texts)
            hashes[texts.is_null().to_numpy(zero_copy_only=False)] = 0
            found += [hashes[:, 0], hashes[:, 1]]
        return found

    def recoded(self, codes: Codes, before: Schema, after: Schema) -> Codes:
        """Return the codes of the schema ``after``, which declares columns that ``before`` leaves to learn."""
        learned = {c.name for c in before.to_learn}
        both = {
            c.name: self.codes(c) if c.name in learned else codes.column(c.name)
            for c in after.columns
        }
        return Codes.of(after.domain, both)

    def codes(self, column: Column) -> IntArray:
        """Return the codes of a learned column."""
        if column.name in self.texts:
            return column.encode(self.texts[column.name]).codes
        points, cells = self.points[column.name], column.cells  # type: ignore[attr-defined]
        missing = np.isnan(points)
        return np.where(missing, column.size - 1, cells.locate(np.where(missing, 0.0, points)))
