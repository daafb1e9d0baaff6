"""Exact sampling, vectorized: every probability below is a mathematical one, not a rounded one.

The one idea: to decide whether U < p for a uniform U and a probability p known only approximately, draw the leading
53 bits of U. They almost always settle the question, however p is rounded. Where they do not, more bits of U are
drawn and p is computed to more digits, until they do. Floating point thus decides nothing that it could get wrong.

**Privacy:** the primitives of the exponential mechanism (choice.py) and a cross-check of the default noise sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margrave.types import FloatArray, IntArray

#: A source of random bytes: ``os.urandom``, or a seeded one in tests.
Bits = Callable[[int], bytes]

# Precondition of bernoulli_exp: an exponent below 64 is approximated to within 2^-36, a larger one is known to
# be at least 63. NumPy's exp is within a few units of 2^-53, so exp(-x) is known to a relative 2^-35. The margin is
# thirty times that, and still leaves only one coin in hundreds of millions open.
_MARGIN = 2.0**-30


def bernoulli_exp(
    approximate: FloatArray, exact: Callable[[int], Fraction], bits: Bits, margin: float = _MARGIN
) -> NDArray[np.bool_]:
    """Return one coin for each exponent x ≥ 0: True with probability exactly exp(−x).

    ``approximate[i]`` is x_i in floating point; ``exact(i)`` gives it exactly, for the few coins left open.
    """
    leading = words(approximate.size, bits) >> np.uint64(11)
    uniform = leading.astype(np.float64)  # 53 bits: no rounding
    chance = np.exp(-approximate) * 2.0**53
    heads = uniform + 1 <= chance * (1 - margin)
    for i in np.flatnonzero(~heads & (uniform < chance * (1 + margin) + margin)):
        heads[i] = _decide(int(leading[i]), exact(int(i)), bits)
    return heads


def _decide(leading: int, exponent: Fraction, bits: Bits) -> bool:
    """Return True if U < exp(−exponent), given the leading 53 bits of U: interval arithmetic with
    more and more digits.

    At precision p the exponent is known to a relative 10^-p and ``exp`` rounds correctly, so ``slack`` is ample.
    """
    if exponent == 0:
        return True
    known = 53
    while True:
        leading = leading << 64 | int.from_bytes(bits(8), "big")
        known += 64
        with localcontext(Context(prec=known // 3 + 30, Emin=-(10**15), Emax=10**15)) as context:
            power = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
            slack = power * (1 + int(exponent)) * Decimal(10) ** (4 - context.prec)
            if Decimal(leading + 1) <= (power - slack) * 2**known:
                return True
            if Decimal(leading) >= (power + slack) * 2**known:
                return False


def below(bound: int, size: int, bits: Bits) -> IntArray:
    """Return ``size`` integers uniform on 0 … bound − 1 (bound up to 2^62): masked bits, those at
    or above it redrawn.
    """
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    drawn = words(size, bits) & mask
    while (over := np.flatnonzero(drawn >= np.uint64(bound))).size:
        drawn[over] = words(over.size, bits) & mask
    return drawn.astype(np.int64)


def words(size: int, bits: Bits) -> NDArray[np.uint64]:
    """Return ``size`` words of 64 random bits."""
    return np.frombuffer(bits(8 * size), dtype=np.uint64).copy()


def discrete_gaussian(size: int, scale: Fraction, bits: Bits) -> IntArray:
    """Return ``size`` integers with P[x] ∝ exp(−x² / (2 scale²)).

    Rejection from a discrete Laplace of scale ``t = floor(scale) + 1`` (Canonne, Kamath, Steinke 2020, Algorithm 3),
    with the two rejections of the paper made one: a proposal x = sign · (u + t v) with u uniform below t and v
    geometric (ratio 1/e) is kept with probability exp(−(x²/(2 scale²) + scale²/(2t²) − v)).

    **Privacy:** noise of this law on integers costs l2_squared / (2 scale²) (zCDP).
    """
    # Proof: P[x proposed] ∝ exp(−v) / t for either sign, so P[proposed and kept] ∝ exp(−x²/(2 scale²)).
    # The exponent is (|x| − scale²/t)²/(2 scale²) + u/t ≥ 0, so it is the exponent of a probability. Zero arises with
    # both signs and one is refused.
    t = math.floor(scale) + 1
    parts: list[IntArray] = []
    missing = size
    while missing > 0:
        kept = _proposals(3 * missing + 16, scale, t, bits)[:missing]
        parts.append(kept)
        missing -= kept.size
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _proposals(size: int, scale: Fraction, t: int, bits: Bits) -> IntArray:
    v = _geometric(size, bits)
    x = below(t, size, bits) + t * v
    sign = words(size, bits) & np.uint64(1)
    variance = scale * scale
    offset = variance / (2 * t * t)

    def exponent(i: int) -> Fraction:
        return int(x[i]) ** 2 / (2 * variance) + offset - int(v[i])

    # Where the exponent is below 64, its largest term is below 64 + v, so float64 gives it to within (64 + v) 2^-50.
    # That is 2^-36 for any v below 16,000; a larger one has probability exp(-16000).
    approximate = np.maximum((x / float(scale)) ** 2 / 2 + float(offset) - v, 0.0)
    keep = bernoulli_exp(approximate, exponent, bits) & ((x > 0) | (sign == 0))
    kept: IntArray = np.where(sign == 1, -x, x)[keep]
    return kept


def _geometric(size: int, bits: Bits) -> IntArray:
    v = np.zeros(size, dtype=np.int64)
    alive = np.arange(size)
    while alive.size:
        alive = alive[bernoulli_exp(np.ones(alive.size), lambda _: Fraction(1), bits)]
        v[alive] += 1
    return v
