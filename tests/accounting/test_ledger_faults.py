"""Files that are not a sound ledger: one sentence that names the file and the remedy, and nothing written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from margrave.accounting import AddRemoveRow, Budget, Ledger, store
from margrave.cli.main import run
from margrave.errors import InputError, LedgerError
from tests.support import vfs

CAP = Budget.zcdp(Fraction(1))
NO_NEW_ONE = "Restore the last sound copy of the file. Do not begin a new ledger"
#: Texts of SQLite that no message may repeat.
OF_SQLITE = (
    "malformed",
    "readonly database",
    "not a database",
    "unable to open",
    "is locked",
    "I/O",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of many lines, so that it has several pages."""
    ledger = Ledger(tmp_path / "v.ledger")
    ledger.init("visits", unit=AddRemoveRow(), cap=CAP)
    for _ in range(60):
        ledger.record_attempt("visits", "refused")
    return ledger.path


def begin(path: Path) -> object:
    return Ledger(path).begin("visits", AddRemoveRow(), Fraction(1, 9))


def init(path: Path) -> object:
    return Ledger(path).init("more", unit=AddRemoveRow(), cap=CAP)


WRITING: tuple[Callable[[Path], object], ...] = (
    begin,
    init,
    lambda path: Ledger(path).close("r"),
    lambda path: Ledger(path).record_attempt("visits", "refused"),
)
READING: tuple[Callable[[Path], object], ...] = (
    lambda path: Ledger(path).datasets(),
    lambda path: Ledger(path).identity(),
    lambda path: Ledger(path).verify({}),
    lambda path: Ledger(path).check_cap("visits", AddRemoveRow(), Fraction(1, 9)),
    lambda path: Ledger(path).recover(),
)


def refused(path: Path, words: str, uses: tuple[Callable[[Path], object], ...]) -> None:
    """Check that each use is refused in plain words, and that the folder stays as it is."""
    before = contents(path.parent)
    for use in uses:
        with pytest.raises(LedgerError) as caught:
            use(path)
        plain(str(caught.value), path, words)
    assert contents(path.parent) == before


def refused_on_the_command_line(
    path: Path, words: str, commands: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(path.parent)
    for command in commands:
        capsys.readouterr()
        assert run(["ledger", *command.format(path).split()]) == LedgerError.exit_code
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        plain(printed.err, path, words)
    assert contents(path.parent) == before


def plain(text: str, path: Path, words: str) -> None:
    assert str(path) in text
    assert words in text
    assert not [known for known in OF_SQLITE if known in text]


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


SHOW, RECOVER = "show {}", "recover {}"
INIT = "init {} --dataset more --rho 1 --unit add-remove-row"


def with_another_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE x (y)")


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut after its header": (lambda p: os.truncate(p, 100), "damaged or was cut short"),
    "cut in the middle": (
        lambda p: os.truncate(p, p.stat().st_size // 2),
        "damaged or was cut short",
    ),
    "cut by one page": (
        lambda p: os.truncate(p, p.stat().st_size - 4096),
        "damaged or was cut short",
    ),
    "overwritten inside": (
        lambda p: p.write_bytes((w := p.read_bytes())[:4096] + b"\x07" * 9000 + w[13096:]),
        "damaged or was cut short",
    ),
    "text": (lambda p: p.write_text("age,sex\n1,f\n" * 500), "not a margrave ledger"),
    "another database": (with_another_database, "not a margrave ledger"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_ledger_is_to_be_restored_and_not_begun_anew(
    path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    make, words = DAMAGED[damage]
    make(path)
    remedy = NO_NEW_ONE if "damaged" in words else NO_NEW_ONE.replace("Restore", "restore")
    for expected in (words, remedy):
        refused(path, expected, READING + WRITING)
        refused_on_the_command_line(path, expected, (SHOW, RECOVER, INIT), capsys)


def test_an_empty_file_is_no_ledger_that_has_nothing_charged(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(b"")
    words = "It is empty. Name another file. If it was a ledger, restore the last sound copy"
    refused(path, words, (*READING, begin))
    refused_on_the_command_line(path, words, (SHOW, RECOVER), capsys)


def test_a_folder_is_not_a_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(tmp_path, "is a folder, not a plain file. Name a file.", READING + WRITING)
    refused_on_the_command_line(tmp_path, "is a folder", (SHOW, INIT), capsys)


def test_a_ledger_that_is_gone_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "If the file was lost, restore its last copy."
    refused(tmp_path / "v.ledger", words, (*READING, begin))
    refused_on_the_command_line(tmp_path / "v.ledger", words, (SHOW, RECOVER), capsys)


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_locked_ledger_asks_to_wait(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    lock: str,
) -> None:
    monkeypatch.setattr(store, "TIMEOUT_SECONDS", 0.02)
    words = "Wait until that has ended, or close the other program."
    with closing(sqlite3.connect(path, isolation_level=None)) as holding:
        holding.execute(f"BEGIN {lock}")
        refused(path, words, WRITING if lock == "IMMEDIATE" else WRITING + READING)
        refused_on_the_command_line(path, words, (RECOVER, INIT), capsys)


# Permissions.


@pytest.fixture
def restricted(path: Path) -> Iterator[Callable[[Path, int], None]]:
    """Change permissions for one test; skip it for a user whom permissions do not bind."""
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user, such as root, may write a file without write permission")
    path.chmod(0o644)
    yield lambda place, mode: place.chmod(mode)
    path.parent.chmod(0o755)
    path.chmod(0o644)


def test_a_ledger_that_may_only_be_read(
    path: Path,
    restricted: Callable[[Path, int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    restricted(path, 0o444)
    words = "may only read it. Give this user write permission for the file."
    refused(path, words, (begin, init, WRITING[-1]))
    refused_on_the_command_line(path, words, (INIT,), capsys)
    assert Ledger(path).datasets()[0].charged == 0


def test_a_ledger_in_a_folder_that_may_not_be_written(
    path: Path,
    restricted: Callable[[Path, int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    restricted(path.parent, 0o555)
    words = "may not write in its folder. Give this user write permission for the folder."
    refused(path, words, (begin, init, WRITING[-1]))
    refused_on_the_command_line(path, words, (INIT,), capsys)
    refused(path.with_name("new"), "needs permission to read and write", (init,))


def test_a_ledger_that_may_not_be_read(
    path: Path, restricted: Callable[[Path, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    restricted(path, 0)
    for use in READING + WRITING:
        with pytest.raises(LedgerError) as caught:
            use(path)
        plain(str(caught.value), path, "cannot be opened. Give this user permission to read")
    assert run(["ledger", "show", str(path)]) == LedgerError.exit_code
    plain(capsys.readouterr().err, path, "cannot be opened. Give this user permission to read")


# What cannot be made everywhere.


@pytest.mark.skipif(not vfs.available(), reason="SQLite's VFS cannot be wrapped")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (vfs.FULL, "the disk is full. Make room on the disk."),
        (vfs.IOERR_WRITE, "the disk failed. Check the disk and its connection."),
        (8, "may only read it. Give this user write permission for the file."),
        (8 | 6 << 8, "may not write in its folder. Give this user write permission"),
        (8 | 4 << 8, "was moved or replaced while it was in use. Put it back."),
        (14, "cannot be opened. Give this user permission to read and write"),
    ],
)
def test_a_disk_that_denies_a_write(path: Path, code: int, words: str) -> None:
    disk = vfs.Watched(lambda call, *_: code if call == "write" else 0)
    try:
        for use in (begin, init):
            with pytest.raises(LedgerError) as caught:
                use(path)
            plain(str(caught.value), path, words)
    finally:
        disk.remove()
    assert Ledger(path).datasets()[0].charged == 0


# Data sets.


@pytest.mark.parametrize(
    ("name", "question"),
    [("vists", "Did you mean 'visits'? "), ("Visits", "Did you mean 'visits'? "), ("staff", "")],
)
def test_a_misspelt_data_set_is_asked_for(path: Path, name: str, question: str) -> None:
    with pytest.raises(InputError) as caught:
        Ledger(path).check_cap(name, AddRemoveRow(), Fraction(1, 9))
    assert str(caught.value) == (
        f"{path} has no data set '{name}'. {question}The ledger has: 'visits'. To set a cap for a new data set:"
        f" margrave ledger init {path} --dataset {name} --unit UNIT --epsilon E --delta D."
    )


def test_the_command_for_a_new_data_set_can_be_pasted(tmp_path: Path) -> None:
    path = tmp_path / "my ledger"
    Ledger(path).init("d", unit=AddRemoveRow(), cap=CAP)
    with pytest.raises(InputError) as caught:
        Ledger(path).register_schema("two words", "0" * 64)
    assert f"init '{path}' --dataset 'two words' --unit" in str(caught.value)
