"""Names for the types that every folder uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Attribute = str
"""The name of a column."""

Clique = tuple[str, ...]
"""Attributes in the order of the domain. ``Domain.clique`` makes one from names in any order."""

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]

Generator = np.random.Generator
