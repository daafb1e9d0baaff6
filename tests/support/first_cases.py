"""The cases of mechanisms for tests that are slow for all but the first case of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.conformance import CASES


def slow_but_first(cases: Iterable[str]) -> list[Any]:
    """Return cases for ``parametrize``; slow are those that are not the first of their mechanism.

    The first has the mechanism's name alone.
    """
    return [pytest.param(c, marks=[pytest.mark.slow] * (" " in c)) for c in cases]


FIRST_CASES = slow_but_first(CASES)
