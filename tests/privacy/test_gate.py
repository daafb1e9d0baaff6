"""The gate: nothing gets out but answers that were paid for beforehand."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Sensitivity,
    Unit,
    sensitivity,
)
from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.errors import BudgetError, InputError, MargraveError, SchemaError
from margrave.marginal import TOTAL, LinearMap
from margrave.privacy import (
    Gaussian,
    GridScores,
    MarginalGap,
    Private,
    SeededRandomness,
    protect,
)
from margrave.schema import Schema
from margrave.testing.replay import ControlFlowDiffersError, Recorder, ReplayRandomness, loss_replay
from margrave.transcript import Measurement, PublicTotal, Selection
from margrave.types import Clique, FloatArray, IntArray
from margrave.unit import rows_per_person
from tests.support.conformance import SIZES, memory_table
from tests.support.tiny_table import UNITS, TinySchema, TinyTable, neighbors, tiny_domain

BUDGET = Budget.zcdp(Fraction(2), 1e-9)
A, B, AB, ABC = ("a",), ("b",), ("a", "b"), ("a", "b", "c")


def table(unit: Unit | None = None) -> TinyTable:
    return neighbors(unit or AddRemoveRow(), np.random.default_rng(0), rows=9)[0]


def opened(
    unit: Unit | None = None,
    source: Any = None,
    of: TinyTable | None = None,
    vouched: Sequence[type[Any]] = (),
) -> Private:
    unit, source = unit or AddRemoveRow(), source or SeededRandomness(1)
    return protect(of or table(unit), unit=unit, budget=BUDGET, randomness=source, vouched=vouched)


def gap(private: Private, cliques: Iterable[Clique], weight: float = 1.0) -> MarginalGap:
    cliques = list(cliques)
    return MarginalGap(
        {c: np.full(private.domain.shape(c), 0.75) for c in cliques},
        dict.fromkeys(cliques, weight),
        dict.fromkeys(cliques, 0.5),
    )


# Answers.


def test_measure_is_query_plus_noise_of_the_stated_scale() -> None:
    source = Recorder(SeededRandomness(3))
    private = opened(source=source)
    answers = private.measure([("b", "a"), ["c"]], Gaussian(rho=Fraction(1, 2)))
    assert [m.clique for m in answers.measurements] == [AB, ("c",)]
    truth = table().count([AB, ("c",)])
    for entry, step in zip(answers.measurements, source.steps, strict=True):
        assert entry.values.dtype == np.int64
        assert np.array_equal(step.truth, truth[entry.clique])  # type: ignore[union-attr, arg-type]
        assert np.array_equal(entry.values, step.answer)
        assert entry.rho == Fraction(1, 4)
        assert entry.scale == Gaussian.scale_for(Fraction(1, 4), AddRemoveRow())
    assert private.remaining == Fraction(3, 2)
    assert list(private.transcript) == list(answers)


def test_measure_and_select_with_the_system_s_randomness() -> None:
    domain = Domain.of({"a": 2, "wide": 3000})
    wide = TinyTable(TinySchema(domain), [(1, 2999)] * 50)  # wide enough for two threads
    private = protect(wide, unit=AddRemoveRow(), budget=BUDGET)
    small, large = private.measure([A, ("wide",)], Gaussian(scale=4.0)).measurements
    assert np.abs(small.values - [0, 50]).max() < 40
    noise = large.values.copy()
    noise[2999] -= 50
    assert np.abs(noise).max() < 40
    assert 3.5 < noise.std() < 4.5
    assert abs(np.corrcoef(noise[:1500], noise[1500:])[0, 1]) < 0.2
    score = MarginalGap(
        {A: np.zeros(2), ("wide",): np.zeros(3000)},
        {A: 1.0, ("wide",): 1.0},
        {A: 0.0, ("wide",): 1e4},
    )
    assert private.select([A, ("wide",)], score, rho=Fraction(1)) == A


def test_measure_with_groups() -> None:
    source = Recorder(SeededRandomness(3))
    private = opened(source=source)
    query = LinearMap({"b": np.array([0, 1, 1])})
    (entry,) = private.measure([AB], Gaussian(scale=2.0), query=query).measurements
    assert entry.values.shape == (2, 2)
    assert entry.query.groups["b"].tolist() == [0, 1, 1]
    assert np.array_equal(source.steps[0].truth, query.apply(AB, table().count([AB])[AB]))  # type: ignore[union-attr, arg-type]
    assert private.account().rho_spent == entry.rho == Fraction(1, 8)


def test_an_answer_keeps_the_groups_of_its_own_columns_alone() -> None:
    """So that an answer with every code of its columns passes for what it is."""
    private = opened()
    query = LinearMap(
        {"b": np.array([0, 1, 1]), "c": np.zeros(private.domain.size("c"), dtype=np.int64)}
    )
    private.measure([A, AB, ABC], Gaussian(scale=2.0), query=query)
    alone, pair, whole = (m.query for m in private.transcript.measurements)
    assert alone.is_identity
    assert list(pair.groups) == ["b"]
    assert {a: g.tolist() for a, g in whole.groups.items()} == {
        a: g.tolist() for a, g in query.groups.items()
    }


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_every_charge_follows_from_the_unit(unit: Unit) -> None:
    private, moved = opened(unit), sensitivity(unit)
    private.measure([A, B], Gaussian(scale=30.0))
    private.select([A, B], gap(private, [A, B], weight=2.5), rho=Fraction(1, 3))
    first, second = private.account().debits
    assert first.rho == 2 * Fraction(moved.l2_squared, 2 * 30**2)
    assert second.rho == Fraction(1, 3)
    (choice,) = private.transcript.selections
    assert choice.sensitivity == 2.5 * moved.l1
    assert choice.epsilon**2 / 8 == pytest.approx(1 / 3)
    assert private.remaining == BUDGET.rho - first.rho - second.rho


def test_select_asks_for_the_exact_distribution() -> None:
    source = Recorder(SeededRandomness(2))
    private = opened(ReplaceRow(), source)
    score = gap(private, [A, AB], weight=0.5)
    chosen = private.select([A, AB], score, rho=Fraction(1, 2))
    (step,), (entry,) = source.steps, private.transcript.selections
    values, grid = score([A, AB], table(ReplaceRow()).count([A, AB]))
    assert step.scores == values  # type: ignore[union-attr]
    assert step.temperature == Fraction(2) * grid / (2 * Fraction(1, 2) * 2)  # type: ignore[union-attr]
    assert chosen == entry.chosen == [A, AB][step.answer]  # type: ignore[index]
    assert entry.candidates == (A, AB)
    assert entry.terms["weight"].tolist() == [0.5, 0.5]


def test_measured_twice_is_paid_twice_and_read_twice_is_the_same() -> None:
    private = opened()
    one, two = private.measure([A], Gaussian(scale=9.0)), private.measure([A], Gaussian(scale=9.0))
    assert len(private.account().debits) == 2
    assert one.measurements[0].values.tolist() != two.measurements[0].values.tolist()
    assert private.transcript.measurements[0].values.tolist() == one.measurements[0].values.tolist()
    both = private.measure([A, A], Gaussian(scale=9.0))
    assert len(both) == 2
    assert private.account().debits[-1].rho == 2 * private.account().debits[0].rho


def test_one_scan_serves_all_that_is_prepared() -> None:
    of = table()
    private = opened(of=of)
    private.prepare([A, B, AB, ABC, A])
    private.measure([A, B], Gaussian(scale=9.0))
    private.select([A, AB], gap(private, [A, AB]), rho=Fraction(1, 9))
    assert of.scans == [[A, B, AB, ABC]]
    private.measure([("c",), A], Gaussian(scale=9.0))
    assert of.scans[1:] == [[("c",)]]


def test_the_whole_budget_can_be_spent_and_no_more() -> None:
    private = opened()
    for _ in range(7):
        private.measure([A, B, AB], Gaussian(rho=BUDGET.rho / 7))
    assert private.remaining == 0
    before = private.account()
    for question in (
        lambda: private.measure([A], Gaussian(rho=Fraction(1, 10**9))),
        lambda: private.select([A, B], gap(private, [A, B]), rho=Fraction(1, 10**9)),
    ):
        with pytest.raises(BudgetError):
            question()
    assert private.account() == before


def test_the_account() -> None:
    account = opened(AddRemovePerson(3)).account()
    assert account.unit == AddRemovePerson(3)
    assert (account.rho_budget, account.epsilon, account.delta) == (
        BUDGET.rho,
        BUDGET.epsilon,
        BUDGET.delta,
    )
    assert not account.private
    assert "NOT PRIVATE" in account.sampler
    system = protect(table(), unit=AddRemoveRow(), budget=BUDGET).account()
    assert system.private
    assert "OpenDP" in system.sampler


# Who is let in.


def test_a_draft_is_refused() -> None:
    draft = TinyTable(TinySchema(tiny_domain(), draft=True), [])
    with pytest.raises(SchemaError, match=r"draft.*confirmed\(\)"):
        protect(draft, unit=AddRemoveRow(), budget=BUDGET)
    assert draft.scans == []


@pytest.mark.parametrize("unit", [AddRemovePerson(2), ReplacePerson(2)])
def test_persons_must_be_known(unit: Unit) -> None:
    with pytest.raises(SchemaError, match="person"):
        protect(table(AddRemoveRow()), unit=unit, budget=BUDGET)


def test_what_is_no_budget_or_unit() -> None:
    with pytest.raises(InputError, match="Budget"):
        protect(table(), unit=AddRemoveRow(), budget=1.0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unit"):
        protect(table(), unit="row", budget=BUDGET)  # type: ignore[arg-type]


def test_persons_are_cut_inside() -> None:
    source = Recorder(SeededRandomness(3))
    rows = TinyTable(
        TinySchema(tiny_domain(), person="who"),
        [(0, 0, 0)] * 10 + [(1, 1, 1)] * 2,
        [1] * 10 + [2] * 2,
    )
    opened(AddRemovePerson(4), source, rows).measure([A], Gaussian(scale=3.0))
    assert source.steps[0].truth.tolist() == [4, 2]  # type: ignore[union-attr]


def test_only_replacement_of_rows_tells_the_size() -> None:
    for unit in UNITS:
        entries = list(opened(unit).transcript)
        assert entries == ([PublicTotal(10)] if unit == ReplaceRow() else [])


# Refused before anything is spent.


def nothing_of(
    question: Callable[[Private], object], error: type[Exception], match: str = ""
) -> None:
    of = table()
    private = opened(of=of, vouched=[FixedScore])
    with pytest.raises(error, match=match):
        question(private)
    assert private.account().debits == ()
    assert len(private.transcript) == 0
    private.measure([A], Gaussian(scale=5.0))  # and the gate is still open


class FixedScore:
    """A score of zeros with a stated sensitivity."""

    def __init__(self, lipschitz: float = 1.0, *terms: str) -> None:
        self.lipschitz = lipschitz
        self.names = terms

    def check(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        """Nothing to check."""

    def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
        return ()

    def terms(self, candidates: Sequence[Clique]) -> dict[str, FloatArray]:
        return {name: np.ones(len(candidates)) for name in self.names}

    def __call__(
        self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        return GridScores((0,) * len(candidates), Fraction(1))


REFUSED: list[tuple[Callable[[Private], object], type[Exception], str]] = [
    (lambda p: p.measure([("nope",)], Gaussian(scale=1.0)), InputError, "nope"),
    (lambda p: p.measure([], Gaussian(scale=1.0)), InputError, "No marginal"),
    (lambda p: p.measure([A, ()], Gaussian(scale=1.0)), InputError, "no columns"),
    (lambda p: p.measure([A], Gaussian(rho=Fraction(3))), BudgetError, "remains"),
    (lambda p: p.measure([A], Gaussian(scale=0.1)), BudgetError, "remains"),
    (lambda p: p.measure([A], 0.1), InputError, "The noise is 0.1.*Gaussian"),  # type: ignore[arg-type]
    (lambda p: p.measure([A], Fraction(1)), InputError, "The noise is"),  # type: ignore[arg-type]
    (lambda p: p.measure_queries([TOTAL], 0.1), InputError, "The noise is 0.1.*Gaussian"),  # type: ignore[arg-type]
    (
        lambda p: p.measure([A], Gaussian(rho=Fraction(1)), query=LinearMap({"z": np.array([0])})),
        InputError,
        "z",
    ),
    (
        lambda p: p.measure([A], Gaussian(rho=Fraction(1)), query=LinearMap({"a": np.array([0])})),
        InputError,
        "groups",
    ),
    (
        lambda p: p.measure(
            [A], Gaussian(rho=Fraction(1)), query=LinearMap({"a": np.array([0, -1])})
        ),
        InputError,
        "groups",
    ),
    (lambda p: p.select([("nope",)], gap(p, [A]), rho=Fraction(1)), InputError, "nope"),
    (lambda p: p.select([], gap(p, [A]), rho=Fraction(1)), InputError, "No marginal"),
    (lambda p: p.select([A, A], gap(p, [A]), rho=Fraction(1)), InputError, "twice"),
    (lambda p: p.select([A, B], gap(p, [A]), rho=Fraction(1)), InputError, "lacks"),
    (lambda p: p.select([A], gap(p, [A], weight=0.0), rho=Fraction(1)), InputError, "weight"),
    (lambda p: p.select([A], gap(p, [A]), rho=Fraction(0)), InputError, "choice"),
    (lambda p: p.select([A], gap(p, [A]), rho=Fraction(-1)), InputError, "choice"),
    (lambda p: p.select([A], gap(p, [A]), rho=0.5), InputError, "Fraction"),  # type: ignore[arg-type]
    (lambda p: p.select([A], gap(p, [A]), rho=Fraction(10**900)), InputError, "choice"),
    (lambda p: p.select([A], gap(p, [A]), rho=Fraction(3)), BudgetError, "remains"),
    (lambda p: p.select([A], FixedScore(0.0), rho=Fraction(1)), InputError, "lipschitz"),
    (lambda p: p.select([A], FixedScore(float("nan")), rho=Fraction(1)), InputError, "lipschitz"),
    (lambda p: p.select([A], FixedScore(float("inf")), rho=Fraction(1)), InputError, "lipschitz"),
    (lambda p: p.select([A], FixedScore(1e308), rho=Fraction(1)), InputError, "lipschitz"),
    (lambda p: p.select([A], FixedScore(None), rho=Fraction(1)), InputError, "lipschitz"),  # type: ignore[arg-type]
    # a bound would be made of them as if they were MarginalGap's, which they are not
    (
        lambda p: p.select([A], FixedScore(1.0, "weight", "penalty"), rho=Fraction(1)),
        InputError,
        "are named",
    ),
    (lambda p: p.prepare([("nope",)]), InputError, "nope"),
]


@pytest.mark.parametrize(("question", "error", "match"), REFUSED)
def test_refused_at_no_cost(
    question: Callable[[Private], object], error: type[Exception], match: str
) -> None:
    nothing_of(question, error, match)


def test_a_closed_gate_answers_nothing() -> None:
    with opened() as private:
        private.measure([A], Gaussian(scale=5.0))
    for question in (
        lambda: private.measure([A], Gaussian(scale=5.0)),
        lambda: private.select([A, B], gap(private, [A, B]), rho=Fraction(1, 9)),
        lambda: private.prepare([B]),
    ):
        with pytest.raises(MargraveError, match="closed"):
            question()
    assert len(private.transcript) == len(private.account().debits) == 1
    private.close()  # twice is no harm


# What goes wrong after the charge.

CANARY = 271_828_182_845


class Failing:
    """A source that keeps the truth in its frames and in its words when it fails, for one in ``error``."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error
        self.asked = 0

    def describe(self) -> str:
        return "failing"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        self.asked += 1
        secret = counts.copy()
        raise self.error(f"could not noise {secret.tolist()}")

    def choose(self, scores: Sequence[int], temperature: Fraction) -> int:
        self.asked += 1
        raise self.error(f"could not choose among {list(scores)}")


class FullTable(TinyTable):
    """A table whose counts give themselves away."""

    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        return {c: counts + CANARY for c, counts in super().count(cliques).items()}


def ask(private: Private, how: str, score: Any = None) -> None:
    """Half the budget on a question of one kind."""
    if how == "measure":
        private.measure([A], Gaussian(rho=Fraction(1)))
    else:
        private.select([A, B], score or gap(private, [A, B]), rho=Fraction(1))


def holds_canary(value: object, depth: int = 3) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iuf" and bool(
            np.any(np.abs(value.astype(float) - CANARY) < 1e6)
        )
    if isinstance(value, dict | list | tuple) and depth:
        items = value.values() if isinstance(value, dict) else value
        return any(holds_canary(v, depth - 1) for v in items)
    if isinstance(value, types.FunctionType) and depth:
        return any(holds_canary(cell.cell_contents, depth - 1) for cell in value.__closure__ or ())
    return str(CANARY)[:6] in repr(value) if isinstance(value, int | str | float) else False


def leaks(error: BaseException | None) -> list[str]:
    """Where the canary shows: in words, in chained errors, in the locals of any frame of the traceback."""
    found = []
    while error is not None:
        if str(CANARY)[:6] in str(error):
            found.append("words")
        step = error.__traceback__
        while step is not None:
            found += [
                f"{step.tb_frame.f_code.co_name}.{k}"
                for k, v in step.tb_frame.f_locals.items()
                if holds_canary(v)
            ]
            step = step.tb_next
        error = error.__context__
    return found


@pytest.mark.parametrize(
    "kind", [ValueError, MemoryError, ZeroDivisionError, KeyboardInterrupt, SystemExit]
)
@pytest.mark.parametrize("how", ["measure", "select"])
def test_a_failure_after_the_charge_closes_the_gate_and_tells_nothing(
    kind: type[BaseException], how: str
) -> None:
    source = Failing(kind)
    private = opened(source=source, of=FullTable(TinySchema(tiny_domain()), [(0, 0, 0)]))
    wanted = kind if issubclass(kind, KeyboardInterrupt | SystemExit) else MargraveError
    with pytest.raises(wanted) as caught:
        ask(private, how)
    assert leaks(caught.value) == []
    assert private.account().rho_spent == 1
    assert len(private.transcript) == 0
    with pytest.raises(MargraveError, match="closed"):
        private.measure([A], Gaussian(rho=Fraction(1, 2)))
    assert source.asked == 1
    assert reachable_arrays(private) == []


def test_a_score_that_fails_tells_nothing() -> None:
    class Bad(FixedScore):
        def __call__(
            self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
        ) -> GridScores:
            secret = dict(counts)
            raise ValueError(f"bad {secret}")

    private = opened(of=FullTable(TinySchema(tiny_domain()), [(0, 0, 0)]), vouched=[Bad])
    with pytest.raises(MargraveError, match=r"ValueError.*charge stands") as caught:
        private.select([A], Bad(), rho=Fraction(1))
    assert leaks(caught.value) == []
    assert private.remaining == 1


@pytest.mark.parametrize("wrong", ["length", "frozen counts", "float noise", "shape", "index"])
def test_answers_of_the_wrong_kind_close_the_gate(wrong: str) -> None:
    class Bad(FixedScore):
        def __call__(
            self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
        ) -> GridScores:
            if wrong == "frozen counts":
                counts[A][0] = 0
            return GridScores((0,) * (len(candidates) + (wrong == "length")), Fraction(1))

    class Source(Failing):
        def gaussian(self, counts: IntArray, scale: float) -> IntArray:
            return counts * 1.0 if wrong == "float noise" else counts[1:]  # type: ignore[return-value]

        def choose(self, scores: Sequence[int], temperature: Fraction) -> int:
            return 7 if wrong == "index" else 0

    private = opened(source=Source(ValueError), vouched=[Bad])
    with pytest.raises(MargraveError, match="gate is closed"):
        ask(private, "measure" if wrong in ("float noise", "shape") else "select", Bad())
    assert private.remaining == 1


def test_a_table_that_cannot_be_read_costs_nothing_and_tells_nothing() -> None:
    class Broken(TinyTable):
        def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
            secret = np.full(3, CANARY)
            raise RuntimeError(f"could not convert {secret}")

    private = opened(of=Broken(TinySchema(tiny_domain()), []))
    with pytest.raises(MargraveError, match=r"RuntimeError.*Nothing was spent") as caught:
        private.measure([A], Gaussian(rho=Fraction(1)))
    assert leaks(caught.value) == []
    assert private.remaining == BUDGET.rho


@pytest.mark.parametrize("change", [lambda m: m.astype(float), lambda m: m.reshape(-1)[1:]])
def test_a_table_that_counts_wrongly_is_refused(change: Callable[[IntArray], IntArray]) -> None:
    class Wrong(TinyTable):
        def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
            return {c: change(m) for c, m in super().count(cliques).items()}

    private = opened(of=Wrong(TinySchema(tiny_domain()), []))
    with pytest.raises(MargraveError, match="wrong shape or type"):
        private.prepare([A])


# The back doors.


def test_no_copies_no_pickles_no_heirs() -> None:
    private = opened()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps, lambda p: p.__reduce__(), vars):
        with pytest.raises(TypeError):
            attempt(private)
    with pytest.raises(TypeError, match="final"):
        type("Heir", (Private,), {})  # type: ignore[misc]


def test_its_words_show_no_rows() -> None:
    private = opened()
    private.measure([A], Gaussian(rho=Fraction(1, 2)))
    assert (
        repr(private) == str(private) == "Private(unit='add or remove one row', rho=2, spent=0.5)"
    )


def reachable_arrays(start: object) -> list[np.ndarray]:
    """Every array that can be reached from an object, not through modules, types or functions."""
    seen: dict[int, object] = {}
    queue = [start]
    found = []
    while queue:
        value = queue.pop()
        if id(value) in seen or isinstance(value, types.ModuleType | type | types.FunctionType):
            continue
        seen[id(value)] = value
        if isinstance(value, np.ndarray):
            found.append(value)
        queue += gc.get_referents(value)
    return found


def test_no_true_count_is_left_after_closing() -> None:
    of = FullTable(TinySchema(tiny_domain()), [(0, 0, 0), (1, 2, 3)])
    private = opened(of=of)
    private.measure([A, AB], Gaussian(rho=Fraction(1, 2)))
    private.select([A, AB], gap(private, [A, AB]), rho=Fraction(1, 2))
    truth = [m.tolist() for m in of.count([A, AB]).values()]
    assert any(
        m.tolist() in truth for m in reachable_arrays(private)
    )  # the scan does see them while it is open
    private.close()
    assert not any(m.tolist() in truth for m in reachable_arrays(private))
    outside = (private.transcript, private.account())
    assert not any(m.tolist() in truth for m in reachable_arrays(outside))


def test_two_threads_do_not_overspend() -> None:
    private = opened()
    granted = []

    def spend() -> None:
        for _ in range(30):
            try:
                private.measure([A], Gaussian(rho=BUDGET.rho / 40))
                granted.append(1)
            except BudgetError:
                pass

    threads = [threading.Thread(target=spend) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == len(private.transcript) == 40
    assert private.remaining == 0


# Loss replay: what two neighboring tables can differ by is what was charged.


def everything(private: Private) -> None:
    """A run that asks both questions and follows the answers."""
    share = private.rho / 4
    private.prepare([A, B, AB, ABC])
    noisy = private.measure([A, B], Gaussian(rho=share)).measurements
    candidates = [AB, ABC, ("b", "c")] if noisy[0].values.sum() % 2 else [AB, ABC]
    chosen = private.select(candidates, gap(private, candidates, weight=1.5), rho=share)
    private.measure([chosen], Gaussian(rho=private.remaining))


def worst_choice(one: TinyTable, other: TinyTable, unit: Unit) -> Callable[[Private], None]:
    """A choice between two marginals, one estimated as on one table and one as on the other: the first gap opens by
    all that the unit allows while the second closes."""
    limit = rows_per_person(unit)
    first, second = (t if limit is None else t.bounded(limit) for t in (one, other))
    estimates = {A: first.count([A])[A].astype(float), B: second.count([B])[B].astype(float)}
    score = MarginalGap(estimates, dict.fromkeys(estimates, 1.0), dict.fromkeys(estimates, 0.0))
    return lambda private: private.select([A, B], score, rho=private.rho) and None


def measured(private: Private) -> None:
    private.measure([A, B, ("c",)], Gaussian(rho=private.rho))


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("worst", [False, True])
def test_the_loss_never_exceeds_the_charge(unit: Unit, worst: bool) -> None:
    for seed in range(40):
        pair = neighbors(unit, np.random.default_rng(seed), worst=worst)
        loss, charged = loss_replay(everything, *pair, unit, BUDGET, seed=seed)
        assert charged == BUDGET.rho
        assert loss <= charged


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_worst_neighbors_cost_what_is_charged(unit: Unit) -> None:
    pair = neighbors(unit, np.random.default_rng(1), worst=True)
    loss, charged = loss_replay(measured, *pair, unit, BUDGET)
    assert Fraction(999, 1000) < loss / charged <= 1


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_worst_choice_costs_what_is_charged(unit: Unit) -> None:
    pair = neighbors(unit, np.random.default_rng(1), worst=True)
    loss, charged = loss_replay(worst_choice(*pair, unit), *pair, unit, BUDGET)
    assert Fraction(999, 1000) < loss / charged <= 1


@pytest.mark.parametrize("unit", [ReplaceRow(), AddRemovePerson(3), ReplacePerson(3)], ids=str)
def test_replay_finds_the_sensitivity_of_another_unit(
    unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the constants of adding or removing a row, the loss is above the charge: 2 times for replacement."""
    monkeypatch.setattr(
        "margrave.privacy.requests.request.sensitivity", lambda *_: Sensitivity(1, 1)
    )
    pair = neighbors(unit, np.random.default_rng(1), worst=True)
    loss, charged = loss_replay(measured, *pair, unit, BUDGET)
    assert loss / charged > Fraction(199, 100)


def test_replay_finds_a_monotonic_price_on_a_score_that_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "margrave.privacy.requests.select.epsilon_of",
        lambda rho: 2 * Fraction(float(8 * rho) ** 0.5),
    )
    pair = neighbors(AddRemoveRow(), np.random.default_rng(1), worst=True)
    loss, charged = loss_replay(worst_choice(*pair, AddRemoveRow()), *pair, AddRemoveRow(), BUDGET)
    assert loss / charged > 3


def test_replay_finds_persons_that_are_not_cut() -> None:
    class Uncut(TinyTable):
        def bounded(self, rows_per_person: int) -> TinyTable:
            return self

    unit = AddRemovePerson(3)
    one, other = (
        Uncut(t.schema, t.data, t.persons)
        for t in neighbors(unit, np.random.default_rng(1), worst=True)
    )
    loss, charged = loss_replay(measured, one, other, unit, BUDGET)
    assert loss / charged > 3


def test_replay_finds_control_flow_that_reads_rows() -> None:
    one, other = neighbors(AddRemoveRow(), np.random.default_rng(0))

    def peeks(private: Private) -> None:
        many = private._table.rows() > min(one.rows(), other.rows())  # type: ignore[union-attr]
        private.measure([A, B] if many else [A], Gaussian(rho=private.rho))

    with pytest.raises(ControlFlowDiffersError):
        loss_replay(peeks, one, other, AddRemoveRow(), BUDGET)


def test_the_same_answers_from_an_empty_table() -> None:
    """Non-interference: with the answers of a transcript replayed, everything the gate hands out is the same."""
    first = opened()
    everything(first)
    again = opened(
        source=ReplayRandomness(first.transcript), of=TinyTable(TinySchema(tiny_domain()), [])
    )
    everything(again)
    for one, other in zip(first.transcript, again.transcript, strict=True):
        assert type(one) is type(other)
        if isinstance(one, Measurement) and isinstance(other, Measurement):
            assert (one.clique, one.scale, one.rho) == (other.clique, other.scale, other.rho)
            assert np.array_equal(one.values, other.values)
        if isinstance(one, Selection) and isinstance(other, Selection):
            assert (one.candidates, one.chosen, one.epsilon) == (
                other.candidates,
                other.chosen,
                other.epsilon,
            )
    assert first.account().debits == again.account().debits


# The table in memory behind the gate.


def in_memory(table: TinyTable) -> MemoryTable:
    schema = replace(
        Schema.coded(dict(zip(table.domain, table.domain.sizes, strict=True))),
        person=table.schema.person,
    )
    columns = {a: np.array([row[i] for row in table.data]) for i, a in enumerate(table.domain)}
    persons = np.array(table.persons) if table.persons else None
    return MemoryTable(schema, Codes.of(schema.domain, columns), persons)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_table_in_memory_costs_the_same(unit: Unit) -> None:
    """Persons are cut beforehand here: the table in memory draws whom it keeps, differently each time."""
    limit = rows_per_person(unit)
    for seed in range(3):
        pair = neighbors(unit, np.random.default_rng(seed), worst=True)
        tiny = [t if limit is None else t.bounded(limit) for t in pair]
        expected = loss_replay(everything, *tiny, unit, BUDGET, seed=seed)
        assert loss_replay(everything, *map(in_memory, tiny), unit, BUDGET, seed=seed) == expected


def test_the_table_in_memory_is_cut() -> None:
    source = Recorder(SeededRandomness(3))
    rows = TinyTable(
        TinySchema(tiny_domain(), person="who"),
        [(0, 0, 0)] * 10 + [(1, 1, 1)] * 2,
        [1] * 10 + [2] * 2,
    )
    private = protect(in_memory(rows), unit=AddRemovePerson(4), budget=BUDGET, randomness=source)
    private.measure([A], Gaussian(scale=3.0))
    assert source.steps[0].truth.tolist() == [4, 2]  # type: ignore[union-attr]


def test_a_fork_cannot_spend_the_budget_once_more() -> None:
    """Without a ledger file too: both processes have the whole of it in memory."""
    code = """
import os
from fractions import Fraction
from tests.support.conformance import SIZES, memory_table
from margrave.errors import LedgerError
from margrave.accounting import AddRemoveRow, Budget
from margrave.privacy import Gaussian, protect
private = protect(memory_table(SIZES, [(0, 0, 0)]), unit=AddRemoveRow(), budget=Budget.zcdp(1))
if os.fork() == 0:
    try:
        private.measure([("a",)], Gaussian(rho=Fraction(1)))
    except LedgerError as error:
        os._exit(42 if "another process" in str(error) else 1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 42
private.measure([("a",)], Gaussian(rho=Fraction(1)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_was_spent_before_an_error_is_told() -> None:
    def failing(rho: Fraction) -> None:
        table = memory_table(SIZES, [(0, 0, 0)])
        with protect(table, unit=AddRemoveRow(), budget=Budget.zcdp(1)) as private:
            if rho:
                private.measure([("a",)], Gaussian(rho=rho))
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        failing(Fraction(1, 4))
    assert caught.value.__notes__ == [
        "rho 0.25 of 1 had been spent. A journal would have kept the answers for a run that goes on."
    ]
    with pytest.raises(ValueError, match="mine") as caught:
        failing(Fraction(0))
    assert not hasattr(caught.value, "__notes__")


def test_a_score_of_another_formula_names_its_terms_otherwise() -> None:
    with opened(vouched=[FixedScore]) as private:
        private.select([A, B], FixedScore(1.0, "gap"), rho=Fraction(1, 9))
        assert private.transcript.selections[-1].terms["gap"].tolist() == [1.0, 1.0]
