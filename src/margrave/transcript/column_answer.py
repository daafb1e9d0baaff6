"""The noisy answer of a query about one raw column, from which its bounds and bins are learned."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from margrave.schema.column_queries import ClippedSum, ColumnQuery
from margrave.transcript.description import Description, cells, plus_minus
from margrave.types import IntArray


@dataclass(frozen=True, eq=False)
class ColumnAnswer:
    """A noisy answer about a raw column: ``values = query(column) + noise``.

    Args:
        column: The column.
        query: The query.
        values: Integers, ``query.size`` of them: records, or steps of a clipped sum.
        scale: Standard deviation of the noise of each value, in the same unit.
        rho: The price (zCDP).
    """

    column: str
    query: ColumnQuery
    values: IntArray
    scale: float
    rho: Fraction

    def describe(self) -> Description:
        """Return its line in a report."""
        if isinstance(self.query, ClippedSum):
            noise = f"{plus_minus(self.scale * self.query.step)} in its own unit"
            return Description(
                f"Summed {self.column} between bounds, to learn its mean", "1 sum", noise, self.rho
            )
        what = f"Counted parts of {self.column}, to learn its bins"
        return Description(what, cells(self.query.size), plus_minus(self.scale), self.rho)

    def facts(self) -> dict[str, Any]:
        """Return the column, the kind of query, the noise scale and the price."""
        return {
            "learned_from": self.column,
            "query": self.query.to_dict()["kind"],
            "cells": self.query.size,
            "scale": self.scale,
            "rho": float(self.rho),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the facts, the definition of the query and the noisy values."""
        return {**self.facts(), "query": self.query.to_dict(), "values": self.values.tolist()}
