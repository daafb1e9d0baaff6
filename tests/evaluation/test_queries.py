"""Errors of linear queries: by hand, against the plainest count, for tables and models, and for many queries."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest

from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.evaluation import evaluate, model_errors, query_errors
from margrave.marginal import QueryFamily
from margrave.models import empirical
from margrave.schema import Categorical, Integer, Schema
from margrave.workload import Workload
from tests.support.conformance import SIZES, memory_table, some_rows

REAL, OTHER = (
    memory_table(SIZES, some_rows(SIZES, 90)),
    memory_table(SIZES, some_rows(SIZES, 40, seed=9)),
)


def plainly(
    real: list[tuple[int, ...]], other: list[tuple[int, ...]], queries: QueryFamily
) -> np.ndarray:
    """Each query's error, row by row."""
    names, errors = list(SIZES), []
    for query in (queries[i] for i in range(len(queries))):
        pairs = list(zip(query.clique, query.codes, strict=True))
        shares = [
            np.mean([all(row[names.index(a)] in codes for a, codes in pairs) for row in rows])
            if rows
            else 0.0
            for rows in (real, other)
        ]
        errors.append(abs(shares[0] - shares[1]))
    return np.array(errors)


@pytest.mark.parametrize("kind", ["cells", "ranges", "prefixes"])
def test_errors_are_those_of_counting_row_by_row(kind: str) -> None:
    cliques = [("a", "c"), ("b",), ("a", "b", "c")]
    queries = (
        QueryFamily.cells(REAL.domain, cliques)
        if kind == "cells"
        else getattr(QueryFamily, kind)(REAL.domain, cliques, ["c"])
    )
    expected = plainly(some_rows(SIZES, 90), some_rows(SIZES, 40, seed=9), queries)
    found = query_errors(REAL, OTHER, queries)
    assert found.queries == len(queries) == len(expected)
    assert found.largest == pytest.approx(expected.max())
    assert found.mean == pytest.approx(expected.mean())
    assert found.rmse == pytest.approx(np.sqrt((expected**2).mean()))
    worst = queries[int(np.argmax(expected))]
    assert [word.split(" = ")[0] for word in found.worst.split(", ")] == list(worst.clique)
    other = np.array(some_rows(SIZES, 40, seed=9))
    model = empirical(
        Codes.of(REAL.domain, {a: other[:, i] for i, a in enumerate(SIZES)}), total=123.0
    )
    exact = model_errors(REAL, model, queries)
    assert (exact.largest, exact.mean, exact.rmse) == pytest.approx(
        (found.largest, found.mean, found.rmse)
    )


def test_the_query_that_is_furthest_off_has_labels_and_not_codes() -> None:
    """The code 1 of a column of the categories 1 and 2 stands for 2."""
    schema = Schema([Categorical("sex", ["1", "2"]), Integer("age", 0, 39, bins=4)])
    real, other = (
        MemoryTable(schema, Codes.of(schema.domain, {"sex": np.array([1]), "age": np.array([age])}))
        for age in (3, 0)
    )
    cells = QueryFamily.cells(schema.domain, [("sex", "age")])
    assert query_errors(real, other, cells).worst == "sex = 2, age = 0 to 9"
    assert evaluate(real, other, [("sex", "age")]).queries.worst == "sex = 2, age = 0 to 9"
    ranges = QueryFamily.prefixes(schema.domain, [("age",)], ["age"])
    assert query_errors(real, other, ranges).worst == "age = 0 to 9"
    assert query_errors(other, real, ranges).largest == 1.0


def test_an_evaluation_tells_them_for_the_cells_of_its_workload_or_for_others() -> None:
    workload = Workload.of(REAL.domain, {("a", "b"): 5.0, ("c",): 1.0})
    found = evaluate(REAL, OTHER, workload)
    assert found.queries == query_errors(
        REAL, OTHER, QueryFamily.cells(REAL.domain, workload.cliques)
    )
    assert found.to_dict()["queries"]["largest"] == found.queries.largest
    assert f"largest {found.queries.largest:.4f}" in str(found)
    ranges = QueryFamily.ranges(REAL.domain, [("b", "c")], ["c"])
    assert evaluate(REAL, OTHER, workload, queries=ranges).queries == query_errors(
        REAL, OTHER, ranges
    )
    assert evaluate(REAL, REAL, workload).queries.largest == 0.0


def test_empty_tables_and_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = QueryFamily.cells(REAL.domain, [("a", "b"), ("b", "c"), ("c",)])
    whole = query_errors(REAL, OTHER, queries)
    monkeypatch.setattr("margrave.evaluation.queries.BATCH_CELLS", 1)
    assert query_errors(REAL, OTHER, queries) == whole
    empty = memory_table(SIZES, [])
    with pytest.raises(InputError, match="has no rows"):
        query_errors(empty, REAL, queries)
    with pytest.raises(InputError, match="has no rows"):
        query_errors(REAL, empty, queries)


def test_other_columns_do_not_compare() -> None:
    other = MemoryTable(Schema.coded({"a": 2}), Codes.of(Domain.of({"a": 2}), {"a": np.array([0])}))
    queries = QueryFamily.cells(REAL.domain, [("a",)])
    for pair, asked in (
        ((REAL, other), queries),
        ((REAL, OTHER), QueryFamily.cells(other.domain, [("a",)])),
    ):
        with pytest.raises(InputError, match="same schema"):
            query_errors(*pair, asked)


def test_300_000_queries_take_seconds() -> None:
    """In processor time: all three-way cells of thirteen columns."""
    sizes = {f"c{i}": s for i, s in enumerate([9, 16, 7, 15, 6, 5, 2, 42, 2, 10, 13, 6, 10])}
    schema, rng = Schema.coded(sizes), np.random.default_rng(0)
    tables = [
        MemoryTable(
            schema,
            Codes.of(schema.domain, {a: rng.integers(0, s, 20_000) for a, s in sizes.items()}),
        )
        for _ in range(2)
    ]
    queries = QueryFamily.cells(schema.domain, tuple(combinations(sizes, 3)))
    assert len(queries) > 300_000
    start = time.process_time()
    found = query_errors(*tables, queries)
    assert time.process_time() - start < 20
    assert 0 < found.mean < found.rmse < found.largest < 0.05
