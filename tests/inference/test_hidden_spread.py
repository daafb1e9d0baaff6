"""Columns whose spread the noise hides mark what rests on it; estimates lie where a column's values can."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from margrave.cli.numbers import show_headlines
from margrave.inference import OLS, By, Mean, Quantile, Total, analyze
from margrave.marginal.counting import count_cliques
from margrave.marginal.linear_map import LinearMap
from margrave.models import GraphicalFit
from margrave.models.specs import fit_spec
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.release.hidden_spread import hidden_spread_words, hidden_spreads
from margrave.release.numbers import headlines, numbers_of
from margrave.schema import Categorical, ColumnSource, Date, Integer, Real, Schema
from margrave.schema.remedies import bins_remedy, bounds_remedy, learn_remedy
from margrave.transcript import Measurement, PublicTotal, Transcript
from tests.support import fake_model

ROWS = 4_000
WIDE = [1e3, 2e3, 3e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5]


@cache
def released(high: float, scale: float = 20.0) -> Release:
    """A release of costs below 9,000 under a schema with bins up to ``high``, and of their wards."""
    schema = Schema(
        [
            Real("cost", 0.0, high, edges=[e for e in WIDE if e < high]),
            Categorical("ward", ["a", "b"]),
        ]
    )
    rng = np.random.default_rng(0)
    ward = rng.choice(["a", "b"], ROWS)
    cost = np.minimum(rng.lognormal(7.5, 0.7, ROWS), 9e3)
    clique = ("cost", "ward")
    counts = count_cliques(schema.encode(pd.DataFrame({"cost": cost, "ward": ward})), [clique])
    noisy = np.rint(counts[clique] + rng.normal(0.0, scale, counts[clique].shape)).astype(np.int64)
    known = Measurement(clique, noisy, scale, Fraction(1 / (2 * scale**2)))
    transcript = Transcript((PublicTotal(ROWS), known))
    model = GraphicalFit()(schema.domain, transcript, rng=np.random.default_rng(0))
    provenance = Provenance("by hand", fit=fit_spec(GraphicalFit()))
    return Release(schema, model, transcript, fake_model.account_of(transcript), provenance)


@pytest.mark.parametrize("fit", [Mean("cost"), By(Mean("cost"), "ward"), OLS("cost ~ ward")])
def test_noise_in_nearly_empty_bins_marks_means_and_slopes(fit: Any) -> None:
    found = analyze(released(1e6), fit, 8, seed=1, method="bootstrap")
    assert all(e.mostly_noise == ("cost",) and e.flagged for e in found)
    noted = [c for c in found.caveats if c.kind == "mostly noise"]
    assert [c.names for c in noted] == [found.names]
    assert "mostly noise, which makes up 9" in noted[0].text
    assert "of the variance, and not reliable. The noise in the bins of cost" in noted[0].text
    assert found.to_dict()["estimates"][0]["mostly_noise"] == ["cost"]


@pytest.mark.parametrize(
    ("high", "scale", "fit"),
    [
        (1e6, 20.0, Quantile("cost")),  # the far bins do not move it
        (1e4, 20.0, By(Mean("cost"), "ward")),
        (1e6, 0.01, Mean("cost")),
    ],
)
def test_what_was_measured_well_is_not_marked(high: float, scale: float, fit: Any) -> None:
    found = analyze(released(high, scale), fit, 8, seed=1, method="bootstrap")
    assert not any(e.mostly_noise for e in found)


def test_the_spread_is_hidden_by_the_noise_alone() -> None:
    hidden = [hidden_spreads(r.schema, r.transcript) for r in (released(1e6), released(1e4))]
    assert hidden == [("cost",), ()]


def test_the_summary_states_the_cause_and_the_mean_of_the_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for high, doubtful in ((1e6, True), (1e4, False)):
        made = released(high)
        cost, ward = headlines(numbers_of(made.schema, made.transcript, made.model, 0.95))
        show_headlines(made, [replace(cost, synthetic=15_000.4) if doubtful else cost, ward])
        shown = " ".join(capsys.readouterr().out.split())
        assert ("The noise in the bins of cost far from its mean hides" in shown) is doubtful
        assert ("cost: the mean of the synthetic rows is 15,000, and" in shown) is doubtful


@pytest.mark.parametrize(
    ("column", "fit", "bounds"),
    [
        (Real("x", 2.0, 9.0, bins=7), Mean("x"), (2.0, 9.0)),
        (Real("x", 2.0, 9.0, bins=7), Quantile("x"), (2.0, 9.0)),
        (Real("x", 0.0, 9.0, bins=7), Total("x"), (0.0, np.inf)),
        (Real("x", -2.0, 9.0, bins=7), Total("x"), (-np.inf, np.inf)),
        (Real("x", 2.0, 9.0, bins=7, mean=(3.0, 2.0, 10.0)), Mean("x"), (-np.inf, np.inf)),
        (Date("x", date(2020, 1, 1), date(2020, 1, 9)), Mean("x"), (18262.0, 18270.0)),
    ],
)
def test_an_estimate_lies_where_the_values_of_its_column_can(
    column: Any, fit: Any, bounds: tuple[float, float]
) -> None:
    schema = Schema([column])
    counts = np.full(column.size, 10)
    known = Measurement(("x",), counts, 9.0, Fraction(1, 162))
    transcript = Transcript((PublicTotal(int(counts.sum())), known))
    model = GraphicalFit()(schema.domain, transcript, rng=np.random.default_rng(0))
    provenance = Provenance("by hand", fit=fit_spec(GraphicalFit()))
    made = Release(schema, model, transcript, fake_model.account_of(transcript), provenance)
    (found,) = analyze(made, fit, 4, seed=1, method="bootstrap")
    assert found.bounds == bounds


COST = Real("cost", 0.0, 1e6)


@pytest.mark.parametrize(
    ("column", "source", "remedy"),
    [
        (COST, ColumnSource(of="learned"), bounds_remedy()),
        (COST, ColumnSource(of="learned", public=["low"]), bounds_remedy(["high"])),
        (COST, ColumnSource(of="learned", public=["low", "high"]), bounds_remedy([])),
        (COST, ColumnSource(), bins_remedy()),
        (Integer("cost", 0, 20), ColumnSource(), f"{learn_remedy()}."),
        (Integer("cost", 0, 1, missing=True), ColumnSource(), ""),
    ],
)
@pytest.mark.parametrize("has_sum", [False, True])
def test_the_remedy_is_possible_and_not_what_was_done(
    column: Any, source: ColumnSource, remedy: str, has_sum: bool
) -> None:
    schema = Schema([column], sources={"cost": source})
    query = LinearMap(matrices={"cost": np.arange(column.size)[None, :]})
    own = Measurement(("cost",), np.array([10]), 9.0, Fraction(1, 162), query)
    words = hidden_spread_words(schema, Transcript((own,) if has_sum else ()), "cost")
    next_schema = f" In the schema of the next release, {remedy}" if remedy else ""
    rest = "give the release a larger budget."
    if not has_sum:
        rest = f'ask for a sum of its own (--for "mean cost"), or {rest}'
    rest = f"Or {rest}" if remedy else rest[0].upper() + rest[1:]
    assert words == (
        f"The noise in the bins of cost far from its mean hides its spread.{next_schema} {rest}"
    )
