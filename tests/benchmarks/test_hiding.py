"""The parts of the benchmark of hiding that need no run: its statistics, and its figure."""

from __future__ import annotations

import numpy as np
import pytest

from margrave.domain import Codes, Domain
from margrave.marginal import HalfSpace

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")

from benchmarks.__main__ import default_data
from benchmarks.suites import hiding

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
    labels = hiding.LEGEND.labels
    rows = [
        {"setting": {"weight": w}, **{n: (i + 1.0) * (w + 0.1) * s for i, n in enumerate(labels)}}
        for w in hiding.WEIGHTS for s in (1.0, 1.2)
    ]  # fmt: skip
    made = hiding.picture(rows)
    assert made.count("<circle") == len(labels) * (len(hiding.WEIGHTS) + 1)  # and one in the key
    assert "the hidden share, weight λ = 0.001: 0.111 (0.101 to 0.121)" in made
    assert all(title in made for title in hiding.PANELS)


@pytest.mark.skipif(
    not ACS.is_file(), reason="the benchmark tables are not here: set MARGRAVE_DATA"
)
def test_the_table_is_binned() -> None:
    table = hiding.acs(ACS.parents[1])
    assert table.test is not None
    assert (table.n, len(table.test)) == (80_000, 20_000)
    assert len(table.codes.domain) == 11
    assert max(table.codes.domain.sizes) == hiding.BINS
    assert table.codes.domain.size(hiding.TARGET) == 2
