"""A profile of one column's rows for drafts and checks: its texts, their frequencies, empty rows.

**Privacy:** NOT private: for the custodian only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from margrave.schema.parsing import MARKS, distinct, plain

#: Up to this number, distinct texts are a list of categories.
MAX_LISTED_TEXTS = 20


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """The texts of one column with their numbers of rows, and whether some are empty.

    ``truth``: all are truth values by type. ``written``: they are texts, not numbers or dates by
    type. ``marked``: the number of rows with a missing-value code.
    """

    name: str
    counts: Counter[str]
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
    counts: Counter[str] = Counter()
    missing, truth, written, marked = False, True, False, 0
    for piece in pieces:
        rows, texts = distinct(piece)
        kind = plain(piece).type
        truth = truth and pa.types.is_boolean(kind)
        written = written or not (
            pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
        )
        for text, count in zip(
            texts, np.bincount(rows, minlength=len(texts)).tolist(), strict=True
        ):
            if not count:
                continue
            if text is None or text.strip().lower() in MARKS:
                missing = True
                marked += 0 if text is None else count
            else:
                counts[text.strip()] += count
    return ColumnProfile(name, counts, missing, truth, written, marked)
