"""Relations of a column whose spread may be due to noise far out in a wide bin are marked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from margrave.inference import OLS, Correlation, Mean, analyze_several
from margrave.release import Release
from margrave.schema import Integer, Real, Schema
from margrave.schema.column_queries import LineCells
from margrave.transcript import ColumnAnswer, Transcript
from tests.support import fake_model
from tests.support.by_hand import release_of


@pytest.mark.parametrize("scale", [50.0, 250.0])
def test_a_relation_that_noise_far_out_weakens_is_marked(scale: float) -> None:
    """Values of the last bin lie below 300, and those drawn farther out are noise of the larger scale."""
    rng = np.random.default_rng(1)
    age = rng.integers(0, 10, 40_000)
    frame = pd.DataFrame(
        {"age": age, "cost": np.clip(20 * age + rng.normal(30, 30, len(age)), 0, 299)}
    )
    cost = Real(
        "cost", 0, 1000, edges=[*range(10, 210, 10)], leaf_edges=[*range(0, 210, 10), 300, 600, 1000],
        leaf_weights=[*np.full(20, 0.045), 0.09, 0.0, 0.01], mean=[118, 110, 126],
    )  # fmt: skip
    made = release_of(
        frame, Schema([Integer("age", 0, 9), cost]), [("age",), ("cost",), ("age", "cost")]
    )
    query = LineCells((100.0, 200.0, 600.0))
    learned = ColumnAnswer("cost", query, np.zeros(query.size), scale, Fraction(1))
    entries = Transcript((learned, *made.transcript))
    account = fake_model.account_of(entries)
    release = Release(made.schema, made.model, entries, account, made.provenance)
    fits = [Correlation("age", "cost"), OLS("age ~ cost"), OLS("cost ~ age"), Mean("cost")]
    found = analyze_several(release, fits, m=5, seed=1)
    text = "noise may have placed values far out"
    notes = [any(text in note for note in analysis.notes) for analysis in found]
    assert notes == [scale > 100, scale > 100, False, False]
    if scale > 100:
        assert found[0].estimates[0].coarse == ("cost",)
        assert found[1]["cost"].coarse == ("cost",)
