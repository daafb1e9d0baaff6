"""Whatever was paid for is kept: a fit that fails, an output that cannot be written, a model of an unknown kind."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave import AddRemoveRow, Ledger, UnfinishedError, synthesize
from margrave.accounting import Budget, store
from margrave.cli import synthesize as command
from margrave.cli.main import run
from margrave.errors import DataError, LedgerError, ReleaseError
from margrave.mechanisms import AIM, MECHANISMS, MST, GaussianMechanism, Independent
from margrave.models import GraphicalFit, NoModel
from margrave.privacy import Gaussian
from margrave.release import Release
from margrave.report import Page, write_report
from margrave.schema import Schema
from tests.support import fake_model, vfs
from tests.support.rounds import WrappedFit

SCHEMA = Schema.coded({"age": 4, "sex": 2, "job": 3})
SPENDS = {"epsilon": 1.0, "delta": 1e-6}
RUN = ["synthesize", "t.csv", "-s", "s.toml", "-e", "1", "--delta", "1e-6"]
SECRET = "hunter2"


def rows(n: int = 400) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({a: rng.integers(0, k, n) for a, k in (("age", 4), ("sex", 2), ("job", 3))})


class BreaksAfter(WrappedFit):
    """A graphical fit that raises at a call, the first being 0, with a text that must not be repeated."""

    def __init__(self, calls: int, error: type[Exception] = ValueError) -> None:
        super().__init__(GraphicalFit())
        self.left, self.error = calls, error

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error(SECRET)

    def update(self, *args: Any, **more: Any) -> Any:
        self._count()
        return super().update(*args, **more)

    def finish(self, *args: Any, **more: Any) -> Any:
        self._count()
        return super().finish(*args, **more)


def failed(mechanism: Any, **more: Any) -> UnfinishedError:
    with pytest.raises(UnfinishedError) as caught:
        synthesize(rows(), SCHEMA, **SPENDS, mechanism=mechanism, **more)
    return caught.value


def test_a_fit_that_fails_leaves_a_release(tmp_path: Path) -> None:
    """All of the budget is spent by then: the answers must be there to fit another model to."""
    error = failed(GaussianMechanism(fit=BreaksAfter(0)))
    assert error.exit_code == 10
    assert SECRET not in str(error)
    assert "ValueError in test_unfinished.py, line" in str(error)
    kept = error.release
    assert kept.account.rho_spent == kept.account.rho_budget
    assert len(kept.transcript.measurements) == 1
    kept.save(tmp_path / "r.margrave")
    back = Release.load(tmp_path / "r.margrave")
    assert "ValueError" in back.no_model == kept.no_model
    assert SECRET not in json.dumps(back.certificate())
    assert np.array_equal(
        back.transcript.measurements[0].values, kept.transcript.measurements[0].values
    )
    assert back.intervals(["age", "job"]).estimate.shape == (4, 3)
    assert back.certificate()["no_model"] == back.no_model
    assert back.certificate()["rho"]["spent"] == back.certificate()["rho"]["budget"]
    assert back.provenance.stopped_early is False
    fitted = back.refit("graphical", seed=0)
    assert not fitted.no_model
    assert fitted.sample(20, seed=0).num_rows == 20
    write_report(back, tmp_path / "r.html")
    assert "no model" in (tmp_path / "r.html").read_text()


def test_a_run_that_stops_half_way_says_what_was_spent() -> None:
    error = failed(AIM(fit=BreaksAfter(3)))
    account = error.release.account
    assert 0 < account.rho_spent < account.rho_budget
    assert sum(d.rho for d in account.debits) == account.rho_spent
    assert error.release.provenance.stopped_early is True
    assert f"rho {float(account.rho_spent):.6g} of" in str(error)
    assert error.release.refit("graphical", seed=0).marginal(["age"]).values.shape == (4,)


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, KeyError])
def test_every_kind_of_failure_is_kept(error: type[Exception]) -> None:
    assert error.__name__ in str(failed(MST(fit=BreaksAfter(1, error))))


def test_a_failure_before_anything_is_spent_is_what_it_was() -> None:
    class Early(MST):
        def run(self, private: Any, **more: Any) -> Any:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        synthesize(rows(), SCHEMA, **SPENDS, mechanism=Early())
    with pytest.raises(DataError):
        synthesize(rows(0), SCHEMA, **SPENDS)


def test_an_interrupt_stays_one() -> None:
    class Interrupted(MST):
        def run(self, private: Any, **more: Any) -> Any:
            private.measure([("age",)], Gaussian(rho=private.rho))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthesize(rows(), SCHEMA, **SPENDS, mechanism=Interrupted())


WITHOUT = {
    "sample": lambda r: r.sample(5),
    "sample without a number": lambda r: r.sample(),
    "codes": lambda r: r.codes(5),
    "marginal": lambda r: r.marginal(["age"]),
    "condition": lambda r: r.condition({"sex": 1}),
    "complete": lambda r: r.complete(pa.table({"sex": [0, 1]}), attestation="public"),
    "draws": lambda r: r.draws(2, rows=5),
    "bounds": lambda r: r.bounds(),
    "equivalent_sample_size": lambda r: r.equivalent_sample_size(),
}


@pytest.mark.parametrize("what", WITHOUT)
def test_what_needs_a_model_says_how_to_make_one(what: str) -> None:
    kept = fake_model.release().without_model("the run failed (ValueError)")
    with pytest.raises(
        ReleaseError, match=r"has no model: the run failed .ValueError.. Fit one .*refit"
    ):
        WITHOUT[what](kept)
    assert kept.misfit == ()


def test_a_reason_is_one_printable_line() -> None:
    model = NoModel(SCHEMA.domain, 1.0, "two\nlines \x1b[31m and " + "x" * 1000 + ".")
    assert model.absent.isprintable()
    assert len(model.absent) <= 400
    assert model.absent.endswith("x…")
    assert NoModel(SCHEMA.domain, 1.0, "One. Two. " + "x" * 1000).absent == "One. Two"


# A kind of model that this installation does not know.


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "foreign.margrave"
    fake_model.release().save(path)  # its model's kind is not registered
    return path


def test_a_model_of_an_unknown_kind_leaves_the_answers(foreign: Path, tmp_path: Path) -> None:
    made, back = fake_model.release(), Release.load(foreign)
    assert "'fake'" in back.no_model
    assert back.account == made.account
    assert len(back.transcript) == len(made.transcript)
    assert back.certificate()["rho"]["spent"]["exact"] == str(made.account.rho_spent)
    assert not back.refit("graphical", seed=0).no_model
    with pytest.raises(ReleaseError, match="does not know"):
        back.sample(3)
    back.save(tmp_path / "again.margrave")
    assert (tmp_path / "again.margrave").read_bytes() == foreign.read_bytes(), (
        "the model is still in it"
    )


def test_commands_on_a_release_without_a_model(
    foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["certificate", str(foreign)]) == 0
    assert "No model" in capsys.readouterr().out
    assert run(["report", str(foreign), "-o", str(tmp_path / "r.html")]) == 0
    assert run(["sample", str(foreign), "-o", str(tmp_path / "r.csv"), "-n", "3"]) == 7
    assert "margrave refit" in capsys.readouterr().err
    assert run(["refit", str(foreign), "--release", str(tmp_path / "n.margrave")]) == 0
    assert (
        run(["sample", str(tmp_path / "n.margrave"), "-o", str(tmp_path / "r.csv"), "-n", "3"]) == 0
    )


# The command line.


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table = rows()
    lines = zip(*(table[a].to_pylist() for a in ("age", "sex", "job")), strict=True)
    Path("t.csv").write_text("age,sex,job\n" + "".join(f"{a},{s},{j}\n" for a, s, j in lines))
    SCHEMA.save("s.toml")
    return tmp_path


@dataclass(frozen=True, kw_only=True)
class Breaks(GaussianMechanism):
    """The Gaussian mechanism, whose fit fails as long as there is a file called broken."""

    def run(self, private: Any, **more: Any) -> Release:
        made = super().run(private, **more)
        if Path("broken").exists():
            raise ValueError(SECRET)
        return made


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


@pytest.fixture
def breaks(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(MECHANISMS, "gaussian", Breaks)
    Path("broken").touch()
    return here


def test_the_release_of_a_failed_fit_is_written(
    breaks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*RUN, "-m", "gaussian", "--release", "r.margrave", "--report", "r.html"]
    assert run(asked) == 10
    said = capsys.readouterr().err
    assert SECRET not in said
    assert "margrave refit r.margrave --release NEW.margrave" in said
    assert "go on by the same command with --resume." in said
    assert names(breaks) == {"t.csv", "s.toml", "broken", "r.margrave", "r.margrave.journal"}
    kept = Release.load("r.margrave")
    assert kept.no_model
    Path("broken").unlink()
    assert run([*asked, "--resume", "--overwrite"]) == 0
    again = Release.load("r.margrave")
    assert not again.no_model
    assert np.array_equal(
        again.transcript.measurements[0].values, kept.transcript.measurements[0].values
    )
    assert "r.margrave.journal" not in names(breaks)


def test_it_is_rescued_beside_the_first_output(
    breaks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("r.html.margrave").write_text("another")
    assert run([*RUN, "-m", "gaussian", "--report", "r.html", "--json"]) == 10
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] == 10
    assert "margrave refit r.html.2.margrave" in told["remedy"]
    assert Path("r.html.margrave").read_text() == "another"
    assert Release.load("r.html.2.margrave").no_model
    assert run(["refit", "r.html.2.margrave", "--release", "n.margrave"]) == 0


def test_a_failed_run_keeps_its_place_in_the_ledger(breaks: Path) -> None:
    Ledger("l.ledger").init("d", unit=AddRemoveRow(), cap=Budget.approx(1.0, 1e-6))
    asked = [
        *RUN,
        "-m",
        "gaussian",
        "--release",
        "r.margrave",
        "--ledger",
        "l.ledger",
        "--dataset",
        "d",
    ]
    assert run(asked) == 10
    Path("broken").unlink()
    assert run([*asked, "--resume", "--overwrite"]) == 0, "the cap has room for one run alone"
    (found,) = Ledger("l.ledger").datasets()
    assert found.charged == Release.load("r.margrave").account.rho_spent


class UsedByAnother(Independent):
    """Independent columns after one more measurement. Between the two, if there is a file called busy, another program
    begins to write to the ledger and does not end.
    """

    def run(self, private: Any, **more: Any) -> Release:
        private.measure([("sex",)], Gaussian(rho=private.remaining / 4))
        if Path("busy").exists():
            OTHERS.append(sqlite3.connect("l.ledger", isolation_level=None))
            OTHERS[0].execute("BEGIN EXCLUSIVE")
        return super().run(private, **more)


OTHERS: list[sqlite3.Connection] = []


def test_a_ledger_that_is_in_use_in_the_middle_of_a_run_says_how_to_go_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Ledger("l.ledger").init("d", unit=AddRemoveRow(), cap=Budget.approx(1.0, 1e-6))
    books = ["--ledger", "l.ledger", "--dataset", "d"]
    asked = [*RUN, "-m", "independent", "-o", "r.csv", *books]
    monkeypatch.setitem(MECHANISMS, "independent", UsedByAnother)
    monkeypatch.setattr(store, "TIMEOUT_SECONDS", 0.05)
    Path("busy").touch()
    try:
        assert run(asked) == LedgerError.exit_code
    finally:
        while OTHERS:
            OTHERS.pop().close()
    said = " ".join(capsys.readouterr().err.split())
    assert "l.ledger is in use" in said
    assert "All answers so far are in r.csv.journal: after that, --resume (in Python" in said
    Path("busy").unlink()
    (before,) = Ledger("l.ledger").datasets()
    assert run([*asked, "--resume"]) == 0, "the cap has room for one run alone"
    (after,) = Ledger("l.ledger").datasets()
    assert 0 < before.runs[0].debited < after.runs[0].debited == after.charged


@pytest.mark.parametrize("output", ["-o", "--report"])
def test_an_output_that_cannot_be_written_leaves_release_and_journal(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    path = {"-o": "r.csv", "--report": "r.html"}[output]

    def full(*args: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*((command, "write_table") if output == "-o" else (Page, "save")), full)
        assert run([*RUN, output, path]) == 70
        said = capsys.readouterr().err
    assert f"{path}.margrave" in said
    assert (
        f"{path}.journal: once the cause is gone, go on by the same command with --resume." in said
    )
    kept = Release.load(f"{path}.margrave")
    assert not kept.no_model
    assert run([*RUN, output, path, "--resume"]) == 0
    assert Path(path).exists()
    assert not Path(f"{path}.journal").exists()


def test_a_full_disk_leaves_the_journal(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing but the journal, which was there before, can be written."""
    replaced = os.replace

    def full(source: Any, target: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert run([*RUN, "-o", "r.csv"]) == 2
    said = capsys.readouterr().err
    assert "r.csv could not be written (No space left on device)" in said
    assert "go on by the same command with --resume." in said
    assert names(here) == {"t.csv", "s.toml", "r.csv.journal"}
    monkeypatch.setattr(os, "replace", replaced)
    assert run([*RUN, "-o", "r.csv", "--resume"]) == 0
    assert names(here) == {"t.csv", "s.toml", "r.csv"}


def test_a_model_that_cannot_be_written_is_left_out(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Odd(MST):
        def run(self, private: Any, **more: Any) -> Release:
            made = super().run(private, **more)
            model: Any = fake_model.TableModel(SCHEMA.domain, np.full((4, 2, 3), object()))
            return replace(made, model=model)

    monkeypatch.setitem(MECHANISMS, "mst", Odd)
    assert run([*RUN, "-m", "mst", "--release", "r.margrave"]) == 70
    assert "r.margrave" in capsys.readouterr().err
    assert "could not be written" in Release.load("r.margrave").no_model


def test_a_journal_is_the_owners_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def look(*args: Any, **more: Any) -> Any:
        seen.update({p.name: stat.S_IMODE(p.stat().st_mode) for p in here.glob("*.journal")})
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "write_table", look)
    os.umask(os.umask(0o022))
    assert run([*RUN, "-o", "r.csv"]) == 130
    assert seen == {"r.csv.journal": 0o600}


def test_without_resume_an_unfinished_run_is_not_begun_anew(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            command, "write_table", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt())
        )
        assert run([*RUN, "-o", "r.csv"]) == 130
    assert "with --resume" in capsys.readouterr().err
    assert run([*RUN, "-o", "r.csv"]) == LedgerError.exit_code
    assert "--resume" in capsys.readouterr().err


@pytest.mark.skipif(not vfs.available(), reason="SQLite's VFS cannot be wrapped")
def test_a_journal_that_cannot_be_begun_stops_the_run_before_it_spends(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = vfs.Watched(lambda call, *_: vfs.FULL if call == "write" else 0)
    try:
        assert run([*RUN, "-o", "r.csv"]) == LedgerError.exit_code
    finally:
        disk.remove()
    assert "r.csv.journal could not be written" in capsys.readouterr().err
    assert Path("r.csv.journal").read_bytes() == b""
    assert run([*RUN, "-o", "r.csv"]) == 0  # an empty journal is in nobody's way
