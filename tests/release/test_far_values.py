"""Values that noise may have placed far out in a wide bin of a learned column."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from margrave.release.far_values import far_values
from margrave.schema import Real, Schema
from margrave.schema.column_queries import LineCells
from margrave.transcript import ColumnAnswer, Measurement, Transcript

COUNTS = np.array([2000, 2000, 400])
#: 40 of the 400 rows of the last bin are drawn in its farthest part.
COST = Real(
    "cost", 0, 1000, edges=[100, 200], leaf_edges=[0, 100, 200, 300, 600, 1000],
    leaf_weights=[0.46, 0.45, 0.081, 0.0, 0.009], mean=[118, 110, 126],
)  # fmt: skip


def learned_from(scale: float, column: Real = COST) -> tuple[Schema, Transcript]:
    """Return a schema with a learned column, and noisy counts from which it was learned with a noise scale."""
    query = LineCells((100.0, 200.0, 600.0))
    learned = ColumnAnswer(column.name, query, np.zeros(query.size), scale, Fraction(1))
    counts = Measurement((column.name,), COUNTS, 1.0, Fraction(1))
    return Schema([column]), Transcript((learned, counts))


def test_values_that_two_noise_scales_explain_are_far() -> None:
    found = far_values(*learned_from(25.0))["cost"]
    assert (found.low, found.high) == (-np.inf, 300.0)
    rows, middle = np.array([2000, 2000, 360, 40]), np.array([50.0, 150.0, 250.0, 800.0])
    width = np.array([100.0, 100.0, 100.0, 400.0])
    moved, rest = np.minimum(middle, 300), np.where(middle > 300, 0, width)
    whole, without = (
        np.cov(at, fweights=rows, ddof=0) + rows @ of**2 / 12 / rows.sum()
        for at, of in ((middle, width), (moved, rest))
    )
    assert found.share == pytest.approx(1 - without / whole, abs=1e-9)
    assert found.weakens


def test_more_rows_than_noise_explains_stay() -> None:
    found = far_values(*learned_from(19.0))["cost"]
    assert found.high == np.inf
    assert found.share == 0.0
    assert not found.weakens


def test_low_values_are_far_too() -> None:
    mirrored = Real(
        "cost", -1000, 0, edges=[-200, -100], leaf_edges=[-1000, -600, -300, -200, -100, 0],
        leaf_weights=[0.009, 0.0, 0.081, 0.45, 0.46], mean=[-118, -126, -110],
    )  # fmt: skip
    schema, transcript = learned_from(25.0, mirrored)
    counts = Measurement(("cost",), COUNTS[::-1], 1.0, Fraction(1))
    found = far_values(schema, Transcript((transcript.entries[0], counts)))["cost"]
    assert (found.low, found.high) == (pytest.approx(-300.0), np.inf)
    assert found.share == pytest.approx(far_values(*learned_from(25.0))["cost"].share)


def test_a_column_without_counts_of_both_kinds_has_none() -> None:
    schema, transcript = learned_from(25.0)
    for entry in transcript:
        assert far_values(schema, Transcript((entry,))) == {}
    public = Real("cost", 0, 1000, edges=[100, 200])
    assert far_values(Schema([public]), transcript) == {}
