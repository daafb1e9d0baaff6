"""The cases of mechanisms for tests that are slow for all but the first case of each."""

from __future__ import annotations

import pytest

from tests.support.conformance import CASES

FIRST_CASES = [pytest.param(c, marks=pytest.mark.slow) if " " in c else c for c in CASES]
"""For ``parametrize``: the first case of a mechanism has its name alone."""
