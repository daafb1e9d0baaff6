"""The noise that counts against a marginal when it is chosen what to measure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from margrave.errors import InputError
from margrave.models import surviving_noise
from margrave.schema.domain import Domain
from margrave.typing import Clique, FloatArray

SURVIVING, FULL = "surviving", "full"


def expected_noise(scale: float, cells: int) -> float:
    """E‖N(0, scale²)‖₁ over the cells of a marginal: sqrt(2 / pi) · scale · cells."""
    return float(np.sqrt(2.0 / np.pi)) * scale * cells


def noise_of(kind: str, estimates: Mapping[Clique, FloatArray], scale: float, domain: Domain) -> dict[Clique, float]:
    """The noise that counts against each marginal: what is left of it (``"surviving"``), or all (``"full"``)."""
    if kind == SURVIVING:
        return surviving_noise(estimates, scale, domain)
    return {r: expected_noise(scale, domain.possible(r)) for r in estimates}


def check_penalty(kind: str) -> str:
    """One of the two kinds of noise that may count against a marginal; anything else is an ``InputError``."""
    if kind not in {SURVIVING, FULL}:
        raise InputError(f"The penalty is {kind!r}.", remedy=f'It is "{SURVIVING}" or "{FULL}".')
    return kind
