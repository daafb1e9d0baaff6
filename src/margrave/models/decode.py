"""Decoders of a model's state. Every fault of a file raises ``ReleaseError``."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.types import AnyArray, Clique, FloatArray


def total_of(facts: Mapping[str, object]) -> float:
    """Return the number of records: finite and not negative."""
    # More records than any noisy total.
    max_total = 1e30
    total = facts.get("total")
    if (
        isinstance(total, bool)
        or not isinstance(total, int | float)
        or not (math.isfinite(total) and 0 <= total <= max_total)
    ):
        raise ReleaseError("The release's model does not say how many records it stands for.")
    return float(total)


def cliques_of(domain: Domain, facts: Mapping[str, object]) -> list[Clique]:
    """Return the model's cliques: columns of the domain in its order, no clique twice."""
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
    """Return an array of 64-bit floats of that shape: below 1e300 in size, or minus infinity."""
    # Potentials below this can be added and subtracted without overflow.
    max_float = 1e300
    values = arrays.get(name)
    if values is None or values.shape != shape or values.dtype != np.float64:
        raise ReleaseError("The release's model does not fit its domain.")
    if not ((np.abs(values) < max_float) | np.isneginf(values)).all():
        raise ReleaseError("The release's model does not fit its domain.")
    return values
