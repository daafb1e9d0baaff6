"""Raw columns with simulated noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from margrave.schema.column_queries import ClippedSum, ColumnQuery
from margrave.transcript import ColumnAnswer
from margrave.types import FloatArray


@dataclass
class SimulatedColumn:
    """A raw column that answers with rounded Gaussian noise of a seed, for adding or removing a row."""

    values: FloatArray
    rng: np.random.Generator
    asked: list[ColumnAnswer] = field(default_factory=list)

    def measure(self, query: ColumnQuery, rho: Fraction) -> ColumnAnswer:
        reach = query.max_contribution if isinstance(query, ClippedSum) else 1
        scale = float(reach / np.sqrt(2 * float(rho)))
        truth = query.tally(self.values)
        noisy = np.rint(truth + self.rng.normal(0, scale, len(truth))).astype(np.int64)
        self.asked.append(ColumnAnswer("x", query, noisy, scale, rho))
        return self.asked[-1]
