"""The model of a few records: marginals, records, conditions and its state, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from margrave.errors import InputError, ReleaseError
from margrave.marginal import closure
from margrave.models import RowsModel
from margrave.models.rows import load_rows
from margrave.schema import Codes, Domain, StructuralZeros

DOMAIN = Domain.of({"a": 2, "b": 3})
RECORDS = [(0, 2), (1, 0), (0, 2), (1, 1)]


def model(total: float = 10.0) -> RowsModel:
    values = np.array(RECORDS)
    return RowsModel.of(Codes.of(DOMAIN, {"a": values[:, 0], "b": values[:, 1]}), total)


def test_marginals_by_hand() -> None:
    found = model()
    assert len(found.records) == 3, "equal records are one"
    assert found.weights.sum() == 1
    assert found.project(("a", "b")).values.tolist() == [[0, 0, 5.0], [2.5, 2.5, 0]]
    assert found.project(("a",)).values.tolist() == [5.0, 5.0]
    answers = found.answer(closure([("a", "b")]))
    assert answers["b",].tolist() == [2.5, 2.5, 5.0]
    assert found.posterior() is None
    assert found.total == 10.0


@pytest.mark.parametrize("rows", [0, 1, 7, 400])
def test_records_are_rounded_evenly(rows: int) -> None:
    """Every record comes its expected number of times, up or down by less than one."""
    drawn = model().sample(rows, rng=np.random.default_rng(rows))
    assert len(drawn) == rows
    for record, share in zip([(0, 2), (1, 0), (1, 1)], [0.5, 0.25, 0.25]):
        times = int((record == drawn.values.T).all(axis=1).sum())
        assert abs(times - share * rows) < 1
    assert len(model(6.4).sample(rng=np.random.default_rng(0))) == 6


def test_rounding_is_without_bias() -> None:
    """One record at a time, 4,000 times over: a chi-square test, and so for independent ones."""
    rng, found = np.random.default_rng(5), model()
    for independent in (False, True):
        rows = [found.sample(1, rng=rng, independent=independent).values[:, 0] for _ in range(4000)]
        counts = [sum(tuple(r) == record for r in rows) for record in [(0, 2), (1, 0), (1, 1)]]
        assert sum(counts) == 4000
        assert stats.chisquare(counts, [2000, 1000, 1000]).pvalue > 1e-6


def test_independent_records_vary_as_they_should() -> None:
    """The number of one of them is binomial; rounded evenly it never varies at all."""
    rng, found = np.random.default_rng(5), model()
    for independent, variance in ((True, 25.0), (False, 0.0)):
        times = [(found.sample(100, rng=rng, independent=independent).column("a") == 0).sum() for _ in range(600)]
        assert np.var(times) == pytest.approx(variance, abs=7.5 if independent else 0)  # five standard errors


def test_conditions_keep_what_agrees_with_them() -> None:
    given = model().condition({"b": [0, 2]})
    assert given.project(("a",)).values == pytest.approx([10 * 2 / 3, 10 / 3])
    assert given.total == 10.0
    with pytest.raises(ReleaseError, match="No record"):
        model().condition({"a": [0], "b": [1]})
    with pytest.raises(InputError, match="no code"):
        model().condition({"a": [2]})
    with pytest.raises(InputError, match="-1 records"):
        model().sample(-1, rng=np.random.default_rng(0))


def test_its_state_is_the_model() -> None:
    state = model().state()
    again = load_rows(DOMAIN, state.facts, state.arrays)
    assert state.kind == "rows"
    assert again.project(("a", "b")).values.tobytes() == model().project(("a", "b")).values.tobytes()


def with_value(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def edit(arrays: dict[str, Any]) -> None:
        arrays[name] = change(arrays[name].copy())

    return edit


def replaced(value: float, at: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array.reshape(-1)[at] = value
        return array

    return change


@pytest.mark.parametrize(
    "edit",
    [
        lambda arrays: arrays.pop("records"),
        lambda arrays: arrays.pop("weights"),
        with_value("records", lambda r: r.astype(np.int64)),
        with_value("records", lambda r: r[:1]),
        with_value("records", lambda r: r[:, :0]),
        with_value("records", lambda r: r[0]),
        with_value("records", replaced(2, 0)),
        with_value("weights", lambda w: w[:-1]),
        with_value("weights", lambda w: w.astype(np.float32)),
        with_value("weights", lambda w: w * 2),
        with_value("weights", replaced(0.0, 1)),
        with_value("weights", replaced(float("nan"), 0)),
    ],
)
def test_a_damaged_state_is_refused(edit: Callable[[dict[str, Any]], None]) -> None:
    state = model().state()
    arrays = dict(state.arrays)
    edit(arrays)
    with pytest.raises(ReleaseError):
        load_rows(DOMAIN, state.facts, arrays)


def test_records_that_cannot_be_are_refused() -> None:
    possible = np.ones((2, 3), dtype=bool)
    possible[1, 1] = False
    domain = Domain.of({"a": 2, "b": 3}, [StructuralZeros(("a", "b"), possible)])
    state = model().state()
    with pytest.raises(ReleaseError, match="constraints"):
        load_rows(domain, state.facts, state.arrays)
