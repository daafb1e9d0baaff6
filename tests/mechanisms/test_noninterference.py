"""Non-interference: given the noisy answers, every byte that leaves is the same whatever table is behind the gate.

A run is recorded on a table. Then the same answers are forced, with the same seed for post-processing, on that table,
on a neighbor and on an empty one (on one of as many equal rows, where the number of rows is public), and all that
leaves is compared: the release file, the report, the certificate, rows, marginals, progress, output, logs and errors.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplaceRow,
    Unit,
)
from margrave.data import MemoryTable
from margrave.domain import Domain
from margrave.errors import MargraveError
from margrave.mechanisms import AIM, Independent, Mechanism
from margrave.mechanisms.common import build_release
from margrave.privacy import Gaussian, MarginalGap, SeededRandomness, protect
from margrave.release import Release
from margrave.testing.noninterference import (
    ROWS,
    check_same_answers,
    differing,
    listening,
    tables,
    whole_text,
)
from margrave.testing.replay import ReplayRandomness
from margrave.transcript import Transcript
from margrave.types import Clique, FloatArray, IntArray
from tests.support.conformance import (
    CASES,
    OWN_COLUMNS,
    SIZES,
    memory_table,
    run_on,
    standing_in,
)
from tests.support.first_cases import FIRST_CASES
from tests.support.rounds import WrappedFit
from tests.support.tiny_table import UNITS

USUAL = Budget.approx(1.0, 1e-9)


# Tables.


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
        "a neighbor": [*ROWS[:-1], (*ROWS[-1][:-1], (ROWS[-1][-1] + 1) % SIZES["c"])],
        "rows alike in the last column": [(*row[:-1], 3) for row in ROWS],
    }
    return {name: memory_table(SIZES, of_these) for name, of_these in rows.items()}


@pytest.mark.parametrize("case", OWN_COLUMNS)
def test_every_byte_follows_from_the_answers_and_public_columns(case: str) -> None:
    check_same_answers(lambda _: mechanism_of(case), ReplaceRow(), 17, of_equal_columns())


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


@pytest.mark.parametrize("case", [*FIRST_CASES, *OWN_COLUMNS])
def test_an_error_is_the_same_on_every_table(case: str) -> None:
    """Its text and all that it came from, what it cost, and what was known by then."""
    for unit, failures in ((UNITS[0], (0, 4)), (UNITS[1], (2,))):
        if case in OWN_COLUMNS:
            unit = ReplaceRow()
        mechanism, behind = mechanism_of(case), tables_of(case, unit)
        record = run_on(mechanism, behind["itself"], unit, USUAL, SeededRandomness(17)).transcript
        for after in failures:
            outcomes = {
                outcome_of(mechanism, table, unit, Breaking(record, after))
                for table in behind.values()
            }
            (outcome,) = outcomes
            assert outcome[0] == "none" or "RuntimeError" in outcome[0]
            assert "it failed at" not in outcome[0]
            assert len(outcome[1].debits) > 0


def outcome_of(mechanism: Mechanism, table: Any, unit: Unit, source: Breaking) -> tuple[Any, ...]:
    with (
        listening() as heard,
        protect(table, unit=unit, budget=USUAL, randomness=source) as gate,
    ):
        try:
            mechanism.run(gate, rng=np.random.default_rng(0))
            error = "none"
        except MargraveError as caught:
            error = whole_text(caught)
        return error, gate.account(), len(gate.transcript), repr(gate), heard.output.getvalue()


# Planted leaks: each must be seen, and by what it leaves in.


def peek(private: Any) -> int:
    """The true number of rows, which no mechanism may see."""
    return int(private._table.rows())


def with_parameters(release: Release, **more: Any) -> Release:
    provenance = release.provenance
    parameters = {**provenance.parameters, **more}
    return replace(release, provenance=replace(provenance, parameters=parameters))


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
        return self.last(private, build_release(private, model, self.config()), rng)

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
        return with_parameters(release, rows=peek(private))


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
        return [
            c for c, counts in private._table.count(super().order(private)).items() if counts[0]
        ]


class InSeed(Leaky):
    """Post-processing draws as often as there are rows; the model follows what is drawn."""

    def last(self, private: Any, release: Release, rng: Any) -> Release:
        rng.random(peek(private))
        return with_parameters(release, drawn=float(rng.random()))


class InSupport(Leaky):
    """Codes that hardly anybody has are taken out of the model."""

    def last(self, private: Any, release: Release, rng: Any) -> Release:
        seen = private._table.count([("c",)])["c",] > 2
        potentials = {**release.model.potentials}  # type: ignore[attr-defined]
        potentials["c",] = np.where(seen, potentials["c",], -40.0)
        return replace(
            release,
            model=type(release.model)(release.model.domain, release.model.total, potentials),
        )  # type: ignore[call-arg]


class Occupied(WrappedFit):
    """A fit that has no room for marginals without a row."""

    seen: Mapping[Clique, IntArray]

    def sizes_with(self, domain: Domain, cliques: Any, candidates: Any) -> FloatArray:
        sizes = super().sizes_with(domain, cliques, candidates)
        empty = [len(c) > 1 and not self.seen[c].any() for c in candidates]
        return np.where(empty, np.inf, sizes)


class InCandidates(AIM):
    """Only marginals of which a cell is occupied are candidates."""

    def run(self, private: Any, **more: Any) -> Release:
        fit = Occupied(self.fit)
        fit.seen = private._table.count(self.reads(private.domain))
        # few rows: the columns would take the budget, and leave no candidates
        return AIM.run(standing_in(replace(self, column_error=None), fit), private, **more)


class InWeights(Leaky):
    """A choice weighted by true counts; the weights are written in the transcript."""

    def before(self, private: Any, rng: Any) -> None:
        cliques = super().order(private)
        weights = {c: 1.0 + float(private._table.count([c])[c].max()) for c in cliques}
        gap = MarginalGap(
            {c: np.zeros(private.domain.shape(c)) for c in cliques},
            weights,
            dict.fromkeys(cliques, 0.0),
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
