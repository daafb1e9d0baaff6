"""The exponential mechanism: private selection, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from margrave.privacy.samplers import Bits, below, bernoulli_exp
from margrave.types import FloatArray, IntArray


def epsilon_of(rho: Fraction) -> Fraction:
    """Return ``epsilon = sqrt(8 rho)`` rounded down to a float: the parameter of a choice bought
    with rho.

    **Privacy:** a choice at this epsilon costs epsilon²/8 ≤ rho (zCDP). Source: Cesar and Rogers
    2021 (an epsilon-bounded-range mechanism is epsilon²/8-zCDP).

    >>> epsilon_of(Fraction(1, 2))
    Fraction(2, 1)
    """
    epsilon = math.sqrt(8 * rho)
    while Fraction(epsilon) ** 2 > 8 * rho:
        epsilon = math.nextafter(epsilon, 0.0)
    return Fraction(epsilon)


def temperature_of(epsilon: Fraction, sensitivity: Fraction | int) -> Fraction:
    """Return ``epsilon / (2 · sensitivity)``, the factor of a score in the exponential mechanism's
    exponent.

    >>> temperature_of(Fraction(3), 2)
    Fraction(3, 4)
    """
    return epsilon / (2 * sensitivity)


def price_of(temperature: Fraction, sensitivity: Fraction | int, times: int = 1) -> Fraction:
    """Return the price of ``times`` selections with ``P[r] ∝ exp(temperature · score_r)``: the
    inverse of ``epsilon_of``.

    ``epsilon = 2 · sensitivity · temperature``, at epsilon²/8 (zCDP) a selection.

    >>> price_of(Fraction(1), 1)
    Fraction(1, 2)
    """
    return times * (2 * sensitivity * temperature) ** 2 / 8


def choose(scores: Sequence[int] | IntArray, temperature: Fraction, bits: Bits) -> int:
    """Return an index drawn with P[r] ∝ exp(temperature · scores[r]), exactly. Scores in an array
    are below 2^53 in size.

    **Privacy:** with ``temperature = epsilon / (2 sensitivity)``, per unit of the scores, epsilon²/8 (zCDP).

    Rejection: propose an index uniformly, keep it with probability exp(−temperature (max − score)); the proposals come
    in batches and the first one kept is the answer. At most one proposal per candidate is needed on average, because
    the best one is always kept.

    >>> choose([0, 0, 10**6], Fraction(1), np.random.default_rng(0).bytes)
    2
    """
    gaps, approximate = _gaps(scores, temperature)
    chosen = None
    while chosen is None:
        chosen = _first_kept(gaps, temperature, approximate, bits)
    return chosen


def _gaps(
    scores: Sequence[int] | IntArray, temperature: Fraction
) -> tuple[Sequence[int] | IntArray, FloatArray]:
    up, down = temperature.numerator, temperature.denominator
    if isinstance(scores, np.ndarray):
        # Two roundings of a relative 2^-53: far finer than what ``bernoulli_exp`` asks for.
        slope = up / down if up < down << 1000 else 2.0**1000
        behind: IntArray = int(scores.max()) - scores
        return behind, np.minimum(behind * slope, 1000.0)
    best = max(scores)
    gaps = [best - score for score in scores]
    # Dividing Python's integers is correctly rounded (relative 2^-53); beyond 1000 only the size matters.
    return gaps, np.array([gap * up / down if gap * up < 1000 * down else 1000.0 for gap in gaps])


def _first_kept(
    gaps: Sequence[int] | IntArray, temperature: Fraction, approximate: FloatArray, bits: Bits
) -> int | None:
    largest_batch = 1024
    proposed = below(len(gaps), min(largest_batch, 4 * len(gaps)), bits)
    kept = bernoulli_exp(
        approximate[proposed], lambda i: int(gaps[proposed[i]]) * temperature, bits
    )
    return int(proposed[np.argmax(kept)]) if kept.any() else None
