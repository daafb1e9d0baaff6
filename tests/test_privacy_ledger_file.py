"""The ledger file: a cap that all runs keep together, and a file that is refused when it was meddled with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from conformance import SIZES, memory_table, some_rows
from margrave.errors import BudgetError, InputError, LedgerError, MargraveError
from margrave.privacy import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    Gaussian,
    LedgerFile,
    Private,
    ReplaceRow,
    SeededRandomness,
    Unit,
    chained,
    protect,
)
from margrave.privacy.budget import epsilon_for
from margrave.transcript import Debit

A = ("a",)
CAP = Budget.zcdp(Fraction(1))
TABLE = memory_table(SIZES, some_rows(SIZES, 9))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger file with one data set, "d", whose cap is rho = 1."""
    LedgerFile(tmp_path / "ledger").init("d", unit=AddRemoveRow(), cap=CAP)
    return tmp_path / "ledger"


def opened(path: Path, rho: Fraction, unit: Unit = AddRemoveRow(), dataset: str = "d") -> Private:
    budget = Budget.zcdp(rho)
    return protect(
        TABLE, unit=unit, budget=budget, randomness=SeededRandomness(1), ledger=path, dataset=dataset
    )


def charged(path: Path) -> Fraction:
    return LedgerFile(path).datasets()[0].charged


# Caps.


def test_a_cap_in_epsilon_and_delta_is_converted_once(tmp_path: Path) -> None:
    file = LedgerFile(tmp_path / "ledger")
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
    (dataset,) = LedgerFile(path).datasets()
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
    assert LedgerFile(path).datasets()[0].runs == ()


def test_the_data_set_is_named_and_known(path: Path) -> None:
    with pytest.raises(InputError, match="no data set 'e'; it has: 'd'"):
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
        LedgerFile(path).init("d\n", unit=AddRemoveRow(), cap=CAP)


def test_every_debit_is_in_the_file_before_its_answer_is_drawn(path: Path) -> None:
    seen = []

    class Watching:
        def describe(self) -> str:
            return "watching"

        def gaussian(self, counts: object, scale: float) -> object:
            seen.append([d.rho for d in LedgerFile(path).datasets()[0].runs[0].debits])
            return counts

        def choose(self, scores: object, temperature: Fraction) -> int:
            raise AssertionError

    budget = Budget.zcdp(Fraction(1, 2))
    source = Watching()
    with protect(TABLE, unit=AddRemoveRow(), budget=budget, randomness=source, ledger=path, dataset="d") as private:  # type: ignore[arg-type]
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
    (run,) = LedgerFile(path).datasets()[0].unfinished
    assert LedgerFile(path).close(run.run).charged == Fraction(1, 8) == charged(path)
    with pytest.raises(LedgerError, match="was closed"):
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
    assert len(private.transcript) == 1
    assert charged(path) == Fraction(1, 8)
    with pytest.raises(InputError, match="closed already"):
        LedgerFile(path).close(run.run)
    with pytest.raises(InputError, match="no run 'x'"):
        LedgerFile(path).close("x")


# What was meddled with.


def history(path: Path) -> list[bytes]:
    """Two runs, in lines."""
    for _ in range(2):
        with opened(path, Fraction(1, 4)) as private:
            private.measure([A], Gaussian(rho=Fraction(1, 8)))
            private.measure([A], Gaussian(rho=Fraction(1, 16)))
    return path.read_bytes().splitlines(keepends=True)


def refused(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(lines))
    for look in (lambda: LedgerFile(path).datasets(), lambda: opened(path, Fraction(1, 9))):
        with pytest.raises(LedgerError) as caught:
            look()
        assert str(path) in str(caught.value)
    assert path.read_bytes() == b"".join(lines), "a damaged file was written to"


def test_lines_taken_out_doubled_moved_or_changed(path: Path) -> None:
    lines = history(path)
    assert len(lines) == 10
    for i in range(len(lines) - 1):
        refused(path, lines[:i] + lines[i + 1 :])
        refused(path, [*lines[:i], lines[i], *lines[i:]])
        refused(path, [*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]])
    for i, line in enumerate(lines):
        for at in range(0, len(line) - 1, 7):
            changed = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
            refused(path, [*lines[:i], changed, *lines[i + 1 :]])


def test_lines_of_another_ledger_do_not_fit(path: Path, tmp_path: Path) -> None:
    lines = history(path)
    other = tmp_path / "other"
    LedgerFile(other).init("d", unit=AddRemoveRow(), cap=CAP)
    theirs = history(other)
    refused(path, [*lines[:6], *theirs[6:]])
    refused(path, [*lines, *theirs[2:]])


def test_a_torn_last_line_counts_for_nothing_and_is_taken_away(path: Path) -> None:
    lines = history(path)
    before = LedgerFile(path).datasets()
    torn = b'{"event":"debit","run":"zzz"'
    for rest in (b"{", torn, torn * 900, b"\0" * 700, torn + b"\0" * 40 + b'f"}\n'):
        path.write_bytes(b"".join(lines) + rest)
        assert LedgerFile(path).datasets() == before
        assert path.read_bytes().endswith(rest), "reading wrote"
        with opened(path, Fraction(1, 100)):
            pass
        assert path.read_bytes().startswith(b"".join(lines) + b'{"event":"open"')
        assert len(LedgerFile(path).datasets()[0].runs) == len(before[0].runs) + 1


def test_a_last_line_that_lacks_its_end_alone_counts(path: Path) -> None:
    """Editors and copies take a last line feed away; a debit, or an answer in a journal, would be forgotten."""
    lines = history(path)
    before = LedgerFile(path).datasets()
    path.write_bytes(b"".join(lines)[:-1])
    assert LedgerFile(path).datasets() == before
    watching = LedgerFile(path)
    with opened(path, Fraction(1, 100)):
        assert len(watching.datasets()[0].runs) == len(before[0].runs) + 1
    assert path.read_bytes().startswith(b"".join(lines) + b'{"event":"open"')
    path.write_bytes(lines[0][:-1])
    with pytest.raises(InputError, match="no data set 'd'"):
        opened(path, Fraction(1, 100))
    LedgerFile(path).init("d", unit=AddRemoveRow(), cap=CAP)
    assert path.read_bytes().startswith(lines[0])


@pytest.mark.parametrize("name", ["D", " d", "d ", "\uff44"])
def test_names_that_look_alike_are_one_data_set(path: Path, name: str) -> None:
    with pytest.raises(InputError, match="bound nothing: name it 'd'"):
        LedgerFile(path).init(name, unit=AddRemoveRow(), cap=CAP)
    assert len(LedgerFile(path).datasets()) == 1


def test_sums_that_no_run_could_have_made_are_refused(path: Path) -> None:
    """A chain can be recomputed by whoever wants to; the sums must still be right."""
    history(path)
    heads = [
        {"event": "open", "run": "r", "dataset": "d", "rho": "2", "day": "2026-01-01", "journal": None},
        {"event": "open", "run": "r", "dataset": "e", "rho": "1/9", "day": "2026-01-01", "journal": None},
        {"event": "open", "run": "r", "dataset": "d", "rho": "1e-3", "day": "2026-01-01", "journal": None},
        {"event": "open", "run": "r", "dataset": "d", "rho": "1/0", "day": "2026-01-01", "journal": None},
        {"event": "open", "run": "r", "dataset": "d", "rho": "0", "day": "2026-01-01", "journal": None},
        {"event": "debit", "run": "r", "number": 0, "what": "x", "rho": "1/9"},
        {"event": "dataset", "dataset": "d", "unit": "replace-row", "rho": "9", "epsilon": 9, "delta": 1, "day": ""},
        {"event": "dataset", "dataset": "n", "unit": "persons", "rho": "9", "epsilon": 9, "delta": 1, "day": ""},
        {"event": "party"},
    ]
    sound = path.read_bytes()
    for event in heads:
        path.write_bytes(sound)
        file = chained.ChainedFile(path, "margrave-ledger", write=True)
        with file.locked():
            list(file.news())
            file.append(event)
        file.close()
        with pytest.raises(LedgerError, match="line 11 "):
            LedgerFile(path).datasets()


@pytest.mark.parametrize("text", ["age,sex\n1,2\n", "age,sex", '{"format":"other"}\n', '{"format":"o', "\n"])
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(LedgerError, match=r"table\.csv"):
        LedgerFile(path).init("d", unit=AddRemoveRow(), cap=CAP)
    assert path.read_text() == text


def test_a_ledger_killed_at_birth_is_begun_again(path: Path) -> None:
    whole = path.read_bytes()
    for size in (0, 1, 20, whole.index(b"\n")):
        path.write_bytes(whole[:size])
        LedgerFile(path).init("d", unit=AddRemoveRow(), cap=CAP)
        assert charged(path) == 0
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="empty"):
        opened(path, Fraction(1, 9))


def test_a_newer_version_is_refused(path: Path) -> None:
    body = b'{"format":"margrave-ledger","version":2,"id":"x"}'
    path.write_bytes(body[:-1] + b',"chain":"' + chained._link("", body).encode() + b'"}\n')
    with pytest.raises(LedgerError, match="version"):
        LedgerFile(path).datasets()


# The disk and the locks.


def test_a_full_disk_is_told_and_nothing_is_drawn(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = opened(path, Fraction(1, 2))
    before = path.read_bytes()

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LedgerError, match=r"ledger could not be written \(No space left"):
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
    assert private.account().debits == ()
    assert path.read_bytes() == before
    with pytest.raises(MargraveError, match="gate is closed"):
        private.measure([A], Gaussian(rho=Fraction(1, 8)))
    with pytest.raises(LedgerError):
        opened(path, Fraction(1, 100))
    assert path.read_bytes() == before


def test_without_locks_there_is_no_ledger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chained, "fcntl", None)
    with pytest.raises(LedgerError, match="no file locks"):
        opened(path, Fraction(1, 9))


def test_a_ledger_held_by_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding = chained.ChainedFile(path, "margrave-ledger", write=True)
    holding.lock()
    monkeypatch.setattr(chained, "PATIENCE", 0.05)
    with pytest.raises(LedgerError, match="in use"):
        opened(path, Fraction(1, 9))
    holding.close()
    with opened(path, Fraction(1, 9)):
        pass


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
from margrave.privacy import AddRemoveRow, Budget, Gaussian, SeededRandomness, protect
from test_privacy_ledger_file import A, TABLE

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
    folder = Path(__file__).parent
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) for _ in range(2)]
    granted = [int(process.communicate()[0]) for process in both]
    assert [p.returncode for p in both] == [0, 0]
    (dataset,) = LedgerFile(path).datasets()
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
from test_privacy_ledger_file import A, opened
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
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert charged(path) == Fraction(1, 8)


KEYS = {
    "format", "version", "id", "event", "dataset", "unit", "rho", "epsilon", "delta", "day", "run", "journal", "number",
    "what", "chain",
}  # fmt: skip


def test_only_public_things_are_in_the_file(path: Path) -> None:
    """The same answers from another table leave the same lines, but for the run's name."""
    texts = []
    for rows in (some_rows(SIZES, 9), []):
        copy = path.with_name(f"ledger-{len(rows)}")
        copy.write_bytes(path.read_bytes())

        class Same:
            def describe(self) -> str:
                return "the same answers"

            def gaussian(self, counts: object, scale: float) -> object:
                return 0 * counts  # type: ignore[operator]

            def choose(self, scores: object, temperature: Fraction) -> int:
                return 0

        budget = Budget.zcdp(Fraction(1, 2))
        table = memory_table(SIZES, rows)
        with protect(table, unit=AddRemoveRow(), budget=budget, randomness=Same(), ledger=copy, dataset="d") as private:  # type: ignore[arg-type]
            private.measure([A, ("a", "b")], Gaussian(rho=Fraction(1, 8)))
        run = LedgerFile(copy).datasets()[0].runs[0].run
        lines = [json.loads(line) for line in copy.read_text().splitlines()]
        assert {key for line in lines for key in line} <= KEYS
        texts.append([{k: v for k, v in line.items() if k != "chain" and v != run} for line in lines])
    assert texts[0] == texts[1]


def test_amounts_too_long_to_be_read_back_are_refused(path: Path) -> None:
    private = opened(path, Fraction(1, 2))
    with pytest.raises(MargraveError, match="4,000 digits"):
        private.measure([A], Gaussian(rho=Fraction(1, 8) + Fraction(1, 10**4001)))
    assert private.account().debits == ()
