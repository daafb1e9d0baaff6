"""A sample of the planted bugs is killed, and all of them fit the source.

``python -m tests.support.mutants`` runs the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.mutants import ROOT, SOURCE, Copy, Mutant, killed_by, mutants, run

ALL = mutants()
SAMPLE = [
    "a person's rows as if always in different cells",
    "the exponential mechanism without its half",
    "a debit written but not counted",
    "charged after sampling",
]


@pytest.mark.parametrize("mutant", ALL, ids=lambda m: m.name)
def test_every_mutant_fits_the_source(mutant: Mutant) -> None:
    """Its text is there, once; a changed module is Python; its killers exist."""
    text = (SOURCE / "margrave" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    if mutant.file.endswith(".py"):
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    for killer in mutant.killers:
        file, function = re.fullmatch(r"(tests/[\w/]+\.py)::(\w+)(?:\[.*\])?", killer).groups()  # type: ignore[union-attr]
        assert f"\ndef {function}(" in (ROOT / file).read_text(encoding="utf-8")


def test_there_are_enough_and_each_has_a_name() -> None:
    assert len(ALL) >= 30
    assert len({m.name for m in ALL}) == len(ALL)
    assert len({m.hazard for m in ALL}) >= 18


@pytest.mark.slow
def test_a_sample_is_killed() -> None:
    """One run of pytest a mutant, so only a few here."""
    chosen = [m for m in ALL if m.name in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    for outcome in run(chosen):
        assert outcome.killer, f"{outcome.mutant.name}: {outcome.trouble}"
        assert outcome.killer.split("[")[0] in {k.split("[")[0] for k in outcome.mutant.killers}


@pytest.fixture
def copied(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def other(**changes: object) -> Mutant:
    fields = {**vars(next(m for m in ALL if m.name == SAMPLE[0])), **changes}
    return Mutant(**fields)


HARMLESS: dict[str, Callable[[], Mutant]] = {
    "a change of nothing": lambda: other(new=other().old + "  # the same"),
    "an import that fails": lambda: other(old="import numpy as np", new="import no_such_module"),
    "a text that is not there": lambda: other(old="no such text"),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_is_no_bug_is_no_kill(what: str, copied: Copy) -> None:
    before = (copied.source / "margrave" / "accounting" / "sensitivities.py").read_bytes()
    assert killed_by(copied, HARMLESS[what]()).killer == ""
    assert (copied.source / "margrave" / "accounting" / "sensitivities.py").read_bytes() == before
