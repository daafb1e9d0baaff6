"""What a function of one's own does with its columns shows when it is run on changed ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

from margrave.inference.fits import read_fit
from margrave.inference.sources import Frames
from margrave.inference.tried import MANY_TRIES, Trial, Tried

N = 400


def trial(fit: Any, wide: int = 0) -> Trial:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=N), rng.choice(["a", "b"], N)
    columns = {"x": x, "y": x + rng.normal(size=N), "z": z, "k": rng.integers(0, 4, N), "on": rng.random(N) < 0.5}
    table = pa.table({**columns, **{f"c{i}": rng.normal(size=N) for i in range(wide)}})
    frames = Frames({"z": (("a", "b"), False)})
    return Trial(fit, table, frames, read_fit(fit(frames.of(table))))


def several(frame: pd.DataFrame) -> Any:
    """Means of one column, a slope, one in a part, and nothing at all."""
    part = frame[frame.z == "b"]
    return {
        "mean": (frame.k.mean(), frame.k.var() / N),
        "slope": (np.polyfit(frame.x, frame.y, 1)[0], 0.01),
        "part": (part.x.mean(), part.x.var() / len(part)),
        "share": ((frame.k > 2).mean(), 0.01),
        "constant": (1.0, 0.01),
    }


def test_columns_are_told_by_estimate() -> None:
    found = Tried.of(trial(several, wide=12))
    assert found is not None
    assert found.columns == ("x", "y", "z", "k")
    assert found.used == {"x": {"slope", "part"}, "y": {"slope"}, "z": {"part"}, "k": {"mean", "share"}}
    assert found.joined == {"x": {"slope", "part"}, "y": {"slope"}, "z": {"part"}, "k": frozenset()}
    assert found.leans("slope", ("x", "y"))
    assert not found.leans("part", ("x", "y"))
    assert found.leans("mean", ("k",))
    assert not found.leans("slope", ("k",))
    assert found.joins("part") == ("x", "z")
    assert found.joins("mean") == ()
    assert found.relates(("x", "z"))
    assert not found.relates(("y", "z"))


def test_tries_do_not_touch_the_data_set_and_are_few() -> None:
    seen = []

    def fit(frame: pd.DataFrame) -> Any:
        seen.append(1)
        frame["x"] = 0.0  # a function may spoil its own copy
        return several(frame.assign(x=frame.y))

    made = trial(fit, wide=40)
    before, _ = made.frame.copy(), seen.clear()
    assert Tried.of(made) is not None
    pd.testing.assert_frame_equal(made.frame, before)
    assert len(seen) < 40


def test_formulas_tell_what_their_coefficients_are_about() -> None:
    found = Tried.of(trial(lambda f: smf.ols("y ~ x * C(k)", f[f.z == "b"]).fit()))
    assert found is not None
    assert found.formula == "y ~ x * C(k)"
    assert found.joins("x") == ("y", "x", "z")
    assert found.joins("x:C(k)[T.1]") == ("y", "x", "k", "z")
    assert found.leans("x", ("x", "z"))
    assert not found.leans("x", ("y", "k"))
    renamed = Tried.of(trial(lambda f: smf.ols("y ~ x", f.assign(y=f.k)).fit()))
    assert renamed is not None
    assert renamed.formula == ""
    assert renamed.joins("x") == ("x", "k")
    foreign = Tried.of(trial(lambda f: smf.ols("y ~ np.sin(x)", f).fit()))  # code of one's own, which is only tried
    assert foreign is not None
    assert foreign.formula == ""
    assert foreign.joins("np.sin(x)") == ("x", "y")


@pytest.mark.parametrize("kind", ["random", "counting", "all columns"])
def test_what_cannot_be_told(kind: str) -> None:
    rng, calls = np.random.default_rng(1), []

    def fit(frame: pd.DataFrame) -> Any:
        calls.append(1)
        noise = {"random": rng.random(), "counting": len(calls), "all columns": 0.0}[kind]
        return {"a": (frame.select_dtypes("number").to_numpy().mean() + noise, 0.01)}

    assert Tried.of(trial(fit, wide=40)) is None
    assert len(calls) <= MANY_TRIES + 3


def test_a_function_that_fails_on_changed_values_uses_them() -> None:
    def fit(frame: pd.DataFrame) -> Any:
        if frame.k.mean() > 2:
            raise ValueError("too many")
        return {"x": (frame.x.mean(), 0.01)}

    found = Tried.of(trial(fit))
    assert found is not None
    assert found.used == {"x": {"x"}, "k": {"x"}}
