"""Quantities that cannot be just any number, such as shares: what comes out beyond is moved to the nearest one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.inference.estimate import Estimate
from margrave.inference.kinds import some
from margrave.parameters import is_number

Bounds = tuple[float | None, float | None]
"""The least and the greatest possible value; None is no bound."""


def bounds_of(given: Any, fit: Any) -> Any:
    """Those given, for all estimates or by name; else those of a ready model."""
    bounds = getattr(fit, "bounds", None) if given is None else given
    for pair in bounds.values() if isinstance(bounds, Mapping) else [bounds]:
        if pair is not None and not _right(pair):
            raise InputError(
                f"bounds are {bounds!r}.",
                remedy="Give the least and the greatest possible value, (0, 1), None for no bound; or such by name.",
            )
    return bounds


def held(
    estimates: Sequence[Estimate], bounds: Any, level: float
) -> tuple[tuple[Estimate, ...], list[str]]:
    """The estimates within their bounds, with intervals around that and cut off there; and what is told of it.

    The interval around the estimate that was moved holds every possible value that the one before did.
    """
    pairs = [_pair(bounds, e.name) for e in estimates]
    unknown = [n for n in bounds if n not in {e.name for e in estimates}] if isinstance(bounds, Mapping) else []
    if unknown:
        raise InputError(
            f"bounds names {unknown[0]!r}, which is no estimate.",
            remedy=f"They are: {some([e.name for e in estimates])}.",
        )
    within = [float(np.clip(e.estimate, *pair)) for e, pair in zip(estimates, pairs, strict=True)]
    found = tuple(replace(e, estimate=at, bounds=b) for e, at, b in zip(estimates, within, pairs, strict=True))
    both = [(before, e) for before, e in zip(estimates, found, strict=True) if e.known]
    moved = [(before, e) for before, e in both if before.estimate != e.estimate]
    cut = [e.name for before, e in both if before.interval(level) != e.interval(level)]
    told = [f"{e.name} came out at {b.estimate:.3g}, which it cannot be: {e.estimate:g} is told." for b, e in moved]
    if cut:
        told.append(f"{some(cut)}: the interval is cut off at what is possible.")
    return found, told


def _pair(bounds: Any, name: str) -> tuple[float, float]:
    pair = bounds.get(name) if isinstance(bounds, Mapping) else bounds
    low, high = (None, None) if pair is None else pair
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _right(pair: Any) -> bool:
    """Two numbers, the first the smaller; None for either."""
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(p is None or is_number(p) for p in pair):
        return False
    low, high = _pair(pair, "")
    return low < high
