"""The gate: the only place that holds a table and answers questions about it.

Every question goes through the same steps. Whatever can be checked from public values is checked; the true counts are
taken; the ledger is charged; only then is noise drawn or a choice made. Anything that goes wrong after the charge
closes the gate for good, and the charge stands.

True counts live in one private attribute and, while an answer is made, in the frames below ``sealed``. What those
frames raise is dropped there, traceback and all, and a new error names only the kind of failure and the line: so
neither a message nor the local variables of a traceback can hold a count, a score or a value read from rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar, final

import numpy as np

from margrave.errors import BudgetError, DataError, InputError, MargraveError, SchemaError
from margrave.marginal import IDENTITY, Queries, Query, SingleQuery
from margrave.privacy.books import Books, open_books
from margrave.privacy.budget import Budget
from margrave.privacy.choice import epsilon_of
from margrave.privacy.ledger import Ledger, exact_rho
from margrave.privacy.noise import Gaussian, Randomness, SystemRandomness
from margrave.privacy.policy import Policy, policy_of
from margrave.privacy.question import (
    Answers,
    Question,
    choosing,
    choosing_queries,
    measuring,
    measuring_queries,
)
from margrave.privacy.scores import QueryGap, Score
from margrave.privacy.sealed import Failure, fail, sealed
from margrave.privacy.unit import Unit, check_query, rows_per_person, sensitivity, size_is_public, unit_name
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


def protect(
    table: Table,
    *,
    unit: Unit,
    budget: Budget,
    randomness: Randomness | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    policy: Policy | str | Path | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    facts: Mapping[str, Any] | None = None,
) -> Private:
    """Put a table behind the gate: from here on it answers ``measure`` and ``select``, within the budget.

    Under a unit of persons the rows of each are first cut to ``max_rows``. Without ``randomness``, noise comes from
    the operating system, after a self-test of the sampler; tests may pass another, and the account then says so.

    ``ledger`` is a ledger file in which ``dataset`` has a cap: the whole budget is reserved there now, every debit is
    written there before its answer is drawn, and what was not spent is given back when the gate closes. ``policy`` is a
    policy or its file. ``journal`` is a file for the questions and answers of this run; with ``resume`` the answers in
    it are given again to the same questions, at no further cost, and ``facts`` (the mechanism and its seed, say: plain
    and public) must be those that it was begun with.

    **Privacy:** none spent yet; the whole use of the result is ``budget.rho``-zCDP for this unit. Under ``ReplaceRow``
    the number of rows is public and opens the transcript. Raises ``SchemaError`` for a draft schema, or a unit of
    persons without a column that identifies them; ``PolicyError`` for what the policy forbids; ``BudgetError`` for a
    cap that leaves no room; ``LedgerError`` for a ledger file or journal that is damaged, in use or of another run.
    """
    sensitivity(unit)  # refuses what is no unit
    if not isinstance(budget, Budget):
        raise InputError("The budget is not a Budget.", remedy="Make one with Budget.approx(epsilon, delta).")
    if table.schema.draft:
        raise SchemaError(
            "The schema is a draft, made from the data itself: its names, bounds and categories may tell on persons.",
            remedy="Check every line of it against what is public, then confirm it with schema.confirmed().",
        )
    limit = rows_per_person(unit)
    if limit is not None and table.schema.person is None:
        raise SchemaError(
            f"The unit is to {unit}, but the schema names no column that identifies persons.",
            remedy="Name it as the schema's person, or choose a unit of rows.",
        )
    policy_of(policy).check(table.schema, unit, budget, ledger=ledger is not None)
    source = SystemRandomness() if randomness is None else randomness
    head = {} if journal is None else _facts(table.schema, unit, budget, source, facts or {})
    where: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "journal": journal, "resume": resume}
    books = open_books(unit, budget.rho, head, **where)
    try:
        return Private(table, limit, unit, budget, source, books)
    except BaseException:
        books.abandon()
        raise


def _facts(
    schema: Schema, unit: Unit, budget: Budget, source: Randomness, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """What a run is of, for its journal: a journal of anything else is not resumed."""
    return {
        "schema": schema.hash(),
        "unit": unit_name(unit),
        "rho": str(budget.rho),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "sampler": source.describe(),
        "facts": dict(facts),
    }


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
        "_randomness",
        "_schema",
        "_table",
        "_unit",
    )

    def __init__(
        self,
        table: Table,
        rows_each: int | None,
        unit: Unit,
        budget: Budget,
        randomness: Randomness,
        books: Books,
    ) -> None:
        self._table: Table | None = table
        self._schema = table.schema
        self._unit, self._budget, self._randomness = unit, budget, randomness
        self._books, self._ledger = books, Ledger(budget.rho, on_charge=books.charge)
        self._counts: dict[Clique, IntArray] = {}
        self._entries: tuple[Entry, ...] = ()
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
            private=self._randomness.is_private,
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
            check_query(query, self.domain)
            price = noise.price(sensitivity(self._unit, query), len(asked))
            question = measuring(self.domain, asked, price.scale, price.rho_each, query)
            answer = self._ask(question, asked, lambda: self._noisy(asked, price.scale, query))
            entries = tuple(
                Measurement(clique, values, price.scale, price.rho_each, query)
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
            asked = tuple(queries)
            for query in asked:
                query.check(self.domain)
            cliques = self._asked(q.counted_in(self.domain) for q in asked)
            if len({q.most for q in asked}) > 1:  # their noise differs, and so does its price
                raise InputError("The queries count a row differently.", remedy="Ask for each kind by itself.")
            price = noise.price(sensitivity(self._unit, asked[0]), len(asked))
            question = measuring_queries(asked, price.scale, price.rho_each)
            (values,) = self._ask(question, cliques, lambda: self._noisy_queries(asked, cliques, price.scale))
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
            score.check(self.domain, asked)
            terms, readable = score.terms(asked), score.readable(asked)
            moved = _lipschitz(score) * sensitivity(self._unit).l1
            epsilon = epsilon_of(rho)
            question = choosing(asked, float(epsilon), float(moved), rho, terms, readable)
            answer = self._ask(question, asked, lambda: self._chosen(asked, score, _temperature(epsilon, moved)))
            place, known = int(answer[0]), (float(epsilon), float(moved), rho, terms, readable)
            chosen = (*asked, *readable)[place]
            self._entries += (Selection(asked, chosen, *known, public=place >= len(asked)),)
            return chosen

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
            if queries.domain != self.domain or times < 1:
                raise InputError("The queries are of another domain, or none is to be chosen.")
            asked = self._asked(queries.cliques)
            rho = exact_rho(rho, "The rho of a choice")
            score.check(queries)
            numbers = score.candidates(queries)
            moved = sensitivity(self._unit, queries[0]).l1
            epsilon = epsilon_of(rho / times)
            question = choosing_queries(
                queries, score.without, score.signed, times, float(epsilon), float(moved), rho
            )
            (places,) = self._ask(
                question, asked, lambda: self._chosen_queries(queries, score, _temperature(epsilon, moved), times)
            )
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

    def _ask(self, question: Question, cliques: Sequence[Clique], draw: Callable[[], Answers]) -> Answers:
        """The stored answer of a resumed run; or a new one, counted, charged, drawn and stored, in this order."""
        stored = self._books.recall(question)
        if stored is None:
            self._count(cliques)
        self._charge(question)
        return self._answer(lambda: self._books.store(draw())) if stored is None else stored

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

    def _noisy(self, asked: Sequence[Clique], scale: float, query: Query) -> Answers:
        return tuple(self._with_noise(query.apply(clique, self._counts[clique]), scale) for clique in asked)

    def _noisy_queries(
        self, asked: Sequence[SingleQuery], cliques: Sequence[Clique], scale: float
    ) -> Answers:
        pairs = zip(asked, cliques, strict=True)
        counts = np.array([q.count(self._counts[c]) for q, c in pairs], dtype=np.int64)
        return (self._with_noise(counts, scale),)

    def _with_noise(self, truth: IntArray, scale: float) -> IntArray:
        values = self._randomness.gaussian(truth, scale)
        if values.dtype != np.int64 or values.shape != truth.shape:
            raise MargraveError("The noise has the wrong shape or type.")
        return values

    def _chosen_queries(
        self, queries: Queries, score: QueryGap, temperature: Fraction, times: int
    ) -> Answers:
        values, grid = score(queries, {c: self._counts[c] for c in queries.cliques})
        sides = 2 if score.signed else 1
        if values.shape != (sides * (len(queries) - len(score.without)),):
            raise MargraveError("The score does not have one value per candidate.")
        drawn = [self._randomness.choose(values, temperature * grid) for _ in range(times)]
        return (np.array([range(len(values))[place] for place in drawn], dtype=np.int64),)

    def _chosen(self, asked: Sequence[Clique], score: Score, temperature: Fraction) -> Answers:
        values, grid = score(asked, {c: self._counts[c] for c in asked})
        if len(values) != len(asked) + len(score.readable(asked)):
            raise MargraveError("The score does not have one value per candidate.")
        return (np.array(range(len(values))[self._randomness.choose(values, temperature * grid)], dtype=np.int64),)

    def _read(self, work: Callable[[], T]) -> T:
        """Work on rows before any charge: if it fails, nothing was answered or spent."""
        result = sealed(work)
        if isinstance(result, Failure):
            fail(result, DataError, "The table could not be read", "Nothing was spent.")
        return result

    def _answer(self, work: Callable[[], T]) -> T:
        """Work after a charge: if it fails, the gate closes and the charge stands."""
        result = sealed(work)
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        with self._lock:
            self._forget()
            self._books.abandon()

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


def _temperature(epsilon: Fraction, moved: int | Fraction) -> Fraction:
    """What a score is multiplied by in the exponent of the exponential mechanism."""
    return epsilon / (2 * moved)


def _lipschitz(score: Score) -> Fraction:
    try:
        lipschitz = Fraction(score.lipschitz)
    except (ValueError, OverflowError):  # NaN, infinity
        lipschitz = Fraction(0)
    if not 0 < lipschitz <= 1e300:
        raise InputError(
            "The score does not say how far a count can move it.", remedy="Its lipschitz is positive."
        )
    return lipschitz
