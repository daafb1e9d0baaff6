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
from margrave.schema.parsing import MARKS, SPACES, distinct_texts, plain

#: Up to this number, distinct texts are a list of categories.
MAX_LISTED_TEXTS = 20


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """The texts of one column with their numbers of rows, and whether some are empty.

    ``truth``: all are truth values by type. ``written``: they are texts, not numbers or dates by
    type. ``marked``: the number of rows with a missing-value code.
    """

    name: str
    counts: DistinctTexts
    missing: bool
    truth: bool
    written: bool = True
    marked: int = 0

    @property
    def rows(self) -> int:
        """The rows that are not empty."""
        return self.counts.total()


def profile_column(name: str, pieces: Iterable[pa.Array]) -> ColumnProfile:
    """Count the texts of a column."""
    texts = [pa.array([], pa.large_string())]
    rows = [np.zeros(0, dtype=np.int64)]
    truth, written = True, False
    for piece in pieces:
        places, found = distinct_texts(piece)
        kind = plain(piece).type
        truth = truth and pa.types.is_boolean(kind)
        written = written or not (
            pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
        )
        texts.append(found)
        rows.append(np.bincount(places, minlength=len(found)))
    joined, counts = pc.utf8_trim(pa.concat_arrays(texts), SPACES), np.concatenate(rows)
    empty = joined.is_null().to_numpy(zero_copy_only=False)
    marks = pc.is_in(pc.ascii_lower(joined), pa.array(sorted(MARKS), pa.large_string()))
    marked = marks.to_numpy(zero_copy_only=False)
    held = (counts > 0) & ~empty & ~marked
    return ColumnProfile(
        name,
        DistinctTexts.joined(joined.filter(pa.array(held)), counts[held]),
        bool(counts[empty | marked].any()),
        truth,
        written,
        int(counts[marked].sum()),
    )
