"""Constraints of PrivPGD: what is asked for them, what it costs, and what becomes of the records."""

from __future__ import annotations

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
from margrave.errors import BudgetError, InputError, ModelTooLargeError
from margrave.marginal import HalfSpace
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import AIM, PrivPGD
from margrave.models import GraphicalFit, ParticleFit
from margrave.models.particles import Embedding, HideMean, HideShare, InOrder, KeepShare, Repulsion
from margrave.models.particles.constraints import share_of, with_targets
from margrave.privacy import Gaussian, SeededRandomness, protect
from margrave.release import Release
from margrave.schema import Schema
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript
from margrave.workload import Workload

SIZES = {"a": 16, "b": 12, "c": 20}
ONES = dict.fromkeys("abc", 1.0)
KEPT = KeepShare(coefficients=ONES, threshold=2.25)
HIDDEN = HideShare(coefficients=ONES, threshold=2.25, weight=0.001)
BUDGET = Budget.approx(2.0, 1e-6)


def hidden_from_pairs(seed: int = 0, count: int = 8000) -> Codes:
    """Columns of which each two are independent and the third has the sign of their product: no pair shows it."""
    rng = np.random.default_rng(seed)
    points = rng.random((3, count)) - 0.5
    points[2, (np.prod(points, axis=0) < 0)] *= -1
    columns = {a: ((points[i] + 0.5) * SIZES[a]).astype(int) for i, a in enumerate(SIZES)}
    return Codes.of(Schema.coded(SIZES).domain, columns)


ROWS = hidden_from_pairs()
DOMAIN = ROWS.domain
TABLE = MemoryTable(Schema.coded(SIZES), ROWS)
BEYOND = HalfSpace.of(DOMAIN, ONES, 2.25)


def share(codes: Codes) -> float:
    """The share of records beyond the threshold, one by one."""
    return float((Embedding.of(codes.domain).embed(codes).sum(axis=0) > 2.25).mean())


def off(codes: Codes) -> float:
    """The mean L1 distance of pairs."""
    pairs = list(combinations(SIZES, 2))
    one, other = count_cliques(ROWS, pairs), count_cliques(codes, pairs)
    return float(np.mean([np.abs(one[c] / len(ROWS) - other[c] / len(codes)).sum() for c in pairs]))


def released(seed: int = 0, unit: Any = None, **parameters: Any) -> Release:
    source = SeededRandomness(seed)
    with protect(TABLE, unit=unit or ReplaceRow(), budget=BUDGET, randomness=source) as private:
        made = PrivPGD(**{"particles": 6000, **parameters}).run(
            private, rng=np.random.default_rng(seed)
        )
        assert private.remaining == 0
    return made


def records(release: Release) -> Codes:
    return release.model.sample(len(ROWS), rng=np.random.default_rng(0))


# What becomes of the records.


def test_a_share_that_pairs_do_not_show_is_kept_or_hidden() -> None:
    plain, kept, sharp, hidden = (
        records(released(constraints=c))
        for c in ((), (KEPT,), (replace(KEPT, slope=None),), (HIDDEN,))
    )
    assert abs(share(plain) - share(ROWS)) > 0.04  # nothing tells it
    assert abs(share(kept) - share(ROWS)) < 0.01
    assert abs(share(sharp) - share(ROWS)) < 0.01
    assert abs(share(hidden) - share(ROWS)) > 0.08
    assert off(kept) < off(plain) + 0.03
    assert off(hidden) < off(plain) + 0.05


def test_a_mean_is_hidden_at_no_price() -> None:
    """Only those of its columns' own distributions give way."""
    plain, hidden = (
        released(),
        released(constraints=(HideMean(coefficients={"b": 1.0}, weight=0.001),)),
    )
    assert [a.query for a in hidden.transcript.answers] == []
    assert [m.scale for m in hidden.transcript.measurements] == [
        m.scale for m in plain.transcript.measurements
    ]
    means = {name: [float(x.column(a).mean() / SIZES[a]) for a in SIZES] for name, x in
             {"rows": ROWS, "plain": records(plain), "hidden": records(hidden)}.items()}  # fmt: skip
    assert means["plain"] == pytest.approx(means["rows"], abs=0.01)
    assert abs(means["hidden"][1] - means["rows"][1]) > 0.05
    assert means["hidden"][0] == pytest.approx(means["rows"][0], abs=0.02)


# What is asked, and what it costs.


@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_shares_are_asked_first_and_paid_from_their_part(unit: Any) -> None:
    order = InOrder(first="a", second="b", values={a: tuple(range(SIZES[a])) for a in "ab"})
    two = (
        KEPT,
        order,
        HideShare(coefficients={"a": 1.0}, threshold=0.5, slope=None),
        replace(KEPT, weight=1.0),
    )
    mechanism = PrivPGD(
        particles=100, epochs=1, constraints=two, constraint_fraction=Fraction(1, 5)
    )
    with protect(TABLE, unit=unit, budget=BUDGET, randomness=SeededRandomness(0)) as private:
        release = mechanism.run(private, rng=np.random.default_rng(0))
    rho, entries = BUDGET.rho, [e for e in release.transcript if not isinstance(e, PublicTotal)]
    first, second, *rest = entries
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert first.query == HalfSpace.of(DOMAIN, ONES, 2.25, slope=20.0)
    assert second.query == HalfSpace.of(DOMAIN, {"a": 1.0}, 0.5)
    assert (first.rho, second.rho) == (rho / 10, rho / 10)
    assert second.scale == pytest.approx(
        float(1 / (2 * rho / 10)) ** 0.5
    )  # one count, under either unit
    assert first.scale == pytest.approx(1e6 * second.scale)
    assert all(isinstance(e, Measurement) and e.rho == rho * Fraction(4, 15) for e in rest)
    assert {e.clique for e in rest if isinstance(e, Measurement)} == set(combinations("abc", 2))
    planned = mechanism.steps(DOMAIN, rho, unit)
    assert [s.marginals for s in planned] == [1, 1, 3]
    assert [s.single for s in planned] == [True, True, False]
    assert [s.scale for s in planned] == pytest.approx([second.scale, second.scale, rest[0].scale])
    assert set(mechanism.reads(DOMAIN)) == {*combinations("abc", 2), ("a", "b", "c"), ("a",)}
    config = mechanism.config()
    assert config["constraint_fraction"] == 0.2
    said = config["fit"].words
    assert all(
        word in said for word in ("KeepShare", "HideShare", "InOrder", "threshold=2.25", "'a': 1.0")
    )
    assert "constraint_fraction" not in PrivPGD(constraints=(order,)).config()


def test_the_target_is_the_noisy_answer_and_not_the_truth() -> None:
    known = Transcript((
        PublicTotal(200), Answer(KEPT.question(DOMAIN), 30_000_000, 1e6, Fraction(1)),
        Answer(KEPT.question(DOMAIN), 60_000_000, 2e6, Fraction(1)), Answer(BEYOND, 90, 1.0, Fraction(1)),
        Answer(HalfSpace.of(DOMAIN, {"b": 2.0}, 0.5), -12, 1.0, Fraction(1)),
    ))  # fmt: skip
    hidden = replace(HIDDEN, slope=None, weight=0.5)
    first, second, third = with_targets([KEPT, hidden], Embedding.of(DOMAIN), known)
    assert first.target == pytest.approx((30 * 4 + 60) / 5 / 200)  # type: ignore[attr-defined]
    assert (second.target, second.hidden, second.weight) == (0.45, True, 0.5)  # type: ignore[attr-defined]
    # what no penalty is about is kept, and a share below zero is none
    assert (third.target, third.hidden, third.attributes) == (0.0, False, ("b",))  # type: ignore[attr-defined]


def test_without_an_answer_a_measured_marginal_tells_the_share() -> None:
    counts = count_cliques(ROWS, [("a", "b"), ("a", "b", "c"), ("a",)])
    known = [Measurement(("a", "b", "c"), counts["a", "b", "c"], 50.0, Fraction(1)),
             Measurement(("a", "b"), counts["a", "b"] + 5, 1.0, Fraction(1))]  # fmt: skip
    query = HalfSpace.of(DOMAIN, {"a": 1.0, "b": -1.0}, 0.2)
    truth = query.count(counts["a", "b"])
    cells = int(query.counted().sum())
    found = share_of(query, DOMAIN, Transcript((PublicTotal(len(ROWS)), *known)))
    assert found == pytest.approx((truth + 5 * cells) / len(ROWS))  # of the more exact one
    assert share_of(query, DOMAIN, Transcript((PublicTotal(len(ROWS)), known[0]))) == pytest.approx(
        truth / len(ROWS)
    )
    with pytest.raises(InputError, match="a, b"):
        share_of(
            query,
            DOMAIN,
            Transcript((PublicTotal(9), Measurement(("a",), counts["a",], 1.0, Fraction(1)))),
        )


def test_a_release_is_fitted_anew_with_its_answers(tmp_path: Path) -> None:
    """Answers that nobody names are kept; the one who hides names them again."""
    made = released(constraints=(HIDDEN,))
    made.save(tmp_path / "a.margrave")
    back = Release.load(tmp_path / "a.margrave")
    assert back.transcript.answers == made.transcript.answers
    fit = ParticleFit(particles=6000)
    again, hiding = (
        records(back.refit(f, seed=0)) for f in (fit, replace(fit, penalties=(HIDDEN,)))
    )
    assert abs(share(again) - share(ROWS)) < 0.01
    assert abs(share(hiding) - share(ROWS)) > 0.08
    with pytest.raises(InputError, match="ParticleFit"):
        back.refit(GraphicalFit(), seed=0)
    draws = back.draws(2, seed=0, method="bootstrap")
    assert "but for half-spaces" in draws.method


# What is refused, before anything is spent.


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"constraints": (KeepShare(coefficients={"nope": 1.0}, threshold=0.5),)}, "nope"),
        ({"constraints": (KeepShare(coefficients={"a": 0.0, "b": 1.0}, threshold=0.5),)}, "'a'"),
        ({"constraints": (KeepShare(coefficients={"a": float("nan")}, threshold=0.5),)}, "'a'"),
        ({"constraints": (HideShare(coefficients={"a": 1.0}, threshold=float("inf")),)}, "threshold"),
        ({"constraints": (replace(KEPT, weight=-1.0),)}, "weight"),
        ({"constraints": (replace(KEPT, slope=-2.0),)}, "slope"),
        ({"constraints": (HideMean(coefficients={"nope": 1.0}),)}, "nope"),
        ({"constraints": (HideMean(coefficients={"c": 1.0}),), "workload": Workload.of(DOMAIN, [("a", "b")])}, "of c"),
        ({"constraints": (Repulsion(clique=("a", "b")),)}, "a, b"),
        ({"constraints": (KeepShare(coefficients={"name": 1.0, "a": 1.0}, threshold=0.5),), "embedding": "equidistant"},
         "'name'"),
        ({"fit": ParticleFit(penalties=(KeepShare(coefficients={"nope": 1.0}, threshold=0.5),))}, "nope"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_costs_nothing(wrong: dict[str, Any], words: str) -> None:
    domain = Domain((*SIZES, "name"), (*SIZES.values(), 5), unordered=frozenset({"name"}))
    rows = Codes.of(domain, {a: np.zeros(4, dtype=int) for a in domain})
    mechanism = PrivPGD(**{"particles": 100, "epochs": 1, **wrong})
    table = MemoryTable(replace_domain(domain), rows)
    with protect(
        table, unit=ReplaceRow(), budget=BUDGET, randomness=SeededRandomness(0)
    ) as private:
        with pytest.raises(InputError, match=words):
            mechanism.run(private)
        assert private.remaining == private.rho
        assert private.transcript.answers == ()


def replace_domain(domain: Domain) -> Any:
    """A schema whose last column is one of names."""
    from margrave.schema import Categorical

    coded = Schema.coded({a: domain.size(a) for a in SIZES})
    return Schema([*coded.columns, Categorical("name", list("uvwxy"))])


@pytest.mark.parametrize("part", [0, 1, -0.5, 2])
def test_a_part_of_the_budget_is_a_part(part: float) -> None:
    with pytest.raises(InputError, match="constraint_fraction"):
        PrivPGD(constraint_fraction=Fraction(part))


def test_constraints_need_a_fit_that_knows_of_them() -> None:
    with pytest.raises(InputError, match="GraphicalFit"):
        PrivPGD(fit=GraphicalFit(), constraints=(KEPT,))
    with pytest.raises(InputError, match="coefficients"):
        KeepShare(coefficients={}, threshold=0.5)


def test_a_mechanism_that_does_not_ask_refuses_before_it_spends() -> None:
    with protect(
        TABLE, unit=ReplaceRow(), budget=BUDGET, randomness=SeededRandomness(0)
    ) as private:
        with pytest.raises((InputError, ModelTooLargeError), match="a, b, c"):
            AIM(rounds=2, fit=ParticleFit(particles=100, penalties=(KEPT,))).run(private)
        assert private.remaining == private.rho
        with pytest.raises(BudgetError):
            private.measure_queries([BEYOND], Gaussian(rho=2 * private.rho))


def test_a_column_without_a_count_above_zero_has_its_mean_in_the_middle() -> None:
    """Noise may leave nothing: the budget is spent by then, and the fit must not fail."""
    known = Transcript((PublicTotal(5), Measurement(("b",), np.full(12, -3), 9.0, Fraction(1))))
    (found,) = with_targets([HideMean(coefficients={"b": 2.0})], Embedding.of(DOMAIN), known)
    assert found.target == pytest.approx(1.0)  # type: ignore[attr-defined]


def test_the_split_of_the_paper_leaves_the_pairs_its_noise() -> None:
    """Appendix B: epsilon 0.5 and 2, delta 2e-6 and 8e-6, added up to 2.5 and 1e-5."""
    budget, part = Budget.approx(2.5, 1e-5), PrivPGD.constraint_fraction_of_paper()
    assert PrivPGD().constraint_fraction == Fraction(1, 25)
    constraint = HideShare(coefficients={"a": 1.0}, threshold=0.5)
    steps = PrivPGD(constraints=(constraint,), constraint_fraction=part).steps(
        DOMAIN, budget.rho, ReplaceRow()
    )
    cliques = Workload.all_kway(DOMAIN, 2).cliques
    alone = Gaussian.scale_for(Budget.approx(2.0, 8e-6).rho / len(cliques), ReplaceRow())
    assert steps[-1].scale == pytest.approx(alone, rel=1e-5)
    assert float(1 - part) == pytest.approx(0.6545, abs=1e-4)
