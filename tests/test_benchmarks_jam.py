"""The benchmark of public data: it runs on tables like the paper's, keeps its runs, and its page says what they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

pytest.importorskip("benchmarks.adaptive", reason="the benchmarks are not part of this copy")  # finds their folder
jam: Any = pytest.importorskip("jam")

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


def test_what_is_stored_is_not_run_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["jam.py", "titanic", "--contender", "aim", "jam", "--epsilon", "1", "--runs", "2"]
    monkeypatch.setattr(sys, "argv", [*words, "--data", str(data), "--results", str(tmp_path / "results")])
    jam.main()
    lines = [json.loads(x) for x in capsys.readouterr().out.splitlines()]
    assert [(x["contender"], x["run"]) for x in lines] == [("aim", 0), ("jam", 0), ("aim", 1), ("jam", 1)]
    assert all(0 < x["error"] < 1 for x in lines)
    assert lines[1]["read"] >= 3
    assert lines[0]["read"] == 0
    jam.main()
    assert not capsys.readouterr().out


def test_times_are_taken_side_by_side(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["jam.py", "times", "titanic", "--epsilon", "1", "--runs", "2"]
    monkeypatch.setattr(sys, "argv", [*words, "--data", str(data), "--results", str(tmp_path)])
    jam.main()
    jam.main()  # nothing is taken twice
    lines = [json.loads(x) for x in (tmp_path / "times.jsonl").read_text().splitlines()]
    assert [(x["table"], x["epsilon"], x["run"]) for x in lines] == [("titanic", 1.0, 0), ("titanic", 1.0, 1)]
    for kind in ("cpu_s", "process_s"):
        assert all(x[kind]["aim"] > 0 and x[kind]["jam"] > 0 for x in lines)
    assert lines[0]["process_s"]["jam"] > lines[0]["cpu_s"]["jam"]


def test_the_page_tells_how_much_longer_jam_takes() -> None:
    def line(table: str, epsilon: float, aim: float, own: float) -> dict[str, Any]:
        alone, whole = {"aim": aim, "jam": own}, {"aim": aim + 2.0, "jam": own + 2.0}
        return {"table": table, "epsilon": epsilon, "cpu_s": alone, "process_s": whole}

    lines = [line("titanic", 1.0, 0.5, 1.5), line("titanic", 1.0, 1.5, 2.5), line("fire", 0.1, 1.0, 4.0)]
    lines.append(line("fire", 10.0, 10.0, 9.0))
    alone, whole = jam.longer(lines).split("\n\n")
    assert alone.startswith("Side by side at 3 settings, 1 to 2 runs of each: JAM alone takes 2.00 times")
    assert "4.0 times at most, and 1.25 times for all together" in alone  # 15 s against 12
    assert alone.endswith("More than twice: FIRE at ε = 0.1 (4.0, 3.0 s more).")
    assert "whole run" in whole
    assert "2.0 times at most, and 1.17 times for all together" in whole  # 21 s against 18
    assert whole.endswith("More than twice: none.")
    assert jam.longer([]) == "Not run yet."


def test_the_page_tells_where_jam_is_worse(tmp_path: Path) -> None:
    made = {("titanic", 0.1): (0.4, 0.3, 0.2), ("titanic", 1.0): (0.2, 0.25, 0.3), ("adult_050", 1.0): (0.4, 0.1, 0.1)}
    for (table, epsilon), values in made.items():
        for contender, error in zip(("aim", "jam-pgm", "jam"), values, strict=True):
            path = tmp_path / "results" / f"{jam.home_of(table, contender)}_{contender}.jsonl"
            for run in (0, 1):  # the mean of two runs is the value
                line = {"epsilon": epsilon, "run": run, "error": error + 0.02 * (2 * run - 1), "cpu_s": 3.0}
                jam.append(path, line)
    docs = tmp_path / "docs"
    docs.mkdir()
    marks = "".join(f"<!-- table: {n} -->\n<!-- end -->\n" for n in ("worst", "further", "errors", "figures"))
    (docs / "jam.md").write_text(marks)
    jam.write_page(tmp_path / "results", docs)
    page = (docs / "jam.md").read_text()
    # ratios: 0.2 / 0.3, 0.3 / 0.2 and 0.1 / 0.1; their geometric mean is 1
    assert "Over 3 settings JAM's mean error is 1.00 times" in page
    assert "from 0.67 to 1.50" in page
    assert "Above 1.02: TITANIC at ε = 1 (1.50)." in page
    assert "| TITANIC | 0.1 | 0.400 (2; 3 s) | 0.300 (2; 3 s) | **0.200** (2; 3 s) |" in page
    # AIM, which reads nothing, is run once for all four shares of women
    assert "| ADULT, 50 % women | 1 | 0.400 (2; 3 s)" in page
    assert (docs / "jam" / "others.svg").read_text().startswith("<svg")


def test_the_page_compares_numbers_of_rounds() -> None:
    """Rounds are what was measured; forms of one round a column stand in this table alone."""

    def lines(error: float, rounds: int) -> dict[float, list[dict[str, Any]]]:
        return {10.0: [{"error": error * s, "measured": rounds, "cpu_s": 1.0} for s in (0.9, 1.1)]}

    made = {("nltcs", "gem-columns"): lines(0.04, 16), ("nltcs", "gem"): lines(0.006, 124)}
    made |= {("nltcs", "rap"): lines(0.008, 124), ("nltcs", "aim"): lines(0.0045, 90), ("fire", "gem"): lines(0.1, 15)}
    assert list(jam.by_rounds(made))[2:] == [
        "| NLTCS | 10 | 0.0045 | 0.0400 (16) | 0.0060 (124) |  | 0.0080 (124) |"
    ]
    assert not any("one round a column" in line for line in jam.errors(made))
    assert "one round a column" not in jam.figure(made, ("nltcs",))
