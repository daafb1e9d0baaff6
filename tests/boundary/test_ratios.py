"""Printed ratios: a denominator near zero gives a difference or words, never a percentage of thousands."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import margrave
from margrave.cli.main import run
from margrave.ratios import change, percent, quotient
from margrave.schema import Real, Schema

SOURCE = Path(margrave.__file__).parent
#: A percentage of a level or of work done, which is between 0 and 1 whatever the data.
BETWEEN_0_AND_1 = {"cli/output.py", "cli/bounds.py", "inference/results.py"}


@given(st.floats(), st.floats())
def test_every_ratio_has_few_digits(new: float, old: float) -> None:
    for text in (percent(quotient(new, old)), change(new, old) if math.isfinite(new - old) else ""):
        assert not re.search(r"(?<![\d.])\d{5,}(\.\d+)?(e\+\d+)? %", text)
        assert len(text) < 30


@pytest.mark.parametrize(("real", "off"), [(0.2, "-25.35"), (2.0, "-27.15"), (-25.0, "-0.6 %")])
def test_a_mean_near_zero_has_a_difference(
    real: float,
    off: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Schema((Real("x", -100.0, 100.0, bins=4),)).save("s.toml")
    for name, mean in (("real", real), ("synthetic", -25.15)):
        Path(f"{name}.csv").write_text("x\n" + f"{mean}\n" * 3)
    assert run(["evaluate", "real.csv", "synthetic.csv", "--schema", "s.toml"]) == 0
    said = capsys.readouterr().out
    assert off in said
    assert not re.search(r"\d{4,}(\.\d+)? ?%", said)


def test_one_place_makes_percentages() -> None:
    for folder in ("cli", "report", "evaluate", "inference"):
        for path in sorted((SOURCE / folder).glob("*.py")):
            name = f"{folder}/{path.name}"
            assert name in BETWEEN_0_AND_1 or not re.search(
                r"\{100 \*[^{}]*\} ?%", path.read_text()
            ), name
