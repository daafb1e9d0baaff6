"""The gate: the only place that holds a table and answers questions about it. ``opening`` makes one.

Every question goes through the same steps. Whatever can be checked from public values is checked; the true counts are
taken; the ledger is charged; only then is noise drawn or a choice made. Anything that goes wrong after the charge
closes the gate for good, and the charge stands.

True counts live in one private attribute and, while an answer is made (``draws``), in the frames below ``sanitized``.
What those frames raise is dropped there, traceback and all, and a new error names only the kind of failure and the
line: so neither a message nor the local variables of a traceback can hold a count, a score or a value read from rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NoReturn, SupportsIndex, TypeVar, final

import numpy as np

from margrave.error_sanitizer import Failure, fail, sanitized
from margrave.errors import BudgetError, DataError, InputError, MargraveError
from margrave.marginal import IDENTITY, Queries, Query, SingleQuery
from margrave.parameters import is_whole
from margrave.privacy.books import Books
from margrave.privacy.budget import Budget
from margrave.privacy.choice import epsilon_of, temperature_of
from margrave.privacy.copies import (
    own_gap,
    own_noise,
    own_queries,
    own_query,
    own_score,
    own_single_query,
    voucher,
)
from margrave.privacy.draws import Counts, chosen, chosen_queries, noisy, noisy_queries
from margrave.privacy.ledger import Ledger, exact_rho
from margrave.privacy.noise import Gaussian, Randomness, SystemRandomness
from margrave.privacy.question import (
    Answers,
    Question,
    choosing,
    choosing_queries,
    measuring,
    measuring_queries,
)
from margrave.privacy.scores import QueryGap, Score, lipschitz_of, readable_of, terms_of
from margrave.privacy.unit import Unit, check_query, sensitivity, size_is_public
from margrave.schema.domain import Domain
from margrave.transcript import (
    Account,
    Answer,
    Entry,
    Measurement,
    PublicTotal,
    QuerySelection,
    Selection,
    Transcript,
)
from margrave.typing import Clique, IntArray

if TYPE_CHECKING:
    from margrave.data import Table
    from margrave.schema import Schema

T = TypeVar("T")
Draw = Callable[[Counts, Randomness], Answers]


@final
class Private:
    """A protected table. Made by ``protect``; use it in a ``with`` block, which closes it.

    It cannot be copied, pickled or subclassed, and shows nothing of its rows. One question at a time, from any thread.
    """

    __slots__ = (
        "_books",
        "_budget",
        "_counts",
        "_entries",
        "_ledger",
        "_lock",
        "_queries",
        "_randomness",
        "_schema",
        "_table",
        "_unit",
        "_vouched",
    )

    def __init__(
        self,
        table: Table,
        rows_each: int | None,
        unit: Unit,
        budget: Budget,
        randomness: Randomness,
        books: Books,
        vouched: tuple[type, ...] = (),
    ) -> None:
        self._table: Table | None = table
        self._schema = table.schema
        self._unit, self._budget, self._randomness = unit, budget, randomness
        self._books, self._ledger = books, Ledger(budget.rho, on_charge=books.charge)
        self._counts: dict[Clique, IntArray] = {}
        self._entries: tuple[Entry, ...] = ()
        self._queries: Queries | None = None
        self._vouched = vouched
        self._lock = threading.RLock()
        if rows_each is not None:
            self._table = self._read(lambda: table.bounded(rows_each))
        if size_is_public(unit):
            self._entries = (PublicTotal(int(self._read(table.rows))),)
            books.public_rows(self._entries[0].total)

    # What is public.

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
        """The whole budget (zCDP)."""
        return self._ledger.limit

    @property
    def remaining(self) -> Fraction:
        """What is left of it, exactly."""
        return self._ledger.remaining

    @property
    def transcript(self) -> Transcript:
        """Every answer so far, in order."""
        return Transcript(self._entries)

    def account(self) -> Account:
        """The books, as plain data for the certificate."""
        return Account(
            unit=str(self._unit),
            rho_budget=self._budget.rho,
            epsilon=self._budget.epsilon,
            delta=self._budget.delta,
            debits=self._ledger.debits,
            private=type(self._randomness) is SystemRandomness,
            sampler=self._randomness.describe(),
        )

    # The two questions, and what makes them quicker.

    def prepare(self, cliques: Iterable[Clique]) -> None:
        """Count these marginals now, in one scan, so that questions about them need none. **Privacy:** none spent."""
        with self._lock:
            self._count(self._asked(cliques))

    def measure(self, cliques: Iterable[Clique], noise: Gaussian, *, query: Query = IDENTITY) -> Transcript:
        """Noisy marginals: ``query(M_clique(D))`` plus discrete Gaussian noise, for each clique; the new entries.

        **Privacy:** ``noise.rho``, or ``k · l2_squared / (2 scale²)`` for k cliques (zCDP), charged before anything is
        drawn; a clique named twice is measured and paid twice. Raises ``InputError`` for unknown columns or an empty
        list and ``BudgetError`` if too little remains: nothing is spent then.
        """
        with self._lock:
            asked = self._asked(cliques)
            query, noise = own_query(query), own_noise(noise)
            check_query(query, self.domain)
            price = noise.price(sensitivity(self._unit, query), len(asked))
            question = measuring(self.domain, asked, price.scale, price.rho_each, query)
            answer = self._ask(question, asked, partial(noisy, asked=asked, scale=price.scale, query=query))
            for values in answer:
                values.flags.writeable = False  # a mechanism that rounds in place would change what was answered
            entries = tuple(
                Measurement(clique, values, price.scale, price.rho_each, query.within(clique))
                for clique, values in zip(asked, answer, strict=True)
            )
            self._entries += entries
            return Transcript(entries)

    def measure_queries(self, queries: Iterable[SingleQuery], noise: Gaussian) -> Transcript:
        """Noisy single queries: ``q(D)`` plus discrete Gaussian noise, for each query; the new entries.

        They are sets of codes (``LinearQuery``) or half-spaces (``HalfSpace``), in all of which a row counts as much at
        most: an InputError otherwise.

        **Privacy:** ``noise.rho``, or ``k · l2_squared / (2 scale²)`` for k queries, each of one count (zCDP),
        charged before anything is drawn. Raises as ``measure`` does.
        """
        with self._lock:
            asked, noise = tuple(own_single_query(q) for q in queries), own_noise(noise)
            for query in asked:
                query.check(self.domain)
            cliques = self._asked(q.counted_in(self.domain) for q in asked)
            if len({q.most for q in asked}) > 1:  # their noise differs, and so does its price
                raise InputError("The queries count a row differently.", remedy="Ask for each kind by itself.")
            price = noise.price(sensitivity(self._unit, asked[0]), len(asked))
            question = measuring_queries(asked, price.scale, price.rho_each)
            draw = partial(noisy_queries, asked=asked, cliques=cliques, scale=price.scale)
            (values,) = self._ask(question, cliques, draw)
            entries = tuple(
                Answer(q, int(v), price.scale, price.rho_each) for q, v in zip(asked, values, strict=True)
            )
            self._entries += entries
            return Transcript(entries)

    def select(self, candidates: Iterable[Clique], score: Score, *, rho: Fraction) -> Clique:
        """One of the candidates, by the exponential mechanism: ``P[r] ∝ exp(epsilon · score_r / (2 sensitivity))``.

        ``epsilon = sqrt(8 rho)``, rounded down; ``sensitivity = score.lipschitz · l1`` for the gate's unit. Those that
        are ``score.readable`` are candidates twice, and the transcript's last entry says if a reading was chosen.

        **Privacy:** rho (zCDP), charged before anything is drawn. Raises ``InputError`` for unknown columns, an empty
        list or a candidate named twice, and ``BudgetError`` if too little remains: nothing is spent then.
        Source: Cesar and Rogers 2021.
        """
        with self._lock:
            asked = self._asked(candidates)
            if len(set(asked)) < len(asked):
                raise InputError("A candidate is named twice.", remedy="Name each once.")
            rho = exact_rho(rho, "The rho of a choice")
            score, vouched = own_score(score, asked, self._vouched), voucher(score, self._vouched)
            score.check(self.domain, asked)
            terms, readable = terms_of(score, asked), readable_of(score, asked)
            moved = lipschitz_of(score) * sensitivity(self._unit).l1
            epsilon = epsilon_of(rho)
            question = choosing(asked, float(epsilon), float(moved), rho, terms, readable, vouched)
            draw = partial(chosen, asked=asked, score=score, temperature=temperature_of(epsilon, moved))
            (answer,) = self._ask(question, asked, draw)
            place, known = int(answer), (float(epsilon), float(moved), rho, terms, readable)
            winner = (*asked, *readable)[place]
            self._entries += (Selection(asked, winner, *known, public=place >= len(asked), vouched=vouched),)
            return winner

    def select_query(
        self, queries: Queries, score: QueryGap, *, rho: Fraction, times: int = 1
    ) -> tuple[QuerySelection, ...]:
        """Linear queries, by the exponential mechanism: ``P[q] ∝ exp(epsilon · score_q / (2 sensitivity))``.

        ``times`` independent draws, with replacement, at ``rho / times`` each: ``epsilon = sqrt(8 rho / times)``,
        rounded down. ``sensitivity`` is that of one count, for the gate's unit.

        **Privacy:** rho (zCDP), charged before anything is drawn. Raises as ``select`` does.
        Source: Cesar and Rogers 2021.
        """
        with self._lock:
            queries = own_queries(queries, self.domain, self._queries)
            score = own_gap(score, queries)
            if not is_whole(times, 1):
                raise InputError("None of the queries is to be chosen.", remedy="Give times of 1 or more.")
            self._queries, times = queries, int(times)
            asked = self._asked(queries.cliques)
            rho = exact_rho(rho, "The rho of a choice")
            score.check(queries)
            numbers = score.candidates(queries)
            moved = sensitivity(self._unit, queries[0]).l1
            epsilon = epsilon_of(rho / times)
            question = choosing_queries(
                queries, score.without, score.signed, times, float(epsilon), float(moved), rho
            )
            temperature = temperature_of(epsilon, moved)
            draw = partial(chosen_queries, queries=queries, score=score, temperature=temperature, times=times)
            (places,) = self._ask(question, asked, draw)
            entries = tuple(
                QuerySelection(
                    queries,
                    number=int(numbers[place % len(numbers)]),
                    sign=-1 if place >= len(numbers) else 1,
                    epsilon=float(epsilon),
                    sensitivity=float(moved),
                    rho=rho / times,
                    signed=score.signed,
                    without=score.without,
                )
                for place in places.tolist()
            )
            self._entries += entries
            return entries

    def close(self) -> None:
        """Let go of the table and of every true count. Whatever is asked afterwards is refused.

        The run has then ended well: a ledger file gets back what was reserved and not spent. Leaving a ``with`` block
        by an exception ends it otherwise, and a run with a journal can then be resumed.
        """
        with self._lock:
            self._forget()
            self._books.finish()

    # Behind the gate.

    def _asked(self, cliques: Iterable[Clique]) -> tuple[Clique, ...]:
        """The cliques in canonical form, if the gate is open and they are in order."""
        if self._table is None:
            raise MargraveError(
                "The gate is closed.", remedy="Its transcript still stands; protect the table anew."
            )
        asked = tuple(self.domain.clique(c) for c in cliques)
        if not asked or not all(asked):
            raise InputError(
                "No marginal is named, or one of no columns.", remedy="Name at least one column of each."
            )
        return asked

    def _count(self, asked: Sequence[Clique]) -> None:
        """True counts of those cliques that have none yet, in one scan."""
        missing = [c for c in dict.fromkeys(asked) if c not in self._counts]
        if missing:
            self._read(lambda: self._scan(missing))

    def _scan(self, missing: Sequence[Clique]) -> None:
        assert self._table is not None
        found = self._table.count(missing)
        for clique in missing:
            counts = found[clique].view()
            if counts.dtype != np.int64 or counts.shape != self.domain.shape(clique):
                raise DataError("The table counts in the wrong shape or type.")
            counts.flags.writeable = False
            self._counts[clique] = counts

    def _ask(self, question: Question, cliques: Sequence[Clique], draw: Draw) -> Answers:
        """The stored answer of a resumed run; or a new one, counted, charged, drawn and stored, in this order."""
        stored = self._books.recall(question)
        if stored is None:
            self._count(cliques)
        self._charge(question)
        if stored is None:
            return self._answer(lambda: self._books.store(draw(self._counts, self._randomness)))
        return stored

    def _charge(self, question: Question) -> None:
        """Write the debit, or refuse it. If writing fails half way, nothing is drawn and the gate closes."""
        try:
            self._ledger.charge(question.what, question.rho)
        except (BudgetError, InputError):
            raise
        except BaseException:
            self._forget()
            self._books.abandon()
            raise

    def _read(self, work: Callable[[], T]) -> T:
        """Work on rows before any charge: if it fails, nothing was answered or spent."""
        result = sanitized(work)
        if isinstance(result, Failure):
            fail(result, DataError, "The table could not be read", "Nothing was spent.")
        return result

    def _answer(self, work: Callable[[], T]) -> T:
        """Work after a charge: if it fails, the gate closes and the charge stands."""
        result = sanitized(work)
        if isinstance(result, Failure):
            self._forget()
            self._books.abandon()
            fail(
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            self.close()
            return
        with self._lock:
            self._forget()
            self._books.abandon()
        if error is not None and self._ledger.spent:  # what was spent is public; without a journal it is lost
            error.add_note(
                f"rho {float(self._ledger.spent):.6g} of {float(self.rho):.6g} had been spent."
                + (self._books.advice or " A journal would have kept the answers for a run that goes on.")
            )

    def __repr__(self) -> str:
        return f"Private(unit={str(self._unit)!r}, rho={float(self.rho):.6g}, spent={float(self._ledger.spent):.6g})"

    def __init_subclass__(cls) -> None:
        raise TypeError("Private is final: there is only one gate.")

    def __copy__(self) -> NoReturn:
        raise TypeError("A protected table cannot be copied.")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("A protected table cannot be copied.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("A protected table cannot be pickled.")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("A protected table cannot be pickled.")
