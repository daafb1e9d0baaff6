"""Real against synthetic: the figures by hand, and the mark that they are not private."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fake_model
from margrave.data import read_table
from margrave.errors import InputError, ReleaseError
from margrave.evaluate import Evaluation, evaluate
from margrave.schema import Schema
from margrave.workload import Workload

SCHEMA = Schema.coded({"a": 2, "b": 2})
DOMAIN = SCHEMA.domain


def table(rows: list[tuple[int, int]]) -> Any:
    a, b = zip(*rows, strict=True) if rows else ((), ())
    return read_table(pa.table({"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.int64())}), SCHEMA)


REAL = table([(0, 0), (0, 0), (0, 1), (1, 1)])
SYNTHETIC = table([(0, 0), (1, 1)])  # half as many: scaled to four


def test_the_workload_error_by_hand() -> None:
    workload = Workload.of(DOMAIN, {("a",): 3.0, ("a", "b"): 1.0})
    found = evaluate(REAL, SYNTHETIC, workload)
    # shares of (a, b): real .5 .25 0 .25, synthetic .5 0 0 .5; of a: real .75 .25, synthetic .5 .5
    assert found.errors == {("a",): pytest.approx(0.5), ("a", "b"): pytest.approx(0.5)}
    assert found.workload_error == pytest.approx((3 * 0.5 + 1 * 0.5) / 4)
    assert found.one_way == {"a": pytest.approx(0.25), "b": pytest.approx(0.0)}
    assert found.two_way == {("a", "b"): pytest.approx(0.25)}
    assert (found.real_rows, found.synthetic_rows) == (4, 2)
    summary = found.columns[0]
    assert (summary.name, summary.value) == ("a", "0")
    assert (summary.real_share, summary.synthetic_share) == (0.75, 0.5)


def test_a_table_is_no_way_from_itself() -> None:
    found = evaluate(REAL, REAL)
    assert found.workload_error == 0
    assert found.mean_one_way == found.mean_two_way == 0
    assert list(found.errors) == [("a", "b")]  # all three-way marginals of two columns


def test_the_furthest_comes_first() -> None:
    found = evaluate(REAL, table([(1, 0)]), Workload.of(DOMAIN, [("a",), ("b",)]))
    assert [c for c, _ in found.worst()] == [("a",), ("b",)]
    assert found.worst(1) == [(("a",), pytest.approx(1.5))]


def test_an_empty_table_compares() -> None:
    assert evaluate(table([]), SYNTHETIC).workload_error == pytest.approx(1.0)
    assert evaluate(REAL, table([])).workload_error == pytest.approx(1.0)


def test_a_release_is_compared_by_its_records() -> None:
    release = fake_model.release()
    rng = np.random.default_rng(0)
    frame = pa.table({c.name: rng.integers(0, c.size, 3000) for c in release.schema.columns})
    found = evaluate(read_table(frame, release.schema), release)
    assert found.synthetic_rows == 300
    assert 0.1 < found.workload_error < 2


def test_large_workloads_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate(REAL, SYNTHETIC).to_dict()
    monkeypatch.setattr("margrave.evaluate.queries.BATCH_CELLS", 1)
    assert evaluate(REAL, SYNTHETIC).to_dict() == whole


def test_two_schemas_do_not_compare() -> None:
    other = read_table(pa.table({"a": [0], "c": [0]}), Schema.coded({"a": 2, "c": 2}))
    with pytest.raises(InputError, match="same schema"):
        evaluate(REAL, other)


def test_a_marginal_too_large_is_named() -> None:
    schema = Schema.coded({"a": 20_000, "b": 20_000})
    wide = read_table(pa.table({"a": [0], "b": [0]}), schema)
    with pytest.raises(InputError, match="a, b has 400000000 cells"):
        evaluate(wide, wide)


def test_it_says_that_it_is_not_private() -> None:
    found = evaluate(REAL, SYNTHETIC)
    assert Evaluation.private is False
    assert found.to_dict()["private"] is False
    assert found.to_dict()["warning"].startswith("NOT PRIVATE")
    assert str(found).startswith("NOT PRIVATE")


def test_a_release_does_not_take_it() -> None:
    with pytest.raises(ReleaseError, match="plain data"):
        replace(fake_model.release(), config={"evaluation": evaluate(REAL, SYNTHETIC)})
