"""Forests: what is paid for what, which pairs are selected, and what the model explains already."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.mechanism import name_or_default
from margrave.domain import Domain
from margrave.mechanisms import Forests
from margrave.mechanisms.parts.capacity import Capacity, fit_within
from margrave.mechanisms.parts.tree import forest
from margrave.models import GraphicalFit
from margrave.planning import plan_of
from margrave.privacy import SeededRandomness
from margrave.release import Release
from margrave.run import Run
from margrave.schema import Schema
from margrave.transcript import Measurement, ScoreMeasurement, Transcript
from margrave.types import Clique
from tests.support.conformance import memory_table, run_on

NAMES = ("a", "b", "c", "d")
DOMAIN = Domain.of(dict.fromkeys(NAMES, 4))


def made(mechanism: Forests, rho: float = 1.0, rows: int = 4000) -> Release:
    """Release a chain a - b - c, and d independent of them."""
    rng = np.random.default_rng(0)
    a = rng.integers(4, size=rows)
    b = np.where(rng.random(rows) < 0.1, rng.integers(4, size=rows), a)
    c = np.where(rng.random(rows) < 0.1, rng.integers(4, size=rows), b)
    records = [*zip(*(x.tolist() for x in (a, b, c, rng.integers(4, size=rows))), strict=True)]
    table = memory_table(dict.fromkeys(NAMES, 4), records)
    return run_on(mechanism, table, AddRemoveRow(), Budget.zcdp(rho), SeededRandomness(1))


def test_a_third_a_tenth_and_the_rest() -> None:
    release = made(Forests())
    debits = [debit.rho for debit in release.account.debits]
    assert debits[0] == Fraction(1, 3)
    assert debits[1] == Fraction(1, 10)
    assert sum(debits) == 1
    assert debits[-1] >= Fraction(1, 10)  # the columns again, with what the forests leave
    assert [e.clique for e in release.transcript.measurements[-4:]] == [(a,) for a in NAMES]
    assert sum(isinstance(e, ScoreMeasurement) for e in release.transcript) == 1
    assert not release.transcript.selections


def test_a_forest_has_the_largest_gains_and_no_cycle() -> None:
    gains = {("a", "b"): 5.0, ("b", "c"): 4.0, ("a", "c"): 3.0, ("c", "d"): -1.0, ("b", "d"): 0.5}
    roomy = Capacity(GraphicalFit(), DOMAIN, 1.0)
    assert forest(gains, roomy, [(a,) for a in NAMES]) == [("a", "b"), ("b", "c"), ("b", "d")]
    pairs = Capacity(GraphicalFit(), DOMAIN, 8 * 24 / 2**20)  # one pair and two columns
    assert forest(gains, pairs, [(a,) for a in NAMES]) == [("a", "b")]


def test_a_pair_that_the_model_explains_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gains: list[dict[Clique, float]] = []

    def noted(given: dict[Clique, float], capacity: Capacity, known: list[Clique]) -> list[Clique]:
        gains.append(dict(given))
        return forest(given, capacity, known)

    monkeypatch.setattr("margrave.mechanisms.forests.forest", noted)
    measured = made(Forests(forests=2)).transcript.cliques
    first, second = gains
    assert {("a", "b"), ("b", "c")} <= set(measured)  # a and c depend on each other by b alone
    assert min(first[r] for r in (("a", "b"), ("b", "c"), ("a", "c"))) > 4000
    assert second[("a", "c")] < first[("a", "c")] / 500


@pytest.mark.parametrize(
    ("columns", "workload", "name"),
    [(50, False, "aim"), (51, False, "forests"), (51, True, "aim")],
)
def test_the_default_by_width(columns: int, workload: bool, name: str) -> None:
    domain = Domain.of({f"c{i}": 2 for i in range(columns)})
    assert name_or_default(None, domain, serves=workload) == name
    assert name_or_default("mst", domain, serves=workload) == "mst"
    if not workload:
        schema = Schema.coded(dict.fromkeys(domain, 2))
        assert Run(schema=schema, budget=Budget.zcdp(1.0)).plan().mechanism == name


def test_a_plan_of_more_cells_than_a_float_holds() -> None:
    domain = Domain.of({f"c{i}": 20 for i in range(250)})
    planned = plan_of(domain, Forests(), budget=Budget.zcdp(1.0), unit=AddRemoveRow())
    assert planned.counted == 250 + 31_125


def test_the_released_model_leaves_rare_codes_out_above_its_limit() -> None:
    domain = Domain.of({"a": 60, "b": 60})
    counts = np.where(np.arange(60) < 10, 1000.0, 25.0)
    pair = np.outer(counts, counts) / counts.sum()
    answers = [((a,), counts) for a in domain] + [(("a", "b"), pair)]
    transcript = Transcript(tuple(Measurement(c, v, 10.0, Fraction(1, 200)) for c, v in answers))
    whole, least = GraphicalFit(), 8 * 10 * 10 / 2**20
    assert fit_within(whole, domain, transcript, 1.0) == whole
    small = fit_within(whole, domain, transcript, least)
    assert small.empty_below > whole.empty_below
    cells = [
        f.cells(f.distinguished(domain, transcript, last=True), transcript.cliques)
        for f in (whole, small)
    ]
    assert cells[1] < cells[0]
    published = replace(whole, empty_below=0.0)
    assert fit_within(published, domain, transcript, least) == published
