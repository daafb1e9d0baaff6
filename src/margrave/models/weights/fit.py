"""The two fits that keep one weight per place: multiplicative weights (MWEM), and entropy projection (PEP)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from margrave.errors import InputError
from margrave.marginal import TOTAL
from margrave.models.entries import ALL, EntryKind
from margrave.models.protocol import Model, ModelState
from margrave.models.weights import kernels
from margrave.models.weights.grid import Grid, Places
from margrave.models.weights.known import Known
from margrave.models.weights.model import WeightsModel, averaged
from margrave.models.weights.records import Records
from margrave.models.weights.settle import settle
from margrave.models.weights.shrink import Spreads, shrunk
from margrave.models.weights.updates import multiply, multiply_at_once, project
from margrave.parameters import check_parameters
from margrave.public import Public
from margrave.schema.domain import Domain
from margrave.transcript import Answer, Entry, Measurement, PublicReading, Transcript
from margrave.typing import Clique, FloatArray

PASSES = 100
"""How often a round goes over all answers, unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class MultiplicativeWeightsFit:
    """One weight for every cell of the domain, or every public record, moved a little by each answer.

        D(x) ← D(x) · exp(step · q(x) (answer − q(D))), scaled to sum to one; answers and q(D) are shares

    ``public``: weights on the distinct records of this table, starting from how often each stands there; without, on
    the whole domain, starting from equal ones. ``step``: 1/2 is that of Hardt, Ligett, McSherry (2012), who write it as
    (answer − q(D)) / 2n in counts, and of the code of Liu et al.; their Appendix B has 1 (and the sign the wrong way
    round: minimising ``eta q(D) + RE(D || D')`` lowers q). ``passes``: how often, in every round, the update goes over
    all answers so far, the latest first; 0 is the plain form, in which a round updates by its own answer alone.
    ``threshold``: answers that the weights explain within so many standard deviations of their noise are left alone
    (Hardt et al.: 0). ``at_once``: a round moves the weights once, by all answers that are off by half as much as its
    own, or more, and by what they are off when it begins, as in the code of Liu et al. (which counts the round's own
    answer twice); it takes neither ``passes`` nor a ``threshold``. ``average``:
    keep the average over the weights after each round too; it is what comes back without ``warm``, and what a mechanism
    releases; it takes as much memory again. ``shrink``:
    answers are drawn towards the start first, as far as the answers so far bear it out; there is no threshold then.

    Between rounds (``warm``) it goes on from the model of the round before; without, it plays the rounds of a
    transcript again, one for each answer, and so fits any. Memory: twice the weights, with ``average`` four times.

    **Privacy:** none spent; post-processing of noisy answers.

    Source: Hardt, Ligett, McSherry (2012); Liu, Vietri, Steinke, Ullman, Wu (2021), PMW^Pub; Liu, Vietri, Wu (2021),
    Appendices B.2 and B.3.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.HALF_SPACE}

    public: Public | None = None
    step: float = 0.5
    passes: int = PASSES
    threshold: float = 0.0
    average: bool = False
    shrink: bool = False
    at_once: bool = False

    def __post_init__(self) -> None:
        check_parameters(self)
        if not (0.0 < self.step < math.inf and self.passes >= 0 and 0.0 <= self.threshold < math.inf):
            raise InputError("Multiplicative weights need step > 0, passes >= 0 and threshold >= 0.")
        if self.shrink and self.threshold:
            raise InputError("With shrink no answer has noise left that a threshold could count in.")
        if self.at_once and (self.passes != PASSES or self.threshold):
            raise InputError(
                "With at_once a round goes over its answers once: passes and threshold have no say.",
                remedy="Leave these out, or at_once.",
            )

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> Model:
        """The model after the rounds that ``warm`` has not seen, or after all of them."""
        state = _state_of(domain, warm, self.public)
        places = _start(domain, self.public, state)
        known = 0 if state is None else int(state.facts["known"])
        rounds = 0 if state is None else int(state.facts["rounds"])
        average = _average_of(state) if self.average else None
        ends = [len(transcript)] if state is not None else _ends_of_rounds(transcript)
        for end in ends:
            self._round(places, domain, transcript.entries[:end], known, transcript.total())
            known, rounds = end, rounds + 1
            if self.average:
                average = places.weights.copy() if average is None else average
                kernels.blend(average, places.weights, 1.0 / rounds)
        model = WeightsModel(
            _kind_of(self.public), places, transcript.total(), known=len(transcript), average=average, rounds=rounds
        )
        return model if warm is not None else averaged(model)

    def _round(
        self, places: Places, domain: Domain, entries: Sequence[Entry], known: int, total: float
    ) -> None:
        new = entries if self.passes else entries[known:]
        told = _known(domain, new, total, self.public, self.shrink)
        if self.at_once and len(told):
            last = next(e for e in reversed(entries) if _answers(e))
            latest = last.clique if isinstance(last, Measurement | PublicReading) else None
            multiply_at_once(places, told, latest, step=self.step)
        else:
            multiply(places, told, step=self.step, passes=max(1, self.passes), threshold=self.threshold)
        _normalise(places)

    def serves(self, domain: Domain, *, adaptive: bool) -> None:
        """Raise ``ReleaseError`` where the domain leaves no record possible."""
        _refuse_impossible(domain, self.public)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """How many weights there are, whatever is measured; twice as many with their average."""
        return _places_of(domain, self.public) * (2 if self.average else 1)

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """``cells``: no measurement adds any."""
        return np.full(len(candidates), float(self.cells(domain, cliques)))


@dataclass(frozen=True, kw_only=True)
class EntropyProjectionFit:
    """The weights nearest to those of the start, in relative entropy, that explain the answers within gamma.

    minimise RE(D || D_0) subject to |answer_i − q_i(D)| <= gamma_i: by setting, again and again, the share that is
    furthest off to its answer (``updates.project``)

    ``public``: D_0 is the public table's distribution; without, the uniform one on the domain. ``gamma``: the
    tolerance, in standard deviations of each answer's noise. The paper's bounds the noise of all answers at once, and
    grows with their number: ``gamma_of_paper``. ``max_iterations``: steps in a round at most (25 is the paper's).
    ``shrink``: answers are believed beside D_0 as far as they bear it out, and met half-way (``settle``, in
    ``max_iterations`` sweeps over all answers at most); gamma then has no say.

    Between rounds (``warm``) it goes on from the model of the round before; without, from the start, with
    ``max_iterations`` for each answer of the transcript. With ``shrink`` it always begins at the start. Memory: twice
    the weights.

    **Privacy:** none spent; post-processing of noisy answers.

    Source: Liu, Vietri, Wu (2021), Algorithm 2 and Appendix C.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.HALF_SPACE}

    public: Public | None = None
    gamma: float = 1.0
    max_iterations: int = 25
    shrink: bool = False

    def __post_init__(self) -> None:
        check_parameters(self)
        if not (0.0 <= self.gamma < math.inf and self.max_iterations >= 1):
            raise InputError("An entropy projection needs gamma >= 0 and max_iterations >= 1.")

    @staticmethod
    def gamma_of_paper(queries: int, beta: float = 0.05) -> float:
        """What the Gaussian noise of so many answers stays below together, with probability 1 − beta.

        In standard deviations: ``sqrt(2 log(2 queries / beta))``. The paper states it for Laplace noise,
        ``log(queries / beta) / epsilon``.
        """
        return math.sqrt(2.0 * math.log(2.0 * queries / beta))

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> WeightsModel:
        """The projection of the model of the round before, or of the start."""
        state = None if self.shrink else _state_of(domain, warm, self.public)
        total = transcript.total()
        places, known = _start(domain, self.public, state), Known.of(domain, transcript, total)
        if self.shrink:
            found = Spreads.of(known, *_believed(domain, total, self.public))
            settle(places, known, found, sweeps=self.max_iterations)
        else:
            rounds = 1 if state is not None else max(1, len(known))
            least = 0.5 / (total + 1.0)
            project(places, known, gamma=self.gamma, least=least, iterations=rounds * self.max_iterations)
        _normalise(places)
        return WeightsModel(_kind_of(self.public), places, total, known=len(transcript))

    def serves(self, domain: Domain, *, adaptive: bool) -> None:
        """Raise ``ReleaseError`` where the domain leaves no record possible."""
        _refuse_impossible(domain, self.public)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """How many weights there are, whatever is measured."""
        return _places_of(domain, self.public)

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """``cells``: no measurement adds any."""
        return np.full(len(candidates), float(self.cells(domain, cliques)))


def _kind_of(public: Public | None) -> str:
    return "histogram" if public is None else "support"


def _state_of(domain: Domain, warm: Model | None, public: Public | None) -> ModelState | None:
    """What to go on from; None where the model is of another family, or there is none."""
    if warm is None or warm.domain != domain:
        return None
    state = warm.state()
    return state if state.kind == _kind_of(public) else None


def _start(domain: Domain, public: Public | None, state: ModelState | None) -> Places:
    """The weights to begin with, to be changed in place."""
    if state is not None:
        weights = state.arrays["weights"].copy()
        return Grid(domain, weights) if public is None else Records(domain, state.arrays["records"], weights)
    return Grid.uniform(domain) if public is None else Records.of(domain, public)


def _refuse_impossible(domain: Domain, public: Public | None) -> None:
    """Raise where the domain leaves no record possible. Without constraints all are, and a grid can take a gigabyte."""
    if domain.zeros or public is not None:
        _start(domain, public, None)


def _known(
    domain: Domain, entries: Iterable[Entry], total: float, public: Public | None, shrink: bool
) -> Known:
    """What was answered; drawn towards the start if asked."""
    known = Known.of(domain, entries, total)
    return shrunk(known, *_believed(domain, total, public)) if shrink and len(known) else known


def _believed(domain: Domain, total: float, public: Public | None) -> tuple[Places, float]:
    """The start, and by how much a sample of ``total`` records of the same population differs from it."""
    start = Grid.uniform(domain) if public is None else Records.one_by_one(domain, public)
    return start, 1.0 / max(total, 1.0) + (0.0 if public is None else 1.0 / start.weights.size)


def _average_of(state: ModelState | None) -> FloatArray | None:
    """The average of the rounds before, to be changed in place."""
    kept = None if state is None else state.arrays.get("average")
    return None if kept is None else kept.copy()


def _normalise(places: Places) -> None:
    """Scale the weights to sum to one."""
    places.weights *= 1.0 / float(places.weights.sum())


def _ends_of_rounds(transcript: Transcript) -> list[int]:
    """After how many entries each round of a transcript ends: one for each answer."""
    return [i + 1 for i, e in enumerate(transcript) if _answers(e)]


def _answers(entry: Entry) -> bool:
    """Whether an entry says something of shares."""
    if isinstance(entry, Answer):
        return entry.query != TOTAL
    return isinstance(entry, Measurement | PublicReading)


def _places_of(domain: Domain, public: Public | None) -> int:
    return domain.cells() if public is None else len(public.codes) * (1 + len(domain))
