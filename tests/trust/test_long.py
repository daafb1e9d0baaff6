"""What puts the long proofs together: which rows of loaders are kept, when all that a bar asks for was run, what a fit
was hurried by. The proofs themselves are in tests/support/trust.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from margrave.mechanisms import NAPSUMQ
from tests.support import trust
from tests.support.audit import quick
from tests.support.conformance import Estimated
from tests.support.fuzz import LOADERS
from tests.support.scale import measured
from tests.support.trust import NAMED, Ask, added, fuzzed, row_of, set_apart

FACTS: dict[str, Any] = {
    "read": 900,
    "refused": 100,
    "seconds": 3600.0,
    "slowest": 0.5,
    "seed": 7,
    "harm": "",
}


def hours(**harm: str) -> list[list[str]]:
    """An hour of every loader."""
    return [row_of(name, {**FACTS, "harm": harm.get(name, "")}, "0.1.0 (a)") for name in LOADERS]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Results in a folder of their own, and a fuzzer that does nothing; the loaders that it was asked for."""
    asked: list[str] = []

    def fuzz(name: str, seconds: float) -> dict[str, Any]:
        asked.append(name)
        return {**FACTS, "seconds": seconds}

    monkeypatch.setattr(trust, "DATA", tmp_path / "results.json")
    monkeypatch.setattr(trust, "PAGE", tmp_path / "results.md")
    monkeypatch.setattr(trust, "version", lambda: "0.1.0 (a)")
    monkeypatch.setattr(trust, "_fuzzed", fuzz)
    return asked


def keep(**changed: Any) -> None:
    (result,) = trust.found(
        ["fuzz"], **{"minutes": 60 * 24.0, "jobs": 1, "loaders": tuple(LOADERS), **changed}
    )
    trust.kept({"fuzz": result})


def test_loaders_that_are_not_asked_for_are_kept(results: list[str]) -> None:
    """So the hours can be spread over several runs, and the bar is met when the last loader has had its own."""
    for i, name in enumerate(LOADERS, 1):
        keep(loaders=(name,))
        result = trust.known()["fuzz"]
        assert [row[0] for row in result.details[1:]] == list(LOADERS)[:i]
        assert result.met
        assert result.shortened == (not set(NAMED) <= set(list(LOADERS)[:i]))
    assert results == list(LOADERS)
    assert "schema 60, csv 60, parquet 60, release 60, posterior 60" in result.figure
    assert "| yes |" in trust.page([result])


def test_runs_of_one_version_add_up(results: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    keep(minutes=30.0, loaders=("csv",))
    keep(minutes=20.0, loaders=("csv",))
    assert trust.known()["fuzz"].details[1] == [
        "csv", "50.0", "2,000", "200", "0.500", "7, 7", "none", "0.1.0 (a)"
    ]  # fmt: skip
    monkeypatch.setattr(trust, "version", lambda: "0.1.0 (b)")
    keep(minutes=1.0, loaders=("csv",))
    assert trust.known()["fuzz"].details[1][1:3] == [
        "1.0",
        "1,000",
    ]  # what another version did proves nothing of this


def test_time_is_shared_among_the_loaders(
    results: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trust.fuzzing(Ask(seconds=60.0 * len(LOADERS))).details[1][1] == "1.0"
    assert trust.fuzzing(Ask(seconds=600.0, loaders=("csv",))).details[1][1] == "10.0"
    assert trust.fuzzing(Ask()).details[1][1] == "60.0"
    monkeypatch.setattr(trust, "spread", lambda work, tasks, jobs: map(work, tasks))
    assert trust.fuzzing(Ask(seconds=60.0 * len(LOADERS), jobs=2)).details[1][1] == "2.0"


def test_harm_is_never_lost_in_a_sum() -> None:
    sound, harmed = (
        row_of("csv", FACTS, "a"),
        row_of("csv", {**FACTS, "harm": "Trace\nKeyError: 'codes'\n"}, "a"),
    )
    assert added(sound, harmed) == harmed
    assert harmed[-2] == "KeyError: 'codes'"
    found = fuzzed(hours(release="KeyError"))
    assert not found.met
    assert "HARM" in found.figure
    died = row_of("csv", {"harm": "the process died: hung"}, "a")
    assert died[1:3] == ["0.0", "0"]


def test_an_hour_of_each_loader_is_all_and_less_is_not() -> None:
    assert fuzzed(hours()).whole
    assert not fuzzed(hours()[1:]).whole
    less = hours()
    less[1][1] = "59.9"
    assert not fuzzed(less).whole
    unnamed = hours()
    unnamed[2][1] = "1.0"
    assert fuzzed(unnamed).whole


def test_results_come_in_order_from_several_processes() -> None:
    assert list(trust.spread(abs, [-3, 2, -1], 2)) == [3, 2, 1]


def test_the_page_tells_with_what_the_smallest_table_was_timed() -> None:
    assert set_apart(quick("aim")) == "its defaults"
    assert set_apart(quick("pmw-pub")) == "its defaults"
    assert set_apart(quick("aim-pub")) == "rounds=2"
    assert set_apart(quick("privpgd")).startswith("ParticleFit(particles=200, epochs=20,")
    assert set_apart(quick("fem")) == "rounds=6, samples=5"
    assert set_apart(NAPSUMQ(connect_columns=False, fit=Estimated(chains=2))) == (
        "connect_columns=False, an estimate in place of the posterior"
    )


def test_a_run_takes_no_more_memory_than_the_dry_run_names() -> None:
    found = measured(20_000)
    assert found["data_mb"] < found["peak_mb"] < found["planned_mb"]
    assert found["cpu_s"] > 0
