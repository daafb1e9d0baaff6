"""What a model and a fit are: the two joints between mechanisms and distribution families."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from margrave.marginal import Marginal
from margrave.schema.domain import Codes, Domain
from margrave.transcript import Transcript
from margrave.typing import AnyArray, Attribute, Clique, FloatArray


@dataclass(frozen=True, eq=False)
class ModelState:
    """A model as plain data: its kind (a key of ``MODELS``), facts that fit in JSON, and arrays by name."""

    kind: str
    facts: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]


class Model(Protocol):
    """A distribution over the domain, scaled to ``total`` records."""

    @property
    def domain(self) -> Domain:
        """The attributes it covers."""
        ...

    @property
    def total(self) -> float:
        """The number of records it stands for."""
        ...

    def project(self, clique: Clique) -> Marginal:
        """Expected counts of one marginal (any clique of the domain)."""
        ...

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Expected counts of many marginals at once, sharing work.

        With an ``rng`` a model may count them in records it draws where exact answers would cost far more; ``scale``
        is the noise they will be weighed against, and so how exact they need to be. Without one, ``limit`` is the most
        cells that the tables in between may have together; beyond, a ModelTooLargeError says so before any is made.
        """
        ...

    def sample(
        self, rows: int | None = None, *, rng: np.random.Generator, independent: bool = False
    ) -> Codes:
        """Synthetic records: ``rows`` of them, or the model's total, rounded.

        They are spread as evenly as whole records can be, which suits a synthetic copy. ``independent``: each on its
        own from the distribution, as the rules that combine several data sets need.
        """
        ...

    def posterior(self) -> Posterior | None:
        """What the noisy answers leave open about the distribution, or None for a model that is one best estimate."""
        ...

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> Model:
        """The model given that each named attribute takes one of the codes listed, scaled to any number of records."""
        ...

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """The rows with the columns that they lack, drawn given the codes that they have; in the rows' order.

        An ``InputError`` where the model holds none like one of them.
        """
        ...

    def state(self) -> ModelState:
        """The model as plain data, for the release file."""
        ...


@runtime_checkable
class Reaching(Protocol):
    """A model that knows which of its marginals can be computed exactly."""

    def within_reach(
        self, cliques: Sequence[Clique], limit: int | None = None, in_all: float = float("inf")
    ) -> dict[Clique, FloatArray]:
        """Exact expected counts, ``limit`` cells of intermediate tables at a time, without those that need more.

        No more than ``in_all`` cells are computed: where that is not enough, the costliest marginals are left out.
        """
        ...


class Posterior(Protocol):
    """A distribution over models given the noisy answers: of the population, not of the rows alone."""

    @property
    def method(self) -> str:
        """How it was computed, in a few words."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """How it was computed, as plain data: if its draws can be believed (``good``), or ``why`` not; diagnostics."""
        ...

    def draws(self, m: int, *, rng: np.random.Generator) -> Iterator[Model]:
        """``m`` models drawn from it, each of them one distribution."""
        ...


class Fit(Protocol):
    """An estimator: noisy answers in, model out. Post-processing: it never sees rows."""

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> Model:
        """The model of this family that explains the transcript best.

        With ``warm``, the model of the round before, an estimate between rounds is wanted: quick, and not the last.
        """
        ...

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The size of the model that measuring these cliques leads to, in 8-byte cells."""
        ...

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """``cells`` of the cliques with each candidate added in turn: one number per candidate."""
        ...
