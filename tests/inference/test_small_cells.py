"""Columns whose cells are smaller than their noise in every marginal: their estimates are marked."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import margrave
from margrave.bounds.weighted_sums import summed_columns
from margrave.domain import Domain
from margrave.inference import OLS, Analysis, By, Correlation, Logistic, Mean, Quantile, analyze
from margrave.marginal import LinearMap
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import Independent, Repeated
from margrave.models import GraphicalFit
from margrave.models.specs import fit_spec
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.release.purpose_verdicts import verdict_on
from margrave.release.purposes import PurposeSupport
from margrave.release.small_cells import cell_sizes, pooled_size
from margrave.schema import Boolean, Categorical, Depends, Integer, Schema
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Entry, Measurement, PublicReading, PublicTotal, Transcript
from tests.support import fake_model
from tests.support.by_hand import release_of

ROWS = 2_000
SCHEMA = Schema(
    [
        Integer("cost", 0, 4_999, bins=20),
        Categorical("region", [f"r{i}" for i in range(10)]),
        Categorical("ward", [f"w{i}" for i in range(8)]),
        Integer("age", 0, 9, bins=10),
    ]
)
SPARSE = (("cost", "region", "ward"), 40.0)  # 1,600 cells of 1.25 rows
DENSE = (("cost",), 20.0)
AGE = (("age",), 5.0)
#: Shares of the bins of the population's costs, and the mean of costs that are even within them.
SHARES = np.exp(-np.arange(20) / 1.667)
SHARES /= SHARES.sum()
TRUE_MEAN = float(SHARES @ (250.0 * np.arange(20) + 124.5))


def people(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    bins = rng.choice(20, p=SHARES, size=ROWS)
    return pd.DataFrame(
        {
            "cost": 250 * bins + rng.integers(0, 250, ROWS),
            "region": [f"r{i}" for i in (bins // 2 + rng.integers(0, 10, ROWS)) // 2],
            "ward": [f"w{min(i, 7)}" for i in rng.geometric(0.25, ROWS) - 1],
            "age": rng.integers(0, 10, ROWS),
        }
    )


def release(
    *measured: tuple[tuple[str, ...], float], seed: int = 0, extra: tuple[Entry, ...] = ()
) -> Release:
    """A release of marginals of 2,000 rows, each with its noise scale."""
    rng = np.random.default_rng([seed, 1])
    counts = count_cliques(SCHEMA.encode(people(seed)), [c for c, _ in measured])
    noisy = (
        Measurement(
            c,
            np.rint(counts[c] + rng.normal(0.0, scale, counts[c].shape)).astype(np.int64),
            scale,
            Fraction(1 / (2 * scale**2)),
        )
        for c, scale in measured
    )
    transcript = Transcript((PublicTotal(ROWS), *noisy, *extra))
    model = GraphicalFit()(SCHEMA.domain, transcript, rng=np.random.default_rng(0))
    provenance = Provenance("by hand", fit=fit_spec(GraphicalFit()))
    return Release(SCHEMA, model, transcript, fake_model.account_of(transcript), provenance)


def analyzed(of: Release, fit: Any, m: int = 4) -> Analysis:
    return analyze(of, fit, m, seed=1, method="bootstrap")


def marked(found: Analysis) -> dict[str, tuple[tuple[str, ...], ...]]:
    return {e.name: e.below_noise for e in found if e.below_noise}


def test_a_column_in_sparse_marginals_alone_is_marked() -> None:
    (cost,) = found = analyzed(release(SPARSE, AGE), Mean("cost"))
    assert cost.below_noise == (("cost",),)
    assert cost.flagged
    assert found.notes[0] == (
        "[!] The noise exceeds the average cell in every measured marginal with cost (noise of 32"
        " average cells): measure cost in a marginal of its own (--workload), for a valid interval"
        " of mean(cost)."
    )
    assert found.summary()["below_noise"].all()
    assert found.to_dict()["estimates"][0]["below_noise"] == [["cost"]]
    assert found.contrast({cost.name: 2.0}).flagged


def test_a_column_measured_alone_is_not() -> None:
    found = analyzed(release(SPARSE, DENSE, AGE), Mean("cost"))
    assert marked(found) == {}
    assert not any(c.kind == "small cells" for c in found.caveats)
    assert marked(analyzed(release(SPARSE, AGE), Mean("age"))) == {}


def test_a_column_that_the_noise_hides_alone_needs_fewer_codes() -> None:
    found = analyzed(release((("cost",), 150.0), AGE), Mean("cost"))
    assert "give cost fewer codes, or the release a larger budget" in found.notes[0]


def test_a_sparse_pair_of_dense_columns_marks_their_relation() -> None:
    ages = (AGE, DENSE)
    sparse, dense = ((("cost", "age"), scale) for scale in (15.0, 5.0))
    found = analyzed(release(*ages, sparse), OLS("cost ~ age"))
    assert marked(found) == dict.fromkeys(["Intercept", "age"], (("cost", "age"),))
    assert "measure cost and age in a marginal" not in found.notes[0]
    assert marked(analyzed(release(*ages, sparse), Mean("cost"))) == {}
    assert marked(analyzed(release(*ages, dense), OLS("cost ~ age"))) == {}
    groups = analyzed(release(*ages, sparse), By(Mean("cost"), "age"))
    assert all(e.below_noise == (("cost", "age"),) for e in groups)


def test_a_small_group_of_a_dense_pair_marks_its_coefficient() -> None:
    """Its cells have less than three noise scales on average, those of the other wards more."""
    pair, age = (("cost", "ward"), 2.5), (("ward", "age"), 1.0)
    of = release(pair, age)
    found = analyzed(of, OLS("cost ~ ward"))
    own = (("cost", "ward"),)
    assert marked(found) == {"ward[T.w5]": own, "ward[T.w6]": own}
    (note,) = (n for n in found.notes if "small there" in n)
    assert note.startswith("[!] The noise hides the cells of ward = w5, ward = w6, which hold few")
    assert note.endswith("for a valid interval of ward[T.w5], ward[T.w6].")
    assert found.contrast({"ward[T.w5]": 1.0}).flagged
    purpose = PurposeSupport("ols cost ~ C(ward)", (), 1)
    assert verdict_on(of, purpose, ()).hidden == ("ward = w5", "ward = w6")
    another = analyzed(of, Logistic("cost > 900 ~ C(ward, Treatment('w6'))"))
    assert marked(another).keys() == {*another.names}, "all are compared with a small group"
    groups = analyzed(of, By(Mean("cost"), "ward"))
    assert not marked(groups), "each has the verdict of its own number"


def test_a_rare_outcome_marks_what_is_related_to_it() -> None:
    """A relation to the value of six or seven rows is lost in the noise of its cells, that to a common one is not."""
    of = release((("cost", "ward"), 2.5), (("ward", "age"), 1.0))
    for outcome, expected in (("ward == 'w6'", {"Intercept", "cost"}), ("ward == 'w0'", set())):
        found = analyzed(of, OLS(f"{outcome} ~ cost"))
        assert {*marked(found)} == expected
        assert any("the cells of ward = w6, which" in n for n in found.notes) is bool(expected)
    rare = Schema([Integer("age", 0, 19, bins=20), Boolean("ill")])
    rng = np.random.default_rng(0)
    age = rng.integers(0, 20, ROWS)
    ill = rng.random(ROWS) < 0.002 * age
    rows = pd.DataFrame({"age": age, "ill": ill})
    both = release_of(rows, rare, [("age", "ill"), ("ill",), ("age",)])
    for fit in (OLS("ill ~ age"), Logistic("ill ~ age"), Logistic("ill ~ age", success=False)):
        assert marked(analyzed(both, fit)).keys() == {"Intercept", "age"}
    assert marked(analyzed(both, OLS("age > 9 ~ 1"))) == {}


def test_a_small_part_marks_its_estimates() -> None:
    """The cells of a small ward alone are few; those of all wards are above the noise."""
    of = release((("cost", "ward", "age"), 0.2), (("ward",), 1.0), (("cost",), 1.0), AGE)
    (found,) = small = analyzed(of, Correlation("cost", "age", where={"ward": "w6"}))
    assert found.below_noise == (("cost", "age", "ward"),)
    assert small.notes[0].startswith(
        "[!] The noise hides the cells of the records with ward = w6, which are few. Relations are too weak there"
    )
    for fit, expected in (
        (Correlation("cost", "age", where={"ward": "w0"}), False),
        (Correlation("cost", "age"), False),
        (Mean("cost", where={"ward": "w6", "age": (0, 4)}), False),
        (Mean("cost", where={"ward": "w6", "age": 3}), True),
        (OLS("cost ~ age", where={"ward": "w6"}), True),
        (By(Mean("cost", where={"ward": "w6"}), "age"), True),
    ):
        assert bool(marked(analyze(of, fit, 4, seed=1, on_unstable="drop"))) is expected, fit


def test_independent_runs_are_each_fitted_to_their_own_noise() -> None:
    """Noise of each run in nearly empty bins stays in the mean of all runs, and no interval of theirs includes it."""
    rng = np.random.default_rng(3)
    cost = np.minimum(rng.exponential(4.0, ROWS), 59).astype(np.int64)
    rows = pd.DataFrame({"cost": cost, "ward": rng.choice(["a", "b"], ROWS)})
    schema = Schema([Integer("cost", 0, 59, bins=60), Categorical("ward", ["a", "b"])])
    for epsilon, biased in ((0.5, True), (100.0, False)):
        mechanism = Repeated(mechanism=Independent(), runs=16)
        of = margrave.synthesize(
            rows, schema, epsilon=epsilon, delta=1e-9, mechanism=mechanism, seed=0
        )
        (found,) = analyze(of, Mean("cost", where={"cost": (10, None)}), seed=1)
        truth = float(cost[cost >= 10].mean())
        assert (abs(found.estimate - truth) > 4 * found.bse) is biased
        assert found.below_noise == ((("cost",),) if biased else ())
        assert found.mostly_noise == (("cost",) if biased else ())


def test_sums_in_a_small_group_count_as_cells_that_give_them() -> None:
    """A sum by groups serves its coefficients if its own noise is small, and no logarithm of the column."""
    counts = count_cliques(SCHEMA.encode(people(0)), [("cost", "ward")])[("cost", "ward")]
    weights = np.arange(20)[None]

    def marks(scale: float, formula: str) -> set[str]:
        sums = Measurement(
            ("cost", "ward"), weights @ counts, scale, Fraction(1, 8),
            LinearMap(matrices={"cost": weights}),
        )  # fmt: skip
        of = release((("cost", "ward"), 2.5), extra=(sums,))
        return {*marked(analyzed(of, OLS(formula)))}

    assert marks(20.0, "cost ~ ward") == set()
    assert marks(2000.0, "cost ~ ward") == {"ward[T.w6]"}
    assert marks(20.0, "np.log(cost + 1) ~ ward") == {"ward[T.w6]"}


def test_three_columns_of_dense_pairs_mark_a_part_of_the_rows() -> None:
    whole = (("cost", "region", "age"), 4.0)
    pairs = [(p, 4.0) for p in (("cost", "region"), ("cost", "age"), ("region", "age"))]
    of = release(*pairs, whole)
    assert marked(analyzed(of, OLS("cost ~ age"))) == {}
    found = analyzed(of, OLS("cost ~ age", where={"region": ["r0", "r1"]}))
    assert set(found["age"].below_noise) == {("cost", "age", "region")}
    assert found["Intercept"].below_noise == ()


def test_sums_of_a_column_hold_its_mean_and_nothing_else() -> None:
    """A sum says little of single cells: quantiles stay marked, and means by group are not."""
    counts = count_cliques(SCHEMA.encode(people(0)), [("cost", "region")])[("cost", "region")]
    weights = np.arange(20)[None]
    sums = Measurement(
        ("cost", "region"), weights @ counts, 40.0, Fraction(1, 8),
        LinearMap(matrices={"cost": weights}),
    )  # fmt: skip
    regions = (("region",), 5.0)
    of = release(SPARSE, regions, AGE, extra=(sums,))
    draws = of.draws(4, seed=1, method="bootstrap")
    assert draws.sums == ((("cost",), ("cost", "region")),)
    assert [c for c, _ in draws.cell_sizes] == [SPARSE[0], ("region",), ("age",)]
    assert marked(analyze(draws, By(Mean("cost"), "region"))) == {}
    assert marked(analyze(draws, Mean("cost"))) == {}
    of_groups = OLS("cost ~ region")  # rests on the same sums as the means by group
    few = {"region[T.r6]", "region[T.r7]", "region[T.r8]", "region[T.r9]"}  # six rows, or none
    assert {*marked(analyze(draws, of_groups, on_unstable="drop"))} <= few
    for other in (
        Quantile("cost"), Mean("cost", where={"ward": "w1"}), OLS("np.log(cost + 1) ~ region"),
    ):  # fmt: skip
        assert marked(analyze(draws, other, on_unstable="drop")) != {}
    prefixes = LinearMap.prefixes(SCHEMA.domain, ["cost"])
    assert summed_columns(measurement(("cost",), (20,), prefixes), SCHEMA.domain) == ()
    products = LinearMap(matrices={"cost": weights, "age": np.arange(10)[None]})
    of_both = measurement(("cost", "age"), (1, 1), products)
    assert summed_columns(of_both, SCHEMA.domain) == ("cost", "age")
    assert sizes(SCHEMA.domain, of_both) == []  # sums of products have no cells


def test_public_columns_of_the_records_have_no_noise() -> None:
    of = release((("cost", "region", "ward"), 20.0))
    shares = count_cliques(SCHEMA.encode(people(0)), [("cost",)])[("cost",)].astype(float)
    own = PublicReading(("cost",), shares, np.full(shares.shape, 3.0), "0" * 64)
    transcript = Transcript((*of.transcript, own))
    assert pooled_size(cell_sizes(SCHEMA.domain, transcript), ("cost",)) == np.inf


def sizes(domain: Domain, *entries: Entry) -> list[float]:
    return [size for _, size in cell_sizes(domain, Transcript((PublicTotal(120), *entries)))]


def measurement(clique: tuple[str, ...], shape: tuple[int, ...], query: Any = None) -> Measurement:
    values = np.ones(shape, dtype=np.int64)
    return Measurement(clique, values, 2.0, Fraction(1, 8), query or LinearMap())


def test_the_size_of_an_average_cell() -> None:
    domain = Domain.of({"a": 4, "b": 5})
    merged = LinearMap({"a": np.array([0, 1, 1, 1])})
    assert sizes(domain, measurement(("a", "b"), (4, 5))) == [120 / 20 / 2.0]
    assert sizes(domain, measurement(("a", "b"), (2, 5), merged)) == [120 / 10 / 2.0]


def test_a_map_of_cells_counts_by_the_noise_of_a_cell() -> None:
    domain = Domain.of({"a": 4, "b": 5})
    prefixes = LinearMap.prefixes(domain, ["a"])
    (size,) = sizes(domain, measurement(("a",), (4,), prefixes))
    inverse = np.linalg.inv(np.tri(4))  # cells are differences of neighboring prefixes
    noise = 2.0 * np.sqrt((inverse**2).sum() / 4)
    assert size == pytest.approx(120 / 4 / noise)


def test_impossible_cells_do_not_count() -> None:
    zeros = StructuralZeros(("a", "b"), np.eye(4, dtype=np.bool_))
    domain = Domain.of({"a": 4, "b": 4}, (zeros,))
    assert sizes(domain, measurement(("a", "b"), (4, 4))) == [120 / 4 / 2.0]


def test_a_column_that_follows_from_another_has_its_cells() -> None:
    places = [Categorical("city", ["x", "y", "z"]), Categorical("state", ["s", "t"])]
    follows = Schema(places, constraints=[Depends("city", "state", {"x": "s", "y": "s", "z": "t"})])
    found = cell_sizes(follows.domain, Transcript((measurement(("city",), (3,)),)))
    assert [c for c, _ in found] == [("city", "state")]


def coverage(*measured: tuple[tuple[str, ...], float], runs: int = 20) -> dict[str, int]:
    """Return in how many runs the interval contains the truth, and in how many it is marked."""
    found = [
        analyzed(release(*measured, seed=i), Mean("cost"), 20)["mean(cost)"] for i in range(runs)
    ]
    right = [e.conf_int()[0] <= TRUE_MEAN <= e.conf_int()[1] for e in found]
    other = [e.biased or bool(e.clipped) for e in found]
    return {
        "right": sum(right),
        "wrong without another mark": sum(
            not r and not o for r, o in zip(right, other, strict=True)
        ),
        "below noise": sum(bool(e.below_noise) for e in found),
    }


@pytest.mark.slow
def test_intervals_miss_where_the_noise_hides_the_cells_and_the_mark_is_there() -> None:
    """Most intervals of a release without a marginal of cost alone are wrong, so all are marked."""
    sparse = coverage(SPARSE, AGE)
    assert sparse["right"] <= 10
    assert sparse["wrong without another mark"] >= 10
    assert sparse["below noise"] == 20
    for dense in (DENSE, (("cost", "ward"), 5.0)):
        found = coverage(SPARSE, dense, AGE)
        assert found["right"] >= 18
        assert found["below noise"] == 0
