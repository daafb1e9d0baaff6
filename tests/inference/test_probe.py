"""What a function of one's own does with its columns shows when it is run on changed ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

from margrave.inference.datasets import Frames
from margrave.inference.fitted import read_fit
from margrave.inference.probe import MAX_TRIALS, Trial, named_basis, probe

N = 400


def trial(fit: Any, wide: int = 0) -> Trial:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=N), rng.choice(["a", "b"], N)
    columns = {
        "x": x,
        "y": x + rng.normal(size=N),
        "z": z,
        "k": rng.integers(0, 4, N),
        "on": rng.random(N) < 0.5,
    }
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


NAMES = ("mean", "slope", "part", "share", "constant")


def test_columns_are_found_by_estimate() -> None:
    found = probe(trial(several, wide=12), NAMES)
    assert found is not None
    assert found.columns == ("x", "y", "z", "k")
    assert {n: t.columns for n, t in found.terms.items()} == {
        "mean": ("k",),
        "slope": ("x", "y"),
        "part": ("x", "z"),
        "share": ("k",),
        "constant": (),
    }
    assert {n: t.joins for n, t in found.terms.items()} == {
        "mean": (),
        "slope": ("x", "y"),
        "part": ("x", "z"),
        "share": (),
        "constant": (),
    }
    slope, part, mean = (found.terms[n] for n in ("slope", "part", "mean"))
    assert slope.depends_on(("x", "y"))
    assert not part.depends_on(("x", "y"))
    assert mean.depends_on(("k",))
    assert not slope.depends_on(("k",))


def test_tries_do_not_touch_the_data_set_and_are_few() -> None:
    seen = []

    def fit(frame: pd.DataFrame) -> Any:
        seen.append(1)
        frame["x"] = 0.0  # a function may spoil its own copy
        return several(frame.assign(x=frame.y))

    made = trial(fit, wide=40)
    before, _ = made.frame.copy(), seen.clear()
    assert probe(made, NAMES) is not None
    pd.testing.assert_frame_equal(made.frame, before)
    assert len(seen) < 40


def terms_found(fit: Any) -> Any:
    made = trial(fit)
    found = probe(made, made.found.names)
    assert found is not None
    return found.terms


def test_formulas_say_what_their_coefficients_are_about() -> None:
    terms = terms_found(lambda f: smf.ols("y ~ x * C(k)", f[f.z == "b"]).fit())
    assert terms["x"].joins == ("y", "x", "z")
    assert terms["x:C(k)[T.1]"].joins == ("y", "x", "k", "z")
    assert terms["x:C(k)[T.1]"].levels == {"k": ("1", "")}
    assert terms["x"].depends_on(("x", "z"))
    assert not terms["x"].depends_on(("y", "k"))
    renamed = terms_found(lambda f: smf.ols("y ~ x", f.assign(y=f.k)).fit())
    assert renamed["x"].joins == ("x", "k")
    foreign = terms_found(lambda f: smf.ols("y ~ np.sin(x)", f).fit())  # code, only tried
    assert foreign["np.sin(x)"].joins == ("x", "y")


def test_named_columns_join_all_estimates() -> None:
    found = named_basis(("x", "y"), ("slope",), "")
    assert found.terms["slope"].joins == ("x", "y")
    assert found.by_value == found.exposed == ("x", "y")
    formula = named_basis(("x", "y", "z"), ("Intercept", "x"), "y ~ x")
    assert formula.terms["x"].joins == ("y", "x", "z")
    beyond = named_basis(("x",), ("Intercept", "x"), "y ~ x")  # it names what was not named
    assert beyond.terms["x"].joins == ("x",)


@pytest.mark.parametrize("kind", ["random", "counting", "all columns"])
def test_what_cannot_be_told(kind: str) -> None:
    rng, calls = np.random.default_rng(1), []

    def fit(frame: pd.DataFrame) -> Any:
        calls.append(1)
        noise = {"random": rng.random(), "counting": len(calls), "all columns": 0.0}[kind]
        return {"a": (frame.select_dtypes("number").to_numpy().mean() + noise, 0.01)}

    assert probe(trial(fit, wide=40), ("a",)) is None
    assert len(calls) <= MAX_TRIALS + 3


def test_a_function_that_fails_on_changed_values_uses_them() -> None:
    def fit(frame: pd.DataFrame) -> Any:
        if frame.k.mean() > 2:
            raise ValueError("too many")
        return {"x": (frame.x.mean(), 0.01)}

    found = probe(trial(fit), ("x",))
    assert found is not None
    assert found.terms["x"].columns == found.columns == ("x", "k")
