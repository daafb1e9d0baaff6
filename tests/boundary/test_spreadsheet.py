"""``--excel-safe``: no text of a CSV file runs as a formula, and nothing else changes."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import run
from margrave.data import read_table
from margrave.data.writer import without_formulas, write_table
from margrave.mechanisms import Independent
from margrave.privacy import SeededRandomness, protect
from margrave.schema import Categorical, Integer, Schema

WIDE = "\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
TRIGGERS = f"=+-@\t\r\n{WIDE}"
RUNS = re.compile(f"[{re.escape(TRIGGERS)}]")
NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?")
FORMULAS = st.builds(
    "".join,
    st.tuples(
        st.text(st.sampled_from("'"), max_size=2),
        st.sampled_from([*TRIGGERS, "", "a"]),
        st.sampled_from(
            [
                "cmd|' /C calc'!A0",
                "SUM(1+1)*cmd",
                "HYPERLINK(1)",
                "1",
                "2e5",
                "",
                "1,5",
                "1-1",
                '",=1',
            ]
        ),
    ),
)


@given(st.lists(st.one_of(FORMULAS, st.text(), st.none()), min_size=1))
def test_no_text_begins_a_formula_and_an_apostrophe_can_be_taken_off(
    texts: list[str | None],
) -> None:
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        made = without_formulas(pa.table({"x": pa.array(texts, pa.string()).cast(kind)}))
        for old, new in zip(texts, made.column("x").to_pylist(), strict=True):
            if old is None or NUMBER.fullmatch(old):
                assert new == old
                continue
            assert not RUNS.match(new)
            assert new == (f"'{old}" if RUNS.match(old.lstrip("'")) else old)


def test_numbers_stay() -> None:
    table = pa.table({"n": [-1, 2], "f": [-0.5, 1e300], "=b": ["-1", "-1+1"]})
    made = without_formulas(table)
    assert made.column_names == ["n", "f", "'=b"]
    assert made.to_pydict() == {"n": [-1, 2], "f": [-0.5, 1e300], "'=b": ["-1", "'-1+1"]}


def test_both_commands_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    schema = Schema((Categorical("@who", ["=cmd|x", "plain", "-3"]), Integer("n", -3, 3)))
    schema.save("s.toml")
    rows = pa.table({"@who": ["=cmd|x", "plain", "-3"] * 20, "n": list(range(-3, 3)) * 10})
    write_table(rows, "t.csv", overwrite=False)
    assert "=cmd" in Path("t.csv").read_text()
    common = [
        "--epsilon",
        "50",
        "--delta",
        "1e-9",
        "-m",
        "independent",
        "--seed",
        "1",
        "--rows",
        "60",
        "--excel-safe",
    ]
    assert (
        run(
            [
                "synthesize",
                "t.csv",
                "-s",
                "s.toml",
                "-o",
                "a.csv",
                "--release",
                "r.margrave",
                *common,
            ]
        )
        == 0
    )
    assert (
        run(["sample", "r.margrave", "-n", "60", "--seed", "1", "-o", "b.csv", "--excel-safe"]) == 0
    )
    for name in ("a.csv", "b.csv"):
        head, *cells = csv.reader(io.StringIO(Path(name).read_text(), newline=""))
        assert head == ["'@who", "n"]
        assert {c[0] for c in cells} == {"'=cmd|x", "plain", "-3"}
        assert {c[1] for c in cells} <= {str(n) for n in range(-3, 4)}


@pytest.mark.parametrize("output", [["-o", "a.parquet"], []])
def test_it_is_for_csv(output: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    schema = Schema((Integer("n", 0, 3),))
    schema.save("s.toml")
    Path("t.csv").write_text("n\n1\n")
    with protect(
        read_table("t.csv", schema),
        unit=AddRemoveRow(),
        budget=Budget.zcdp(1),
        randomness=SeededRandomness(1),
    ) as private:
        Independent().run(private, rng=np.random.default_rng(0)).save("r.margrave")
    words = [
        "synthesize",
        "t.csv",
        "-s",
        "s.toml",
        "--epsilon",
        "1",
        "--delta",
        "1e-9",
        "--report",
        "r.html",
        *output,
    ]
    assert run([*words, "--excel-safe"]) == 2
    assert not Path("r.html").exists()
    if output:
        assert run(["sample", "r.margrave", "-n", "1", *output, "--excel-safe"]) == 2
