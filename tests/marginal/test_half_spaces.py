"""Half-spaces as queries: what they count, what they cost, and who believes them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, sensitivity
from margrave.domain import Domain
from margrave.errors import InputError, LedgerError, ReleaseError
from margrave.marginal import TOTAL, HalfSpace, LinearQuery
from margrave.models import (
    FAMILIES,
    EntropyProjectionFit,
    GeneticFit,
    GraphicalFit,
    MultiplicativeWeightsFit,
    RelaxedFit,
)
from margrave.privacy import Gaussian, SeededRandomness, protect
from margrave.privacy.noise import NoisePrice
from margrave.privacy.requests import MeasureQueries
from margrave.release import Release
from margrave.release.serialization import Shelf
from margrave.release.transcript_codec import transcript_from_plain, transcript_to_plain
from margrave.report import render
from margrave.testing.replay import loss_replay
from margrave.transcript import Answer, PublicTotal, Transcript
from tests.support import fake_model
from tests.support.conformance import memory_table
from tests.support.tiny_table import UNITS, TinyTable, neighbors, tiny_domain

DOMAIN = tiny_domain()
HARD = HalfSpace.of(DOMAIN, {"c": 0.4, "a": 0.6}, 0.7)
SMOOTH = HalfSpace.of(DOMAIN, {"b": 2.0, "c": -1.5}, 0.25, slope=5.0)
MISSING = Domain(("a", "b"), (3, 5), missing=frozenset("b"))


def by_hand(query: HalfSpace, domain: Domain, rows: list[tuple[int, ...]]) -> int:
    """Row by row, and the hard ones in fractions."""
    found = 0
    for row in rows:
        codes = [row[domain.index(a)] for a in query.clique]
        sizes = [domain.size(a) - (a in domain.missing) for a in query.clique]
        if any(code >= size for code, size in zip(codes, sizes, strict=True)):
            continue
        score = sum(
            Fraction(coefficient) * Fraction(2 * code + 1, 2 * size)
            for coefficient, code, size in zip(query.coefficients, codes, sizes, strict=True)
        ) - Fraction(query.threshold)
        if query.slope is None:
            found += score > 0
        else:
            found += round(1_000_000 / (1 + math.exp(-query.slope * float(score))))
    return found


def bounded(table: TinyTable) -> TinyTable:
    return table.bounded(3) if table.persons and table.schema.person else table


@given(
    seed=st.integers(0, 2**32),
    numbers=st.tuples(*[st.floats(0.05, 3).flatmap(lambda x: st.sampled_from([x, -x]))] * 3),
    threshold=st.floats(-2, 2),
    slope=st.sampled_from([None, 5.0, 40.0]),
)
@settings(max_examples=60, deadline=None)
def test_it_counts_the_rows_that_are_beyond(
    seed: int, numbers: tuple[float, ...], threshold: float, slope: float | None
) -> None:
    table, _ = neighbors(UNITS[0], np.random.default_rng(seed))
    query = HalfSpace.of(DOMAIN, dict(zip("cab", numbers, strict=True)), threshold, slope)
    assert query.clique == ("a", "b", "c")
    counted = query.count(table.count([query.clique])[query.clique])
    assert isinstance(counted, int)
    # whole millionths: where the sigmoid ends in a half, a row may be rounded to either side
    assert abs(counted - by_hand(query, DOMAIN, table.data)) <= (
        0 if slope is None else len(table.data)
    )


def test_it_is_beyond_and_not_on_the_threshold() -> None:
    counts = np.array([1, 10, 100, 1000])
    on = HalfSpace.of(DOMAIN, {"c": 1.0}, 0.625)
    assert on.count(counts) == 1000
    assert replace(on, threshold=0.624).count(counts) == 1100
    assert HalfSpace.of(DOMAIN, {"c": -1.0}, -0.625).count(counts) == 11


@pytest.mark.parametrize("slope", [None, 5.0])
def test_who_misses_a_column_counts_nothing(slope: float | None) -> None:
    query = HalfSpace.of(MISSING, {"a": 1.0, "b": 1.0}, 0.8, slope)
    assert query.lines == (3, 4)
    counts = np.arange(15).reshape(3, 5)
    rows = [cell for cell in np.ndindex(3, 5) for _ in range(counts[cell])]
    found = query.count(counts)
    assert found == pytest.approx(
        by_hand(query, MISSING, rows), abs=0 if slope is None else len(rows)
    )
    counts[:, 4] = 99
    assert query.count(counts) == found


def test_a_smooth_count_is_near_the_hard_one_where_the_slope_is_steep() -> None:
    counts = np.arange(24).reshape(2, 3, 4)
    hard = HalfSpace.of(DOMAIN, {"a": 0.6, "b": 0.1, "c": 0.37}, 0.71)
    steep = replace(hard, slope=4000.0)
    assert steep.count(counts) == 1_000_000 * hard.count(counts)


# How far it moves.


@pytest.mark.parametrize(
    "query", [HARD, SMOOTH, replace(SMOOTH, slope=500.0)], ids=lambda q: q.describe
)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_one_count_moves_as_far_as_said_and_no_further(unit: Any, query: HalfSpace) -> None:
    reached = 0
    for seed in range(60):
        one, other = map(bounded, neighbors(unit, np.random.default_rng(seed), worst=seed % 2 == 0))
        moved = [query.count(t.count([query.clique])[query.clique]) for t in (one, other)]
        reached = max(reached, abs(int(moved[0] - moved[1])))
    limit = sensitivity(unit, query)
    rows = getattr(unit, "max_rows", 1)
    assert limit.l1 == rows * (1 if query.slope is None else 1_000_000)
    assert limit.l2_squared == limit.l1**2
    assert reached == limit.l1 if query is HARD else 0.5 * limit.l1 < reached <= limit.l1


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_loss_never_exceeds_the_charge(unit: Any) -> None:
    def run(private: Any) -> None:
        private.measure_queries([HARD, TOTAL], Gaussian(rho=Fraction(1, 2)))
        private.measure_queries(
            [SMOOTH, replace(SMOOTH, slope=500.0)], Gaussian(rho=Fraction(1, 2))
        )

    largest = Fraction(0)
    for seed in range(8):
        one, other = neighbors(unit, np.random.default_rng(seed), worst=seed % 2 == 0)
        loss, charged = loss_replay(run, one, other, unit, Budget.zcdp(Fraction(2)), seed=seed)
        assert charged == 1
        assert 0 <= loss <= charged
        largest = max(largest, loss)
    assert largest > Fraction(1, 10)


def test_the_noise_is_of_the_stated_scale() -> None:
    table = memory_table({a: DOMAIN.size(a) for a in DOMAIN}, [(1, 1, 3)] * 20)
    budget = Budget.zcdp(Fraction(24))
    with protect(
        table, unit=ReplaceRow(), budget=budget, randomness=SeededRandomness(5)
    ) as private:
        private.prepare([SMOOTH.clique, HARD.clique])
        smooth = private.measure_queries([SMOOTH] * 600, Gaussian(rho=Fraction(12))).answers
        hard = private.measure_queries([HARD] * 600, Gaussian(rho=Fraction(12))).answers
    assert {a.scale for a in hard} == {5.0}
    assert {a.scale for a in smooth} == {5e6}
    truth = SMOOTH.count(table.count([SMOOTH.clique])[SMOOTH.clique])
    noise = np.array(
        [*((a.value - 20) / 5.0 for a in hard), *((a.value - truth) / 5e6 for a in smooth)]
    )
    # a sum of 1200 squares of standard Gaussians, within 1e-9 on either side (Laurent and Massart)
    assert (
        1200 - 2 * np.sqrt(1200 * 20.8) < (noise**2).sum() < 1200 + 2 * np.sqrt(1200 * 20.8) + 41.6
    )


# What is refused.


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HalfSpace.of(DOMAIN, {}, 0.5), "columns"),
        (lambda: HalfSpace.of(DOMAIN, {"nowhere": 1.0}, 0.5), "nowhere"),
        (lambda: HalfSpace.of(DOMAIN, {"a": 0.0, "b": 1.0}, 0.5), "'a'"),
        (lambda: HalfSpace.of(DOMAIN, {"a": 1.0, "b": math.inf}, 0.5), "'b'"),
        (lambda: HalfSpace.of(DOMAIN, {"a": 1.0}, math.nan), "threshold"),
        (lambda: HalfSpace.of(DOMAIN, {"a": 1.0}, 0.5, slope=0.0), "slope"),
        (lambda: HalfSpace.of(DOMAIN, {"a": 1.0}, 0.5, slope=math.inf), "slope"),
        (
            lambda: HalfSpace.of(
                Domain.of({f"x{i}": 40 for i in range(6)}), {f"x{i}": 1.0 for i in range(6)}, 1.0
            ),
            "x0",
        ),
        (
            lambda: HalfSpace.of(Domain(("a",), (1,), missing=frozenset("a")), {"a": 1.0}, 0.5),
            "'a'",
        ),
        (lambda: HalfSpace(("a",), (1.0,), (3,), 0.5).check(DOMAIN), "'a'"),
        (lambda: HalfSpace(("b", "a"), (1.0, 1.0), (3, 2), 0.5).check(DOMAIN), "order"),
        (lambda: HalfSpace(("a", "b"), (1.0,), (2, 3), 0.5).check(DOMAIN), "coefficient"),
    ],
)
def test_what_is_no_half_space(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_a_wrong_question_costs_nothing() -> None:
    table = memory_table({a: DOMAIN.size(a) for a in DOMAIN}, [(0, 0, 0)])
    with protect(
        table, unit=AddRemoveRow(), budget=Budget.zcdp(Fraction(1)), randomness=SeededRandomness(0)
    ) as p:
        with pytest.raises(InputError, match="differently"):
            p.measure_queries([HARD, SMOOTH], Gaussian(rho=Fraction(1, 2)))
        with pytest.raises(InputError, match="'c'"):
            p.measure_queries([replace(HARD, lines=(2, 9))], Gaussian(rho=Fraction(1, 2)))
        assert p.remaining == 1


@pytest.mark.parametrize(
    "fit",
    [
        GraphicalFit(),
        EntropyProjectionFit(),
        MultiplicativeWeightsFit(),
        GeneticFit(records=20),
        RelaxedFit(),
    ],
    ids=lambda f: type(f).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_cannot_take_it_says_so(fit: Any) -> None:
    if isinstance(fit, RelaxedFit):
        pytest.importorskip("jax")
    known = Transcript((PublicTotal(9), Answer(HARD, 3, 1.0, Fraction(1))))
    with pytest.raises(InputError, match=r"half-spaces, which were measured.*ParticleFit"):
        fit(DOMAIN, known, rng=np.random.default_rng(0))


# What it leaves behind.

SCHEMA = fake_model.SCHEMA
OLD = HalfSpace.of(SCHEMA.domain, {"age": -0.25, "job": 1.0}, 0.1)
WHOLE = (
    Answer(OLD, -7, 4.0, Fraction(1, 900)),
    Answer(replace(OLD, slope=5.0), 130_000_123, 4e6, Fraction(1, 900)),
)


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "fake", fake_model.FAMILY)


def _asked() -> Release:
    made = fake_model.release()
    return replace(made, transcript=Transcript((*made.transcript.entries, *WHOLE)))


def test_a_saved_release_holds_them(tmp_path: Path) -> None:
    made = _asked()
    made.save(tmp_path / "a.margrave")
    back = Release.load(tmp_path / "a.margrave", verify=False)
    assert back.transcript.answers == made.transcript.answers == WHOLE
    lines = [line for line in back.certificate()["transcript"] if "asked" in line]
    assert [line["asked"] for line in lines] == [
        OLD.describe,
        f"{OLD.describe}, smoothly with slope 5",
    ]
    assert [line["scale"] for line in lines] == [4.0, 4.0]  # in records
    assert OLD.describe == "-0.25 age + 1 job > 0.1"
    page = render(back)
    assert "Counted -0.25 age + 1 job &gt; 0.1" in page
    assert page.count("\N{PLUS-MINUS SIGN}4<") == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clique", ["nowhere"]),
        ("clique", ["age"]),
        ("clique", ["job", "age"]),
        ("coefficients", [1.0]),
        ("coefficients", [0.0, 1.0]),
        ("coefficients", ["1", 1.0]),
        ("coefficients", [math.nan, 1.0]),
        ("coefficients", [10**400, 1.0]),
        ("lines", [5, 4]),
        ("lines", [5.0, 3]),
        ("threshold", None),
        ("threshold", math.inf),
        ("slope", -1.0),
        ("slope", True),
        ("value", 0.5),
        ("value", 2**70),
        ("scale", 0),
    ],
)
def test_a_file_is_not_believed(field: str, value: Any) -> None:
    made, shelf = _asked(), Shelf()
    plain = json.loads(json.dumps(transcript_to_plain(made.transcript, shelf)))
    assert transcript_from_plain(plain, shelf, made.schema.domain).answers == WHOLE
    plain[-1][field] = value
    with pytest.raises(ReleaseError):
        transcript_from_plain(plain, shelf, made.schema.domain)


def test_the_journal_tells_every_number_apart() -> None:
    """A run is resumed only where the same was asked."""

    def asked(query: HalfSpace | LinearQuery) -> Any:
        price = NoisePrice(5.0, Fraction(1, 9))
        return MeasureQueries((query,), (query.clique,), price).question().plain()

    other = [
        replace(HARD, coefficients=(0.6, math.nextafter(0.4, 1.0))), replace(HARD, threshold=0.71),
        replace(HARD, slope=5.0), HalfSpace.of(DOMAIN, {"a": 0.6, "b": 0.4}, 0.7),
        LinearQuery(("a", "c"), ((1,), (3,))),
    ]  # fmt: skip
    assert asked(HARD) == asked(replace(HARD))
    assert all(asked(q) != asked(HARD) for q in other)


def test_a_stored_answer_is_given_again(tmp_path: Path) -> None:
    table = memory_table({a: DOMAIN.size(a) for a in DOMAIN}, [(1, 1, 3)] * 20)

    def ask(resume: bool, query: HalfSpace) -> Transcript:
        budget, path = Budget.zcdp(Fraction(1)), tmp_path / "journal"
        source = SeededRandomness(0)
        with protect(
            table, unit=ReplaceRow(), budget=budget, randomness=source, journal=path, resume=resume
        ) as private:
            return private.measure_queries([query], Gaussian(rho=Fraction(1, 2)))

    first = ask(False, SMOOTH)
    assert ask(True, SMOOTH).answers == first.answers
    with pytest.raises(LedgerError, match="queries"):
        ask(True, replace(SMOOTH, threshold=0.26))
