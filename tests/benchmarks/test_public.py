"""The suite of public data: it runs on tables like the paper's, and its page says what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")

from benchmarks.__main__ import main
from benchmarks.core.results import View
from benchmarks.core.store import Store
from benchmarks.core.suite import Case, Table, Task, kway
from benchmarks.core.tables import codes_of
from benchmarks.suites import public

SIZES = {"a": 3, "b": 4, "c": 2}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A made-up pair of tables under the names of TITANIC's."""
    folder = tmp_path / "data" / "jam"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, rows in (("titanic_priv", 600), ("titanic_pub", 120)):
        base = rng.integers(0, 12, rows)
        columns = {a: (base // (1 + i)) % size for i, (a, size) in enumerate(SIZES.items())}
        pyarrow.parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
        facts = {"columns": [{"name": a, "domain_size": size} for a, size in SIZES.items()]}
        (folder / f"{name}.schema.json").write_text(json.dumps(facts))
    return tmp_path / "data"


def row(task: str, contender: str, epsilon: float, error: float, **facts: Any) -> dict[str, Any]:
    return {"task": task, "contender": contender, "setting": {}, "epsilon": epsilon, "repeat": 0,
            "outcome": "finished", "error": error, "fit_cpu_s": 3.0, **facts}  # fmt: skip


def view(*rows: dict[str, Any]) -> View:
    return View(public.SUITE, rows)


def test_runs_are_stored_once(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "public", "--only", "task=titanic", "contender=aim,aim-pub", "epsilon=1",
             "--repeats", "2", "--data", str(data), "--results", str(tmp_path)]  # fmt: skip
    assert main(words) == 0
    rows = Store(tmp_path / "public.parquet").rows()
    assert [(x["contender"], x["repeat"]) for x in rows] == [
        ("aim", 0), ("aim-pub", 0), ("aim", 1), ("aim-pub", 1),
    ]  # fmt: skip
    assert all(0 < x["error"] < 1 for x in rows)
    assert rows[1]["public_marginals"] >= 3
    assert rows[0]["public_marginals"] == 0
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().out == "public: 0 of 4 runs are left\n"


@pytest.mark.slow
def test_times_are_taken_side_by_side(data: Path, tmp_path: Path) -> None:
    words = ["run", "public", "--only", "task=titanic", "contender=times", "epsilon=1",
             "--repeats", "1", "--data", str(data), "--results", str(tmp_path)]  # fmt: skip
    assert main(words) == 0
    (taken,) = Store(tmp_path / "public.parquet").rows()
    assert (taken["task"], taken["epsilon"], taken["repeat"]) == ("titanic", 1.0, 0)
    for kind in ("alone_s", "process_s"):
        assert taken[kind]["aim"] > 0
        assert taken[kind]["aim-pub"] > 0
    assert taken["process_s"]["aim-pub"] > taken["alone_s"]["aim-pub"]


@pytest.mark.parametrize("name", public.CONTENDERS)
def test_every_contender_can_be_made(name: str) -> None:
    codes = codes_of(SIZES, [np.zeros(4, dtype=np.int64)] * 3)
    table = Table(codes, {"": public.as_public(codes)})
    made = public.CONTENDERS[name].make(Case(Task("T", lambda data: table, kway(3)), table), {})
    assert made.config()["name"]


def test_without_public_data_the_four_adult_tables_are_one() -> None:
    cells = [c for c in public.cells(1) if c.task.startswith("adult")]
    assert {c.task for c in cells if c.contender == "aim"} == {"adult_025"}
    assert len({c.task for c in cells if c.contender == "aim-pub"}) == 4


def test_the_page_says_how_much_longer_aim_pub_takes() -> None:
    def times(task: str, epsilon: float, aim: float, own: float) -> dict[str, Any]:
        alone, whole = {"aim": aim, "aim-pub": own}, {"aim": aim + 2.0, "aim-pub": own + 2.0}
        return {"task": task, "epsilon": epsilon, "alone_s": alone, "process_s": whole}

    rows = [times("titanic", 1.0, 0.5, 1.5), times("titanic", 1.0, 1.5, 2.5),
            times("fire", 0.1, 1.0, 4.0), times("fire", 10.0, 10.0, 9.0)]  # fmt: skip
    alone, whole = public.longer(view(), rows).split("\n\n")
    assert alone.startswith(
        "Side by side at 3 settings, 1 to 2 runs of each: AIMPub alone takes 2.00 times"
    )
    assert "4.0 times at most, and 1.25 times for all together" in alone  # 15 s against 12
    assert alone.endswith("More than twice: FIRE at ε = 0.1 (4.0, 3.0 s more).")
    assert "whole run" in whole
    assert "2.0 times at most, and 1.17 times for all together" in whole  # 21 s against 18
    assert whole.endswith("More than twice: none.")
    assert public.longer(view(), []) == "Not run yet."


def test_the_page_says_where_aim_pub_is_worse() -> None:
    made = {
        ("titanic", 0.1): (0.4, 0.3, 0.2),
        ("titanic", 1.0): (0.2, 0.25, 0.3),
        ("adult_050", 1.0): (0.4, 0.1, 0.1),
    }
    rows = [
        row(public.home_of(task, who), who, epsilon, error + gap)
        for (task, epsilon), errors in made.items()
        for who, error in zip(("aim", "jam-pgm", "aim-pub"), errors, strict=True)
        for gap in (-0.02, 0.02)  # the mean of two runs is the value
    ]
    found = public.page(view(*rows))
    # ratios: 0.2 / 0.3, 0.3 / 0.2 and 0.1 / 0.1; their geometric mean is 1
    assert "Over 3 settings AIMPub's mean error is 1.00 times" in found.tables["worst"]
    assert "from 0.67 to 1.50" in found.tables["worst"]
    assert "Above 1.02: TITANIC at ε = 1 (1.50)." in found.tables["worst"]
    assert found.tables["further"] == "Not run yet."
    line = "| TITANIC | 0.1 | 0.400 (2; 3 s) | 0.300 (2; 3 s) | **0.200** (2; 3 s) |"
    assert line in found.tables["errors"]
    # AIM, which reads nothing, is run once for all four shares of women
    assert "| ADULT, 50 % women | 1 | 0.400 (2; 3 s)" in found.tables["errors"]
    assert found.figures["others"].startswith("<svg")


def test_the_page_compares_numbers_of_rounds() -> None:
    """Rounds are what was measured; forms of one round a column stand in this table alone."""

    def rows(task: str, who: str, error: float, rounds: int) -> list[dict[str, Any]]:
        return [row(task, who, 10.0, error * s, measurements=rounds) for s in (0.9, 1.1)]

    found = view(
        *rows("nltcs", "gem-columns", 0.04, 16), *rows("nltcs", "gem", 0.006, 124),
        *rows("nltcs", "rap", 0.008, 124), *rows("nltcs", "aim", 0.0045, 90),
        *rows("fire", "gem", 0.1, 15),
    )  # fmt: skip
    assert list(public.by_rounds(found))[2:] == [
        "| NLTCS | 10 | 0.0045 | 0.0400 (16) | 0.0060 (124) |  | 0.0080 (124) |"
    ]
    assert not any("one round per column" in line for line in public.errors(found))
    assert "one round per column" not in public.figure(found, ("nltcs",))
