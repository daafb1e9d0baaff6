"""Rare codes of columns, merged before pairs are measured."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from margrave.domain import Domain
from margrave.transcript import Measurement
from margrave.types import Attribute, IntArray


def rare_codes(
    domain: Domain, singles: Iterable[Measurement], threshold: float
) -> dict[Attribute, IntArray]:
    """Return the groups of each column with two or more rare codes, which are the last group.

    A code is rare if its noisy count is below ``threshold`` noise scales. Columns of structural
    zeros keep their codes.
    """
    fixed = {a for z in domain.zeros for a in z.clique}
    groups: dict[Attribute, IntArray] = {}
    if threshold == 0.0:  # a noisy count can be negative
        return groups
    for m in singles:
        (attribute,) = m.clique
        rare = m.values < threshold * m.scale
        if rare.sum() >= 2 and attribute not in fixed:
            common = len(rare) - int(rare.sum())
            groups[attribute] = np.where(rare, common, np.cumsum(~rare) - 1).astype(np.int64)
    return groups
