"""A penalty on a mean or a share: what it should be, or should not.

Source: Donhauser, Abad, Hulkund, Yang (2024), Section 4.4, Appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from margrave.errors import InputError
from margrave.marginal.half_space import sigmoid
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.penalties import line_rows, on_lines, present
from margrave.types import Attribute, FloatArray


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A mean over the records kept at a value, or away from it.

        S = mean of Σ_a coefficient_a · z_a, or, with ``threshold`` b, of sigmoid(slope · (Σ_a coefficient_a · z_a − b))
        R = (S − target)², or, ``hidden``, 0.01 / (0.0001 + (S − target)²), equation 12 of the paper

    z_a is the position of a column's code in the unit interval, (2x + 1) / 2k for code x of k. A
    record with a missing value does not lie beyond a threshold, as with ``HalfSpace``; in a mean it
    lies in the middle. The paper hides with weights from 0.01 to 10, too much for "transport".
    ``KeepShare`` and ``HideShare`` find their targets themselves.
    """

    coefficients: Mapping[Attribute, float]
    target: float
    weight: float = 1.0
    threshold: float | None = None
    slope: float = 5.0
    hidden: bool = False

    def __post_init__(self) -> None:
        if (
            not self.coefficients
            or not np.isfinite([self.target, *self.coefficients.values()]).all()
        ):
            raise InputError(
                "A statistic needs columns with coefficients, and a target, all of them finite."
            )

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns with a coefficient."""
        return tuple(self.coefficients)

    def check(self, embedding: Embedding) -> None:
        """Raise ``InputError`` unless its columns are numeric."""
        on_lines(embedding, self.attributes)

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """Return R and its gradient."""
        rows, count = line_rows(embedding, self.attributes), particles.shape[1]
        along = np.array(list(self.coefficients.values()), dtype=np.float64)
        score = along @ particles[rows]
        slopes = np.ones(count)
        if self.threshold is not None:
            beyond = sigmoid(self.slope * (score - self.threshold))
            score = np.where(present(embedding, self.attributes, particles), beyond, 0.0)
            slopes = self.slope * score * (1.0 - score)
        gap = float(score.mean()) - self.target
        gradient = np.zeros_like(particles)
        if self.hidden:
            value = 0.01 / (0.0001 + gap**2)
            outer = -200.0 * gap * value**2
        else:
            value, outer = gap**2, 2.0 * gap
        gradient[rows] = outer / count * along[:, None] * slopes
        return value, gradient
