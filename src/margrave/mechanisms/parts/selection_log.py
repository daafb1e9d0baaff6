"""The estimates behind private selections, for error bounds on unmeasured marginals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import overload

import numpy as np

from margrave.bounds.reference import exact_answers
from margrave.marginal import closure
from margrave.models import Answerer
from margrave.privacy.scores import on_grid
from margrave.transcript import Hindsight, Transcript
from margrave.types import Clique, FloatArray

#: The most cells that are computed at a time at the end of a run, to see how far estimates were
#: off.
HINDSIGHT_BATCH_CELLS = 15_000_000


class SelectionLog:
    """The estimates that selections were scored with, kept until it is known how far they were off.

    Only the latest estimate of each candidate is kept.

    Args:
        max_cells: The most cells that are computed to see it, the cheapest marginals first.

    **Privacy:** none spent; all of it follows from noisy answers.
    """

    def __init__(self, max_cells: float = math.inf) -> None:
        self._max_cells = max_cells
        self._latest: dict[Clique, tuple[int, FloatArray]] = {}
        self._surprise: dict[int, float] = {}

    def note(self, estimates: Mapping[Clique, FloatArray], transcript: Transcript) -> None:
        """Keep the estimates of the last selection, once its marginal has been measured whole."""
        selection, answer = transcript.selections[-1], transcript.measurements[-1]
        number = len(transcript.selections) - 1
        self._latest |= {r: (number, estimates[r]) for r in selection.candidates}
        self._surprise[number] = float(
            np.abs(on_grid(estimates[selection.chosen]) - answer.values).sum()
        )

    def against(self, model: Answerer, transcript: Transcript) -> Sequence[Hindsight]:
        """Return how far the last model is from the estimates of unmeasured candidates.

        It is computed when it is first used, by error bounds or to save the release.
        """
        return _PendingHindsight(partial(self._compared, model, transcript))

    def _compared(self, model: Answerer, transcript: Transcript) -> tuple[Hindsight, ...]:
        supported = set(closure(transcript.cliques))
        left = {r: kept for r, kept in self._latest.items() if r not in supported}
        drift = [np.full(len(s.candidates), np.nan) for s in transcript.selections]
        answers = exact_answers(model, list(left), HINDSIGHT_BATCH_CELLS, self._max_cells)
        for r, expected in answers.items():
            t, estimate = left[r]
            place = transcript.selections[t].candidates.index(r)
            drift[t][place] = np.abs(on_grid(estimate) - expected).sum()
        return tuple(
            Hindsight(t, self._surprise[t], distances)
            for t, distances in enumerate(drift)
            if not np.isnan(distances).all()
        )


class _PendingHindsight(Sequence[Hindsight]):
    """The result of ``compute``, computed once, at the first use."""

    def __init__(self, compute: Callable[[], tuple[Hindsight, ...]]) -> None:
        self._compute: Callable[[], tuple[Hindsight, ...]] | None = compute
        self._found: tuple[Hindsight, ...] = ()

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, place: int) -> Hindsight: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Hindsight, ...]: ...

    def __getitem__(self, place: int | slice) -> Hindsight | tuple[Hindsight, ...]:
        return self._all()[place]

    def _all(self) -> tuple[Hindsight, ...]:
        if (compute := self._compute) is not None:
            self._found, self._compute = compute(), None
        return self._found
