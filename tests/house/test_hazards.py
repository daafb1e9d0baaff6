"""The table of hazards names tests that exist, and the page of results says what its data says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import trust
from tests.support.mutants import ROOT, mutants

TABLE = ROOT / "docs" / "hazards.md"
NOT_COVERED = {18}


def rows(table: Path) -> dict[int, list[str]]:
    """The cells of each row, by its number."""
    lines = table.read_text(encoding="utf-8").splitlines()
    cells = (line.strip("|").split("|") for line in lines if line.startswith("| "))
    return {int(c[0]): [x.strip() for x in c] for c in cells if c[0].strip().isdigit()}


def exists(name: str) -> bool:
    """Whether ``file.py::test`` is a test of the suite."""
    file, _, function = name.partition("::")
    path = ROOT / "tests" / file
    return path.exists() and f"\ndef {function}(" in path.read_text(encoding="utf-8")


def test_every_hazard_has_tests_that_exist() -> None:
    found = rows(TABLE)
    assert list(found) == sorted(found)
    assert set(range(1, 31)) <= set(found)
    for number, (_, hazard, guard, tests) in found.items():
        named = re.findall(r"`([\w./]+::\w+)`", tests)
        assert hazard
        assert guard
        assert [n for n in named if not exists(n)] == []
        assert bool(named) != (number in NOT_COVERED)


def test_a_test_that_is_gone_would_be_seen() -> None:
    assert exists("house/test_hazards.py::test_every_hazard_has_tests_that_exist")
    assert not exists("house/test_hazards.py::test_every_hazard")
    assert not exists("test_nothing.py::test_it")


def test_every_planted_bug_belongs_to_a_hazard() -> None:
    assert {m.hazard for m in mutants()} <= set(rows(TABLE)) - NOT_COVERED


def test_the_page_of_results_is_that_of_its_data() -> None:
    """Whoever edits one by hand, or runs an old version, is told."""
    results = list(trust.known().values())
    assert trust.PAGE.read_text(encoding="utf-8") == trust.page(results)
    assert [r.part for r in results] == [p for p in trust.PARTS if p in {r.part for r in results}]
    assert all(trust.PARTS[r.part].bar == r.bar for r in results)


@pytest.mark.parametrize(
    ("met", "command", "told"),
    [
        (True, "python -m tests.support.trust", "yes"),
        (True, "python -m tests.support.trust --minutes 8", "as far as was run"),
        (False, "python -m tests.support.trust --minutes 8", "**no**"),
    ],
)
def test_the_page_says_what_was_missed(met: bool, command: str, told: str) -> None:
    details = [["a", "b"], ["x|y", "1"]]
    result = trust.Result("toy", "fast", "5 ms", met, command, 30.0, "2020-01-01", "0.1.0", details)
    text = trust.page([result])
    assert (
        f"| fast | 5 ms | {told} | `{command}` | 0.5 min | 2020-01-01 | 0.1.0 | not known: **stale** |"
        in text
    )
    assert "| x&#124;y | 1 |" in text
