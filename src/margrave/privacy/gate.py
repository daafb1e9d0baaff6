"""The gate: the only place that holds a table and answers questions about it. ``protect`` makes one.

Every question goes through the same steps: checks of public values, true counts, the charge, and only then noise or a
selection. A failure after the charge closes the gate for good, and the charge stands. ``requests`` has the rest.

True counts, and scores of them, live in one private attribute and, during ``Request.draw``, in the frames below
``run_sanitized``. It drops exceptions of those frames with their tracebacks, and a new error names only
the kind of failure and the line. So neither a message nor the local variables of a traceback can hold a
count, a score or a value of rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar, final

from margrave.account import Account
from margrave.accounting.accountant import Accountant
from margrave.accounting.budget import Budget
from margrave.accounting.run_log import Books
from margrave.data.unshareable import Unshareable
from margrave.domain import Domain
from margrave.error_sanitizer import Failure, raise_sanitized, run_sanitized
from margrave.errors import BudgetError, DataError, InputError, MargraveError
from margrave.marginal import IDENTITY, HalfSpace, LinearMap, QueryFamily, SingleQuery
from margrave.privacy import requests
from margrave.privacy.dependence import Dependence
from margrave.privacy.half_space_gap import HalfSpaceGap
from margrave.privacy.noise import Gaussian, Randomness, SystemRandomness
from margrave.privacy.requests import PublicKnowledge, Request, TrueCounts
from margrave.privacy.rows import adopted, check_adoption, check_learned, scan, tally
from margrave.privacy.scores import MarginalGap, QueryGap, Score
from margrave.schema.column_queries import ColumnQuery
from margrave.transcript import (
    ColumnAnswer,
    Discovery,
    Entry,
    HalfSpaceSelection,
    PublicTotal,
    QuerySelection,
    Transcript,
)
from margrave.types import Clique
from margrave.unit import Unit, size_is_public

if TYPE_CHECKING:
    from margrave.data import Table
    from margrave.schema import Schema

T = TypeVar("T")
E = TypeVar("E", bound=Entry)


@final
class Private(Unshareable):
    """A protected table. Made by ``protect``; use it in a ``with`` block, which closes it.

    It cannot be copied, pickled or subclassed, and shows nothing of its rows. One question at a time, from any thread.
    """

    __slots__ = (
        "_books", "_budget", "_counts", "_entries", "_ledger", "_lock", "_preflight", "_queries",
        "_randomness", "_rho", "_schema", "_table", "_unit", "_vouched",
    )  # fmt: skip

    def __init__(
        self,
        table: Table,
        rows_each: int | None,
        unit: Unit,
        budget: Budget,
        randomness: Randomness,
        books: Books,
        vouched: tuple[type, ...] = (),
        preflight: str = "custodian",
    ) -> None:
        self._table: Table | None = table
        self._schema = table.schema.for_run()
        self._unit, self._budget, self._randomness = unit, budget, randomness
        self._books, self._rho, deltas = books, budget.rho, Fraction(budget.threshold_delta)
        self._ledger = Accountant(budget.rho, on_charge=books.charge, delta_limit=deltas)
        self._counts = TrueCounts()
        self._entries: tuple[Entry, ...] = ()
        self._queries: QueryFamily | None = None
        self._vouched, self._preflight = vouched, preflight
        self._lock = threading.RLock()
        if rows_each is not None:
            self._table = self._read(lambda: table.bounded(rows_each))
        if size_is_public(unit):
            self._entries = (PublicTotal(int(self._read(table.rows))),)
            books.public_rows(self._entries[0].total)

    # Public facts.

    @property
    def domain(self) -> Domain:
        """The domain, from the schema."""
        domain: Domain = self._schema.domain
        return domain

    @property
    def schema(self) -> Schema:
        """The schema."""
        return self._schema

    @property
    def unit(self) -> Unit:
        """The unit of privacy."""
        return self._unit

    @property
    def rho(self) -> Fraction:
        """The budget of the mechanism (zCDP): all that learning columns has left."""
        return self._rho

    @property
    def remaining(self) -> Fraction:
        """The part of the budget that is left, exactly."""
        return self._ledger.remaining

    @property
    def remaining_delta(self) -> Fraction:
        """The part of the delta for thresholds that is left, exactly."""
        return self._ledger.remaining_delta

    @property
    def transcript(self) -> Transcript:
        """Every answer so far, in order."""
        return Transcript(self._entries)

    def account(self) -> Account:
        """Return the account as plain data for the certificate."""
        return Account(
            unit=self._unit,
            rho_budget=self._budget.rho,
            epsilon=self._budget.epsilon,
            delta=self._budget.delta,
            debits=self._ledger.debits,
            private=type(self._randomness) is SystemRandomness,
            sampler=self._randomness.describe(),
            ledger=self._books.head,
            preflight=self._preflight,
            threshold_delta=self._budget.threshold_delta,
        )

    # The questions, and a scan ahead of them.

    def prepare(self, cliques: Iterable[Clique]) -> None:
        """Count marginals now, in one scan, so that questions about them need none.

        Privacy:
            None spent.
        """
        with self._lock:
            self._count(self._known().cliques(cliques))

    def measure(
        self, cliques: Iterable[Clique], noise: Gaussian, *, query: LinearMap = IDENTITY
    ) -> Transcript:
        """Measure marginals: ``query(M_clique(D))`` plus discrete Gaussian noise, for each clique.

        Args:
            cliques: The marginals. One that is named twice is measured and paid twice.
            noise: The price of all, or the noise scale of each.
            query: Codes to merge, or matrices to apply, before the noise. With matrices, all answers must be of one
                sensitivity.

        Returns:
            The new entries.

        Raises:
            InputError: For unknown columns or an empty list. Nothing is spent.
            BudgetError: If too little remains. Nothing is spent.

        Privacy:
            ``noise.rho``, or ``k · l2_squared / (2 scale²)`` for k cliques (zCDP), charged before anything is drawn.
        """
        with self._lock:
            return Transcript(
                self._ask(requests.MeasureMarginals.of(self._known(), cliques, noise, query))
            )

    def measure_queries(self, queries: Iterable[SingleQuery], noise: Gaussian) -> Transcript:
        """Measure single queries: ``q(D)`` plus discrete Gaussian noise, for each query.

        Args:
            queries: Sets of codes (``LinearQuery``) or half-spaces (``HalfSpace``), in all of which a row counts as
                much at most.
            noise: The price of all, or the noise scale of each.

        Returns:
            The new entries.

        Privacy:
            ``noise.rho``, or ``k · l2_squared / (2 scale²)`` for k queries, each of one count (zCDP), charged before
            anything is drawn.
        """
        with self._lock:
            return Transcript(self._ask(requests.MeasureQueries.of(self._known(), queries, noise)))

    def measure_scores(
        self, candidates: Iterable[Clique], score: Dependence | MarginalGap, noise: Gaussian
    ) -> Transcript:
        """Measure the scores of all candidates, with discrete Gaussian noise, and return the new entry.

        Args:
            candidates: Marginals, each once.
            score: How they are scored, in records. A ``MarginalGap`` has weights of 1 and penalties of 0 here.
            noise: The price of all, or the noise scale of each, in records.

        Privacy:
            ``noise.rho``, or ``m · sensitivity² / (2 scale²)`` for m scores, each of which moves by
            ``sensitivity = score.lipschitz · l1`` at most (zCDP), charged before anything is drawn.
        """
        with self._lock:
            return Transcript(
                self._ask(requests.MeasureScores.of(self._known(), candidates, score, noise))
            )

    def measure_column(self, column: str, query: ColumnQuery, *, rho: Fraction) -> ColumnAnswer:
        """Measure a query about a raw column that is to be learned, with discrete Gaussian noise.

        Args:
            column: A number, date or time of ``schema.to_learn``.
            query: Counts of cells on the column's line, or a clipped sum.
            rho: The price.

        Privacy:
            rho (zCDP), charged before anything is drawn. The scale follows from the ``sensitivity`` of the query.
        """
        with self._lock:
            (entry,) = self._ask(requests.MeasureColumn.of(self._known(), column, query, rho))
            return entry

    def discover(
        self, column: str, *, rho: Fraction, delta: Fraction, listed: Iterable[str] = ()
    ) -> Discovery:
        """Discover the frequent values of a raw column: those whose noisy count reaches a threshold.

        Args:
            column: A column of categories of ``schema.to_learn``.
            rho: The price of the counts.
            delta: The price of the threshold, which follows from it and the noise scale.
            listed: Public values, counted also if no row has them.

        Privacy:
            delta-approximate rho-zCDP, charged before anything is drawn.
        """
        with self._lock:
            (entry,) = self._ask(requests.Discover.of(self._known(), column, rho, delta, listed))
            return entry

    def adopt(self, schema: Schema) -> None:
        """Encode the table with a schema whose columns are all declared. ``rho`` is then what remains.

        Args:
            schema: The gate's schema with each column to learn declared, or left out.

        Raises:
            InputError: If it differs in anything else, or nothing is to be learned. The gate keeps its schema.

        Privacy:
            None spent: the schema must be a function of answers and of public values.
        """
        with self._lock:
            self._known()
            schema = check_adoption(self._schema, schema)
            self._table = self._read(lambda: adopted(self._table, schema))
            self._counts.clear()
            self._schema, self._rho = schema, self._ledger.remaining

    def select(self, candidates: Iterable[Clique], score: Score, *, rho: Fraction) -> Clique:
        """Choose a marginal by the exponential mechanism: ``P[r] ∝ exp(epsilon · score_r / (2 sensitivity))``.

        ``epsilon = sqrt(8 rho)``, rounded down; ``sensitivity = score.lipschitz · l1`` for the gate's unit.

        Args:
            candidates: Marginals, each once. Those that are ``score.readable`` are candidates twice, and the
                transcript's last entry says whether a reading was chosen.
            score: What is to be large. A ``MarginalGap`` given again, for fewer candidates, counts as it was.
            rho: The price.

        Returns:
            The chosen marginal.

        Raises:
            InputError: For unknown columns, an empty list or a candidate named twice. Nothing is spent.
            BudgetError: If too little remains. Nothing is spent.

        Privacy:
            rho (zCDP), charged before anything is drawn.

        References:
            Cesar and Rogers (2021), Bounding, concentrating, and truncating.
        """
        with self._lock:
            known, last = self._known(), self._counts.scored
            (entry,) = self._ask(requests.SelectMarginal.of(known, candidates, score, rho, last))
            return entry.chosen

    def select_query(
        self, queries: QueryFamily, score: QueryGap, *, rho: Fraction, times: int = 1
    ) -> tuple[QuerySelection, ...]:
        """Choose linear queries by the exponential mechanism: ``P[q] ∝ exp(epsilon · score_q / (2 sensitivity))``.

        Args:
            queries: The queries.
            score: What is to be large.
            rho: The price of all draws.
            times: How many independent draws, with replacement, at ``rho / times`` each.

        Returns:
            The new entries.

        Privacy:
            rho (zCDP), charged before anything is drawn. The sensitivity is that of one count.
        """
        with self._lock:
            request = requests.SelectQueries.of(
                self._known(), queries, score, rho, times, self._queries
            )
            self._queries = request.queries
            return self._ask(request)

    def select_half_space(
        self, queries: Iterable[HalfSpace], score: HalfSpaceGap, *, rho: Fraction
    ) -> HalfSpaceSelection:
        """Choose a half-space by the exponential mechanism.

        Args:
            queries: Half-spaces, in all of which a row counts as much at most.
            score: What is to be large.
            rho: The price.

        Privacy:
            rho (zCDP), charged before anything is drawn. A score moves as far as one count of rows does.
        """
        with self._lock:
            (entry,) = self._ask(requests.SelectHalfSpace.of(self._known(), queries, score, rho))
            return entry

    def close(self) -> None:
        """Let go of the table and of every true count. Whatever is asked afterwards is refused.

        The run has then ended well: a ledger file gets back what was reserved and not spent. Leaving a ``with`` block
        by an exception ends it otherwise, and a run with a journal can then be resumed.
        """
        with self._lock:
            self._forget()
            self._books.finish()

    # Behind the gate.

    def _known(self) -> PublicKnowledge:
        if self._table is None:
            raise MargraveError(
                "The gate is closed.", remedy="Its transcript still stands; protect the table anew."
            )
        total = next((e.total for e in self._entries[:1] if isinstance(e, PublicTotal)), None)
        learn = self._schema.to_learn
        return PublicKnowledge(self.domain, self._unit, self._vouched, learn, total)

    def _prepare(self, request: Request[E]) -> None:
        if request.raw is None:
            self._count(request.counted)
        else:
            column, query = request.raw
            self._counts |= self._read(lambda: tally(self._table, column, query))

    def _count(self, cliques: Sequence[Clique]) -> None:
        check_learned(self._schema, cliques)
        missing = [c for c in dict.fromkeys(cliques) if c not in self._counts]
        if missing:
            self._counts |= self._read(lambda: scan(self._table, missing, self.domain))

    def _ask(self, request: Request[E]) -> tuple[E, ...]:
        """Recall the answers of a resumed run; or count, charge, draw and store, in this order.

        A failure from the charge on closes the gate, and the charge stands. A question that is refused costs nothing.
        """
        question = request.question()
        stored = self._books.recall(question)
        if stored is None:
            self._prepare(request)
        can_refuse = True
        try:
            self._ledger.charge(question.what, question.rho, question.delta)
            can_refuse = False
            if stored is None:
                stored = self._answer(
                    lambda: self._books.store(request.draw(self._counts, self._randomness))
                )
            entries = request.entries(stored)
            self._entries += entries
        except BaseException as error:
            if not (can_refuse and isinstance(error, BudgetError | InputError)):
                self._forget()
                self._books.abandon()
            raise
        return entries

    def _read(self, work: Callable[[], T]) -> T:
        """Work on rows before any charge: if it fails, nothing was answered or spent."""
        result = run_sanitized(work)
        if isinstance(result, Failure):
            raise_sanitized(result, DataError, "The table could not be read", "Nothing was spent.")
        return result

    def _answer(self, work: Callable[[], T]) -> T:
        """Work after a charge, near true counts."""
        result = run_sanitized(work)
        if isinstance(result, Failure):
            raise_sanitized(
                result,
                MargraveError,
                "An answer failed after its charge",
                f"The charge stands; the gate is closed.{self._books.advice}",
            )
        return result

    def _forget(self) -> None:
        self._table = None
        self._counts.clear()

    # Nothing leaves by the back door.

    def __enter__(self) -> Private:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if kind is None:
            self.close()
            return
        with self._lock:
            self._forget()
            self._books.abandon()
        if error is not None and self._ledger.spent:
            error.add_note(self._books.note_of_loss(self._ledger.spent, self.rho))

    def __repr__(self) -> str:
        return f"Private(unit={str(self._unit)!r}, rho={float(self.rho):.6g}, spent={float(self._ledger.spent):.6g})"

    def __init_subclass__(cls) -> None:
        raise TypeError("Private is final: there is only one gate.")
