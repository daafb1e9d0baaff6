"""Every mechanism of the library against the checks of `margrave.testing`, which others run on theirs.

`test_plugins.py` plants a fault for each check.
"""

from __future__ import annotations

import re
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


def some(checks: dict[str, Check], units: int) -> list[Any]:
    """The names of checks; slow are those of further forms of a mechanism, and of other units than the first few.

    Of mechanisms that train, most tables are slow too.
    """
    kept = ("add or remove one row", "replace one person of at most 3 rows")[:units]
    long = ("gem", "gem-pub", "privlcm", "rap-plus", "aim-mixture")

    def is_quick(name: str) -> bool:
        case, _, check = name.partition(", ")
        if check.startswith("table: "):
            return " " not in case and (case not in long or check.endswith(("empty", "one row")))
        return " " not in case and (
            not re.search("one row|one person", check) or check.endswith(kept)
        )

    return [pytest.param(n, marks=[pytest.mark.slow] * (not is_quick(n))) for n in checks]


@pytest.mark.parametrize("name", some(OTHERS, 1))
def test_every_mechanism_passes(name: str) -> None:
    OTHERS[name]()


@pytest.mark.parametrize("name", some(LOSS, 2))
def test_no_neighbor_learns_more_than_was_charged(name: str) -> None:
    LOSS[name]()


@pytest.mark.parametrize("name", some(SAME_ANSWERS, 1))
def test_every_byte_follows_from_the_answers(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    SAME_ANSWERS[name]()
    assert tuple(capfd.readouterr()) == ("", "")
