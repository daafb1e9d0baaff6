"""Analyses mark what the noisy counts alone call not reliable, by the verdict of the release's own numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave import Workload
from margrave.inference import By, Mean, Proportion, Quantile, Total, analyze
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import AIM
from margrave.models import GraphicalFit
from margrave.models.specs import fit_spec
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.schema import Categorical, Integer, Schema
from margrave.transcript import Measurement, PublicTotal, Transcript
from tests.support import fake_model


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
        (Proportion("ward", "a"), ""),
    ],
    ids=str,
)
def test_an_analysis_repeats_the_verdict_of_the_noisy_counts(
    release: Release, fit: Any, said: str
) -> None:
    found = analyze(release, fit, 3, seed=0, method="bootstrap")
    notes = [n for n in found.notes if "noisy counts alone" in n]
    assert len(notes) == bool(said)
    assert all(n.startswith("[!] ") and said in n and "Take that interval." in n for n in notes)
    (own,) = found
    assert own.unreliable == ((fit.column,) if said else ())
    assert own.flagged == bool(said)


@pytest.fixture(scope="module")
def noisy() -> Release:
    """A release of wards of which one is small beside the noise, and some are missing."""
    rng = np.random.default_rng(0)
    ward = rng.choice(["a", "b"], 2000, p=[0.98, 0.02])
    rows = {
        "stay": rng.integers(0, 10, 2000),
        "again": rng.choice(["no", "yes"], 2000),
        "ward": pa.array(ward, mask=rng.random(2000) < 0.02),
    }
    schema = Schema(
        [
            Integer("stay", 0, 9),
            Categorical("again", ["no", "yes"]),
            Categorical("ward", ["a", "b"], missing=True),
        ]
    )
    pairs, scale = [("stay", "ward"), ("again", "ward")], 10.0
    counts = count_cliques(schema.encode(pa.table(rows)), pairs)
    noise = {pair: rng.normal(0.0, scale, counts[pair].shape) for pair in pairs}
    known = [
        Measurement(
            pair, np.rint(counts[pair] + noise[pair]).astype(np.int64), scale, Fraction(1, 200)
        )
        for pair in pairs
    ]
    transcript = Transcript((PublicTotal(2000), *known))
    model = GraphicalFit()(schema.domain, transcript, rng=rng)
    provenance = Provenance("by hand", fit=fit_spec(GraphicalFit()))
    return Release(schema, model, transcript, fake_model.account_of(transcript), provenance)


@pytest.mark.parametrize(
    ("of", "statistic", "kind"),
    [
        (Mean("stay"), "mean", "means"),
        (Quantile("stay", 0.5), "q50", "medians"),
        (Proportion("again", "yes"), "share of yes", "shares"),
    ],
    ids=str,
)
def test_every_group_is_marked_as_its_number_is(
    noisy: Release, of: Any, statistic: str, kind: str
) -> None:
    numbers = noisy.numbers(columns=[of.column], by="ward").to_pylist()
    reliable = {n["group"]: n["reliable"] for n in numbers if n["statistic"] == statistic}
    assert reliable == {"ward = a": True, "ward = b": False, "ward = (missing)": False}
    found = analyze(noisy, By(of, "ward"), 3, seed=0, method="bootstrap")
    marks = {e.name.partition(" | ")[2]: not e.unreliable for e in found}
    assert marks == {"ward = a": True, "ward = b": False}, "no estimate is of missing values"
    (caveat,) = (c for c in found.caveats if c.kind == "not reliable")
    assert caveat.decisive
    assert caveat.names == (found.names[1],)
    assert f"alone 1 of 2 {kind} is not reliable." in caveat.text
    assert f"margrave numbers RELEASE --columns {of.column} --by ward shows them." in caveat.text
    assert found.contrast({found.names[0]: 1, found.names[1]: -1}).flagged


def test_intervals_of_a_quantile_that_numbers_do_not_have_are_in_the_note(noisy: Release) -> None:
    found = analyze(noisy, By(Quantile("stay", 0.3), "ward"), 3, seed=0, method="bootstrap")
    (caveat,) = (c for c in found.caveats if c.kind == "not reliable")
    assert re.search(
        r"alone all 2 30 % quantiles are not reliable\. Take these intervals: ward = a: \d \(\d to \d\), ward = b: ",
        caveat.text,
    )
    assert "margrave numbers" not in caveat.text


def test_a_part_by_one_code_is_marked_as_its_group_is(noisy: Release) -> None:
    for ward, marked in (("a", False), ("b", True), (["a", "b"], False)):
        fit = Mean("stay", where={"ward": ward})
        (own,) = analyze(noisy, fit, 3, seed=0, method="bootstrap")
        assert bool(own.unreliable) == marked
    (cut,) = analyze(noisy, Mean("stay", where={"stay": (0, 4), "ward": "b"}), 3, seed=0)
    assert not cut.unreliable
    (part,) = analyze(noisy, Proportion("ward", "b", where={"ward": ["a", "b"]}), 3, seed=0)
    assert not part.unreliable, "the number of all rows is another"


def test_shares_of_columns_with_missing_values_are_of_other_rows(noisy: Release) -> None:
    found = analyze(noisy, Proportion("ward", "b"), 3, seed=0, method="bootstrap")
    (note,) = (n for n in found.notes if "noisy counts alone" in n)
    assert "That share is of all rows, also those with a missing value." in note
    assert "Take that interval" not in note
