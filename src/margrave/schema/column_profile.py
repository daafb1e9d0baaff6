"""A profile of one column's rows for drafts and checks: its texts, their frequencies, empty rows.

**Privacy:** NOT private: for the custodian only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.parsing import MARKS, SPACES, plain, texts_of, unmarked
from margrave.types import IntArray

#: Up to this number, distinct texts are a list of categories.
MAX_LISTED_TEXTS = 20


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """The texts of one column with their numbers of rows, and whether some are empty.

    ``truth``: all are truth values by type. ``written``: they are texts, not numbers or dates by
    type. ``marked``: the number of rows with a missing-value code. ``zoned``: they are times with a zone by type.
    """

    name: str
    counts: DistinctTexts
    missing: bool
    truth: bool
    written: bool = True
    marked: int = 0
    zoned: bool = False

    @property
    def rows(self) -> int:
        """The rows that are not empty."""
        return self.counts.total()


def profile_column(name: str, pieces: Iterable[pa.Array]) -> ColumnProfile:
    """Count the texts of a column."""
    column = pa.chunked_array([plain(piece) for piece in pieces])
    kind = column.type
    values, counts = _counted(column)
    texts = pc.utf8_trim(unmarked(texts_of(values)), SPACES)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    as_written = is_text and texts.equals(values.cast(pa.large_string()))
    empty = texts.is_null().to_numpy(zero_copy_only=False)
    marks = pc.is_in(pc.ascii_lower(texts), pa.array(sorted(MARKS), pa.large_string()))
    marked = marks.to_numpy(zero_copy_only=False)
    held = ~empty & ~marked
    counts_of = DistinctTexts if as_written else DistinctTexts.joined
    return ColumnProfile(
        name,
        counts_of(texts.filter(pa.array(held)), counts[held]),
        bool(counts[empty | marked].any()),
        pa.types.is_boolean(kind),
        not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)),
        int(counts[marked].sum()),
        pa.types.is_timestamp(kind) and kind.tz is not None,
    )


def _counted(column: pa.ChunkedArray) -> tuple[pa.Array, IntArray]:
    try:
        found = column.value_counts()
    except (pa.ArrowException, NotImplementedError):  # nested values
        values = column.combine_chunks()
        return values, np.ones(len(values), dtype=np.int64)
    return found.field("values"), found.field("counts").to_numpy()
