"""The two interfaces between mechanisms and model families: a fit turns noisy answers into a model."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Protocol, runtime_checkable

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.marginal import Marginal
from margrave.models.cost import CELLS_PER_MB, Cost, FitLoad, calibration_cost
from margrave.models.empty_codes import non_empty
from margrave.models.entries import EntryKind, check_kinds
from margrave.models.progress import ShareProgress, no_progress
from margrave.public_table import PublicTable
from margrave.transcript import Transcript
from margrave.types import AnyArray, Attribute, Clique, FloatArray

#: The state of a fit between rounds: any type of its own.
State = Any

#: The largest model where no other limit is given: estimating one of 8.6 billion cells takes hours, beyond it days.
MAX_MODEL_MB = 65_536.0


@dataclass(frozen=True, eq=False)
class ModelState:
    """A model as plain data: its kind (a key of ``FAMILIES``), facts that fit in JSON, and arrays by name."""

    kind: str
    facts: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]


class Answerer(ABC):
    """Expected counts of marginals, scaled to ``total`` records. The estimate of a fit between
    rounds.
    """

    #: The values of the properties below, unless a class overrides them.
    _domain: Domain
    _total: float

    @property
    def domain(self) -> Domain:
        """The attributes it covers."""
        return self._domain

    @property
    def total(self) -> float:
        """The number of records it stands for: public or estimated."""
        return self._total

    @abstractmethod
    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return expected counts of many marginals at once, sharing work.

        Args:
            cliques: The marginals, any cliques of the domain.
            rng: If given, counts may come from records that the model draws, where exact ones would cost far more.
            scale: The noise scale that the counts will be compared with, and so how exact they need to be.
            limit: Without ``rng``, the most cells that intermediate tables may have together.

        Raises:
            ModelTooLargeError: If intermediate tables would have more than ``limit`` cells; none is made.
        """

    def project(self, clique: Clique) -> Marginal:
        """Return the expected counts of one marginal, exact."""
        return Marginal(clique, self.answer([clique])[clique])


class FittedAnswers(Answerer):
    """Answers that a release can hold: they can be saved. Not all have a distribution behind them."""

    #: The reason for having no answers, in words; empty unless the model is missing.
    absent: str = ""
    #: Sentences on how to make a missing model; empty unless the model is missing.
    remedy: str = ""

    @abstractmethod
    def state(self) -> ModelState:
        """Return it as plain data, for the release file."""

    def distribution(self) -> Model:
        """Return the distribution, to draw records from.

        Raises:
            ReleaseError: If there is none.
        """
        raise ReleaseError(
            "This release holds noisy answers only: there is no distribution behind them to draw records from.",
            remedy="Refit it with a model: release.refit('graphical') (margrave refit --fit graphical), at no"
            " further cost to privacy.",
        )

    def posterior(self) -> Posterior | None:
        """Return what the noisy answers leave open about the distribution, or None for one best estimate."""
        return None


class Model(FittedAnswers):
    """A distribution over the domain, scaled to ``total`` records."""

    @abstractmethod
    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records: ``rows`` of them, or the total, rounded.

        They are spread as evenly as whole records can be, which suits a synthetic copy. With ``independent``, each is
        drawn on its own, as the rules that combine several data sets need.

        With ``columns``, the records have only these columns, in the domain's order. A record has them with the same
        probabilities as in a draw of all columns. The codes are other ones for the same ``rng``, since fewer columns
        are drawn.
        """

    @abstractmethod
    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> Model:
        """Return the model given that each named attribute takes one of the codes listed, with any total."""

    @abstractmethod
    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack, drawn given the codes that they have, in the same order.

        Raises:
            InputError: If the model holds no record like one of them.
        """

    def distribution(self) -> Model:
        """Return itself."""
        return self


@runtime_checkable
class ExactMarginals(Protocol):
    """A model that knows which of its marginals can be computed exactly."""

    def exact(
        self, cliques: Sequence[Clique], limit: int | None = None, in_all: float = float("inf")
    ) -> dict[Clique, FloatArray]:
        """Return exact expected counts, ``limit`` cells of intermediate tables at a time.

        Marginals that need more are left out, and the costliest ones beyond ``in_all`` cells in all.
        """
        ...


class Posterior(Protocol):
    """A distribution over models given the noisy answers: of the population, not of the rows alone."""

    @property
    def method(self) -> str:
        """The computation in a few words."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """The computation as plain data: whether its draws are ``good``, or ``why`` not;
        diagnostics.
        """
        ...

    def draws(self, m: int, *, rng: np.random.Generator) -> Iterator[Model]:
        """Yield ``m`` models drawn from it, each of them one distribution."""
        ...


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The demands of a run on its fit, from public inputs alone.

    Attributes:
        cliques: The marginals that are measured at least.
        max_model_mb: The largest model that is allowed; None means ``MAX_MODEL_MB``.
        adaptive: Marginals that were not measured are estimated too.
        kinds: The kinds of entries that the transcript may hold beside whole marginals.
    """

    cliques: Collection[Clique] = ()
    max_model_mb: float | None = None
    adaptive: bool = False
    kinds: frozenset[EntryKind] = frozenset()


class Fit(ABC):
    """An estimator: noisy answers in, a model out. It is post-processing and never sees rows.

    ``fit(domain, transcript, rng=rng)`` fits a transcript at once. A mechanism of several rounds keeps a state:

        state = fit.init(domain, rng=rng)
        state = fit.update(state, transcript, rng=rng)        # after each round
        fit.model(state)                                      # chooses the next round's question
        fit.finish(state, transcript, rng=rng)                # what is released

    Privacy:
        None spent.
    """

    #: The kinds of entries that it uses beside whole marginals and the number of records.
    entries: ClassVar[frozenset[EntryKind]] = frozenset()

    #: The `Family` of its models unless their kind is built in. Loading the fit by name registers it.
    family: ClassVar[Any] = None

    #: True if the release holds draws from a posterior, which can take longer than a plan says.
    samples_posterior: ClassVar[bool] = False

    #: False if its models answer marginals and have no distribution to draw records from.
    gives_records: ClassVar[bool] = True

    #: The public table that it starts from.
    public: PublicTable | None = None

    #: Penalties on records beside the answers, for fits that support them.
    penalties: tuple[Any, ...] = ()

    #: Threshold in noise scales: codes with smaller counts may be left out as empty. 0 leaves none out.
    empty_below: float = 0.0

    @abstractmethod
    def init(self, domain: Domain, *, rng: np.random.Generator) -> State:
        """Return the state before any answer."""

    @abstractmethod
    def update(
        self, state: State, transcript: Transcript, *, rng: np.random.Generator, done: float = 0.0
    ) -> State:
        """Return the state after another round.

        Args:
            state: The state after the round before; it is not changed.
            transcript: All entries so far.
            rng: Randomness of the estimate.
            done: The share of the rounds that are over, this one included, from 0 to 1.
        """

    @abstractmethod
    def model(self, state: State) -> Answerer:
        """Return the estimate between rounds."""

    @abstractmethod
    def finish(
        self,
        state: State,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> FittedAnswers:
        """Return what is released after the last round: an average over rounds, say, or a last and careful fit."""

    @abstractmethod
    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the size of the model that measuring these cliques leads to, in cells of 8 bytes."""

    def distinguished(
        self, domain: Domain, transcript: Transcript, *, last: bool = False
    ) -> Domain:
        """Return the domain of the codes that it distinguishes, given a transcript: by default all.

        ``last``: of those that a released model would distinguish, not an estimate between rounds.
        """
        return domain

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` of the cliques with each candidate added in turn: one number per candidate."""
        known = tuple(cliques)
        return np.array([self.cells(domain, (*known, c)) for c in candidates], dtype=np.float64)

    def max_forest_cells(self, domain: Domain) -> float:
        """Return an upper bound of ``cells`` for the columns and any forest of pairs; by default infinity."""
        return math.inf

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise `InputError` if it cannot serve a run. Called before anything is spent.

        Subclasses add what else keeps them from fitting a domain, and call this.

        Raises:
            ModelTooLargeError: If the smallest model is too large.
        """
        limit = MAX_MODEL_MB if needs.max_model_mb is None else needs.max_model_mb
        cells = self.cells(domain, needs.cliques)
        if not cells <= limit * CELLS_PER_MB:
            _refuse_size(domain, needs, cells, limit)

    def room(self, domain: Domain, cliques: Collection[Clique]) -> float:
        """Return how many parameters more than those of these marginals its model may have; below 0 if too many."""
        return math.inf

    def takes(self, domain: Domain, transcript: Transcript) -> bool:
        """Return whether it can be fitted to a transcript of kinds that it uses."""
        return True

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return about what fitting takes, for a plan: by default that of calibrating a model that fills its limit."""
        return calibration_cost(domain, load)

    def started_from(self, public: PublicTable | None) -> Fit:
        """Return the fit that starts from the records of a public table.

        Raises:
            InputError: If it cannot.
        """
        raise InputError(
            f"{type(self).__name__} cannot start from public records.",
            remedy="Give this mechanism a MultiplicativeWeightsFit or an EntropyProjectionFit, or no fit.",
        )

    def with_penalties(self, penalties: Sequence[Any]) -> Fit:
        """Return the fit with more penalties.

        Raises:
            InputError: If it knows none.
        """
        raise InputError(
            f"{type(self).__name__} does not know of constraints.",
            remedy="Fit by ParticleFit, or leave the constraints out.",
        )

    def on_learned(self, domain: Domain) -> Fit:
        """Return the fit without penalties on columns that the domain lacks because they could not be learned."""
        return self

    def without_empty(self, model: Model, transcript: Transcript) -> Model:
        """Return a model given that no record has an empty code (``empty_codes.non_empty``).

        It is the model itself if all its records have such codes.
        """
        kept = non_empty(model.domain, transcript, self.empty_below, all_marginals=True)
        try:
            found = {a: np.flatnonzero(mask).tolist() for a, mask in kept.items()}
            return model.condition(found) if found else model
        except (InputError, ReleaseError):
            return model

    def __call__(
        self,
        domain: Domain,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> FittedAnswers:
        """Return what is released of a transcript that is fitted at once.

        Raises:
            InputError: The transcript holds a kind of entry that is not among ``entries``.
        """
        check_kinds(self, transcript)
        return self.finish(self.init(domain, rng=rng), transcript, rng=rng, progress=progress)


@dataclass(frozen=True)
class LastModel:
    """The state of a fit that goes on from its last model, or from nothing: None before the first round."""

    domain: Domain
    model: Any = None


class SimpleFit(Fit):
    """A fit whose only state is its last model: a subclass writes ``estimate`` and ``cells``."""

    #: True if the released estimate starts from scratch. Otherwise it is the last round's.
    finishes_anew: ClassVar[bool] = True

    @abstractmethod
    def estimate(
        self,
        domain: Domain,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        warm: Any = None,
    ) -> FittedAnswers:
        """Return the model of a transcript; ``warm`` is its own model of the round before, to go on from."""

    def init(self, domain: Domain, *, rng: np.random.Generator) -> LastModel:
        """Return the state without a model."""
        return LastModel(domain)

    def update(
        self,
        state: LastModel,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        done: float = 0.0,
    ) -> LastModel:
        """Return the state with the next estimate."""
        model = self.estimate(state.domain, transcript, rng=rng, warm=state.model)
        return LastModel(state.domain, model)

    def model(self, state: LastModel) -> Answerer:
        """Return the last estimate."""
        found: Answerer = state.model
        return found

    def finish(
        self,
        state: LastModel,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> FittedAnswers:
        """Return an estimate of the whole transcript from the start, or the last round's."""
        found: FittedAnswers = state.model
        if found is None or self.finishes_anew:
            found = self.estimate(state.domain, transcript, rng=rng)
        return self.without_empty(found, transcript) if isinstance(found, Model) else found


def _refuse_size(domain: Domain, needs: Needs, cells: int, limit: float) -> NoReturn:
    widest = max(
        {a for c in needs.cliques for a in c}, key=lambda a: (domain.size(a), -domain.index(a))
    )
    constrained = " and its constraints" if domain.zeros else ""
    other = "name a smaller workload" if needs.max_model_mb is None else "raise max_model_mb"
    raise ModelTooLargeError(
        f"The smallest model of this domain{constrained} has {cells:,} cells, above {limit:g} MB;"
        f" column {widest!r} has the most codes, {domain.size(widest):,}.",
        remedy=f"Give it fewer bins or categories, leave it out, or {other}.",
    )
