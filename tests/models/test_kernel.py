"""Compiled loops: their cache never fails a run, and displays of progress name the compilation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from margrave import _kernel
from margrave._compiling import watching
from margrave._kernel import kernel


def doubled(values):  # type: ignore[no-untyped-def]
    """A loop to compile; its module counts as a model's where a test says so."""
    for i in range(len(values)):
        values[i] *= 2
    return values


def test_a_loop_runs_without_any_folder_for_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(function: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(_kernel, "_Cache", nowhere)
    assert kernel(doubled)(np.arange(3)).tolist() == [0, 2, 4]


def test_a_damaged_or_full_cache_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert kernel(doubled)(np.arange(3)).tolist() == [0, 2, 4]
    (stored,) = tmp_path.rglob("*.nbi")
    assert list(tmp_path.rglob("*.nbc"))
    stored.write_bytes(b"not an index")
    assert kernel(doubled)(np.arange(3)).tolist() == [0, 2, 4]


def test_loops_of_models_are_announced_before_they_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    calls: list[str] = []
    for module, announced in (("margrave.data.loops", 0), ("margrave.models.loops", 1)):
        monkeypatch.setattr(doubled, "__module__", module)
        loop = kernel(doubled)
        with watching(lambda: calls.append("compiling")):
            loop(np.arange(3, dtype=np.int32 if announced else np.int64))
            loop(np.arange(3, dtype=np.int32 if announced else np.int64))
        assert len(calls) == announced
