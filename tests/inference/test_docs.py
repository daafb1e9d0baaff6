"""What docs/inference.md shows runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from margrave.inference import Analysis
from margrave.schema import Categorical, Real, Schema
from tests.support.exact_posterior import release_of

PAGE = Path(__file__).parents[2] / "docs" / "inference.md"
SCHEMA = Schema(
    [
        Categorical("died", ["no", "yes"]),
        Categorical("ward", ["a", "b", "c"]),
        Real("age", 0.0, 100.0, bins=2),
        Real("stay", 0.0, 30.0, bins=2),
    ]
)


def test_the_example_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    release = release_of(np.full(24, 1 / 24), 2000, 2.0, rng, SCHEMA)
    tables = list(release.draws(3, seed=1))
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    code = code.replace('"died.html"', repr(str(tmp_path / "died.html"))).replace("m=100", "m=20")
    names: dict[str, Any] = {
        "release": release,
        "tables": tables,
        "fit": lambda f: {"a": (f.age.mean(), 1.0)},
    }
    exec(code, names)
    assert isinstance(names["result"], Analysis)
    assert (tmp_path / "died.html").exists()
