"""A draw of some columns has the same law as these columns of a whole draw, in every family of models."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from margrave.domain import Domain
from margrave.models import MixtureModel
from margrave.models.graphical import GraphicalModel
from margrave.models.graphical.drawing_order import Step, all_steps, steps_to
from margrave.models.merged_codes import MergedCodesModel
from margrave.models.network.model import ConditionalTable, NetworkModel
from margrave.models.protocol import Model
from margrave.models.repeated import RepeatedModel
from margrave.models.weights.model import empirical
from margrave.structural_zeros import StructuralZeros
from margrave.types import AnyArray, Clique

SIZES = {"a": 3, "b": 2, "c": 3, "d": 2, "e": 2, "f": 3, "g": 2}
CLIQUES = [("a", "b", "c"), ("c", "d"), ("d", "e"), ("b", "f"), ("g",)]


def graphical(*, zeros: bool = False) -> GraphicalModel:
    rng = np.random.default_rng(4)
    possible = np.array([[True, False], [True, True], [False, True]])
    known = [StructuralZeros(("c", "d"), possible)] if zeros else []
    domain = Domain.of(SIZES, zeros=known)
    potentials = {c: rng.normal(0.0, 1.0, domain.shape(c)) for c in CLIQUES}
    if zeros:
        potentials["c", "d"] = np.where(possible, potentials["c", "d"], -np.inf)
    return GraphicalModel(domain, 900.0, potentials)


def law(model: GraphicalModel, columns: Clique, steps: list[Step]) -> AnyArray:
    """Return the product of the tables that a draw follows, summed over the columns not asked for."""
    names = model.domain.attributes
    product = np.ones([SIZES[a] for a in names])
    drawn = set()
    for attribute, table, parents in model._conditionals(steps):
        sums = table.sum(axis=1, keepdims=True)
        share = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
        share = share.reshape([SIZES[p] for p in parents] + [SIZES[attribute]])
        axes = (*parents, attribute)
        order = sorted(range(len(axes)), key=lambda i: names.index(axes[i]))
        product = product * share.transpose(order).reshape(
            [SIZES[a] if a in axes else 1 for a in names]
        )
        drawn |= {attribute}
    gone = tuple(i for i, a in enumerate(names) if a not in columns)
    spare = np.prod([SIZES[a] for a in names if a not in drawn])  # each was summed over as often
    return product.sum(axis=gone) / spare


@pytest.mark.parametrize("zeros", [False, True])
def test_the_law_of_a_graphical_models_columns_is_exactly_their_marginal(zeros: bool) -> None:
    model = graphical(zeros=zeros)
    for size in (1, 2, 3, 7):
        for columns in combinations(SIZES, size):
            steps = steps_to(model.tree, columns)
            right = model.project(columns).values
            assert law(model, columns, steps) * 900.0 == pytest.approx(right, abs=1e-9)
            assert law(model, columns, all_steps(model.tree)) * 900.0 == pytest.approx(
                right, abs=1e-9
            )
            assert {*columns} <= {s.attribute for s in steps}


def test_only_columns_on_the_way_are_drawn() -> None:
    tree = graphical().tree
    assert {s.attribute for s in steps_to(tree, "e")} == {"e"}
    assert {s.attribute for s in steps_to(tree, "ae")} == {"a", "c", "d", "e"}
    assert {s.attribute for s in steps_to(tree, "ag")} == {"a", "g"}
    assert len(all_steps(tree)) == len(SIZES)


def merged() -> MergedCodesModel:
    coarse, groups = graphical(), np.array([0, 1, 1, 2])
    domain = Domain.of({**SIZES, "a": 4})
    return MergedCodesModel(domain, coarse, {"a": groups}, {"a": np.array([1.0, 0.3, 0.7, 1.0])})


def mixture(total: float = 500.0) -> MixtureModel:
    return MixtureModel(
        Domain.of(SIZES), total, np.random.default_rng(2).random((5, sum(SIZES.values())))
    )


def network() -> Model:
    rng = np.random.default_rng(3)
    domain = Domain.of({"a": 2, "b": 3, "c": 2})

    def table(*shape: int) -> AnyArray:
        values = rng.random(shape)
        return values / values.sum(axis=-1, keepdims=True)

    shapes = {"b": (3,), "a": (3, 2), "c": (2, 2)}
    parents: dict[str, Clique] = {"b": (), "a": ("b",), "c": ("a",)}
    return NetworkModel(
        domain, 300.0, [ConditionalTable(c, parents[c], table(*shapes[c])) for c in shapes]
    )


FAMILIES = {
    "graphical": graphical,
    "merged": merged,
    "mixture": mixture,
    "network": network,
    "weights": lambda: empirical(graphical().sample(400, rng=np.random.default_rng(1)), 400.0),
    "repeated": lambda: RepeatedModel([graphical(), mixture(900.0)]),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("independent", [False, True])
def test_every_family_draws_some_columns(family: str, independent: bool) -> None:
    model, rows = FAMILIES[family](), 20_000
    codes = model.sample(
        rows, rng=np.random.default_rng(7), independent=independent, columns=("c", "a")
    )
    assert codes.domain == model.domain.project(("a", "c"))
    assert len(codes) == rows
    shape = codes.domain.sizes
    counts = np.bincount(
        np.ravel_multi_index(codes.values.astype(np.int64), shape), minlength=int(np.prod(shape))
    )
    right = model.project(("a", "c")).values.ravel()
    right = right * rows / right.sum()
    some = right > 0
    assert not counts[~some].any()
    distance = float(((counts - right)[some] ** 2 / right[some]).sum())
    assert distance < stats.chi2.isf(1e-9, int(some.sum()) - 1)


def test_a_rounded_draw_of_one_column_has_its_expected_counts() -> None:
    model = graphical()
    for column in SIZES:
        codes = model.sample(900, rng=np.random.default_rng(1), columns=[column])
        counts = np.bincount(codes.column(column), minlength=SIZES[column])
        assert np.abs(counts - model.project((column,)).values).max() < 1.0 + 1e-6


def test_the_same_columns_are_drawn_from_the_same_numbers() -> None:
    model = graphical()
    one, other = (
        model.sample(50, rng=np.random.default_rng(5), columns=("b", "e")) for _ in range(2)
    )
    assert np.array_equal(one.values, other.values)
