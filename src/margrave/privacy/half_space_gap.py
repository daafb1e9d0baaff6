"""The error of half-space estimates: the score of a selection among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from margrave.errors import InputError
from margrave.marginal import HalfSpace
from margrave.privacy.scores import MAX_EXACT_TOTAL, PER_RECORD, GridScores
from margrave.types import Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class HalfSpaceGap:
    """``|q(D) − estimate_q|`` of half-spaces q, in records.

    Args:
        estimates: One estimate per candidate, in records. They are rounded to multiples of 2^-10 of
            what a row counts at most; from there on the arithmetic is exact.

    Privacy:
        None spent by itself. A score changes no further than its count: by 1 for one row, whether it
        comes, goes, or takes another's place.

    References:
        Vietri et al. (2022), Private synthetic data for multitask learning and marginal queries (RAP++).
    """

    estimates: FloatArray

    def check(self, queries: Sequence[HalfSpace]) -> None:
        """Raise ``InputError`` unless there is one finite estimate per candidate."""
        if self.estimates.shape != (len(queries),):
            raise InputError("The score does not have one estimate per half-space.")
        if not np.abs(self.estimates).max(initial=0.0) < MAX_EXACT_TOTAL:
            raise InputError(
                f"An estimate of a half-space is not finite, or above {MAX_EXACT_TOTAL:g} records."
            )

    def __call__(
        self, queries: Sequence[HalfSpace], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        """Return the scores of the candidates, from the true counts of their cliques."""
        most = queries[0].max_contribution
        values = tuple(
            abs(
                int(q.count(counts[q.clique])) * PER_RECORD - round(Fraction(e) * PER_RECORD * most)
            )
            for q, e in zip(queries, self.estimates.tolist(), strict=True)
        )
        return GridScores(values, Fraction(1, PER_RECORD * most))
