"""A question put to the gate, as plain data: what a journal keeps of it, and compares when a run is resumed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from margrave.accounting.ledger_state import exact_text
from margrave.types import IntArray

Plain = dict[str, Any]
Answers = tuple[IntArray, ...]


@dataclass(frozen=True)
class Question:
    """A question as plain data with its price. The answer is one integer array for each of
    ``shapes``.
    """

    what: str
    rho: Fraction
    asked: Plain
    shapes: tuple[tuple[int, ...], ...]

    def plain(self) -> Plain:
        """Return the part that the journal stores and compares, as JSON returns it."""
        plain: Plain = json.loads(
            json.dumps({**self.asked, "what": self.what, "rho": exact_text(self.rho)})
        )
        return plain
