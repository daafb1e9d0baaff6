"""The two fits that keep one weight per place: multiplicative weights (MWEM), and entropy projection (PEP)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import TOTAL
from margrave.models.cost import CELLS_PER_MB, Cost, FitLoad, calibration_cost
from margrave.models.empty_codes import WithoutEmpty
from margrave.models.entries import ALL, EntryKind
from margrave.models.progress import ShareProgress, no_progress
from margrave.models.protocol import Fit, Model, Needs
from margrave.models.weights import kernels
from margrave.models.weights.empirical_bayes import Spreads, shrunk
from margrave.models.weights.entropy_projection import project
from margrave.models.weights.grid_support import GridSupport, Support
from margrave.models.weights.model import WeightsModel
from margrave.models.weights.multiplicative import multiply, multiply_at_once
from margrave.models.weights.observations import Observations
from margrave.models.weights.penalized_projection import project_penalized
from margrave.models.weights.record_support import RecordSupport
from margrave.public_table import PublicTable
from margrave.transcript import Answer, Entry, Measurement, PublicReading, Transcript
from margrave.types import Clique, FloatArray

#: Passes of a round over all answers by default.
PASSES = 100


@dataclass(frozen=True, eq=False)
class WeightsState:
    """The weights after some rounds: None before the first. ``average`` is their mean over the rounds."""

    domain: Domain
    places: Support | None = None
    total: float = 0.0
    seen: int = 0
    rounds: int = 0
    average: FloatArray | None = None

    def begin(self, public: PublicTable | None) -> Support:
        """Return weights to change in place: a copy of these, or those of the start."""
        return _start(self.domain, public) if self.places is None else self.places.copy()

    def model(self) -> WeightsModel:
        """Return the model of the weights."""
        assert self.places is not None
        return WeightsModel(self.places, self.total)

    def averaged(self) -> WeightsModel:
        """Return the model of the average, where one is kept."""
        assert self.places is not None
        if self.average is None:
            return self.model()
        places = copy(self.places)
        places.weights = self.average
        return WeightsModel(places, self.total)


class WeightsFit(Fit):
    """The common part of both fits. Their state is the weights, whose number does not depend on the
    measurements.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {
        EntryKind.HALF_SPACE,
        EntryKind.WEIGHTED_MAP,
    }

    def init(self, domain: Domain, *, rng: np.random.Generator) -> WeightsState:
        """Return the state before any answer."""
        return WeightsState(domain)

    def model(self, state: WeightsState) -> WeightsModel:
        """Return the model of the last round."""
        return state.model()

    def finish(
        self,
        state: WeightsState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> Model:
        """Return the last model, or with ``average`` the one of the average weights."""
        if state.places is None or state.seen < len(transcript):
            state = self.update(state, transcript, rng=rng)
        return self.without_empty(state.averaged(), transcript)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise if the domain leaves no record possible, or the weights are too many."""
        _refuse_impossible(domain, self.public)
        super().check(domain, needs)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the memory of the weights; the time is that of rounds of a graphical model."""
        # Numbers in memory per weight.
        numbers_per_weight = 3.0
        usual = calibration_cost(domain, load)
        if self.public is not None:
            return usual
        return Cost(usual.seconds, numbers_per_weight * domain.cells() / CELLS_PER_MB)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the number of weights, whatever is measured."""
        return _places_of(domain, self.public)


@dataclass(frozen=True, kw_only=True)
class MultiplicativeWeightsFit(WeightsFit):
    """One weight for every cell of the domain, or every public record, moved a little by each answer.

        D(x) ← D(x) · exp(step · q(x) (answer − q(D))), scaled to sum to one; answers and q(D) are shares

    ``public``: weights on the distinct records of this table, starting from how often each stands there; without, on
    the whole domain, starting from equal ones. ``step``: 1/2 is that of Hardt, Ligett, McSherry (2012), who write it as
    (answer − q(D)) / 2n in counts, and of the code of Liu et al.; their Appendix B has 1 (and the sign the wrong way
    round: minimizing ``eta q(D) + RE(D || D')`` lowers q). ``passes``: how often, in every round, the update goes over
    all answers so far, the latest first; 0 is the plain form, in which a round updates by its own answer alone.
    ``threshold``: answers that the weights explain within so many standard deviations of their noise are left alone
    (Hardt et al.: 0). ``at_once``: a round moves the weights once, by all answers that are off by half as much as its
    own, or more, and by what they are off when it begins, as in the code of Liu et al. (which counts the round's own
    answer twice); it takes neither ``passes`` nor a ``threshold``. ``average``:
    release the average over the weights after each round; it takes as much memory again. ``shrink``:
    answers are drawn towards the start first, as far as the answers so far bear it out; there is no threshold then.
    ``empty_below``: as in ``GraphicalFit``.

    A round goes on from the weights of the round before. A transcript that is fitted at once is played again, one
    round for each answer. Memory: twice the weights, with ``average`` four times.

    **Privacy:** none spent; post-processing of noisy answers.

    Source: Hardt, Ligett, McSherry (2012); Liu, Vietri, Steinke, Ullman, Wu (2021), PMW^Pub; Liu, Vietri, Wu (2021),
    Appendices B.2 and B.3.
    """

    public: PublicTable | None = None
    step: float = 0.5
    passes: int = PASSES
    threshold: float = 0.0
    average: bool = False
    shrink: bool = False
    at_once: bool = False
    empty_below: float = WithoutEmpty.below

    def __post_init__(self) -> None:
        check_fields(self)
        if not (
            0.0 < self.step < math.inf and self.passes >= 0 and 0.0 <= self.threshold < math.inf
        ):
            raise InputError(
                "Multiplicative weights need step > 0, passes >= 0 and threshold >= 0."
            )
        if self.shrink and self.threshold:
            raise InputError(
                "With shrink no answer has noise left that a threshold could count in."
            )
        if self.at_once and (self.passes != PASSES or self.threshold):
            raise InputError(
                "With at_once a round goes over its answers once: passes and threshold have no say.",
                remedy="Leave these out, or at_once.",
            )

    def update(
        self,
        state: WeightsState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        done: float = 0.0,
    ) -> WeightsState:
        """Return the weights after a round; after all rounds of the transcript, if there was none before."""
        total = transcript.total()
        places, average = state.begin(self.public), state.average
        seen, rounds = state.seen, state.rounds
        for end in [len(transcript)] if state.places is not None else _ends_of_rounds(transcript):
            self._round(places, state.domain, transcript.entries[:end], seen, total)
            seen, rounds = end, rounds + 1
            if self.average:
                average = places.weights.copy() if average is None else average.copy()
                kernels.blend(average, places.weights, 1.0 / rounds)
        return WeightsState(state.domain, places, total, len(transcript), rounds, average)

    def _round(
        self, places: Support, domain: Domain, entries: Sequence[Entry], known: int, total: float
    ) -> None:
        new = entries if self.passes else entries[known:]
        observed = _known(domain, new, total, self.public, self.shrink)
        if self.at_once and len(observed):
            last = next(e for e in reversed(entries) if _answers(e))
            latest = None
            if isinstance(last, Measurement | PublicReading) and last.query.is_partition:
                latest = last.clique
            multiply_at_once(places, observed, latest, step=self.step)
        else:
            multiply(
                places,
                observed,
                step=self.step,
                passes=max(1, self.passes),
                threshold=self.threshold,
            )
        _normalize(places)

    def started_from(self, public: PublicTable | None) -> MultiplicativeWeightsFit:
        """Return the fit with one weight for each record of a public table."""
        return replace(self, public=public)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the number of weights, whatever is measured; twice as many with their average."""
        return _places_of(domain, self.public) * (2 if self.average else 1)


@dataclass(frozen=True, kw_only=True)
class EntropyProjectionFit(WeightsFit):
    """The weights nearest to the start, in relative entropy, that explain the answers within gamma.

    minimize RE(D || D_0) subject to |answer_i − q_i(D)| <= gamma_i: repeatedly, the share with the
    largest error is set to its answer (``entropy_projection.project``)

    ``public``: D_0 is the public table's distribution; by default the uniform one on the domain.
    ``gamma``: the tolerance, in standard deviations of each answer's noise. The paper's bounds the
    noise of all answers at once, and grows with their number: ``gamma_of_paper``.
    ``max_iterations``: steps in a round at most (25 is the paper's). ``shrink``: weigh the answers
    against D_0 by empirical Bayes and meet them half-way (``project_penalized``, in at most
    ``max_iterations`` sweeps); gamma is then unused. ``empty_below``: as in ``GraphicalFit``.

    A round continues from the weights of the round before. A transcript that is fitted at once
    starts anew, with ``max_iterations`` for each of its answers, and so does every round with
    ``shrink``. Memory: twice the weights.

    Privacy:
        None spent; post-processing of noisy answers.

    References:
        Liu, Vietri, Wu (2021), Algorithm 2 and Appendix C.
    """

    public: PublicTable | None = None
    gamma: float = 1.0
    max_iterations: int = 25
    shrink: bool = False
    empty_below: float = WithoutEmpty.below

    def __post_init__(self) -> None:
        check_fields(self)
        if not (0.0 <= self.gamma < math.inf and self.max_iterations >= 1):
            raise InputError("An entropy projection needs gamma >= 0 and max_iterations >= 1.")

    @staticmethod
    def gamma_of_paper(queries: int, beta: float = 0.05) -> float:
        """Return the bound on the Gaussian noise of all answers with probability 1 − beta.

        In standard deviations: ``sqrt(2 log(2 queries / beta))``. The paper states it for Laplace
        noise, ``log(queries / beta) / epsilon``.
        """
        return math.sqrt(2.0 * math.log(2.0 * queries / beta))

    def update(
        self,
        state: WeightsState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        done: float = 0.0,
    ) -> WeightsState:
        """Return the projection of the weights of the round before, or of the start."""
        domain, total = state.domain, transcript.total()
        start = WeightsState(domain) if self.shrink else state
        places, known = start.begin(self.public), Observations.of(domain, transcript, total)
        if self.shrink:
            found = Spreads.of(known, *_believed(domain, total, self.public))
            project_penalized(places, known, found, sweeps=self.max_iterations)
        else:
            rounds = 1 if state.places is not None else max(1, len(known))
            least = 0.5 / (total + 1.0)
            project(
                places,
                known,
                gamma=self.gamma,
                least=least,
                iterations=rounds * self.max_iterations,
            )
        _normalize(places)
        return WeightsState(domain, places, total, len(transcript), state.rounds + 1)

    def started_from(self, public: PublicTable | None) -> EntropyProjectionFit:
        """Return the fit with one weight for each record of a public table."""
        return replace(self, public=public)


def _start(domain: Domain, public: PublicTable | None) -> Support:
    return GridSupport.uniform(domain) if public is None else RecordSupport.of(domain, public)


def _refuse_impossible(domain: Domain, public: PublicTable | None) -> None:
    """Raise where the domain leaves no record possible. Without constraints all are, and a grid can take a gigabyte."""
    if domain.zeros or public is not None:
        _start(domain, public)


def _known(
    domain: Domain, entries: Iterable[Entry], total: float, public: PublicTable | None, shrink: bool
) -> Observations:
    known = Observations.of(domain, entries, total)
    return shrunk(known, *_believed(domain, total, public)) if shrink and len(known) else known


def _believed(domain: Domain, total: float, public: PublicTable | None) -> tuple[Support, float]:
    start = (
        GridSupport.uniform(domain) if public is None else RecordSupport.one_by_one(domain, public)
    )
    return start, 1.0 / max(total, 1.0) + (0.0 if public is None else 1.0 / start.weights.size)


def _normalize(places: Support) -> None:
    places.weights *= 1.0 / float(places.weights.sum())


def _ends_of_rounds(transcript: Transcript) -> list[int]:
    return [i + 1 for i, e in enumerate(transcript) if _answers(e)]


def _answers(entry: Entry) -> bool:
    if isinstance(entry, Answer):
        return entry.query != TOTAL
    return isinstance(entry, Measurement | PublicReading)


def _places_of(domain: Domain, public: PublicTable | None) -> int:
    return domain.cells() if public is None else len(public.codes) * (1 + len(domain))
