"""Questions on constraints: what all rows agree on and chance would not, asked without a value and never declared."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from margrave.cli.main import cli, run
from margrave.profiling import constraint_questions, draft_schema, with_questions
from margrave.profiling.draft import quiet_draft
from margrave.profiling.relations import in_short
from margrave.release import Release
from margrave.schema import Learn, Ordered, Schema

ROWS = 600
STATE = {"York": "England", "Hull": "England", "Bonn": "Germany", "Kiel": "Germany"}


def stays() -> pa.Table:
    rng = np.random.default_rng(1)
    came = rng.integers(0, 200, ROWS)
    left = came + rng.integers(0, 30, ROWS)
    paid = left + rng.integers(0, 40, ROWS)
    day = [date(2018, 1, 1) + timedelta(i) for i in range(300)]
    town = rng.choice(list(STATE), ROWS)
    return pa.table({
        "paid": [day[i] for i in paid],
        "came": pa.array([day[i] for i in came], mask=rng.random(ROWS) < 0.1),
        "left": [day[i] for i in left],
        "town": town,
        "state": [STATE[t] for t in town],
        "land": ["Europe"] * (ROWS - 1) + ["Asia"],
        "beds": rng.integers(1, 900, ROWS),
        "cost": rng.integers(1, 900, ROWS) / 4,
    })  # fmt: skip


def asked(table: pa.Table) -> list[tuple[str, tuple[str, ...]]]:
    return [(q.kind, q.columns) for q in constraint_questions(table, draft_schema(table))]


def test_relations_that_chance_would_contradict_are_asked() -> None:
    assert asked(stays()) == [
        ("ordered", ("came", "left", "paid")),
        ("depends", ("town", "state")),
    ]


def test_one_row_against_it_and_there_is_no_question() -> None:
    table = stays().to_pydict()
    table["came"][0], table["left"][0] = date(2018, 9, 1), date(2018, 1, 2)
    table["town"][0], table["state"][0] = "York", "Germany"
    table["town"][1], table["state"][1] = "York", "England"
    assert asked(pa.table(table)) == [
        ("elapsed", ("left", "paid")),
        ("allowed", ("town", "state")),
    ]


def test_few_rows_show_nothing() -> None:
    assert asked(stays().slice(0, 15)) == []
    apart = {"a": list(range(50)) * 4, "b": list(range(100, 150)) * 4}
    assert asked(pa.table(apart)) == []  # no row could contradict it


def test_real_numbers_are_ordered_in_pairs() -> None:
    rng = np.random.default_rng(1)
    low = rng.integers(0, 400, 300) / 4
    table = pa.table({"a": low, "b": low + rng.random(300), "c": low + 1 + rng.random(300)})
    ((kind, columns),) = asked(table)
    assert (kind, len(columns)) == ("ordered", 2)
    schema = draft_schema(table)
    assert Schema(schema.columns, constraints=[Ordered(columns)]).constraints


def test_combinations_that_do_not_occur_are_asked() -> None:
    rng = np.random.default_rng(1)
    age = rng.choice(["child", "adult", "old"], 900)
    job = np.where(
        age == "child", rng.choice(["none", "school"], 900), rng.choice(["none", "desk"], 900)
    )
    table = pa.table({"age": age, "job": job, "x": rng.choice(["p", "q"], 900)})
    (question,) = constraint_questions(table, draft_schema(table))
    assert (question.kind, question.columns) == ("allowed", ("age", "job"))
    assert "In these rows 3 combinations" in question.words
    two = [question, replace(question, columns=("age", "x"), absent=2)]
    (words,) = in_short(two)
    assert words.endswith("of 'age' and 'job' (3), 'age' and 'x' (2).")
    head = with_questions(quiet_draft(table), two).remarks[""].splitlines()
    assert sum("allowed = " in line for line in head) == 1


def test_the_draft_has_questions_no_value_and_no_constraint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / "t.toml"
    pq.write_table(stays(), path)
    assert run(["schema", "draft", str(path), "-o", str(out)]) == 0
    assert "ask about 2 relations between columns." in capsys.readouterr().out
    text = out.read_text(encoding="utf-8")
    plain = text.replace("\n# ", " ")
    assert "keep each but the first as the time since it" in plain
    assert 'Then add a [[constraint]] with ordered = ["came", "left", "paid"]' in plain
    assert not any(value in text for value in ("York", "England", "2018"))
    assert Schema.load(out).constraints == ()


def test_an_accepted_draft_has_no_constraint(tmp_path: Path) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / "t.margrave"
    pq.write_table(stays().select(["town", "state", "left", "paid"]), path)
    words = ["synthesize", str(path), "--accept-draft", "--epsilon", "9", "--delta", "1e-6"]
    assert run([*words, "-m", "independent", "--release", str(out)]) == 0
    assert Release.load(out).schema.constraints == ()


def test_the_person_at_the_terminal_states_what_always_holds(tmp_path: Path) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / "t.toml"
    pq.write_table(stays(), path)
    (tmp_path / "towns.csv").write_text("town,state\nYork,England\nRom,Italy\n")
    words = ["schema", "ask", str(path), "-o", str(out)]
    many = [""] * 8
    answers = [*many, "y", "none.csv", "towns.csv"]
    result = CliRunner().invoke(cli, words, input="".join(f"{a}\n" for a in answers))
    assert result.exit_code == 0, result.output
    assert "cannot be read" in result.output
    made = Schema.load(out)
    assert [c.kind for c in made.constraints] == ["ordered", "depends"]
    assert [f.name for f in made.files] == ["towns.csv"]
    assert all(isinstance(made.column(c), Learn) for k in made.constraints for c in k.columns)
    out.unlink()
    result = CliRunner().invoke(cli, words, input="".join(f"{a}\n" for a in [*many, "", ""]))
    assert Schema.load(out).constraints == ()
