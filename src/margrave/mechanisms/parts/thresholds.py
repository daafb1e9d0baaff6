"""Random thresholds over numbers, and a round that selects and measures some of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import sqrt

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import HalfSpace
from margrave.models import Answerer
from margrave.models.mixture.model import numbers_of
from margrave.privacy import Gaussian, HalfSpaceGap, Private
from margrave.types import Attribute, Clique, Generator


@dataclass(frozen=True)
class RandomThresholds:
    """The rows with <h, x> > b in some numbers x, each in [0, 1]: h is normal with norm 1.

    The boundary goes through a uniform point. With a label, only the rows of one of its two codes count.

    Args:
        domain: The domain.
        columns: Numbers in a threshold at most.
        label: A column of two codes, which are drawn with equal probability.

    Raises:
        InputError: The label does not have two codes.
    """

    domain: Domain
    columns: int
    label: Attribute | None = None

    def __post_init__(self) -> None:
        if self.label is None:
            return
        self.domain.clique([self.label])
        if self.domain.size(self.label) != 2 or self.label in self.domain.missing:
            raise InputError(
                f"The label {self.label!r} does not have two codes.",
                remedy="Name a column of two codes without missing values, or leave label (--label) out.",
            )

    @property
    def cliques(self) -> list[Clique]:
        """The sets of columns that thresholds are drawn on."""
        numbers = numbers_of(self.domain)
        sizes = range(1, min(self.columns, len(numbers)) + 1)
        classes = [] if self.label is None else [self.label]
        return [self.domain.clique([*c, *classes]) for k in sizes for c in combinations(numbers, k)]

    def draw(self, count: int, rng: Generator) -> list[HalfSpace]:
        """Return ``count`` thresholds."""
        cliques, found = self.cliques, list[HalfSpace]()
        for _ in range(count):
            numbers = [a for a in cliques[rng.integers(len(cliques))] if a != self.label]
            normal, point = rng.standard_normal(len(numbers)), rng.random(len(numbers))
            normal /= np.linalg.norm(normal)
            coefficients = dict(zip(numbers, normal.tolist(), strict=True))
            threshold = float(normal @ point)
            if self.label is not None:
                # rows of the other code are further from the boundary than any <h, x> reaches
                sign = 1.0 if rng.random() < 0.5 else -1.0
                coefficients[self.label] = sign * 4.0 * sqrt(len(numbers))
                threshold += coefficients[self.label] * (0.75 if sign > 0 else 0.25)
            found.append(HalfSpace.of(self.domain, coefficients, threshold))
        return found


def measure_thresholds(
    private: Private, model: Answerer, drawn: list[HalfSpace], count: int, rho: Fraction
) -> None:
    """Select the thresholds that the model answers worst, one after the other, and measure them; half of rho each.

    All are measured if ``count`` is above their number.
    """
    answers, left = model.answer({q.clique for q in drawn}), list(drawn)
    chosen: list[HalfSpace] = []
    count = min(count, len(drawn))
    for _ in range(count):
        gap = HalfSpaceGap(np.array([float(q.count(answers[q.clique])) for q in left]))
        chosen.append(private.select_half_space(left, gap, rho=rho / 2 / count).chosen)
        left.remove(chosen[-1])
    private.measure_queries(chosen, Gaussian(rho=rho / 2))
