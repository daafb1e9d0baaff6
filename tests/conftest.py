"""What holds for every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from margrave.mechanisms import NAPSUMQ
from tests.support.conformance import Estimated

NAPSUMQ()  # what its parameters may be is read from its annotations once, and not when the name below stands for less


# Compiling takes most of the time of tests that use JAX. Each program is compiled once for all processes of a run.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end, so the garbage collector need not look through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def no_posterior_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """``NAPSUMQ()``, by whatever name it is called, estimates: sampling its posterior takes a minute each time.

    A test of the posterior names a fit.
    """
    monkeypatch.setattr("margrave.mechanisms.napsu_mq.MaxEntropyFit", Estimated)
