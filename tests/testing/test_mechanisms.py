"""Every mechanism of the library against the checks of `margrave.testing`, which others run on theirs.

`test_plugins.py` plants a fault for each check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from margrave.mechanisms import MECHANISMS
from margrave.testing import mechanism_checks
from tests.support.conformance import CASES, remembering

Check = Callable[[], None]


def of_every_case(prefix: str = "", *, quick: bool = False) -> dict[str, Check]:
    """The checks whose names begin so. ``quick``: a fit is asked once for each transcript, for many replays."""
    return {
        f"{case}, {name.removeprefix(prefix)}": check
        for case, make in CASES.items()
        for name, check in mechanism_checks(
            (lambda domain, make=make: remembering(make(domain))) if quick else make
        ).items()
        if name.startswith(prefix)
    }


LOSS = of_every_case("loss, ", quick=True)
SAME_ANSWERS = of_every_case("same answers, ")
OTHERS = {
    name: check
    for name, check in of_every_case().items()
    if ", loss, " not in name and ", same answers, " not in name
}


def test_every_mechanism_is_here_in_every_check() -> None:
    assert {case.split()[0] for case in CASES} == set(MECHANISMS)
    assert len(LOSS) == len(SAME_ANSWERS) == 4 * len(CASES)
    assert len(OTHERS) == len(CASES) * (1 + 8 + 1 + 1 + 4)


def first_cases(checks: dict[str, Check]) -> list[Any]:
    """The names of checks: one unit of a mechanism's first case; the others are slow."""
    return [
        pytest.param(
            name,
            marks=[pytest.mark.slow]
            * (" " in name.split(",")[0] or not name.endswith("add or remove one row")),
        )
        for name in checks
    ]


def one_unit_of_variants(checks: dict[str, Check]) -> list[Any]:
    """The names of checks: two units of a mechanism's first case, and one of each other; the others are slow."""
    first = ("add or remove one row", "replace one person of at most 3 rows")
    return [
        pytest.param(
            name,
            marks=[pytest.mark.slow]
            * (not name.endswith(first[:1] if " " in name.split(",")[0] else first)),
        )
        for name in checks
    ]


def some_tables_of_variants(checks: dict[str, Check]) -> list[Any]:
    """The names of checks; of a mechanism's other cases than its first, most tables are slow.

    Budgets are those of ``one_unit_of_variants``.
    """
    units = {p.values[0] for p in one_unit_of_variants(checks) if p.marks}
    return [
        pytest.param(
            name,
            marks=[pytest.mark.slow]
            * (
                (" " in name.split(",")[0] and "table: " in name and not name.endswith("empty"))
                or (", budgets, " in name and name in units)
            ),
        )
        for name in checks
    ]


@pytest.mark.parametrize("name", some_tables_of_variants(OTHERS))
def test_every_mechanism_passes(name: str) -> None:
    OTHERS[name]()


@pytest.mark.parametrize("name", one_unit_of_variants(LOSS))
def test_no_neighbor_learns_more_than_was_charged(name: str) -> None:
    LOSS[name]()


@pytest.mark.parametrize("name", first_cases(SAME_ANSWERS))
def test_every_byte_follows_from_the_answers(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    SAME_ANSWERS[name]()
    assert tuple(capfd.readouterr()) == ("", "")
