"""A raw column that answers with noise: all that a learner sees of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from margrave.schema.column_queries import ColumnQuery
from margrave.transcript import ColumnAnswer


class NoisyColumn(Protocol):
    """A column behind the gate."""

    def measure(self, query: ColumnQuery, rho: Fraction) -> ColumnAnswer:
        """Return the noisy answer of a query, bought with rho (zCDP)."""
        ...


@dataclass(frozen=True)
class GateColumn:
    """A column of ``Private``.

    Args:
        name: The column.
        ask: ``Private.measure_column``.
    """

    name: str
    ask: Callable[..., ColumnAnswer]

    def measure(self, query: ColumnQuery, rho: Fraction) -> ColumnAnswer:
        """Return the noisy answer of a query."""
        return self.ask(self.name, query, rho=rho)
