"""Non-interference: given the noisy answers, every byte that leaves is the same whatever table is behind the gate.

A run is recorded on a table. Then the same answers are forced, with the same seed for post-processing, on that table,
on a neighbour and on an empty one (on one of as many equal rows, where the number of rows is public), and all that
leaves is compared: the release file, the report, the certificate, rows, marginals, progress, output, logs and errors.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from conformance import CASES, NO_RECORDS, OWN_COLUMNS, SIZES, Row, by_person, memory_table, run_on, some_rows
from margrave.data import MemoryTable
from margrave.errors import MargraveError, ReleaseError
from margrave.marginal import closure
from margrave.mechanisms import AIM, MECHANISMS, Independent, Mechanism
from margrave.mechanisms.common import release_of
from margrave.privacy import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    Gaussian,
    MarginalGap,
    ReplacePerson,
    ReplaceRow,
    SeededRandomness,
    Unit,
    protect,
)
from margrave.release import Release
from margrave.report import render
from margrave.schema import Domain
from margrave.transcript import Transcript
from margrave.typing import Clique, IntArray
from replay import ReplayRandomness
from tiny_table import UNITS

TIGHT, USUAL, LOOSE = Budget.approx(0.1, 1e-9), Budget.approx(1.0, 1e-9), Budget.zcdp(Fraction(40, 3))

# Every case under two of the units and two of the budgets; where columns of the rows are public, under the one unit.
CONFIGURATIONS: list[tuple[str, Unit, Budget]] = [
    (case, UNITS[(i + 2 * k + k) % len(UNITS)], (TIGHT, USUAL, LOOSE)[(i + k) % 3])
    for i, case in enumerate(CASES)
    for k in range(2)
] + [(case, ReplaceRow(), budget) for case in OWN_COLUMNS for budget in (TIGHT, USUAL)]
NAMES = [f"{case}, {unit}, {budget.epsilon:.3g}" for case, unit, budget in CONFIGURATIONS]


def test_there_are_configurations_enough() -> None:
    assert len(CONFIGURATIONS) >= 20
    assert {case.split()[0] for case, _, _ in CONFIGURATIONS} == set(MECHANISMS)
    for name in MECHANISMS:
        assert len({str(unit) for case, unit, _ in CONFIGURATIONS if case.split()[0] == name}) >= 2


# Tables.


ROWS = some_rows(SIZES, 40, seed=3)


def mechanism_of(case: str) -> Mechanism:
    """The case's mechanism, for the tables below."""
    domain = Domain.of(SIZES)
    return OWN_COLUMNS[case](domain, ROWS) if case in OWN_COLUMNS else CASES[case](domain)


def tables_of(case: str, unit: Unit) -> dict[str, MemoryTable]:
    """The tables that a case runs on under this unit."""
    return of_equal_columns() if case in OWN_COLUMNS else tables(unit)


def of_equal_columns() -> dict[str, MemoryTable]:
    """Tables that differ in the last column alone: in one row, and in all."""
    rows = {
        "itself": ROWS,
        "a neighbour": [*ROWS[:-1], (*ROWS[-1][:-1], (ROWS[-1][-1] + 1) % SIZES["c"])],
        "rows alike in the last column": [(*row[:-1], 3) for row in ROWS],
    }
    return {name: memory_table(SIZES, of_these) for name, of_these in rows.items()}


def tables(unit: Unit) -> dict[str, MemoryTable]:
    """A table, a neighbour of it, and one as different as can be that has in common what is public."""
    rows = ROWS
    persons = [i // 2 for i in range(40)] if by_person(unit) else []
    other: Row = (1, 2, 3)
    if isinstance(unit, ReplaceRow | ReplacePerson):
        near, far = [*rows[:-2], *[other] * 2], [other] * 40
        near = near if by_person(unit) else [*rows[:-1], other]
        return {
            "itself": memory_table(SIZES, rows, persons),
            "a neighbour": memory_table(SIZES, near, persons),
            "rows all alike": memory_table(SIZES, far, persons),
        }
    fewer = 38 if by_person(unit) else 39
    return {
        "itself": memory_table(SIZES, rows, persons),
        "a neighbour": memory_table(SIZES, rows[:fewer], persons[:fewer]),
        "an empty one": nobody(unit),
    }


def nobody(unit: Unit) -> MemoryTable:
    empty = memory_table(SIZES, [])
    if not by_person(unit):
        return empty
    schema = replace(empty.schema, person="who")
    return MemoryTable(
        schema, schema.encode(pa.table({a: pa.array([], pa.int64()) for a in SIZES})), np.empty(0, int)
    )


# Everything that leaves.


@dataclass
class Heard:
    """What was printed, logged and told while something ran."""

    output: io.StringIO
    progress: list[str]


@contextmanager
def listening() -> Iterator[Heard]:
    """Catch standard output and error, every logger at every level, and what progress is told."""
    heard = Heard(io.StringIO(), [])
    handler, root = logging.StreamHandler(heard.output), logging.getLogger()
    handler.addFilter(lambda record: not record.name.startswith("numba."))  # compiling, the first time
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        with redirect_stdout(heard.output), redirect_stderr(heard.output):
            yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def whole_text(error: BaseException) -> str:
    """An error as it would be printed, with everything that it came from."""
    return "".join(traceback.format_exception(error))


def leaving(
    mechanism: Mechanism, table: Any, unit: Unit, budget: Budget, replay: ReplayRandomness, folder: Path
) -> dict[str, bytes]:
    """Every byte that leaves a run with these answers."""
    with listening() as heard:
        try:
            release: Release | None = run_on(
                mechanism, table, unit, budget, replay,
                progress=lambda stage, done: heard.progress.append(f"{stage} {done!r}"),
            )  # fmt: skip
            error = ""
        except Exception as caught:
            release, error = None, whole_text(caught)
        found = {} if release is None else leaving_release(release, folder)
    try:
        replay.finish()
        asked = "as recorded"
    except AssertionError as differs:
        asked = str(differs)
    found |= {"error": error.encode(), "what was asked": asked.encode()}
    return found | {
        "output": heard.output.getvalue().encode(),
        "progress": "\n".join(heard.progress).encode(),
    }


def leaving_release(release: Release, folder: Path) -> dict[str, bytes]:
    """The bytes of all that a release gives."""
    path = folder / "release.margrave"
    release.save(path, overwrite=True)
    found = {
        "file": path.read_bytes(),
        "report": render(release).encode(),
        "certificate": json.dumps(release.certificate()).encode(),
        "bounds": json.dumps([b.to_dict() for b in release.bounds()]).encode(),
        "words": f"{release!r} {release.account!r} {release.model.total!r}".encode(),
    }
    for clique in closure([("a", "b", "c")]):
        try:
            found[f"marginal {clique}"] = release.marginal(clique).values.tobytes()
        except ReleaseError as error:
            found[f"marginal {clique}"] = whole_text(error).encode()
    if release.config["name"] not in NO_RECORDS:
        found["rows"] = arrow_bytes(release.sample(None if release.size_told else 30, seed=9))
        try:
            found["rows given"] = arrow_bytes(release.condition({"a": 1}).sample(30, seed=9))
        except ReleaseError as error:  # a model of a few records may have none of those
            found["rows given"] = whole_text(error).encode()
    return found


def arrow_bytes(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def differing(
    mechanism: Mechanism, unit: Unit, budget: Budget, folder: Path, behind: dict[str, MemoryTable] | None = None
) -> set[str]:
    """The names of what differs between the tables, given the answers of one run on the first of them."""
    behind = behind or tables(unit)
    release = run_on(mechanism, behind["itself"], unit, budget, SeededRandomness(17))
    found = [
        leaving(mechanism, table, unit, budget, ReplayRandomness(release.transcript), folder)
        for table in behind.values()
    ]
    return {name for name in set().union(*found) for other in found if other.get(name) != found[0].get(name)}


@pytest.mark.parametrize(("case", "unit", "budget"), CONFIGURATIONS, ids=NAMES)
def test_every_byte_follows_from_the_answers(
    case: str, unit: Unit, budget: Budget, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert differing(mechanism_of(case), unit, budget, tmp_path, tables_of(case, unit)) == set()
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.parametrize("case", [*CASES, *OWN_COLUMNS])
def test_the_recorded_run_is_the_one_replayed(case: str, tmp_path: Path) -> None:
    """So that the above compares runs that happened: the replay makes the recording's model, without an error."""
    mechanism, unit = mechanism_of(case), ReplaceRow() if case in OWN_COLUMNS else AddRemoveRow()
    itself, *_, farthest = tables_of(case, unit).values()
    release = run_on(mechanism, itself, unit, USUAL, SeededRandomness(17))
    found = leaving(mechanism, farthest, unit, USUAL, ReplayRandomness(release.transcript), tmp_path)
    assert (found["error"], found["what was asked"], found["output"]) == (b"", b"as recorded", b"")
    assert found["progress"]
    again = leaving_release(release, tmp_path)
    for name in again:
        if name.startswith(("marginal", "rows")):
            assert again[name] == found[name]


# Errors, wherever they happen.


class Breaking(ReplayRandomness):
    """Answers as recorded, until one fails with the true counts in its words."""

    def __init__(self, transcript: Transcript, after: int) -> None:
        super().__init__(transcript)
        self.left = after

    def _count_down(self, seen: object) -> None:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError(f"it failed at {seen}")

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        self._count_down(counts.tolist())
        return super().gaussian(counts, scale)

    def choose(self, scores: Any, temperature: Fraction) -> int:
        self._count_down(scores)
        return super().choose(scores, temperature)


@pytest.mark.parametrize("after", [0, 2, 4])
@pytest.mark.parametrize("case", [*CASES, *OWN_COLUMNS])
def test_an_error_is_the_same_on_every_table(case: str, after: int) -> None:
    """Its text and all that it came from, what it cost, and what was known by then."""
    unit = ReplaceRow() if case in OWN_COLUMNS else UNITS[after // 2 % 2]
    mechanism, behind = mechanism_of(case), tables_of(case, unit)
    record = run_on(mechanism, behind["itself"], unit, USUAL, SeededRandomness(17)).transcript
    outcomes = set()
    for table in behind.values():
        with (
            listening() as heard,
            protect(table, unit=unit, budget=USUAL, randomness=Breaking(record, after)) as gate,
        ):
            try:
                mechanism.run(gate, rng=np.random.default_rng(0))
                error = "none"
            except MargraveError as caught:
                error = whole_text(caught)
            outcomes.add((error, gate.account(), len(gate.transcript), repr(gate), heard.output.getvalue()))
    (outcome,) = outcomes
    assert outcome[0] == "none" or "RuntimeError" in outcome[0]
    assert "it failed at" not in outcome[0]
    assert len(outcome[1].debits) > 0


# Planted leaks: each must be seen, and by what it leaves in.


def peek(private: Any) -> int:
    """The true number of rows, which no mechanism may see."""
    return int(private._table.rows())


class Leaky(Independent):
    """Measures columns one by one, with a place for a leak before and after."""

    def run(self, private: Any, *, rng: Any = None, progress: Any = None) -> Release:
        rng = np.random.default_rng(0) if rng is None else rng
        self.before(private, rng)
        for clique in self.order(private):
            private.measure([clique], Gaussian(rho=private.rho / 3))
        if progress:
            progress(self.stage(private), 1.0)
        model = self.fit(private.domain, private.transcript, rng=rng)
        return self.last(private, release_of(private, model, self.config()), rng)

    def before(self, private: Any, rng: Any) -> None:
        """Nothing, here."""

    def order(self, private: Any) -> list[Clique]:
        return [("a",), ("b",), ("c",)]

    def stage(self, private: Any) -> str:
        return "fitting"

    def last(self, private: Any, release: Release, rng: Any) -> Release:
        return release


class InConfig(Leaky):
    def last(self, private: Any, release: Release, rng: Any) -> Release:
        return replace(release, config={**release.config, "rows": peek(private)})


class InProgress(Leaky):
    def stage(self, private: Any) -> str:
        return f"fitting {peek(private)} rows"


class InOutput(Leaky):
    def before(self, private: Any, rng: Any) -> None:
        sys.stderr.write(f"{peek(private)} rows\n")


class InLog(Leaky):
    def before(self, private: Any, rng: Any) -> None:
        logging.getLogger("margrave.mechanisms").debug("%d rows", peek(private))


class InError(Leaky):
    def before(self, private: Any, rng: Any) -> None:
        if peek(private) < 5 or private._table.count([("c",)])["c",][0] == 0:
            raise MargraveError("There are too few rows.")


class InSize(Leaky):
    """The model stands for the true number of rows."""

    def last(self, private: Any, release: Release, rng: Any) -> Release:
        model = type(release.model)(release.model.domain, peek(private), release.model.potentials)  # type: ignore[attr-defined, call-arg]
        return replace(release, model=model)


class InOrder(Leaky):
    """Columns are measured in the order of their commonest codes."""

    def order(self, private: Any) -> list[Clique]:
        counts = private._table.count(super().order(private))
        return sorted(counts, key=lambda c: int(counts[c].argmax()) * 10 - len(counts[c]))


class InCharge(Leaky):
    """One marginal less where a code is absent."""

    def order(self, private: Any) -> list[Clique]:
        return [c for c, counts in private._table.count(super().order(private)).items() if counts[0]]


class InSeed(Leaky):
    """Post-processing draws as often as there are rows; the model follows what is drawn."""

    def last(self, private: Any, release: Release, rng: Any) -> Release:
        rng.random(peek(private))
        return replace(release, config={**release.config, "drawn": float(rng.random())})


class InSupport(Leaky):
    """Codes that hardly anybody has are taken out of the model."""

    def last(self, private: Any, release: Release, rng: Any) -> Release:
        seen = private._table.count([("c",)])["c",] > 2
        potentials = {**release.model.potentials}  # type: ignore[attr-defined]
        potentials["c",] = np.where(seen, potentials["c",], -40.0)
        return replace(
            release, model=type(release.model)(release.model.domain, release.model.total, potentials)
        )  # type: ignore[call-arg]


class InCandidates(AIM):
    """Only marginals of which every cell is occupied are candidates."""

    def run(self, private: Any, **more: Any) -> Release:
        object.__setattr__(self, "_seen", private._table.count(self.reads(private.domain)))
        return super().run(private, **more)

    def _candidates(self, domain: Domain, cliques: tuple[Clique, ...], *more: Any) -> list[Clique]:
        seen: dict[Clique, IntArray] = self._seen  # type: ignore[attr-defined]
        return [c for c in super()._candidates(domain, cliques, *more) if len(c) == 1 or seen[c].any()]


class InWeights(Leaky):
    """A choice weighted by true counts; the weights are written in the transcript."""

    def before(self, private: Any, rng: Any) -> None:
        cliques = super().order(private)
        weights = {c: 1.0 + float(private._table.count([c])[c].max()) for c in cliques}
        gap = MarginalGap(
            {c: np.zeros(private.domain.shape(c)) for c in cliques}, weights, dict.fromkeys(cliques, 0.0)
        )
        private.select(cliques, gap, rho=private.rho / 4)

    def order(self, private: Any) -> list[Clique]:
        return super().order(private)[:2]


LEAKS: list[tuple[Callable[[], Mechanism], set[str]]] = [
    (InConfig, {"file", "report", "certificate"}),
    (InProgress, {"progress"}),
    (InOutput, {"output"}),
    (InLog, {"output"}),
    (InError, {"error"}),
    (InSize, {"file", "report", "certificate", "words", "rows"}),
    (InOrder, {"what was asked"}),
    (InCharge, {"what was asked"}),
    (InSeed, {"file", "certificate"}),
    (InSupport, {"file", "rows"}),
    (InCandidates, {"what was asked"}),
    (InWeights, {"file"}),
]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak[0].__name__)
@pytest.mark.parametrize("unit", [AddRemoveRow(), AddRemovePerson(3)], ids=str)
def test_a_planted_leak_is_seen(
    leak: tuple[Callable[[], Mechanism], set[str]], unit: Unit, tmp_path: Path
) -> None:
    mechanism, where = leak
    assert differing(mechanism(), unit, USUAL, tmp_path) >= where


def test_the_place_for_leaks_has_none_itself(tmp_path: Path) -> None:
    for unit in UNITS:
        assert differing(Leaky(), unit, USUAL, tmp_path) == set()
