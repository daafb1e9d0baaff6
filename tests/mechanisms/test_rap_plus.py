"""RAP++: thresholds through the unit cube, records trained through sigmoids, and the budget's shares."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import HalfSpace
from margrave.mechanisms import RAPPlus
from margrave.mechanisms.parts.thresholds import RandomThresholds
from margrave.models import AnnealedFit
from margrave.models.mixture.model import numbers_of
from margrave.privacy import SeededRandomness
from margrave.release import Release
from margrave.testing.gate import run_on
from margrave.transcript import Answer, PublicTotal, Transcript
from tests.support.tiny_table import TinySchema, TinyTable

pytest.importorskip("jax")

DOMAIN = Domain(
    ("sex", "job", "age", "pay"), (2, 4, 16, 17),
    unordered=frozenset(["job"]), missing=frozenset(["pay"]),
)  # fmt: skip
ROWS = 400
FIT = AnnealedFit(components=100, steps=1, doublings=0)


def rows() -> list[tuple[int, ...]]:
    """Age and pay rise together, and one pay of twenty is missing."""
    rng = np.random.default_rng(1)
    age = rng.uniform(size=ROWS)
    pay = np.clip(age + rng.normal(scale=0.1, size=ROWS), 0, 0.999)
    codes = np.where(rng.random(ROWS) < 0.05, 16, (16 * pay).astype(int))
    columns = (age > 0.5, rng.integers(4, size=ROWS), (16 * age).astype(int), codes)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def counts(query: HalfSpace) -> int:
    table = TinyTable(TinySchema(DOMAIN), rows()).count([query.clique])[query.clique]
    return int(query.count(table))


def released(mechanism: RAPPlus, rho: int = 10, unit: Any = AddRemoveRow()) -> Release:
    table = TinyTable(TinySchema(DOMAIN), rows())
    return run_on(mechanism, table, unit, Budget.zcdp(rho), SeededRandomness(0), seed=0)


def test_numbers_have_an_order_and_three_codes_besides_missing() -> None:
    assert numbers_of(DOMAIN) == ("age", "pay")
    assert numbers_of(Domain(("a", "b"), (3, 3), missing=frozenset("b"))) == ("a",)


def test_thresholds_of_a_label_count_the_rows_of_one_class() -> None:
    drawn = RandomThresholds(DOMAIN, 2, "sex").draw(60, np.random.default_rng(0))
    kept, classes = rows(), set()
    for query in drawn:
        sign = query.coefficients[query.clique.index("sex")]
        code, shift = (1, 0.75) if sign > 0 else (0, 0.25)
        numbers = {
            a: c for a, c in zip(query.clique, query.coefficients, strict=True) if a != "sex"
        }
        alone = HalfSpace.of(DOMAIN, numbers, query.threshold - sign * shift)
        table = TinyTable(TinySchema(DOMAIN), [r for r in kept if r[0] == code])
        assert counts(query) == alone.count(table.count([alone.clique])[alone.clique])
        classes.add(code)
    assert classes == {0, 1}


def test_a_run_with_a_label_asks_about_it_in_every_threshold() -> None:
    release = released(RAPPlus(epochs=2, candidates=20, label="sex", fit=FIT))
    asked = [e.query for e in release.transcript.answers if isinstance(e.query, HalfSpace)]
    assert len(asked) == 10
    assert all("sex" in query.clique for query in asked)
    for label, words in (("job", "two codes"), ("nope", "nope")):
        with pytest.raises(InputError, match=words):
            RAPPlus(label=label).check(DOMAIN, AddRemoveRow())


def test_half_of_every_round_selects_and_columns_share_the_budget() -> None:
    mechanism = RAPPlus(epochs=3, candidates=20, fit=FIT)
    release = released(mechanism, unit=ReplaceRow())
    chosen, measured = Fraction(0), Fraction(0)
    for entry in release.transcript:
        if isinstance(entry, Answer):
            measured += entry.rho
        elif hasattr(entry, "queries"):
            chosen += entry.rho
    assert chosen == measured == Fraction(10, 4)  # two of four columns are numbers
    assert release.transcript.cliques == (("sex", "job"),)
    assert len(release.transcript.answers) == 15


def test_no_threshold_is_measured_twice() -> None:
    """A round that selects as many as it draws measures each of them."""
    release = released(RAPPlus(epochs=2, candidates=5, fit=FIT))
    asked = [a.query for a in release.transcript.answers[1:]]
    assert len(set(asked)) == len(asked) == 10


def drawn(mechanism: RAPPlus) -> Iterator[HalfSpace]:
    yield from mechanism.planned(DOMAIN).thresholds.draw(
        mechanism.candidates, np.random.default_rng(0)
    )


def test_thresholds_are_of_unit_norm_and_pass_through_the_cube() -> None:
    found = list(drawn(RAPPlus(candidates=300)))
    assert {q.clique for q in found} == {("age",), ("pay",), ("age", "pay")}
    for query in found:
        h = np.array(query.coefficients)
        assert np.linalg.norm(h) == pytest.approx(1.0)
        assert h[h < 0].sum() < query.threshold < h[h > 0].sum()
    assert all(len(q.clique) == 1 for q in drawn(RAPPlus(columns=1)))


def test_sharp_records_have_the_counts_of_their_codes() -> None:
    """Training at a steep slope counts as the query itself does, missing values too; probabilities sum to 1."""
    from margrave.models.mixture import annealed_jax as training
    from margrave.models.mixture.model import blocks_of

    rng = np.random.default_rng(2)
    weights = training.started(DOMAIN, 100, rng)
    middles = (rng.integers(16, size=weights.points.shape) + 0.5) / 16
    weights = weights._replace(points=middles.astype(np.float32))
    weights.logits[:50, blocks_of(DOMAIN)["pay"].stop - 1] = 40.0  # missing
    codes = training.codes_of(weights, DOMAIN)
    for block in blocks_of(DOMAIN).values():
        np.testing.assert_allclose(codes[:, block].sum(axis=1), 1.0, rtol=1e-5)
    asked = [HalfSpace.of(DOMAIN, {"age": 0.6, "pay": -0.8}, b) for b in (-0.301, 0.007, 0.203)]
    asked.append(HalfSpace.of(DOMAIN, {"age": 1.0, "pay": 1.0}, 0.9, slope=5.0))
    known = Transcript((PublicTotal(100), *(Answer(q, 0, 1.0, Fraction(1)) for q in asked)))
    layout, targets = training.layout_of(DOMAIN), training.half_spaces_of(DOMAIN, known)
    records = training.relaxed(weights, layout, np.float32(1e6))
    errors = training.half_space_errors(records, targets, np.float32(1e6))
    blocks = blocks_of(DOMAIN)
    pairs = np.einsum("ra,rb->ab", codes[:, blocks["age"]], codes[:, blocks["pay"]])
    for query, error in zip(asked, np.asarray(errors), strict=False):
        expected = query.count(pairs) / 100 / query.max_contribution
        assert -error == pytest.approx(expected, abs=1e-4)


def test_records_come_near_to_exact_thresholds() -> None:
    mechanism = RAPPlus(candidates=40)
    known = [Answer(q, counts(q), 1.0, Fraction(1)) for q in drawn(mechanism)]
    transcript = Transcript((PublicTotal(ROWS), *known))
    model = AnnealedFit(components=200)(DOMAIN, transcript, rng=np.random.default_rng(0))
    answers = model.answer([("age",), ("pay",), ("age", "pay")])
    errors = [abs(float(a.query.count(answers[a.query.clique])) - a.value) for a in known]
    assert np.mean(errors) < 0.02 * ROWS
    # The dependence follows from half-spaces of both.
    pairs = answers["age", "pay"][:, :16]
    both = pairs[8:, 8:].sum() + pairs[:8, :8].sum()
    assert both > 0.7 * pairs.sum()


def test_tables_without_numbers_or_of_numbers_alone_take_all_of_the_budget() -> None:
    names = Domain(("a", "b"), (2, 2))
    numbers = Domain(("a", "b"), (5, 5))
    mechanism = RAPPlus()
    assert mechanism.planned(names).budgets(Fraction(1)) == (1, 0)
    assert mechanism.planned(names).thresholds.cliques == []
    assert mechanism.planned(numbers).budgets(Fraction(1)) == (0, 1)
    assert mechanism.planned(numbers).marginals == []


@pytest.mark.parametrize(
    "options", [{"components": 0}, {"slope": 0.0}, {"tolerance": 1.0}, {"doublings": -1}]
)
def test_parameters_of_the_fit_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Annealed records need"):
        AnnealedFit(**options)
