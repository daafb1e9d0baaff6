"""Totals and counts: their variance knows the number of records, and sums in other functions are told of."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from margrave.errors import InputError
from margrave.inference import Count, Mean, Total, analyze
from margrave.inference.datasets import ROWS, TOTAL
from margrave.marginal import IDENTITY
from margrave.release import Draws
from margrave.schema import Boolean, Date, Integer, Schema
from tests.release.test_draws import by_hand

SHARES = np.array([0.1, 0.6, 0.3])
TRUE_TOTAL, TRUE_COUNT = (
    11200.0,
    300.0,
)  # of the codes and ten each, and of the last code, in 1,000 records


def drawn(
    counts: Any, scale: float, *, m: int = 20, rows: int | None = None, total: int | None = None
) -> Draws:
    """Data sets of one column with the codes 0 to 2, by refits of noisy counts."""
    release = by_hand({"a": 3}, (("a",), np.rint(counts).astype(int), scale, IDENTITY), total=total)
    return release.draws(m, method="bootstrap", seed=1, rows=rows)


def test_totals_and_counts_of_a_frame() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan, 5.0], "g": ["a", "b", None, "a"]})
    total, count, lacking = Total("x")(frame), Count("g", "a")(frame), Count("g", None)(frame)
    assert (total.names, count.names, lacking.names) == (
        ("total(x)",),
        ("count(g = a)",),
        ("count(g missing)",),
    )
    assert total.estimates.tolist() == [8.0]
    assert total.variances[0] == pytest.approx(4 * np.var([1, 2, 0, 5], ddof=1))
    assert (count.estimates[0], lacking.estimates[0]) == (2.0, 1.0)
    assert count.variances[0] == pytest.approx(4 * 0.5 * 0.5)


def test_a_part_of_a_data_set_stands_for_its_share_of_the_real_records() -> None:
    """Ten rows that stand for 1,000 records: what is in a part of them adds up to the whole."""
    frame = pd.DataFrame({"x": np.arange(10.0), "g": pd.Categorical(list("aabbbbbbbb"))})
    frame.attrs = {TOTAL: 1000.0, ROWS: 10}
    parts = [frame[frame.g == g] for g in "ab"]
    for model in (Total("x"), Count("x", 3), Count("g", "a")):
        whole = float(model(frame).estimates[0])
        assert sum(float(model(part).estimates[0]) for part in parts) == pytest.approx(whole)
    assert Total("x")(parts[0]).estimates[0] == pytest.approx(100.0)
    alone = frame.x.where(frame.g == "a", 0.0)
    assert Total("x")(parts[0]).variances[0] == pytest.approx(1000**2 * alone.var() / 10)


def test_what_has_no_total() -> None:
    schema = Schema([Integer("k", 0, 2), Boolean("ill")])
    empty = pd.DataFrame({"k": pd.Series([], dtype=int), "ill": pd.Series([], dtype=bool)})
    Total("k").check(empty, schema)
    Total("ill").check(empty, schema)
    Count("ill", "yes").check(empty, schema)
    days = pd.DataFrame({"day": pd.Series([], dtype="datetime64[ns]")})
    for call, words in [
        (lambda: Total("z").check(empty), "no column 'z'"),
        (
            lambda: Total("day").check(
                days, Schema([Date("day", date(2020, 1, 1), date(2020, 2, 1))])
            ),
            "no total",
        ),
        (lambda: Count("k", 7).check(empty, schema), "7 of column 'k' is above the upper bound"),
        (lambda: Count("ill", None).check(empty, schema), "lacks no value"),
    ]:
        with pytest.raises(InputError, match=words):
            call()


def held(found: Any, truth: float) -> bool:
    low, high = found.conf_int()
    return bool(low <= truth <= high)


@pytest.mark.slow
def test_intervals_of_totals_cover_whatever_the_number_of_rows() -> None:
    """1,000 records, noise that hides 140 of them: at 95 %, 10 or fewer of 20 hold once in a hundred million."""
    models = (Total("ten"), Count("a", 2), Mean("ten"))

    def fit(frame: pd.DataFrame) -> Any:
        frame = frame.assign(ten=frame.a + 10)
        return {
            f.names[0]: (f.estimates[0], f.variances[0]) for f in (model(frame) for model in models)
        }

    rng, covered, naive = np.random.default_rng(3), np.zeros(2), 0
    for i in range(20):
        draws = drawn(
            rng.multinomial(1000, SHARES) + rng.normal(0.0, 80.0, 3), 80.0, rows=(None, 300)[i % 2]
        )
        total, count, mean = analyze(draws, fit, columns=("a",))
        covered += held(total, TRUE_TOTAL), held(count, TRUE_COUNT)
        naive += abs(total.estimate - TRUE_TOTAL) < 1.96 * draws.total * mean.bse
    assert (covered > 10).all()
    assert naive < 10  # with the number of records taken as known


def test_a_public_number_of_records_adds_no_variance() -> None:
    draws = drawn(1000 * SHARES, 20.0, total=1000)
    total, mean = (analyze(draws, model).estimates[0] for model in (Total("a"), Mean("a")))
    assert total.estimate == pytest.approx(1000 * mean.estimate)
    assert total.bse == pytest.approx(1000 * mean.bse, rel=0.01)
    noisy = drawn(1000 * SHARES, 20.0)
    assert len({noisy.total_of(i) for i in range(20)}) > 10
    own = noisy.released()
    assert own is not None
    assert {own.total_of(i) for i in range(20)} == {noisy.total}


def test_sums_of_ones_own_are_told_of() -> None:
    """Where the data sets are of another size, or the number of real records is uncertain; and no other estimates."""

    def fit(frame: pd.DataFrame) -> Any:
        n = len(frame)
        return {
            "sum": (frame.a.sum(), n * frame.a.var()),
            "mean": (frame.a.mean(), frame.a.var() / n),
        }

    def scaled(frame: pd.DataFrame) -> Any:
        return {
            "sum": (
                frame.attrs["total"] * frame.a.mean(),
                frame.attrs["total"] ** 2 * frame.a.var() / len(frame),
            )
        }

    public, noisy = drawn(1000 * SHARES, 20.0, total=1000), drawn(1000 * SHARES, 20.0)
    smaller = drawn(1000 * SHARES, 20.0, rows=400, total=1000)
    for draws, words in [
        (public, None),
        (
            noisy,
            "sum: sums or counts, twice as large on twice the records. The interval does not include",
        ),
        (
            smaller,
            "sum: sums or counts, twice as large on twice the records. They are of the 400 records",
        ),
    ]:
        told = [n for n in analyze(draws, fit, columns=("a",)).notes if "sums or counts" in n]
        assert [n.startswith(words or "") for n in told] == ([] if words is None else [True])
        assert all(
            n.endswith("Use Total and Count, or return means times frame.attrs['total'].")
            for n in told
        )
        for model, columns in ((Total("a"), None), (Count("a", 1), None), (scaled, ("a",))):
            found = analyze(draws, model, columns=columns)
            assert not any("sums or counts" in n for n in found.notes)
    assert analyze(noisy, scaled, columns=("a",))["sum"].conf_int() == pytest.approx(
        analyze(noisy, Total("a")).estimates[0].conf_int(), rel=0.01
    )

    def failing(frame: pd.DataFrame) -> Any:
        if len(frame) > noisy.rows:
            raise ZeroDivisionError
        return fit(frame)

    assert not any("sums or counts" in n for n in analyze(noisy, failing, columns=("a",)).notes)
