"""Means and quartiles of numeric columns: what the shares of their bins do not show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from margrave.data import read_numbers
from margrave.domain import Codes
from margrave.error_sanitizer import hide_rows
from margrave.ratios import MAX_RATIO, change, quotient
from margrave.schema import Schema
from margrave.types import Attribute, FloatArray


@dataclass(frozen=True)
class Spread:
    """The mean and the quartiles of some numbers."""

    mean: float
    quarter: float
    median: float
    three_quarters: float

    @staticmethod
    def of(values: FloatArray) -> Spread | None:
        """Return the spread of some values; None if there are none."""
        if not len(values):
            return None
        return Spread(
            float(values.mean()), *(float(q) for q in np.quantile(values, [0.25, 0.5, 0.75]))
        )


@dataclass(frozen=True)
class NumberSummary:
    """One numeric column, real and synthetic; empty and unreadable values aside. **Not private**."""

    name: Attribute
    real: Spread | None
    synthetic: Spread | None

    @property
    def off(self) -> float | None:
        """The relative difference of the synthetic mean; None if it is above ten, or the real mean is 0."""
        if self.real is None or self.synthetic is None:
            return None
        ratio = quotient(self.synthetic.mean - self.real.mean, abs(self.real.mean))
        return ratio if abs(ratio) <= MAX_RATIO else None

    def words(self) -> str:
        """Return the difference of the means: in percent, or as it is if the real mean is too near zero."""
        if self.real is None or self.synthetic is None:
            return ""
        return change(self.synthetic.mean, self.real.mean)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return asdict(self)


@hide_rows
def number_summaries(
    real: Any, synthetic: Any, schema: Schema, *, seed: int | None = None
) -> tuple[NumberSummary, ...]:
    """Return real and synthetic means and quartiles of numeric columns, of values as they are
    written.

    Bins with the right shares may still misstate a mean, because values are drawn uniformly within
    them. Each side is a frame or a path; the synthetic one may be codes, for which values are
    drawn.

    **Privacy:** NOT private: it reads the real rows outside the gate.

    >>> import pyarrow as pa
    >>> from margrave.schema import Integer
    >>> (found,) = number_summaries(pa.table({"x": [1, 3]}), pa.table({"x": [2, 4]}), Schema([Integer("x", 0, 9)]))
    >>> found.real.mean, found.synthetic.mean, found.off
    (2.0, 3.0, 0.5)
    """
    if isinstance(synthetic, Codes):
        synthetic = schema.decode(synthetic, rng=np.random.default_rng(seed))
    ours, theirs = read_numbers(real, schema), read_numbers(synthetic, schema)
    return tuple(
        NumberSummary(name, Spread.of(ours[name]), Spread.of(theirs[name])) for name in ours
    )
