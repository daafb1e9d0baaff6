"""No output takes the place of what a command reads, nor of the books, whatever it is told to overwrite."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from margrave._io import written_whole
from margrave.accounting import AddRemoveRow, Budget, Ledger
from margrave.accounting.journal import Journal
from margrave.cli.main import run
from margrave.data.writer import write_table
from margrave.errors import InputError
from margrave.report import write_report
from margrave.schema import Schema
from tests.support import fake_model

RUN = [
    "synthesize",
    "c.csv",
    "-s",
    "c.toml",
    "-e",
    "1",
    "--delta",
    "1e-9",
    "-m",
    "independent",
    "--overwrite",
]
BOOKS = ["--ledger", "o.ledger", "--dataset", "d"]
POLICY = "[policy]\nversion = 1\nmax_epsilon = 5\nmax_delta = 1e-6\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a schema, a workload, a policy, a ledger, a journal and a release."""
    monkeypatch.chdir(tmp_path)
    Path("c.csv").write_text("age,sex\n" + "1,0\n2,1\n" * 50)
    Path("w.txt").write_text("age, sex\n")
    Path("p.toml").write_text(POLICY)
    Schema.coded({"age": 4, "sex": 2}).save("c.toml")
    Ledger("o.ledger").init("d", unit=AddRemoveRow(), cap=Budget.approx(3.0, 1e-9))
    fake_model.release().save("r.margrave")
    Journal("j.journal", "run", "2024-01-01", {}, resume=False).release()
    return tmp_path


def refused(here: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What was said; nothing in the folder is another than before."""
    before = {p: p.read_bytes() for p in here.iterdir()}
    capsys.readouterr()
    assert run([*arguments]) == 2
    assert {p: p.read_bytes() for p in here.iterdir()} == before
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "lost"),
    [
        (["--report", "o.ledger", *BOOKS], "--ledger"),
        (["--release", "o.ledger", *BOOKS], "--ledger"),
        (["-o", "c.csv"], "FILE"),
        (["-o", "./../{}/c.csv"], "FILE"),
        (["--report", "c.toml"], "--schema"),
        (["--release", "p.toml", "--policy", "p.toml"], "--policy"),
        (["--report", "w.txt", "--workload", "w.txt"], "--workload"),
        (["-o", "open.csv", "--public", "open.csv"], "--public"),
    ],
)
def test_no_run_replaces_what_it_reads(
    here: Path, capsys: pytest.CaptureFixture[str], extra: list[str], lost: str
) -> None:
    said = refused(here, capsys, *RUN, *(e.replace("{}", here.name) for e in extra))
    assert f"and {lost} name the same file" in said


def test_a_journal_that_nobody_named_is_not_called_an_option(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(here, capsys, "synthesize", ".", *RUN[2:], "-o", "{o}.csv")
    assert (
        ". is a folder, whose files are read as one table, and the journal of this run, {o}.csv.journal"
        in said
    )
    assert "give the journal another place: --journal FILE" in said
    said = refused(here, capsys, "synthesize", ".", *RUN[2:], "-o", "../o.csv", "--journal", "j")
    assert "--journal and FILE name the same file" in said


def test_a_schema_and_a_draft_exclude_each_other(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(here, capsys, *RUN, "--accept-draft", "-o", "o.csv")
    assert "--schema and --accept-draft are both given" in said
    assert "Leave --accept-draft out" in said


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_lead_to_the_same_file(
    here: Path, capsys: pytest.CaptureFixture[str], link: Callable[[str, str], None]
) -> None:
    for path, name in (("c.csv", "a.csv"), ("o.ledger", "a.html"), ("c.toml", "a.margrave")):
        link(path, name)
    assert "FILE name the same file" in refused(here, capsys, *RUN, "-o", "a.csv")
    assert "--ledger name the same file" in refused(
        here, capsys, *RUN, *BOOKS, "--report", "a.html"
    )
    assert "--schema name the same file" in refused(here, capsys, *RUN, "--release", "a.margrave")
    assert "is a ledger" in refused(
        here, capsys, *RUN, "--report", "a.html"
    )  # though the run has no ledger


@pytest.mark.parametrize(
    "command",
    [
        "schema draft c.csv -o c.csv",
        "sample r.margrave -o open.csv --complete open.csv --attestation published",
        "report r.margrave -o r.margrave",
        "refit r.margrave --release r.margrave",
        "analyze mean r.margrave age --plot r.svg",
    ],
)
def test_nor_does_any_other_command(
    here: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    os.link("r.margrave", "r.svg")
    Path("open.csv").write_text("age\n1\n")
    assert "name the same file" in refused(here, capsys, *command.split(), "--overwrite")


@pytest.mark.parametrize(
    "command",
    [
        "schema draft c.csv -o {}",
        "report r.margrave -o {}",
        "refit r.margrave --release {}",
        "synthesize c.csv -s c.toml -e 1 --delta 1e-9 --release {}",
    ],
)
def test_a_ledger_or_journal_is_replaced_by_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert "is a ledger of" in refused(
        here, capsys, *command.format("o.ledger").split(), "--overwrite"
    )
    assert "is a journal of" in refused(
        here, capsys, *command.format("j.journal").split(), "--overwrite"
    )


def test_nor_in_python(here: Path) -> None:
    books = Path("o.ledger").read_bytes()
    for write in (
        lambda path: fake_model.release().save(path, overwrite=True),
        lambda path: write_report(fake_model.release(), path, overwrite=True),
        lambda path: Schema.coded({"age": 2}).save(path, overwrite=True),
        lambda path: write_table(pa.table({"age": [1]}), path, overwrite=True),
    ):
        for path in ("o.ledger", "j.journal"):
            with pytest.raises(InputError, match="which no output replaces"):
                write(path)
    assert Path("o.ledger").read_bytes() == books


def test_what_is_no_plain_file_is_not_replaced(here: Path) -> None:
    os.mkfifo("pipe")
    with (
        pytest.raises(InputError, match="not a regular file"),
        written_whole("pipe", overwrite=True),
    ):
        pass


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("synthesize c.csv -s c.toml -e 1 --delta 1e-9 --release x.html", ".margrave"),
        ("synthesize c.csv -s c.toml -e 1 --delta 1e-9 --report x.pdf", ".html"),
        ("report r.margrave -o x.pdf", ".html"),
        ("refit r.margrave --release x.zip", ".margrave"),
    ],
)
def test_the_endings_are_those_that_are_named(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, ending: str
) -> None:
    said = refused(here, capsys, *command.split())
    assert f"does not end in {ending}. Name it so: x{ending}." in said


def test_what_compiled_libraries_print_is_no_output(tmp_path: Path) -> None:
    """SciPy's solver prints a line now and then, which --json must not hold."""
    code = (
        "import os; from margrave.cli.main import own_output; own_output();"
        " os.write(1, b'a line of a library\\n'); print('the result')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "the result\n"
    assert "a line of a library" in done.stderr
    closed = subprocess.run(
        ["/bin/sh", "-c", f'{sys.executable} -c "{code}" 2>&-'], capture_output=True, text=True
    )
    assert "the result" in closed.stdout
