"""Replay: run a mechanism once, then again on another table with every answer forced to what it was.

``loss_replay`` adds up the exact privacy loss between the two tables and compares it with what was charged.
``ReplayRandomness(transcript)`` alone serves non-interference: same answers, another table, same bytes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave._card import counted
from margrave.accounting import Budget, Unit
from margrave.errors import MargraveError
from margrave.privacy import Private, Randomness, SeededRandomness, protect
from margrave.privacy.scores import PER_RECORD
from margrave.transcript import (
    Answer,
    HalfSpaceSelection,
    Measurement,
    QuerySelection,
    ScoreMeasurement,
    Selection,
    Transcript,
)
from margrave.types import IntArray


@dataclass(frozen=True, eq=False)
class Noisy:
    """One noisy marginal: the scale, the answer, and (where recorded behind the gate) the true counts.

    ``single``: one count, which may have been drawn together with those after it.
    """

    scale: float
    answer: IntArray
    truth: IntArray | None = None
    single: bool = False


@dataclass(frozen=True)
class Chosen:
    """One private selection: the number of candidates, the selected one, and (if recorded) true
    scores and temperature.
    """

    candidates: int
    answer: int
    scores: tuple[int, ...] | None = None
    temperature: Fraction | None = None


Step = Noisy | Chosen


def _described(step: Step | None) -> str:
    """Return a step in words, without its answer."""
    if step is None:
        return "nothing more"
    if isinstance(step, Chosen):
        known = step.temperature
        at = "" if known is None else f" at temperature {float(known):.6g}"
        return f"a selection among {counted(step.candidates, 'candidate')}{at}"
    return f"noisy counts of shape {step.answer.shape} at noise scale {step.scale:.6g}"


def steps_of(transcript: Transcript) -> list[Step]:
    """Return the answers of a transcript, in order."""
    steps: list[Step] = []
    for entry in transcript:
        if isinstance(entry, Measurement):
            steps.append(Noisy(entry.scale, entry.values))
        elif isinstance(entry, Answer):
            steps.append(Noisy(entry.scale, np.array([entry.value]), single=True))
        elif isinstance(entry, ScoreMeasurement):
            parts = np.rint(entry.values * PER_RECORD).astype(np.int64)
            steps.append(Noisy(entry.scale * PER_RECORD, parts))
        elif isinstance(entry, HalfSpaceSelection):
            steps.append(Chosen(len(entry.queries), entry.number))
        elif isinstance(entry, QuerySelection):
            candidates = len(entry.queries) - len(entry.without)
            place = entry.number - sum(n < entry.number for n in entry.without)
            steps.append(
                Chosen(candidates * (1 + entry.signed), place + candidates * (entry.sign < 0))
            )
        elif isinstance(entry, Selection):
            sides = (entry.candidates, entry.readable)
            place = len(entry.candidates) * entry.public + sides[entry.public].index(entry.chosen)
            steps.append(Chosen(sum(map(len, sides)), place))
    return steps


class Recorder:
    """Another source's answers, written down together with the truth they hide. For tests only."""

    def __init__(self, source: Randomness) -> None:
        self.source = source
        self.steps: list[Step] = []

    def describe(self) -> str:
        return "NOT PRIVATE: a recorder for tests"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        answer = self.source.gaussian(counts, scale)
        self.steps.append(Noisy(scale, answer.copy(), counts.copy()))
        return answer

    def choose(self, scores: Sequence[int] | IntArray, temperature: Fraction) -> int:
        answer = self.source.choose(scores, temperature)
        known = (
            scores.tolist() if isinstance(scores, np.ndarray) else scores
        )  # of the type they have: it is checked
        self.steps.append(Chosen(len(scores), answer, tuple(known), temperature))
        return answer


class ControlFlowDiffersError(AssertionError):
    """The replay asked something else than the recording: the control flow read more than the answers."""


class ReplayRandomness:
    """Gives the recorded answers again, in order, whatever the table; ``loss`` adds up where the truth was recorded.

    For the answer of one step to be the same on both tables costs, in zCDP, exactly or at most:

    - a noisy marginal: ``‖x − x'‖₂² / (2 scale²)``. For the continuous Gaussian this is the Rényi divergence of order
      alpha over alpha, for every alpha; for the discrete one on integers it bounds it (Canonne et al. 2020).
    - a choice with P[r] ∝ exp(q_r) against P'[r] ∝ exp(q'_r), temperature included: the log-ratio of the two
      probabilities is d_r − log(Z / Z') with d_r = q_r − q'_r, so it lies in an interval of length
      ``eta = max d − min d``. A log-ratio confined to such an interval has Rényi divergence at most alpha eta² / 8
      (Hoeffding's lemma; Cesar and Rogers 2021), so the choice costs ``eta² / 8``.
    """

    def __init__(self, record: Transcript | Iterable[Step]) -> None:
        self._steps = iter(steps_of(record) if isinstance(record, Transcript) else list(record))
        self.loss = Fraction(0)
        self.difference = (
            ""  # the gate hides the words of errors behind it, so they are stored here
        )

    def describe(self) -> str:
        return "NOT PRIVATE: a replay for tests"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        step = next(self._steps, None)
        if isinstance(step, Noisy) and step.single:
            rest = [next(self._steps, None) for _ in range(counts.size - 1)]
            together = [
                step.answer,
                *(s.answer for s in rest if isinstance(s, Noisy) and s.scale == scale),
            ]
            step = Noisy(step.scale, np.concatenate(together))
        if not isinstance(step, Noisy) or step.answer.shape != counts.shape or step.scale != scale:
            raise self._differs(_described(Noisy(scale, counts)), step)
        if step.truth is not None:
            moved = sum(int(d) ** 2 for d in (counts - step.truth).ravel())
            self.loss += moved / (2 * Fraction(scale) ** 2)
        return step.answer.copy()

    def choose(self, scores: Sequence[int] | IntArray, temperature: Fraction) -> int:
        step = next(self._steps, None)
        asked = _described(Chosen(len(scores), 0, None, temperature))
        if not isinstance(step, Chosen) or step.candidates != len(scores):
            raise self._differs(asked, step)
        if step.scores is not None and step.temperature is not None:
            if step.temperature != temperature:
                raise self._differs(asked, step)
            moved = [int(q) - p for q, p in zip(scores, step.scores, strict=True)]
            self.loss += (temperature * (max(moved) - min(moved))) ** 2 / 8
        return step.answer

    def _differs(self, question: str, step: Step | None) -> ControlFlowDiffersError:
        self.difference = (
            f"With the same answers the run asked another question: {question}, not {_described(step)}. A mechanism"
            " decides on the transcript alone (rule 3 of docs/extending/mechanism.md)."
        )
        return ControlFlowDiffersError(self.difference)

    def finish(self) -> None:
        """Raise unless every recorded answer was used."""
        if not self.difference and (step := next(self._steps, None)) is not None:
            self._differs("nothing more", step)
        if self.difference:
            raise ControlFlowDiffersError(self.difference)


def loss_replay(
    run: Callable[[Private], Any],
    table: Any,
    neighbor: Any,
    unit: Unit,
    budget: Budget,
    *,
    seed: int = 0,
) -> tuple[Fraction, Fraction]:
    """Return the exact privacy loss (zCDP) of one run between two tables, and the charge of the
    run.

    ``run`` takes the gate and must depend on nothing else that changes: give mechanisms a fresh,
    seeded ``rng`` inside.
    """
    recorder = Recorder(SeededRandomness(seed))
    with protect(table, unit=unit, budget=budget, randomness=recorder) as private:
        run(private)
        charged = private.account().rho_spent
    replay = ReplayRandomness(recorder.steps)
    with protect(neighbor, unit=unit, budget=budget, randomness=replay) as private:
        try:
            run(private)
        except MargraveError:
            replay.finish()  # says what differs, if that is why
            raise
    replay.finish()
    if private.account().rho_spent != charged:
        raise ControlFlowDiffersError("the charges differ")
    return replay.loss, charged
