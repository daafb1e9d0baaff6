"""Descriptions of entries in words."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Description(NamedTuple):
    """An entry in words: a sentence, how many cells or candidates, the noise in records or the epsilon, the price."""

    what: str
    size: str
    noise: str
    rho: Fraction = Fraction(0)

    def line(self) -> str:
        """Return it all in one line."""
        words = [self.what, self.size, self.noise, f"rho {float(self.rho):.4g}" if self.rho else ""]
        return ", ".join(word for word in words if word)


def cells(number: int) -> str:
    """Return a number of cells in words."""
    return "1 cell" if number == 1 else f"{number:,} cells"


def one_of(number: int) -> str:
    """Return a number of candidates in words."""
    return f"1 of {number:,}"


def plus_minus(scale: float) -> str:
    """Return a noise scale in words."""
    return f"\N{PLUS-MINUS SIGN}{scale:.4g}"
