"""``plan`` says beforehand, from public inputs, what the transcript shows afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrave.cli.main import run
from margrave.data import read_table
from margrave.mechanisms import MECHANISMS
from margrave.plan import STEPS, plan
from margrave.privacy import AddRemoveRow, Budget, ReplaceRow, protect
from margrave.schema import Schema
from margrave.workload import Workload

SCHEMA = Schema.coded({"a": 2, "b": 3, "c": 4})
BUDGET = Budget.approx(2.0, 1e-6)


def frame(rows: int) -> Any:
    import pyarrow as pa

    rng = np.random.default_rng(1)
    return pa.table({c.name: rng.integers(0, c.size, rows) for c in SCHEMA.columns})


@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_noise_is_that_of_the_transcript(name: str, unit: Any) -> None:
    mechanism = MECHANISMS[name]()
    made = plan(SCHEMA.domain, mechanism, budget=BUDGET, unit=unit)
    with protect(read_table(frame(500), SCHEMA), unit=unit, budget=BUDGET) as private:
        measured = mechanism.run(private).transcript.measurements
    first, last = made.steps[0], made.steps[-1]
    if name == "gaussian":
        assert {m.scale for m in measured} == {first.scale}
        return
    assert [m.scale for m in measured[:3]] == pytest.approx([first.scale] * 3)
    assert len(measured) - 3 <= sum(s.marginals for s in made.steps[1:])
    if name in ("mst", "mwem-pgm"):
        assert [m.scale for m in measured[3:]] == pytest.approx([last.scale] * last.marginals)
    if name == "aim":  # the noise only shrinks from what was planned
        assert all(m.scale <= last.scale * (1 + 1e-12) for m in measured[3:])


def test_every_mechanism_can_be_planned() -> None:
    assert set(STEPS) == set(MECHANISMS)


def test_the_figures_of_a_plan() -> None:
    made = plan(SCHEMA.domain, MECHANISMS["aim"](), budget=BUDGET, unit=AddRemoveRow(), rows=1000)
    assert (made.columns, made.cells, made.workload, made.counted) == (3, 24, 1, 7)
    assert (made.largest, made.largest_cells) == (("a", "b", "c"), 24)
    assert made.counted_cells == 2 + 3 + 4 + 6 + 8 + 12 + 24
    assert made.steps[-1].error == pytest.approx(np.sqrt(2 / np.pi) * made.steps[-1].scale * 24)
    more = plan(SCHEMA.domain, MECHANISMS["aim"](), budget=BUDGET, unit=AddRemoveRow(), rows=10_000_000)
    assert more.memory_mb > made.memory_mb
    assert more.seconds > made.seconds


def test_replacing_a_row_takes_more_noise() -> None:
    one, two = (
        plan(SCHEMA.domain, MECHANISMS["independent"](), budget=BUDGET, unit=u).steps[0].scale
        for u in (AddRemoveRow(), ReplaceRow())
    )
    assert two / one == pytest.approx(np.sqrt(2))


def test_a_smaller_workload_is_planned_as_such() -> None:
    workload = Workload.of(SCHEMA.domain, [("a", "b")])
    made = plan(SCHEMA.domain, MECHANISMS["gaussian"](workload=workload), budget=BUDGET, unit=AddRemoveRow(),
                workload=workload)  # fmt: skip
    assert (made.counted, made.workload) == (1, 1)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    options = ["plan", "-s", "schema.toml", "--epsilon", "1", "--delta", "1e-9", "-m", name]
    assert run(options) == 0
    assert "noise a cell" in capsys.readouterr().out
    assert run([*options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mechanism"] == name
    assert found["rho"]["decimal"] == pytest.approx(0.01497, rel=1e-3)
    assert run([*options, "--workload", "around:salary"]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["schema.toml"]
