"""Bad input: one clear sentence, an exit code, nothing written, nothing spent. One test an item."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import margrave.api
import margrave.run
from margrave.cli.main import cli, run
from margrave.cli.usage import refuse_repeats
from margrave.errors import InputError
from margrave.schema import Schema

CSV = "age,sex,job\n" + "".join(f"{i % 5},{i % 2},{i % 3}\n" for i in range(60))
SECRET = "Zanzibar-7731"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and its schema; opening the gate in it is a failure."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(CSV)
    Schema.coded({"age": 5, "sex": 2, "job": 3}).save("schema.toml")

    def opened(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the gate was opened")

    monkeypatch.setattr(margrave.run, "protect", opened)
    return tmp_path


@pytest.fixture
def refused(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run ``margrave synthesize`` with some options changed; check what every refusal has in common."""

    def check(code: int, *extra: str, table: str = "table.csv", **options: str) -> str:
        settings = {
            "schema": "schema.toml",
            "epsilon": "1",
            "delta": "1e-9",
            "release": "out.margrave",
            **options,
        }
        arguments = ["synthesize", table, *(f"--{k}={v}" for k, v in settings.items()), *extra]
        before = snapshot(here)
        assert run(arguments) == code
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(("Error: ", "Usage: "))
        assert said.err.rstrip().count("\n") <= 4
        assert "Traceback" not in said.err
        assert SECRET not in said.err
        assert snapshot(here) == before, "something was written"
        assert run([*arguments, "--json"]) == code
        assert json.loads(capsys.readouterr().out)["exit_code"] == code
        assert snapshot(here) == before
        return said.err

    return check


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def test_a_missing_file(refused: Callable[..., str]) -> None:
    assert "nowhere.csv" in refused(4, table="nowhere.csv")


def test_rows_of_a_mechanism_that_gives_none(refused: Callable[..., str]) -> None:
    said = refused(2, "-m", "gaussian", "-o", "rows.csv")
    assert (
        "The gaussian mechanism gives noisy answers only: there are no rows to write to -o." in said
    )
    assert "Leave -o out" in said


def test_a_folder_for_a_file(refused: Callable[..., str], here: Path) -> None:
    (here / "folder.csv").mkdir()
    assert "folder.csv" in refused(4, table="folder.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(refused: Callable[..., str], here: Path) -> None:
    (here / "table.csv").chmod(0)
    refused(4)


def test_ragged_rows(refused: Callable[..., str], here: Path) -> None:
    (here / "table.csv").write_text(f"age,sex,job\n1,1,1\n1,1,1,{SECRET},2\n1\n")
    assert "table.csv" in refused(4)


def test_the_wrong_encoding(refused: Callable[..., str], here: Path) -> None:
    (here / "table.csv").write_bytes(CSV.encode() + b"1,\xff\xfe\xe9,2\n")
    assert "table.csv" in refused(4)


def test_an_empty_file(refused: Callable[..., str], here: Path) -> None:
    (here / "table.csv").write_bytes(b"")
    assert "table.csv" in refused(4)


def test_a_file_that_is_no_parquet(refused: Callable[..., str], here: Path) -> None:
    (here / "table.parquet").write_bytes(b"PAR1" + SECRET.encode())
    assert "table.parquet" in refused(4, table="table.parquet")


def test_a_file_of_an_unknown_kind(refused: Callable[..., str], here: Path) -> None:
    pytest.importorskip("fastexcel", reason="fastexcel is not installed")
    (here / "table.xlsx").write_bytes(b"PK")
    assert "table.xlsx" in refused(4, table="table.xlsx")


def test_a_column_absent_from_the_table(refused: Callable[..., str], here: Path) -> None:
    (here / "table.csv").write_text("age,sex\n1,1\n")
    assert '"job"' in refused(4)


def test_a_column_absent_from_the_schema(refused: Callable[..., str], here: Path) -> None:
    (here / "table.csv").write_text("age,sex,job,salary\n1,1,1,1\n")
    assert '"salary"' in refused(4)


def test_a_value_that_the_schema_refuses(refused: Callable[..., str], here: Path) -> None:
    (here / "table.csv").write_text(f"age,sex,job\n1,1,{SECRET}\n1,1,77731\n")
    said = refused(4)
    assert "'job'" in said
    assert "77731" not in said


def test_a_missing_schema(refused: Callable[..., str]) -> None:
    assert "none.toml" in refused(3, schema="none.toml")


@pytest.mark.parametrize("text", ["not toml [", "", "columns = 3\n"])
def test_a_malformed_schema(refused: Callable[..., str], here: Path, text: str) -> None:
    (here / "bad.toml").write_text(text)
    refused(3, schema="bad.toml")


def test_a_draft_schema(
    refused: Callable[..., str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "draft", "table.csv", "--read", "-o", "draft.toml"]) == 0
    capsys.readouterr()
    assert "draft" in refused(3, schema="draft.toml")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_epsilon_out_of_range(refused: Callable[..., str], epsilon: str) -> None:
    assert "epsilon" in refused(2, epsilon=epsilon)


@pytest.mark.parametrize("delta", ["0", "1", "-1e-9", "2", "nan"])
def test_delta_out_of_range(refused: Callable[..., str], delta: str) -> None:
    assert "delta" in refused(2, delta=delta)


def test_epsilon_that_is_no_number(refused: Callable[..., str]) -> None:
    assert "epsilon" in refused(2, epsilon="much")


@pytest.mark.parametrize(
    "workload", ["around:salary", "age,salary", "salary", "age,sex;job,salary"]
)
def test_a_workload_of_unknown_columns(refused: Callable[..., str], workload: str) -> None:
    assert "salary" in refused(2, workload=workload)


def test_a_weight_on_the_command_line_names_the_file_that_can_have_it(
    refused: Callable[..., str],
) -> None:
    said = refused(2, workload="age,job=3;sex,job")
    assert "'job=3'" in said
    assert "file" in said
    assert "no column" not in said


def test_a_workload_that_names_a_column_twice(refused: Callable[..., str], here: Path) -> None:
    assert "'age' twice" in refused(2, workload="age,age;sex")
    (here / "workload.txt").write_text("age, sex, age = 2\n")
    assert "Line 1 of the workload workload.txt" in refused(2, workload="workload.txt")


@pytest.mark.parametrize("workload", ["", ";", "all-0way"])
def test_a_workload_of_nothing(refused: Callable[..., str], workload: str) -> None:
    refused(2, workload=workload)


def test_a_workload_file_of_unknown_columns(refused: Callable[..., str], here: Path) -> None:
    (here / "workload.txt").write_text("age, sex\nage, salary = 2\n")
    said = refused(2, workload="workload.txt")
    assert "Line 2 of the workload workload.txt" in said
    assert "salary" not in said, "the file may be private"


def test_a_domain_too_large(refused: Callable[..., str], here: Path) -> None:
    Schema.coded({"age": 5, "sex": 2, "job": 50_000_000}).save("large.toml")
    assert "'job'" in refused(6, schema="large.toml")


@pytest.mark.parametrize("unit", ["person", "add-remove-person:0", "add-remove-person:many"])
def test_an_unknown_unit(refused: Callable[..., str], unit: str) -> None:
    refused(2, unit=unit)


def test_a_unit_of_persons_without_a_person_column(refused: Callable[..., str]) -> None:
    assert "person" in refused(3, unit="add-remove-person:3")


def test_an_unknown_mechanism(refused: Callable[..., str]) -> None:
    assert "magic" in refused(2, mechanism="magic")


def test_an_option_the_mechanism_does_not_know(refused: Callable[..., str]) -> None:
    assert "--rounds" in refused(2, mechanism="independent", rounds="3")


@pytest.mark.parametrize("option", ["release", "output", "report"])
def test_an_existing_output(refused: Callable[..., str], here: Path, option: str) -> None:
    (here / "there.csv").write_text("precious")
    assert "there.csv" in refused(2, **{option: "there.csv"})


def test_an_output_in_no_folder(refused: Callable[..., str]) -> None:
    assert "no/folder" in refused(2, release="no/folder/out.margrave")


def test_one_output_named_twice(refused: Callable[..., str]) -> None:
    assert "same file" in refused(2, report="./out.margrave")


def test_rows_in_an_unknown_format(refused: Callable[..., str]) -> None:
    assert "out.sas7bdat" in refused(2, output="out.sas7bdat")


def test_no_output_at_all(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["synthesize", "table.csv", "-s", "schema.toml", "-e", "1", "--delta", "1e-9"]) == 2
    assert "for nothing" in capsys.readouterr().err


def test_a_negative_number_of_rows(refused: Callable[..., str]) -> None:
    assert "--rows" in refused(2, rows="-5")


@pytest.mark.parametrize(
    "command",
    [
        "certificate RELEASE",
        "bounds RELEASE",
        "sample RELEASE -o o.csv",
        "report RELEASE -o o.html",
    ],
)
def test_a_broken_release(here: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    (here / "broken.margrave").write_bytes(b"PK\x03\x04 not really")
    before = snapshot(here)
    assert run(command.replace("RELEASE", "broken.margrave").split()) == 7
    assert "broken.margrave" in capsys.readouterr().err
    assert run(command.replace("RELEASE", "none.margrave").split()) == 7
    assert snapshot(here) == before


def test_a_fault_shows_no_value(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*args: Any, **kwargs: Any) -> None:
        raise KeyError(SECRET)

    monkeypatch.setattr(margrave.run, "read_table", fault)
    arguments = [
        "synthesize",
        "table.csv",
        "-s",
        "schema.toml",
        "-e",
        "1",
        "--delta",
        "1e-9",
        "--release",
        "o.margrave",
    ]
    assert run(arguments) == 70
    said = capsys.readouterr()
    assert "KeyError" in said.err
    assert SECRET not in said.err + said.out
    monkeypatch.setenv("MARGRAVE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run(arguments)


def commands_of(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands_of(command)
        else:
            yield command


def test_an_option_that_takes_one_value_is_given_once() -> None:
    for command in commands_of(cli):
        for option in (p for p in command.params if isinstance(p, click.Option)):
            flag = max(option.opts, key=len)
            twice = [*[flag] * (option.is_flag is False), *["1"] * option.nargs] * 2
            if option.multiple or option.is_flag:
                refuse_repeats(command, None, [flag, *twice[1:]])
                continue
            with pytest.raises(InputError, match=f"^{flag} is given 2 times, and takes one value"):
                refuse_repeats(command, None, twice)


def test_a_repeated_list_of_columns_is_proposed_as_one(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = ["numbers", "none.margrave"]
    assert run([*numbers, "--columns", "age", "--columns=sex"]) == 2
    assert "Give it once: --columns age,sex." in capsys.readouterr().err
    assert run([*numbers, "--by", "age", "--by", "sex"]) == 2
    remedy = "write margrave analyze mean RELEASE COLUMN --by age --where sex=VALUE."
    assert remedy in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("numbers r.margrave --where sex=1", "margrave analyze mean RELEASE COLUMN --where COLUMN"),
        ("evaluate t.csv r.margrave --level 1", "has no option --level. See margrave evaluate"),
        ("evaluate t.csv r.margrave --sead 1", "Did you mean '--seed'?"),
    ],
)
def test_an_unknown_option_has_a_proposal_that_is_like_it(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, words: str
) -> None:
    assert run(command.split()) == 2
    said = capsys.readouterr().err
    assert words in said
    assert ("Did you mean" in said) == ("Did you mean" in words)


def test_an_unknown_command_and_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conjure"]) == 2
    assert "conjure" in capsys.readouterr().err
    assert run([]) == 2
