"""The transport suite: codes, the split, errors, the order of work, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margrave import Schema
from margrave.domain import Codes

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")
pytest.importorskip("sklearn", reason="the downstream error needs scikit-learn")

from benchmarks.__main__ import default_data
from benchmarks.core.results import View
from benchmarks.core.runner import left, run
from benchmarks.core.store import Store
from benchmarks.core.suite import Case, Cell, Places, Task, kway
from benchmarks.suites import transport

DATA = default_data()
needs_data = pytest.mark.skipif(
    not (DATA / "privpgd").is_dir(), reason="the benchmark tables are not here: set MARGRAVE_DATA"
)


def row(
    task: str, contender: str, epsilon: float | None, repeat: int, error: float
) -> dict[str, Any]:
    errors = dict.fromkeys((*transport.METRICS, *transport.RELATIVE), error)
    return {
        "task": task, "contender": contender, "epsilon": epsilon, "repeat": repeat, "setting": {},
        "outcome": "finished", "errors": errors, "fit_cpu_s": 2.0, "earlier": repeat,
    }  # fmt: skip


def view(*rows: dict[str, Any]) -> View:
    return View(transport.SUITE, rows)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A made-up table of every type of column, with a missing value in 5 of 105 rows."""
    rng = np.random.default_rng(0)
    n = 105
    size = rng.uniform(0.0, 10.0, n).tolist()
    size[::25] = [None] * 5
    columns = {
        "size": pa.array(size), "grade": pa.array(rng.integers(3, 7, n)), "year": pa.array(rng.integers(1900, 2000, n)),
        "town": pa.array([f"town {i:02}" for i in range(64)] + ["town 00"] * (n - 64)),
        "code": pa.array(rng.integers(0, 40, n)), "bought": pa.array(rng.random(n) < 0.5), "id": pa.array(range(n)),
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "tiny.parquet")
    told = [
        {"name": "size", "type": "float", "min": 0, "max": 10},
        {"name": "grade", "type": "integer", "min": 3, "max": 6},
        {"name": "year", "type": "integer", "min": 1900, "max": 1999},
        {"name": "town", "type": "string"},
        {"name": "code", "type": "coded", "domain_size": 40},
        {"name": "bought", "type": "boolean", "categories": [False, True]},
        {"name": "id", "type": "integer", "min": 0, "max": n},
    ]
    (tmp_path / "tiny.schema.json").write_text(json.dumps({"target": "bought", "columns": told}))
    return tmp_path


@pytest.fixture
def case(tiny: Path) -> Case:
    table = transport.read("tiny", ("id",), tiny)
    task = Task("T", lambda data: table, kway(2), 1e-5, facts={"regression": False})
    return Case(task, table)


# Tables


def test_a_table_is_coded_and_split(case: Case, tiny: Path) -> None:
    table = case.table
    sizes = dict(zip(table.codes.domain, table.codes.domain.sizes, strict=True))
    assert sizes == {"size": 32, "grade": 4, "year": 32, "town": 32, "code": 32, "bought": 2}
    assert table.test is not None
    assert (table.n, len(table.test), table.target) == (80, 20, "bought")
    again = transport.read("tiny", ("id",), tiny)
    np.testing.assert_array_equal(table.codes.values, again.codes.values)
    stored = pq.read_table(tiny / "tiny.parquet")
    whole = np.asarray(stored["size"].is_valid())
    grades = np.asarray(stored["grade"])[whole] - 3
    both = [*table.codes.column("grade"), *table.test.column("grade")]
    assert sorted(both) == sorted(grades)


def test_numbers_fall_into_equal_bins_of_their_range() -> None:
    codes, size = transport.to_bins(np.array([0.0, 0.99, 1.0, 31.99, 32.0]), 0, 32, whole=False)
    assert (codes.tolist(), size) == ([0, 0, 1, 31, 31], 32)
    assert transport.to_bins(np.array([5.0, 36.0]), 5, 36, whole=True)[1] == 32
    assert transport.to_bins(np.array([5.0, 37.0]), 5, 37, whole=True)[0].tolist() == [0, 31]
    assert transport.to_bins(np.array([5.0, 7.0]), 5, 8, whole=True) == (pytest.approx([0, 2]), 4)
    with pytest.raises(ValueError, match="outside the range"):
        transport.to_bins(np.array([-1.0]), 0, 100, whole=False)


def test_many_codes_become_groups_of_neighbors() -> None:
    groups = transport.to_groups(np.arange(42), 42)
    assert (groups.min(), groups.max()) == (0, 31)
    assert set(np.diff(groups)) == {0, 1}
    assert set(np.bincount(groups)) == {1, 2}
    assert transport.to_groups(np.arange(32), 32).tolist() == list(range(32))


def test_names_keep_their_listed_order() -> None:
    values = pa.chunked_array([pa.array(["b", "a"]), pa.array(["c"])])
    assert transport.named(values, ["c", "b", "a", "d"])[0].tolist() == [1, 2, 0]
    assert transport.named(values, None) == (pytest.approx([1, 0, 2]), 3)


@needs_data
@pytest.mark.data
def test_diabetes_is_the_papers() -> None:
    table = transport.TASKS["diabetes7"].case(DATA).table
    assert (table.n, len(table.codes.domain)) == (56_872, 7)
    assert max(table.codes.domain.sizes) == 32


# Errors


def test_the_centered_covariance_is_of_rows_without_their_mean() -> None:
    rng = np.random.default_rng(1)
    domain = Schema.coded({"a": 4, "b": 5, "c": 2}).domain
    one, two = (
        Codes.of(
            domain, {a: rng.integers(0, k, 200) for a, k in zip(domain, domain.sizes, strict=True)}
        )
        for _ in range(2)
    )

    def plainly(codes: Codes) -> Any:
        rows = np.array(
            [(2 * codes.column(a) + 1) / (2 * k) for a, k in zip(domain, domain.sizes, strict=True)]
        ).T
        rows = rows - rows.mean(axis=1, keepdims=True)
        return np.cov(rows, rowvar=False, bias=True)

    expected = np.linalg.norm(plainly(one) - plainly(two))
    assert transport.centered_covariance_error(one, two) == pytest.approx(expected)
    assert transport.centered_covariance_error(one, one) == 0


def test_a_bootstrap_is_drawn_from_the_private_rows(case: Case) -> None:
    found = transport.records(case, Cell("T", "bootstrap"))
    rows = {tuple(row) for row in case.table.codes.values.T}
    assert len(found) == case.table.n
    assert {tuple(row) for row in found.values.T} < rows
    assert transport.records(case, Cell("T", "real")) is case.table.codes


def test_a_run_becomes_a_row_and_is_not_repeated(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(transport.TASKS, "diabetes", case.task)
    places = Places(tmp_path, Store(tmp_path / "transport.parquet"))
    wanted = [Cell("diabetes", "real"), Cell("diabetes", "mst", {}, 1.0)]
    assert run(transport.SUITE, wanted, places) == 0
    rows = places.store.rows()
    assert transport.values(view(*rows), "diabetes", "real", None, "two_way_l1") == [0.0]
    (error,) = transport.values(view(*rows), "diabetes", "mst", 1.0, "two_way_l1")
    assert 0 < error <= 2
    assert left(wanted, rows) == []
    more = [*wanted, Cell("diabetes", "mst", {}, 1.0, 1)]
    assert left(more, rows) == more[2:]


# Work


def test_the_order_of_work() -> None:
    names = ("real", "bootstrap", "privpgd", "aim")
    cells = [c for c in transport.cells(2) if c.task == "acs" and c.contender in names]
    found = [(c.contender, c.epsilon, c.repeat) for c in cells]
    assert found[:3] == [("real", None, 0), ("bootstrap", None, 0), ("bootstrap", None, 1)]
    assert found[3:7] == [
        ("privpgd", 2.5, 0),
        ("aim", 2.5, 0),
        ("privpgd", 1.0, 0),
        ("aim", 1.0, 0),
    ]
    assert len(found) == 3 + 12


@pytest.mark.parametrize("name", transport.ORDER)
def test_every_contender_has_a_color_and_can_be_made(name: str, case: Case) -> None:
    assert transport.CONTENDERS[name].colors is not None
    assert transport.CONTENDERS[name].make(case, {}).config()["name"]


def test_metrics_of_the_paper_are_measured() -> None:
    assert set(transport.CONTENDERS) == {*transport.ORDER, *transport.REFERENCES}
    assert set(transport.PAPER["metrics"]) < set(transport.METRICS)


# Ratios and the page


def test_ratios_are_logarithms_to_privpgd() -> None:
    found = view(
        row("acs", "privpgd", 1.0, 0, 0.5), row("acs", "privpgd", 1.0, 1, 1.5), row("acs", "aim", 1.0, 0, 3.0),
        row("acs", "aim", 1.0, 1, 5.0), row("acs", "mst", 1.0, 0, 100.0),
    )  # fmt: skip
    ratio = transport.log_ratio(found, "acs", "aim", 1.0, "counting_error")
    assert ratio == pytest.approx((2.0, np.log2(4 - np.sqrt(2)), np.log2(4 + np.sqrt(2))))
    assert transport.log_ratio(found, "acs", "mst", 1.0, "counting_error") == (4.0, 4.0, 4.0)
    assert transport.log_ratio(found, "acs", "gem", 1.0, "counting_error") is None
    assert transport.log_ratio(found, "acs", "aim", 2.5, "counting_error") is None


def test_the_papers_numbers_stand_beside_ours() -> None:
    assert transport.paper_number("diabetes", 2.5, "privpgd", "counting_error") == 0.0013
    assert transport.paper_number("acs", 0.2, "rap", "two_way_l1") == 0.072
    assert transport.paper_number("diabetes", 1.0, "privpgd-paper", "two_way_l1") == 0.052
    assert transport.paper_number("diabetes", None, "real", "downstream") == 0.4
    assert transport.paper_number("diabetes", 1.0, "privpgd", "covariance_error") is None
    assert transport.paper_number("adult", 1.0, "privpgd", "counting_error") is None
    rows = [row("diabetes", "privpgd", 2.5, repeat, 0.0013) for repeat in (0, 1)]
    cells = transport.bar(view(*rows)).splitlines()[-1].split(" | ")
    assert cells[2:5] == ["0.00", "1.00", "1.00"]
    assert cells[5] == "**3.10**"


def test_what_is_stored_is_on_the_page_and_what_is_not_is_left_out(tmp_path: Path) -> None:
    made = transport.page(
        view(row("diabetes", "privpgd", 1.0, 0, 0.25), row("diabetes", "aim", 1.0, 0, 0.5))
    )
    text = "".join(f"<!-- table: {m} -->\nold\n<!-- end -->\n" for m in made.tables)
    (tmp_path / "transport.md").write_text(text)
    made.write(tmp_path, "transport")
    text = (tmp_path / "transport.md").read_text()
    assert "old" not in text
    assert "| Diabetes | AIM | 1 | 0.5 / 0.4 | 0.5 |" in text
    drawn = sorted(p.name for p in (tmp_path / "transport").iterdir())
    assert drawn == ["pairs-1.svg", "queries-1.svg"]
    svg = (tmp_path / "transport" / "pairs-1.svg").read_text()
    assert svg.count("<circle") == 1 + 2  # the key, and a dot in each panel
    assert "AIM, Diabetes: 1 (1 to 1)" in svg
    # errors at two epsilons, the references, four figures
    assert text.count("Not run yet.") == 2 + 1 + 2 * 2
