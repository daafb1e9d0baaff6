"""Bounds that a private selection implies for the marginals that it did not select."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from margrave.bounds import tail_bounds
from margrave.transcript import Hindsight, Measurement, Selection, Transcript
from margrave.types import Clique, FloatArray


@dataclass(frozen=True)
class FailureSplit:
    """The failure probability of each part of a bound: a selection, the answer after it, each
    measured marginal.
    """

    choice: float
    answer: float
    below: float

    @classmethod
    def equal(cls, miss: float) -> FailureSplit:
        """Return the same probability for all."""
        return cls(miss, miss, miss)

    @classmethod
    def shared(cls, miss: float, below: int) -> FailureSplit:
        """Return a split of ``miss`` in all, also over ``below`` measured marginals.

        A selection that fails with probability δ / (1 + δ) costs log(1 / δ), which the paper has
        for δ. So the other parts share the rest of a half, and the bound is not looser than the
        paper's.
        """
        half = miss / 2
        choice = half / (1 + half) if below else half
        return cls(choice, half, (half - choice) / max(1, below))


@dataclass(frozen=True, eq=False)
class Round:
    """A selection and the measurement of the selected marginal. ``number`` counts from 1."""

    number: int
    selection: Selection
    measurement: Measurement
    hindsight: Hindsight

    def errors(self, chances: FailureSplit, *, paper: bool) -> FloatArray:
        """Return bounds for all candidates r at once; they hold unless the selection or the answer
        fails.

            ‖M_r(D) − M_r(model)‖₁ ≤ penalty_r + (w_c (error_c − penalty_c) + gap) / w_r + drift_r

        c is the selected one, ``error_c`` bounds the distance of its own estimate, ``gap`` is how
        far below the best score a selection can fall, and ``drift_r`` how far the model has moved
        since. A score of the generalized exponential mechanism ("margin") is a difference of two
        over the sum of their weights. NaN if unknown.
        """
        s, m = self.selection, self.measurement
        beneath = tail_bounds.paper_l1_beneath if paper else tail_bounds.l1_beneath
        gap = tail_bounds.paper_choice_gap if paper else tail_bounds.choice_gap
        error = beneath(self.hindsight.surprise, m.scale, m.values.size, chances.answer)
        weight, penalty = s.terms["weight"], s.terms["penalty"] + s.terms.get("margin", 0.0)
        c = s.candidates.index(s.chosen)
        many = len(s.candidates) + len(s.readable)
        # from a reading's score the public marginal's distance is taken off, which is unknown, and not negative
        taken_off = 0.0 if s.public else penalty[c]
        unit = weight[c] + weight if "margin" in s.terms else 1.0
        beneath_best = gap(many, s.epsilon, s.sensitivity, chances.choice) * unit
        best = weight[c] * (error - taken_off) + beneath_best
        return np.asarray(
            np.maximum(penalty + best / weight, 0.0) + self.hindsight.drift, dtype=np.float64
        )


def rounds_of(transcript: Transcript, hindsight: Sequence[Hindsight]) -> list[Round]:
    """Return the selections with hindsight in order, each with the measurement of the selected
    marginal.

    A round may select several marginals before it measures them. So the measurements after a run of
    selections are matched to all of these.
    """
    by_selection = {h.selection: h for h in hindsight}
    rounds, waiting, number, measuring = [], dict[Clique, tuple[int, Selection]](), -1, False
    for entry in transcript:
        if isinstance(entry, Selection):
            number += 1
            waiting = {} if measuring else waiting
            waiting[entry.chosen], measuring = (number, entry), False
        elif isinstance(entry, Measurement) and entry.clique in waiting:
            measuring = True
            place, selection = waiting.pop(entry.clique)
            if place in by_selection and _bounds_candidates(selection, entry):
                rounds.append(Round(place + 1, selection, entry, by_selection[place]))
        else:
            waiting = {}
    return rounds


def _bounds_candidates(selection: Selection, measurement: Measurement) -> bool:
    terms = selection.terms
    if not {"weight", "penalty"} <= terms.keys():
        return False
    if measurement.clique != selection.chosen or not measurement.query.is_identity:
        return False
    return bool(
        (terms["weight"] > 0).all()
        and np.isfinite(terms["penalty"] + terms.get("margin", 0.0)).all()
        and selection.epsilon > 0
    )


def last_rounds(
    rounds: Sequence[Round], cliques: Collection[Clique]
) -> dict[Clique, tuple[Round, int]]:
    """Return for each clique the last round in which it was a candidate, and its position there.

    Rounds with a known drift are preferred. The choice of the round must not depend on the bound.
    """
    places = [
        (r, n, i) for n in rounds for i, r in enumerate(n.selection.candidates) if r in cliques
    ]
    with_drift = {r: (n, i) for r, n, i in places if np.isfinite(n.hindsight.drift[i])}
    return {r: (n, i) for r, n, i in places} | with_drift
