"""The cliques of the counting task, and a checksum that every contender's counts must share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np


def closure(attributes: tuple[str, ...], degree: int) -> list[tuple[str, ...]]:
    """All cliques of 1 to `degree` attributes, shorter first, each in the order of the attributes."""
    return [clique for k in range(1, degree + 1) for clique in combinations(attributes, k)]


def checksum(counts: Iterable[Any]) -> str:
    """Of the counts as 64-bit integers in row-major order, clique after clique."""
    digest = hashlib.sha256()
    for count in counts:
        digest.update(np.ascontiguousarray(np.rint(np.asarray(count)), dtype="<i8").tobytes())
    return digest.hexdigest()[:16]
