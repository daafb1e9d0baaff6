"""What holds for every test."""

from __future__ import annotations

import pytest

from margrave.mechanisms import NAPSUMQ
from tests.support.conformance import Estimated

NAPSUMQ()  # what its parameters may be is read from its annotations once, and not when the name below stands for less


@pytest.fixture(autouse=True)
def no_posterior_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """``NAPSUMQ()``, by whatever name it is called, estimates: sampling its posterior takes a minute each time.

    A test of the posterior names a fit.
    """
    monkeypatch.setattr("margrave.mechanisms.napsu_mq.MaxEntropyFit", Estimated)
