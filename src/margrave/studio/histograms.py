"""Histograms of a draft's columns, for the custodian's eyes only.

**Privacy:** NOT private: true counts of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave._card import counted
from margrave.schema.column import Column, Encoded
from margrave.schema.learn import Learn
from margrave.schema.numeric import Numeric


@dataclass(frozen=True)
class Histogram:
    """The counts of a column.

    Args:
        labels: Categories or bins.
        counts: Their numbers of rows.
        missing: The number of rows without a value.
        distinct: The number of categories; 0 for numbers.
    """

    labels: list[str]
    counts: list[int]
    missing: int
    distinct: int = 0


def histogram_of(column: Column, pieces: Iterable[pa.Array]) -> Histogram:
    """Return the histogram of a column of a draft: the most frequent categories, or bins of equal width."""
    values = list(pieces)
    if not isinstance(column, Learn):
        return _of_codes(column, map(column.encode, values))
    if not column.is_number:
        return _of_texts(column, values)
    points = np.concatenate([column.points(piece) for piece in values] or [np.zeros(0)])
    finite = points[np.isfinite(points)]
    if not len(finite):
        return Histogram([], [], len(points))
    binned = _binned(column, *np.quantile(finite, [0.0, 0.01, 0.99, 1.0]))
    found = _of_codes(binned, [binned.encode_points(points, np.isnan(points))])
    if column.of in ("date", "timestamp"):  # a bin is named by its first day
        return replace(found, labels=[label.partition(" to ")[0] for label in found.labels])
    if column.of == "real":
        return replace(found, labels=_rounded(binned))
    return found


def _rounded(binned: Numeric) -> list[str]:
    """Return the bins, with decimals for two digits of their width."""
    spans = binned.cells.spans()
    width = min(high - low for low, high, _, _ in spans)
    decimals = min(max(1 - math.floor(math.log10(width)), 0), 15)
    return [f"{low:.{decimals}f} to {high:.{decimals}f}" for low, high, _, _ in spans]


def _binned(column: Learn, least: float, low: float, high: float, most: float) -> Numeric:
    """Return a declared column with bins over nearly all values. A few far values are in the end bins."""
    max_bins, max_stretch = 12, 2.0
    if most - least <= max_stretch * (high - low) or low == high:
        low, high = least, most
    if low == high and not column.is_whole:
        high = low + 1.0
    reader = column.reader
    bounds = reader.written(np.array([low, high]), np.zeros(2, np.bool_)).to_pylist()
    bins = min(max_bins, int(high - low) + 1) if column.is_whole else max_bins
    return replace(reader, low=bounds[0], high=bounds[1], bins=bins, missing=True)


def _of_codes(column: Column, pieces: Iterable[Encoded]) -> Histogram:
    counts = np.zeros(column.size, dtype=np.int64)
    empty = 0
    for found in pieces:
        lost = found.empty | found.unreadable
        empty += int(lost.sum())
        counts += np.bincount(found.codes[~lost], minlength=column.size)
    labels = column.labels()
    shown = len(labels) - int(column.missing)
    return Histogram(labels[:shown], counts[:shown].tolist(), empty)


def _of_texts(column: Learn, pieces: list[pa.Array]) -> Histogram:
    max_listed = 10
    texts = pa.chunked_array([column.texts(piece) for piece in pieces], pa.string())
    found = pc.value_counts(texts.drop_null()).to_pylist()
    ordered = sorted(found, key=lambda pair: (-pair["counts"], pair["values"]))
    listed, rest = ordered[:max_listed], ordered[max_listed:]
    labels, counts = [p["values"] for p in listed], [p["counts"] for p in listed]
    if rest:
        labels.append(counted(len(rest), "other"))
        counts.append(sum(p["counts"] for p in rest))
    return Histogram(labels, counts, texts.null_count, len(found))
