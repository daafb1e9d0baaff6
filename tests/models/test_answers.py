"""Answers only: averages of what was measured, and a clear refusal of everything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.marginal import LinearMap
from margrave.models import FAMILIES, Answers, AnswersFit
from margrave.transcript import PublicTotal, Transcript
from tests.support.strategies import domain_of, measurement

DOMAIN = domain_of([2, 3, 4])
PAIR = measurement(("c0", "c1"), [[4, -1, 7], [10, 2, 0]], 2.0)
SINGLE = measurement(("c0",), [13, 9], 1.0)


def fitted(*entries: Any) -> Answers:
    model = AnswersFit()(DOMAIN, Transcript(entries), rng=np.random.default_rng(0))
    assert isinstance(model, Answers)
    return model


def test_a_marginal_measured_once_is_given_as_it_is() -> None:
    model = fitted(PAIR)
    assert np.array_equal(
        model.project(("c0", "c1")).values, PAIR.values
    )  # negative counts and all
    assert np.array_equal(model.project(("c1",)).values, [14, 1, 7])
    assert model.domain == DOMAIN


def test_answers_about_one_marginal_are_averaged_by_precision() -> None:
    """The pair summed to c0 has variance 3 · 4 a cell, the single 1: weights 1/13 and 12/13."""
    values = fitted(PAIR, SINGLE).project(("c0",)).values
    assert_allclose(
        values, (np.array([10, 12]) / 12 + np.array([13, 9])) / (1 / 12 + 1), rtol=1e-12
    )
    twice = fitted(SINGLE, measurement(("c0",), [3, 19], 2.0)).project(("c0",)).values
    assert_allclose(twice, [11.0, 11.0], rtol=1e-12)
    # nothing flows upwards
    assert np.array_equal(fitted(PAIR, SINGLE).project(("c0", "c1")).values, PAIR.values)


def test_the_average_is_of_least_variance_and_unbiased() -> None:
    """Over 2,000 draws the variance is what the precisions say, within 7 standard errors (under 1e-10 by chance)."""
    rng = np.random.default_rng(3)
    truth = np.full((2, 3), 1_000.0)
    found = []
    for _ in range(2_000):
        pair = measurement(("c0", "c1"), truth + rng.normal(scale=20.0, size=(2, 3)), 20.0)
        single = measurement(("c0",), truth.sum(1) + rng.normal(scale=30.0, size=2), 30.0)
        found.append(float(fitted(pair, single).project(("c0",)).values[0]) - 3_000.0)
    expected = 1.0 / (1 / (3 * 400) + 1 / 900)
    assert abs(np.mean(found)) < 7 * np.sqrt(expected / 2_000)
    assert abs(np.var(found) / expected - 1) < 7 * np.sqrt(2 / 2_000)


def test_batches_are_the_single_answers() -> None:
    model = fitted(PAIR, SINGLE)
    cliques = [("c1",), ("c0", "c1"), ("c0",)]
    together = model.answer(cliques, rng=np.random.default_rng(0))
    assert list(together) == cliques
    assert all(np.array_equal(together[c], model.project(c).values) for c in cliques)


def test_what_was_not_measured_is_refused_with_a_remedy() -> None:
    model = fitted(PAIR, SINGLE)
    for clique in (("c2",), ("c0", "c2"), ("c0", "c1", "c2")):
        with pytest.raises(ReleaseError, match=r"c2.*was not measured.*Refit"):
            model.project(clique)
    with pytest.raises(ReleaseError, match="was not measured"):
        model.answer([("c0",), ("c2",)])


def test_there_are_no_records_and_nothing_to_condition() -> None:
    model = fitted(PAIR)
    with pytest.raises(ReleaseError, match=r"no distribution.*Refit"):
        model.distribution()


def test_the_total_is_the_transcripts() -> None:
    assert fitted(SINGLE).total == 22.0
    assert fitted(SINGLE, PublicTotal(30)).total == 30.0
    assert fitted(PAIR, SINGLE).total == Transcript((PAIR, SINGLE)).total()


def test_answers_about_groups_are_not_answers_about_codes() -> None:
    grouped = measurement(("c2",), [5, 6], 1.0, LinearMap({"c2": np.array([0, 0, 1, 1])}))
    with pytest.raises(ReleaseError, match="c2"):
        fitted(grouped, SINGLE).project(("c2",))


def test_sizes_count_each_clique_once() -> None:
    fit = AnswersFit()
    cliques = [("c0", "c1"), ("c1", "c2"), ("c0", "c1")]
    assert fit.cells(DOMAIN, cliques) == 6 + 12
    candidates = [("c0",), ("c0", "c1"), ("c0", "c1", "c2")]
    assert fit.sizes_with(DOMAIN, cliques, candidates).tolist() == [20.0, 18.0, 42.0]
    assert all(
        fit.cells(DOMAIN, [*cliques, c]) == with_it
        for c, with_it in zip(candidates, fit.sizes_with(DOMAIN, cliques, candidates), strict=True)
    )


def test_state_and_load_give_identical_answers() -> None:
    model = fitted(PAIR, SINGLE, measurement(("c1", "c2"), np.arange(12).reshape(3, 4), 0.7))
    state = model.state()
    again = FAMILIES[state.kind].load(DOMAIN, json.loads(json.dumps(state.facts)), state.arrays)
    assert again.total == model.total
    for clique in (("c0",), ("c1",), ("c2",), ("c0", "c1"), ("c1", "c2")):
        assert np.array_equal(again.project(clique).values, model.project(clique).values)


MALFORMED: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "no cliques": lambda facts, arrays: facts.pop("cliques"),
    "no total": lambda facts, arrays: facts.pop("total"),
    "the total is text": lambda facts, arrays: facts.update(total="22"),
    "the total is not a number": lambda facts, arrays: facts.update(total=float("nan")),
    "an unknown column": lambda facts, arrays: facts.update(cliques=[["nobody", "c1"], ["c0"]]),
    "a clique is a number": lambda facts, arrays: facts.update(cliques=[1, 2]),
    "a name is a list": lambda facts, arrays: facts.update(cliques=[[["c0"], "c1"], ["c0"]]),
    "another order": lambda facts, arrays: facts.update(cliques=[["c1", "c0"], ["c0"]]),
    "a clique twice": lambda facts, arrays: facts.update(cliques=[["c0", "c1"], ["c0", "c1"]]),
    "values missing": lambda facts, arrays: arrays.pop("values1"),
    "scales missing": lambda facts, arrays: arrays.pop("scales0"),
    "values of another shape": lambda facts, arrays: arrays.update(values1=np.zeros(3)),
    "scales of another shape": lambda facts, arrays: arrays.update(scales1=np.ones((2, 1))),
    "values that are text": lambda facts, arrays: arrays.update(values1=np.array(["a", "b"])),
    "values that are not numbers": lambda facts, arrays: arrays.update(
        values1=np.array([np.nan, 1.0])
    ),
    "values without end": lambda facts, arrays: arrays.update(values1=np.array([-np.inf, 1.0])),
    "scales of zero": lambda facts, arrays: arrays.update(scales1=np.array([0.0, 1.0])),
    "scales below zero": lambda facts, arrays: arrays.update(scales1=np.array([-1.0, 1.0])),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_state_is_a_release_error(what: str) -> None:
    state = fitted(PAIR, SINGLE).state()
    facts, arrays = json.loads(json.dumps(state.facts)), dict(state.arrays)
    FAMILIES["answers"].load(DOMAIN, facts, arrays)
    MALFORMED[what](facts, arrays)
    with pytest.raises(ReleaseError):
        FAMILIES["answers"].load(DOMAIN, facts, arrays)


def test_the_state_of_another_domain_is_a_release_error() -> None:
    state = fitted(PAIR, SINGLE).state()
    for other in (domain_of([3, 3, 4]), domain_of([2]), Domain.of({"a": 2})):
        with pytest.raises(ReleaseError):
            FAMILIES["answers"].load(other, state.facts, state.arrays)
