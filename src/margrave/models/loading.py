"""Reading a model's state: what a file says is checked before it is believed; all that is wrong is a ReleaseError."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from margrave.errors import ReleaseError
from margrave.schema.domain import Domain
from margrave.typing import AnyArray, Clique, FloatArray

LARGEST_TOTAL = 1e30
"""More records than any noisy total says there are."""
LARGEST_FLOAT = 1e300
"""Potentials may be added and subtracted without overflow below this."""


def total_of(facts: Mapping[str, object]) -> float:
    """The number of records: finite and not negative."""
    total = facts.get("total")
    if (
        isinstance(total, bool)
        or not isinstance(total, int | float)
        or not (math.isfinite(total) and 0 <= total <= LARGEST_TOTAL)
    ):
        raise ReleaseError("The release's model does not say how many records it stands for.")
    return float(total)


def cliques_of(domain: Domain, facts: Mapping[str, object]) -> list[Clique]:
    """The model's cliques: columns of the domain in its order, no clique twice."""
    named = facts.get("cliques")
    if not isinstance(named, list) or not all(isinstance(names, list) for names in named):
        raise ReleaseError("The release's model has no list of cliques.")
    cliques = [tuple(names) for names in named]
    for clique in cliques:
        if not clique or not all(isinstance(a, str) and a in domain for a in clique):
            raise ReleaseError("The release's model names columns that its schema does not.")
        if domain.clique(clique) != clique:
            raise ReleaseError("The release's model does not keep its schema's order of columns.")
    if len(set(cliques)) < len(cliques):
        raise ReleaseError("The release's model names a clique twice.")
    return cliques


def floats_of(arrays: Mapping[str, AnyArray], name: str, shape: tuple[int, ...]) -> FloatArray:
    """An array of 64-bit floats of that shape: below 1e300 in size, or minus infinity."""
    values = arrays.get(name)
    if values is None or values.shape != shape or values.dtype != np.float64:
        raise ReleaseError("The release's model does not fit its domain.")
    if not ((np.abs(values) < LARGEST_FLOAT) | np.isneginf(values)).all():
        raise ReleaseError("The release's model does not fit its domain.")
    return values
