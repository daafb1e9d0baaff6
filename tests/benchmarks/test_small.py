"""Suites run once on made-up tables of a few hundred rows, by the command line, and make a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")

from benchmarks.__main__ import main
from benchmarks.core.results import View
from benchmarks.core.store import Row, Store
from benchmarks.core.suite import HERE, suite_of
from benchmarks.suites import hiding, inference, zeros

SIZES = {"a": 3, "b": 4, "c": 2, "d": 3}
ADULT = {"sex": 2, "race": 3, "age": 4, "income": 2}
FIRE = dict.fromkeys([*dict.fromkeys(c for pair in zeros.PAIRS for c in pair)], 3)


def write(data: Path, name: str, sizes: Mapping[str, int], rows: int = 300) -> None:
    """Write a table whose columns depend on each other, and its schema."""
    path = data / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    base = rng.integers(0, 12, rows)
    noise = rng.integers(0, 2, (len(sizes), rows))
    columns = {a: (base // (1 + i) + noise[i]) % k for i, (a, k) in enumerate(sizes.items())}
    pq.write_table(pa.table(columns), path)
    facts = [{"name": a, "domain_size": k} for a, k in sizes.items()]
    path.with_suffix(".schema.json").write_text(json.dumps({"columns": facts}))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The tables that the suites below read, by their names."""
    folder = tmp_path / "data"
    for name in ("aim/adult", "aim/titanic"):
        write(folder, name, SIZES)
    write(folder, "aim/fire", FIRE)
    write(folder, "gem/adult_reduced", ADULT)
    write(folder, "acs/acs_income_2018_us_100k", {hiding.TARGET: 2, **SIZES}, 600)
    return folder


def run(suite: str, data: Path, *words: str) -> list[Row]:
    """Run one repeat of some cells, and return their rows."""
    results = data.parent / "results"
    options = ["--repeats", "1", "--data", str(data), "--results", str(results)]
    assert main(["run", suite, *words, *options]) == 0
    rows = Store(results / f"{suite}.parquet").rows()
    assert rows
    assert [row["outcome"] for row in rows] == ["finished"] * len(rows), rows
    return rows


def like_stored(suite: str, rows: list[Row]) -> None:
    """Assert that new rows have the columns of those stored before, whatever was added since."""
    stored = Store(HERE / "results" / f"{suite}.parquet").rows()
    for row in rows:
        same = [
            r for r in stored if r["contender"] == row["contender"] and r["outcome"] == "finished"
        ]
        assert min(len(set(r) - set(row)) for r in same or stored) == 0, suite


def text(suite: str, rows: list[Row]) -> str:
    """Return the printed page of rows."""
    made: Any = suite_of(suite)
    return str(made.page(View(made, rows)).text())


def test_bounds(data: Path) -> None:
    rows = run("bounds", data, "--only", "task=aim/adult", "epsilon=1")
    like_stored("bounds", rows)
    (row,) = rows
    assert row["rows"] == 300
    assert row["bounds"]["ours"]["all_hold"] in (True, False)
    assert row["intervals"]["inside"] <= row["intervals"]["cells"]
    assert "| adult | 1 | 1 | " in text("bounds", rows)


def test_penalty(data: Path) -> None:
    rows = run("penalty", data, "--only", "task=aim/titanic", "epsilon=1", "--set", "runs=2")
    like_stored("penalty", rows)
    assert [row["contender"] for row in rows] == ["full", "projected"]
    assert all(len(row["errors"]) == 2 and 0 < min(row["errors"]) < 2 for row in rows)
    assert "| titanic | 1 | 2 | " in text("penalty", rows)


def test_zeros(data: Path) -> None:
    rows = run("zeros", data, "--only", "epsilon=10")
    like_stored("zeros", rows)
    plain, declared = rows
    assert plain["impossible"] == declared["impossible"] > 0
    assert declared["violating_rows"] == 0
    assert "| 10 | with zeros | 1 | " in text("zeros", rows)


def test_inference(data: Path) -> None:
    words = ["--only", "task=chain", "contender=mst", "epsilon=1", "rows=400"]
    rows = run("inference", data, *words, "--set", "rows=400", "draws=3", "perturbed=true")
    like_stored("inference", rows)
    (row,) = rows
    kinds = ["real", "naive", "draws", "draws, back", "perturbed", "perturbed, back"]
    assert list(row["intervals"]) == kinds
    estimands = len(row["estimands"])
    assert all(np.array(x).shape == (estimands, 2) for x in row["intervals"].values())
    assert len(row["truth"]) == estimands
    assert "chain_mst_400_eps1: 1 repeats" in text("inference", rows)


def test_worlds_know_their_truth() -> None:
    """The coefficients that a world was made with are those that its population has."""
    clinic, chain = (inference.TASKS[n].case(Path()).table for n in ("clinic", "chain"))
    assert isinstance(clinic, inference.World)
    assert isinstance(chain, inference.World)
    truth = dict(zip(clinic.estimands, clinic.truth(), strict=True))
    columns = {"age": 0.25, "sex": 0.3, "smoker": 0.8, "exposure": 0.4}
    for name, value in columns.items():
        assert truth[f"logistic outcome ~ {name}"] == pytest.approx(value, abs=1e-6)
    truth = dict(zip(chain.estimands, chain.truth(), strict=True))
    assert truth["logistic y ~ a"] == pytest.approx(0.25, abs=1e-6)
    codes = clinic.drawn(20_000, np.random.default_rng(0))
    for (estimate, variance), value in zip(clinic.analyze(codes), clinic.truth(), strict=True):
        assert abs(estimate - value) < 6 * np.sqrt(variance)


def test_hiding(data: Path) -> None:
    words = ["--only", "weight=0,0.01"]
    rows = run("hiding", data, *words, "--set", "particles=300", "split=paper", "slope=5")
    like_stored("hiding", rows)
    assert [row["setting"]["weight"] for row in rows] == [0.0, 0.01]
    assert all(row["part"] == pytest.approx(0.35, abs=0.05) for row in rows)
    assert all(0 <= row["hidden"] <= 1 and row["slope"] == 5 for row in rows)


@pytest.mark.parametrize("contender", ["independent", "mwem", "rap"])
def test_adaptive(data: Path, contender: str) -> None:
    words = ["task=adult_reduced", f"contender={contender}", "epsilon=1"]
    rows = run("adaptive", data, "--only", *words, "stage=default")
    like_stored("adaptive", rows)
    (row,) = rows
    assert 0 < row["errors"]["mean"] <= row["errors"]["rmse"] <= row["errors"]["max"] <= 1
    assert set(row["records"]) == set(row["errors"])
