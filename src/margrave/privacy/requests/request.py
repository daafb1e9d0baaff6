"""A question put to the gate: checked by public values, priced, described, drawn, and written down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from margrave.accounting.question import Answers, Question
from margrave.accounting.sensitivities import Sensitivity, sensitivity
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError
from margrave.marginal import IDENTITY, LinearMap, SingleQuery
from margrave.privacy.noise import Randomness
from margrave.privacy.scores import check_total
from margrave.schema.column_queries import ColumnQuery
from margrave.schema.learn import Learn
from margrave.transcript import Entry
from margrave.types import AnyArray, Clique, FloatArray, IntArray
from margrave.unit import Unit

Counts = Mapping[Clique, AnyArray]
A = TypeVar("A", IntArray, FloatArray)
E = TypeVar("E", bound=Entry, covariant=True)


class TrueCounts(dict[Clique, IntArray]):
    """The counts behind the gate, and the scores that the last private selection computed of them.

    Attributes:
        scored: The public part of these scores; None before the first selection.
        scores: A whole number for each candidate, and the grid that they are multiples of.
    """

    scored: Any
    scores: tuple[Sequence[int] | IntArray, Fraction]

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def keep(self, scored: Any, values: Sequence[int], grid: Fraction) -> None:
        """Keep scores for later selections among the same candidates."""
        max_size = 2**53  # of scores in an array, see ``choose``
        small = max(map(abs, values)) < max_size
        self.scored = scored
        self.scores = (np.array(values, dtype=np.int64) if small else values, grid)

    def clear(self) -> None:
        """Forget all counts and scores."""
        super().clear()
        self.scored = None
        self.scores = ((), Fraction(1))


@dataclass(frozen=True)
class PublicKnowledge:
    """All that a question is checked against before anything is spent.

    Args:
        domain: The table's domain.
        unit: The unit of privacy.
        vouched: Classes of scores whose sensitivity the custodian vouches for.
        to_learn: Columns whose codes have no meaning yet.
        rows: The number of rows, if the unit makes it public.
    """

    domain: Domain
    unit: Unit
    vouched: tuple[type, ...] = ()
    to_learn: tuple[Learn, ...] = ()
    rows: int | None = None

    def leaves_open(self, column: str, *, number: bool) -> bool:
        """Return whether a column is to be learned: a number, date or time, or else one of categories."""
        return any(c.name == column and c.is_number == number for c in self.to_learn)

    def cliques(self, named: Iterable[Clique]) -> tuple[Clique, ...]:
        """Return cliques in canonical form.

        Raises:
            InputError: If there are none, one is empty, or the domain lacks a column.
        """
        asked = tuple(self.domain.clique(c) for c in named)
        if not asked or not all(asked):
            raise InputError(
                "No marginal is named, or one of no columns.",
                remedy="Name at least one column of each.",
            )
        return asked

    def candidates(self, named: Iterable[Clique]) -> tuple[Clique, ...]:
        """Return cliques in canonical form, each once.

        Raises:
            InputError: As ``cliques`` does, and if one is named twice.
        """
        asked = self.cliques(named)
        if len(set(asked)) < len(asked):
            raise InputError("A candidate is named twice.", remedy="Name each once.")
        return asked

    def check_total(self) -> None:
        """Raise ``InputError`` if the number of rows is public and too large for exact scores."""
        if self.rows is not None:
            check_total(self.rows)

    def sensitivity(self, query: LinearMap | SingleQuery = IDENTITY) -> Sensitivity:
        """Return the sensitivity of one answer between neighbors."""
        return sensitivity(self.unit, query)


class Request(ABC, Generic[E]):
    """One question, in the gate's own copies of all its parts.

    ``of`` makes one from a mechanism's arguments, and raises ``InputError`` for anything wrong with
    them. The ledger, the journal and the transcript describe the question by its methods.

    Privacy:
        ``question().rho`` and ``.delta`` bound what ``draw`` spends (zCDP), for the unit that it was made for.
    """

    @property
    @abstractmethod
    def counted(self) -> Sequence[Clique]:
        """The marginals that are counted for it."""

    @property
    def raw(self) -> tuple[str, ColumnQuery | None] | None:
        """A raw column, and what is tallied of it in place of marginals: a query, or None for its values."""
        return None

    @abstractmethod
    def question(self) -> Question:
        """Return what the ledger and the journal keep: words, price, and all that a resumed run must ask again."""

    @abstractmethod
    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw the answers from true counts. Called inside the gate alone, after the charge."""

    @abstractmethod
    def entries(self, answers: Answers) -> tuple[E, ...]:
        """Return the entries of the transcript."""


def with_noise(truth: IntArray, source: Randomness, scale: float) -> IntArray:
    """Return numbers with discrete Gaussian noise, which nobody can change in place."""
    values = source.gaussian(truth, scale)
    if values.dtype != np.int64 or values.shape != truth.shape:
        raise MargraveError("The noise has the wrong shape or type.")
    return values


def place(values: Sequence[int] | IntArray, source: Randomness, temperature: Fraction) -> int:
    """Return the place of a candidate, drawn by the exponential mechanism."""
    return range(len(values))[source.choose(values, temperature)]  # no place beyond the last


def check_scores(values: Sequence[int] | IntArray, candidates: int) -> None:
    """Raise ``MargraveError`` unless there is one value per candidate."""
    if len(values) != candidates:
        raise MargraveError("The score does not have one value per candidate.")


def frozen(values: A) -> A:
    """Return the array, read-only: a mechanism that rounds in place would change what was answered."""
    values.flags.writeable = False
    return values


def names(cliques: Sequence[Clique]) -> str:
    """Return the first few cliques in words."""
    shown = [" × ".join(c) or "all records" for c in cliques[:4]]
    if len(cliques) <= 4:
        return ", ".join(shown)
    return ", ".join([*shown[:3], f"and {len(cliques) - 3} more marginals"])


def queries_in_words(number: int) -> str:
    """Return a number of queries in words."""
    return "1 query" if number == 1 else f"{number:,} queries"
