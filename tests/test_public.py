"""Public tables: attested, hashed, checked against the domain, and in a release nothing but what was read of them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance import codes_of, memory_table, run_on, some_rows
from margrave.errors import InputError
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import AIM
from margrave.mechanisms.jam import JAM
from margrave.mechanisms.jam_pgm import JAMPGM
from margrave.mechanisms.library import Library, chance_scale, sampling_error, scaled
from margrave.privacy import AddRemoveRow, Budget, ReplaceRow, SeededRandomness, SystemRandomness
from margrave.public import Public
from margrave.release import Release
from margrave.report import render
from margrave.schema import Codes, Domain
from margrave.transcript import Measurement, Transcript

SIZES = {"a": 2, "b": 3, "c": 4, "d": 3}
DOMAIN = Domain.of(SIZES)
WORD = "the open sample, published in the yearbook"


def public_of(rows: int = 400, seed: int = 7, columns: tuple[str, ...] = tuple(SIZES)) -> Public:
    """Records of the same kind as the private ones, with all columns or some."""
    whole = Public(codes_of(DOMAIN, some_rows(SIZES, rows, seed)), WORD)
    return whole.only(columns)


PRIVATE = memory_table(SIZES, some_rows(SIZES, 3000, seed=1))
MAKE: dict[str, Any] = {
    "jam-pgm": lambda public, **more: JAMPGM(public=public, **more),
    "jam": lambda public, **more: JAM(public=public, **more),
}
MECHANISM = pytest.mark.parametrize("name", MAKE)


# The table itself.


@pytest.mark.parametrize("word", ["", "  ", None])
def test_a_public_table_needs_a_word(word: Any) -> None:
    with pytest.raises(InputError, match="why it is public"):
        Public(codes_of(DOMAIN, some_rows(SIZES, 3)), word)


def test_a_public_table_has_records_with_codes_of_its_domain() -> None:
    with pytest.raises(InputError, match="no records"):
        Public(codes_of(DOMAIN, []), WORD)
    fine = {a: np.array([1]) for a in DOMAIN}
    assert len(Public(Codes.of(DOMAIN, fine), WORD).codes) == 1
    with pytest.raises(InputError, match="'c' holds codes outside"):
        Public(Codes.of(DOMAIN, {**fine, "c": np.array([4])}), WORD)


def test_its_hash_is_of_all_that_it_holds() -> None:
    one = public_of()
    assert one.sha256 == public_of().sha256
    fewer = Public(one.codes.take(np.arange(399)), WORD)
    renamed = Public(Codes(Domain(("a", "b", "c", "x"), DOMAIN.sizes), one.codes.values), WORD)
    wider = Public(Codes(Domain(DOMAIN.attributes, (2, 3, 4, 9)), one.codes.values), WORD)
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

    for public in (None, Public(codes_of(Domain.of({"z": 2}), [(1,)]), WORD)):
        with pytest.raises(InputError):
            run_on(MAKE[name](public), PRIVATE, ReplaceRow(), Budget.approx(1.0, 1e-9), SeededRandomness(0))


@MECHANISM
@pytest.mark.parametrize("columns", [tuple(SIZES), ("a", "c")], ids=str)
def test_the_certificate_names_the_public_table(name: str, columns: tuple[str, ...], tmp_path: Path) -> None:
    public = public_of(columns=columns)
    release = run_on(
        MAKE[name](public), PRIVATE, ReplaceRow(), Budget.approx(0.3, 1e-9), SeededRandomness(3), seed=1
    )
    facts = release.certificate()
    told = facts["mechanism"]["public"]
    assert told == {"rows": 400, "columns": list(columns), "sha256": public.sha256, "attestation": WORD}
    assert any(public.sha256 in line and WORD in line for line in facts["public_inputs"])
    readings = release.transcript.readings
    assert readings
    assert all(set(r.clique) <= set(columns) and r.source == public.sha256 for r in readings)
    release.save(tmp_path / "a.margrave")
    back = Release.load(tmp_path / "a.margrave")
    assert back.certificate() == facts
    assert "from public data" in render(back)
    again = back.refit(JAM().fit, seed=0)
    assert again.transcript.readings[0].values.tolist() == readings[0].values.tolist()


@MECHANISM
def test_the_public_table_reaches_a_release_as_its_readings_alone(name: str, tmp_path: Path) -> None:
    """Two public tables with the same marginals of the columns that matter, and others in a column that does not."""
    release = run_on(
        MAKE[name](public_of(columns=("a", "b"))), PRIVATE, ReplaceRow(), Budget.approx(0.3, 1e-9),
        SeededRandomness(3), seed=1,
    )  # fmt: skip
    shuffled = public_of(columns=("a", "b"))
    order = np.random.default_rng(0).permutation(400)
    other = Public(shuffled.codes.take(order), WORD)
    same = run_on(
        MAKE[name](other), PRIVATE, ReplaceRow(), Budget.approx(0.3, 1e-9), SeededRandomness(3), seed=1
    )
    assert other.sha256 != shuffled.sha256

    def known(r: Release) -> str:
        lines = json.dumps(r.certificate())
        return lines.replace(shuffled.sha256, "HASH").replace(other.sha256, "HASH")

    assert known(release) == known(same)
    assert release.sample(50, seed=1).equals(same.sample(50, seed=1))


@MECHANISM
def test_good_public_data_helps_where_the_budget_is_small(name: str) -> None:
    cliques = list(combinations(DOMAIN.attributes, 3))
    truth = PRIVATE.count(cliques)

    def error(mechanism: Any, seed: int) -> float:
        budget = Budget.approx(0.05, 1e-9)
        release = run_on(mechanism, PRIVATE, ReplaceRow(), budget, SeededRandomness(seed), seed=seed)
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
    wrong = Public(codes_of(DOMAIN, [(1, 2, 3, 2)] * 300), WORD)
    release = run_on(
        MAKE[name](wrong, workload=None), PRIVATE, unit, Budget.zcdp(Fraction(10**6)), SeededRandomness(0), seed=0
    )
    found = release.model.answer(cliques)
    assert max(np.abs(truth[c] - found[c]).max() for c in cliques) < 3000 * 0.02


# How far a reading is trusted.


def test_scaling_up_keeps_the_private_order_of_columns() -> None:
    public = public_of(columns=("c", "a"))
    found = scaled(public, [("a", "c"), ("a",), ("a", "b")], 4000.0)
    counts = count_cliques(public.codes, [public.domain.clique(("a", "c"))])
    (values,) = counts.values()
    expected = values if next(iter(counts))[0] == "a" else values.T
    assert set(found) == {("a", "c"), ("a",)}
    assert np.array_equal(found["a", "c"], expected * 10.0)
    assert found["a",].sum() == pytest.approx(4000.0)


def test_chance_is_what_samples_are_off_by() -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(12))
    samples = rng.multinomial(500, truth, size=4000) / 500 * 9000
    off = samples - 9000 * truth
    expected = 9000 * truth
    assert sampling_error(expected, 9000, 500) == pytest.approx(np.abs(off).sum(1).mean(), rel=0.03)
    assert chance_scale(expected, 500) == pytest.approx(np.sqrt((off**2).mean()), rel=0.05)
    certain = chance_scale(np.array([100.0, 0.0]), 50)
    assert 0.5 < certain < 3.0


def _measured(clique: tuple[str, ...], values: Any, scale: float) -> Measurement:
    return Measurement(clique, np.rint(values).astype(np.int64), scale, Fraction(1, 100))


def test_public_marginals_are_believed_as_far_as_measurements_bear_them_out() -> None:
    """A public table in which half of the records are given one code of a column, held against good measurements."""
    private = codes_of(DOMAIN, some_rows(SIZES, 20_000, seed=1))
    moved = codes_of(DOMAIN, some_rows(SIZES, 2000, seed=9)).values.copy()
    moved[0, ::2] = 0
    closure = [c for k in (1, 2, 3) for c in combinations(DOMAIN.attributes, k)]
    truth = count_cliques(private, closure)
    noise = 20.0

    def library(biased: bool) -> Library:
        fair = codes_of(DOMAIN, some_rows(SIZES, 2000, seed=9))
        return Library(Public(Codes(DOMAIN, moved) if biased else fair, WORD), closure, 20_000.0)

    rng = np.random.default_rng(0)
    measured = {
        c: Transcript((_measured(c, truth[c] + rng.normal(0, noise, truth[c].shape), noise),)) for c in closure
    }
    for biased in (False, True):
        unseen = library(biased)
        assert all(unseen.scale(r) == chance_scale(unseen.publics[r], 2000) for r in closure)
        for m in [("a",), ("a", "b"), ("a", "b", "c")]:
            seen = library(biased)
            seen.compare(measured[m])
            for r in closure:
                doubted = seen.scale(r) > 3 * unseen.scale(r)
                assert doubted == (biased and "a" in r), (m, r)
    # the bias is found in size
    seen = library(True)
    seen.compare(measured["a", "b"])
    off = truth["a", "b"] - seen.publics["a", "b"]
    assert seen.scale(("a", "b")) == pytest.approx(np.sqrt((off**2).mean()), rel=0.25)
    assert seen.error(("a", "b")) > 3 * library(True).error(("a", "b"))
    wide = dict.fromkeys(closure, 1e9)
    assert set(seen.closer_than(wide)) == set(closure)
    assert not seen.closer_than(dict.fromkeys(closure, 1.0))
    assert [r.clique for r in seen.readings([("a",), ("b",), ("a",)]).readings] == [("a",), ("b",)]
