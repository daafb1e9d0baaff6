"""Where a model contradicts the noisy answers beyond their noise: what it cannot hold, however much was spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from margrave.models.protocol import Model
from margrave.transcript import Transcript
from margrave.typing import Clique

SURE = 6.0
"""So many standard deviations of what noise alone comes to are taken off: of a single cell that is 4.4 of its own."""

LEAST = 0.05
"""Smaller shares of the records are not told: a model between noisy answers is a little off all of them."""


@dataclass(frozen=True)
class Misfit:
    """A measured marginal of which the model has at least a ``share`` of the records in the wrong cells."""

    clique: Clique
    share: float


def misfits_of(model: Model, transcript: Transcript) -> tuple[Misfit, ...]:
    """The marginals measured whole that the model contradicts, the worst first.

    With y = M(D) + noise of scale σ in each of k cells, and p the model, ``‖M(D) − M(p)‖₁ ≥ ‖y − M(p)‖₁ − ‖noise‖₁``,
    where ``‖noise‖₁`` is about σ (k √(2/π) ± SURE √(k (1 − 2/π))). Half of that distance are records in wrong cells.

    **Privacy:** none spent: it sees noisy answers and a model of them.
    """
    total = max(transcript.total(), 1.0)
    found: dict[Clique, float] = {}
    whole = [m for m in transcript.measurements if m.query.is_identity]
    expected = model.answer(list(dict.fromkeys(m.clique for m in whole)))
    for m in whole:
        off = float(np.abs(m.values - expected[m.clique]).sum())
        cells = m.values.size
        noise = m.scale * (cells * math.sqrt(2 / math.pi) + SURE * math.sqrt(cells * (1 - 2 / math.pi)))
        found[m.clique] = max(found.get(m.clique, 0.0), min(1.0, (off - noise) / 2 / total))
    worst = sorted(found.items(), key=lambda pair: -pair[1])
    return tuple(Misfit(r, share) for r, share in worst if share > LEAST)
