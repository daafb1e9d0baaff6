"""Selections whose temperature grows with the round: DualQuery's number of rounds, and its eta."""

from __future__ import annotations

import math
from fractions import Fraction

from margrave.accounting import Unit, sensitivity
from margrave.marginal import LinearQuery, QueryFamily
from margrave.mechanisms.parts.default_rounds import MAX_ROUNDS
from margrave.privacy.exponential import price_of
from margrave.types import Generator

ONE_COUNT = LinearQuery((), ())


def squares(m: int) -> int:
    """Return 1 + 4 + … + m²."""
    return m * (m + 1) * (2 * m + 1) // 6


def affordable(eta: float, samples: int, rho: Fraction, records: float, unit: Unit) -> int:
    """Return the most rounds that cost at most rho at this eta: from 2 to ``MAX_ROUNDS``.

    **Privacy:** none spent; ``records`` is public, or a noisy answer.
    """
    per_count = sensitivity(unit, ONE_COUNT).l1
    second = price_of(Fraction(eta) / Fraction(records), per_count, samples)
    rounds = 2
    while rounds < MAX_ROUNDS and second * squares(rounds) <= rho:
        rounds += 1
    return rounds


def eta_for(rho: Fraction, samples: int, rounds: int, records: float, unit: Unit) -> float:
    """Return the eta at which so many rounds cost rho."""
    per_count = float(sensitivity(unit, ONE_COUNT).l1)
    return records / per_count * math.sqrt(2.0 * float(rho) / (samples * squares(rounds - 1)))


def uniform(queries: QueryFamily, samples: int, rng: Generator) -> list[tuple[LinearQuery, float]]:
    """Draw the first round's queries and complements, each as likely as any other."""
    places = rng.integers(2 * len(queries), size=samples).tolist()
    return [(queries[p // 2], 1.0 if p % 2 else -1.0) for p in places]
