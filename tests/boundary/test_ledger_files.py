"""The files of a ledger: whose they are, and what links do."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from margrave.accounting import AddRemoveRow, Budget, Ledger
from margrave.errors import LedgerError
from margrave.privacy import SeededRandomness, protect
from tests.support.conformance import memory_table

CAP = Budget.zcdp(Fraction(1))


def made(path: Path) -> Ledger:
    Ledger(path).init("d", unit=AddRemoveRow(), cap=CAP)
    return Ledger(path)


@pytest.fixture
def open_to_all() -> object:
    before = os.umask(0)
    yield None
    os.umask(before)


@pytest.mark.usefixtures("open_to_all")
def test_a_new_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    made(tmp_path / "ledger")
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o600
    os.chmod(tmp_path / "ledger", 0o660)  # for a group of custodians
    Ledger(tmp_path / "ledger").init("e", unit=AddRemoveRow(), cap=CAP)
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o660


def test_a_link_to_nothing_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="is a link to a file that is not there"):
        made(link)
    with pytest.raises(LedgerError, match="is a link to a file that is not there"):
        Ledger(link).datasets()
    table = memory_table({"a": 2}, [(0,)])
    with pytest.raises(LedgerError, match="is a link to a file that is not there"):
        protect(
            table, unit=AddRemoveRow(), budget=CAP, randomness=SeededRandomness(0), journal=link
        )
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_to_a_ledger_is_followed(tmp_path: Path) -> None:
    made(tmp_path / "ledger")
    (tmp_path / "link").symlink_to(tmp_path / "ledger")
    assert Ledger(tmp_path / "link").datasets()[0].dataset == "d"
    Ledger(tmp_path / "link").init("e", unit=AddRemoveRow(), cap=CAP)
    assert len(Ledger(tmp_path / "ledger").datasets()) == 2


def test_a_file_that_another_process_makes_first_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = tmp_path / "ledger", os.open

    def late(name: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_EXCL:
            path.touch(0o600)
        return opened(name, flags, mode)

    monkeypatch.setattr(os, "open", late)
    assert made(path).datasets()[0].cap == CAP
