"""The suite of NAPSU-MQ against independent computations: its regression, and its rules."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")
pytest.importorskip("statsmodels.api")

import statsmodels.api as sm

from benchmarks.__main__ import default_data
from benchmarks.core import library as lib
from benchmarks.core.results import View
from benchmarks.core.store import Store
from benchmarks.core.suite import HERE, Cell
from benchmarks.suites import _napsu_page as page
from benchmarks.suites import napsu

DATA = default_data()
needs_data = pytest.mark.skipif(
    not (DATA / "napsu").is_dir(), reason="the benchmark tables are not here: set MARGRAVE_DATA"
)


def assert_like_statsmodels(task: napsu.Experiment) -> None:
    frame = napsu.frame_of(task.real(1.0, 0))
    shape = task.codes.domain.shape(task.regressors)
    cells = np.ravel_multi_index(tuple(frame[a].to_numpy() for a in task.regressors), shape)
    assert task.design is not None
    family, outcome = sm.families.Binomial(), frame[task.outcome].to_numpy()
    theirs = sm.GLM(outcome, task.design[cells], family=family).fit()
    ours = task.fit(frame)
    assert tuple(ours.names) == tuple(task.names)
    np.testing.assert_allclose(ours.estimates, theirs.params, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-5)


def test_the_counted_regression_is_that_of_single_records() -> None:
    assert_like_statsmodels(napsu.toy())


@needs_data
@pytest.mark.data
def test_the_regression_of_adult_is_that_of_single_records() -> None:
    assert_like_statsmodels(napsu.adult(DATA))


def test_a_cell_without_successes_blows_up() -> None:
    """The standard deviation is beyond 1000, as the paper's remedy expects."""
    task = napsu.toy()
    frame = napsu.frame_of(task.real(1.0, 0))
    frame.loc[frame.a == 1, "c"] = 0
    found = task.fit(frame)
    variances = dict(zip(found.names, found.variances, strict=True))
    assert variances["a"] > 1e6 > variances["b"]
    assert tuple(task.fit(frame[frame.a == 0]).names) == ("intercept", "b")
    assert napsu.single(0.0, variances["a"]) is None


def test_intervals_follow_the_papers_formulas() -> None:
    task, tables = napsu.toy(), []
    rng = np.random.default_rng(0)
    for _ in range(30):
        p = 1 / (1 + np.exp(-(rng.normal(0, 0.2) + rng.normal(1, 0.2))))
        a, b = rng.integers(0, 2, (2, task.n))
        c = rng.random(task.n) < np.where(a, p, 0.5)
        tables.append(pd.DataFrame({"a": a, "b": b, "c": c.astype(int)}))
    ours = lib.analyze(tables, task.fit, n=task.n)
    theirs = lib.analyze(tables, lib.Logistic("c ~ a + b"), n=task.n)
    q = np.array([task.fit(t).estimates for t in tables])
    v = np.array([task.fit(t).variances for t in tables]).mean(axis=0)
    between = (1 + 1 / 30) * q.var(axis=0, ddof=1)
    total, df = between - v, 29 * (1 - v / between) ** 2
    assert (total > v).any()
    for j, e in enumerate(ours):
        np.testing.assert_allclose(e.conf_int(), theirs.estimates[j].conf_int(), rtol=1e-5)
        if total[j] > v[j]:  # where our floor does not act
            half = stats.t.ppf(0.975, df[j]) * np.sqrt(total[j])
            middle = q[:, j].mean()
            np.testing.assert_allclose(e.conf_int(), (middle - half, middle + half), rtol=1e-8)


def test_stored_answers_make_the_release_they_came_from() -> None:
    case, cell = napsu.TASKS["toy"].case(DATA), Cell("toy", "answers", {}, 1.0, 0)
    row = {**cell.columns, **napsu.answers(case, cell)}
    release = napsu.release_of(case, row)
    (measured,) = release.transcript.measurements
    assert measured.values.shape == (2, 2, 2)
    assert measured.values.ravel().tolist() == row["answers"][0]["values"]
    assert release.account.epsilon == 1.0
    assert abs(int(measured.values.sum()) - case.table.n) < 10 * 8 * measured.scale
    for name in ("real", "naive", "sampled", "pep", "exact", "plain", "privlcm"):
        found = napsu.CONTENDERS[name].facts["run"](case, release, 0)
        assert len(found["estimates"]) == 3


def test_rows_with_a_weight_have_the_variance_of_as_many_rows_as_they_count() -> None:
    task = napsu.toy()
    frame = napsu.frame_of(task.real(1.0, 0))
    often = napsu.ordinary(task, task.fit(pd.concat([frame] * 25)), weight=1 / 25)
    for once, weighted in zip(
        napsu.ordinary(task, task.fit(frame))["estimates"], often["estimates"], strict=True
    ):
        assert weighted["estimate"] == pytest.approx(once["estimate"], abs=1e-9)
        assert weighted["variance"] == pytest.approx(once["variance"])


@needs_data
@pytest.mark.data
def test_the_pairs_of_adult_are_a_maximum_spanning_tree_beyond_the_needed() -> None:
    """A pair's weight is ||M_ab − M_a M_bᵀ / n||₁, as MST scores it, from the real table."""
    codes = napsu.adult(DATA).codes
    n, names = len(codes), codes.domain.attributes
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    counts = lib.count_cliques(codes, [*pairs, *((a,) for a in names)])
    weight = {
        (a, b): np.abs(counts[a, b] - np.outer(counts[a,], counts[b,]) / n).sum() for a, b in pairs
    }
    group = {a: a for a in names}
    chosen = []
    for a, b in [*napsu.NEEDED_PAIRS, *sorted(pairs, key=lambda pair: -weight[pair])]:
        if group[a] != group[b]:  # Kruskal's rule
            old = group[b]
            group = {c: group[a] if g == old else g for c, g in group.items()}
            chosen += [] if (a, b) in napsu.NEEDED_PAIRS else [(a, b)]
    assert {frozenset(p) for p in chosen} == {frozenset(p) for p in napsu.ADULT_PAIRS[5:]}


@pytest.mark.slow
def test_the_document_is_what_the_page_makes_of_the_store() -> None:
    docs = HERE.parent / "docs" / "research"
    made = page.page(View(napsu.SUITE, Store(HERE / "results" / "napsu.parquet").rows()))
    text = (docs / "napsu.md").read_text(encoding="utf-8")
    for name, table in made.tables.items():
        assert f"<!-- table: {name} -->\n{table}\n<!-- end -->" in text
    for name, svg in made.figures.items():
        assert (docs / "napsu" / f"{name}.svg").read_text(encoding="utf-8") == svg
