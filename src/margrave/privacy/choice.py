"""The exponential mechanism: a private choice, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from margrave.privacy.exact import Bits, below, bernoulli_exp
from margrave.typing import FloatArray

_LARGEST_BATCH = 1024


def epsilon_of(rho: Fraction) -> Fraction:
    """``epsilon = sqrt(8 rho)`` rounded down to a float: the parameter of a choice bought with rho.

    **Privacy:** a choice at this epsilon costs epsilon²/8 ≤ rho (zCDP).
    Source: Cesar and Rogers 2021 (an epsilon-bounded-range mechanism is epsilon²/8-zCDP).

    >>> epsilon_of(Fraction(1, 2))
    Fraction(2, 1)
    """
    epsilon = math.sqrt(8 * rho)
    while Fraction(epsilon) ** 2 > 8 * rho:
        epsilon = math.nextafter(epsilon, 0.0)
    return Fraction(epsilon)


def choose(scores: Sequence[int], temperature: Fraction, bits: Bits) -> int:
    """An index drawn with P[r] ∝ exp(temperature · scores[r]), exactly.

    **Privacy:** with ``temperature = epsilon / (2 sensitivity)``, per unit of the scores, epsilon²/8 (zCDP).

    Rejection: propose an index uniformly, keep it with probability exp(−temperature (max − score)); the proposals come
    in batches and the first one kept is the answer. At most one proposal per candidate is needed on average, because
    the best one is always kept.

    >>> choose([0, 0, 10**6], Fraction(1), np.random.default_rng(0).bytes)
    2
    """
    best = max(scores)
    up, down = temperature.numerator, temperature.denominator
    gaps = [(best - score) * up for score in scores]
    # Dividing Python's integers is correctly rounded (relative 2^-53); beyond 1000 only the size matters.
    approximate = np.array([gap / down if gap < 1000 * down else 1000.0 for gap in gaps])
    chosen = None
    while chosen is None:
        chosen = _first_kept(gaps, down, approximate, bits)
    return chosen


def _first_kept(gaps: Sequence[int], down: int, approximate: FloatArray, bits: Bits) -> int | None:
    """The first of a batch of proposals that is kept, if one is: index r with probability exp(−gaps[r] / down)."""
    proposed = below(len(gaps), min(_LARGEST_BATCH, 4 * len(gaps)), bits)
    kept = bernoulli_exp(approximate[proposed], lambda i: Fraction(gaps[proposed[i]], down), bits)
    return int(proposed[np.argmax(kept)]) if kept.any() else None
