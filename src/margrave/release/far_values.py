"""Values far out in the first or the last bin of a learned column, which noise alone could have placed there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave.bounds.gls import Unbiased
from margrave.schema import Schema
from margrave.schema.column_queries import LineCells
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Numeric
from margrave.transcript import Transcript
from margrave.types import Attribute, FloatArray


@dataclass(frozen=True)
class FarValues:
    """The places of a learned column beyond which noise alone explains all values.

    The counts from which bins were learned place rows within a bin. They have noise, are made nonnegative, and are the
    same in every refit. So a few rows of noise far out in a wide bin widen the spread of a column, which weakens its
    relations, and no interval of an analysis includes that.

    Args:
        low: The place in the first bin; minus infinity without one.
        high: The place in the last bin; infinity without one.
        share: The share of the column's variance that is due to values beyond these places.
    """

    low: float
    high: float
    share: float

    @property
    def weakens(self) -> bool:
        """True if the share is more than 10 %: without these values a correlation is larger by more than 5 %."""
        return self.share > 0.1


def far_values(schema: Schema, transcript: Transcript) -> dict[Attribute, FarValues]:
    """Return the far values of each column of numbers that the run of a transcript learned.

    Beyond a place lie at most two noise scales of the counts from which the bins were learned.

    Args:
        schema: The public schema.
        transcript: The noisy answers.

    Returns:
        The columns of numbers with bins and noisy counts of both kinds.

    Privacy:
        None spent.

    Example:
        >>> from margrave.schema import Real
        >>> far_values(Schema([Real("cost", 0, 9)]), Transcript())
        {}
    """
    unbiased, found = Unbiased(schema.domain, transcript), dict[Attribute, FarValues]()
    scales = {
        a.column: a.scale for a in transcript.column_answers if isinstance(a.query, LineCells)
    }
    for column in schema.columns:
        if not isinstance(column, NUMERIC_KINDS) or column.name not in scales:
            continue
        if column.cells.leaves is not None and unbiased.supports((column.name,)):
            estimate = unbiased.estimate((column.name,))
            assert estimate is not None
            counts = np.maximum(estimate.values[: column.cells.count], 0.0)
            found[column.name] = _far(column, counts, 2.0 * scales[column.name])
    return found


def _far(column: Numeric, counts: FloatArray, most: float) -> FarValues:
    assert column.cells.leaves is not None
    parts, leaves = column.cells.finest, column.cells.leaves
    least, greatest = parts.extremes
    own = column.cells.locate(least)
    weights = leaves.weights[np.searchsorted(leaves.edges, least, side="right").clip(1) - 1]
    without = np.bincount(own, weights, minlength=len(counts))[own] <= 0
    weights = np.where(without, np.maximum(greatest - least, np.finfo(np.float64).tiny), weights)
    rows = counts[own] * weights / np.bincount(own, weights, minlength=len(counts))[own]
    low, high = -np.inf, np.inf
    first, last = np.flatnonzero(own == own[0]), np.flatnonzero(own == own[-1])
    if far := int((np.cumsum(rows[first]) <= most).sum()):
        low = float(greatest[first[far - 1]])
    if far := int((np.cumsum(rows[last][::-1]) <= most).sum()):
        high = float(least[last[-far]])
    moved = np.clip(parts.means, low, high)
    whole = _variance(rows, parts.means, parts.variances)
    rest = _variance(rows, moved, np.where(moved == parts.means, parts.variances, 0.0))
    return FarValues(low, high, 1.0 - rest / whole if whole > 0 else 0.0)


def _variance(rows: FloatArray, means: FloatArray, variances: FloatArray) -> float:
    n = max(float(rows.sum()), 1.0)
    return float(rows @ ((means - rows @ means / n) ** 2 + variances)) / n
