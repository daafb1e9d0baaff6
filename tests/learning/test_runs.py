"""Runs that learn columns: charged, journaled, resumed, certified, and functions of answers alone."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

import margrave
from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
)
from margrave.cli.main import run
from margrave.data import MemoryTable, read_table
from margrave.domain import Domain
from margrave.errors import (
    DataError,
    InputError,
    ModelTooLargeError,
    SchemaError,
    UnfinishedError,
)
from margrave.learning_stage import budget_for, learn_columns, rows_to_learn
from margrave.mechanisms import AIM, MST, Mechanism, PrivPGD, Repeated
from margrave.mechanisms.parts.checks import check_counts
from margrave.models import ParticleFit
from margrave.models.particles import HideMean, KeepShare
from margrave.privacy import Gaussian, Private, SeededRandomness, protect
from margrave.profiling import draft_schema, taken_as_public
from margrave.release import Release
from margrave.run import Run
from margrave.schema import Categorical, ColumnSource, Impossible, Integer, Learn, Real, Schema
from margrave.schema.column_queries import ClippedSum, DecimalCells, LineCells
from margrave.testing.replay import Recorder, ReplayRandomness, loss_replay
from margrave.transcript import ColumnAnswer
from margrave.workload import Workload

UNITS = [AddRemoveRow(), ReplaceRow(), AddRemovePerson(3), ReplacePerson(3)]
EVERY_UNIT = pytest.mark.parametrize("unit", UNITS, ids=str)
BUDGET = Budget.approx(3.0, 1e-9)


def schema(person: str | None = None) -> Schema:
    columns = (
        Learn("price", "real", low=0.0),
        Categorical("sort", ["a", "b", "c"]),
        Learn("year", "integer"),
    )
    return Schema(columns, person=person)


def frame(rows: int = 6000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    sort = rng.integers(0, 3, rows)
    price = np.round(np.exp(rng.normal(3 + sort / 2, 0.8)), 2)
    year = rng.integers(1990, 2020, rows)
    return pa.table(
        {
            "price": pa.array(price, mask=rng.random(rows) < 0.1),
            "sort": pa.array(np.array(["a", "b", "c"])[sort]),
            "year": year,
            "who": 1 + np.arange(rows) // 3,
        }
    )


def table(unit: Unit, rows: int = 6000, seed: int = 1) -> MemoryTable:
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    made = frame(rows, seed)
    return read_table(
        made if by_person else made.drop_columns("who"), schema("who" if by_person else None)
    )


def learn(private: Private) -> None:
    learn_columns(private, MST(), "drop", Fraction(0))


# Prices.


@EVERY_UNIT
def test_no_neighbor_loses_more_than_the_charge(unit: Unit) -> None:
    rows = frame(400)
    first, last = rows.slice(0, 396), rows.slice(396)
    extreme = pa.table(
        {"price": [1e9] * 4, "sort": ["a"] * 4, "year": [-5000] * 4, "who": [9999] * 4}
    ).cast(rows.schema)
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    many = 3 if by_person else 1

    def made(end: pa.Table) -> MemoryTable:
        whole = pa.concat_tables([first, end.slice(0, many)])
        keep = whole if by_person else whole.drop_columns("who")
        return read_table(keep, schema("who" if by_person else None))

    replaced = isinstance(unit, ReplaceRow | ReplacePerson)
    ends = [last, extreme] if replaced else [last, extreme.slice(0, 0)]
    worst = 0.0
    for here, there in (ends, ends[::-1]):
        for query in (LineCells((10.0, 20.0)), DecimalCells(), ClippedSum(0.0, 50.0, 10.0)):

            def ask(private: Private, query: Any = query) -> None:
                private.measure_column("price", query, rho=Fraction(1, 10))

            loss, charge = loss_replay(ask, made(here), made(there), unit, BUDGET)
            assert loss <= charge == Fraction(1, 10)
            worst = max(worst, float(loss / charge))
    assert worst > 0.1


@EVERY_UNIT
def test_the_sensitivity_of_a_sum_is_reached(unit: Unit) -> None:
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    many = 3 if by_person else 1
    query = ClippedSum(-30.0, 10.0, 0.0)

    def made(price: float | None) -> MemoryTable:
        number = 0 if price is None else many
        rows = {
            "price": pa.array([0.0] + [price] * number, pa.float64()),
            "who": [7] + [8] * number,
        }
        own = Schema([Learn("price", "real")], person="who" if by_person else None)
        return read_table(pa.table(rows) if by_person else pa.table(rows).drop_columns("who"), own)

    def ask(private: Private) -> None:
        private.measure_column("price", query, rho=Fraction(1, 10))

    replaced = isinstance(unit, ReplaceRow | ReplacePerson)
    loss, charge = loss_replay(ask, made(-99.0), made(99.0 if replaced else None), unit, BUDGET)
    assert charge * Fraction(999, 1000) < loss <= charge


@EVERY_UNIT
def test_learning_costs_its_share_and_the_mechanism_gets_the_rest(unit: Unit) -> None:
    with protect(table(unit), unit=unit, budget=BUDGET) as private:
        learn(private)
        spent = private.account().rho_spent
        assert 0 < spent <= BUDGET.rho * Fraction(13, 100)
        assert private.rho == private.remaining == BUDGET.rho - spent
        assert not private.schema.to_learn
        release = MST().run(private)
        assert private.remaining == 0
    assert release.schema == private.schema
    answers = release.transcript.column_answers
    assert {a.column for a in answers} == {"price", "year"}
    assert sum((a.rho for a in answers), Fraction(0)) == spent


# What leaves depends on answers alone.


@EVERY_UNIT
def test_the_same_answers_give_the_same_schema_and_questions(unit: Unit) -> None:
    recorder = Recorder(SeededRandomness(3))
    with protect(table(unit), unit=unit, budget=BUDGET, randomness=recorder) as private:
        learn(private)
        first = private.schema
    for rows, seed in ((6000, 2), (6000, 9)):
        replay = ReplayRandomness(recorder.steps)
        with protect(
            table(unit, rows, seed), unit=unit, budget=BUDGET, randomness=replay
        ) as private:
            learn(private)
            assert private.schema == first
        replay.finish()


def test_the_same_answers_give_the_same_zooms_on_dates() -> None:
    def made(first: int, rows: int) -> MemoryTable:
        days = np.random.default_rng(1).integers(first, first + 300, rows)
        return read_table(
            pa.table({"day": pa.array(days, pa.int32()).cast(pa.date32())}),
            Schema([Learn("day", "date")]),
        )

    recorder = Recorder(SeededRandomness(3))
    unit = AddRemoveRow()
    with protect(made(19_000, 20_000), unit=unit, budget=BUDGET, randomness=recorder) as private:
        learn(private)
        first, asked = private.schema, len(private.transcript.entries)
        zooms = [e.query.size for e in private.transcript if isinstance(e, ColumnAnswer)][1:3]
    assert zooms[0] == zooms[1] == 65  # 64 cells and the missing values
    for start, rows in ((19_000, 19_999), (2_000, 100)):
        replay = ReplayRandomness(recorder.steps)
        with protect(made(start, rows), unit=unit, budget=BUDGET, randomness=replay) as private:
            learn(private)
            assert (private.schema, len(private.transcript.entries)) == (first, asked)
        replay.finish()


def test_persons_are_cut_before_their_values_are_summed() -> None:
    own = Schema([Learn("x", "integer")], person="who")
    rows = read_table(pa.table({"x": [5] * 12, "who": [1, 2, 3] * 4}), own)
    recorder = Recorder(SeededRandomness(1))
    with protect(rows, unit=AddRemovePerson(3), budget=BUDGET, randomness=recorder) as private:
        private.measure_column("x", LineCells((0.0,)), rho=Fraction(1, 10))
    assert recorder.steps[0].truth.tolist() == [0, 9, 0]  # type: ignore[union-attr]


# The gate.


@pytest.fixture
def private() -> Iterator[Private]:
    with protect(table(AddRemoveRow(), 300), unit=AddRemoveRow(), budget=BUDGET) as opened:
        yield opened


def declared(**changes: Any) -> Schema:
    columns = {
        "price": Real("price", 0.0, 100.0, missing=True),
        "sort": Categorical("sort", ["a", "b", "c"]),
        "year": Integer("year", 1990, 2020, missing=True),
    }
    return Schema(tuple((columns | changes).values()))


def test_columns_to_learn_are_not_counted_before_they_are_learned(private: Private) -> None:
    with pytest.raises(InputError, match="'price' is to be learned"):
        private.measure([("price", "sort")], Gaussian(scale=5.0))
    with pytest.raises(InputError, match="'year' is to be learned"):
        private.prepare([("year",)])
    assert private.remaining == private.rho
    private.measure([("sort",)], Gaussian(scale=5.0))


def test_learned_columns_are_encoded_with_the_adopted_schema(private: Private) -> None:
    private.adopt(declared())
    recorder, rows = Recorder(SeededRandomness(1)), table(AddRemoveRow(), 300)
    with protect(rows, unit=AddRemoveRow(), budget=BUDGET, randomness=recorder) as other:
        other.adopt(declared())
        other.measure([("year",)], Gaussian(scale=9.0))
    years = np.bincount(frame(300)["year"].to_numpy() - 1990, minlength=31)
    assert recorder.steps[0].truth[:31].tolist() == years.tolist()  # type: ignore[union-attr]
    with pytest.raises(InputError, match="'year' is not a number, date or time to learn"):
        private.measure_column("year", DecimalCells(), rho=Fraction(1, 10))
    with pytest.raises(InputError, match="no columns to learn"):
        private.adopt(declared())


@pytest.mark.parametrize(
    "other",
    [
        declared(sort=Categorical("sort", ["b", "a", "c"])),
        schema(),
        declared(more=Integer("more", 0, 1)),
        Schema(declared().columns[::-1]),
        Schema(declared().columns, person="who"),
        Schema(declared().columns[:2]),
        Schema(declared().columns[1:], ignore=["x"]),
    ],
    ids=[
        "another column",
        "still to learn",
        "more",
        "order",
        "person",
        "left out unsaid",
        "ignored",
    ],
)
def test_no_other_schema_is_adopted(private: Private, other: Schema) -> None:
    with pytest.raises(InputError, match="not the gate's"):
        private.adopt(other)
    assert private.schema == schema()


def test_a_column_left_out_is_listed_as_ignored(private: Private) -> None:
    private.adopt(Schema(declared().columns[1:], ignore=["price"]))
    assert private.domain.attributes == ("sort", "year")


def test_only_the_known_queries_about_numbers_to_learn(private: Private) -> None:
    class Mine(DecimalCells):
        pass

    for name, query in (("price", Mine()), ("sort", DecimalCells()), ("nope", DecimalCells())):
        with pytest.raises(InputError):
            private.measure_column(name, query, rho=Fraction(1, 10))
    assert private.remaining == private.rho


def test_missing_codes_are_not_learned_as_values() -> None:
    rng = np.random.default_rng(1)
    days = np.where(rng.random(6000) < 0.3, -25_567, rng.integers(18_000, 18_300, 6000))
    frame = pa.table({
        "age": np.where(rng.random(6000) < 0.3, -9, rng.integers(40, 70, 6000)),
        "sort": np.where(rng.random(6000) < 0.3, "99", "a"),
        "day": pa.array(days, pa.int32()).cast(pa.date32()),
    })  # fmt: skip
    codes = ColumnSource(missing_codes=["-9", "99", "1900-01-01"])
    kinds = {"age": "integer", "sort": "categorical", "day": "date"}
    own = Schema([Learn(n, of) for n, of in kinds.items()], sources=dict.fromkeys(kinds, codes))
    release = margrave.synthesize(frame, own, epsilon=3.0, delta=1e-9, seed=0, progress=False)
    age, sort, day = release.schema.columns
    assert age.low > 0
    assert sort.labels() == ["a", "other", "(missing)"]
    assert day.low.year > 1990
    assert release.schema.sources["age"].missing_codes == codes.missing_codes
    drawn = release.sample(6000, seed=0)
    for name in kinds:
        assert abs(drawn[name].null_count / 6000 - 0.3) < 0.05


def test_a_table_without_values_cannot_be_learned() -> None:
    codes = table(AddRemoveRow(), 50)
    bare = MemoryTable(codes.schema, codes._codes)
    with protect(bare, unit=AddRemoveRow(), budget=BUDGET) as private:
        with pytest.raises(DataError, match="no values to encode"):
            private.measure_column("price", DecimalCells(), rho=Fraction(1, 10))
        assert private.remaining == private.rho


# The whole run.


def test_a_release_with_learned_columns(tmp_path: Path) -> None:
    rows = frame(20_000).drop_columns("who")
    release = margrave.synthesize(rows, schema(), epsilon=3.0, delta=1e-9, mechanism="mst", seed=1)
    assert release.verify().holds
    path = tmp_path / "r.margrave"
    release.save(path)
    again = Release.load(path)
    assert again.verify().holds
    assert again.transcript.to_dict() == release.transcript.to_dict()
    means = {
        n["column"]: n
        for n in release.numbers(details=True).to_pylist()
        if n["statistic"] == "mean"
    }
    for name in ("price", "year"):
        values = rows[name].drop_null().to_numpy()
        low, high = means[name]["low"], means[name]["high"]
        # twice the 95 % interval: it misses once in 10,000 runs
        assert abs(values.mean() - (low + high) / 2) <= high - low
    drawn = release.sample(20_000, seed=1)
    off = abs(drawn["year"].drop_null().to_numpy().mean() - rows["year"].to_numpy().mean())
    assert off < 0.5 or not means["year"]["reliable"]
    assert set(map(len, map(str, (v for v in drawn["price"].to_pylist() if v is not None)))) <= set(
        range(3, 9)
    )
    learned = [e for e in release.certificate()["transcript"] if "learned_from" in e]
    assert learned
    assert all(e["rho"] > 0 for e in learned)


@pytest.mark.parametrize("hand_edited", [False, True])
def test_the_next_release_states_its_own_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hand_edited: bool
) -> None:
    """Bounds and bins of another release stay; what describes its rows does not, by whatever path."""
    opened = Schema([Learn("stay", "real"), Learn("year", "integer")])
    years = pc.subtract(frame(6_000)["year"], 1985)
    rows = pa.table({"stay": years.cast(pa.float64()), "year": years})
    first = margrave.synthesize(
        rows, opened, epsilon=3.0, delta=1e-9, mechanism="independent", seed=1
    )
    learned = first.schema.column("stay")
    assert isinstance(learned, Real)
    assert learned.mean
    assert learned.leaf_weights
    first.save(tmp_path / "1.margrave")
    assert run(["schema", "of", str(tmp_path / "1.margrave")]) == 0
    written = capsys.readouterr().out
    assert not any(key in written for key in ("mean =", "leaf_edges", "leaf_weights"))
    given = Schema.from_toml(first.schema.to_toml()) if hand_edited else first.schema
    again = pa.table({n: pc.max_element_wise(rows[n], 25) for n in ("stay", "year")})
    second = margrave.synthesize(
        again, given, epsilon=3.0, delta=1e-9, mechanism="independent", seed=2
    )
    for name in ("stay", "year"):
        column = second.schema.column(name)
        assert isinstance(column, Real | Integer)
        assert (*column.mean, *column.leaf_weights, *column.leaf_edges) == ()
        assert column.cells.edges.tolist() == first.schema.column(name).cells.edges.tolist()  # type: ignore[attr-defined]
        found = second.numbers(columns=[name]).to_pylist()
        mean = next(n for n in found if n["statistic"] == "mean")
        low, high = mean["low"], mean["high"]
        # twice the 95 % interval: it misses once in 10,000 runs
        assert abs(pc.mean(again[name]).as_py() - (low + high) / 2) <= high - low
        assert not mean["reliable"]  # nobody knows how many rows lie beyond the bounds
    assert second.schema.sources["stay"].of == "learned"
    second.save(tmp_path / "2.margrave")
    assert run(["numbers", str(tmp_path / "2.margrave")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "stay, year: the bounds are those that another release learned" in said


def test_a_run_is_resumed_within_learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, words = (
        frame(3000).drop_columns("who"),
        {"epsilon": 3.0, "delta": 1e-9, "mechanism": "mst"},
    )
    journal = tmp_path / "j"
    asked: list[ColumnAnswer] = []
    whole = Private.measure_column

    def once(self: Private, *args: Any, **kwargs: Any) -> ColumnAnswer:
        if len(asked) == 4:
            raise KeyboardInterrupt
        asked.append(whole(self, *args, **kwargs))
        return asked[-1]

    with monkeypatch.context() as context:
        context.setattr(Private, "measure_column", once)
        with pytest.raises(KeyboardInterrupt):
            margrave.synthesize(rows, schema(), journal=journal, **words)
    release = margrave.synthesize(rows, schema(), journal=journal, resume=True, **words)
    for before, after in zip(asked, release.transcript.column_answers, strict=False):
        assert before.to_dict() == after.to_dict()
    assert release.account.rho_spent == Budget.approx(3.0, 1e-9).rho
    assert release.verify().holds


def hidden() -> tuple[pa.Table, Schema]:
    price = [None] * 3000
    price[:5] = [1.0, 20.0, 3000.0, 5e6, 9e8]
    rows = pa.table({"price": pa.array(price, pa.float64()), "x": [0, 1] * 1500})
    return rows, Schema([Learn("price", "real"), Integer("x", 0, 1)])


def test_a_column_that_cannot_be_learned_stops_the_run_or_is_left_out(tmp_path: Path) -> None:
    rows, own = hidden()
    words: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "journal": tmp_path / "j"}
    with pytest.raises(UnfinishedError, match="hides where the values of 'price' lie") as caught:
        margrave.synthesize(rows, own, **words)
    assert caught.value.release.transcript.column_answers
    release = margrave.synthesize(rows, own, resume=True, unlearnable="drop", **words)
    assert release.schema.domain.attributes == ("x",)
    assert release.schema.ignore == ("price",)
    assert release.verify().holds


@pytest.mark.parametrize(
    "mechanism",
    [
        Repeated(mechanism=MST(), runs=2),
        Repeated(mechanism=AIM(workload=Workload({("price", "x"): 1.0})), runs=2),
        PrivPGD(particles=20, epochs=2, constraints=(HideMean(coefficients={"price": 1.0}),)),
        PrivPGD(
            particles=20,
            epochs=2,
            constraints=(KeepShare(coefficients={"price": 0.5, "x": 0.5}, threshold=0.5),),
        ),
        PrivPGD(fit=ParticleFit(particles=20, epochs=2, penalties=(HideMean(coefficients={"price": 1.0}),))),
    ],
)  # fmt: skip
def test_a_mechanism_goes_on_without_a_column_that_it_names(mechanism: Mechanism) -> None:
    rows, own = hidden()
    words: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "seed": 1}
    release = margrave.synthesize(rows, own, mechanism=mechanism, unlearnable="drop", **words)
    assert release.schema.domain.attributes == ("x",)
    assert release.verify().holds


def test_repeated_runs_on_learned_columns_ask_what_can_be_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = Domain.of({"a": 5, "b": 4, "c": 3, "d": 2})
    monkeypatch.setattr("margrave.mechanisms.parts.countable.MAX_COUNTED", 5 + 4 + 3 + 2 + 6)
    asked = Workload({("a", "b"): 2.0, ("c", "d"): 1.0})
    small = Repeated(mechanism=AIM(workload=asked)).on_learned(domain)
    assert small.mechanism.workload is not None
    assert dict(small.mechanism.workload.weights) == {("c", "d"): 1.0}
    check_counts(domain, small)


def test_no_column_left_stops_the_run() -> None:
    rows, _ = hidden()
    own = Schema([Learn("price", "real")], ignore=["x"])
    with pytest.raises(UnfinishedError, match="hides"):
        margrave.synthesize(rows, own, epsilon=1.0, delta=1e-9, unlearnable="drop")


def test_what_a_schema_with_columns_to_learn_is_refused_for() -> None:
    early = Impossible({"sort": ["a"], "year": (1990, 1995)}, "refuse")
    with pytest.raises(SchemaError, match="cannot be judged yet"):
        Schema(schema().columns, constraints=[early])
    with pytest.raises(SchemaError, match="to be learned"):
        margrave.data.read_codes(frame(10).drop_columns("who"), schema())
    with pytest.raises(InputError, match="unlearnable is"):
        margrave.synthesize(frame(10), schema(), epsilon=1.0, delta=1e-9, unlearnable="x")  # type: ignore[arg-type]


def test_a_plan_counts_the_share_of_learning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema().save(tmp_path / "s.toml")
    words = ["plan", "--schema", str(tmp_path / "s.toml"), "--epsilon", "1", "--delta", "1e-9"]
    assert run([*words, "--json"]) == 0
    assert "columns to learn, 5 levels of counts each" in capsys.readouterr().out


# From a file alone.


def written(tmp_path: Path, rows: int = 8000) -> str:
    path = tmp_path / "t.csv"
    made = frame(rows).drop_columns("who")
    kinds = np.array(["x", "y", "rare"])[(np.arange(rows) % 2) + (np.arange(rows) == 7)]
    pa.csv.write_csv(made.append_column("mark", pa.array(kinds)), path)
    return str(path)


def test_a_file_alone_makes_a_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path), tmp_path / "r.margrave"
    words = ["--epsilon", "3", "--delta", "1e-6", "--mechanism", "mst", "--release", str(out)]
    assert run(["synthesize", path, "--accept-draft", *words]) == 0
    shown = capsys.readouterr()
    assert "Taken as public: the names and kinds of the columns" in shown.err
    release = Release.load(out)
    assert release.verify().holds
    assert not release.schema.to_learn
    sort, mark = release.schema.column("sort"), release.schema.column("mark")
    assert isinstance(sort, Categorical)
    assert isinstance(mark, Categorical)
    assert tuple(sort.categories) == ("a", "b", "c")
    assert tuple(mark.categories) == ("x", "y")  # one row's value stays hidden
    account = release.account
    assert account.threshold_delta == pytest.approx(1e-7)
    assert sum(d.delta for d in account.debits) == Fraction(account.threshold_delta)
    assert b"rare" not in out.read_bytes()


def test_either_a_schema_or_a_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 100)
    words = ["synthesize", path, "--epsilon", "1", "--delta", "1e-9", "-o", str(tmp_path / "o.csv")]
    assert run(words) == 2
    assert "either --schema or --accept-draft" in capsys.readouterr().err
    schema().save(tmp_path / "s.toml")
    assert run([*words, "--schema", str(tmp_path / "s.toml"), "--accept-draft"]) == 2
    assert run([*words, "--accept-draft", "--sealed", "--ledger", "l", "--dataset", "d"]) == 2
    assert "by the custodian" in capsys.readouterr().err


def test_a_draft_to_learn_holds_nothing_of_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, 500)
    assert run(["schema", "draft", path, "-o", str(tmp_path / "s.toml")]) == 0
    assert "names and kinds" in capsys.readouterr().err
    made = Schema.load(tmp_path / "s.toml")
    assert not made.draft
    assert [(c.name, c.kind) for c in made.to_learn] == [
        ("price", "real"), ("sort", "categorical"), ("year", "integer"), ("mark", "categorical"),
    ]  # fmt: skip
    text = (tmp_path / "s.toml").read_text()
    assert "rare" not in text
    assert not any(year in text for year in map(str, range(1990, 2020)))


def test_categories_to_learn_need_delta_for_thresholds() -> None:
    own = Schema([Learn("sort", "categorical")], ignore=["price", "year", "who"])
    with pytest.raises(InputError, match="no delta for thresholds"):
        margrave.Run(schema=own, budget=BUDGET)
    release = margrave.synthesize(frame(6000), own, epsilon=1.0, delta=1e-6, mechanism="mst")
    assert release.schema.domain.sizes == (5,)


def test_listed_categories_need_no_threshold() -> None:
    listed = Learn("sort", "categorical", categories=("a", "never"))
    own = Schema([listed], ignore=["price", "year", "who"])
    release = margrave.synthesize(frame(6000), own, epsilon=1.0, delta=1e-6, mechanism="mst")
    column = release.schema.column("sort")
    assert isinstance(column, Categorical)
    assert tuple(column.categories) == ("a", "never", "b", "c")


def test_columns_of_rare_values_alone_are_not_learned() -> None:
    rows = pa.table({"code": [f"v{i}" for i in range(3000)], "x": [0, 1] * 1500})
    own = Schema([Learn("code", "categorical"), Integer("x", 0, 1)])
    with pytest.raises(UnfinishedError, match="'code'"):
        margrave.synthesize(rows, own, epsilon=1.0, delta=1e-9)


def test_what_a_draft_to_learn_keeps() -> None:
    rng = np.random.default_rng(1)
    rows = pa.table(
        {
            "flag": rng.integers(0, 2, 500),
            "income": rng.integers(10_000, 90_000, 500) + 0.5,
            "yes": rng.random(500) < 0.5,
            "day": pa.array(rng.integers(15_000, 18_000, 500).astype("datetime64[D]")),
        }
    )
    made = draft_schema(rows)
    assert made.person is None  # amounts do not identify persons
    assert made.ignore == ()
    assert made.column("flag") == Integer("flag", 0, 1, missing=True, outside="missing")
    assert [(c.name, c.kind) for c in made.to_learn] == [("income", "real"), ("day", "date")]
    assert made.column("yes").kind == "boolean"
    words = taken_as_public(made)
    assert "0 or 1: flag" in words
    assert "real: income" in words


def test_the_mean_of_a_column_that_shows_one_value_is_not_reliable() -> None:
    values = np.zeros(5000)
    values[:20] = 400.0  # hidden by the noise, and the whole mean
    own = Schema([Learn("x", "integer"), Integer("y", 0, 1)])
    rows = pa.table({"x": values, "y": [0, 1] * 2500})
    release = margrave.synthesize(rows, own, epsilon=0.5, delta=1e-9, mechanism="mst")
    (mean,) = (
        n
        for n in release.numbers(details=True).to_pylist()
        if (n["column"], n["statistic"]) == ("x", "mean")
    )
    assert not mean["reliable"]
    assert mean["high"] > 0


def test_a_workload_goes_without_columns_that_were_left_out_and_without_what_cannot_be_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = Domain.of({"a": 5, "b": 4, "c": 3, "d": 2})
    purposes = ("count by a, b",)
    asked = Workload({("a", "b"): 2.0, ("c", "d"): 1.0, ("b", "x"): 1.0}, purposes, (("a", "b"),))
    left = AIM(workload=asked).on_learned(domain).workload
    assert left is not None
    assert dict(left.weights) == {("a", "b"): 2.0, ("c", "d"): 1.0}
    assert left.purposes == purposes
    assert AIM().on_learned(domain) == AIM()
    assert MST().on_learned(domain) == MST()
    monkeypatch.setattr("margrave.mechanisms.parts.countable.MAX_COUNTED", 5 + 4 + 3 + 2 + 6)
    small = AIM(workload=asked).on_learned(domain)
    assert small.workload is not None
    assert (dict(small.workload.weights), small.workload.first) == ({("c", "d"): 1.0}, ())
    check_counts(domain, small)


def test_a_run_is_planned_with_the_categories_that_a_column_is_likely_to_have() -> None:
    """Not with the most that it can have, which would refuse tables of a few dozen columns."""
    columns = [Learn(f"c{i}", "categorical") for i in range(20)]
    schema = Schema(columns)
    assert set(schema.domain.sizes) == {102}
    with pytest.raises(ModelTooLargeError):
        check_counts(schema.domain, AIM())
    made = Run(schema=schema, budget=budget_for(schema, 1.0, 1e-9)).plan(10_000)
    assert made.columns == 20


def test_a_learned_release_is_compared_with_its_own_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, made = tmp_path / "t.csv", tmp_path / "t.margrave"
    pyarrow.csv.write_csv(frame(), file)
    own = tmp_path / "t.toml"
    assert run(["schema", "draft", str(file), "-o", str(own)]) == 0
    out = ["--release", str(made), "-o", str(tmp_path / "s.csv")]
    words = ["synthesize", str(file), "-s", str(own), "--epsilon", "3", "--delta", "1e-9", *out]
    assert run(words) == 0
    capsys.readouterr()
    for stated in ([], ["--schema", str(own)]):
        assert run(["evaluate", str(file), str(made), *stated]) == 0
        assert "price" in capsys.readouterr().out
    learned = tmp_path / "learned.toml"
    assert run(["schema", "of", str(made), "-o", str(learned)]) == 0
    assert Schema.load(learned) == Release.load(made).schema.for_run()
    assert run(["schema", "of", str(made)]) == 0
    assert capsys.readouterr().out.endswith(learned.read_text(encoding="utf-8"))
    assert run(["evaluate", str(file), str(tmp_path / "s.csv"), "--schema", str(learned)]) == 0
    assert run(["evaluate", str(file), str(tmp_path / "s.csv"), "--schema", str(own)]) != 0
    assert "Compare with the .margrave release" in " ".join(capsys.readouterr().err.split())
    capsys.readouterr()
    assert run(["evaluate", str(file), str(tmp_path / "s.csv")]) != 0
    assert "Give --schema" in capsys.readouterr().err


def test_columns_that_are_dropped_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, own = hidden()
    file, stated = tmp_path / "t.parquet", tmp_path / "t.toml"
    pyarrow.parquet.write_table(rows, file)
    own.save(stated)
    words = ["synthesize", str(file), "-s", str(stated), "--epsilon", "1", "--delta", "1e-9"]
    words += ["-o", str(tmp_path / "s.csv"), "--release", str(tmp_path / "s.margrave")]
    assert run(words) != 0
    stopped = " ".join(capsys.readouterr().err.split())
    assert "Learning columns needs about" in stopped
    assert "likely to fail" not in stopped, "the number of rows is not known"
    assert stopped.count("'price'") == 1
    assert "rows between some value and its double" in stopped
    assert "in a new run that is charged anew" in stopped
    assert "--overwrite" not in stopped
    assert run(words) != 0
    again = " ".join(capsys.readouterr().err.split())
    assert "holds the unfinished run" in again
    assert "Learning columns" not in again, "the note is for runs that go on"
    assert "same command with --resume --unlearnable drop" in again
    assert "hides where the values of 'price' lie." in again
    failed = str(tmp_path / "s.margrave")
    for other in (
        ["refit", failed, "--release", str(tmp_path / "n.margrave")],
        ["sample", failed, "-o", str(tmp_path / "n.csv")],
        ["certificate", failed],
        ["numbers", failed],
    ):
        run(other)
        shown = " ".join("".join(capsys.readouterr()).split())
        assert ("with --resume --unlearnable drop" in shown) == (other[0] != "numbers")
        assert "Fit one" not in shown
        assert "to be learned" not in shown
    page = Release.load(failed).report().html
    assert "with --resume --unlearnable drop" in page
    assert "margrave refit" not in page
    assert run([*words, "--resume", "--unlearnable", "drop"]) == 0, "its own release is replaced"
    assert "Left out, because the noise hides their values: price." in capsys.readouterr().out
    assert not Release.load(tmp_path / "s.margrave").no_model


def test_a_release_of_another_run_is_not_replaced(tmp_path: Path) -> None:
    rows, own = hidden()
    file, stated = tmp_path / "t.parquet", tmp_path / "t.toml"
    pyarrow.parquet.write_table(rows, file)
    own.save(stated)
    words = ["synthesize", str(file), "-s", str(stated), "--epsilon", "1", "--delta", "1e-9"]
    assert run([*words, "--release", str(tmp_path / "other.margrave")]) != 0
    first = (tmp_path / "other.margrave").read_bytes()
    mine = tmp_path / "mine.margrave"
    assert run([*words, "--release", str(mine)]) != 0
    mine.write_bytes(first)
    assert run([*words, "--release", str(mine), "--resume", "--unlearnable", "drop"]) == 2
    assert mine.read_bytes() == first


def test_the_summary_says_how_many_categories_were_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["Surgery"] * 2000 + [f"ward {i}" for i in range(4000)]
    pyarrow.parquet.write_table(pa.table({"ward": names}), tmp_path / "t.parquet")
    Schema([Learn("ward", "categorical")]).save(tmp_path / "t.toml")
    words = [str(tmp_path / "t.parquet"), "-s", str(tmp_path / "t.toml"), "--epsilon", "5"]
    out = ["--delta", "1e-9", "-m", "independent", "-o", str(tmp_path / "s.csv")]
    assert run(["synthesize", *words, *out]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Learned: ward has 1 category (6" in shown
    assert "of the rows are in other)" in shown
    assert "other is not one value" in shown


def test_a_run_warns_where_learning_will_probably_fail() -> None:
    columns = [Learn("ward", "categorical"), Learn("cost", "real")]
    schema, budget = Schema(columns), Budget.approx(1.0, 1e-9, 1e-10)
    few = rows_to_learn(schema, budget, AddRemovePerson(5), 500)
    assert "likely to fail on 500 rows: a category must be on about" in few
    assert "between some value and its double" not in few.split(";")[0]
    for rows in (None, 2000):  # unknown; enough if a quarter of them have one value
        found = rows_to_learn(schema, budget, AddRemovePerson(5), rows)
        assert found.startswith("Learning columns needs about")
        assert "likely to fail" not in found
    assert rows_to_learn(schema, budget, AddRemovePerson(5), 10**6) == ""
    assert rows_to_learn(Schema([Integer("x", 0, 1)]), budget, AddRemoveRow(), 1) == ""
