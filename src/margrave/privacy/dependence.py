"""The dependence of columns: a score with a sensitivity of its own for each unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.privacy.scores import PER_RECORD, GridScores
from margrave.types import AnyArray, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Dependence:
    """``‖M_AB(D) − M_A(D) ⊗ M_B(D) / n‖₁``, in records: 0 if A and B are independent, below 2n always.

    A candidate is a clique of two attributes or more, split into A and B. ``left`` names A for some
    candidates; the others are split after their first attribute. n is the true number of rows. Scores
    are rounded to multiples of 2^-10, half up; everything before is exact.

    Args:
        left: By candidate, the attributes of A: some of the candidate's, and not all.
        replacement: Whether neighbors replace rows. The gate sets it from its own unit.

    Privacy:
        None spent by itself. One row that comes or goes changes the score by at most 4, one that takes
        another's place by at most 6. So ``lipschitz``, per unit of L1 change of the counts, is 4 or 3.
        To add a row at (i, j) with n rows before changes M_AB by 1, and M_A ⊗ M_B / n by at most
        n² (1/n − 1/(n+1)) + (2n + 1) / (n + 1): below 4 together. To replace a row changes M_AB by 2,
        and M_A ⊗ M_B / n by 2 for each side. For persons with at most k rows these add up to 4k and 6k.
        Rounding moves no difference above a whole number of records.

    References:
        Zhang et al. (2021), PrivSyn, Lemma 4 (InDif); Cai et al. (2021), PrivMRF.
    """

    left: Mapping[Clique, Clique] = field(default_factory=dict)
    replacement: bool = False

    name: ClassVar[str] = "dependence"

    @property
    def lipschitz(self) -> float:
        """The most a score changes per unit of L1 change of a marginal between neighbors."""
        return 3.0 if self.replacement else 4.0

    def side(self, clique: Clique) -> Clique:
        """Return A of a candidate, in the candidate's order."""
        named = self.left.get(clique, clique[:1])
        return tuple(a for a in clique if a in named)

    def check(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        """Raise ``InputError`` unless every candidate has two sides."""
        for clique in candidates:
            unknown = [a for a in self.left.get(clique, ()) if a not in clique]
            if unknown or not 0 < len(self.side(clique)) < len(clique):
                raise InputError(
                    f"The candidate ({', '.join(clique)}) has not two sides.",
                    remedy="Give cliques of two columns or more, and in left some columns of each, not all.",
                )

    def terms(self, candidates: Sequence[Clique]) -> dict[str, FloatArray]:
        """Return A of each candidate as "left": the sum of 2^i over its attributes' positions i."""
        masks = [sum(1 << i for i, a in enumerate(c) if a in self.side(c)) for c in candidates]
        return {"left": np.array(masks, dtype=np.float64)}

    def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
        """Return no candidates: all are to be measured."""
        return ()

    def __call__(
        self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        """Return the scores of the candidates, from their true counts."""
        values = tuple(_dependence(counts[c], c, self.side(c)) for c in candidates)
        return GridScores(values, Fraction(1, PER_RECORD))


def _dependence(counts: IntArray, clique: Clique, left: Clique) -> int:
    order = [*(clique.index(a) for a in left), *(i for i, a in enumerate(clique) if a not in left)]
    sizes = [counts.shape[i] for i in order[: len(left)]]
    table: AnyArray = counts.transpose(order).reshape(int(np.prod(sizes)), -1)
    n = int(table.sum())
    if not n:
        return 0
    if n >= 1 << 31:  # products of counts may exceed 64 bits
        table = table.astype(object)
    product = np.multiply.outer(table.sum(axis=1), table.sum(axis=0))
    apart = sum(int(row.sum()) for row in np.abs(n * table - product))
    return (2 * PER_RECORD * apart + n) // (2 * n)
