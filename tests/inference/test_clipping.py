"""Records piled up at the schema's bounds: values from beyond may have been moved there, and estimates say so."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from margrave.cli.main import run
from margrave.inference import (
    OLS,
    Analysis,
    By,
    Correlation,
    Count,
    Estimand,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    Total,
    analyze,
)
from margrave.inference.caveats import clipping
from margrave.inference.caveats.clipping import Excess
from margrave.ratios import figure
from margrave.release import Release
from margrave.release.numbers import numbers_of
from margrave.schema import Boolean, Categorical, ColumnSource, Date, Integer, Real, Schema
from tests.support.by_hand import release_of

ROWS = 6_000


def release(frame: pd.DataFrame, schema: Schema) -> Release:
    """A release of everything together."""
    return release_of(frame, schema, [schema.domain.attributes])


def incomes(outside: str = "clip", high: float = 60_000.0) -> tuple[pd.DataFrame, Schema]:
    """A tenth of the records are above 60,000."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], ROWS)
    pay = np.exp(10 + 0.4 * (sex == "M") + 0.7 * rng.normal(size=ROWS))
    bounded = Real(
        "pay", 0, high, bins=int(high // 2_500), outside=outside, missing=outside == "missing"
    )
    return pd.DataFrame({"sex": sex, "pay": pay}), Schema([Categorical("sex", ["F", "M"]), bounded])


def analyzed(of: Release, fit: Any) -> Analysis:
    columns = None if isinstance(fit, Estimand) else "probe"
    return analyze(of, fit, 8, columns=columns, seed=1, method="bootstrap", bias_correct=False)


def piled(found: Analysis) -> list[str]:
    return [n for n in found.notes if "in its" in n]


def clipped(found: Analysis) -> list[str]:
    return [e.name for e in found if e.clipped]


@pytest.fixture(scope="module")
def made() -> Release:
    return release(*incomes())


def test_a_mean_beyond_the_bounds_is_marked(made: Release) -> None:
    found = analyzed(made, Mean("pay"))
    truth, (mean,) = incomes()[0].pay.mean(), found
    assert mean.ends is not None
    assert max(mean.ends[1], mean.conf_int()[1]) < truth, "neither interval nor bins reach it"
    assert mean.clipped == ("pay",)
    assert mean.label == "mean(pay) [!]"
    (note,) = piled(found)
    assert note == found.notes[0]
    assert note.startswith("[!] pay: 1")
    assert (
        "% of the records are in its last cell, [57500, 60000], far more than the cells beside it"
        in note
    )
    assert "their distance from it moves mean(pay)" in note
    assert "raise high in the schema of the next release" in note


FITS: list[tuple[Any, bool]] = [
    (OLS("pay ~ sex"), True),
    (OLS("np.log(pay) ~ sex"), True),
    (Logistic("sex ~ pay", success="M"), True),
    (Quantile("pay", 0.95), True),
    (Quantile("pay", 0.5), False),  # ranks do not change
    (OLS("pay > 50000 ~ sex"), False),
    (Proportion("sex", "M"), False),
    (lambda f: {"m": (f.pay.mean(), f.pay.var() / len(f))}, True),
    (lambda f: {"m": (f.pay.median(), 1.0), "s": ((f.sex == "M").mean(), 1.0)}, False),
    (Mean("pay", where={"pay": (0, 30_000)}), False),
    (Mean("pay", where={"sex": "M"}), True),
    (Total("pay"), True),
    (By(Mean("pay"), "sex"), True),
    (By(Proportion("sex", "M"), "sex"), False),
]


@pytest.mark.parametrize(("fit", "doubtful"), FITS, ids=range(len(FITS)))
def test_only_what_values_beyond_would_change(made: Release, fit: Any, doubtful: bool) -> None:
    found = analyzed(made, fit)
    assert bool(piled(found)) is doubtful
    assert clipped(found) == (list(found.names) if doubtful else [])


def test_a_contrast_of_what_is_marked_is_marked(made: Release) -> None:
    found = analyzed(made, By(Mean("pay"), "sex"))
    assert found.contrast({"mean(pay) | sex = M": 1, "mean(pay) | sex = F": -1}).label.endswith(
        "[!]"
    )


def test_a_count_at_the_end_holds_what_lies_beyond() -> None:
    ages = np.minimum(np.random.default_rng(0).integers(20, 99, ROWS), 120)
    of = release(pd.DataFrame({"age": ages}), Schema([Integer("age", 20, 89, bins=70)]))
    assert clipped(analyzed(of, Count("age", 89))) == ["count(age = 89)"]
    assert clipped(analyzed(of, Count("age", 88))) == []


def test_a_schema_that_moves_nothing_has_no_pile() -> None:
    assert piled(analyzed(release(*incomes("missing")), Mean("pay"))) == []
    assert piled(analyzed(release(*incomes(high=400_000.0)), Mean("pay"))) == [], "wide bounds"
    frame, schema = incomes()
    cited = replace(schema, sources={"pay": ColumnSource(cite="Code book, p. 12")})
    assert piled(analyzed(release(frame, cited), Mean("pay"))) == [], "the range of all values"


NATURAL: list[tuple[Any, Any]] = [
    (
        Integer("x", 0, 20),
        lambda r: np.minimum(r.poisson(1.0, ROWS) * (r.random(ROWS) < 0.4), 20),
    ),  # mostly 0
    (Integer("x", 20, 89, bins=14), lambda r: r.integers(20, 90, ROWS)),
    (Integer("x", 0, 1), lambda r: r.random(ROWS) < 0.8),
    (
        Integer("x", 1, 16),
        lambda r: r.choice(16, ROWS, p=[*[0.92 / 13] * 13, 0.05, 0.014, 0.016]) + 1,
    ),  # a code book
    (Integer("x", 20, 89, outside="refuse"), lambda r: np.minimum(r.integers(20, 100, ROWS), 89)),
    (Integer("x", 1, 5), lambda r: r.choice(5, ROWS, p=[0.1, 0.05, 0.15, 0.2, 0.5]) + 1),  # a scale
    (
        Integer("x", 1, 10),
        lambda r: r.choice(10, ROWS, p=np.array([5, 2, 3, 4, 8, 10, 15, 20, 13, 20]) / 100) + 1,
    ),  # answers of which the last but one is not the rarest
    (Real("x", -4, 4, bins=40), lambda r: r.normal(size=ROWS)),
    (Real("x", 0, 1, bins=20), lambda r: r.beta(3.0, 1.0, ROWS)),  # rises to its bound
    (
        Date("x", date(2020, 1, 1), date(2020, 12, 31), bins=12),
        lambda r: _days(r.integers(0, 366, ROWS)),
    ),
]


def _days(since: Any) -> Any:
    return (pd.Timestamp("2020-01-01") + pd.to_timedelta(since, unit="D")).date


@pytest.mark.parametrize(("column", "values"), NATURAL, ids=range(len(NATURAL)))
def test_natural_ends_are_no_piles(column: Any, values: Any) -> None:
    frame = pd.DataFrame({"x": values(np.random.default_rng(2))})
    draws = release(frame, Schema([column])).draws(8, seed=1, method="bootstrap")
    assert Excess.of([column], draws) == ()


PILES: list[tuple[Any, Any, bool]] = [
    (Integer("x", 20, 89), lambda r: r.integers(20, 100, ROWS), True),
    (Integer("x", 0, 5), lambda r: r.negative_binomial(1, 0.25, ROWS), True),  # visits, cut off
    (Integer("x", 10, 80, bins=12), lambda r: r.normal(35, 20, ROWS), False),
    (Real("x", -1, 4, bins=20), lambda r: r.normal(size=ROWS), False),
    (
        Real("x", 0, 10, bins=5, atoms=[10]),
        lambda r: np.where(r.random(ROWS) < 0.02, 10, r.uniform(0, 9, ROWS)),
        True,
    ),
    (
        Date("x", date(2020, 1, 1), date(2020, 6, 30), bins=12),
        lambda r: _days(r.integers(0, 366, ROWS)),
        True,
    ),
    (
        Date("x", date(2020, 6, 1), date(2020, 12, 31), bins=12),
        lambda r: _days(r.integers(0, 366, ROWS)),
        False,
    ),
]


@pytest.mark.parametrize(("column", "values", "top"), PILES, ids=range(len(PILES)))
def test_piles_at_either_end(column: Any, values: Any, top: bool) -> None:
    frame = pd.DataFrame({"x": values(np.random.default_rng(2))})
    draws = release(frame, Schema([column])).draws(8, seed=1, method="bootstrap")
    (pile,) = (p for p in Excess.of([column], draws) if p.top == top)
    coded = column.encode(draws[0]["x"].combine_chunks()).codes
    assert pile.share == pytest.approx((coded == (coded.max() if top else 0)).mean(), abs=0.02)
    moved = pile.beyond(draws[0])["x"].combine_chunks()
    assert (column.encode(moved).codes == coded).all()
    outside = column.encode(moved).outside
    assert (outside == (coded == pile.cell)).all()


def test_missing_values_stay_missing() -> None:
    frame, _ = incomes()
    frame.loc[::7, "pay"] = np.nan
    schema = Schema(
        [
            Categorical("sex", ["F", "M"]),
            Real("pay", 0, 60_000, bins=24, missing=True),
            Boolean("ill"),
        ]
    )
    draws = release(frame.assign(ill=True), schema).draws(4, seed=1, method="bootstrap")
    (pile,) = Excess.of([schema.column("pay")], draws)  # type: ignore[list-item]
    assert pile.beyond(draws[0])["pay"].null_count == draws[0]["pay"].null_count > 0


def test_it_is_seen_in_every_form(
    made: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    made.save("r.margrave")
    words = [
        "analyze",
        "mean",
        "r.margrave",
        "pay",
        "--m",
        "4",
        "--method",
        "bootstrap",
        "--seed",
        "1",
    ]
    assert run([*words, "--plot", "p.html"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "mean(pay) [!]" in shown
    assert "Note: [!] pay: " in shown
    assert (tmp_path / "p.html").read_text().count("mean(pay) [!]") == 2
    assert run([*words, "--json"]) == 0
    (estimate,) = json.loads(capsys.readouterr().out)["estimates"]
    assert estimate["clipped"] == ["pay"]
    assert estimate["flagged"] is True


def test_values_beyond_learned_bounds_mark_an_estimate_or_are_noted() -> None:
    rows, schema = incomes(high=200_000.0)
    base = release(rows, schema)

    def found(added: float, estimand: Estimand) -> Analysis:
        mean = (28_000.0, 27_900.0, 28_100.0 + added)
        learned = replace(schema.column("pay"), mean=mean)
        of = replace(base, schema=Schema([schema.column("sex"), learned]))
        return analyzed(of, estimand)

    (far,) = found(5_000.0, Mean("pay"))
    assert far.clipped == ("pay",)
    assert far.flagged
    near = found(100.0, Mean("pay"))
    (own,) = near
    assert not own.clipped
    (note,) = (n for n in near.notes if "beyond the learned bounds" in n)
    assert (
        "Intervals of all estimates do not include them." in note
        or "mean(pay) do not include them." in note
    )
    assert not any("beyond the learned" in n for n in found(0.0, Mean("pay")).notes)
    (median,) = found(5_000.0, Quantile("pay", 0.5))
    assert not median.clipped


def test_a_quantile_that_may_lie_beyond_a_learned_bound_is_open_in_an_analysis_too() -> None:
    """In texts, in JSON and in multiples; its note is about the quantile and not about the mean."""
    rows, schema = incomes(high=200_000.0)
    rows["pay"] = np.where(np.arange(len(rows)) % 20 == 0, 199_000.0, rows.pay)
    learned = replace(schema.column("pay"), mean=(36_000.0, 35_900.0, 56_100.0))
    sources = {"pay": ColumnSource(of="learned")}
    base = replace(
        release(rows, schema), schema=Schema([schema.column("sex"), learned], sources=sources)
    )
    found = analyzed(base, Quantile("pay", 0.97))
    (top,) = found
    assert top.conf_int(0.9)[1] == math.inf
    assert top.to_dict(0.9)["high"] is None
    assert top.cells(0.9)[3] == "beyond 200,000"
    assert found.contrast({top.name: -1.0}).conf_int(0.9)[0] == -math.inf
    assert "to beyond 2e+05)" in found.svg()
    assert top.clipped == ("pay",)
    notes = [n for n in found.notes if "pay: " in n and "beyond" in n]
    assert any(
        n.startswith("[!] pay: 97 % quantile may lie beyond a learned bound.") for n in notes
    )
    assert not any("its mean" in n or "cut off" in n for n in found.notes)
    number = next(
        n
        for n in numbers_of(
            base.schema, base.transcript, base.model, 0.95, ["pay"], quantiles={"97 %": 0.97}
        )
        if n.statistic == "97 %"
    )
    assert number.is_open
    (median,) = analyzed(base, Quantile("pay", 0.5))
    assert math.isfinite(median.conf_int()[1])
    assert not median.clipped


def test_the_room_that_an_analysis_states_is_that_of_the_number() -> None:
    rows, schema = incomes(high=200_000.0)
    learned = replace(schema.column("pay"), mean=(28_000.0, 27_900.0, 33_100.0))
    of = replace(release(rows, schema), schema=Schema([schema.column("sex"), learned]))
    for level in (0.5, 0.95):
        (mean,) = (
            n for n in of.numbers(level=level, details=True).to_pylist() if n["statistic"] == "mean"
        )
        found = analyze(of, Mean("pay"), m=4, level=level, seed=1, method="bootstrap")
        (note,) = (n for n in found.notes if "may move its mean up by as much as" in n)
        assert f"as much as {figure(mean['beyond_above'], 3)}." in note


def test_an_excess_that_the_numbers_do_not_mark_raises_no_alarm(
    monkeypatch: pytest.MonkeyPatch, made: Release
) -> None:
    """The noisy counts decide where there are some, and the draws where there are none."""
    monkeypatch.setattr(clipping, "clipped_ends", lambda *_: (0.0, 0.0))
    assert not clipped(analyzed(made, Mean("pay")))
    monkeypatch.setattr(clipping, "clipped_ends", lambda *_: None)
    assert clipped(analyzed(made, Mean("pay")))


ANOTHER_RUN: list[tuple[Estimand, bool]] = [
    (Mean("pay"), True),
    (Mean("pay", where={"sex": "F", "age": (20, 40)}), True),
    (OLS("pay ~ sex"), True),
    (Correlation("pay", "age"), True),
    (Quantile("pay", 0.5), False),
    (Mean("pay", where={"pay": (0, 20_000)}), False),
    (Mean("age"), False),
    (Proportion("sex", "F"), False),
]


@pytest.fixture(scope="module")
def bounds_of_another_run() -> Release:
    """A release under the bounds of pay that another one learned, whose last cell is empty."""
    rows, schema = incomes(high=200_000.0)
    rows["age"] = np.random.default_rng(1).integers(20, 60, ROWS)
    rows["pay"] = rows.pay.clip(upper=150_000)
    learned = {"pay": ColumnSource(of="learned", public=["low"])}
    return release(rows, Schema([*schema.columns, Integer("age", 20, 59, bins=4)], sources=learned))


@pytest.mark.parametrize(("fit", "doubtful"), ANOTHER_RUN, ids=range(len(ANOTHER_RUN)))
def test_bounds_of_another_run_mark_what_values_beyond_would_change(
    bounds_of_another_run: Release, fit: Estimand, doubtful: bool
) -> None:
    found = analyzed(bounds_of_another_run, fit)
    assert clipped(found) == (list(found.names) if doubtful else [])
    notes = [n for n in found.notes if "the bounds are those that another release learned" in n]
    assert len(notes) == doubtful
    assert all(n.startswith("[!] pay: ") for n in notes)
    if doubtful:  # an interval of the noisy counts does not include these rows either
        assert not any(c.kind == "not reliable" for c in found.caveats)
    numbers = bounds_of_another_run.numbers(columns=["pay"]).to_pylist()
    assert not next(n["reliable"] for n in numbers if n["statistic"] == "mean")
