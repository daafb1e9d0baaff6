"""What a private choice tells of the marginals that it did not choose."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from margrave.release import tails
from margrave.transcript import Hindsight, Measurement, Selection, Transcript
from margrave.typing import Clique, FloatArray


@dataclass(frozen=True)
class Chances:
    """How likely each thing that a bound rests on may fail: a choice, the answer it led to, each measured marginal."""

    choice: float
    answer: float
    below: float

    @classmethod
    def equal(cls, miss: float) -> Chances:
        """The same for all."""
        return cls(miss, miss, miss)

    @classmethod
    def shared(cls, miss: float, below: int) -> Chances:
        """So much in all, for ``below`` measured marginals too.

        A choice that fails with probability δ / (1 + δ) costs log(1 / δ), which the paper has for δ. So the others can
        have what is left of a half without making the bound looser than the paper's.
        """
        half = miss / 2
        choice = half / (1 + half) if below else half
        return cls(choice, half, (half - choice) / max(1, below))


@dataclass(frozen=True, eq=False)
class Round:
    """A choice, and the measurement of what it chose. ``number`` counts from 1."""

    number: int
    selection: Selection
    measurement: Measurement
    hindsight: Hindsight

    def errors(self, chances: Chances, *, paper: bool) -> FloatArray:
        """Unless the choice or the answer fails, for every candidate r at once ‖M_r(D) − M_r(model)‖₁ is at most

            penalty_r + (w_c (error_c − penalty_c) + gap) / w_r + drift_r

        c is the chosen one, ``error_c`` bounds the distance of its own estimate, ``gap`` is how far below the best
        score a choice can fall, and ``drift_r`` how far the model has moved since. NaN where that is not known.
        """
        s, m = self.selection, self.measurement
        beneath = tails.paper_l1_beneath if paper else tails.l1_beneath
        gap = tails.paper_choice_gap if paper else tails.choice_gap
        error = beneath(self.hindsight.surprise, m.scale, m.values.size, chances.answer)
        weight, penalty = s.terms["weight"], s.terms["penalty"]
        c = s.candidates.index(s.chosen)
        many = len(s.candidates) + len(s.readable)
        # from a reading's score the public marginal's distance is taken off, which is unknown, and not negative
        taken_off = 0.0 if s.public else penalty[c]
        best = weight[c] * (error - taken_off) + gap(many, s.epsilon, s.sensitivity, chances.choice)
        return np.asarray(np.maximum(penalty + best / weight, 0.0) + self.hindsight.drift, dtype=np.float64)


def rounds_of(transcript: Transcript, hindsight: Sequence[Hindsight]) -> list[Round]:
    """The choices that hindsight tells about, each with the measurement of what it chose, in order.

    A round may choose several marginals before it measures them: what was chosen in the run of choices before a run of
    measurements is looked for in the latter.
    """
    told = {h.selection: h for h in hindsight}
    rounds, waiting, number, measuring = [], dict[Clique, tuple[int, Selection]](), -1, False
    for entry in transcript:
        if isinstance(entry, Selection):
            number += 1
            waiting = {} if measuring else waiting
            waiting[entry.chosen], measuring = (number, entry), False
        elif isinstance(entry, Measurement) and entry.clique in waiting:
            measuring = True
            place, selection = waiting.pop(entry.clique)
            if place in told and _is_told(selection, entry):
                rounds.append(Round(place + 1, selection, entry, told[place]))
        else:
            waiting = {}
    return rounds


def _is_told(selection: Selection, measurement: Measurement) -> bool:
    """Whether the score was weights and penalties, and the answer has every cell that it was about."""
    terms = selection.terms
    if not {"weight", "penalty"} <= terms.keys():
        return False
    if measurement.clique != selection.chosen or not measurement.query.is_identity:
        return False
    return bool((terms["weight"] > 0).all() and np.isfinite(terms["penalty"]).all() and selection.epsilon > 0)


def last_rounds(rounds: Sequence[Round], cliques: Collection[Clique]) -> dict[Clique, tuple[Round, int]]:
    """For each clique the last round in which it was a candidate, and its place among them.

    If any round knows how far its estimate drifted, the last that does. Which round is used must not depend on the
    bound that it gives.
    """
    places = [(r, n, i) for n in rounds for i, r in enumerate(n.selection.candidates) if r in cliques]
    told = {r: (n, i) for r, n, i in places if np.isfinite(n.hindsight.drift[i])}
    return {r: (n, i) for r, n, i in places} | told
