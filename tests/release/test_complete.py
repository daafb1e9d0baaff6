"""Public rows completed by a release: the conditional distribution of every model, constraints, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import run
from margrave.data import read_table
from margrave.domain import Codes, Domain
from margrave.errors import DataError, InputError, MargraveError, ModelTooLargeError, ReleaseError
from margrave.mechanisms import AIM, MST
from margrave.models import (
    AnswersFit,
    GraphicalModel,
    MaxEntropyFit,
    MergedCodesModel,
    MixtureModel,
    Model,
)
from margrave.models.graphical import conditional_sampling
from margrave.models.mixture import model as mixture
from margrave.models.weights import grid_support
from margrave.models.weights.grid_support import GridSupport
from margrave.models.weights.model import WeightsModel
from margrave.models.weights.record_support import RecordSupport
from margrave.privacy import protect
from margrave.release import Release
from margrave.schema import (
    Allowed,
    Boolean,
    Categorical,
    Coded,
    Date,
    Depends,
    Integer,
    Ordered,
    Real,
    Schema,
    Timestamp,
)
from margrave.transcript import Measurement, PublicTotal, Transcript
from tests.support.fake_model import release as fake_release
from tests.support.strategies import Toy, domain_of, generators, seeded, toys

DOMAIN = domain_of([3, 4, 2, 3])
ROWS = 240_000


def joint() -> Any:
    """Any distribution: 72 cells, some of them nobody's."""
    rng = np.random.default_rng(5)
    table = rng.gamma(0.7, size=DOMAIN.sizes)
    table[1, 2] = 0.0
    return table / table.sum()


def loops() -> GraphicalModel:
    """Pairs around a circle, and across it."""
    rng = np.random.default_rng(2)
    pairs = [("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("c0", "c3"), ("c0", "c2")]
    return GraphicalModel(DOMAIN, 100.0, {p: rng.normal(size=DOMAIN.shape(p)) for p in pairs})


def merged() -> MergedCodesModel:
    """Codes of c1 in three groups."""
    groups = {"c1": np.array([0, 1, 1, 2])}
    coarse = Domain(DOMAIN.attributes, (3, 3, 2, 3))
    rng = np.random.default_rng(3)
    pairs = [("c0", "c1"), ("c1", "c2"), ("c2", "c3")]
    model = GraphicalModel(coarse, 100.0, {p: rng.normal(size=coarse.shape(p)) for p in pairs})
    return MergedCodesModel(DOMAIN, model, groups, {"c1": np.array([1.0, 0.25, 0.75, 1.0])})


def noisy_pairs() -> Model:
    rng = np.random.default_rng(4)
    pairs = [("c0", "c1"), ("c1", "c2"), ("c2", "c3")]
    values = [np.rint(rng.uniform(20, 90, DOMAIN.shape(p))).astype(np.int64) for p in pairs]
    known = (
        PublicTotal(800),
        *(Measurement(p, v, 3.0, Fraction(1)) for p, v in zip(pairs, values, strict=True)),
    )
    return MaxEntropyFit(sampler="laplace")(DOMAIN, Transcript(known), rng=rng)


def mixed() -> MixtureModel:
    rng = np.random.default_rng(6)
    return MixtureModel(DOMAIN, 100.0, rng.random((5, sum(DOMAIN.sizes))) ** 3, rng.random(5))


def records() -> WeightsModel:
    cells = np.flatnonzero(joint().ravel())
    values = np.array(np.unravel_index(cells, DOMAIN.sizes))
    return WeightsModel(
        RecordSupport(DOMAIN, values.astype(np.uint16), joint().ravel()[cells]), 100.0
    )


MODELS: dict[str, Callable[[], Any]] = {
    "graphical": loops,
    "merged codes": merged,
    "maximum entropy": noisy_pairs,
    "mixture": mixed,
    "histogram": lambda: WeightsModel(GridSupport(DOMAIN, joint().ravel().copy()), 100.0),
    "records": records,
}


@pytest.mark.parametrize("known", [(), ("c0",), ("c1", "c3"), ("c0", "c1", "c2")], ids="-".join)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_drawn_follows_the_model_given_what_is_known(
    name: str, known: tuple[str, ...]
) -> None:
    model = MODELS[name]()
    shares = np.asarray(model.project(DOMAIN.attributes).values, dtype=float)
    rng = np.random.default_rng(1)
    inner = DOMAIN.project(known)
    # equally many rows of every combination that there is
    cells = (
        np.flatnonzero(np.asarray(model.project(known).values).ravel() > 0)
        if known
        else np.zeros(1, int)
    )
    chosen = np.repeat(cells, ROWS // len(cells))
    order = rng.permutation(len(chosen))
    found = (
        np.array(np.unravel_index(chosen[order], inner.sizes)).reshape(len(known), -1)
        if known
        else None
    )
    rows = Codes(inner, np.empty((0, len(chosen))) if found is None else found)
    whole = model.complete(rows, rng=rng)
    for a in known:
        assert_array_equal(whole.column(a), rows.column(a))
    counts = np.zeros(DOMAIN.sizes)
    np.add.at(counts, tuple(whole.values.astype(np.int64)), 1)
    lacking = tuple(i for i, a in enumerate(DOMAIN) if a not in known)
    given = shares.sum(axis=lacking, keepdims=True)
    expected = np.where(given > 0, shares / np.where(given > 0, given, 1), 0) * (ROWS // len(cells))
    assert counts[expected < 1e-9].sum() == 0
    sure = expected > 5
    # dealt, not drawn: deviations are no larger than those of independent draws, and mostly far smaller
    excess = float(((counts - expected)[sure] ** 2 / expected[sure]).sum())
    assert excess < stats.chi2.isf(1e-6, int(sure.sum()))


@given(toys(), generators())
@seeded(150)
def test_any_small_graphical_model(toy: Toy, rng: np.random.Generator) -> None:
    if not toy.possible:
        return
    domain, table = toy.domain, toy.joint(1.0)
    model = GraphicalModel(domain, 1.0, toy.potentials)
    known = tuple(a for a in domain if rng.random() < 0.5)
    cells = rng.choice(table.size, size=300, p=table.ravel() / table.sum())
    drawn = Codes(domain, np.array(np.unravel_index(cells, domain.sizes)).reshape(len(domain), -1))
    inner = domain.project(known)
    rows = Codes(inner, drawn.values[[domain.index(a) for a in known]])
    whole = model.complete(rows, rng=rng)
    for a in known:
        assert_array_equal(whole.column(a), rows.column(a))
    assert (table[tuple(whole.values.astype(np.int64))] > 0).all()


@pytest.mark.parametrize("name", MODELS)
def test_batches_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Codes.of(
        DOMAIN.project(["c0", "c1"]),
        {"c0": np.repeat([0, 2], 6000), "c1": np.tile([0, 1, 3], 4000)},
    )
    whole = MODELS[name]().complete(rows, rng=np.random.default_rng(1))
    for module in (conditional_sampling, mixture, grid_support):
        monkeypatch.setattr(module, "CELLS_PER_BATCH", 1)
    parts = MODELS[name]().complete(rows, rng=np.random.default_rng(2))
    for a in ("c2", "c3"):
        one, other = (np.bincount(x.column(a), minlength=DOMAIN.size(a)) for x in (whole, parts))
        assert np.abs(one - other).max() < 200


@pytest.mark.parametrize("name", ["histogram", "records"])
def test_rows_like_none_of_the_model_are_refused(name: str) -> None:
    rows = Codes.of(
        DOMAIN.project(["c0", "c1"]), {"c0": np.array([1, 1, 0]), "c1": np.array([2, 2, 0])}
    )
    with pytest.raises(InputError, match="no records like 1 of the combinations"):
        MODELS[name]().complete(rows, rng=np.random.default_rng())


def test_a_mixture_without_a_component_for_a_row_is_refused() -> None:
    model = MixtureModel(domain_of([2, 2]), 10.0, np.array([[1, 0, 1, 0], [1, 0, 0, 1]]))
    with pytest.raises(InputError, match="no records like 1"):
        model.complete(
            Codes.of(domain_of([2]), {"c0": np.array([0, 1])}), rng=np.random.default_rng()
        )


def test_a_graphical_model_of_impossible_cells_refuses_them() -> None:
    theta = np.array([[0.0, 1.0], [-np.inf, -np.inf]])
    model = GraphicalModel(domain_of([2, 2]), 10.0, {("c0", "c1"): theta})
    with pytest.raises(InputError, match="no records like 1"):
        model.complete(
            Codes.of(domain_of([2]), {"c0": np.array([0, 1])}), rng=np.random.default_rng()
        )


def test_potentials_far_beyond_floats_are_no_matter() -> None:
    theta = np.array([[5000.0, 5001.0], [-5000.0, -5000.0]])
    model = GraphicalModel(domain_of([2, 2]), 10.0, {("c0", "c1"): theta})
    whole = model.complete(
        Codes.of(domain_of([2]), {"c0": np.repeat([0, 1], 10_000)}), rng=np.random.default_rng()
    )
    shares = [whole.column("c1")[:10_000].mean(), whole.column("c1")[10_000:].mean()]
    assert shares == pytest.approx([np.e / (1 + np.e), 0.5], abs=2e-4)


def test_other_codes_and_columns_are_refused() -> None:
    for model in (make() for make in MODELS.values()):
        for strange in (Domain.of({"other": 2}), Domain.of({"c0": 4})):
            rows = Codes(strange, np.zeros((1, 3), dtype=np.uint16))
            with pytest.raises(InputError, match="the release's"):
                model.complete(rows, rng=np.random.default_rng())


@pytest.mark.parametrize("limit", ["MAX_CELLS_IN_ALL", "MAX_CELLS_PER_COMBINATION"])
def test_too_much_work_is_refused_before_it_begins(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditional_sampling, limit, 10)
    with pytest.raises(ModelTooLargeError, match="3 different combinations"):
        loops().complete(
            Codes.of(domain_of([3]), {"c0": np.array([0, 1, 2])}), rng=np.random.default_rng()
        )


def test_a_fit_of_answers_alone_draws_nothing() -> None:
    model = AnswersFit()(DOMAIN, Transcript((PublicTotal(10),)), rng=np.random.default_rng())
    with pytest.raises(ReleaseError):
        model.distribution()


SCHEMA = Schema(
    [
        Categorical("city", ["Bern", "Basel", "Genf"]),
        Categorical("canton", ["BE", "BS", "GE"]),
        Integer("age", 0, 99, bins=5),
        Date("admitted", date(2024, 1, 1), date(2024, 12, 31), bins=6),
        Date("discharged", date(2024, 1, 1), date(2024, 12, 31), bins=4),
    ],
    constraints=[
        Depends("city", "canton", {"Bern": "BE", "Basel": "BS", "Genf": "GE"}),
        Ordered(["admitted", "discharged"]),
    ],
)


def hospital() -> Release:
    """A release of a schema with constraints: uniform but for what cannot be."""
    rng = np.random.default_rng(0)
    domain = SCHEMA.domain
    potentials: dict[tuple[str, ...], Any] = {
        domain.clique(z.clique): np.where(z.possible, rng.normal(size=z.possible.shape), -np.inf)
        for z in domain.zeros
    }
    potentials["canton", "age"] = rng.normal(size=domain.shape(("canton", "age")))
    return replace(fake_release(), schema=SCHEMA, model=GraphicalModel(domain, 500.0, potentials))


def register(n: int = 2000) -> pa.Table:
    rng = np.random.default_rng(8)
    city = rng.integers(0, 3, n)
    days = [date(2024, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 366, n)]
    return pa.table(
        {
            "canton": [["BE", "BS", "GE"][i] for i in city],
            "discharged": days,
            "age": rng.integers(0, 100, n),
        }
    )


def test_a_register_comes_out_as_it_is_beside_what_keeps_every_constraint() -> None:
    rows = register()
    whole = hospital().complete(rows, attestation="the public register", seed=1)
    assert whole.column_names == ["city", "canton", "age", "admitted", "discharged"]
    for name in rows.column_names:
        assert whole[name].to_pylist() == rows[name].to_pylist()
    assert all(
        a <= d
        for a, d in zip(whole["admitted"].to_pylist(), whole["discharged"].to_pylist(), strict=True)
    )
    of = {"Bern": "BE", "Basel": "BS", "Genf": "GE"}
    assert [of[c] for c in whole["city"].to_pylist()] == whole["canton"].to_pylist()
    # days are drawn anew, and not the first of the bin that is early enough
    assert len(set(whole["admitted"].to_pylist())) > 200
    again = hospital().complete(rows.to_pandas(), attestation="the public register", seed=1)
    assert again == whole
    assert hospital().complete(rows, attestation="the public register", seed=2) != whole


def test_a_first_date_that_is_known_comes_first() -> None:
    rows = register().rename_columns(["canton", "admitted", "age"])
    whole = hospital().complete(rows, attestation="the public register")
    assert whole["admitted"].to_pylist() == rows["admitted"].to_pylist()
    assert all(
        a <= d
        for a, d in zip(whole["admitted"].to_pylist(), whole["discharged"].to_pylist(), strict=True)
    )


def test_what_the_schema_cannot_hold_comes_out_as_it_was_given() -> None:
    rows = pa.table(
        {"age": [12, 130, -4], "discharged": [date(2024, 5, 1), date(1850, 1, 1), date(2031, 1, 1)]}
    )
    whole = hospital().complete(rows, attestation="the public register")
    assert whole["age"].to_pylist() == [12, 130, -4]
    assert whole["discharged"].to_pylist() == rows["discharged"].to_pylist()
    assert all(
        d.year == 2024 for d in whole["admitted"].to_pylist()
    )  # what is drawn keeps to the schema
    assert whole["admitted"].to_pylist()[0] <= date(2024, 5, 1)


def test_the_command_tells_what_the_schema_cannot_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Schema([Integer("age", 0, 99, bins=5), Categorical("town", ["York", "Hull"])])
    rows = read_table(pa.table({"age": np.arange(100), "town": ["York", "Hull"] * 50}), schema)
    with protect(rows, unit=AddRemoveRow(), budget=Budget.zcdp(1)) as private:
        MST().run(private).save(tmp_path / "r.margrave")
    for name, ages in (("beyond", [12, 130, -4]), ("inside", [12, 13, 14])):
        pa.csv.write_csv(pa.table({"age": ages}), tmp_path / f"{name}.csv")
        files = [str(tmp_path / f) for f in ("r.margrave", f"{name}.csv", f"{name}.out.csv")]
        said = ["--complete", files[1], "--attestation", "the public register"]
        assert run(["sample", files[0], "-o", files[2], *said]) == 0
        told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Note:")]
        assert len(told) == (name == "beyond")
        assert all(
            "'age': 2 of 3 values outside the schema" in line and "keep their own" in line
            for line in told
        )


MIXED = Schema(
    [
        Categorical("town", ["York", "Hull"], other=True),
        Categorical("job", ["a", "b"], missing=True),
        Integer("age", 0, 99, bins=5, missing=True),
        Real("cost", 0, 10, bins=4),
        Date("seen", date(2024, 1, 1), date(2024, 12, 31), bins=6, format="%d/%m/%Y", missing=True),
        Timestamp(
            "at", datetime(2024, 1, 1), datetime(2024, 12, 31), unit="hour", bins=6, missing=True
        ),
        Boolean("smokes", missing=True),
        Coded("ward", 3, missing=True),
        Integer("income", 0, 9, bins=2),
    ],
    person="who",
    ignore=["note"],
)


def mixed_release() -> Release:
    theta = np.zeros(MIXED.domain.shape(("town", "income")))
    theta[2, 0] = -50.0  # other towns earn more
    return replace(
        fake_release(),
        schema=MIXED,
        model=GraphicalModel(MIXED.domain, 50.0, {("town", "income"): theta}),
    )


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("town", ["York ", "Ouagadougou", "hull"], ["York", "Ouagadougou", "hull"]),
        ("job", ["a", "none of these", None], ["a", "none of these", None]),
        ("age", ["12", "130", "NA"], [12, 130, None]),
        ("age", ["12", "unknown", ""], ["12", "unknown", ""]),
        ("age", [12.0, 30.5, None], [12.0, 30.5, None]),
        ("cost", [1.25, 99.5, -3.0], [1.25, 99.5, -3.0]),
        ("seen", ["31/12/1999", "01/02/2024", "n/a"], [date(1999, 12, 31), date(2024, 2, 1), None]),
        ("seen", ["31/12/1999", "31/02/2024", None], ["31/12/1999", "31/02/2024", None]),
        (
            "at",
            ["2024-01-01 05:00", "2024-01-01 06:30", None],
            ["2024-01-01 05:00", "2024-01-01 06:30", None],
        ),
        (
            "at",
            ["2024-01-01 05:00", "1999-01-01", None],
            [datetime(2024, 1, 1, 5), datetime(1999, 1, 1), None],
        ),
        ("smokes", ["yes", "NO", "?"], [True, False, None]),
        ("smokes", ["yes", "sometimes", None], ["yes", "sometimes", None]),
        ("ward", [0, 7, None], [0, 7, None]),
        ("ward", ["0", "2", "NA"], [0, 2, None]),
        ("who", ["P1", "P1", "P2"], ["P1", "P1", "P2"]),
        ("note", ["fell", None, "rose"], ["fell", None, "rose"]),
        ("number", [1, 2, 3], [1, 2, 3]),
    ],
)
def test_every_value_of_a_public_row_comes_out(
    column: str, values: list[Any], expected: list[Any]
) -> None:
    rows = pa.table({"town": ["York", "Hull", "Rome"], column: values})
    whole = mixed_release().complete(rows, attestation="public")
    assert whole[column].to_pylist() == expected
    assert whole.column_names[: len(MIXED.columns)] == list(MIXED.domain)


def test_what_is_drawn_beside_an_unknown_value_is_drawn_for_its_code() -> None:
    rows = pa.table({"town": ["Rome"] * 400})
    whole = mixed_release().complete(rows, attestation="public")
    assert set(whole["town"].to_pylist()) == {"Rome"}
    assert min(whole["income"].to_pylist()) >= 5  # as the open category has it
    here = mixed_release().complete(pa.table({"town": ["York"] * 400}), attestation="public")
    assert min(here["income"].to_pylist()) < 5


def test_a_value_that_the_model_has_no_record_of_is_named() -> None:
    """Here it is a value outside the categories, whose code the model holds to be empty."""
    town, age = Categorical("town", ["York", "Hull"], other=True), Integer("age", 0, 3)
    schema = Schema([town, age, Boolean("smokes")])
    theta = np.array([[0.0] * 4, [1.0] * 4, [-np.inf] * 4])
    model = GraphicalModel(schema.domain, 12.0, {("town", "age"): theta})
    release = replace(fake_release(schema=schema), model=model)
    with pytest.raises(InputError, match=r"no record with town = other, .* count as other\.$"):
        release.complete(pa.table({"town": ["Hull", "Rome"]}), attestation="public")
    assert release.complete(pa.table({"town": ["Hull"]}), attestation="public").num_rows == 1


def test_no_rows_are_no_rows() -> None:
    whole = hospital().complete(register().slice(0, 1), attestation="the public register")
    assert whole.num_rows == 1
    with pytest.raises(InputError, match="no records"):
        hospital().complete(register().slice(0, 0), attestation="the public register")


@pytest.mark.parametrize(
    ("rows", "attestation", "error", "words"),
    [
        (
            pa.table({"age": [1], "City": [3]}),
            "public",
            InputError,
            "'City', and the release has 'city'",
        ),
        (pa.table({"salary": [3]}), "public", InputError, "none of the release's columns"),
        (pa.table({}), "public", InputError, "none of the release's columns"),
        (pa.table({"age": [1]}), " ", InputError, "without a word on why it is public"),
        (
            pa.table({"city": ["Bern"], "canton": ["GE"]}),
            "public",
            InputError,
            "1 of the rows have values",
        ),
        (3, "public", DataError, "frame"),
        (
            pa.table({"age": ["old"]}),
            "public",
            DataError,
            "^The public table, column 'age': .* Recode the public",
        ),
    ],
)
def test_what_cannot_be_completed_is_refused(
    rows: Any, attestation: str, error: type[MargraveError], words: str
) -> None:
    with pytest.raises(error, match=words):
        hospital().complete(rows, attestation=attestation)


def test_what_no_value_of_the_lacking_columns_allows_is_told_as_impossible() -> None:
    """Not as something that the model happens to hold no records of; over two constraints together, too."""
    total = [(a, b, a + b) for a in range(3) for b in range(3) if a + b < 5]
    columns = [Coded("first", 3), Coded("second", 3), Coded("sum", 5), Coded("even", 2)]
    even = Depends("second", "even", {0: 0, 1: 1, 2: 0})
    schema = Schema(columns, constraints=[Allowed(["first", "second", "sum"], total), even])
    where: dict[tuple[str, ...], Any] = {
        schema.domain.clique(z.clique): np.where(z.possible, 0.0, -np.inf)
        for z in schema.domain.zeros
    }
    release = replace(
        fake_release(), schema=schema, model=GraphicalModel(schema.domain, 50.0, where)
    )
    assert release.complete(pa.table({"first": [2], "sum": [3]}), attestation="public")[
        "second"
    ].to_pylist() == [1]
    for rows, count in (
        ({"first": [2, 1, 0], "sum": [0, 1, 4]}, 2),
        ({"first": [1], "sum": [2], "even": [0]}, 1),
    ):
        with pytest.raises(
            InputError,
            match=f"{count} of the rows have values that the schema declares .* they lack",
        ):
            release.complete(pa.table(rows), attestation="public")


def test_a_table_with_all_columns_has_nothing_to_draw() -> None:
    release = hospital()
    with pytest.raises(InputError, match="all of the release's columns"):
        release.complete(release.sample(5), attestation="public")


@given(st.integers(0, 2**32 - 1))
@seeded(40)
def test_ordered_dates_of_any_bins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, last = (int(b) for b in rng.integers(1, 40, 2))
    schema = Schema(
        [
            Date("from", date(2024, 1, 1), date(2024, 12, 31), bins=first),
            Date("to", date(2024, 1, 1), date(2024, 12, 31), bins=last),
        ],
        constraints=[Ordered(["from", "to"])],
    )
    (zeros,) = schema.domain.zeros
    theta = np.where(zeros.possible, 0.0, -np.inf)
    model = GraphicalModel(schema.domain, 9.0, {zeros.clique: theta})
    release = replace(fake_release(), schema=schema, model=model)
    name = ["from", "to"][int(rng.integers(2))]
    days = [date(2024, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 366, 400)]
    whole = release.complete(pa.table({name: days}), attestation="public")
    assert whole[name].to_pylist() == days
    assert all(
        a <= b for a, b in zip(whole["from"].to_pylist(), whole["to"].to_pylist(), strict=True)
    )


def test_a_fitted_release_keeps_constraints_and_survives_its_file(tmp_path: Path) -> None:
    """From rows to a release with merged codes or without, saved, read, and put beside a register."""
    rows = hospital().sample(3000, seed=4)
    for mechanism in (AIM(rounds=8), MST()):
        with protect(
            read_table(rows, SCHEMA), unit=AddRemoveRow(), budget=Budget.approx(4.0, 1e-6)
        ) as private:
            mechanism.run(private).save(tmp_path / "it.margrave", overwrite=True)
        whole = Release.load(tmp_path / "it.margrave").complete(register(), attestation="public")
        of = {"Bern": "BE", "Basel": "BS", "Genf": "GE"}
        assert [of[c] for c in whole["city"].to_pylist()] == whole["canton"].to_pylist()
        assert all(
            a <= d
            for a, d in zip(
                whole["admitted"].to_pylist(), whole["discharged"].to_pylist(), strict=True
            )
        )
