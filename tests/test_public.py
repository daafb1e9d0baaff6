"""Public tables: attested, hashed, checked against the domain, and in a release nothing but what was read of them."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.errors import DataError, InputError
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import AIM, MWEM, GEMPub, PEPPub, PMWPub
from margrave.mechanisms.aim_pub import AIMPub
from margrave.mechanisms.jam_pgm import JAMPGM
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.public import scaled
from margrave.mechanisms.parts.public_prior import PublicPrior
from margrave.mechanisms.parts.public_readings import PublicReadings
from margrave.models import EntropyProjectionFit, GraphicalFit, projected_error
from margrave.privacy import SeededRandomness, SystemRandomness, protect
from margrave.public_table import PublicTable
from margrave.release import Release
from margrave.report import render
from margrave.schema import Impossible, Schema
from margrave.transcript import Measurement, PublicTotal, Transcript
from margrave.types import Clique
from tests.support.conformance import codes_of, memory_table, run_on, some_rows

SIZES = {"a": 2, "b": 3, "c": 4, "d": 3}
DOMAIN = Domain.of(SIZES)
WORD = "the open sample, published in the yearbook"


def public_of(
    rows: int = 400, seed: int = 7, columns: tuple[str, ...] = tuple(SIZES)
) -> PublicTable:
    """Records of the same kind as the private ones, with all columns or some."""
    whole = PublicTable(codes_of(DOMAIN, some_rows(SIZES, rows, seed)), WORD)
    return whole.select(columns)


PRIVATE = memory_table(SIZES, some_rows(SIZES, 3000, seed=1))
MAKE: dict[str, Any] = {
    "jam-pgm": lambda public, **more: JAMPGM(public=public, **more),
    "aim-pub": lambda public, **more: AIMPub(public=public, **more),
}
MECHANISM = pytest.mark.parametrize("name", MAKE)


# The table itself.


@pytest.mark.parametrize("word", ["", "  ", None])
def test_a_public_table_needs_a_word(word: Any) -> None:
    with pytest.raises(InputError, match="why it is public"):
        PublicTable(codes_of(DOMAIN, some_rows(SIZES, 3)), word)


def test_a_public_table_has_records_with_codes_of_its_domain() -> None:
    with pytest.raises(InputError, match="no records"):
        PublicTable(codes_of(DOMAIN, []), WORD)
    fine = {a: np.array([1]) for a in DOMAIN}
    assert len(PublicTable(Codes.of(DOMAIN, fine), WORD).codes) == 1
    with pytest.raises(DataError, match="'c' holds codes outside"):
        PublicTable(Codes.of(DOMAIN, {**fine, "c": np.array([4])}), WORD)


def test_its_hash_is_of_all_that_it_holds() -> None:
    one = public_of()
    assert one.sha256 == public_of().sha256
    fewer = PublicTable(one.codes.take(np.arange(399)), WORD)
    renamed = PublicTable(Codes(Domain(("a", "b", "c", "x"), DOMAIN.sizes), one.codes.values), WORD)
    wider = PublicTable(Codes(Domain(DOMAIN.attributes, (2, 3, 4, 9)), one.codes.values), WORD)
    assert len({p.sha256 for p in (one, fewer, renamed, wider, public_of(columns=("a", "b")))}) == 5


def test_it_must_fit_the_private_domain() -> None:
    with pytest.raises(InputError, match="'d'"):
        public_of().check(Domain.of({"a": 2, "b": 3, "c": 4}))
    with pytest.raises(InputError, match="'c'"):
        public_of().check(Domain.of({**SIZES, "c": 5}))
    public_of(columns=("b", "d")).check(DOMAIN)
    with pytest.raises(InputError, match="no column 'a'"):
        public_of(columns=("b", "d")).needs(DOMAIN, "this")


# Mechanisms that read it.


@MECHANISM
def test_without_one_nothing_is_spent(name: str) -> None:
    class Never(SystemRandomness):
        pass

    for public in (None, PublicTable(codes_of(Domain.of({"z": 2}), [(1,)]), WORD)):
        with pytest.raises(InputError):
            run_on(
                MAKE[name](public),
                PRIVATE,
                ReplaceRow(),
                Budget.approx(1.0, 1e-9),
                SeededRandomness(0),
            )


@MECHANISM
@pytest.mark.parametrize("columns", [tuple(SIZES), ("a", "c")], ids=str)
def test_the_certificate_names_the_public_table(
    name: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    public = public_of(columns=columns)
    release = run_on(
        MAKE[name](public),
        PRIVATE,
        ReplaceRow(),
        Budget.approx(0.3, 1e-9),
        SeededRandomness(3),
        seed=1,
    )
    facts = release.certificate()
    told = facts["mechanism"]["public"]
    assert told == {
        "rows": 400,
        "columns": list(columns),
        "sha256": public.sha256,
        "attestation": WORD,
        "notes": [],
        "same_records": False,
    }
    assert any(public.sha256 in line and WORD in line for line in facts["public_inputs"])
    readings = release.transcript.readings
    assert readings
    assert all(set(r.clique) <= set(columns) and r.source == public.sha256 for r in readings)
    release.save(tmp_path / "a.margrave")
    back = Release.load(tmp_path / "a.margrave")
    assert back.certificate() == facts
    assert "from public data" in render(back)
    again = back.refit(AIMPub().fit, seed=0)
    assert again.transcript.readings[0].values.tolist() == readings[0].values.tolist()


@MECHANISM
def test_the_public_table_reaches_a_release_as_its_readings_alone(
    name: str, tmp_path: Path
) -> None:
    """Two public tables with the same marginals of the columns that matter, and others in a column that does not."""
    release = run_on(
        MAKE[name](public_of(columns=("a", "b"))), PRIVATE, ReplaceRow(), Budget.approx(0.3, 1e-9),
        SeededRandomness(3), seed=1,
    )  # fmt: skip
    shuffled = public_of(columns=("a", "b"))
    order = np.random.default_rng(0).permutation(400)
    other = PublicTable(shuffled.codes.take(order), WORD)
    same = run_on(
        MAKE[name](other),
        PRIVATE,
        ReplaceRow(),
        Budget.approx(0.3, 1e-9),
        SeededRandomness(3),
        seed=1,
    )
    assert other.sha256 != shuffled.sha256

    def known(r: Release) -> str:
        lines = json.dumps(r.certificate())
        return lines.replace(shuffled.sha256, "HASH").replace(other.sha256, "HASH")

    assert known(release) == known(same)
    assert release.sample(50, seed=1).equals(same.sample(50, seed=1))


def test_equal_weights_are_the_model_s_alone() -> None:
    """The transcript holds the real scales, so that a refit weighs by them and differs."""
    budget, fit, pairs = (
        Budget.approx(1.0, 1e-9),
        GraphicalFit(),
        list(combinations(DOMAIN.attributes, 2)),
    )
    alike, weighed = (
        run_on(mechanism, PRIVATE, ReplaceRow(), budget, SeededRandomness(2))
        for mechanism in (
            JAMPGM(public=public_of(), rounds=8, equal_weights=e) for e in (True, False)
        )
    )

    def moved(release: Release) -> float:
        again = release.refit(fit, seed=0).model
        return max(
            float(np.abs(again.project(c).values - release.model.project(c).values).max())
            for c in pairs
        )

    assert len({e.scale for e in alike.transcript.evidence}) > 1
    assert moved(alike) > 100 * moved(weighed)


@pytest.mark.parametrize("penalty", ["full", "projected"])
def test_the_noise_that_counts_against_measuring_is_the_papers_or_what_is_left_of_it(
    penalty: str,
) -> None:
    """In the first round, when the estimate is that all cells are alike."""
    jam, budget = (
        JAMPGM(public=public_of(), rounds=8, penalty=penalty),
        Budget.zcdp(Fraction(1, 5_000_000)),
    )
    first = run_on(jam, PRIVATE, ReplaceRow(), budget, SeededRandomness(2)).transcript.selections[0]
    (scale,) = (step.scale for step in jam.steps(DOMAIN, Fraction(1, 5_000_000), ReplaceRow()))
    alike = {r: np.full(DOMAIN.shape(r), 3000 / DOMAIN.cells(r)) for r in first.candidates}
    left, all_of_it = (
        projected_error(alike, scale, DOMAIN),
        [DOMAIN.cells(r) * scale for r in first.candidates],
    )
    expected = (
        list(left.values()) if penalty == "projected" else np.sqrt(2 / np.pi) * np.array(all_of_it)
    )
    assert first.terms["penalty"] == pytest.approx(np.array(expected), rel=1e-6)
    assert sum(left.values()) < 0.9 * np.sqrt(2 / np.pi) * sum(all_of_it)


def test_a_penalty_that_is_none() -> None:
    with pytest.raises(InputError, match="penalty is 'half'"):
        JAMPGM(penalty="half")


@MECHANISM
def test_good_public_data_helps_where_the_budget_is_small(name: str) -> None:
    cliques = list(combinations(DOMAIN.attributes, 3))
    truth = PRIVATE.count(cliques)

    def error(mechanism: Any, seed: int) -> float:
        budget = Budget.approx(0.05, 1e-9)
        release = run_on(
            mechanism, PRIVATE, ReplaceRow(), budget, SeededRandomness(seed), seed=seed
        )
        found = release.model.answer(cliques)
        return float(np.mean([np.abs(truth[c] - found[c]).sum() for c in cliques])) / 3000

    with_it = np.mean([error(MAKE[name](public_of(2000, seed=8)), s) for s in range(6)])
    without = np.mean([error(AIM(), s) for s in range(6)])
    assert with_it < 0.75 * without


@MECHANISM
@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_a_large_budget_finds_the_truth_whatever_the_public_data_says(name: str, unit: Any) -> None:
    cliques = list(combinations(DOMAIN.attributes, 2))
    truth = PRIVATE.count(cliques)
    wrong = PublicTable(codes_of(DOMAIN, [(1, 2, 3, 2)] * 300), WORD)
    release = run_on(
        MAKE[name](wrong, workload=None),
        PRIVATE,
        unit,
        Budget.zcdp(Fraction(10**6)),
        SeededRandomness(0),
        seed=0,
    )
    found = release.model.answer(cliques)
    assert max(np.abs(truth[c] - found[c]).max() for c in cliques) < 3000 * 0.02


# Some columns of the private records are public.


def own_columns(*columns: str) -> PublicTable:
    """Columns of the private records themselves."""
    codes = codes_of(DOMAIN, some_rows(SIZES, 3000, seed=1))
    return PublicTable(codes, "on the public register", same_records=True).select(columns)


def test_of_public_columns_nothing_is_asked_and_all_is_known() -> None:
    truth = count_cliques(
        codes_of(DOMAIN, some_rows(SIZES, 3000, seed=1)), [("a", "b", "c"), ("d",)]
    )
    budget = Budget.approx(0.2, 1e-9)
    release = run_on(
        AIMPub(public=own_columns("a", "b", "c")),
        PRIVATE,
        ReplaceRow(),
        budget,
        SeededRandomness(3),
    )
    assert release.transcript.measurements
    assert all("d" in m.clique for m in release.transcript.measurements)
    assert all("d" not in r.clique and (r.scales == 0.5).all() for r in release.transcript.readings)
    for pair in combinations("abc", 2):
        found = release.model.project(pair).values
        known = truth["a", "b", "c"].sum(axis="abc".index(next(iter(set("abc") - set(pair)))))
        assert np.abs(found - known).max() < 3000 * 0.003
    facts = release.certificate()
    assert facts["mechanism"]["public"]["same_records"] is True
    assert any("a, b, c of the 3,000 private records" in line for line in facts["public_inputs"])
    assert "whose other columns alone are protected" in render(release)


@pytest.mark.parametrize(
    ("public", "unit", "words"),
    [
        (own_columns("a", "b"), AddRemoveRow(), "unit of privacy protects"),
        (
            PublicTable(own_columns("a").codes.take(np.arange(2999)), WORD, same_records=True),
            ReplaceRow(),
            "another number",
        ),
        (own_columns(*SIZES), ReplaceRow(), "nothing to measure"),
    ],
    ids=["unit", "rows", "all"],
)
def test_public_columns_that_cannot_be(public: PublicTable, unit: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_on(AIMPub(public=public), PRIVATE, unit, Budget.approx(1.0, 1e-9), SeededRandomness(0))


@pytest.mark.parametrize("mechanism", [JAMPGM, PMWPub, PEPPub, GEMPub])
def test_mechanisms_that_would_blur_what_is_known_name_the_one_that_does_not(
    mechanism: Any,
) -> None:
    public = own_columns("a", "b", "c")
    with protect(
        PRIVATE, unit=ReplaceRow(), budget=Budget.approx(1.0, 1e-9), randomness=SeededRandomness(0)
    ) as gate:
        with pytest.raises(InputError, match="columns of the private records") as refused:
            mechanism(public=public).run(gate, rng=np.random.default_rng(0))
        assert "aim-pub" in str(refused.value)
        assert gate.remaining == gate.rho


# How far a reading is trusted.


def test_scaling_up_keeps_the_private_order_of_columns() -> None:
    public = public_of(columns=("c", "a"))
    found = scaled(public, DOMAIN, [("a", "c"), ("a",), ("a", "b")], 4000.0)
    counts = count_cliques(public.codes, [public.domain.clique(("a", "c"))])
    (values,) = counts.values()
    expected = values if next(iter(counts))[0] == "a" else values.T
    assert set(found) == {("a", "c"), ("a",)}
    assert np.array_equal(found["a", "c"], expected * 10.0)
    assert found["a",].sum() == pytest.approx(4000.0)


CLOSURE = [c for k in (1, 2, 3) for c in combinations(DOMAIN.attributes, k)]


def _measured(
    clique: tuple[str, ...], truth: Any, noise: float, rng: np.random.Generator
) -> Measurement:
    values = np.rint(truth + rng.normal(0, noise, truth.shape)).astype(np.int64)
    return Measurement(clique, values, noise, Fraction(1, 100))


def _library(codes: Any, cliques: Any, truth: Any, noise: float, seed: int = 0) -> PublicPrior:
    """A library of these public records that has seen measurements of the cliques."""
    rng = np.random.default_rng(seed)
    library = PublicPrior(PublicTable(codes, WORD), DOMAIN, CLOSURE, 20_000.0, noise=4000.0)
    library.recalibrate(Transcript(tuple(_measured(c, truth[c], noise, rng) for c in cliques)))
    return library


@pytest.fixture(scope="module")
def population() -> Any:
    """Private records and their marginals."""
    codes = codes_of(DOMAIN, some_rows(SIZES, 20_000, seed=1))
    return codes, count_cliques(codes, CLOSURE)


SINGLE = [("a",), ("b",), ("c",), ("d",)]


def test_a_table_with_the_wrong_shares_is_set_right(population: Any) -> None:
    """A column's codes are drawn at wrong rates: all marginals are wrong, and none once raked."""
    codes, truth = population
    rates = np.array([0.02, 0.2, 0.1, 0.3])[codes.values[2]]
    public = Codes(DOMAIN, codes.values[:, np.random.default_rng(2).random(len(codes)) < rates])
    library, biased = (
        _library(public, SINGLE, truth, 3.0),
        scaled(PublicTable(public, WORD), DOMAIN, CLOSURE, 20_000.0),
    )
    for r in [c for c in CLOSURE if "c" in c and len(c) > 1]:
        values, _ = library.marginal(r)
        for i, a in enumerate(r):
            margin = values.sum(axis=tuple(j for j in range(len(r)) if j != i))
            assert np.abs(margin - truth[a,]).max() < 0.01 * 20_000
        off = np.abs(values - truth[r]).sum()
        assert off < 0.25 * np.abs(biased[r] - truth[r]).sum()
        assert off < 0.08 * 20_000


def test_scales_are_what_public_records_are_off_by(population: Any) -> None:
    """Over many fair public tables: (raked − truth) / scale has a mean square of about one, and less in small cells."""
    codes, truth = population
    squares = []
    for seed in range(60):
        some = np.random.default_rng(seed).integers(0, len(codes), 1500)
        values, scales = _library(codes.take(some), SINGLE, truth, 3.0, seed).marginal(("b", "d"))
        squares.append(((values - truth["b", "d"]) / scales) ** 2)
    mean = np.mean(squares, axis=0)
    large = truth["b", "d"] > 20_000 / 1500 * 20
    assert large.sum() >= 5
    # raking takes the columns' share of the chance away, so that what is left is below one
    assert 0.2 < mean[large].mean() < 1.2
    assert mean.max() < 3.0


def test_cells_that_nobody_public_is_in_say_nothing(population: Any) -> None:
    codes, truth = population
    public = Codes(DOMAIN, codes.values[:, codes.values[0] == 0][:, :2000])
    library = _library(public, SINGLE, truth, 3.0)
    values, scales = library.marginal(("a", "b"))
    assert np.isinf(scales[1]).all()
    assert np.isfinite(scales[0]).all()
    assert values[1].sum() == pytest.approx(truth["a",][1], rel=0.02)
    told = library.as_evidence([("a", "b")]).readings[0]
    assert told.scale == pytest.approx(np.sqrt((scales[0] ** 2).mean()))
    nothing = PublicPrior(PublicTable(public, WORD), DOMAIN, CLOSURE, 20_000.0, noise=1e-6)
    nothing.recalibrate(Transcript())
    assert not len(nothing.as_evidence([("a", "b")]))


@pytest.mark.parametrize(("small", "public_small", "noise"), [(2400, 40, 300.0), (500, 10, 50.0)])
def test_a_column_that_is_off_is_believed_in_no_cell_further_than_it_is_off(
    small: int, public_small: int, noise: float
) -> None:
    """Of 20,000 private records so many are in the small cell, and of 2,000 public ones: as far off as the large cell.

    The large cell is off by chance no more than the small one, and hides nothing behind its number of records.
    """
    domain, truth = Schema.coded({"a": 2, "b": 2}).domain, np.array([20_000 - small, small])
    public = Codes.of(
        domain,
        {"a": np.repeat([0, 1], [2000 - public_small, public_small]), "b": np.arange(2000) % 2},
    )
    rng, off = np.random.default_rng(0), []
    for _ in range(50):
        library = PublicPrior(
            PublicTable(public, WORD), domain, [("a",), ("b",)], 20_000.0, noise=noise
        )
        library.recalibrate(Transcript((_measured(("a",), truth, noise, rng),)))
        values, scales = library.marginal(("a",))
        off.append((values - truth) / scales)
    assert float(np.sqrt(np.mean(np.square(off)))) < 1.5


@pytest.mark.parametrize("codes", [2, 4, 40])
def test_a_fair_column_is_doubted_as_seldom_as_three_deviations_say_and_not_wholly(
    codes: int,
) -> None:
    """Squares of few codes have a long tail; and what is barely beyond it takes little from what is public."""
    domain, rng = Schema.coded({"a": codes}).domain, np.random.default_rng(1)
    library = PublicPrior(
        PublicTable(Codes.of(domain, {"a": np.arange(2000) % codes}), WORD),
        domain,
        [("a",)],
        2e4,
        5000.0,
    )
    truth, doubted = np.full(codes, 20_000 / codes), []
    for _ in range(3000):
        measured = truth + rng.normal(0, 5000.0, codes)
        _, scales, bias = library._column("a", measured, 5000.0**2)
        if bias:
            doubted.append(float(np.median(scales / np.abs(measured - truth))))
    assert len(doubted) <= 15
    assert not doubted or np.median(doubted) < 0.7


def test_relations_are_believed_as_far_as_measurements_bear_them_out(population: Any) -> None:
    """Columns a and b are torn apart in the public table, each right by itself."""
    codes, truth = population
    fair = codes.take(np.random.default_rng(3).integers(0, len(codes), 4000))
    torn = Codes(DOMAIN, np.vstack([fair.values[:2, ::-1][:1], fair.values[1:]]))
    for pair, doubted in [(("a", "b"), True), (("c", "d"), False)]:
        unseen, seen = (
            _library(torn, SINGLE, truth, 20.0),
            _library(torn, [*SINGLE, pair], truth, 20.0),
        )
        before, after = unseen.marginal(pair)[1], seen.marginal(pair)[1]
        assert (np.median(after / before) > 2) == doubted
    seen = _library(torn, [*SINGLE, ("a", "b")], truth, 20.0)
    values, scales = seen.marginal(("a", "b"))
    told = np.isfinite(scales)
    off = np.sqrt(((values - truth["a", "b"])[told] ** 2).mean())
    assert off == pytest.approx(np.sqrt((scales[told] ** 2).mean()), rel=0.6)
    # the three-way marginal that holds the pair is doubted with it
    wider = (
        seen.marginal(("a", "b", "d"))[1]
        / _library(torn, SINGLE, truth, 20.0).marginal(("a", "b", "d"))[1]
    )
    assert np.median(wider[np.isfinite(wider)]) > 1.2


def test_readings_of_what_was_measured_are_left_out(population: Any) -> None:
    codes, truth = population
    library = _library(
        codes.take(np.arange(2000)), [*SINGLE, ("a", "b"), ("a", "c"), ("b", "c")], truth, 20.0
    )
    assert library.informative([("a",), ("a", "b"), ("a", "b", "c"), ("a", "b", "d"), ("c", "d")]) == [
        ("a",), ("a", "b", "d"), ("c", "d"),
    ]  # fmt: skip


def test_a_biased_column_is_doubted_and_not_a_fair_one(population: Any) -> None:
    codes, truth = population
    biased = Codes(DOMAIN, np.vstack([np.zeros_like(codes.values[:1]), codes.values[1:]])[:, :2000])
    library = _library(biased, SINGLE, truth, 50.0)
    values, scales = library.marginal(("a",))
    assert (np.abs(values - truth["a",]) < 2 * scales).all()
    assert scales.min() > 0.3 * 20_000 * (1 - truth["a",][0] / 20_000)
    fair, scales = library.marginal(("b",))
    assert (np.abs(fair - truth["b",]) < 4 * scales).all()
    assert scales.max() < 0.05 * 20_000


def test_a_reading_gains_where_the_estimate_is_wrong_and_not_where_it_is_right(
    population: Any,
) -> None:
    codes, truth = population
    public = codes.take(np.random.default_rng(4).integers(0, len(codes), 4000))
    library = _library(public, SINGLE, truth, 3.0)
    independent = np.multiply.outer(truth["a",], truth["b",]) / 20_000
    assert (
        library.expected_gain(("a", "b"), independent)
        > 0.1 * np.abs(truth["a", "b"] - independent).sum()
    )
    assert library.expected_gain(("a", "b"), truth["a", "b"].astype(float)) < 0


# Room in the model for what tells most.


WIDE = Domain.of(dict.fromkeys("abcdef", 12))
LARGE = 2 * 144 * 8 / 2**20
"""The size, in MB, of a model of two pairs."""


def twins(rows: int, seed: int) -> Codes:
    """Columns of chance, but for b, which is a."""
    values = np.random.default_rng(seed).integers(0, 12, (6, rows))
    values[1] = values[0]
    return Codes(WIDE, values)


def test_a_reading_of_columns_that_follow_from_each_other_is_strong() -> None:
    relevance = dict.fromkeys([*((a,) for a in WIDE), *combinations("abcdef", 2)], 1.0)
    library = PublicPrior(PublicTable(twins(5000, 1), WORD), WIDE, relevance, 5000.0, 20.0)
    counts = count_cliques(twins(5000, 2), [(a,) for a in WIDE])
    columns = Transcript(
        (
            PublicTotal(5000),
            *(Measurement(c, v.astype(np.int64), 20.0, Fraction(1)) for c, v in counts.items()),
        )
    )
    library.recalibrate(columns)
    readings = PublicReadings(library, Capacity(GraphicalFit(), WIDE, 10.0))
    readings.choose(columns, relevance, np.random.default_rng(0))
    assert readings.strong == {("a", "b")}
    assert ("a", "b") in readings.cliques


def readings_of(max_model_mb: float, read: list[Clique]) -> PublicReadings:
    """Readings of chance records, in a model of this size."""
    prior = PublicPrior(PublicTable(twins(50, 1), WORD), WIDE, read, 50.0, 20.0)
    return PublicReadings(prior, Capacity(GraphicalFit(), WIDE, max_model_mb), read)


def test_what_is_strong_keeps_its_room_and_others_give_way() -> None:
    measured, everything = (("a", "c"), ("b", "c")), [("d", "e"), ("a", "b")]
    readings = readings_of(LARGE, everything)
    found = readings.that_fit(measured, everything, 1.0, keep=[("a", "b")])
    assert found == [("a", "b")]
    assert readings.that_fit(measured, everything, 1.0, keep=[]) == []
    assert readings.that_fit(measured, everything, 1.0, keep=everything) == everything


def test_nothing_is_measured_that_would_take_the_room_of_what_is_strong() -> None:
    readings, candidates = readings_of(2 * LARGE, [("a", "b")]), (("b", "c"), ("c", "d"), ("c",))
    free = readings.candidates(candidates, (("a", "c"),), 1.0, keep=[])
    bound = readings.candidates(candidates, (("a", "c"),), 1.0, keep=[("a", "b")])
    assert free == [("b", "c"), ("c", "d"), ("c",)]
    assert bound == [("c", "d"), ("c",)]  # b, c would join three columns


def test_the_model_opens_as_the_root_of_what_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fortieth of the budget each for the columns, but for what would choose them, and for the first round."""
    opened: list[float] = []
    candidates = PublicReadings.candidates

    def recorded(readings: Any, askable: Any, measured: Any, share: float, keep: Any) -> Any:
        opened.append(share)
        return candidates(readings, askable, measured, share, keep)

    monkeypatch.setattr(PublicReadings, "candidates", recorded)
    run_on(
        AIMPub(public=public_of(), rounds=40),
        PRIVATE,
        ReplaceRow(),
        Budget.zcdp(1),
        SeededRandomness(3),
    )
    assert opened[0] == pytest.approx(((0.9 * len(PRIVATE.domain) + 1) / 40) ** 0.5)
    assert opened[-1] == 1.0
    assert opened == sorted(opened)


def test_few_rounds_of_jam_measure_the_columns_all_the_same() -> None:
    """The budget of a round is meant for more measurements than there are columns, or they would cost more than it."""
    public = public_of()
    release = run_on(
        AIMPub(public=public, rounds=1), PRIVATE, ReplaceRow(), Budget.zcdp(1), SeededRandomness(3)
    )
    assert release.account.rho_spent == 1
    steps = AIMPub(public=public, rounds=1).steps(PRIVATE.domain, Fraction(1), ReplaceRow())
    assert (steps[0].what, steps[0].marginals) == ("every column", len(PRIVATE.domain))
    assert release.transcript.measurements[0].scale == pytest.approx(steps[0].scale)


@pytest.mark.parametrize(("max_model_mb", "each"), [(80.0, 16), (0.0001, 6)])
def test_more_measurements_are_meant_where_the_whole_domain_fits(
    max_model_mb: float, each: int
) -> None:
    steps = AIMPub(public=public_of(), max_model_mb=max_model_mb).steps(
        PRIVATE.domain, Fraction(1), ReplaceRow()
    )
    assert sum(step.marginals for step in steps) == each * len(PRIVATE.domain)


def test_a_public_table_inside_a_fit_is_certified() -> None:
    public = public_of(50)
    release = run_on(
        MWEM(rounds=1, fit=EntropyProjectionFit(public=public)), PRIVATE, ReplaceRow(), Budget.zcdp(1),
        SeededRandomness(3),
    )  # fmt: skip
    assert any(
        public.sha256 in told and WORD in told for told in release.certificate()["public_inputs"]
    )
    plain = run_on(MWEM(rounds=1), PRIVATE, ReplaceRow(), Budget.zcdp(1), SeededRandomness(3))
    again = plain.refit(EntropyProjectionFit(public=public), seed=1)
    assert any(public.sha256 in told for told in again.certificate()["public_inputs"])
    assert again.provenance.fit == plain.provenance.fit != again.provenance.refit


def test_repeats_are_no_records(population: Any) -> None:
    """A table expanded by weights tells a library what one of each tells it."""
    truth = population[1]
    public = codes_of(DOMAIN, some_rows(SIZES, 300, seed=8))
    once, often = (
        _library(c, SINGLE, truth, 3.0)
        for c in (public, public.take(np.repeat(np.arange(300), 15)))
    )
    for r in CLOSURE:
        for one, other in zip(once.marginal(r), often.marginal(r), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


# Records that constraints call impossible.

SCHEMA_TIED = replace(
    Schema.coded({"age": 4, "marital": 3, "ill": 2, "ward": 4}),
    constraints=(Impossible({"age": [0], "marital": [1, 2]}),),
)
TIED = SCHEMA_TIED.domain


def _people(rows: int, seed: int, marital: int) -> Codes:
    """One in twenty a child, who is never married; of a survey that calls children otherwise, ``marital`` is 1."""
    rng = np.random.default_rng(seed)
    age = rng.choice(4, rows, p=[0.05, 0.3, 0.3, 0.35])
    status = np.where(age == 0, marital, rng.choice(3, rows, p=[0.3, 0.5, 0.2]))
    ill = rng.random(rows) < 0.1 + 0.2 * age
    return Codes(TIED, np.array([age, status, ill, rng.integers(0, 4, rows)]).astype(np.uint16))


@pytest.mark.parametrize("share", [0.5, 1.0])
@MECHANISM
def test_public_records_that_cannot_be_take_nobody_away(name: str, share: float) -> None:
    """Read as they stand they say that the possible cells of a group are empty, and the group is gone."""
    codes = _people(3000, 1, 0).values.copy()
    odd = (codes[0] == 0) & (np.random.default_rng(2).random(3000) < share)
    codes[1, odd] = 1
    table = MemoryTable(SCHEMA_TIED, _people(4000, 0, 0))
    public = PublicTable(Codes(TIED, codes), WORD)
    for seed in range(3):
        release = run_on(
            MAKE[name](public),
            table,
            ReplaceRow(),
            Budget.approx(1.0, 1e-9),
            SeededRandomness(seed),
        )
        found = release.model.project(("age", "marital")).values / 4000
        assert found[0, 1:].sum() == 0
        assert abs(found[0].sum() - 0.05) < 0.015


def test_what_cannot_be_says_nothing_in_a_library() -> None:
    codes = _people(3000, 1, 0).values.copy()
    codes[1, :1000][codes[0, :1000] == 0] = 1
    cliques = [("age",), ("marital",), ("age", "marital")]
    library = PublicPrior(PublicTable(Codes(TIED, codes), WORD), TIED, cliques, 3000.0, 50.0)
    library.recalibrate(Transcript())
    assert library.counts["age", "marital"][0, 1:].sum() == 0
    values, scales = library.marginal(("age", "marital"))
    assert np.isinf(scales[0, 1:]).all()
    assert (values[0, 1:] == 0).all()
    assert np.isfinite(scales[1:]).any()
    assert np.isfinite(values).all()


@MECHANISM
def test_a_table_of_which_no_record_can_be(name: str) -> None:
    codes = Codes(TIED, np.array([[0] * 9, [1] * 9, [0] * 9, [0] * 9], dtype=np.uint16))
    with pytest.raises(InputError, match="Every record of the public table"):
        run_on(
            MAKE[name](PublicTable(codes, WORD)), MemoryTable(SCHEMA_TIED, _people(99, 0, 0)), ReplaceRow(),
            Budget.approx(1.0, 1e-9), SeededRandomness(0),
        )  # fmt: skip
