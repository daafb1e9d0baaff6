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


def some_units(checks: dict[str, Check], first: int, others: int) -> list[Any]:
    """The names of checks: so many units of a mechanism's first case, and of each other; the rest are slow."""
    units = ("add or remove one row", "replace one person of at most 3 rows")
    kept = {False: units[:first], True: units[:others]}
    return [
        pytest.param(
            name, marks=[pytest.mark.slow] * (not name.endswith(kept[" " in name.split(",")[0]]))
        )
        for name in checks
    ]


def some_tables_of_variants(checks: dict[str, Check]) -> list[Any]:
    """The names of checks; most tables are slow of a mechanism's other cases than its first, and of those that train.

    Budgets are those of one unit.
    """
    units = {p.values[0] for p in some_units(checks, 1, 1) if p.marks}
    long, brief = ("gem", "gem-pub", "privlcm", "rap-plus", "aim-mixture"), ("empty", "one row")
    return [
        pytest.param(
            name,
            marks=[pytest.mark.slow]
            * (
                (" " in name.split(",")[0] and "table: " in name and not name.endswith("empty"))
                or (", budgets, " in name and name in units)
                or ("table: " in name and name.split(",")[0] in long and not name.endswith(brief))
            ),
        )
        for name in checks
    ]


@pytest.mark.parametrize("name", some_tables_of_variants(OTHERS))
def test_every_mechanism_passes(name: str) -> None:
    OTHERS[name]()


@pytest.mark.parametrize("name", some_units(LOSS, 2, 1))
def test_no_neighbor_learns_more_than_was_charged(name: str) -> None:
    LOSS[name]()


@pytest.mark.parametrize("name", some_units(SAME_ANSWERS, 1, 0))
def test_every_byte_follows_from_the_answers(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    SAME_ANSWERS[name]()
    assert tuple(capfd.readouterr()) == ("", "")
