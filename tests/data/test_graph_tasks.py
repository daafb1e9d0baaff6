"""Tables that are counted part by part by tasks: without an engine, and by Dask and Ray where they are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.data import BatchTable, read_table
from margrave.data.batch_codes import BatchFault, Reading
from margrave.data.graph_scans import GraphScans, _by_person, _on_parts, graph_of
from margrave.data.tasks import count_rows, number_persons
from margrave.errors import DataError
from margrave.marginal import closure
from margrave.schema import Integer, Learn, Schema
from margrave.testing import check_table
from margrave.testing.tables import Row
from tests.data.test_spark_tasks import SCHEMA, visits
from tests.data.test_spark_tasks import partitions as cut
from tests.support import sources

CANARY = "zebra-77341"


class Inline:
    """An engine that runs each function at once."""

    name = "Inline"

    def __init__(self, parts: list[pa.Table]) -> None:
        self.tables = parts

    @property
    def columns(self) -> list[str]:
        return list(self.tables[0].column_names)

    def parts(self, columns: Sequence[str]) -> list[Any]:
        return [part.select(columns) for part in self.tables]

    def run(self, function: Callable[..., Any], *parts: Any) -> Any:
        return function(*parts)

    def split(self, function: Callable[[Any], list[Any]], part: Any, pieces: int) -> list[Any]:
        found = function(part)
        assert len(found) == pieces
        return found

    def result(self, part: Any) -> Any:
        return part


def inline(table: pa.Table, number: int, schema: Schema = SCHEMA) -> BatchTable:
    return BatchTable.over(GraphScans(Inline(cut(table, number))), schema)


def equal_in_memory(counted: Any, rows: pa.Table, schema: Schema = SCHEMA) -> None:
    held = read_table(rows, schema)
    cliques = list(closure([schema.domain.attributes]))
    found, expected = counted.count(cliques), held.count(cliques)
    assert isinstance(counted, BatchTable)
    assert counted.rows() == held.rows()
    assert all(np.array_equal(found[c], expected[c]) for c in cliques)


def equal_with_a_limit(counted: BatchTable, rows: pa.Table) -> None:
    limited = counted.bounded(2)
    assert limited.rows() == read_table(rows, SCHEMA).bounded(2).rows()
    once, twice = limited.count([("a", "b")]), limited.count([("a", "b")])
    assert once["a", "b"].sum() == limited.rows()
    assert np.array_equal(once["a", "b"], twice["a", "b"])


@pytest.mark.parametrize("number", [1, 4, 90])
def test_counts_equal_those_in_memory(number: int) -> None:
    rows = visits()
    equal_in_memory(inline(rows, number), rows)


def test_a_limit_counts_over_all_parts() -> None:
    rows = pa.concat_tables([visits()] * 3)  # equal rows of a person, in several parts
    equal_with_a_limit(inline(rows, 5), rows)
    equal_with_a_limit(inline(rows.slice(0, 3), 7), rows.slice(0, 3))  # some parts are empty


def test_columns_to_learn_have_the_values_of_all_parts() -> None:
    schema = Schema([Learn("c", "real"), Learn("b", "categorical")], ignore=["who", "a"])
    counted, held = inline(visits(), 4, schema), read_table(visits(), schema)
    found, right = counted.value_counts("b"), held.value_counts("b")
    assert dict(zip(*found, strict=False)) == dict(zip(*right, strict=False))


def test_every_kind_of_column() -> None:
    rows = sources.visits()
    sources.check_counts(inline(rows, 5, sources.SCHEMA), rows)
    sources.check_learned(inline(rows, 5, sources.OPEN), rows)


def test_a_table_that_changes_between_scans_is_refused() -> None:
    engine = Inline(cut(visits(), 2))
    table = BatchTable.over(GraphScans(engine), SCHEMA)
    engine.tables = cut(visits(seed=1), 2)
    with pytest.raises(DataError, match="changed between two scans"):
        table.count([("a", "b")])


def test_a_task_that_fails_sends_a_number_and_no_word() -> None:
    class Failing:
        def __dataframe__(self) -> None:
            raise RuntimeError(CANARY)

    reading = Reading(SCHEMA, inline(visits(), 2)._reading.key)
    columns = [*SCHEMA.domain.attributes, "who"]
    for part in (Failing(), visits(3).drop_columns(["a"]), {"a": [CANARY]}):
        sent = _on_parts(columns, count_rows(reading, [], 16), part)
        assert sent.num_rows == 1
        assert sent["kind"][0].as_py() == 0
        assert sent["place"][0].as_py() != BatchFault.NONE
        pieces = _by_person(columns, number_persons(reading), 3, part)
        assert [p.num_rows for p in pieces] == [0, 0, 0]
        counted = _on_parts([*columns, "margrave_person"], count_rows(reading, [], 16), pieces[1])
        assert counted["kind"].to_pylist() == [0]


def test_errors_of_an_engine_are_not_passed_on() -> None:
    class Broken(Inline):
        def result(self, part: Any) -> Any:
            raise RuntimeError(CANARY)

    with pytest.raises(DataError, match="Inline could not read the table") as caught:
        BatchTable.over(GraphScans(Broken([visits()])), SCHEMA)
    assert caught.value.__context__ is None


def test_other_frames_have_no_tasks() -> None:
    assert graph_of(visits()) is None


def dask_of(table: pa.Table, parts: int) -> Any:
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    return frames.from_pandas(table.to_pandas(), npartitions=parts)


def ray_of(table: pa.Table, parts: int) -> Any:
    data = pytest.importorskip("ray.data", reason="ray is not installed")
    return data.from_arrow(cut(table, parts))


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    """Ray with two workers of this machine."""
    engine = pytest.importorskip("ray", reason="ray is not installed")
    engine.init(num_cpus=2, include_dashboard=False, log_to_driver=True)
    yield
    engine.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", [dask_of, ray_of])
class TestEngines:
    """Dask and Ray themselves."""

    @pytest.fixture(autouse=True)
    def started(self, engine: Any, request: pytest.FixtureRequest) -> None:
        if engine is ray_of:
            request.getfixturevalue("ray")

    def test_counts_and_limits(self, engine: Any) -> None:
        rows = visits(3000)
        counted = read_table(engine(rows, 5), SCHEMA)
        equal_in_memory(counted, rows)
        equal_with_a_limit(counted, rows)

    def test_every_kind_of_column(self, engine: Any) -> None:
        rows = sources.visits()
        sources.check_counts(engine(rows, 3), rows)
        sources.check_learned(engine(rows, 3), rows)

    def test_the_checks_of_the_library_hold(self, engine: Any) -> None:
        def made(schema: Schema, rows: list[Row], persons: list[int]) -> BatchTable:
            names = list(schema.domain.attributes)
            columns: dict[str, Any] = {n: [r[i] for r in rows] for i, n in enumerate(names)}
            if schema.person is not None:
                columns[schema.person] = [f"p{p}" for p in persons]
            return read_table(engine(pa.table(columns), 2), schema)

        check_table(made)

    def test_a_whole_run(self, engine: Any) -> None:
        rows = visits(3000)
        schema = Schema([Learn("c", "real"), *SCHEMA.columns[:2]], ignore=["who"])
        made = margrave.synthesize(
            engine(rows, 3), schema, epsilon=20.0, delta=1e-6, mechanism="mst"
        )
        drawn = made.sample(seed=1, as_="arrow")["c"].to_numpy()
        assert abs(drawn.mean() - rows["c"].to_numpy().mean()) < 0.05

    def test_no_value_reaches_a_log(self, engine: Any, capfd: pytest.CaptureFixture[str]) -> None:
        rows = pa.table({"a": [CANARY, CANARY]})
        strict = Schema([Integer("a", 0, 4, outside="refuse")])
        with pytest.raises(DataError) as caught:
            read_table(engine(rows, 2), strict)
        shown = capfd.readouterr()
        assert CANARY not in str(caught.value) + shown.out + shown.err
