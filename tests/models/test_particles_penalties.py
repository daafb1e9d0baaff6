"""Penalties on particles: their gradients by differences, and what they do to the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.marginal.counting import count_cliques
from margrave.models import Needs, ParticleFit
from margrave.models.particles import (
    Differentiable,
    Embedding,
    InOrder,
    Penalty,
    Repulsion,
    Statistic,
)
from margrave.models.particles.penalties import Prepared
from margrave.schema import Categorical, Date, Integer, Schema
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Measurement, PublicTotal, Transcript
from margrave.types import FloatArray

BELOW = StructuralZeros(("a", "b"), np.triu(np.ones((6, 8), dtype=np.bool_)))
DOMAIN = Domain(("a", "b", "c"), (6, 8, 5), (BELOW,), frozenset(), frozenset("c"))
VALUES = {"a": (0.0, 1.0, 3.0, 4.0, 8.0, 9.0), "b": tuple(range(1, 9)), "c": (0.0, 2.0, 3.0, 7.0)}
FIT = ParticleFit(particles=3000)

EVERY: dict[str, Penalty] = {
    "a mean kept": Statistic(coefficients={"a": 1.0, "b": -2.0}, target=0.3),
    "a mean hidden": Statistic(coefficients={"b": 0.7}, target=0.1, hidden=True),
    "a threshold kept": Statistic(coefficients={"b": 1.0, "c": 1.5}, target=0.2, threshold=1.0),
    "a threshold hidden": Statistic(
        coefficients={"a": -1.0, "b": 1.0}, target=0.6, threshold=0.1, hidden=True
    ),
    "in order": InOrder(first="a", second="b", values=VALUES),
    "in order, with missing": InOrder(first="c", second="a", values=VALUES),
    "in order, apart": InOrder(first="a", second="b", values=VALUES, margin=1.7),
    "means in order": InOrder(first="a", second="c", values=VALUES, means=True),
    "repulsion": Repulsion(clique=("a", "b")),
}


def somewhere(embedding: Embedding, penalty: Penalty, count: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.05, 1.05, (len(embedding.coordinates(penalty.attributes)), count))


@pytest.mark.parametrize("name", EVERY)
def test_gradients_are_differences(name: str) -> None:
    penalty, embedding = EVERY[name], Embedding.of(DOMAIN)
    penalty.check(embedding)
    particles = somewhere(embedding, penalty, 40)
    value, gradient = penalty.value(embedding, particles)
    assert value > 0.0
    assert np.abs(gradient).max() > 0.0
    step = 1e-6
    for at in np.ndindex(particles.shape):
        ahead, behind = particles.copy(), particles.copy()
        ahead[at] += step
        behind[at] -= step
        slope = (penalty.value(embedding, ahead)[0] - penalty.value(embedding, behind)[0]) / (
            2 * step
        )
        assert gradient[at] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_values_are_those_of_the_formulas() -> None:
    embedding = Embedding.of(DOMAIN)
    line = np.array([[0.1, 0.5, 0.9]])
    assert Statistic(coefficients={"b": 2.0}, target=0.4).value(embedding, line)[
        0
    ] == pytest.approx(0.36)
    hidden = Statistic(coefficients={"b": 2.0}, target=0.4, hidden=True)
    assert hidden.value(embedding, line)[0] == pytest.approx(0.01 / 0.3601)
    smooth = Statistic(coefficients={"b": 1.0}, target=0.0, threshold=0.5)
    expected = np.mean([1 / (1 + np.exp(-5 * (x - 0.5))) for x in (0.1, 0.5, 0.9)]) ** 2
    assert smooth.value(embedding, line)[0] == pytest.approx(expected)
    # a of code 4 stands for 8, b of code 2 for 3; the range of all values is 0 to 9
    points = np.array([[4.5 / 6, 0.5 / 6], [2.5 / 8, 2.5 / 8]])
    assert EVERY["in order"].value(embedding, points)[0] == pytest.approx((5 / 9) ** 2 / 2)
    # the nearest possible cell to (4, 2) is (3, 3)
    assert EVERY["repulsion"].value(embedding, points[:, :1])[0] == pytest.approx(
        (1 / 6) ** 2 + (1 / 8) ** 2
    )


def test_a_prepared_penalty_has_its_columns_in_the_order_of_the_particles() -> None:
    embedding = Embedding.of(DOMAIN)
    penalty = Statistic(coefficients={"b": 5.0, "a": 1.0}, target=0.0)
    ready = Prepared(penalty, embedding)
    assert ready.coordinates.tolist() == [0, 1]
    value, gradient = ready(np.array([[1.0], [0.0]]))
    assert value == pytest.approx(1.0)
    assert gradient.ravel() == pytest.approx([2.0, 10.0])


def test_a_function_that_jax_differentiates_is_as_good_as_a_closed_form() -> None:
    pytest.importorskip("jax")
    embedding, closed = Embedding.of(DOMAIN), EVERY["a mean kept"]

    def function(z: Any) -> Any:
        return ((z[0] - 2.0 * z[1]).mean() - 0.3) ** 2

    own = Differentiable(function=function, attributes=("a", "b"), name="a mean")
    particles = somewhere(embedding, closed, 30)
    value, gradient = own.value(embedding, particles)
    expected = closed.value(embedding, particles)
    assert value == pytest.approx(expected[0], rel=1e-5)
    assert gradient == pytest.approx(expected[1], rel=1e-4, abs=1e-7)
    assert "0x" not in repr(own)


# What they do to the records.


def data(domain: Domain, seed: int = 0, count: int = 3000) -> Codes:
    rng = np.random.default_rng(seed)
    base = rng.random(count)
    columns = {a: ((base + rng.random(count)) / 2 * domain.size(a)).astype(int) for a in domain}
    return Codes.of(domain, columns)


def transcript(codes: Codes) -> Transcript:
    counts = count_cliques(codes, combinations(codes.domain.attributes, 2))
    return Transcript(
        (PublicTotal(len(codes)), *(Measurement(c, v, 1.0, Fraction(1)) for c, v in counts.items()))
    )


FREE = Domain.of({"a": 6, "b": 8, "c": 5})


def records(
    penalty: Penalty | None, domain: Domain = FREE, **changed: Any
) -> tuple[Codes, FloatArray]:
    """Records of a fit with a penalty, and their points."""
    fit = replace(FIT, penalties=() if penalty is None else (penalty,), **changed)
    codes = fit(domain, transcript(data(FREE)), rng=np.random.default_rng(0)).sample(
        3000, rng=np.random.default_rng(0)
    )
    return codes, Embedding.of(domain).embed(codes)


def off(codes: Codes) -> float:
    """The mean total variation of pairs from the data."""
    cliques = list(combinations(codes.domain.attributes, 2))
    one, other = count_cliques(data(FREE), cliques), count_cliques(codes, cliques)
    return float(np.mean([np.abs(one[c] - other[c]).sum() / 6000 for c in cliques]))


ADAM = {
    "optimizer": "adam",
    "rate": 0.1,
    "decay": 0.75,
    "epochs": 400,
    "n_projections": 10,
    "update_fraction": 0.2,
}


@pytest.mark.parametrize("descent", [{}, ADAM], ids=["transport", "adam"])
def test_a_mean_is_drawn_to_its_target(descent: dict[str, Any]) -> None:
    plain = records(None, **descent)[1][0].mean()
    target = float(plain) + 0.1
    found = records(Statistic(coefficients={"a": 1.0}, target=target, weight=20.0), **descent)[1][
        0
    ].mean()
    assert abs(found - target) < 0.03
    assert abs(plain - target) > 0.09


@pytest.mark.parametrize("descent", [{}, ADAM], ids=["transport", "adam"])
def test_a_threshold_is_hidden_and_the_marginals_stay_near(descent: dict[str, Any]) -> None:
    def share(points: FloatArray) -> float:
        return float((points[0] + points[1] + points[2] > 1.9).mean())

    real = Embedding.of(FREE).embed(data(FREE))
    smooth = (1 / (1 + np.exp(-5 * (real.sum(axis=0) - 1.9)))).mean()
    ones = dict.fromkeys("abc", 1.0)
    hiding = Statistic(
        coefficients=ones, target=float(smooth), threshold=1.9, hidden=True, weight=0.003
    )
    plain, plain_points = records(None, **descent)
    hidden, hidden_points = records(hiding, **descent)
    assert abs(share(plain_points) - share(real)) < 0.015
    assert abs(share(hidden_points) - share(real)) > 0.03
    assert off(plain) < 0.03
    assert off(hidden) < 0.25


def test_an_order_of_two_columns_is_kept_by_more_records() -> None:
    values = {"a": tuple(range(6)), "b": tuple(x * 0.7 for x in range(8))}

    def broken(codes: Codes) -> float:
        return float(
            (
                np.take(values["a"], codes.column("a")) > np.take(values["b"], codes.column("b"))
            ).mean()
        )

    plain, _ = records(None)
    ordered, _ = records(InOrder(first="a", second="b", values=values, margin=0.85, weight=30.0))
    assert broken(plain) > 0.2
    assert broken(ordered) < 0.25 * broken(plain)


def test_means_are_put_in_order() -> None:
    values = {"a": tuple(range(6)), "c": tuple(range(5))}
    plain, _ = records(None)
    ordered, _ = records(
        InOrder(first="a", second="c", values=values, means=True, margin=1.5, weight=100.0)
    )
    assert plain.column("a").mean() > plain.column("c").mean() + 0.3
    assert ordered.column("a").mean() < ordered.column("c").mean() - 1.0


def test_repulsion_leaves_less_to_be_moved_in_the_end() -> None:
    """The marginals of others are nearer than where impossible records are moved alone."""
    domain = Domain.of({"a": 6, "b": 8, "c": 5}, [BELOW])
    plain, _ = records(None, domain)
    repelled, _ = records(Repulsion(clique=("a", "b"), weight=1.0), domain)
    for codes in (plain, repelled):
        assert BELOW.possible[codes.column("a"), codes.column("b")].all()
    real = count_cliques(data(FREE), [("a", "c"), ("b", "c")])
    apart = [
        sum(np.abs(v - real[c]).sum() for c, v in count_cliques(codes, real).items())
        for codes in (plain, repelled)
    ]
    assert apart[1] < 1.05 * apart[0]


# Refused.


@pytest.mark.parametrize(
    ("penalty", "words"),
    [
        (lambda: Statistic(coefficients={"nope": 1.0}, target=0.0), "nope"),
        (lambda: Statistic(coefficients={"name": 1.0}, target=0.0), "'name'"),
        (lambda: Statistic(coefficients={}, target=0.0), "coefficients"),
        (lambda: Statistic(coefficients={"a": 1.0}, target=0.0, weight=-1.0), "weight"),
        (lambda: InOrder(first="a", second="b", values={"a": (1.0, 2.0)}), "'a'"),
        (lambda: InOrder(first="a", second="b", values={"a": (3.0, 2.0, 1.0), "b": (1.0, 2.0, 3.0)}), "'a'"),
        (lambda: Repulsion(clique=("a", "b")), "a, b"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_anything_is_spent(
    penalty: Callable[[], Penalty], words: str
) -> None:
    domain = Domain(("a", "b", "name"), (3, 3, 4), (), frozenset({"name"}))
    needs = Needs(cliques=[("a", "b")])
    with pytest.raises(InputError, match=words):
        replace(FIT, embedding="equidistant", penalties=(penalty(),)).check(domain, needs)


def test_an_order_takes_its_units_from_the_schema() -> None:
    start, end = Integer("start", 0, 9, bins=5, missing=True), Integer("end", 0, 19, bins=4)
    schema = Schema([start, end, Categorical("x", ["u", "v"])])
    order = InOrder.of(schema, "start", "end", weight=2.0)
    assert order.values == {"start": (0.5, 2.5, 4.5, 6.5, 8.5), "end": (2.0, 7.0, 12.0, 17.0)}
    order.check(Embedding.of(schema.domain))
    with pytest.raises(InputError, match="'x'"):
        InOrder.of(schema, "start", "x")
    dated = Schema([start, Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=4)])
    with pytest.raises(InputError, match="different units"):
        InOrder.of(dated, "start", "day")
