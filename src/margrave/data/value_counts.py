"""Distinct raw values of columns to learn with their counts, gathered over the batches of a scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from margrave.data.batch_codes import Found, Piece
from margrave.schema.column_queries import ColumnQuery
from margrave.types import AnyArray, FloatArray, IntArray


class TextCounts:
    """The distinct texts of a column of categories, and their counts. Memory grows with the distinct texts."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._counts: Counter[str] = Counter()
        self._missing = 0

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        texts, counts = piece.raw.value_counts(self._column)
        self._counts.update(dict(zip(texts.tolist(), counts[:-1].tolist(), strict=True)))
        self._missing += int(counts[-1])

    def maker(self) -> Callable[[], TextCounts]:
        """Return a function that makes one without rows."""
        return partial(TextCounts, self._column)

    def found(self) -> Found:
        """Return the texts with their counts, and the number of missing values."""
        texts = pa.array(self._counts, pa.large_string())
        counts = pa.array(self._counts.values(), pa.int64())
        return Found(np.array([self._missing]), pa.table({"text": texts, "count": counts}))

    def absorb(self, found: Found) -> None:
        """Add the counts of other rows."""
        if len(found.sums):
            self._missing += int(found.sums[0])
        if found.listed is not None:
            texts, counts = (found.listed[n].to_pylist() for n in ("text", "count"))
            for text, count in zip(texts, counts, strict=True):
                self._counts[text] += count

    def totals(self) -> tuple[AnyArray, IntArray]:
        """Return the texts, and their counts with that of missing values behind them."""
        texts = np.array(list(self._counts), dtype=np.object_)
        return texts, np.array([*self._counts.values(), self._missing], dtype=np.int64)


class PointCounts:
    """The distinct points of a number, date or time, and their counts, unless there are too many."""

    #: Distinct points that are kept between questions: 64 MiB.
    max_points: ClassVar[int] = 1 << 22

    def __init__(self, column: str) -> None:
        self._column = column
        self._points: FloatArray | None = np.empty(0)
        self._counts: IntArray = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[FloatArray, IntArray]] = []

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        if self._points is None:
            return
        self._waiting.append(piece.raw.value_points(self._column))
        if sum(len(p) for p, _ in self._waiting) > max(len(self._points), 1 << 17):
            self._merge()

    def maker(self) -> Callable[[], PointCounts]:
        """Return a function that makes one without rows."""
        return partial(PointCounts, self._column)

    def found(self) -> Found:
        """Return the points with their counts, and 1 if there are too many."""
        self._merge()
        if self._points is None:
            return Found(np.array([1]))
        return Found(np.array([0]), pa.table({"point": self._points, "count": self._counts}))

    def absorb(self, found: Found) -> None:
        """Add the counts of other rows."""
        if len(found.sums) and found.sums[0]:
            self._points = None
        elif found.listed is not None and self._points is not None:
            self._waiting.append(
                (found.listed["point"].to_numpy(), found.listed["count"].to_numpy())
            )
            self._merge()

    def totals(self) -> tuple[FloatArray, IntArray] | None:
        """Return the points and their counts; None if there are too many."""
        self._merge()
        return None if self._points is None else (self._points, self._counts)

    def _merge(self) -> None:
        if self._points is None:
            return
        points = np.concatenate([self._points, *(p for p, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(c for _, c in self._waiting)])
        self._waiting.clear()
        self._points, places = np.unique(points, return_inverse=True)
        self._counts = np.zeros(len(self._points), dtype=np.int64)
        np.add.at(self._counts, places, counts)
        if len(self._points) > self.max_points:
            self._points = None


class QueryCounts:
    """The answer of one query about a raw column, added up over batches."""

    def __init__(self, column: str, query: ColumnQuery) -> None:
        self._column, self._query = column, query
        self.answer = np.zeros(query.size, dtype=np.int64)

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        self.answer += self._query.tally(piece.raw.points[self._column])

    def maker(self) -> Callable[[], QueryCounts]:
        """Return a function that makes one without rows."""
        return partial(QueryCounts, self._column, self._query)

    def found(self) -> Found:
        """Return the answer."""
        return Found(self.answer)

    def absorb(self, found: Found) -> None:
        """Add the answer on other rows."""
        self.answer += found.sums
