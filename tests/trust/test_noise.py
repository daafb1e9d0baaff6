"""Released values are integers, with noise of their own in every cell, and do not tell the order of rows or columns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.data import read_table
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError
from margrave.marginal import QueryFamily
from margrave.privacy import (
    Gaussian,
    MarginalGap,
    QueryGap,
    SeededRandomness,
    SystemRandomness,
    protect,
)
from margrave.schema import Categorical, Integer, Schema
from margrave.testing.noninterference import leaving_release
from margrave.testing.replay import Chosen, Noisy, Recorder
from margrave.types import Clique, IntArray
from tests.support.conformance import CASES, SIZES, memory_table, run_on, some_rows
from tests.support.first_cases import FIRST_CASES
from tests.support.tiny_table import TinySchema, TinyTable, tiny_domain

BUDGET = Budget.zcdp(Fraction(2))


@pytest.mark.parametrize("cells", [2, 8, 511, 512, 1025, 5000])
def test_every_cell_has_noise_of_its_own(cells: int) -> None:
    """In answers that are drawn in one piece, in two, in more; a repeat by chance is less likely than 1e-7."""
    source = SystemRandomness()
    zeros = np.zeros(cells, dtype=np.int64)
    noise = np.concatenate([source.gaussian(zeros, 2.0**49) for _ in range(2)])
    assert np.unique(noise).size == 2 * cells


@pytest.mark.parametrize("case", FIRST_CASES)
def test_every_released_value_is_an_integer(case: str) -> None:
    """Noisy counts are 64-bit integers; scores are Python's, on a grid that is the same for every table."""
    mechanism, grids = CASES[case](Domain.of(SIZES)), []
    for seed, rows in enumerate((some_rows(SIZES, 40), [])):
        source = Recorder(SeededRandomness(seed))
        release = run_on(mechanism, memory_table(SIZES, rows), AddRemoveRow(), BUDGET, source)
        assert all(m.values.dtype == np.int64 for m in release.transcript.measurements)
        for step in source.steps:
            if isinstance(step, Noisy):
                assert step.truth is not None
                assert (step.truth.dtype, step.answer.dtype) == (np.int64, np.int64)
            if isinstance(step, Chosen):
                assert {type(score) for score in step.scores or ()} == {int}
                assert type(step.temperature) is Fraction
        grids.append([s.temperature for s in source.steps if isinstance(s, Chosen)][:1])
    # the number of selections of some, or their candidates, and so their prices, follow from a noisy answer
    if case not in {"dual-query ruled", "aim few rows", "aim shortlist"} and not case.startswith(
        "privmrf"
    ):
        assert grids[0] == grids[1]


@pytest.mark.parametrize("case", FIRST_CASES)
def test_rows_in_another_order_give_the_same_bytes(case: str, tmp_path: Path) -> None:
    """The noise repeated by a seed, everything that a release gives is the same to the bit."""
    mechanism, rows = CASES[case](Domain.of(SIZES)), some_rows(SIZES, 60, seed=4)
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    one, other = (
        leaving_release(
            run_on(mechanism, memory_table(SIZES, r), AddRemoveRow(), BUDGET, SeededRandomness(3)),
            tmp_path,
        )
        for r in (rows, shuffled)
    )
    assert one == other


def test_columns_in_another_order_are_the_same_table() -> None:
    """A table is read by the names of its columns, whatever comes first in it."""
    schema = Schema(
        (Categorical("b", ["x", "y"]), Integer("a", 0, 9), Categorical("c", ["y", "x"]))
    )
    rows = pa.table({"a": [1, 2, 3, 3], "b": ["x", "y", "y", "y"], "c": ["x", "x", "y", "x"]})
    whole = [("b", "a", "c")]
    counts = [
        read_table(rows.select(order), schema).count(whole) for order in ("abc", "cba", "bca")
    ]
    assert all(np.array_equal(c[whole[0]], counts[0][whole[0]]) for c in counts)
    codes = [schema.encode(rows.select(order)).values for order in ("abc", "cba", "bca")]
    assert all(np.array_equal(c, codes[0]) for c in codes)
    assert counts[0][whole[0]].sum() == 4
    assert counts[0][whole[0]][0].sum() == 1  # one row has x in b


class Large(TinyTable):
    """A table that says it has as many rows in one cell as it is told."""

    rows_told = 0

    def rows(self) -> int:
        return self.rows_told

    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        found = super().count(cliques)
        for counts in found.values():
            counts.flat[0] = self.rows_told
        return found


@pytest.mark.parametrize("rows", [2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**53 - 1, 2**53 + 1, 2**62])
def test_counts_at_the_ends_of_every_type_are_exact(rows: int) -> None:
    """Through the gate and the sampler: what is added is noise, and nothing else."""
    table = Large(TinySchema(tiny_domain()), [])
    table.rows_told = rows
    for source in (SystemRandomness(), SeededRandomness(2)):
        private = protect(table, unit=AddRemoveRow(), budget=BUDGET, randomness=source)
        (noisy,) = private.measure([("a",)], Gaussian(scale=5.0)).measurements
        assert abs(int(noisy.values[0]) - rows) < 100
        assert abs(int(noisy.values[1])) < 100


@pytest.mark.parametrize(("rows", "answered"), [(2**41 - 1, True), (2**41, False), (2**62, False)])
def test_choices_beyond_exact_arithmetic_are_refused(rows: int, answered: bool) -> None:
    table = Large(TinySchema(tiny_domain()), [])
    table.rows_told = rows
    private = protect(table, unit=AddRemoveRow(), budget=BUDGET, randomness=SeededRandomness(2))
    cliques = [("a",), ("b",)]
    estimates = {c: np.zeros(private.domain.shape(c)) for c in cliques}
    gap = MarginalGap(estimates, dict.fromkeys(cliques, 1.0), dict.fromkeys(cliques, 0.0))
    if answered:
        assert private.select(cliques, gap, rho=Fraction(1)) in cliques
    else:
        with pytest.raises(MargraveError, match=r"too many rows.*charge stands") as caught:
            private.select(cliques, gap, rho=Fraction(1))
        assert str(rows) not in str(caught.value)
    assert private.remaining == 1


@pytest.mark.parametrize("kind", ["select", "measure scores", "select query"])
def test_a_public_number_of_rows_is_refused_before_the_charge(kind: str) -> None:
    table = Large(TinySchema(tiny_domain()), [])
    table.rows_told = 2**41
    private = protect(table, unit=ReplaceRow(), budget=BUDGET, randomness=SeededRandomness(2))
    gap = MarginalGap.plain({("a",): np.zeros(private.domain.shape(("a",)))})
    queries = QueryFamily.cells(private.domain, [("a",)])
    before = private.remaining
    ask: dict[str, Callable[[], object]] = {
        "select": lambda: private.select([("a",)], gap, rho=Fraction(1)),
        "measure scores": lambda: private.measure_scores([("a",)], gap, Gaussian(rho=Fraction(1))),
        "select query": lambda: private.select_query(
            queries, QueryGap(gap.estimates), rho=Fraction(1)
        ),
    }
    with pytest.raises(InputError, match="too many rows") as caught:
        ask[kind]()
    assert "charge" not in str(caught.value)
    assert private.remaining == before
    assert private.measure([("a",)], Gaussian(rho=Fraction(1)))  # the gate is open


class Slow:
    """A source that takes its time, and notes how many ask at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0

    def describe(self) -> str:
        return "NOT PRIVATE: slow"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.005)
        self.inside -= 1
        return counts + 1

    def choose(self, scores: Sequence[int], temperature: Fraction) -> int:
        return 0


def test_threads_that_ask_one_gate_are_answered_one_by_one() -> None:
    """Every answer has its debit, in its order, also when the gate is closed in the middle."""
    source = Slow()
    private = protect(
        TinyTable(TinySchema(tiny_domain()), [(0, 0, 0)] * 9), unit=AddRemoveRow(), budget=BUDGET, randomness=source
    )  # fmt: skip
    answers: list[Any] = []
    refusals: list[str] = []

    def ask(column: str) -> None:
        for _ in range(12):
            try:
                answers.append(private.measure([(column,)], Gaussian(rho=Fraction(1, 40))))
            except MargraveError as error:
                refusals.append(error.message)

    threads = [threading.Thread(target=ask, args=(c,)) for c in "abca"]
    for thread in threads:
        thread.start()
    time.sleep(0.06)
    private.close()
    for thread in threads:
        thread.join()
    asked = [m.clique[0] for m in private.transcript.measurements]
    assert source.most == 1
    assert set(refusals) == {"The gate is closed."}
    assert 1 <= len(asked) < 48
    assert len(answers) == len(asked)
    assert [d.what for d in private.account().debits] == [f"measure {a}" for a in asked]
