"""The values beyond an end of a learned range: how many there may be, and how far out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrave.learning.tree import CountTree
from margrave.types import FloatArray


@dataclass(frozen=True)
class Tail:
    """Noisy counts of the logarithmic grid on both sides of an end of the range.

    Args:
        last: The last octave within the range.
        before: The octave before it.
        next: The octave beyond it.
        beyond: The three octaves beyond it.
        sigma: The noise scale of a half-octave.
        most: How far beyond the end the mean of hidden values may lie, in distances of the end from zero.
    """

    last: float
    before: float
    next: float
    beyond: float
    sigma: float
    most: float = 7.0

    @staticmethod
    def of(inside: FloatArray, outside: FloatArray, sigma: float) -> Tail:
        """Return the tail of an end.

        Args:
            inside, outside: The half-octaves from the end inwards, and outwards.
            sigma: Their noise scale.
        """
        last, following = float(inside[:2].sum()), float(outside[:2].sum())
        return Tail(last, float(inside[2:4].sum()), following, float(outside[:6].sum()), sigma)

    def within(self, end: float, bound: float) -> Tail | None:
        """Return the tail if no value lies beyond a public bound; None if the range ends there.

        Args:
            end, bound: The end of the range, and the bound, on the same side of zero.
        """
        if abs(bound) <= abs(end):
            return None
        return replace(self, most=min(self.most, abs(bound) / abs(end) - 1))

    def weight(self, surplus: float, noise: float) -> float:
        """Return how many values may lie beyond the end, times their mean distance from it.

        The distance is in distances of the end from zero. A tail is taken to lose the same share per octave, so that
        a ratio r of neighboring octaves puts its mean at 1.5 (1 − r) / (1 − 2r) times the end: at least twice, and at
        most eight times. r is half as large again as the ratio within the range, or, if that is less, as the ratio of
        the octave beyond to the last one. The octave beyond is taken two deviations above its estimate.

        Args:
            surplus: What the outermost cell of a tree within the range holds beyond what its neighbors lead to expect.
                It counts values from beyond, too.
            noise: The deviation of that.
        """
        least, deviations, doubt = 1.0, 2.0, 1.5
        own = np.sqrt(2) * self.sigma
        surplus = min(surplus, max(self.beyond, 0.0) + 2 * np.sqrt(6) * self.sigma)  # else a heap
        part = noise**2 / (noise**2 + own**2) if np.isfinite(noise) else 1.0
        estimate = part * self.next + (1 - part) * surplus
        following = max(estimate, 0.0) + deviations * own * np.sqrt(part)
        last = max(self.last, self.sigma)
        ratio = min(doubt * min(following / last, last / max(self.before, self.sigma)), 0.5)
        excess = self.most if ratio == 0.5 else 1.5 * (1 - ratio) / (1 - 2 * ratio) - 1
        rows = max(following / (1 - ratio), 2 * self.sigma)
        return float(rows * np.clip(excess, least, max(self.most, least)))


def surplus_of(
    tree: CountTree, counts: list[FloatArray], sigmas: list[float], *, top: bool
) -> tuple[float, float]:
    """Return by how much the outermost nodes exceed what their neighbors lead to expect, and its deviation.

    It is the mean over the two finest levels, each against three neighbors, by the width of the cells.
    """
    neighbors, found, variances = 3, [], []
    for level, values, sigma in list(zip(tree.levels, counts, sigmas, strict=True))[-2:]:
        widths = np.diff(tree.edges[level])
        if top:
            widths, values = widths[::-1], values[::-1]
        near = slice(1, 1 + neighbors)
        if not len(widths[near]):
            continue
        factor = float(widths[0] / widths[near].sum())
        found.append(float(values[0]) - factor * max(float(values[near].sum()), 0.0))
        variances.append(sigma**2 * (1 + factor**2 * len(widths[near])))
    if not found:
        return 0.0, np.inf
    return float(np.mean(found)), float(np.sqrt(np.sum(variances)) / len(found))
