"""The custodian's commands: set a cap, run, look, stop and go on, close."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import margrave.api
import margrave.cli.synthesize
import margrave.run
from margrave.accounting import AddRemoveRow, Budget, Ledger
from margrave.cli.main import run
from margrave.errors import BudgetError, InputError, LedgerError
from margrave.release import Release
from margrave.schema import Integer, Schema
from margrave.transcript import Measurement
from tests.support.chained import events

RUN = ["synthesize", "table.csv", "-s", "schema.toml", "--epsilon", "1", "--delta", "1e-9"]
BOOKS = ["--ledger", "v.ledger", "--dataset", "visits"]


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """A folder with a table, its schema, and a ledger with room for two runs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = zip(*(rng.integers(0, size, 500) for size in (4, 2, 3)), strict=True)
    (tmp_path / "table.csv").write_text(
        "age,sex,job\n" + "".join(f"{a},{s},{j}\n" for a, s, j in rows)
    )
    Schema.coded({"age": 4, "sex": 2, "job": 3}).save("schema.toml")
    cap = str(2 * Budget.approx(1.0, 1e-9).rho)
    assert (
        run(
            [
                "ledger",
                "init",
                "v.ledger",
                "--dataset",
                "visits",
                "--unit",
                "add-remove-row",
                "--rho",
                cap,
            ]
        )
        == 0
    )
    capsys.readouterr()
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["ledger", "show", "v.ledger", "--json"]) == 0
    (dataset,) = json.loads(capsys.readouterr().out)["datasets"]
    found: dict[str, Any] = dataset
    return found


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Ctrl-C in the place of the so-manieth draw of the next run."""
    draw, drawn = margrave.privacy.SystemRandomness.gaussian, [0]

    def gaussian(self: Any, counts: Any, scale: float) -> Any:
        drawn[0] += 1
        if drawn[0] > after:
            raise KeyboardInterrupt
        return draw(self, counts, scale)

    monkeypatch.setattr(margrave.privacy.SystemRandomness, "_tested", True)
    monkeypatch.setattr(margrave.privacy.SystemRandomness, "gaussian", gaussian)


def test_caps(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init = ["ledger", "init", "w.ledger", "--dataset"]
    assert (
        run(
            [
                *init,
                "a",
                "--epsilon",
                "1",
                "--delta",
                "1e-6",
                "--unit",
                "replace-person:3",
                "--json",
            ]
        )
        == 0
    )
    made = json.loads(capsys.readouterr().out)
    assert Fraction(made["cap"]["rho"]) == Budget.approx(1.0, 1e-6).rho
    assert (made["unit"], made["cap"]["epsilon"], made["cap"]["delta"]) == (
        "replace-person:3",
        1.0,
        1e-6,
    )
    for text, rho in (("1/7", Fraction(1, 7)), ("0.1", Fraction(1, 10)), ("2", Fraction(2))):
        assert run([*init, text, "--rho", text, "--unit", "add-remove-row"]) == 0
        assert Ledger("w.ledger").datasets()[-1].cap.rho == rho
    before = Path("w.ledger").read_bytes()
    for wrong in (
        ["a", "--rho", "1"],
        ["b"],
        ["b", "--epsilon", "1"],
        ["b", "--epsilon", "1", "--delta", "2"],
        ["b", "--epsilon", "1", "--delta", "1e-9", "--rho", "1"],
        ["b", "--rho", "0"],
        ["b", "--rho", "1e999999999"],
        ["b", "--rho", "1/0"],
        ["b", "--rho", "1", "--unit", "person"],
        [" ", "--rho", "1"],
    ):
        unit = [] if "--unit" in wrong else ["--unit", "add-remove-row"]
        assert run([*init, *wrong, *unit]) == 2, wrong
    capsys.readouterr()
    assert (
        run([*init, "b", "--rho", "1"]) == 2
    )  # a promise about rows would be taken for one about persons
    assert "--unit" in capsys.readouterr().err
    assert Path("w.ledger").read_bytes() == before
    rest = ["--dataset", "a", "--rho", "1", "--unit", "add-remove-row"]
    assert run(["ledger", "init", "none/w.ledger", *rest]) == 2
    assert run(["ledger", "init", "table.csv", *rest]) == 8
    assert run(["ledger", "show", "none.ledger"]) == 8


@pytest.mark.parametrize(
    ("numbers", "warned"), [(["1e-9", "3"], 0), (["0.5", "3"], 1), (["0.5", "30"], 2)]
)
def test_a_weak_cap_is_warned_of(
    here: Path, capsys: pytest.CaptureFixture[str], numbers: list[str], warned: int
) -> None:
    delta, epsilon = numbers
    rest = ["--dataset", "a", "--epsilon", epsilon, "--delta", delta, "--unit", "replace-row"]
    assert run(["ledger", "init", "w.ledger", *rest]) == 0
    assert capsys.readouterr().err.count("Warning: ") == warned


def test_a_cap_that_nothing_is_charged_against_can_be_replaced(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    init = [
        "ledger",
        "init",
        "v.ledger",
        "--dataset",
        "visits",
        "--epsilon",
        "2",
        "--delta",
        "1e-9",
    ]
    assert run([*init, "--unit", "replace-row"]) == 2
    assert "--replace" in capsys.readouterr().err
    assert run([*init, "--unit", "replace-row", "--replace"]) == 0
    assert shown(capsys)["unit"] == "replace-row"
    assert run([*RUN, *BOOKS, "-m", "independent", "--release", "r.margrave"]) == 2
    said = capsys.readouterr().err
    assert "does not bound the two together" in said
    assert "Nothing is charged yet: --replace" in said
    assert "run with" not in said  # the other unit may promise less
    assert run([*init, "--unit", "add-remove-row", "--replace"]) == 0
    with monkeypatch.context() as context:  # a run that is open holds its reservation
        interrupted(context, after=4)
        assert run([*RUN, *BOOKS, "--release", "r.margrave"]) == 130
    (held,) = shown(capsys)["runs"]
    for close in (False, True):
        if close:
            assert run(["ledger", "close", "v.ledger", held["run"]]) == 0
        capsys.readouterr()
        assert run([*init, "--unit", "replace-row", "--replace"]) == 2
        assert "a cap stays as it is" in capsys.readouterr().err
    assert run([*RUN, *BOOKS, "--unit", "replace-row", "--release", "s.margrave"]) == 2
    said = capsys.readouterr().err
    assert "docs/ledger.md gives what they come to." in said
    assert "--replace" not in said


def test_two_runs_fit_and_a_third_does_not(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(2):
        assert run([*RUN, *BOOKS, "-m", "independent", "--release", f"{i}.margrave"]) == 0
    found = shown(capsys)
    assert found["charged"]["rho"] == found["cap"]["rho"]
    assert [r["state"] for r in found["runs"]] == ["closed", "closed"]
    before = sorted(here.iterdir()), Path("v.ledger").read_bytes()
    assert run([*RUN, *BOOKS, "--release", "2.margrave"]) == 5
    assert "0 remains" in capsys.readouterr().err
    assert (sorted(here.iterdir()), Path("v.ledger").read_bytes()) == before
    assert not list(here.glob("*.journal"))
    assert run(["ledger", "show", "v.ledger"]) == 0
    said = capsys.readouterr().out
    assert "visits" in said
    assert found["runs"][1]["run"] in said


def test_stopped_and_gone_on_with(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        interrupted(context, after=4)
        assert run([*RUN, *BOOKS, "--release", "r.margrave"]) == 130
    assert "--resume" in capsys.readouterr().err
    assert not Path("r.margrave").exists()
    found = shown(capsys)
    assert found["runs"][0]["state"] == "open"
    assert found["charged"]["rho"] == found["runs"][0]["reserved"]["rho"]
    stored = events(Path("r.margrave.journal"))
    assert run(["ledger", "show", "v.ledger"]) == 0
    assert "r.margrave.journal" in "".join(capsys.readouterr().out.split("\n"))

    assert run([*RUN, *BOOKS, "--release", "r.margrave"]) == 8
    said = capsys.readouterr().err
    assert "unfinished run" in said
    assert "--resume" in said
    assert "margrave ledger close" in said
    for other in (
        ["-m", "mst"],
        ["--unit", "replace-row"],
        ["--workload", "all-1way"],
        ["--seed", "3"],
    ):
        assert run([*RUN, *BOOKS, "--release", "r.margrave", "--resume", *other]) == 8, other
        assert "another run" in capsys.readouterr().err

    assert run([*RUN, *BOOKS, "--release", "r.margrave", "--resume"]) == 0
    release = Release.load("r.margrave")
    assert release.account.rho_spent == release.account.rho_budget
    asked = [line["question"]["what"] for line in stored if line.get("event") == "question"]
    assert [d.what for d in release.account.debits][: len(asked)] == asked
    found = shown(capsys)
    assert len(found["runs"]) == 1
    assert found["charged"]["rho"] == str(release.account.rho_spent)
    assert not Path("r.margrave.journal").exists()


def test_a_run_goes_on_with_its_own_table(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of two tables would stand under one certificate."""
    rows = Path("table.csv").read_text().splitlines()
    Path("other.csv").write_text("\n".join([*rows, *rows[1:], ""]))
    with monkeypatch.context() as context:
        interrupted(context, after=3)
        assert run([*RUN, *BOOKS, "--release", "r.margrave"]) == 130
    journal = Path("r.margrave.journal").read_bytes()
    assert str(here).encode() not in journal
    other = [w.replace("table.csv", "other.csv") for w in RUN]
    capsys.readouterr()
    assert run([*other, *BOOKS, "--release", "r.margrave", "--resume"]) == 8
    said = capsys.readouterr().err
    assert "another table: one that stood elsewhere than other.csv" in said
    assert "--same-table" in said
    frame = pyarrow.csv.read_csv("table.csv")
    again: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-9,
        "ledger": "v.ledger",
        "dataset": "visits",
    }
    again |= {"journal": "r.margrave.journal", "resume": True}
    for table in ("other.csv", frame):
        with pytest.raises(LedgerError, match="another table"):
            margrave.synthesize(table, "schema.toml", **again)
    assert Path("r.margrave.journal").read_bytes() == journal
    Path("table.csv").rename("moved.csv")
    moved = [w.replace("table.csv", "moved.csv") for w in RUN]
    assert (
        run([*moved, *BOOKS, "--release", "new.margrave", "--same-table"]) == 2
    )  # of a run that goes on alone
    assert run([*moved, *BOOKS, "--release", "r.margrave", "--resume"]) == 8
    assert run([*moved, *BOOKS, "--release", "r.margrave", "--resume", "--same-table"]) == 0


def _rewritten(table: Path) -> None:
    table.write_bytes(table.read_bytes())


def _replaced_by_an_older_file(table: Path) -> None:
    other = table.with_name("older")
    other.write_bytes(table.read_bytes())
    os.utime(other, (0, 0))
    other.replace(table)


def _database_appended_to(table: Path) -> None:
    Path("table.csv.wal").touch()


@pytest.mark.parametrize("change", [_rewritten, _replaced_by_an_older_file, _database_appended_to])
def test_a_run_does_not_go_on_with_files_that_changed(
    here: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    words: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "journal": "j", "mechanism": "mst"}
    with monkeypatch.context() as context:
        interrupted(context, after=2)
        with pytest.raises(KeyboardInterrupt):
            margrave.synthesize("table.csv", "schema.toml", **words)
    journal = Path("j").read_bytes()
    time.sleep(0.02)  # the clock of a file system ticks every few milliseconds
    change(Path("table.csv"))
    with pytest.raises(LedgerError, match=r"table\.csv was written or moved there after"):
        margrave.synthesize("table.csv", "schema.toml", resume=True, **words)
    assert Path("j").read_bytes() == journal
    margrave.synthesize("table.csv", "schema.toml", resume=True, same_table=True, **words)


def test_a_link_to_the_table_is_the_table_and_frames_stand_nowhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pyarrow.csv.read_csv("table.csv")
    Path("link.csv").symlink_to("table.csv")
    for begun, then in (("table.csv", Path("link.csv").absolute()), (frame, frame)):
        words: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "journal": "j", "mechanism": "mst"}
        with monkeypatch.context() as context:
            interrupted(context, after=2)
            with pytest.raises(KeyboardInterrupt):
                margrave.synthesize(begun, "schema.toml", **words)
        margrave.synthesize(then, "schema.toml", resume=True, **words)
        Path("j").unlink()


def test_an_earlier_journal_that_does_not_name_its_table_is_resumed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        interrupted(context, after=2)
        context.setattr(margrave.run, "place_of", lambda *_, **__: {})
        with pytest.raises(KeyboardInterrupt):
            margrave.synthesize("table.csv", "schema.toml", epsilon=1.0, delta=1e-9, journal="j")
    margrave.synthesize(
        "table.csv", "schema.toml", epsilon=1.0, delta=1e-9, journal="j", resume=True
    )


def test_given_up(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        interrupted(context, after=3)
        assert run([*RUN, *BOOKS, "--release", "r.margrave"]) == 130
    (held,) = shown(capsys)["runs"]
    assert run(["ledger", "close", "v.ledger", held["run"], "--json"]) == 0
    closed = json.loads(capsys.readouterr().out)
    assert Fraction(closed["debited"]) + Fraction(closed["given_back"]) == Fraction(
        held["reserved"]["rho"]
    )
    assert shown(capsys)["charged"]["rho"] == closed["debited"] == held["debited"]["rho"]
    assert run([*RUN, *BOOKS, "--release", "r.margrave", "--resume"]) == 8
    assert "closed" in capsys.readouterr().err
    assert run(["ledger", "close", "v.ledger", held["run"]]) == 2
    assert run(["ledger", "close", "v.ledger", "nobody"]) == 2


def test_a_release_that_could_not_be_written_is_made_again_for_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(Release, "save", full)
        assert run([*RUN, *BOOKS, "-m", "independent", "--release", "r.margrave"]) == 70
    charged = shown(capsys)["charged"]
    assert run([*RUN, *BOOKS, "-m", "independent", "--release", "r.margrave"]) == 8
    assert "no cost" in capsys.readouterr().err
    assert run([*RUN, *BOOKS, "-m", "independent", "--release", "r.margrave", "--resume"]) == 0
    assert shown(capsys)["charged"] == charged
    assert str(Release.load("r.margrave").account.rho_spent) == charged["rho"]


def test_a_journal_without_a_ledger(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        interrupted(context, after=4)
        assert run([*RUN, "--release", "r.margrave", "--journal", "kept"]) == 130
    assert run([*RUN, "--release", "r.margrave", "--resume"]) == 8
    assert "r.margrave.journal" in capsys.readouterr().err
    assert run([*RUN, "--release", "r.margrave", "--journal", "kept", "--resume"]) == 0
    assert not Path("kept").exists()


@pytest.mark.parametrize(
    ("extra", "code", "words"),
    [
        (["--ledger", "none.ledger", "--dataset", "visits"], 8, "none.ledger"),
        (["--ledger", "v.ledger"], 2, "which data set"),
        (["--ledger", "v.ledger", "--dataset", "other"], 2, "'other'"),
        (["--ledger", "v.ledger", "--dataset", "vists"], 2, "Did you mean 'visits'?"),
        (["--ledger", "half.ledger", "--dataset", "visits"], 8, "Do not begin a new ledger"),
        (["--dataset", "visits"], 2, "without a ledger"),
        (["--ledger", "table.csv", "--dataset", "visits"], 8, "not a margrave ledger"),
        ([*BOOKS, "--unit", "replace-row"], 2, "unit"),
        ([*BOOKS, "--journal", "out.margrave"], 2, "same file"),
        ([*BOOKS, "--journal", "v.ledger"], 2, "same file"),
        ([*BOOKS, "--journal", "table.csv"], 2, "same file"),
        (["--journal", "v.ledger"], 8, "not a margrave journal"),
        ([*BOOKS, "--journal", "none/j"], 2, "none"),
        (["--journal", "."], 8, "plain file"),
        (["--resume"], 8, "to resume from does not exist"),
        (["--policy", "none.toml"], 2, "none.toml"),
        (["--policy", "strict.toml"], 9, "max_epsilon"),
    ],
)
def test_bad_input_writes_and_spends_nothing(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    extra: list[str],
    code: int,
    words: str,
) -> None:
    Path("strict.toml").write_text("[policy]\nversion = 1\nmax_epsilon = 0.5\nmax_delta = 1e-6\n")
    Path("half.ledger").write_bytes(Path("v.ledger").read_bytes()[:5000])

    def counted(*_: Any) -> None:
        raise AssertionError("rows were counted")

    monkeypatch.setattr(margrave.data.MemoryTable, "count", counted)
    before = {p: p.read_bytes() for p in here.iterdir()}
    assert run([*RUN, "--release", "out.margrave", *extra]) == code
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert words in said
    assert {p: p.read_bytes() for p in here.iterdir()} == before


LONG = ["--mechanism", "mwem-pgm", "--rounds", "100"]
"""As many questions whatever the answers are: a run that cannot end before it is stopped."""


INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Tests that a shell runs in the background are started with Ctrl-C ignored, and would hand that on."""


def started(*extra: str) -> subprocess.Popen[bytes]:
    """A run in a process of its own that asks many questions, once some of its answers are stored."""
    words = ["-m", "margrave.cli", *RUN, *BOOKS, "--release", "r.margrave", *LONG, *extra]
    command = [sys.executable, "-c", INTERRUPTIBLE, *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    had = answered()
    while answered() < had + 5:
        assert time.monotonic() < until
        assert process.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.01)
    return process


def answered() -> int:
    journal = Path("r.margrave.journal")
    return journal.read_bytes().count(b'{"event":"answer"') if journal.exists() else 0


def test_killed_and_interrupted_from_outside(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """kill -9, then Ctrl-C while it is being resumed, then to the end: one run, paid once, no answer drawn again."""
    process = started()
    process.kill()
    process.wait()
    first = events(Path("r.margrave.journal"))
    process = started("--resume")
    process.send_signal(signal.SIGINT)
    asked_at = time.monotonic()
    assert process.wait() == 130
    assert time.monotonic() - asked_at < 5  # under a second where nothing else runs
    second = events(Path("r.margrave.journal"))
    assert second[: len(first)] == first
    assert run([*RUN, *BOOKS, "--release", "r.margrave", *LONG, "--resume"]) == 0
    found = shown(capsys)
    release = Release.load("r.margrave")
    assert [r["state"] for r in found["runs"]] == ["closed"]
    assert (
        found["charged"]["rho"] == str(release.account.rho_spent) == str(release.account.rho_budget)
    )
    texts = [t for line in second for t in line.get("values", [])]
    given = [_text(e) for e in release.transcript]
    assert len(texts) >= 10
    assert given[: len(texts)] == texts


def _text(entry: Any) -> str:
    """An answer as the journal keeps it."""
    answer = (
        entry.values
        if isinstance(entry, Measurement)
        else np.array(entry.candidates.index(entry.chosen))
    )
    return base64.b64encode(answer.astype("<i8").tobytes()).decode()


def test_releases_are_compared_with_the_ledger(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = Path("v.ledger").read_bytes()
    assert run([*RUN, *BOOKS, "-m", "independent", "--release", "0.margrave"]) == 0
    assert run([*RUN, "-m", "independent", "--release", "alone.margrave"]) == 0
    capsys.readouterr()
    assert run(["certificate", "0.margrave", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    charged = {k: v for k, v in facts["ledger_file"].items() if k in ("id", "dataset", "charged")}
    expected = Release.load("0.margrave").account.rho_budget
    assert charged == {
        "id": Ledger("v.ledger").identity(), "dataset": "visits",
        "charged": "/".join(map(str, expected.as_integer_ratio())),
    }  # fmt: skip
    assert run(["certificate", "0.margrave"]) == 0
    assert facts["ledger_file"]["head"] in "".join(capsys.readouterr().out.split())
    verify = ["ledger", "verify", "v.ledger", "0.margrave"]
    assert run(verify) == 0
    assert "the lines of 1 release" in capsys.readouterr().out
    assert run([*verify, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["releases"] == ["0.margrave"]
    assert run([*verify, "alone.margrave"]) == 8
    said = capsys.readouterr().err
    assert (
        "v.ledger has no lines of 1 release.\nalone.margrave: It was made without a ledger" in said
    )
    assert said.endswith(" Leave out alone.margrave.\n")
    assert "Restore" not in said
    Path("v.ledger").write_bytes(older)
    assert run(verify) == 8
    said = capsys.readouterr().err
    assert "contradicts 1 release" in said
    assert "0.margrave: It was made when the ledger had" in said
    assert said.endswith(" Restore the ledger that these releases were made under.\n")
    assert run(["ledger", "verify", "v.ledger"]) == 2


def test_schemas_and_sealed_runs_are_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Schema([Integer("age", 0, 3, outside="clip")]).save("sealed.toml")
    assert run(["ledger", "register-schema", "v.ledger", "visits", "sealed.toml"]) == 0
    digest = Schema.load("sealed.toml").hash()
    assert Ledger("v.ledger").schema_is_registered("visits", digest)
    for outcome in ("refused", "answered", "refused"):
        Ledger("v.ledger").record_attempt("visits", outcome)
    found = shown(capsys)
    assert found["schemas"] == [digest]
    assert [a["outcome"] for a in found["attempts"]] == ["refused", "answered", "refused"]
    assert run(["ledger", "show", "v.ledger"]) == 0
    said = capsys.readouterr().out
    assert digest in said
    assert "2 refused" in said
    assert run(["ledger", "register-schema", "v.ledger", "other", "sealed.toml"]) == 2
    assert run(["ledger", "register-schema", "v.ledger", "visits", "table.csv"]) == 3
    assert run(["ledger", "recover", "v.ledger", "--json"]) == 0


def test_a_schema_that_no_sealed_run_takes_is_not_registered(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Schema([Integer("age", 0, 99, outside="refuse")]).save("strict.toml")
    assert run(["ledger", "register-schema", "v.ledger", "visits", "strict.toml"]) == 3
    assert "'age' has the policy 'refuse'" in capsys.readouterr().err
    assert not shown(capsys)["schemas"]


def test_a_cap_without_thresholds_says_how_to_learn_categories(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cap = ["ledger", "init", "w.ledger", "--dataset", "w", "--unit", "add-remove-row", "-e", "1"]
    assert run(cap) == 2
    assert "1e-09 for up to 1,000,000 rows" in capsys.readouterr().err
    assert run([*cap, "--delta", "1e-9"]) == 0
    said = capsys.readouterr().out
    assert "--threshold-delta: 1e-10 for each release that is planned (5e-10 for five" in said
    rows = "".join(f"{'York' if i % 2 else 'Hull'},{i % 7}\n" for i in range(9000))
    (here / "towns.csv").write_text(f"town,age\n{rows}")
    words = ["synthesize", "towns.csv", "--accept-draft", "-e", "1", "--delta", "1e-10"]
    words += ["-m", "independent", "--ledger", "w.ledger", "--dataset", "w"]
    words += ["--release", "w.margrave"]
    before = (here / "w.ledger").read_bytes()
    assert run(words) == 5
    said = capsys.readouterr().err
    command = said.partition("set it anew: margrave ")[2].partition(". That is")[0]
    assert command.startswith("ledger init w.ledger --dataset w --unit add-remove-row --epsilon 1")
    assert (here / "w.ledger").read_bytes() == before
    assert run(command.split()) == 0
    assert run([*words, "--overwrite"]) == 0


def test_a_cap_for_five_releases_that_learn_categories(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five tenths of 1e-9 are more than 5e-10 by the rounding of floats."""
    unit = AddRemoveRow()
    words = ["--dataset", "w", "--unit", "add-remove-row", "-e", "3", "--delta", "1e-9"]
    assert run(["ledger", "init", "w.ledger", *words, "--threshold-delta", "5e-10"]) == 0
    assert "enough for 5 runs at delta 1e-09 that learn categories" in capsys.readouterr().out
    ledger, part = Ledger("w.ledger"), Fraction(1e-9 / 10)
    for _ in range(5):
        ledger.begin("w", unit, Fraction(1, 1000), threshold_delta=part)
    with pytest.raises(BudgetError, match="leaves delta = 0 for thresholds") as refused:
        ledger.check_cap("w", unit, Fraction(1, 1000), 1e-9, part)
    assert "margrave schema of RELEASE -o learned.toml" in str(refused.value.remedy)
    assert "smaller delta" not in str(refused.value.remedy)
    assert "--delta" not in str(refused.value.remedy)
    assert run(["ledger", "show", "w.ledger"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "would fit, if it learns no categories" in said
    assert "0 remains. A run can take the categories that an earlier release learned" in said


def test_what_is_left_for_thresholds_fits_a_run_of_a_smaller_delta(here: Path) -> None:
    unit, cap = AddRemoveRow(), Budget.approx(3.0, 1e-9, 1.37e-10)
    Ledger("w.ledger").init("w", unit=unit, cap=cap)
    ledger, rho = Ledger("w.ledger"), Fraction(1, 1000)
    ledger.begin("w", unit, rho, threshold_delta=Fraction(1e-10))
    with pytest.raises(BudgetError, match="for thresholds") as refused:
        ledger.check_cap("w", unit, rho, 1e-9, Fraction(1e-10))
    delta = float(str(refused.value.remedy).partition("--delta ")[2].partition(",")[0])
    assert 3.6e-10 < delta <= 3.7e-10
    said = str(ledger.datasets()[0].facts)
    assert re.search(r"no categories; one that learns them needs delta 3\.(6.|7)e-10 or less", said)
    ledger.check_cap("w", unit, rho, delta, Fraction(delta / 10))
    with pytest.raises(InputError, match=r"margrave ledger init w\.ledger --dataset x --unit UNIT"):
        ledger.check_cap("x", unit, rho)


def test_a_cap_with_room_for_thresholds_says_so_without_a_condition(here: Path) -> None:
    for path, part in (("one.ledger", 1e-10), ("five.ledger", 5e-10)):
        ledger = Ledger(path)
        ledger.init("w", unit=AddRemoveRow(), cap=Budget.approx(3.0, 1e-9, part))
        assert "categories" not in str(ledger.datasets()[0].facts)


def test_a_ledger_beside_a_run_that_is_not_charged_to_it_is_noted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Schema.coded({"age": 4}).save("age.toml")
    (here / "t.csv").write_text("age\n0\n1\n")
    (here / "books").mkdir()
    words = ["synthesize", "t.csv", "-s", "age.toml", "-e", "1", "--delta", "1e-9"]
    words += ["-m", "independent", "--release", "books/r.margrave", "--overwrite"]
    for path in here.glob("*.ledger"):
        path.unlink()
    assert run(words) == 0
    assert "ledger" not in capsys.readouterr().err
    Ledger("books/kept").init("ages", unit=AddRemoveRow(), cap=Budget.approx(3.0, 1e-9))
    assert run(words) == 0
    said = capsys.readouterr().err
    assert said.count("not charged to a ledger") == 1
    assert "give --ledger books/kept --dataset NAME" in said
    assert run([*words, "--ledger", "books/kept", "--dataset", "ages"]) == 0
    assert "not charged" not in capsys.readouterr().err
    Ledger("other").init("staff", unit=AddRemoveRow(), cap=Budget.approx(3.0, 1e-9))
    assert run(words) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "there are ledgers in other, books/kept. If one of them has a cap" in said
    assert "give --ledger FILE --dataset NAME; margrave ledger show FILE lists the names" in said


def test_a_spent_cap_names_what_is_still_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for left, remedy in ((0, "cost nothing"), (Fraction(1, 100), "Spend at most that.")):
        rho = Budget.approx(1.0, 1e-9).rho
        ledger = f"{left.numerator}.ledger"
        Ledger(ledger).init("visits", unit=AddRemoveRow(), cap=Budget.zcdp(rho + left, delta=1e-9))
        schema = Schema.coded({"age": 4})
        table = pa.table({"age": [0, 1, 2, 3]})
        spend: Any = {"epsilon": 1.0, "delta": 1e-9, "ledger": ledger, "dataset": "visits"}
        margrave.synthesize(table, schema, **spend, mechanism="independent")
        with pytest.raises(BudgetError) as refused:
            margrave.synthesize(table, schema, **spend, mechanism="independent")
        assert remedy in refused.value.remedy
