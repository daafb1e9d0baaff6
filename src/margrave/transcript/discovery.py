"""The frequent values of an open column, with noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from margrave._card import counted
from margrave.transcript.description import Description, plus_minus
from margrave.types import IntArray


@dataclass(frozen=True, eq=False)
class Discovery:
    """Values of a column whose noisy count reached a threshold, after the listed ones.

    Args:
        column: The column.
        values: The listed values, then the discovered ones in the order of their texts.
        counts: The noisy count of each value, and last that of missing values.
        listed: The number of listed values. They are public, and need not reach the threshold.
        threshold: The least noisy count of a discovered value.
        scale: Standard deviation of the noise of each count, in records.
        rho: The price (zCDP).
        delta: The chance that the threshold does not hide a value of one unit alone; it is spent.
    """

    column: str
    values: tuple[str, ...]
    counts: IntArray
    listed: int
    threshold: int
    scale: float
    rho: Fraction
    delta: Fraction

    @property
    def discovered(self) -> dict[str, int]:
        """The noisy count of each discovered value."""
        counts = self.counts[self.listed : -1].tolist()
        return dict(zip(self.values[self.listed :], counts, strict=True))

    @property
    def missing(self) -> int:
        """The noisy count of missing values."""
        return int(self.counts[-1])

    def describe(self) -> Description:
        """Return its line in a report."""
        found = len(self.values) - self.listed
        beside = f" beside {counted(self.listed, 'public one')}" if self.listed else ""
        what = (
            f"Discovered values of {self.column}{beside} (noisy count of {self.threshold:,} or more,"
            f" delta {float(self.delta):.4g})"
        )
        size = "1 value" if found == 1 else f"{found:,} values"
        return Description(what, size, plus_minus(self.scale), self.rho)

    def facts(self) -> dict[str, Any]:
        """Return the column, how many values have names, the threshold, the noise scale and the price."""
        return {
            "discovered_in": self.column,
            "discovered": len(self.values) - self.listed,
            "listed": self.listed,
            "threshold": self.threshold,
            "scale": self.scale,
            "rho": float(self.rho),
            "delta": float(self.delta),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the facts, the values and the noisy counts."""
        return {**self.facts(), "values": list(self.values), "counts": self.counts.tolist()}
