"""What the rows say of one column, for drafts and checks: its texts, how often each occurs, and whether some are empty.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from margrave.schema.values import MARKS, distinct, plain

FEW = 20
"""Up to so many texts are a list of categories, whatever they look like."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the rows say of one column: its texts with their numbers of rows, and whether some are empty.

    ``truth``: all of them are truth values by their type; ``written``: they are texts, and no numbers or dates by type;
    ``marked``: how many rows have a mark for a missing value.
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


def gather(name: str, pieces: Iterable[pa.Array]) -> Evidence:
    """Count the texts of a column."""
    counts: Counter[str] = Counter()
    missing, truth, written, marked = False, True, False, 0
    for piece in pieces:
        rows, texts = distinct(piece)
        kind = plain(piece).type
        truth = truth and pa.types.is_boolean(kind)
        written = written or not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))
        for text, count in zip(texts, np.bincount(rows, minlength=len(texts)).tolist(), strict=True):
            if not count:
                continue
            if text is None or text.strip().lower() in MARKS:
                missing = True
                marked += 0 if text is None else count
            else:
                counts[text.strip()] += count
    return Evidence(name, counts, missing, truth, written, marked)
