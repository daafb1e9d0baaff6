"""The parts of benchmarks/transport that need no long run: codes, the split, errors, the order of work, the page."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margrave import Schema
from margrave.schema import Codes

pytest.importorskip("benchmarks.transport", reason="the benchmarks are not part of this copy")
pytest.importorskip("sklearn", reason="the downstream error needs scikit-learn")

from benchmarks.transport import __main__ as program
from benchmarks.transport import contenders, errors, figures, page, paper, summary, tables, tasks
from run import default_data
from stored import append

DATA = default_data()
needs_data = pytest.mark.skipif(
    not (DATA / "privpgd").is_dir(), reason="the benchmark tables are not here: set MARGRAVE_DATA"
)


def line(task: str, contender: str, epsilon: float | None, run: int, error: float) -> dict[str, Any]:
    found = dict.fromkeys((*errors.METRICS, "covariance", "counting", "thresholding"), error)
    return {
        "task": task, "contender": contender, "epsilon": epsilon, "run": run, "outcome": "finished", "errors": found,
        "fit_cpu_s": 2.0, "earlier": run,
    }  # fmt: skip


def results(*lines: dict[str, Any]) -> summary.Results:
    by: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for x in lines:
        by.setdefault((x["task"], x["contender"]), []).append(x)
    return summary.Results(by)


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
def task(tiny: Path) -> tasks.Task:
    return tasks.Source("tiny", without=("id",)).read("diabetes", tiny)


# Tables


def test_a_table_is_coded_and_split(task: tasks.Task, tiny: Path) -> None:
    sizes = dict(zip(task.private.domain, task.private.domain.sizes, strict=True))
    assert sizes == {"size": 32, "grade": 4, "year": 32, "town": 32, "code": 32, "bought": 2}
    assert (len(task.private), len(task.test), task.target) == (80, 20, "bought")
    again = tasks.Source("tiny", without=("id",)).read("diabetes", tiny)
    np.testing.assert_array_equal(task.private.values, again.private.values)
    stored = pq.read_table(tiny / "tiny.parquet")
    whole = np.asarray(stored["size"].is_valid())
    grades = np.asarray(stored["grade"])[whole] - 3
    both = [*task.private.column("grade"), *task.test.column("grade")]
    assert sorted(both) == sorted(grades)


def test_numbers_fall_into_equal_bins_of_their_range() -> None:
    codes, size = tasks.binned(np.array([0.0, 0.99, 1.0, 31.99, 32.0]), 0, 32, whole=False)
    assert (codes.tolist(), size) == ([0, 0, 1, 31, 31], 32)
    assert tasks.binned(np.array([5.0, 36.0]), 5, 36, whole=True)[1] == 32
    assert tasks.binned(np.array([5.0, 37.0]), 5, 37, whole=True)[0].tolist() == [0, 31]
    assert tasks.binned(np.array([5.0, 7.0]), 5, 8, whole=True) == (pytest.approx([0, 2]), 4)
    with pytest.raises(ValueError, match="outside the range"):
        tasks.binned(np.array([-1.0]), 0, 100, whole=False)


def test_many_codes_become_groups_of_neighbours() -> None:
    groups = tasks.grouped(np.arange(42), 42)
    assert (groups.min(), groups.max()) == (0, 31)
    assert set(np.diff(groups)) == {0, 1}
    assert set(np.bincount(groups)) == {1, 2}
    assert tasks.grouped(np.arange(32), 32).tolist() == list(range(32))


def test_names_keep_their_listed_order() -> None:
    values = pa.chunked_array([pa.array(["b", "a"]), pa.array(["c"])])
    assert tasks.named(values, ["c", "b", "a", "d"])[0].tolist() == [1, 2, 0]
    assert tasks.named(values, None) == (pytest.approx([1, 0, 2]), 3)


@needs_data
@pytest.mark.data
def test_diabetes_is_the_papers() -> None:
    task = tasks.load("diabetes7", DATA)
    assert (len(task.private), len(task.private.domain)) == (56_872, 7)
    assert max(task.private.domain.sizes) == 32


# Errors


def test_the_centred_covariance_is_of_rows_without_their_mean() -> None:
    rng = np.random.default_rng(1)
    domain = Schema.coded({"a": 4, "b": 5, "c": 2}).domain
    one, two = (
        Codes.of(domain, {a: rng.integers(0, k, 200) for a, k in zip(domain, domain.sizes, strict=True)})
        for _ in range(2)
    )

    def plainly(codes: Codes) -> Any:
        rows = np.array([(2 * codes.column(a) + 1) / (2 * k) for a, k in zip(domain, domain.sizes, strict=True)]).T
        rows = rows - rows.mean(axis=1, keepdims=True)
        return np.cov(rows, rowvar=False, bias=True)

    expected = np.linalg.norm(plainly(one) - plainly(two))
    assert errors.centred_covariance_error(one, two) == pytest.approx(expected)
    assert errors.centred_covariance_error(one, one) == 0


def test_a_bootstrap_is_drawn_from_the_private_rows(task: tasks.Task) -> None:
    found = contenders.records(task, "bootstrap", None, 0)
    known = {tuple(row) for row in task.private.values.T}
    assert len(found) == len(task.private)
    assert {tuple(row) for row in found.values.T} < known
    assert contenders.records(task, "real", None, 0) is task.private


def test_a_run_becomes_a_line_and_is_not_repeated(task: tasks.Task, tmp_path: Path) -> None:
    options: Any = SimpleNamespace(minutes=None, timeout=100.0, results=tmp_path / "results")
    wanted = program.jobs(["real", "mst"], [1.0], 1)
    assert program.work(task, wanted, options, 0.0) == 0
    stored = summary.Results.read(options.results)
    assert stored.values("diabetes", "real", None, "two_way_l1") == [0.0]
    (error,) = stored.values("diabetes", "mst", 1.0, "two_way_l1")
    assert 0 < error <= 2
    lines = [x for found in stored.lines.values() for x in found]
    assert program.left(wanted, lines) == []
    assert program.left(program.jobs(["mst"], [1.0], 2), lines) == [program.Job("mst", 1.0, 1)]


def test_a_failure_is_a_line(task: tasks.Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Codes:
        raise RuntimeError("no")

    monkeypatch.setattr(program, "records", fails)
    options: Any = SimpleNamespace(minutes=None, timeout=100.0, results=tmp_path)
    assert program.work(task, [program.Job("mst", 1.0, 0)], options, 0.0) == 1
    (found,) = summary.Results.read(tmp_path).lines["diabetes", "mst"]
    assert (found["outcome"], found["why"]) == ("failed", "RuntimeError: no")


# Work


def test_the_order_of_work() -> None:
    found = program.jobs(["real", "bootstrap", "privpgd", "aim"], [2.5, 1.0], 2)
    assert found[:3] == [("real", None, 0), ("bootstrap", None, 0), ("bootstrap", None, 1)]
    assert found[3:7] == [("privpgd", 2.5, 0), ("aim", 2.5, 0), ("privpgd", 1.0, 0), ("aim", 1.0, 0)]
    assert len(found) == 3 + 8


def test_every_contender_has_a_name_and_a_colour() -> None:
    assert set(contenders.LABELS) == {*contenders.CONTENDERS, *contenders.REFERENCES}
    assert set(figures.COLOURS) == set(contenders.CONTENDERS)
    assert set(tasks.TITLES) == set(tasks.SOURCES)
    assert set(paper.METRICS) < set(errors.METRICS)


# Ratios and the page


def test_ratios_are_logarithms_to_privpgd() -> None:
    found = results(
        line("acs", "privpgd", 1.0, 0, 0.5), line("acs", "privpgd", 1.0, 1, 1.5), line("acs", "aim", 1.0, 0, 3.0),
        line("acs", "aim", 1.0, 1, 5.0), line("acs", "mst", 1.0, 0, 100.0),
    )  # fmt: skip
    ratio = found.ratio("acs", "aim", 1.0, "counting_error")
    assert ratio == pytest.approx((2.0, np.log2(4 - np.sqrt(2)), np.log2(4 + np.sqrt(2))))
    assert found.ratio("acs", "mst", 1.0, "counting_error") == (4.0, 4.0, 4.0)
    assert found.ratio("acs", "gem", 1.0, "counting_error") is None
    assert found.ratio("acs", "aim", 2.5, "counting_error") is None


def test_the_papers_numbers_stand_beside_ours() -> None:
    assert paper.said("diabetes", 2.5, "privpgd", "counting_error") == 0.0013
    assert paper.said("acs", 0.2, "rap", "two_way_l1") == 0.072
    assert paper.said("diabetes", 1.0, "privpgd-paper", "two_way_l1") == 0.052
    assert paper.said("diabetes", None, "real", "downstream") == 0.4
    assert paper.said("diabetes", 1.0, "privpgd", "covariance_error") is None
    assert paper.said("adult", 1.0, "privpgd", "counting_error") is None
    found = results(line("diabetes", "privpgd", 2.5, 0, 0.0013), line("diabetes", "privpgd", 2.5, 1, 0.0013))
    told = tables.bar(found).splitlines()[-1].split(" | ")
    assert told[2:5] == ["0.00", "1.00", "1.00"]
    assert told[5] == "**3.10**"


def test_what_is_stored_is_on_the_page_and_what_is_not_is_left_out(tmp_path: Path) -> None:
    for x in (line("diabetes", "privpgd", 1.0, 0, 0.25), line("diabetes", "aim", 1.0, 0, 0.5)):
        append(tmp_path / f"{x['task']}_{x['contender']}.jsonl", x)
    docs = tmp_path / "docs"
    docs.mkdir()
    marks = [*tables.tables(results()), *figures.NAMES]
    (docs / "transport.md").write_text("".join(f"<!-- table: {m} -->\nold\n<!-- end -->\n" for m in marks))
    page.write(summary.Results.read(tmp_path), docs)
    text = (docs / "transport.md").read_text()
    assert "old" not in text
    assert "| Diabetes | AIM | 1 | 0.5 / 0.4 | 0.5 |" in text
    assert sorted(p.name for p in (docs / "transport").iterdir()) == ["pairs-1.svg", "queries-1.svg"]
    drawn = (docs / "transport" / "pairs-1.svg").read_text()
    assert drawn.count("<circle") == 1 + 2  # the key, and a dot in each panel
    assert "AIM, Diabetes: 1 (1 to 1)" in drawn
    assert text.count("Not run yet.") == 2 + 1 + 2 * 2  # errors at two epsilons, the references, four figures


def test_the_page_has_a_place_for_every_table_and_figure() -> None:
    text = (Path(page.__file__).parents[2] / "docs" / "transport.md").read_text()
    for name in [*tables.tables(results()), *figures.NAMES]:
        assert text.count(f"<!-- table: {name} -->") == 1
