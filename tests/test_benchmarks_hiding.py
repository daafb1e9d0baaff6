"""The parts of the benchmark of hiding that need no run: its statistics, and its figure."""

from __future__ import annotations

import numpy as np
import pytest

from margrave.marginal import HalfSpace
from margrave.schema import Codes, Domain

pytest.importorskip("benchmarks.adaptive", reason="the benchmarks are not part of this copy")

import hiding
from run import default_data

ACS = default_data() / "acs" / "acs_income_2018_us_100k.parquet"


def test_a_statistic_is_of_three_columns_and_of_neither_few_nor_most_rows() -> None:
    sizes = {hiding.TARGET: 2, "a": 30, "b": 20, "c": 9, "d": 5}
    rng = np.random.default_rng(0)
    rows = Codes.of(Domain.of(sizes), {a: rng.integers(0, k, 4000) for a, k in sizes.items()})
    for seed in range(20):
        coefficients, threshold = hiding.statistic(rows, np.random.default_rng(seed))
        assert len(coefficients) == hiding.COLUMNS
        assert hiding.TARGET not in coefficients
        places = {a: (rows.column(a) + 0.5) / sizes[a] for a in coefficients}
        by_hand = (sum(c * places[a] for a, c in coefficients.items()) > threshold).mean()
        found = hiding.share(HalfSpace.of(rows.domain, coefficients, threshold), rows)
        assert found == pytest.approx(by_hand, abs=0.005)  # rows on the threshold
        assert 0.15 < found < 0.82


def test_the_figure_has_a_dot_for_every_weight_of_every_series() -> None:
    lines = [
        {"weight": w, **{name: (i + 1.0) * (w + 0.1) * s for i, name in enumerate(hiding.LABELS)}}
        for w in hiding.WEIGHTS for s in (1.0, 1.2)
    ]  # fmt: skip
    made = hiding.picture(lines)
    assert made.count("<circle") == len(hiding.LABELS) * (len(hiding.WEIGHTS) + 1)  # and one in the key
    assert "the hidden share, weight λ = 0.001: 0.111 (0.101 to 0.121)" in made
    assert all(title in made for title in hiding.TITLES)


@pytest.mark.skipif(not ACS.is_file(), reason="the benchmark tables are not here: set MARGRAVE_DATA")
def test_the_table_is_binned() -> None:
    rows = hiding.acs(ACS.parent)
    assert len(rows) == 100_000
    assert len(rows.domain) == 11
    assert max(rows.domain.sizes) == hiding.BINS
    assert rows.domain.size(hiding.TARGET) == 2
