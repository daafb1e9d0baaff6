"""A release's account can be recomputed from the release alone, and a forged one is refused."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margrave
from margrave.account import Debit
from margrave.accounting import Budget
from margrave.cli.main import run
from margrave.errors import ReleaseError
from margrave.mechanisms import AIM, DualQuery
from margrave.privacy import SeededRandomness, protect
from margrave.provenance import PublicFacts
from margrave.release import Release
from margrave.release.verification import implies, moves_of
from margrave.transcript import PublicReading, PublicTotal, QuerySelection, Transcript
from margrave.unit import AddRemovePerson, AddRemoveRow, ReplacePerson, ReplaceRow, Unit
from tests.support.conformance import CASES, memory_table, shaped, some_rows
from tests.support.tiny_table import UNITS

SIZES = {"a": 3, "b": 2, "c": 4}
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a private release that measures and chooses."""
    table = memory_table(SIZES, some_rows(SIZES, 200))
    made = margrave.synthesize(
        table, table.schema, epsilon=2.0, delta=1e-9, mechanism=AIM(rounds=4), seed=1
    )
    path = tmp_path_factory.mktemp("real") / "r.margrave"
    made.save(path)
    return path


def forged(path: Path, change: Change, folder: Path) -> Path:
    """A copy of the file with its manifest edited, as anybody with a zip tool can."""
    target = folder / "forged.margrave"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as out:
        manifest = json.loads(source.read("manifest.json"))
        change(manifest)
        for name in source.namelist():
            out.writestr(
                name, json.dumps(manifest) if name == "manifest.json" else source.read(name)
            )
    return target


def of_type(manifest: dict[str, Any], kind: str) -> dict[str, Any]:
    entry: dict[str, Any] = next(e for e in manifest["transcript"] if e["type"] == kind)
    return entry


def scaled(container: Any, key: Any, factor: Fraction | float) -> None:
    number = container[key]
    container[key] = (
        str(Fraction(number) * Fraction(factor)) if isinstance(number, str) else number * factor
    )


def cheaper_throughout(manifest: dict[str, Any]) -> None:
    """Every rho a thousandth, debits and entries alike: the books agree with one another."""
    for priced in (
        *manifest["account"]["debits"],
        *(e for e in manifest["transcript"] if "rho" in e),
    ):
        scaled(priced, "rho", Fraction(1, 1000))


def swapped(manifest: dict[str, Any]) -> None:
    debits = manifest["account"]["debits"]
    other = next(i for i, d in enumerate(debits) if d["rho"] != debits[0]["rho"])
    debits[0], debits[other] = debits[other], debits[0]


FORGERIES: dict[str, tuple[Change, str]] = {
    "epsilon": (lambda m: m["account"].update(epsilon=0.001), "does not imply epsilon = 0.001"),
    "epsilon by a little": (lambda m: scaled(m["account"], "epsilon", 1 - 1e-6), "does not imply epsilon"),
    "delta": (lambda m: m["account"].update(delta=1e-15), "does not imply epsilon = 2 at delta = 1e-15"),
    "delta by a little": (lambda m: scaled(m["account"], "delta", 1 - 1e-6), "does not imply epsilon"),
    "epsilon without end": (lambda m: m["account"].update(epsilon=1.7e308), "both below 1e+300"),
    "delta of nothing": (lambda m: m["account"].update(delta=0), "delta between 0 and 1"),
    "budget raised": (lambda m: scaled(m["account"], "rho_budget", 2), "does not imply epsilon"),
    "budget lowered": (lambda m: scaled(m["account"], "rho_budget", Fraction(1, 2)), "more than the budget"),
    "debits": (
        lambda m: [d.update(rho="1/1000000") for d in m["account"]["debits"]],
        "which is not the price of the answers",
    ),
    "debits and entries": (cheaper_throughout, "less than its price"),
    "a debit's order": (swapped, "which is not the price of the answers"),
    "a debit's kind": (lambda m: m["account"]["debits"][0].update(what="choose one"), "of the kind 'measure'"),
    "a debit less": (lambda m: m["account"]["debits"].pop(), "The last 1 answer of the transcript was not debited."),
    "a debit more": (lambda m: m["account"]["debits"].append({"what": "measure a", "rho": "1/9999999"}), "for nothing"),
    "an entry less": (lambda m: m["transcript"].pop(), "pays for nothing"),
    "the first entry": (lambda m: m["transcript"].pop(0), "Debit 1"),
    "all entries": (lambda m: m.update(transcript=[], hindsight=[]), "pays for nothing"),
    "unit": (lambda m: m["account"].update(unit="replace-row"), "less than its price"),
    "unit of persons": (
        lambda m: m["account"].update(unit="add-remove-person:5"),
        "does not name a person ID column",
    ),
    "scale": (lambda m: scaled(of_type(m, "measurement"), "scale", 0.5), "less than its price"),
    "scale by a little": (lambda m: scaled(of_type(m, "measurement"), "scale", 1 - 1e-9), "less than its price"),
    "scale raised": (lambda m: scaled(of_type(m, "measurement"), "scale", 2.0), "more than its price"),
    "rho of a measurement": (
        lambda m: scaled(of_type(m, "measurement"), "rho", Fraction(1, 3)), "less than its price",
    ),
    "rho of a choice": (lambda m: scaled(of_type(m, "selection"), "rho", Fraction(1, 3)), "less than its price"),
    "epsilon of a choice": (lambda m: scaled(of_type(m, "selection"), "epsilon", 2.0), "less than its price"),
    "sensitivity of a choice": (lambda m: scaled(of_type(m, "selection"), "sensitivity", 0.5), "its weights imply"),
    "score of a choice": (lambda m: of_type(m, "selection").update(terms={}), "unknown score"),
    "private": (lambda m: m["account"].update(sampler="NOT PRIVATE: seeded noise"), "calls the noise private"),
    "row count": (
        lambda m: m["transcript"].insert(0, {"type": "public-total", "total": 9}), "row count, which is private",
    ),
    "public records": (
        lambda m: m["provenance"].update(public=PublicFacts(9, ("a",), "0", "mine", same_records=True).to_dict()),
        "under the unit to replace one row only",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_release_is_refused_and_its_contradiction_named(
    real: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    change, words = FORGERIES[what]
    path = forged(real, change, tmp_path)
    found = margrave.verify(path)
    assert not found.holds
    assert any(words in finding for finding in found.findings), found.findings
    with pytest.raises(ReleaseError, match="does not follow from its transcript") as caught:
        Release.load(path)
    assert found.findings[0] in str(caught.value)
    assert Release.load(path, verify=False).verify() == found
    assert run(["verify", str(path)]) == ReleaseError.exit_code == 7
    said = capsys.readouterr()
    assert said.out.count("Contradiction: ") == len(found.findings)
    assert "does not hold" in said.out
    assert run(["verify", str(path), "--json"]) == 7
    assert json.loads(capsys.readouterr().out) == found.to_dict()
    assert run(["certificate", str(path)]) == 7
    assert found.findings[0] in capsys.readouterr().err


def test_a_sound_release_verifies(
    real: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert margrave.verify(str(real)).holds
    assert margrave.verify(Release.load(real)).to_dict() == {
        "holds": True, "private": True, "findings": [], "notes": [],
    }  # fmt: skip
    assert margrave.verify(forged(real, lambda m: None, tmp_path)).holds
    assert run(["verify", str(real)]) == 0
    assert "The account holds." in capsys.readouterr().out
    assert run(["verify", str(tmp_path / "none.margrave")]) == 7
    assert "There is no file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("case", "unit"),
    [
        pytest.param(c, u, id=f"{c}-{u}", marks=[pytest.mark.slow] * (u != UNITS[i % len(UNITS)]))
        for i, c in enumerate(CASES)
        for u in UNITS
    ],
)
def test_every_mechanism_verifies_under_every_unit(case: str, unit: Any) -> None:
    """The cases take turns with the units; all of both are for the slow tests."""
    table = shaped("two columns")
    budget = Budget.approx(3.0, 1e-6)
    with protect(table, unit=unit, budget=budget, randomness=SeededRandomness(3)) as private:
        made = CASES[case](table.domain).run(private, rng=np.random.default_rng(0))
    found = made.verify()
    assert found.findings == ()
    assert found.notes == (
        "The release is not private: its noise came from a source meant for tests.",
    )
    assert not found.holds


def test_choices_alone_verify_and_their_sensitivity_is_recomputed() -> None:
    table = memory_table(SIZES, some_rows(SIZES, 60))
    made = margrave.synthesize(
        table,
        table.schema,
        epsilon=2.0,
        delta=1e-9,
        mechanism=DualQuery(rounds=4, samples=3, max_nodes=0),
        seed=1,
    )
    assert made.verify().holds
    entries = tuple(
        replace(e, sensitivity=0.5) if isinstance(e, QuerySelection) else e for e in made.transcript
    )
    found = replace(made, transcript=Transcript(entries)).verify().findings
    assert any("one count changes by 1" in f for f in found)


def test_a_run_that_failed_within_an_answer_has_one_debit_more(real: Path) -> None:
    """What was charged is charged; only such a run may have a debit without an answer, one, the last."""
    made = Release.load(real)
    stopped = replace(made, provenance=replace(made.provenance, stopped_early=True))
    assert stopped.verify().notes == ()
    lacking = Transcript(made.transcript.entries[:-1])
    assert replace(made, transcript=lacking).verify().findings
    found = replace(stopped, transcript=lacking).verify()
    assert found.holds
    assert "The run failed before the last debit" in found.notes[0]
    assert replace(stopped, transcript=Transcript(made.transcript.entries[:-2])).verify().findings


def test_a_reading_of_an_unnamed_public_table_is_found(real: Path) -> None:
    made = Release.load(real)
    reading = PublicReading(("a",), np.ones(3), np.ones(3), "feed")
    read = replace(made, transcript=made.transcript + Transcript((reading,)))
    assert any(
        "public table that the provenance does not name" in f for f in read.verify().findings
    )
    named = replace(
        read,
        provenance=replace(made.provenance, public=PublicFacts(9, ("a",), "feed", "of last year")),
    )
    assert named.verify().holds
    others = replace(named.provenance, public=PublicFacts(9, ("b",), "feed", "of last year"))
    assert any(
        "columns that its public table does not have" in f
        for f in replace(named, provenance=others).verify().findings
    )


def test_the_row_count_opens_a_transcript_where_it_is_public() -> None:
    table = memory_table(SIZES, some_rows(SIZES, 60))
    made = margrave.synthesize(
        table,
        table.schema,
        epsilon=2.0,
        delta=1e-9,
        unit="replace-row",
        mechanism="independent",
        seed=1,
    )
    assert made.verify().holds
    without = Transcript(made.transcript.entries[1:])
    twice = Transcript((PublicTotal(7), *made.transcript.entries))
    for other in (without, twice):
        assert any(
            "starts with the row count" in f
            for f in replace(made, transcript=other).verify().findings
        )


@pytest.mark.parametrize(
    ("unit", "found"),
    [
        (AddRemoveRow(), (1, 1, 1)),
        (ReplaceRow(), (2, 2, 1)),
        (AddRemovePerson(1), (1, 1, 1)),
        (AddRemovePerson(3), (3, 9, 3)),
        (ReplacePerson(3), (6, 18, 3)),
        (ReplacePerson(10**6), (2 * 10**6, 2 * 10**12, 10**6)),
    ],
)
def test_the_sensitivities_of_units(unit: Unit, found: tuple[int, int, int]) -> None:
    assert moves_of(unit) == found


@pytest.mark.parametrize(
    "name",
    ["replace-person:1000001", "replace-person:0", "replace-person", "replace-row:1", "one-cell", "", 3, None,
     "add or remove one row"],
)  # fmt: skip
def test_a_release_of_another_unit_is_refused(real: Path, tmp_path: Path, name: object) -> None:
    path = forged(real, lambda m: m["account"].update(unit=name), tmp_path)
    with pytest.raises(ReleaseError, match=r"not one of margrave's units|should be text"):
        Release.load(path, verify=False)


@settings(deadline=None, max_examples=200)
@given(st.floats(-15, 11), st.floats(-299, -0.001))
def test_two_conversions_agree(log_rho: float, log_delta: float) -> None:
    """The library's own, by golden section over epsilon, and the verifier's, by the zero of a derivative."""
    budget = Budget.zcdp(10**log_rho, 10**log_delta)
    epsilon = Fraction(budget.epsilon)
    assert implies(budget.rho, epsilon * (1 + Fraction(1, 10**9)), budget.delta)
    assert not epsilon or not implies(budget.rho, epsilon * (1 - Fraction(1, 10**6)), budget.delta)


def test_an_epsilon_that_is_too_large_is_a_note(real: Path) -> None:
    made = Release.load(real)
    loose = replace(made, account=replace(made.account, epsilon=2.5)).verify()
    assert loose.holds
    assert loose.notes == ("epsilon is stated larger than rho and delta need.",)


def test_it_takes_milliseconds_and_time_that_grows_linearly(real: Path) -> None:
    made = Release.load(real)
    measured = list(made.transcript.measurements)

    def seconds(times: int) -> float:
        entries = tuple(measured * times)
        debits = tuple(Debit("measure", e.rho) for e in entries)
        long = replace(
            made, transcript=Transcript(entries), account=replace(made.account, debits=debits)
        )
        start = time.perf_counter()
        long.verify()
        return time.perf_counter() - start

    start = time.perf_counter()
    made.verify()
    assert time.perf_counter() - start < 0.05
    assert seconds(4000) < 40 * max(seconds(400), 0.002)
