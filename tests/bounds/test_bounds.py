"""Error bounds of a release: they hold as often as they say, on toy tables, and cannot be much smaller.

A frequency is compared with its level by the exact binomial law: sound bounds fail such a comparison once in a million.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemovePerson, AddRemoveRow, Budget, ReplaceRow
from margrave.bounds import Bound
from margrave.bounds.error_bounds import Bounds, SupportedEstimate
from margrave.bounds.gls import Unbiased
from margrave.bounds.reference import ModelReference
from margrave.data import MemoryTable
from margrave.domain import Codes
from margrave.errors import InputError, ReleaseError
from margrave.marginal import closure
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import AIM, MST, MWEMPGM, Independent
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import GraphicalFit
from margrave.privacy import SeededRandomness
from margrave.privacy.scores import on_grid
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.schema import Impossible, Schema
from margrave.transcript import Hindsight, Measurement, PublicTotal, Selection, Transcript
from margrave.types import Clique
from tests.support import fake_model
from tests.support.conformance import CASES, memory_table, run_on, some_rows
from tests.support.noise import consistent, discrete
from tests.support.strategies import measurement

SCHEMA = Schema.coded({"a": 3, "b": 4, "c": 2, "d": 5})
DOMAIN = SCHEMA.domain
CLIQUES: list[Clique] = [("a",), ("b", "c"), ("a", "b")]
SCALES = [3.0, 6.0, 4.0]
BELOW = closure(CLIQUES)


def truth(seed: int = 0) -> Any:
    """A full table in which many cells are empty."""
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.exponential(size=DOMAIN.shape(DOMAIN.attributes)) ** 2 * 4)


TRUE = fake_model.TableModel(DOMAIN, truth().astype(float))
FLAT = fake_model.TableModel(DOMAIN, np.full(DOMAIN.shape(DOMAIN.attributes), truth().mean()))


def l1(x: Any) -> float:
    return float(np.abs(x).sum())


def noisy(
    rng: np.random.Generator, scales: list[float] = SCALES, claimed: float = 1.0
) -> Transcript:
    """The measurements of ``CLIQUES``; ``claimed`` times the scale is what the transcript says."""
    return Transcript(
        tuple(
            measurement(c, TRUE.project(c).values + discrete(rng, s, DOMAIN.shape(c)), s * claimed)
            for c, s in zip(CLIQUES, scales, strict=True)
        )
    )


def near(transcript: Transcript) -> Any:
    """A 'model' as close to the noise as can be: least squares, no smoothing, not a distribution."""
    unbiased = Unbiased(DOMAIN, transcript)
    return {c: e.values for c in BELOW if (e := unbiased.estimate(c)) is not None}


class Given:
    """A reference with these marginals."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def marginals(self, cliques: Any) -> Any:
        return {c: self.values[c] for c in cliques}

    def distance_to_model(self, cliques: Any) -> dict[Clique, float]:
        return dict.fromkeys(cliques, 0.0)


REFERENCES: dict[str, Callable[[Transcript], Any]] = {
    "a model that fits noise": lambda t: Given(near(t)),
    "a model far off": lambda t: ModelReference(FLAT),
    "the worst of models": lambda t: Given(
        # as far beyond the noise as the truth is before it
        {c: 2 * v - TRUE.project(c).values for c, v in near(t).items()}
    ),
}


def misses(transcript: Transcript, reference: Any, **options: Any) -> dict[Clique, bool]:
    found = Bounds(DOMAIN, transcript, (), **options).of(BELOW, reference)
    values = reference.marginals(BELOW)
    return {
        b.clique: l1(TRUE.project(b.clique).values - values[b.clique]) > (b.records or 0.0)
        for b in found
    }


@pytest.mark.parametrize("which", REFERENCES)
@pytest.mark.parametrize("paper", [False, True])
def test_supported_bounds_hold_as_often_as_they_say(which: str, paper: bool) -> None:
    rng = np.random.default_rng(1)
    counted = dict.fromkeys(BELOW, 0)
    for _ in range(250):
        transcript = noisy(rng)
        for clique, missed in misses(
            transcript, REFERENCES[which](transcript), level=0.9, paper=paper
        ).items():
            counted[clique] += missed
    assert all(consistent(m, 250, 0.1) for m in counted.values()), counted


@pytest.mark.parametrize("joint", [False, True])
def test_all_together_hold_if_joint(joint: bool) -> None:
    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(250):
        transcript = noisy(rng)
        missed += any(misses(transcript, Given(near(transcript)), level=0.8, joint=joint).values())
    assert not joint or consistent(missed, 250, 0.2)
    alone = Bounds(DOMAIN, transcript, (), 0.8).of(BELOW, ModelReference(FLAT))
    together = Bounds(DOMAIN, transcript, (), 0.8, joint=True).of(BELOW, ModelReference(FLAT))
    assert all((a.records or 0) < (t.records or 0) for a, t in zip(alone, together, strict=True))


def test_half_the_scale_is_caught() -> None:
    rng = np.random.default_rng(3)
    counted = dict.fromkeys(BELOW, 0)
    for _ in range(250):
        transcript = noisy(rng, claimed=0.5)
        for clique, missed in misses(transcript, Given(near(transcript)), level=0.9).items():
            counted[clique] += missed
    assert not all(consistent(m, 250, 0.1) for m in counted.values()), counted


def test_bounds_on_a_model_that_fits_noise_are_about_the_noise() -> None:
    """Not absurdly loose: within 2.2 of the median error, and within 1.5 of what 95 % of errors stay below."""
    rng = np.random.default_rng(4)
    clique: Clique = ("a", "b")
    errors, bounds = [], []
    for _ in range(200):
        transcript = noisy(rng)
        values = near(transcript)
        errors.append(l1(values[clique] - TRUE.project(clique).values))
        (bound,) = Bounds(DOMAIN, transcript, ()).of([clique], Given(values))
        bounds.append(bound.records)
    assert np.median(bounds) < 2.2 * np.median(errors)
    assert np.median(bounds) < 1.5 * np.quantile(errors, 0.95)


def test_ours_are_tighter_than_the_papers() -> None:
    for seed in range(5):
        transcript = noisy(np.random.default_rng(seed))
        for reference in (ModelReference(FLAT), ModelReference(TRUE), Given(near(transcript))):
            ours = Bounds(DOMAIN, transcript, ()).of(BELOW, reference)
            paper = Bounds(DOMAIN, transcript, (), paper=True).of(BELOW, reference)
            assert all(
                (o.records or 0) < (p.records or 0) for o, p in zip(ours, paper, strict=True)
            )


def test_the_papers_form_by_hand() -> None:
    transcript = Transcript((measurement(("a",), [10, 20, 30], 4.0),))
    reference = Given({("a",): np.array([11.0, 18.0, 33.0])})
    (found,) = Bounds(DOMAIN, transcript, (), paper=True).of([("a",)], reference)
    tail = np.sqrt(2 * np.log(2)) * 4 * 3 + np.sqrt(np.log(20)) * 4 * np.sqrt(6)
    assert found.records == pytest.approx(6 + tail)
    assert found.share == pytest.approx((6 + tail) / 60)
    assert (found.supported, found.how, found.level, found.joint) == (True, "measured", 0.95, False)


def test_counts_below_zero_use_the_noise_up() -> None:
    """All noise lies on cells that are truly empty: each unit that is negative is a unit less on the others."""
    empty = Transcript((measurement(("a",), [-20, 0, 21], 10.0),))
    zero = Given({("a",): np.zeros(3)})
    (found,) = Bounds(DOMAIN, empty, ()).of([("a",)], zero)
    flat = Transcript((measurement(("a",), [0, 0, 0], 10.0),))
    (tail,) = Bounds(DOMAIN, flat, ()).of([("a",)], zero)
    assert found.records == pytest.approx(21 + (tail.records or 0) - 20)


def test_rows_that_violate_a_constraint_are_in_the_bounds() -> None:
    """They stay in the counts, and the model has no room for them: the bound must not take them for noise."""
    schema = Schema(
        Schema.coded({"a": 2, "b": 2}).columns, constraints=[Impossible({"a": [1], "b": [1]})]
    )
    rows = np.repeat(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), [300, 300, 300, 500], axis=0)
    table = MemoryTable(schema, Codes.of(schema.domain, {"a": rows[:, 0], "b": rows[:, 1]}))
    made = run_on(AIM(), table, AddRemoveRow(), Budget.zcdp(10), SeededRandomness(1))
    (found,) = made.bounds([("a", "b")])
    far = l1(table.count([("a", "b")])["a", "b"] - made.marginal(("a", "b")).values)
    assert far > 500
    assert far <= (found.records or 0) < 1.1 * far


@pytest.mark.slow
def test_what_a_unit_of_persons_leaves_out_is_told() -> None:
    table = memory_table({"a": 2, "b": 2}, [(1, 1)] * 400, persons=np.zeros(400, dtype=np.int64))
    made = run_on(AIM(), table, AddRemovePerson(2), Budget.zcdp(10), SeededRandomness(1))
    told = made.account.left_out
    assert "of at most 2 rows of each person" in told
    assert made.certificate()["left_out"] == told
    assert told in made.draws(2, rows=10, seed=0).notes
    assert made_by(CASES["aim"](DOMAIN), 2.0, 0).account.left_out == ""


def test_a_public_total_tightens() -> None:
    transcript = noisy(np.random.default_rng(5))
    known = Transcript((PublicTotal(int(truth().sum())), *transcript.entries))
    without, given = (Unbiased(DOMAIN, t).estimate(("c",)) for t in (transcript, known))
    assert without is not None
    assert given is not None
    assert given.spread < without.spread
    assert given.values.sum() == pytest.approx(truth().sum())


# Intervals.


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("claimed", [1.0, 0.5])
def test_intervals_hold_as_often_as_they_say_and_half_the_scale_is_caught(
    simultaneous: bool, claimed: float
) -> None:
    rng = np.random.default_rng(6)
    clique: Clique = ("b", "c")
    inside = []
    for _ in range(400):
        found = release(noisy(rng, [30.0, 60.0, 40.0], claimed)).intervals(
            clique, level=0.9, simultaneous=simultaneous
        )
        inside.append(np.abs(found.estimate - TRUE.project(clique).values) <= found.half_width)
    held = np.array(inside).reshape(400, -1)
    missed = (
        [int((~held.all(axis=1)).sum())] if simultaneous else [int(m) for m in (~held).sum(axis=0)]
    )
    assert all(consistent(m, 400, 0.1) for m in missed) == (claimed == 1.0)
    if claimed == 1.0:
        assert np.mean(missed) > 24  # of 40: not absurdly wide


def test_intervals_end_at_zero_and_say_what_they_are() -> None:
    found = release(Transcript((measurement(("a",), [1, 50, -90], 10.0),))).intervals(["a"])
    assert (found.clique, found.level, found.simultaneous) == (("a",), 0.95, False)
    np.testing.assert_allclose(found.low, [0.0, 50 - found.half_width, 0.0])
    np.testing.assert_allclose(found.high, [1 + found.half_width, 50 + found.half_width, 0.0])
    assert 19.6 < found.half_width < 22


def release(
    transcript: Transcript, hindsight: tuple[Hindsight, ...] = (), model: Any = TRUE
) -> Release:
    account = fake_model.release().account
    return Release(SCHEMA, model, transcript, account, Provenance("toy"), hindsight=hindsight)


@pytest.mark.parametrize("clique", [("a", "d"), ("d",)])
def test_other_marginals_have_no_intervals(clique: Clique) -> None:
    with pytest.raises(ReleaseError, match="no error bars per cell"):
        release(noisy(np.random.default_rng(0))).intervals(clique)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0, float("nan")])
def test_a_level_is_a_probability(level: float) -> None:
    made = release(noisy(np.random.default_rng(0)))
    with pytest.raises(InputError, match="not a probability"):
        made.bounds(level=level)
    with pytest.raises(InputError, match="not a probability"):
        made.intervals(["a"], level=level)


def test_unknown_and_empty_cliques_are_refused() -> None:
    made = release(noisy(np.random.default_rng(0)))
    with pytest.raises(InputError, match="no column 'nobody'"):
        made.bounds([["nobody"]])
    with pytest.raises(InputError, match="no columns"):
        made.bounds([[]])


# Unsupported marginals: one round of a choice and a measurement, again and again.

CANDIDATES: list[Clique] = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
ESTIMATES = {c: on_grid(FLAT.project(c).values * (1 + 0.1 * i)) for i, c in enumerate(CANDIDATES)}
WEIGHTS = np.array([1.0, 2.0, 1.5, 1.0, 0.5, 3.0])


def one_round(
    rng: np.random.Generator,
    epsilon: float,
    scale: float,
    claim_sensitivity: float = 1.0,
    claim_scale: float = 1.0,
    margin: float | None = None,
) -> tuple[Transcript, tuple[Hindsight, ...]]:
    """A choice by the exponential mechanism (its Gumbel form), the measurement, and what is remembered of them.

    With a margin it is the generalized one.
    """
    penalties = np.array([np.sqrt(2 / np.pi) * scale * DOMAIN.cells(c) for c in CANDIDATES])
    gaps = np.array([l1(TRUE.project(c).values - ESTIMATES[c]) for c in CANDIDATES])
    sensitivity = float(WEIGHTS.max())
    terms = {"weight": WEIGHTS, "penalty": penalties}
    scores = WEIGHTS * (gaps - penalties)
    if margin is not None:
        scores -= WEIGHTS * margin
        apart = np.subtract.outer(scores, scores) / np.add.outer(WEIGHTS, WEIGHTS)
        scores, sensitivity = apart.min(axis=1), 1.0
        terms |= {"margin": np.full(len(WEIGHTS), margin)}
    scores = epsilon * scores / (2 * sensitivity)
    chosen = CANDIDATES[int(np.argmax(scores + rng.gumbel(size=len(scores))))]
    answer = TRUE.project(chosen).values + discrete(rng, scale, DOMAIN.shape(chosen))
    entries = (
        Selection(
            tuple(CANDIDATES), chosen, epsilon, sensitivity * claim_sensitivity, Fraction(1, 8),
            terms,
        ),
        measurement(chosen, answer, scale * claim_scale),
    )  # fmt: skip
    drift = np.array([l1(ESTIMATES[c] - FLAT.project(c).values) for c in CANDIDATES])
    return Transcript(entries), (Hindsight(0, l1(answer - ESTIMATES[chosen]), drift),)


@pytest.mark.parametrize(
    ("epsilon", "margin"), [(1e-3, None), (0.02, None), (0.3, None), (5.0, None), (0.3, 30.0)]
)
@pytest.mark.parametrize("paper", [False, True])
def test_unsupported_bounds_hold_for_all_candidates_at_once(
    epsilon: float, paper: bool, margin: float | None
) -> None:
    """One choice and one measurement carry the bounds of all that were not chosen: they hold together, even alone."""
    rng = np.random.default_rng(7)
    missed, told = 0, 0
    for _ in range(300):
        made = release(*one_round(rng, epsilon, 5.0, margin=margin), model=FLAT)
        found = [b for b in made.bounds(CANDIDATES, level=0.8, paper=paper) if not b.supported]
        told += len(found)
        errors = [l1(TRUE.project(b.clique).values - FLAT.project(b.clique).values) for b in found]
        missed += any(e > (b.records or 0.0) for e, b in zip(errors, found, strict=True))
        assert all(b.how.startswith("not chosen in round 1") for b in found)
    assert consistent(missed, 300, 0.2)
    assert told >= 4 * 300


def overlooks(rng: np.random.Generator, claim: float) -> bool:
    """One candidate is worse than nineteen perfect ones by three fifths of what a choice can overlook.

    The exponential mechanism takes one of the nineteen often enough to be seen through by a claim of half the
    sensitivity. Noise is as small as it gets; all marginals are of one column of two codes.
    """
    schema = Schema.coded({f"x{i}": 2 for i in range(20)})
    names: list[Clique] = [(a,) for a in schema.domain]
    epsilon, sensitivity, miss = 0.01, 1.0, 0.025
    overlooked = 2 * sensitivity / epsilon * np.log(19 * (1 - miss) / miss)
    errors = np.zeros(20)
    errors[0] = 0.6 * overlooked
    chosen = int(np.argmax(epsilon / (2 * sensitivity) * errors + rng.gumbel(size=20)))
    answer = np.array([1000, 1000]) + np.rint(np.array([0.5, -0.5]) * errors[chosen]).astype(int)
    noise = discrete(rng, 2.0, 2)
    entries = (
        Selection(
            tuple(names), names[chosen], epsilon, sensitivity * claim, Fraction(1, 8),
            {"weight": np.ones(20), "penalty": np.zeros(20)},
        ),
        Measurement(names[chosen], answer + noise, 2.0, Fraction(1, 8)),
    )  # fmt: skip
    told = Hindsight(0, l1(answer + noise - 1000), np.zeros(20))
    found = Bounds(schema.domain, Transcript(entries), (told,)).of(
        names[:1], Given({names[0]: np.full(2, 1000.0)})
    )
    return bool(errors[0] > (found[0].records or 0.0))


def test_a_choice_that_overlooks_the_worst_is_allowed_for_and_half_the_sensitivity_is_caught() -> (
    None
):
    rng = np.random.default_rng(8)
    assert consistent(sum(overlooks(rng, 1.0) for _ in range(400)), 400, 0.05)
    assert not consistent(sum(overlooks(rng, 0.5) for _ in range(400)), 400, 0.05)


@pytest.mark.parametrize("margin", [None, 30.0])
def test_the_papers_unsupported_form_by_hand(margin: float | None) -> None:
    made = release(*one_round(np.random.default_rng(9), 0.5, 5.0, margin=margin), model=FLAT)
    selection, answer = made.transcript.selections[0], made.transcript.measurements[0]
    c, told = selection.candidates.index(selection.chosen), made.hindsight[0]
    penalties = selection.terms["penalty"] + (margin or 0.0)
    lambda_1, lambda_2 = np.sqrt(2 * np.log(40)), np.log(40)
    for b in made.bounds(CANDIDATES, paper=True):
        if not b.supported:
            i = CANDIDATES.index(b.clique)
            right = WEIGHTS[c] * (told.surprise + lambda_1 * 5.0 * np.sqrt(answer.values.size))
            right += WEIGHTS[i] * penalties[i] - WEIGHTS[c] * penalties[c]
            unit = 3.0 if margin is None else WEIGHTS[c] + WEIGHTS[i]
            right += 2 * unit / 0.5 * (np.log(6) + lambda_2)
            assert b.records == pytest.approx(right / WEIGHTS[i] + told.drift[i])


def test_a_concentrated_column_ties_a_marginal_to_a_smaller_one() -> None:
    """The inequality by random tables, and the bound that it gives, by hand."""
    rng = np.random.default_rng(13)
    for _ in range(300):
        real, near = (
            rng.poisson(rng.exponential(size=(3, 4)) * [9, 1, 0.3, 0.1]) for _ in range(2)
        )
        c = int(np.argmax(near.sum(0)))
        outside = sum(float(t.sum() - t[:, c].sum()) for t in (real, near))
        assert l1(real - near) <= l1(real.sum(1) - near.sum(1)) + 2 * outside
        outside_real = float(real.sum() - real[:, c].sum())
        assert outside_real <= near.sum() - near[:, c].sum() + l1(real.sum(0) - near.sum(0))


def test_a_bound_by_way_of_a_concentrated_column() -> None:
    schema = Schema.coded({"x": 30, "y": 50})
    counts = np.zeros((30, 50))
    counts[:, 0], counts[:5, 1] = 1000.0, 10.0
    model = fake_model.TableModel(schema.domain, counts)
    pair: Clique = ("x", "y")
    ones = [measurement((a,), model.project((a,)).values, 20.0) for a in schema.domain]
    selection = Selection(
        (("x",), pair),
        ("x",),
        0.1,
        1.0,
        Fraction(1, 8),
        {"weight": np.ones(2), "penalty": np.array([24.0, 9000.0])},
    )
    transcript = Transcript(
        (*ones, selection, measurement(("x",), model.project(("x",)).values, 1.0))
    )
    told = (Hindsight(0, 24.0, np.array([np.nan, 0.0])),)
    (found,) = Bounds(schema.domain, transcript, told).of([pair], ModelReference(model))
    half = 0.025  # a choice that fails a little less often leaves the two columns something
    level = 1 - (half - half / (1 + half)) / 2
    x, y = Bounds(schema.domain, transcript, told, level).of(
        [("x",), ("y",)], ModelReference(model)
    )
    assert found.how == "not chosen in round 1, and columns measured"
    assert found.records == pytest.approx((x.records or 0) + 2 * (2 * 50.0 + (y.records or 0)))
    (direct,) = Bounds(schema.domain, transcript, told, paper=True).of(
        [pair], ModelReference(model)
    )
    assert found.records < (direct.records or 0)
    # it needs no drift of the pair's own
    unknown = (Hindsight(0, 24.0, np.array([np.nan, np.nan])),)
    assert Bounds(schema.domain, transcript, unknown).of([pair], ModelReference(model)) == (found,)
    (none,) = Bounds(schema.domain, transcript, unknown, paper=True).of(
        [pair], ModelReference(model)
    )
    assert (none.records, none.how) == (None, "no bound: the model's marginal is too large")


def test_looking_for_a_shorter_way_costs_the_direct_one_next_to_nothing() -> None:
    """Unsupported bounds are no looser than the paper's, although the measured marginals below share their chance."""
    made = made_by(AIM(rounds=8), 2.0, 4)
    ours, papers = made.bounds(), made.bounds(paper=True)
    two = [
        (a, b)
        for a, b in zip(ours, papers, strict=True)
        if not a.supported and b.records is not None
    ]
    assert two
    for a, b in two:
        assert a.records is not None
        assert a.records <= b.records


def test_the_last_round_counts_and_what_no_round_tells_has_no_bound() -> None:
    rng = np.random.default_rng(10)
    (first, (told,)), (second, (also,)) = one_round(rng, 0.5, 5.0), one_round(rng, 0.5, 2.0)
    later = replace(also, selection=1, drift=np.where(np.arange(6) % 2, also.drift, np.nan))
    told = replace(told, drift=np.where(np.arange(6) % 2, np.nan, told.drift))
    found = {
        b.clique: b
        for b in release(first + second, (told, later), FLAT).bounds([*CANDIDATES, ("b", "c", "d")])
    }
    for i, clique in enumerate(CANDIDATES):
        if not found[clique].supported:
            assert found[clique].how.startswith(f"not chosen in round {1 + i % 2}")
    nothing = found["b", "c", "d"]
    assert (nothing.records, nothing.share, nothing.supported) == (None, None, False)
    assert nothing.how.startswith("no bound")
    assert nothing.words == ("-", "-")


# Tables of synthetic rows.


def test_a_table_is_bounded_by_its_own_marginals() -> None:
    rng = np.random.default_rng(11)
    transcript, hindsight = one_round(rng, 0.5, 5.0)
    made = release(transcript, hindsight, FLAT)
    codes = FLAT.sample(500, rng=rng)
    counts = {c: v * FLAT.total / 500 for c, v in count_cliques(codes, CANDIDATES).items()}
    on_model = {b.clique: b for b in made.bounds(CANDIDATES, paper=True)}
    on_table = {b.clique: b for b in made.bounds(CANDIDATES, table=codes, paper=True)}
    for clique in CANDIDATES:
        if on_model[clique].supported:
            (own,) = Bounds(DOMAIN, transcript, (), paper=True).of([clique], Given(counts))
            assert on_table[clique].records == pytest.approx(own.records)
        else:
            apart = l1(counts[clique] - FLAT.project(clique).values)
            assert on_table[clique].records == pytest.approx(
                (on_model[clique].records or 0) + apart
            )
    assert made.bounds(CANDIDATES, table=SCHEMA.decode(codes, rng=rng)) == made.bounds(
        CANDIDATES, table=codes
    )


def test_a_table_without_rows_or_of_another_schema_is_refused() -> None:
    made = release(noisy(np.random.default_rng(0)))
    other = Schema.coded({"z": 2})
    with pytest.raises(InputError, match="no rows of this release"):
        made.bounds(table=FLAT.sample(0, rng=np.random.default_rng(0)))
    with pytest.raises(
        InputError, match="not of this release's schema: column 'a' is in one of the two only"
    ):
        made.bounds(table=Codes(other.domain, np.zeros((1, 3), dtype=int)))


# What mechanisms remember.

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
ROWS = [tuple(r) for r in np.argwhere(truth() > 0).repeat(truth()[truth() > 0], axis=0).tolist()]
TABLE = memory_table(SIZES, ROWS)


def made_by(mechanism: Any, epsilon: float, seed: int, unit: Any = AddRemoveRow()) -> Release:
    return run_on(
        mechanism, TABLE, unit, Budget.approx(epsilon, 1e-9), SeededRandomness(seed), seed=seed
    )


@pytest.mark.parametrize(
    "unit", [AddRemoveRow(), pytest.param(ReplaceRow(), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "mechanism",
    [AIM(), AIM(rounds=6, max_model_mb=5e-4), MWEMPGM(), MST(), Independent()],
    ids=repr,
)
def test_bounds_hold_on_releases(mechanism: Any, unit: Any) -> None:
    """Together, at 90 %: adaptive choices and all. Every marginal that can have a bound has one."""
    missed = 0
    for seed in range(25):
        made = made_by(mechanism, 3.0, seed, unit)
        found = made.bounds(joint=True, level=0.9)
        assert {b.clique for b in found} >= set(made.transcript.cliques)
        supported = set(closure(made.transcript.cliques))
        asked = {c for s in made.transcript.selections for c in s.candidates}
        for b in found:
            looked_back = bool(made.hindsight) and b.clique in asked
            assert b.supported == (b.clique in supported)
            assert (b.records is not None) == (b.supported or looked_back)
        true = TABLE.count([b.clique for b in found])
        errors = {b.clique: l1(true[b.clique] - made.marginal(b.clique).values) for b in found}
        missed += any(b.records is not None and errors[b.clique] > b.records for b in found)
    assert consistent(missed, 25, 0.1), missed


def test_what_is_remembered_is_what_choices_were_scored_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from margrave.mechanisms.parts import choice

    scored: list[Any] = []
    original = choice.MarginalGap
    monkeypatch.setattr(
        choice, "MarginalGap", lambda e, *more: scored.append(e) or original(e, *more)
    )
    made = made_by(AIM(rounds=8), 2.0, 4)
    supported = set(closure(made.transcript.cliques))
    last = {
        c: t
        for t, s in enumerate(made.transcript.selections)
        for c in s.candidates
        if c not in supported
    }
    told = {h.selection: h for h in made.hindsight}
    assert set(told) == set(last.values())
    assert last
    for clique, t in last.items():
        selection = made.transcript.selections[t]
        expected = l1(on_grid(scored[t][clique]) - made.marginal(clique).values)
        assert told[t].drift[selection.candidates.index(clique)] == pytest.approx(expected)
        answer = next(
            m for e, m in zip(made.transcript.entries, made.transcript.entries[1:], strict=False)
            if e is selection and isinstance(m, Measurement)
        )  # fmt: skip
        assert told[t].surprise == pytest.approx(
            l1(on_grid(scored[t][selection.chosen]) - answer.values)
        )
    assert sum(int(np.isfinite(h.drift).sum()) for h in made.hindsight) == len(last)


def test_nothing_is_computed_for_error_bounds_until_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    computed: list[int] = []
    compare = SelectionLog._compared

    def counted(self: SelectionLog, *given: Any) -> Any:
        computed.append(1)
        return compare(self, *given)

    monkeypatch.setattr(SelectionLog, "_compared", counted)
    made = made_by(AIM(rounds=8), 2.0, 4)
    made.sample(10, seed=1)
    assert computed == []
    bounds = made.bounds()
    made.save(tmp_path / "r.margrave")
    assert computed == [1]
    assert Release.load(tmp_path / "r.margrave").bounds() == bounds


def test_a_model_too_large_to_answer_exactly_is_looked_back_on_as_far_as_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = made_by(AIM(rounds=8), 2.0, 4)
    assert whole.hindsight  # computed here, before the limit below
    monkeypatch.setattr(
        "margrave.mechanisms.parts.selection_log.HINDSIGHT_BATCH_CELLS", 12
    )  # pairs of few codes, one at a time
    small = made_by(AIM(rounds=8), 2.0, 4)
    assert small.transcript.cliques == whole.transcript.cliques
    for before, after in zip(small.hindsight, whole.hindsight, strict=False):
        known = np.isfinite(before.drift)
        np.testing.assert_allclose(before.drift[known], after.drift[known])
    assert sum(np.isfinite(h.drift).sum() for h in small.hindsight) < sum(
        np.isfinite(h.drift).sum() for h in whole.hindsight
    )
    bounds = {b.clique: b for b in whole.bounds()}
    for b in small.bounds():
        if b.records is None:
            assert b.how.startswith("no bound")
        else:
            assert (
                b.records >= (bounds[b.clique].records or 0.0) - 1e-9
            )  # fewer ways to choose from


def test_codes_merged_by_mst_are_bounded_with_what_lies_in_them() -> None:
    schema = Schema.coded({"a": 40, "b": 3})
    rng = np.random.default_rng(12)
    rows = [(int(min(39, rng.exponential(4))), int(rng.integers(3))) for _ in range(3000)]
    table = memory_table({"a": 40, "b": 3}, rows)
    made = run_on(MST(), table, AddRemoveRow(), Budget.approx(1.0, 1e-9), SeededRandomness(1))
    found = {b.clique: b for b in made.bounds()}
    pair = found["a", "b"]
    assert any(m.query.groups for m in made.transcript.measurements)
    assert (pair.how, pair.supported) == ("measured, rare codes together", True)
    assert found["a",].how == found["b",].how == "measured"
    true = table.count(list(found))
    for clique, b in found.items():
        assert b.records is not None
        assert l1(true[clique] - made.marginal(clique).values) <= b.records
    with pytest.raises(ReleaseError, match="no error bars"):
        made.intervals(["a", "b"])
    # the merged codes' own rows are in the bound, twice
    groups = made.transcript.measurements[-1].query.groups["a"]
    rare = np.bincount(groups)[groups] > 1
    mass = float(made.marginal(["a"]).values[rare].sum())
    estimate = Unbiased(schema.domain, made.transcript).estimate(("a", "b"))
    assert estimate is not None
    alone = replace(SupportedEstimate.of(estimate, made.marginal(["a", "b"]).values), merged=0.0)
    assert mass > 1.0
    assert pair.records == pytest.approx(alone.bound(0.05, paper=False) + 2 * mass)


def test_answers_without_a_model_are_bounded_where_measured() -> None:
    made = made_by(CASES["gaussian"](DOMAIN), 2.0, 0)
    assert all(b.supported and b.records is not None for b in made.bounds())


def test_a_refit_forgets_and_still_bounds_what_was_measured() -> None:
    made = made_by(AIM(), 1.0, 2)
    again = made.refit(GraphicalFit(shrinkage=1.0))
    assert again.hindsight == ()
    before, after = ({b.clique: b for b in r.bounds()} for r in (made, again))
    for clique, b in after.items():
        assert (b.records is None) == (not b.supported)
        assert b.supported == before[clique].supported


def test_bounds_survive_the_file(tmp_path: Path) -> None:
    made = made_by(AIM(), 1.0, 3)
    made.save(tmp_path / "r.margrave")
    back = Release.load(tmp_path / "r.margrave")
    assert made.hindsight
    assert back.bounds() == made.bounds()
    assert back.bounds(joint=True, paper=True, level=0.5) == made.bounds(
        joint=True, paper=True, level=0.5
    )
    np.testing.assert_array_equal(back.intervals(["a"]).estimate, made.intervals(["a"]).estimate)
    json.dumps([b.to_dict() for b in back.bounds()], allow_nan=False)


def rewritten(path: Path, change: Callable[[Any], None]) -> Path:
    """A copy of a release with its manifest changed."""
    target = path.with_name("changed.margrave")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as out:
        for name in source.namelist():
            data = source.read(name)
            if name == "manifest.json":
                plain = json.loads(data)
                change(plain)
                data = json.dumps(plain).encode()
            out.writestr(name, data)
    return target


def test_a_file_from_before_loads_without_hindsight(tmp_path: Path) -> None:
    made_by(AIM(), 1.0, 3).save(tmp_path / "r.margrave")
    back = Release.load(rewritten(tmp_path / "r.margrave", lambda plain: plain.pop("hindsight")))
    assert back.hindsight == ()
    assert all(b.supported or b.records is None for b in back.bounds())


BREAKS: list[Callable[[Any], Any]] = [
    lambda told: told.update(selection=99),
    lambda told: told.update(selection=-1),
    lambda told: told.update(selection=True),
    lambda told: told.update(selection="0"),
    lambda told: told.update(surprise=-1.0),
    lambda told: told.update(surprise=None),
    lambda told: told.update(drift="nowhere"),
    lambda told: told.update(drift="000000"),  # the first measurement's values: integers
    lambda told: told.pop("drift"),
]


@pytest.mark.parametrize("change", range(len(BREAKS)))
def test_hindsight_that_does_not_fit_is_refused(tmp_path: Path, change: int) -> None:
    made_by(AIM(), 1.0, 3).save(tmp_path / "r.margrave")
    broken = rewritten(tmp_path / "r.margrave", lambda plain: BREAKS[change](plain["hindsight"][0]))
    with pytest.raises(
        ReleaseError, match=r"not a release that can be read|is cut off or was altered"
    ):
        Release.load(broken)


def test_hindsight_told_twice_is_refused(tmp_path: Path) -> None:
    made_by(AIM(), 1.0, 3).save(tmp_path / "r.margrave")
    broken = rewritten(
        tmp_path / "r.margrave", lambda plain: plain["hindsight"].append(plain["hindsight"][0])
    )
    with pytest.raises(ReleaseError, match="does not fit its candidates"):
        Release.load(broken)


def test_a_transcript_without_a_question_bounds_nothing() -> None:
    (found,) = release(Transcript()).bounds([["a"]])
    assert (found.records, found.supported) == (None, False)
    assert release(Transcript()).bounds() == ()


def test_a_bound_is_plain_data() -> None:
    bound = Bound(("a", "b"), True, 12.0, 0.5, 0.95, False, "measured")
    assert bound.to_dict() == {
        "clique": ["a", "b"], "supported": True, "records": 12.0, "share": 0.5,
        "level": 0.95, "joint": False, "how": "measured",
    }  # fmt: skip
    assert bound.words == ("12", "0.5")
    assert replace(bound, share=2.5).words == ("12", "2 or more")


def test_the_marginals_of_interest_are_the_workloads_and_below() -> None:
    made = made_by(AIM(), 1.0, 0)
    triples = combinations(DOMAIN.attributes, 3)
    assert {b.clique for b in made.bounds()} == set(closure(triples))
    few = made_by(CASES["aim uneven"](DOMAIN), 1.0, 0)
    assert len(few.bounds()) == 10
    assert len(release(noisy(np.random.default_rng(0))).bounds()) == len(BELOW)


def test_rows_as_the_gate_counts_them_are_the_toy_table() -> None:
    assert len(ROWS) == truth().sum()
    assert some_rows(SIZES, 3)  # the conformance rows are others
    np.testing.assert_array_equal(TABLE.count([("a", "b")])["a", "b"], truth().sum(axis=(2, 3)))
