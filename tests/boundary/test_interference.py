"""Non-interference from the file and the command line: given the answers, every byte that leaves is the same.

Each case runs commands beside two or three tables that differ in all that is not public, with the same answers forced.
Output, errors, exit codes, every file with its name, mode and bytes, and the logs are compared.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import pytest

import margrave.api
import margrave.cli.synthesize
import margrave.run
from margrave.accounting import Budget
from margrave.errors import MargraveError
from margrave.mechanisms import Independent
from margrave.schema import Categorical, ColumnSource
from tests.support.command_line import (
    ALIKE,
    OF_ONE_SIZE,
    ROWS,
    SCHEMA,
    TABLES,
    CommandLine,
    Row,
    Step,
)
from tests.support.conformance import ALONE

BUDGET = ["-s", "schema.toml", "-e", "2", "--delta", "1e-9"]
OUTPUTS = ["-o", "rows.csv", "--release", "r.margrave", "--report", "r.html"]
LEDGER = ["--ledger", "v.ledger", "--dataset", "visits"]
DRAFT = replace(SCHEMA, sources={SCHEMA.columns[0].name: ColumnSource("read")})
WIDER = replace(SCHEMA, columns=(*SCHEMA.columns, Categorical("town", ["Bern", "Basel"])))
PERSONS = replace(SCHEMA, ignore=(), person="who")
RHO = Budget.approx(2.0, 1e-9).rho


def synthesize(
    *options: str, table: str = "table.csv", mechanism: str = "independent", seed: str = "1"
) -> list[str]:
    return ["synthesize", table, *BUDGET, "-m", mechanism, "--seed", seed, *options]


def cap(unit: str = "add-remove-row", rho: object = RHO) -> list[str]:
    return ["ledger", "init", "v.ledger", "--dataset", "visits", "--unit", unit, "--rho", str(rho)]


def failing(after: int) -> Step:
    """The sampler fails, with counts in its words, after so many answers."""
    return lambda here: here.answers.fail_after(after)


def folder_of_one(name: str) -> Step:
    return lambda here: (here.folder / name).mkdir()


def file_of(name: str, text: str = "old") -> Step:
    def write(here: CommandLine) -> None:
        (here.folder / name).write_text(text, encoding="utf-8")

    return write


def fit_that_fails(here: CommandLine) -> None:
    """The mechanism fails once it has all answers."""

    def run(self: Independent, private: Any, **more: Any) -> Any:
        found = sound(self, private, **more)
        raise RuntimeError(f"it failed at {found.model.total}")

    sound = Independent.run
    here.patch.setattr(Independent, "run", run)


def full_disk(here: CommandLine) -> None:
    """The rows cannot be put in their place."""

    def put(source: Any, target: Any) -> None:
        if Path(target).name == "rows.csv":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sound(source, target)

    sound = os.replace
    here.patch.setattr(os, "replace", put)


@dataclass(frozen=True)
class Case:
    """Commands, the codes that they end with, and what lies beside the table."""

    steps: Sequence[Step]
    codes: Sequence[int] = (0,)
    tables: Mapping[str, Sequence[Row]] = field(default_factory=lambda: TABLES)
    more: Mapping[str, Any] = field(default_factory=dict)


RUNS: dict[str, Case] = {
    "csv": Case([synthesize(*OUTPUTS)]),
    "parquet in and out": Case(
        [
            synthesize(
                "-o",
                "rows.parquet",
                "--release",
                "r.margrave",
                table="table.parquet",
                mechanism="mst",
            )
        ],
        more={"table": "table.parquet"},
    ),
    "choices": Case([synthesize(*OUTPUTS, "--workload", "all-2way", mechanism="mwem-pgm")]),
    "as json": Case([synthesize(*OUTPUTS, "--json")]),
    "so many rows as were asked for": Case([synthesize("-o", "rows.csv", "-n", "7")]),
    "answers alone": Case(
        [synthesize("--release", "r.margrave", "--workload", "job,ill;age", mechanism="gaussian")]
    ),
    "a number of rows that is public": Case(
        [synthesize(*OUTPUTS, "--unit", "replace-row")], tables=OF_ONE_SIZE
    ),
    "persons, a ledger and a journal": Case(
        [
            cap("add-remove-person:2"),
            synthesize(*OUTPUTS, *LEDGER, "--unit", "add-remove-person:2"),
            ["ledger", "show", "v.ledger"],
        ],
        (0, 0, 0),
        more={"schema": PERSONS},
    ),
    "persons in parquet": Case(
        [synthesize("--report", "r.html", "--unit", "replace-person:3", table="table.parquet")],
        more={"schema": PERSONS, "table": "table.parquet"},
    ),
    "interrupted and resumed": Case(
        [
            failing(2),
            synthesize(*OUTPUTS, "--journal", "j"),
            synthesize(*OUTPUTS, "--journal", "j", "--resume", "--overwrite"),
        ],
        (10, 0),
    ),
    "interrupted and resumed on a ledger": Case(
        [
            cap(),
            failing(1),
            synthesize(*OUTPUTS, *LEDGER),
            ["ledger", "show", "v.ledger", "--json"],
            synthesize(*OUTPUTS, *LEDGER, "--resume", "--overwrite", "--json"),
            ["ledger", "show", "v.ledger", "--json"],
        ],
        (0, 10, 0, 0, 0),
    ),
    "what follows on a release": Case(
        [
            synthesize("--release", "r.margrave"),
            ["sample", "r.margrave", "-o", "more.parquet", "-n", "9", "--seed", "2"],
            ["certificate", "r.margrave"],
            ["bounds", "r.margrave"],
            ["report", "r.margrave", "-o", "again.html"],
        ],
        (0, 0, 0, 0, 0),
    ),
    "a plan": Case([["plan", *BUDGET], ["plan", *BUDGET, "--json", "-m", "mst"]], (0, 0)),
}
POLICY = '[policy]\nversion = 1\nmax_epsilon = 1.0\nmax_delta = 1e-6\nunits = ["add-remove-row"]\n'

ERRORS: dict[str, Case] = {
    "an unknown column in the workload": Case([synthesize(*OUTPUTS, "--workload", "job,salary")], (2,)),
    "an unknown option": Case([synthesize(*OUTPUTS, "--eps", "1")], (2,)),
    "an unknown mechanism": Case([synthesize(*OUTPUTS, mechanism="magic")], (2,)),
    "a budget below zero": Case([synthesize(*OUTPUTS, "-e", "-1")], (2,)),
    "no output": Case([synthesize()], (2,)),
    "an output that exists": Case([file_of("r.html"), synthesize(*OUTPUTS)], (2,)),
    "an output without a folder": Case([synthesize("-o", "none/rows.csv")], (2,)),
    "an output that is a folder": Case([folder_of_one("rows.csv"), synthesize(*OUTPUTS)], (2,)),
    "an output that is the table": Case([synthesize("-o", "table.csv", "--overwrite")], (2,)),
    "no such table": Case([synthesize(*OUTPUTS, table="other.csv")], (4,)),
    "no such schema": Case([["other.toml" if w == "schema.toml" else w for w in synthesize(*OUTPUTS)]], (3,)),
    "a column that the table lacks": Case([synthesize(*OUTPUTS)], (4,), more={"schema": WIDER}),
    "a column that the schema lacks": Case([synthesize(*OUTPUTS)], (4,), more={"schema": replace(SCHEMA, ignore=())}),
    "a draft": Case([synthesize(*OUTPUTS)], (3,), more={"schema": DRAFT}),
    "persons without a unit": Case([synthesize(*OUTPUTS)], (2,), more={"schema": PERSONS}),
    "a unit without persons": Case([synthesize(*OUTPUTS, "--unit", "add-remove-person:2")], (3,)),
    "a policy that forbids it": Case(
        [synthesize(*OUTPUTS, "--policy", "p.toml")], (9,), more={"files": {"p.toml": POLICY}}
    ),
    "a cap without room": Case([cap(rho=RHO / 2), synthesize(*OUTPUTS, *LEDGER)], (0, 5)),
    "a second run on a cap for one": Case(
        [cap(), synthesize(*OUTPUTS, *LEDGER), synthesize("-o", "second.csv", *LEDGER), ["ledger", "show", "v.ledger"]],
        (0, 0, 5, 0),
    ),
    "a ledger of other data sets": Case(
        [cap(), synthesize(*OUTPUTS, "--ledger", "v.ledger", "--dataset", "staff")], (0, 2)
    ),
    "no ledger": Case([synthesize(*OUTPUTS, *LEDGER)], (8,)),
    "a journal of another run": Case(
        [
            failing(1),
            synthesize(*OUTPUTS, "--journal", "j"),
            synthesize(*OUTPUTS, "--journal", "j", "--resume", "--overwrite", seed="2"),
        ],
        (10, 8),
    ),
    "a journal in the way": Case(
        [failing(1), synthesize(*OUTPUTS, "--journal", "j"), synthesize("-o", "other.csv", "--journal", "j")],
        (10, 8),
    ),
    "a table that was moved": Case(
        [
            failing(1),
            synthesize(*OUTPUTS, "--journal", "j"),
            synthesize(*OUTPUTS, "--journal", "j", "--resume", "--overwrite", table="schema.toml"),
        ],
        (10, 8),
    ),
    "a fit that fails": Case([cap(), fit_that_fails, synthesize(*OUTPUTS, *LEDGER)], (0, 10)),
    "a disk that is full": Case([cap(), full_disk, synthesize(*OUTPUTS, *LEDGER)], (0, 2)),
    "a sampler that fails at once": Case([failing(0), synthesize(*OUTPUTS)], (10,)),
    "a sampler that fails later": Case([failing(2), synthesize(*OUTPUTS, "--json")], (10,)),
    "a choice that fails": Case([failing(6), synthesize(*OUTPUTS, mechanism="mst")], (10,)),
}  # fmt: skip


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capfd)


def codes(here: CommandLine) -> tuple[int, ...]:
    """The exit codes of the first table's commands."""
    return tuple(int(held) for name, held in here.first.items() if name.startswith("code of step"))


def check(here: CommandLine, case: Case) -> None:
    differing = here.differing(case.tables, case.steps, **case.more)
    assert codes(here) == tuple(case.codes), here.first
    assert differing == set()


@pytest.mark.parametrize("name", RUNS)
def test_every_byte_of_a_run_follows_from_its_answers(here: CommandLine, name: str) -> None:
    check(here, RUNS[name])
    outputs = {n for n in here.first if n.startswith("file ")}
    assert outputs > {"file schema.toml"} or name == "a plan"


@pytest.mark.parametrize("name", ERRORS)
def test_every_byte_of_an_error_is_the_same(here: CommandLine, name: str) -> None:
    check(here, ERRORS[name])
    assert b"it failed at" not in b"".join(here.first.values())


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["add-remove-row", "replace-row"])
@pytest.mark.parametrize("mechanism", ALONE)
def test_every_mechanism_from_the_command_line(
    here: CommandLine, mechanism: str, unit: str
) -> None:
    outputs = ["--release", "r.margrave", "--report", "r.html"]
    tables = OF_ONE_SIZE if unit == "replace-row" else TABLES
    check(here, Case([synthesize(*outputs, "--unit", unit, mechanism=mechanism)], tables=tables))


# Planted leaks: each must be seen, in the place where it leaves.


@pytest.fixture
def size(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The true number of rows of the table that was read last, which nothing outside the gate may know."""
    seen: list[int] = []
    read = margrave.run.read_table

    def counted(*given: Any, **more: Any) -> Any:
        table = read(*given, **more)
        seen[:] = [table.rows()]
        return table

    monkeypatch.setattr(margrave.run, "read_table", counted)
    return seen


def leak_on_screen(patch: pytest.MonkeyPatch, size: list[int], *, err: bool) -> None:
    tell = margrave.cli.synthesize._tell

    def telling(*given: Any) -> None:
        click.echo(f"{size[0]} rows read.", err=err)
        tell(*given)

    patch.setattr(margrave.cli.synthesize, "_tell", telling)


def leak_in_the_file(
    patch: pytest.MonkeyPatch, size: list[int], change: Callable[[Path, int], None]
) -> None:
    write = margrave.cli.synthesize.write_table

    def writing(table: Any, path: str, **more: Any) -> None:
        write(table, path, **more)
        change(Path(path), size[0])

    patch.setattr(margrave.cli.synthesize, "write_table", writing)


def leak_in_an_error(patch: pytest.MonkeyPatch, size: list[int]) -> None:
    run = Independent.run

    def running(self: Independent, private: Any, **more: Any) -> Any:
        run(self, private, **more)
        raise MargraveError(f"The fit failed on {size[0]} rows.")

    patch.setattr(Independent, "run", running)


def padded(path: Path, rows: int) -> None:
    path.write_bytes(path.read_bytes() + b"\n" * rows)


LEAKS: dict[str, tuple[Callable[[pytest.MonkeyPatch, list[int]], None], set[str]]] = {
    "a count on standard output": (lambda p, n: leak_on_screen(p, n, err=False), {"stdout of step 0"}),
    "a count on standard error": (lambda p, n: leak_on_screen(p, n, err=True), {"stderr of step 0"}),
    "the size of a file": (lambda p, n: leak_in_the_file(p, n, padded), {"file rows.csv"}),
    "the mode of a file": (
        lambda p, n: leak_in_the_file(p, n, lambda path, rows: path.chmod(0o600 + rows % 2 * 0o40)), {"file rows.csv"}
    ),
    "the name of a file": (
        lambda p, n: leak_in_the_file(p, n, lambda path, rows: path.rename(f"{rows}.csv")), {"file 60.csv"}
    ),
    "a count in an error": (leak_in_an_error, {"stderr of step 0"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAKS)
def test_a_planted_leak_is_seen(
    here: CommandLine, size: list[int], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plant, where = LEAKS[name]
    plant(monkeypatch, size)
    found = here.differing(TABLES, [synthesize("-o", "rows.csv")])
    assert found >= where


def test_a_question_that_depends_on_rows_is_seen(
    here: CommandLine, size: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Independent.run

    def running(self: Independent, private: Any, **more: Any) -> Any:
        if size[0] < 10:
            raise MargraveError("It stopped.")
        return measured(self, private, **more)

    monkeypatch.setattr(Independent, "run", running)
    assert here.differing(TABLES, [synthesize("-o", "rows.csv")]) >= {
        "what was asked",
        "code of step 0",
    }


def test_the_tables_differ_in_what_is_not_public() -> None:
    assert len({len(rows) for rows in TABLES.values()}) == len(TABLES)
    assert {len(rows) for rows in OF_ONE_SIZE.values()} == {len(ROWS)}
    assert ALIKE not in ROWS
