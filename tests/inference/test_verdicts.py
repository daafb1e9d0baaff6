"""Analyses say when the noisy counts alone call the same number not reliable."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave import Workload
from margrave.inference import Mean, Quantile, Total, analyze
from margrave.mechanisms import AIM
from margrave.release import Release
from margrave.schema import Categorical, Integer, Schema


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(0)
    rows = pa.table(
        {
            "cost": np.minimum(rng.lognormal(5, 1.5, 3000), 99_999).astype(np.int64),
            "age": rng.integers(20, 60, 3000),
            "ward": rng.choice(["a", "b"], 3000),
        }
    )
    columns = [
        Integer("cost", 0, 99_999, bins=4),
        Integer("age", 20, 59, bins=40),
        Categorical("ward", ["a", "b"]),
    ]
    schema = Schema(columns)
    mechanism = AIM(workload=Workload.all_kway(schema.domain, 2))
    return margrave.synthesize(rows, schema, epsilon=100.0, delta=1e-9, mechanism=mechanism, seed=0)


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (Mean("cost"), "this mean is not reliable"),
        (Total("cost"), "this total is not reliable"),
        (Quantile("cost", 0.9), "this 90 % quantile is not reliable"),
        (Mean("age"), ""),
    ],
    ids=str,
)
def test_an_analysis_repeats_the_verdict_of_the_noisy_counts(
    release: Release, fit: Mean, said: str
) -> None:
    notes = [
        n
        for n in analyze(release, fit, 3, seed=0, method="bootstrap").notes
        if "noisy counts alone" in n
    ]
    assert len(notes) == bool(said)
    assert all(said in n and "take that interval" in n for n in notes)
