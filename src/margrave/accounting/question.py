"""A question put to the gate, as plain data: what a journal keeps of it, and compares when a run is resumed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.accounting.ledger_state import exact_text
from margrave.types import IntArray

Plain = dict[str, Any]
Answers = tuple[IntArray, ...]


@dataclass(frozen=True)
class Question:
    """A question as plain data with its price. The answer is one integer array for each of
    ``shapes``, in which -1 stands for any length.

    ``delta`` is the part of delta that a threshold spends.
    """

    what: str
    rho: Fraction
    asked: Plain
    shapes: tuple[tuple[int, ...], ...]
    delta: Fraction = Fraction(0)

    def plain(self) -> Plain:
        """Return the part that the journal stores and compares, as JSON returns it."""
        price = {"rho": exact_text(self.rho), **({"delta": str(self.delta)} if self.delta else {})}
        plain: Plain = json.loads(json.dumps({**self.asked, "what": self.what, **price}))
        return plain


def texts_to_array(texts: Sequence[str]) -> IntArray:
    """Return texts as an answer holds them: their Unicode code points, a line feed after each.

    >>> array_to_texts(texts_to_array(["Bern", "Genève"]))
    ('Bern', 'Genève')
    """
    return np.array([ord(c) for text in texts for c in f"{text}\n"], dtype=np.int64)


def array_to_texts(points: IntArray) -> tuple[str, ...]:
    """Return the texts of ``texts_to_array``. Raise ``ValueError`` for numbers that are not code points."""
    return tuple("".join(map(chr, points.tolist())).split("\n")[:-1])
