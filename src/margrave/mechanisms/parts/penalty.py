"""The noise that counts against a marginal in a private selection."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from margrave.domain import Domain
from margrave.models.projected_error import projected_error
from margrave.types import Clique, FloatArray

#: The expected projected error of a measurement, or its full noise.
PENALTIES = PROJECTED, FULL = "projected", "full"


def expected_noise(scale: float, cells: int) -> float:
    """Return E‖N(0, scale²)‖₁ over the cells of a marginal: sqrt(2 / pi) · scale · cells."""
    return float(np.sqrt(2.0 / np.pi)) * scale * cells


def useful_cells(records: float, scale: float, theta: float) -> float:
    """Return the most cells of a theta-useful marginal: the row count by theta times the mean noise of a cell.

    References:
        Zhang et al. (2017), PrivBayes, theta-usefulness, with Gaussian noise.
    """
    return records / (theta * expected_noise(scale, 1))


def expected_error(
    kind: str, estimates: Mapping[Clique, FloatArray], scale: float, domain: Domain
) -> dict[Clique, float]:
    """Return the noise that counts against each marginal: "projected" or "full"."""
    if kind == PROJECTED:
        return projected_error(estimates, scale, domain)
    return {r: expected_noise(scale, domain.possible(r)) for r in estimates}


def budget_factor(
    estimates: Mapping[Clique, FloatArray], scale: float, error: float, domain: Domain
) -> int:
    """Return the least power of 2 by which more budget brings the mean projected error to ``error``.

    It is 65,536 at most, more than any number of rounds.
    """
    factors = [1 << k for k in range(17)]
    for factor in factors:
        errors = projected_error(estimates, scale / factor**0.5, domain)
        if np.mean(list(errors.values())) <= error:
            return factor
    return factors[-1]
