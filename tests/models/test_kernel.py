"""Compiled loops: their cache never fails a run, and displays of progress name the compilation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from margrave import _kernel
from margrave._compiling import watching
from margrave._kernel import kernel, run_or_compile
from margrave.data.csv_records import count_records
from margrave.models.graphical.elimination import eliminate, sizes_with
from margrave.models.sampling import deal
from tests.support.strategies import domain_of, some_cliques


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


def in_the_interpreter(monkeypatch: pytest.MonkeyPatch, *, steps: int) -> None:
    monkeypatch.setattr(_kernel._Interpreted, "MAX", steps)
    monkeypatch.setattr(_kernel._Interpreted, "taken", Counter())


def test_a_loop_is_compiled_once_its_calls_took_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_interpreter(monkeypatch, steps=10)
    loop = kernel(doubled)
    for calls, compiled in ((1, 0), (2, 0), (3, 1)):
        assert run_or_compile(loop, 5, np.arange(3)).tolist() == [0, 2, 4]
        assert len(loop.signatures) == compiled, calls


def test_the_interpreter_and_compiled_loops_agree_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(b'a,b\r\n"1\n2","x""y"\r\n\r\n3,\xff\r4,"5')

    def results() -> list[object]:
        rng, found = np.random.default_rng(7), list[object]()
        found.append(count_records(file, ",", compressed=False))
        for columns in (3, 6, 12):
            domain = domain_of(rng.integers(2, 30, columns).tolist())
            cliques = some_cliques(domain, rng, columns, 3)
            found += eliminate(domain, cliques)
            for before in ([], cliques[:2], cliques):
                found.append(sizes_with(domain, before, some_cliques(domain, rng, 20, 3)).tobytes())
            table = rng.random((columns, 5)) * (rng.random((columns, 5)) > 0.3)
            found.append(deal(rng.integers(0, columns, 500), table, rng).tobytes())
        return found

    in_the_interpreter(monkeypatch, steps=10**12)
    plain = results()
    in_the_interpreter(monkeypatch, steps=0)
    assert results() == plain


def test_a_tree_larger_than_any_double_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_interpreter(monkeypatch, steps=10**12)
    domain = domain_of([2**60] * 18)
    assert sizes_with(domain, [], [domain.attributes])[0] > 1e300
