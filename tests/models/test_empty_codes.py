"""Codes that noisy counts leave empty: which are dropped, and models without them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.data import MemoryTable
from margrave.domain import Codes, Domain, StructuralZeros
from margrave.marginal import LinearMap, LinearQuery
from margrave.mechanisms import AIM, MECHANISMS, MWEMPGM
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.published import PUBLISHED_FORMS
from margrave.models import (
    CELLS_PER_MB,
    EntropyProjectionFit,
    Fit,
    GeneticFit,
    GraphicalFit,
    GUMFit,
    MergedCodesModel,
    MultiplicativeWeightsFit,
    ParticleFit,
    RelaxedFit,
)
from margrave.models.empty_codes import kept_codes, non_empty
from margrave.privacy import SeededRandomness
from margrave.public_table import PublicTable
from margrave.release.diagnostics import empty_codes
from margrave.schema import Schema
from margrave.transcript import Answer, Measurement, PublicReading, Transcript
from margrave.types import Clique
from tests.support.conformance import run_on

COUNTS = st.lists(st.floats(-5.0, 400.0), min_size=1, max_size=40)


def kept(counts: list[float], cells: int, *, missing: bool = False) -> list[int]:
    left = kept_codes(np.array(counts), cells=cells, missing=missing, likely=2.0)
    return np.flatnonzero(left).tolist()


def measured(clique: Clique, values: object, scale: float = 10.0, **rest: object) -> Measurement:
    counts = np.asarray(values, dtype=np.int64)
    return Measurement(clique, counts, scale, Fraction(1), **rest)  # type: ignore[arg-type]


@given(COUNTS, st.integers(0, 40))
def test_what_is_dropped_is_small_alone_and_together(counts: list[float], cells: int) -> None:
    values, cells = np.array(counts), min(cells, len(counts))
    left = kept_codes(values, cells=cells, missing=len(counts) > cells, likely=2.0)
    assert left.any()
    assert (values[~left] < 3.0).all()
    assert (values[cells:][~left[cells:]] < 2.0).all()
    assert values[~left].sum() < 0.1 * max(values.sum(), 1.0)


def test_a_tail_is_dropped_from_its_end_as_far_as_noise_explains_it() -> None:
    counts = [400.0, 300.0, 200.0, 2.5, 1.9, 1.5, 1.9, 1.0, -0.5, 0.4, -1.0, 0.3, 0.2, -0.3]
    assert kept(counts, 14) == [0, 1, 2, 3, 4, 5]
    assert kept(counts[::-1], 14) == [8, 9, 10, 11, 12, 13]


def test_a_gap_is_dropped_if_noise_explains_all_of_it_and_kept_whole_if_not() -> None:
    assert kept([400.0, 0.5, -0.8, 1.1, 500.0], 5) == [0, 4]
    assert kept([400.0, 1.9, 1.8, 1.7, 500.0], 5) == [0, 1, 2, 3, 4]


def test_a_value_far_out_is_kept_from_three_scales_on_and_beside_others_from_two() -> None:
    assert kept([900.0, 0.0, 0.0, 3.1, 0.0, 0.0], 6) == [0, 3]
    assert kept([900.0, 0.0, 0.0, 2.4, 0.0, 0.0], 6) == [0]
    assert kept([900.0, 2.1, 2.2, 0.0, 0.0, 0.0], 6) == [0, 1, 2]


def test_a_missing_state_is_a_code_of_its_own_beside_the_order() -> None:
    assert kept([900.0, 800.0, 1.9], 2) == [0, 1]
    assert kept([900.0, 800.0, 2.1], 2) == [0, 1, 2]
    assert kept([900.0, 800.0, 0.0, 0.0, 1.2], 4) == [0, 1]


def test_codes_without_an_order_are_dropped_all_or_none() -> None:
    assert kept([900.0, 1.9, -1.0, 0.3, 0.2], 0) == [0]
    assert kept([900.0, 1.9, 1.8, 1.7, 0.2], 0) == [0, 1, 2, 3, 4]
    assert kept([900.0, 1.9, 1.8, 1.7, 0.2], 0, missing=True) == [0, 1, 2, 3]


def test_nothing_is_dropped_of_few_rows_or_without_evidence() -> None:
    assert kept([9.0, 8.0, 0.1, 0.0], 4) == [0, 1, 2, 3]
    assert kept([1.0, 0.0, -1.0], 3) == [0, 1, 2]
    assert kept_codes(np.array([900.0, -3.0]), cells=2, missing=False, likely=0.0).all()


def test_a_code_that_nobody_has_is_dropped_97_times_in_100_and_three_scales_are_kept() -> None:
    rng = np.random.default_rng(5)
    nobody, some = np.array([500.0, 400.0, 0.0]), np.array([500.0, 400.0, 4.0])
    for truth, low, high in ((nobody, 0.96, 0.99), (some, 0.01, 0.04)):
        draws = (truth + rng.normal(size=3) for _ in range(4000))
        dropped = np.mean([not kept_codes(c, cells=2, missing=True, likely=2.0)[2] for c in draws])
        assert low < dropped < high


ORDERED = Domain(("age", "sex"), (5, 3), unordered=frozenset({"sex"}), missing=frozenset({"sex"}))
AGE = measured(("age",), [5000, 4000, 12, -9, 3])
SEX = measured(("sex",), [4500, 4500, 4])
PAIR = measured(
    ("age", "sex"), [[2600, 2400, 9], [1900, 2100, 12], [9, 11, 8], [5, 3, 9], [7, 2, 6]]
)
ALL = Transcript((AGE, SEX, PAIR))


def fitted(
    transcript: Transcript, domain: Domain = ORDERED, **parameters: float
) -> MergedCodesModel:
    model = GraphicalFit(**parameters)(domain, transcript, rng=np.random.default_rng(0))  # type: ignore[arg-type]
    assert isinstance(model, MergedCodesModel)
    return model


def test_later_marginals_do_not_fill_what_the_columns_leave_empty() -> None:
    model = fitted(ALL)
    assert empty_codes(ORDERED, ALL, model) == {"age": (2, 3, 4), "sex": (2,)}
    pair = model.answer([("age", "sex")])[("age", "sex")]
    assert (pair[2:] == 0.0).all()
    assert (pair[:, 2] == 0.0).all()
    assert_allclose(pair.sum(), model.total)
    rows = model.sample(5000, rng=np.random.default_rng(1))
    assert set(rows.column("age").tolist()) == {0, 1}
    assert 2 not in rows.column("sex")
    whole = GraphicalFit(empty_below=0.0)(ORDERED, ALL, rng=np.random.default_rng(0))
    assert whole.answer([("age",)])[("age",)][2:].sum() > 10.0


def test_the_rest_is_the_fit_to_the_codes_that_are_kept() -> None:
    small = Domain.of({"age": 2, "sex": 2})
    cut = (
        measured(("age",), AGE.values[:2]),
        measured(("sex",), SEX.values[:2]),
        measured(("age", "sex"), PAIR.values[:2, :2]),
    )
    alone = GraphicalFit()(small, Transcript(cut), rng=np.random.default_rng(0))
    expected = np.asarray(alone.answer([("age", "sex")])[("age", "sex")])
    pair = fitted(ALL).answer([("age", "sex")])[("age", "sex")][:2, :2]
    assert_allclose(pair / pair.sum(), expected / expected.sum(), rtol=2e-3)


def test_a_round_goes_on_from_the_last_model_while_the_same_codes_are_kept() -> None:
    fit, rng = GraphicalFit(), np.random.default_rng(0)
    first = fit.update(fit.init(ORDERED, rng=rng), Transcript((AGE, SEX)), rng=rng)
    assert first.on(first.groups) is first.fitted is not None
    second = fit.update(first, ALL, rng=rng)
    assert second.groups.keys() == {"age", "sex"}
    again = measured(("age",), [5000, 4000, 900, -9, 3], scale=1.0)
    third = fit.update(second, ALL + Transcript((again,)), rng=rng)
    assert second.on(third.groups) is None
    assert third.estimate is not None
    assert third.estimate.answer([("age",)])[("age",)][2] > 500.0


def test_merged_codes_and_empty_ones_go_together() -> None:
    domain = Domain.of({"town": 6, "sex": 2})
    town = measured(("town",), [5000, 4000, 25, 22, 24, -9])
    groups = LinearMap({"town": np.array([0, 1, 2, 2, 2, 2])})
    pair = measured(("town", "sex"), [[2500, 2500], [2500, 1500], [40, 35]], query=groups)
    model = fitted(Transcript((town, pair)), domain)
    values = model.answer([("town", "sex")])[("town", "sex")]
    assert values[5].sum() == 0.0
    assert (values[2:5] > 0.0).all()
    assert model.coarse.domain.size("town") == 3


def test_columns_of_other_evidence_keep_all_codes() -> None:
    assert non_empty(ORDERED, ALL, 2.0).keys() == {"age", "sex"}
    zeros = StructuralZeros(("age", "sex"), np.ones((5, 3), dtype=np.bool_))
    declared = Domain(("age", "sex"), (5, 3), (zeros,))
    assert non_empty(declared, ALL, 2.0) == {}
    one = Answer(LinearQuery(("age",), ((3,),)), 40, 10.0, Fraction(1))
    assert non_empty(ORDERED, ALL + Transcript((one,)), 2.0).keys() == {"sex"}
    read = PublicReading(("sex",), np.array([9.0, 9.0, 9.0]), np.ones(3), "a census")
    assert non_empty(ORDERED, ALL + Transcript((read,)), 2.0).keys() == {"age"}
    prefixes = measured(("age",), np.zeros(5), query=LinearMap.prefixes(ORDERED, ["age"]))
    assert non_empty(ORDERED, Transcript((prefixes,)), 2.0) == {}


def test_repeated_counts_of_a_column_are_averaged() -> None:
    twice = Transcript(
        (measured(("age",), [9000, 0, 35, 0, 0]), measured(("age",), [9000, 0, -35, 0, 0]))
    )
    assert_array_equal(np.flatnonzero(non_empty(ORDERED, twice, 2.0)["age"]), [0])


def hidden() -> Measurement:
    """Counts of ages whose noise hides that the third one has rows."""
    return measured(("age",), [5000, 4000, 12, -9, 15], scale=10.0)


def later() -> Measurement:
    counts = [[2500, 2500, 0], [2000, 2000, 0], [12, 12, 0], [0, 0, 0], [0, 0, 0]]
    return measured(("age", "sex"), counts, scale=1.0)


def test_the_last_fit_looks_at_every_marginal_of_a_column() -> None:
    """Rows that a column's own count hides can be seen in the marginals that were measured later."""
    known = Transcript((hidden(), SEX, later()))
    assert non_empty(ORDERED, known, 2.0)["age"].tolist() == [True, True, False, False, False]
    last = non_empty(ORDERED, known, 2.0, all_marginals=True)["age"]
    assert last.tolist() == [True, True, True, False, False]
    assert empty_codes(ORDERED, known, fitted(known))["age"] == (3, 4)


def test_a_limit_is_for_the_codes_of_the_released_model() -> None:
    """A rare code that comes back with later marginals enlarges the model that has them."""
    fit, known = GraphicalFit(), Transcript((hidden(), SEX, later()))
    assert fit.distinguished(ORDERED, known).shape(("age", "sex")) == (2, 2)
    assert fit.distinguished(ORDERED, known, last=True).shape(("age", "sex")) == (3, 2)
    room = Capacity.released(fit, ORDERED, known, 1.0)
    assert room.limit(known.cliques, share=0.0) == 6.0
    assert fitted(known).answer([("age",)])[("age",)][2] > 0.0


class AllComeBack(GraphicalFit):
    """A fit whose released model has the codes that estimates between rounds leave out."""

    def distinguished(
        self, domain: Domain, transcript: Transcript, *, last: bool = False
    ) -> Domain:
        return domain if last else super().distinguished(domain, transcript)


@pytest.mark.parametrize("kind", [AIM, MWEMPGM])
def test_rounds_leave_room_for_codes_that_come_back(kind: type[AIM] | type[MWEMPGM]) -> None:
    sizes, limit, rng = {f"c{i}": 24 for i in range(5)}, 2000, np.random.default_rng(1)
    codes = {a: np.minimum(rng.geometric(0.35, 4000) - 1, 23) for a in sizes}
    schema = Schema.coded(sizes)
    table = MemoryTable(schema, Codes.of(schema.domain, codes))
    mechanism = kind(max_model_mb=limit / CELLS_PER_MB, fit=AllComeBack())
    made = run_on(mechanism, table, AddRemoveRow(), Budget.zcdp(0.5), SeededRandomness(1))
    assert GraphicalFit().cells(schema.domain, made.transcript.cliques) <= limit


def test_the_papers_forms_leave_nothing_out() -> None:
    """Those of a default fit ask for single queries alone, whose columns keep all codes."""
    forms = [form.parameters for forms in PUBLISHED_FORMS.values() for form in forms]
    fits = [form["fit"] for form in forms if "fit" in form]
    assert len(fits) >= 15
    assert all(fit.empty_below == 0.0 for fit in fits)
    for name in ("mwem", "pep", "pmw-pub", "pep-pub"):
        assert all(form.parameters["granularity"] == "query" for form in PUBLISHED_FORMS[name])


FITS = (
    ParticleFit(particles=9000, epochs=20),
    GeneticFit(generations=20),
    GUMFit(),
    MultiplicativeWeightsFit(passes=20),
    EntropyProjectionFit(),
    RelaxedFit(components=50, cold_steps=100),
)


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: type(fit).__name__)
def test_no_fit_gives_rows_to_codes_that_are_empty(fit: Fit) -> None:
    if isinstance(fit, RelaxedFit):
        pytest.importorskip("optax")
    model = fit(ORDERED, ALL, rng=np.random.default_rng(0))
    pair = model.answer([("age", "sex")])[("age", "sex")]
    assert pair[2:].sum() == pair[:, 2].sum() == 0.0
    assert_allclose(pair.sum(), model.total)
    whole = replace(fit, empty_below=0.0)(ORDERED, ALL, rng=np.random.default_rng(0))  # type: ignore[type-var]
    other = whole.answer([("age", "sex")])[("age", "sex")]
    assert other[2:].sum() + other[:, 2].sum() > 1.0
    assert_allclose(pair[:2, :2] / pair.sum(), other[:2, :2] / other[:2, :2].sum(), rtol=1e-3)


def test_a_model_with_rows_of_empty_codes_alone_keeps_them() -> None:
    public = PublicTable(
        Codes.of(ORDERED, {"age": np.array([3]), "sex": np.array([0])}), "a census"
    )
    fit = MultiplicativeWeightsFit(public=public)
    model = fit(ORDERED, Transcript((AGE,)), rng=np.random.default_rng(0))
    assert model.answer([("age",)])[("age",)][3] == pytest.approx(model.total)


def test_a_column_that_was_never_measured_alone_is_judged_by_its_marginals() -> None:
    alone = Transcript((PAIR,))
    assert non_empty(ORDERED, alone, 2.0) == {}
    last = non_empty(ORDERED, alone, 2.0, all_marginals=True)
    assert np.flatnonzero(last["age"]).tolist() == [0, 1, 2]


def tailed(rows: int = 40_000) -> pa.Table:
    rng = np.random.default_rng(3)
    amount = rng.integers(0, 200, rows)
    return pa.table({"amount": amount, "sex": rng.choice(["f", "m"], rows), "kind": amount // 50})


SCHEMA = """
[schema]
version = 1
[[column]]
name = "amount"
kind = "integer"
low = 0
high = 100000
edges = [0, 50, 100, 150, 200, 1000, 5000, 20000, 40000, 60000, 80000, 100000]
missing = true
[[column]]
name = "sex"
kind = "categorical"
categories = ["f", "m", "x"]
[[column]]
name = "kind"
kind = "integer"
low = 0
high = 3
"""


@pytest.mark.parametrize("mechanism", ["aim", "mst", "mwem-pgm", "independent", "mwem", "pep"])
def test_a_long_tail_does_not_move_the_mean_of_a_release(mechanism: str) -> None:
    schema = margrave.Schema.from_toml(SCHEMA)
    source, budget = MemoryTable(schema, schema.encode(tailed())), Budget.approx(0.5, 1e-9)
    release = run_on(MECHANISMS[mechanism](), source, AddRemoveRow(), budget, SeededRandomness(1))
    rows = release.sample(40_000, seed=2)
    mean = np.mean([v for v in rows["amount"].to_pylist() if v is not None])
    assert abs(float(mean) - 99.5) < 30.0  # one noise scale in the last bin alone moves it by 40
    assert "amount" in release.certificate()["empty_codes"]
