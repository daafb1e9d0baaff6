"""The ledger file: a cap that all runs keep together, and a file that is refused when it was meddled with."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from margrave.account import Account, Debit, LedgerHead
from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    Ledger,
    ReplaceRow,
    Unit,
    store,
)
from margrave.accounting.budget import epsilon_for
from margrave.cli.main import run
from margrave.errors import BudgetError, InputError, LedgerError, MargraveError
from margrave.privacy import Gaussian, Private, SeededRandomness, protect
from tests.support import chained, vfs
from tests.support.conformance import SIZES, memory_table, some_rows
from tests.support.faults import failing_statements

A = ("a",)
CAP = Budget.zcdp(Fraction(1))
TABLE = memory_table(SIZES, some_rows(SIZES, 9))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger file with one data set, "d", whose cap is rho = 1."""
    Ledger(tmp_path / "ledger").init("d", unit=AddRemoveRow(), cap=CAP)
    return tmp_path / "ledger"


def opened(path: Path, rho: Fraction, unit: Unit = AddRemoveRow(), dataset: str = "d") -> Private:
    budget = Budget.zcdp(rho)
    return protect(
        TABLE,
        unit=unit,
        budget=budget,
        randomness=SeededRandomness(1),
        ledger=path,
        dataset=dataset,
    )


def charged(path: Path) -> Fraction:
    return Ledger(path).datasets()[0].charged


# Caps.


def test_a_cap_in_epsilon_and_delta_is_converted_once(tmp_path: Path) -> None:
    file = Ledger(tmp_path / "ledger")
    file.init("one", unit=AddRemoveRow(), cap=Budget.approx(1.0, 1e-9))
    file.init("two", unit=ReplaceRow(), cap=Budget.zcdp(Fraction(1, 7), 1e-6))
    one, two = file.datasets()
    assert (one.dataset, one.unit, one.cap) == ("one", "add-remove-row", Budget.approx(1.0, 1e-9))
    assert (two.unit, two.cap.rho, two.remaining) == ("replace-row", Fraction(1, 7), Fraction(1, 7))
    assert two.cap.epsilon == epsilon_for(Fraction(1, 7), 1e-6)
    with pytest.raises(InputError, match="'one' already"):
        file.init("one", unit=AddRemoveRow(), cap=CAP)


def test_a_run_reserves_its_budget_and_gives_back_what_it_did_not_spend(path: Path) -> None:
    with opened(path, Fraction(3, 4)) as private:
        assert charged(path) == Fraction(3, 4)
        with pytest.raises(BudgetError, match=r"0\.75 is charged.*needs 0\.5.*held by unfinished"):
            opened(path, Fraction(1, 2))
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
        assert charged(path) == Fraction(3, 4)
    assert charged(path) == Fraction(1, 8)
    with opened(path, Fraction(7, 8)) as private:
        private.measure([A], Gaussian(rho=Fraction(7, 8)))
    with pytest.raises(BudgetError, match=r"1 is charged.*0 remains"):
        opened(path, Fraction(1, 10**12))
    (dataset,) = Ledger(path).datasets()
    assert [r.debits for r in dataset.runs] == [
        (Debit("measure a", Fraction(1, 8)),),
        (Debit("measure a", Fraction(7, 8)),),
    ]


def test_ten_tenths_fit_and_no_more(path: Path) -> None:
    for _ in range(10):
        with opened(path, Fraction(1, 10)) as private:
            private.measure([A], Gaussian(rho=Fraction(1, 10)))
    assert charged(path) == 1
    with pytest.raises(BudgetError):
        opened(path, Fraction(1, 10**14))


@pytest.mark.parametrize("unit", [ReplaceRow(), AddRemovePerson(2)])
def test_units_are_not_mixed(path: Path, unit: Unit) -> None:
    table = memory_table(SIZES, [(0, 0, 0)], [1])
    with pytest.raises(InputError, match="unit to add or remove one row"):
        protect(table, unit=unit, budget=Budget.zcdp(Fraction(1, 9)), ledger=path, dataset="d")
    assert Ledger(path).datasets()[0].runs == ()


def test_the_data_set_is_named_and_known(path: Path) -> None:
    with pytest.raises(InputError, match=r"no data set 'e'\. The ledger has: 'd'"):
        opened(path, Fraction(1, 9), dataset="e")
    budget = Budget.zcdp(Fraction(1, 9))
    with pytest.raises(InputError, match="which data set"):
        protect(TABLE, unit=AddRemoveRow(), budget=budget, ledger=path)
    with pytest.raises(InputError, match="without a ledger"):
        protect(TABLE, unit=AddRemoveRow(), budget=budget, dataset="d")
    with pytest.raises(LedgerError, match="no file"):
        opened(path.with_name("none"), Fraction(1, 9))
    assert not path.with_name("none").exists()
    with pytest.raises(InputError, match="usable"):
        Ledger(path).init("d\n", unit=AddRemoveRow(), cap=CAP)


def test_every_debit_is_in_the_file_before_its_answer_is_drawn(path: Path) -> None:
    seen = []

    class Watching:
        def describe(self) -> str:
            return "watching"

        def gaussian(self, counts: object, scale: float) -> object:
            seen.append([d.rho for d in Ledger(path).datasets()[0].runs[0].debits])
            return counts

        def choose(self, scores: object, temperature: Fraction) -> int:
            raise AssertionError

    budget = Budget.zcdp(Fraction(1, 2))
    source = Watching()
    with protect(
        TABLE, unit=AddRemoveRow(), budget=budget, randomness=source, ledger=path, dataset="d"
    ) as private:  # type: ignore[arg-type]
        private.measure([A], Gaussian(rho=Fraction(1, 4)))
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
    assert seen == [[Fraction(1, 4)], [Fraction(1, 4), Fraction(1, 8)]]


def test_a_run_left_by_an_exception_keeps_what_it_was_debited(path: Path) -> None:
    def fails(private: Private) -> None:
        with private:
            private.measure([A], Gaussian(rho=Fraction(1, 8)))
            raise KeyError("mine")

    with pytest.raises(KeyError):
        fails(opened(path, Fraction(1, 2)))
    assert charged(path) == Fraction(1, 8)


def test_closing_a_run_that_will_not_be_resumed(path: Path) -> None:
    private = opened(path, Fraction(1, 2))
    private.measure([A], Gaussian(rho=Fraction(1, 8)))
    (run,) = Ledger(path).datasets()[0].unfinished
    assert Ledger(path).close(run.run).charged == Fraction(1, 8) == charged(path)
    with pytest.raises(LedgerError, match="was closed"):
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
    assert len(private.transcript) == 1
    assert charged(path) == Fraction(1, 8)
    with pytest.raises(InputError, match="closed already"):
        Ledger(path).close(run.run)
    with pytest.raises(InputError, match="no run 'x'"):
        Ledger(path).close("x")


# What was meddled with.


def history(path: Path) -> list[chained.Row]:
    """Two runs, in lines."""
    for _ in range(2):
        with opened(path, Fraction(1, 4)) as private:
            private.measure([A], Gaussian(rho=Fraction(1, 8)))
            private.measure([A], Gaussian(rho=Fraction(1, 16)))
    return chained.rows(path)


def refused(path: Path, lines: list[chained.Row]) -> None:
    chained.put(path, [(i, *line[1:]) for i, line in enumerate(lines, 1)])
    before = path.read_bytes()
    for look in (lambda: Ledger(path).datasets(), lambda: opened(path, Fraction(1, 9))):
        with pytest.raises(LedgerError) as caught:
            look()
        assert str(path) in str(caught.value)
    assert path.read_bytes() == before, "a damaged file was written to"


def test_lines_taken_out_doubled_moved_or_changed(path: Path) -> None:
    lines = history(path)
    assert len(lines) == 13
    for i in range(len(lines) - 1):
        refused(path, lines[:i] + lines[i + 1 :])
        refused(path, [*lines[:i], lines[i], *lines[i:]])
        refused(path, [*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]])
    for i, (number, text, head) in enumerate(lines):
        for at in range(0, len(text), 17):
            changed = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
            refused(path, [*lines[:i], (number, changed, head), *lines[i + 1 :]])


def test_a_byte_changed_anywhere_is_found_or_of_no_effect(path: Path) -> None:
    history(path)
    sound, before = path.read_bytes(), Ledger(path).datasets()
    found = 0
    for at in range(0, len(sound), 23):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        try:
            assert Ledger(path).datasets() == before, at
        except LedgerError:
            found += 1
    assert found > 100


def test_text_that_is_not_utf8_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE line SET event = CAST(x'7bff7d' AS TEXT)")
    with pytest.raises(LedgerError, match="line 1: it was changed"):
        Ledger(path).datasets()


def test_the_last_lines_lost_without_a_word_are_missed(path: Path) -> None:
    """The file names its last line, so that a leaf of its tree cannot be lost."""
    history(path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM line WHERE number = 13")
    with pytest.raises(LedgerError, match="cut short"):
        Ledger(path).datasets()


def test_lines_of_another_ledger_do_not_fit(path: Path, tmp_path: Path) -> None:
    lines = history(path)
    other = tmp_path / "other"
    Ledger(other).init("d", unit=AddRemoveRow(), cap=CAP)
    theirs = history(other)
    refused(path, [*lines[:6], *theirs[6:]])
    refused(path, [*lines, *theirs[1:]])
    refused(path, theirs)


def test_a_truncated_ledger_is_never_a_new_one(path: Path) -> None:
    history(path)
    whole = path.read_bytes()
    for size in (*range(1, 100, 9), *range(512, len(whole), 512)):
        path.write_bytes(whole[:size])
        for look in (
            lambda: Ledger(path).datasets(),
            lambda: opened(path, Fraction(1, 9)),
            lambda: Ledger(path).init("e", unit=AddRemoveRow(), cap=CAP),
        ):
            with pytest.raises(LedgerError):
                look()
        assert path.read_bytes() == whole[:size]
    path.write_bytes(b"")
    for look in (
        lambda: Ledger(path).datasets(),
        lambda: opened(path, Fraction(1, 9)),
        lambda: Ledger(path).recover(),
        lambda: Ledger(path).record_attempt("d", "refused"),
    ):
        with pytest.raises(LedgerError, match=r"is not a margrave ledger\. It is empty"):
            look()
    assert path.read_bytes() == b""


def test_other_tables_triggers_and_formats_are_refused(path: Path) -> None:
    sound = path.read_bytes()
    for statement, words in (
        ("CREATE TABLE more (a)", "not a margrave ledger"),
        (
            "CREATE TRIGGER t AFTER INSERT ON line BEGIN DELETE FROM line WHERE number > 1; END",
            "not a margrave ledger",
        ),
        ("DROP TABLE line", "not a margrave ledger"),
        ("DELETE FROM meta", "not a margrave ledger"),
        ("PRAGMA application_id = 1", "not a margrave ledger"),
        ("PRAGMA user_version = 2", "is of version 2 .* reads version 1"),
        ("UPDATE meta SET id = 'x'", "line 1"),
    ):
        path.write_bytes(sound)
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(statement)
        for look in (Ledger(path).datasets, lambda: opened(path, Fraction(1, 9))):
            with pytest.raises(LedgerError, match=words):
                look()


def test_a_file_of_text_is_not_a_ledger(path: Path) -> None:
    text = b'{"format":"margrave-ledger","version":1,"id":"0123456789abcdef"}\n'
    path.write_bytes(text)
    for look in (Ledger(path).datasets, lambda: opened(path, Fraction(1, 9))):
        with pytest.raises(LedgerError, match="not a margrave ledger"):
            look()
    assert path.read_bytes() == text


@pytest.mark.parametrize("name", ["D", " d", "d ", "\uff44"])
def test_names_that_look_alike_are_one_data_set(path: Path, name: str) -> None:
    with pytest.raises(InputError, match="bound nothing: name it 'd'"):
        Ledger(path).init(name, unit=AddRemoveRow(), cap=CAP)
    assert len(Ledger(path).datasets()) == 1


OPEN = {
    "event": "open", "run": "r", "dataset": "d", "rho": "1/9", "day": "2026-01-01", "journal": None, "charged": "35/72",
}  # fmt: skip
OF_D = {"event": "dataset", "dataset": "d", "unit": "replace-row", "day": "", "charged": "0/1"}


@pytest.mark.parametrize(
    "event",
    [
        {**OPEN, "rho": "2"},
        {**OPEN, "dataset": "e"},
        {**OPEN, "rho": "1e-3"},
        {**OPEN, "rho": "1/0"},
        {**OPEN, "rho": "0"},
        {**OPEN, "journal": 1},
        {**OPEN, "charged": "3/8"},
        {**OPEN, "charged": ["35/72"]},
        {k: v for k, v in OPEN.items() if k != "charged"},
        {"event": "debit", "run": "r", "number": 0, "what": "x", "rho": "1/9"},
        {"event": "answer", "run": "r", "number": 0, "sha256": "0" * 64},
        {**OF_D, "rho": "9", "epsilon": 9, "delta": 1},
        {**OF_D, "dataset": "n", "unit": "persons", "rho": "9", "epsilon": 9, "delta": 1},
        {"event": "schema", "dataset": "d", "sha256": "abc", "day": ""},
        {"event": "attempt", "dataset": "e", "outcome": "refused", "day": ""},
        {"event": "party"},
    ],
)
def test_sums_that_no_run_could_have_made_are_refused(path: Path, event: dict[str, Any]) -> None:
    """A chain can be recomputed by whoever wants to; the sums must still be right."""
    history(path)
    before = chained.events(path)
    chained.put_events(path, "ledger", [*before, OPEN])
    assert Ledger(path).datasets()[0].charged == Fraction(35, 72)  # the chain is not at fault
    chained.put_events(path, "ledger", [*before, event])
    with pytest.raises(LedgerError, match="line 14 "):
        Ledger(path).datasets()


@pytest.mark.parametrize(
    "text", ["age,sex\n1,2\n", "age,sex", '{"format":"o', "\n", "SQLite format 3\0"]
)
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(LedgerError, match=r"table\.csv"):
        Ledger(path).init("d", unit=AddRemoveRow(), cap=CAP)
    assert path.read_text() == text


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    for name, statement in (("a", "CREATE TABLE x (y)"), ("b", "PRAGMA application_id = 5")):
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(statement)
        before = path.read_bytes()
        with pytest.raises(LedgerError, match="is not a margrave ledger"):
            Ledger(path).init("d", unit=AddRemoveRow(), cap=CAP)
        assert path.read_bytes() == before


def test_a_ledger_killed_at_birth_is_begun_again(path: Path) -> None:
    identity = Ledger(path).identity()
    path.write_bytes(b"")
    Ledger(path).init("d", unit=AddRemoveRow(), cap=CAP)
    assert charged(path) == 0
    assert Ledger(path).identity() != identity


# The disk and the locks.


@pytest.mark.skipif(not vfs.available(), reason="SQLite's VFS cannot be wrapped")
def test_a_full_disk_is_told_and_nothing_is_drawn(path: Path) -> None:
    full: list[str] = []
    disk = vfs.Watched(lambda call, *_: vfs.FULL if call in full else 0)
    try:
        private = opened(path, Fraction(1, 2))
        before = path.read_bytes()
        full.append("write")
        with pytest.raises(LedgerError, match="ledger could not be written: the disk is full"):
            private.measure([A], Gaussian(rho=Fraction(1, 8)))
        assert private.account().debits == ()
        with pytest.raises(MargraveError, match="gate is closed"):
            private.measure([A], Gaussian(rho=Fraction(1, 8)))
        with pytest.raises(LedgerError, match="disk is full"):
            opened(path, Fraction(1, 100))
    finally:
        disk.remove()
    assert path.read_bytes() == before


def test_a_ledger_held_by_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "TIMEOUT_SECONDS", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as holding:
        holding.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="in use"):
            opened(path, Fraction(1, 9))
    with opened(path, Fraction(1, 9)):
        pass


def test_an_older_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(LedgerError, match=r"need SQLite 3\.37"):
        Ledger(path).datasets()


@pytest.mark.skipif(not vfs.available(), reason="SQLite's VFS cannot be wrapped")
def test_an_interrupted_run_is_named_and_recovered(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Ledger(path).datasets()
    vfs.interrupt(path, "d")
    left = path.with_name("ledger-journal")
    assert left.exists()
    for words in (["show", str(path)], ["show", str(path), "--json"]):
        assert run(["ledger", *words]) == LedgerError.exit_code
        said = capsys.readouterr()
        assert "A run was interrupted" in said.err + said.out
        assert f"margrave ledger recover {path}" in said.err + said.out
    assert left.exists()
    assert run(["ledger", "recover", str(path)]) == 0
    assert "1 line" in capsys.readouterr().out
    assert not left.exists()
    assert Ledger(path).datasets() == before


def test_whoever_may_only_read_can_look(path: Path) -> None:
    os.chmod(path, 0o444)
    os.chmod(path.parent, 0o555)
    try:
        assert Ledger(path).datasets()[0].cap == CAP
    finally:
        os.chmod(path.parent, 0o755)


def test_a_ledger_moved_away_during_a_run(path: Path) -> None:
    for put_back in (False, True):
        private = opened(path, Fraction(1, 3))
        content = path.read_bytes()
        path.rename(path.with_name("elsewhere"))
        if put_back:
            path.write_bytes(content)
        with pytest.raises(LedgerError, match="moved or replaced"):
            private.measure([A], Gaussian(rho=Fraction(1, 8)))
        assert len(private.transcript) == 0
        path.with_name("elsewhere").rename(path)


RUNS = """
import sys
from fractions import Fraction
from margrave.errors import BudgetError
from margrave.accounting import AddRemoveRow, Budget
from margrave.privacy import Gaussian, SeededRandomness, protect
from tests.accounting.test_ledger_file import A, TABLE

granted = 0
for _ in range(int(sys.argv[2])):
    try:
        with protect(TABLE, unit=AddRemoveRow(), budget=Budget.zcdp(Fraction(1, 37)),
                     randomness=SeededRandomness(1), ledger=sys.argv[1], dataset="d") as private:
            for _ in range(3):
                private.measure([A], Gaussian(rho=private.rho / 3))
            granted += 1
    except BudgetError:
        pass
print(granted)
"""


@pytest.mark.parametrize("runs", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_two_processes_share_one_cap(path: Path, runs: int) -> None:
    """Their runs need more than there is: exactly 37 are granted, and every debit of them is there."""
    command = [sys.executable, "-c", RUNS, str(path), str(runs)]
    folder = Path(__file__).parents[2]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) for _ in range(2)
    ]
    granted = [int(process.communicate()[0]) for process in both]
    assert [p.returncode for p in both] == [0, 0]
    (dataset,) = Ledger(path).datasets()
    assert sum(granted) == len(dataset.runs) == 37
    assert dataset.charged == dataset.cap.rho == 1
    assert all(len(r.debits) == 3 and r.closed for r in dataset.runs)


def test_a_forked_run_cannot_go_on_in_both(path: Path) -> None:
    code = f"""
import os, sys
from fractions import Fraction
from margrave.errors import LedgerError
from margrave.privacy import Gaussian
from pathlib import Path
from tests.accounting.test_ledger_file import A, opened
private = opened(Path({str(path)!r}), Fraction(1, 2))
if os.fork() == 0:
    try:
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
    except LedgerError as error:
        os._exit(42 if "another process" in str(error) else 1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 42
private.measure([A], Gaussian(rho=Fraction(1, 8)))
private.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert charged(path) == Fraction(1, 8)


HELD = """
import os, sys
from pathlib import Path
from margrave.accounting.journal import Journal
journal = Journal(Path(sys.argv[1]), "r", "2026-01-01", {}, resume=False)
before = sorted(os.listdir("."))
if os.fork() == 0:
    sys.exit(0)
os.wait()
assert sorted(os.listdir(".")) == before != ["j"], os.listdir(".")
journal.finish()
journal.release()
assert os.listdir(".") == ["j"]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_that_ends_leaves_the_rollback_journal_of_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HELD, "j"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


KEYS = {
    "event", "dataset", "unit", "rho", "epsilon", "delta", "day", "run", "journal", "number", "what", "charged",
    "sha256",
}  # fmt: skip


def test_only_public_things_are_in_the_file(path: Path) -> None:
    """The same answers from another table leave the same lines, but for the run's name."""
    texts = []
    for rows in (some_rows(SIZES, 9), []):
        copy = path.with_name(f"ledger-{len(rows)}")
        shutil.copy(path, copy)

        class Same:
            def describe(self) -> str:
                return "the same answers"

            def gaussian(self, counts: object, scale: float) -> object:
                return 0 * counts  # type: ignore[operator]

            def choose(self, scores: object, temperature: Fraction) -> int:
                return 0

        budget = Budget.zcdp(Fraction(1, 2))
        table = memory_table(SIZES, rows)
        with protect(
            table, unit=AddRemoveRow(), budget=budget, randomness=Same(), ledger=copy, dataset="d"
        ) as private:  # type: ignore[arg-type]
            private.measure([A, ("a", "b")], Gaussian(rho=Fraction(1, 8)))
        run = Ledger(copy).datasets()[0].runs[0].run
        lines = chained.events(copy)
        assert {key for line in lines for key in line} <= KEYS
        texts.append([{k: v for k, v in line.items() if v != run} for line in lines])
    assert texts[0] == texts[1]


def test_amounts_too_long_to_be_read_back_are_refused(path: Path) -> None:
    private = opened(path, Fraction(1, 2))
    with pytest.raises(MargraveError, match="4,000 digits"):
        private.measure([A], Gaussian(rho=Fraction(1, 8) + Fraction(1, 10**4001)))
    assert private.account().debits == ()


# Releases as witnesses.


def account_of(path: Path, rho: Fraction) -> Account:
    with opened(path, rho) as private:
        private.measure([A], Gaussian(rho=rho))
        return private.account()


def test_a_release_names_its_last_line_of_the_ledger(path: Path) -> None:
    first, second = (account_of(path, Fraction(1, n)) for n in (8, 4))
    lines = chained.rows(path)
    for account, line, charged in ((first, 4, "1/8"), (second, 8, "3/8")):
        expected = LedgerHead(Ledger(path).identity(), "d", line, lines[line - 1][2], charged)
        assert account.ledger == expected
    assert Ledger(path).verify({"first": first, "second": second}) == {}
    with protect(TABLE, unit=AddRemoveRow(), budget=Budget.zcdp(Fraction(1, 9))) as private:
        alone = private.account()
    assert alone.ledger is None
    assert "without a ledger" in Ledger(path).verify({"alone": alone})["alone"]


def test_a_ledger_reset_cut_rewritten_or_put_back_contradicts_its_releases(
    path: Path, tmp_path: Path
) -> None:
    first = account_of(path, Fraction(1, 8))
    older = path.read_bytes()
    second = account_of(path, Fraction(1, 4))
    assert first.ledger is not None
    both, whole, events = {"1": first, "2": second}, path.read_bytes(), chained.events(path)

    path.write_bytes(older)
    assert "cut or put back" in Ledger(path).verify(both).pop("2")
    assert list(Ledger(path).verify(both)) == ["2"]
    chained.put_events(path, "ledger", events[:1])
    assert list(Ledger(path).verify(both)) == ["1", "2"]
    path.write_bytes(whole)
    raised = cap_event(tmp_path, Fraction(2))
    chained.put_events(path, "ledger", [raised, *events[1:]])
    assert Ledger(path).datasets()[0].cap.rho == 2  # sound by itself, with its identity
    assert all("rewritten" in found for found in Ledger(path).verify(both).values())
    path.write_bytes(whole)
    forged = replace(first, debits=(Debit("measure a", Fraction(1, 80)),))
    assert "debits are not those" in Ledger(path).verify({"1": forged})["1"]
    path.unlink()
    Ledger(path).init("d", unit=AddRemoveRow(), cap=CAP)
    assert all("another ledger" in found for found in Ledger(path).verify(both).values())


def cap_event(folder: Path, rho: Fraction) -> dict[str, Any]:
    Ledger(folder / "other").init("d", unit=AddRemoveRow(), cap=Budget.zcdp(rho))
    return chained.events(folder / "other")[0]


# Sealed runs.


def test_schemas_and_attempts_are_in_the_chain(path: Path) -> None:
    digest = "0f" * 32
    assert not Ledger(path).schema_is_registered("d", digest)
    for _ in range(2):
        Ledger(path).register_schema("d", digest)
    Ledger(path).record_attempt("d", "refused")
    Ledger(path).record_attempt("d", "answered")
    assert Ledger(path).schema_is_registered("d", digest)
    (dataset,) = Ledger(path).datasets()
    assert dataset.schemas == (digest,)
    assert [a.outcome for a in dataset.attempts] == ["refused", "answered"]
    assert dataset.charged == 0
    assert [e["event"] for e in chained.events(path)] == [
        "dataset", "schema", "attempt", "attempt",
    ]  # fmt: skip
    with pytest.raises(InputError, match="no data set 'e'"):
        Ledger(path).register_schema("e", digest)
    with pytest.raises(InputError, match="no data set 'e'"):
        Ledger(path).record_attempt("e", "refused")
    with pytest.raises(LedgerError, match="SHA-256"):
        Ledger(path).register_schema("d", "abc")
    assert len(chained.rows(path)) == 4
    Ledger(path).init("d", unit=ReplaceRow(), cap=CAP, replace=True)
    assert Ledger(path).schema_is_registered("d", digest)


# SQLite.


def test_another_journal_mode_is_switched_back(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
    with pytest.raises(LedgerError, match=r"another journal mode.*ledger recover"):
        Ledger(path).datasets()
    with opened(path, Fraction(1, 9)):
        pass
    assert len(Ledger(path).datasets()[0].runs) == 1
    assert sorted(p.name for p in path.parent.iterdir()) == ["ledger"]


@pytest.mark.parametrize("name", ["a b", "a?b#c%20", "%", "é 漢", "-journal", "a'b;"])
def test_names_of_files_are_literal(tmp_path: Path, name: str) -> None:
    Ledger(tmp_path / name).init("d", unit=AddRemoveRow(), cap=CAP)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert charged(tmp_path / name) == 0


def test_a_line_that_failed_to_commit_is_not_in_the_account(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = opened(path, Fraction(1, 2))
    head = private.account().ledger
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:  # noqa: PT012
        patch.setattr(
            store.ChainedFile, "append", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
    assert private.account().ledger == head


@pytest.mark.parametrize("kind", ["memory", "interrupt"])
def test_an_interrupted_beginning_leaves_no_reservation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Before and after each statement: the cap has room for one run, and the next one gets it."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.init("d", unit=AddRemoveRow(), cap=Budget.zcdp(0.5))
    interrupted = 0
    for at in range(1, 200):
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", sqlite3.connect)
            failing_statements(kind, at)
            try:
                ledger.begin("d", AddRemoveRow(), Fraction(1, 2))
            except (MemoryError, KeyboardInterrupt):
                interrupted += 1
            else:
                break
        (dataset,) = ledger.datasets()
        assert dataset.charged == 0, at
    assert interrupted > 10
