"""The step that a device is timed with is the step of the library."""

from __future__ import annotations

import json

import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")

from benchmarks import accelerators  # noqa: E402


@pytest.mark.slow
def test_the_timed_gradient_is_that_of_the_descent(capsys: pytest.CaptureFixture[str]) -> None:
    accelerators.particles([jax.devices("cpu")[0]], [2_000], 1)
    loops, sorting = map(json.loads, capsys.readouterr().out.splitlines())
    assert loops["device"].startswith("compiled loops")
    assert sorting["apart"] < 0.05  # the histogram's share
