"""The suite of speed: its inputs are the same for everyone, and its jobs run and are scored."""

from __future__ import annotations

import random
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")

from benchmarks.__main__ import default_data
from benchmarks.contenders.job import delta_of, measurement_loss, rho_of
from benchmarks.core.results import View
from benchmarks.core.store import Store
from benchmarks.core.suite import Cell, Places, Table, Task, kway
from benchmarks.core.tables import codes_of, load_codes
from benchmarks.suites import speed
from margrave import Budget

DATA = default_data()
needs_data = pytest.mark.skipif(
    not (DATA / "aim").is_dir(), reason="the benchmark tables are not here: set MARGRAVE_DATA"
)
Cliques = list[tuple[int, ...]]


def tree_cells(sizes: list[int], cliques: Cliques) -> int:
    """The cells of a junction tree, triangulated by eliminating the cheapest column first."""
    neighbors: list[set[int]] = [set() for _ in sizes]
    for clique in cliques:
        for a in clique:
            neighbors[a].update(b for b in clique if b != a)
    left, formed = set(range(len(sizes))), list[frozenset[int]]()
    while left:
        a = min(left, key=lambda v: (prod(sizes[u] for u in {v} | neighbors[v]), v))
        formed.append(frozenset({a} | neighbors[a]))
        for b in neighbors[a]:
            neighbors[b] |= neighbors[a] - {b}
            neighbors[b].discard(a)
        left.remove(a)
    maximal = [c for c in set(formed) if not any(c < other for other in formed)]
    return sum(prod(sizes[a] for a in c) for c in maximal)


@needs_data
@pytest.mark.data
def test_the_cliques_of_estimation_are_a_spanning_tree_and_random_triples() -> None:
    codes = load_codes(DATA, "aim/adult")
    sizes, rows = list(codes.domain.sizes), codes.values.astype(np.int64)

    def information(a: int, b: int) -> float:
        counts = np.bincount(rows[a] * sizes[b] + rows[b], minlength=sizes[a] * sizes[b])
        p = counts.reshape(sizes[a], sizes[b]) / counts.sum()
        seen, product = p > 0, p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
        return float((p[seen] * np.log(p[seen] / product[seen])).sum())

    group, tree = list(range(len(sizes))), []
    for a, b in sorted(combinations(range(len(sizes)), 2), key=lambda pair: -information(*pair)):
        if group[a] != group[b]:
            old, new = group[a], group[b]
            group = [new if g == old else g for g in group]
            tree.append((a, b))
    assert sorted(tree) == list(speed.TREE)
    assert tree_cells(sizes, [*speed.ONE_WAY, *speed.TREE]) == 4_779
    candidates: Cliques = list(combinations(range(len(sizes)), 3))
    random.Random(speed.SEED).shuffle(candidates)
    kept: Cliques = []
    for candidate in candidates:
        if len(kept) < 30 and tree_cells(sizes, [*kept, candidate]) <= 10_000_000:
            kept.append(candidate)
    assert sorted(kept) == list(speed.TRIPLES)
    assert tree_cells(sizes, kept) == 9_941_632


@needs_data
@pytest.mark.data
def test_the_noisy_marginals_are_those_of_the_stored_runs(tmp_path: Path) -> None:
    rows = Store(Path(speed.__file__).parents[1] / "results" / "speed.parquet").rows()
    for task in ("estimation_tree", "estimation_triples"):
        stored = {r["measurements_sha256"] for r in rows if r["task"] == task and "loss" not in r
                  and "measurements_sha256" in r}  # fmt: skip
        case = speed.TASKS[task].case(DATA)
        _, digest = speed.noisy_marginals(case, speed.TASKS[task].facts["cliques"], tmp_path)
        assert stored == {digest}


def test_the_zcdp_of_a_budget_is_ours() -> None:
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-9), (10.0, 1e-5)):
        rho = rho_of(epsilon, delta)
        assert rho == pytest.approx(float(Budget.approx(epsilon, delta).rho), rel=1e-6)
        assert delta_of(rho, epsilon) <= delta < delta_of(rho * 1.001, epsilon)


def test_the_loss_is_half_a_square_over_the_variance() -> None:
    fitted, noisy = [np.array([[1.0, 2.0]])], [np.array([4.0, 6.0])]
    assert measurement_loss(fitted, noisy, 5.0) == pytest.approx((9 + 16) / (2 * 25))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Every task on a made-up table of 300 rows, with few cliques."""
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, sizes = np.random.default_rng(0), {"a": 3, "b": 4, "c": 2, "d": 3}
    base = rng.integers(0, 12, 300)
    rows = [(base // (1 + i)) % size for i, size in enumerate(sizes.values())]
    (tmp_path / "aim").mkdir()
    pq.write_table(pa.table(dict(zip(sizes, rows, strict=True))), tmp_path / "aim/adult.parquet")
    facts = {"columns": [{"name": a, "domain_size": k} for a, k in sizes.items()]}
    (tmp_path / "aim" / "adult.schema.json").write_text(json.dumps(facts))
    table = Table(codes_of(sizes, rows))
    changes = {"cliques": ((0,), (1,), (0, 1)), "rows": 500}
    made = {}
    for name, task in speed.TASKS.items():
        own = {k: v for k, v in changes.items() if task.facts[k]}
        arguments = {k: 200 if k == "n" else v for k, v in task.facts["arguments"].items()}
        made[name] = Task("T", lambda data: table, kway(3), 1e-9, task.unit, task.contenders,
                          {**task.facts, **own, "arguments": arguments})  # fmt: skip
    monkeypatch.setattr(speed, "TASKS", made)
    return Places(tmp_path, Store(tmp_path / "x.parquet"), cache=tmp_path / "cache", timeout=120.0)


@pytest.mark.parametrize(
    ("task", "column"),
    [("mst_adult_eps1", "error_1way"), ("estimation_tree", "tree_cells"), ("count_1m", "marginals"),
     ("sample_1m", "loss"), ("import", "peak_mb")],
)  # fmt: skip
def test_a_job_of_margrave_runs_and_is_scored(small: Places, task: str, column: str) -> None:
    epsilon = 1.0 if "eps" in task else None
    row = speed.measure(Cell(task, "margrave", {}, epsilon, 0), small)
    assert row["outcome"] == "finished", row
    assert column in row
    assert row["wall_s"] > 0
    if task == "count_1m":
        assert row["error"] == 0.0
    if task == "sample_1m":
        assert row["records"] == 200


def test_wrong_counts_are_a_failure_with_their_seconds(
    small: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "counts", lambda codes, clique: np.zeros(3))
    row = speed.measure(Cell("count_1m", "margrave"), small)
    assert (row["outcome"], row["why"]) == ("failed", "unusable output: the counts are wrong")
    assert row["wall_s"] > 0


def test_a_job_that_fails_says_why(small: Places) -> None:
    row = speed.measure(Cell("estimation_tree", "margrave", {"steps": -1}), small)
    assert row["outcome"] == "failed"
    assert str(Path.home()) not in row["why"]


def test_the_table_compares_medians_to_margraves_default() -> None:
    def row(who: str, seconds: float, error: float, commit: str = "x") -> dict[str, object]:
        return {"task": "import", "contender": who, "setting": {}, "commit": commit, "version": "1",
                "outcome": "finished", "wall_s": seconds, "cpu_s": seconds, "error": error}  # fmt: skip

    rows = [
        row("margrave", 100.0, 9.0, "old"),
        row("margrave", 1.0, 0.5),
        row("margrave", 3.0, 0.5),
    ]
    table = speed.page(View(speed.SUITE, [*rows, row("mbi", 8.0, 0.25)])).tables["speed"]
    lines = table.splitlines()
    assert lines[2].startswith("| import | margrave | 1 | 2 | 2 | 2 | 2 | 1 |")
    assert lines[3].startswith("| import | mbi | 1 | 1 | 8 | 8 | 8 | 4 |")
    assert lines[3].endswith("| 0.25 | 0.25 | 0.5 | - | 1 finished |")
