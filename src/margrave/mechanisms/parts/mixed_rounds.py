"""The rounds of RAP++: marginals of columns that are not numbers, and thresholds over numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

from margrave.marginal import TOTAL
from margrave.mechanisms.parts.thresholds import RandomThresholds
from margrave.models.mixture.model import numbers_of
from margrave.types import Clique
from margrave.workload import Workload


@dataclass(frozen=True)
class MixedRounds:
    """Rounds of marginals, then rounds of thresholds, which share a budget by their columns.

    Args:
        workload: The marginals, on the domain; None means all pairs of the columns that are not numbers.
        thresholds: The thresholds, with their domain.
    """

    workload: Workload | None
    thresholds: RandomThresholds

    @cached_property
    def marginals(self) -> list[Clique]:
        """The workload, or all pairs of the columns that are not numbers."""
        if self.workload is not None:
            return list(self.workload)
        domain = self.thresholds.domain
        names = [a for a in domain if a not in numbers_of(domain)]
        return list(combinations(names, min(2, len(names)))) if names else []

    @property
    def marginal_rounds(self) -> int:
        """The number of rounds of marginals: their columns, or all marginals once."""
        return min(self._columns, len(self.marginals))

    @property
    def cliques(self) -> list[Clique]:
        """The marginals, those in which thresholds are counted, and one that counts the rows."""
        counted = [*self.thresholds.cliques, TOTAL.counting_clique(self.thresholds.domain)]
        return list(dict.fromkeys([*self.marginals, *counted]))

    def budgets(self, rho: Fraction) -> tuple[Fraction, Fraction]:
        """Return what the marginals and the thresholds get, in proportion to their columns."""
        numbers = len(numbers_of(self.thresholds.domain))
        thresholds = rho * Fraction(numbers, numbers + self._columns)
        return rho - thresholds, thresholds

    @property
    def _columns(self) -> int:
        return len({a for r in self.marginals for a in r})
