"""Planted faults: each check of `margrave.testing` sees what it is for, and says so in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.mechanisms import Independent, Mechanism
from margrave.mechanisms.common import PlannedMeasurement, build_release, one_way
from margrave.models import FITS, Fit, GraphicalFit, Model, ModelState
from margrave.models.entries import EntryKind, kinds_of
from margrave.privacy import Dependence, Gaussian, Improvement, MarginalGap, RelativeGap
from margrave.privacy.noise import NoisePrice
from margrave.release import Release
from margrave.schema import Schema
from margrave.testing import check_fit, check_mechanism, check_score, check_table, mechanism_checks
from margrave.testing.tables import Row, TinySchema, TinyTable, codes_of
from margrave.transcript import Transcript
from margrave.types import Clique
from tests.support.conformance import (
    FEW_PARTICLES,
    FEW_RECORDS,
    FEW_SWEEPS,
    SMALL,
    SMALL_TABLE,
    Estimated,
)

# Fits.


class Wrapped(Model):
    """A model that answers as another does, over a domain of its own, of a kind that no loader knows."""

    def __init__(self, inner: Any, domain: Domain, more: float = 0.0) -> None:
        self.inner, self._domain, self._total = inner, domain, inner.total + more

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def total(self) -> float:
        return float(self._total)

    def answer(self, cliques: Any, **how: Any) -> Any:
        scale = self._total / self.inner.total
        return {c: scale * v for c, v in self.inner.answer(cliques, **how).items()}

    def sample(self, rows: int | None = None, **how: Any) -> Codes:
        drawn = self.inner.sample(rows, **how)
        domain = self._domain.project(drawn.domain)
        return Codes.of(domain, {a: drawn.column(a) for a in domain})

    def condition(self, evidence: Any) -> Model:
        return Wrapped(self.inner.condition(evidence), self._domain)

    def complete(self, rows: Codes, *, rng: Any) -> Codes:
        found: Codes = self.inner.complete(rows, rng=rng)
        return found

    def state(self) -> ModelState:
        return replace(self.inner.state(), kind="nobody's")


class WithoutLoader(GraphicalFit):
    def finish(self, state: Any, transcript: Any, **more: Any) -> Any:
        model = super().finish(state, transcript, **more)
        return Wrapped(model, model.domain)


class IgnoresZeros(GraphicalFit):
    def finish(self, state: Any, transcript: Any, *, rng: Any, **more: Any) -> Any:
        whole = state.domain
        if not whole.zeros:
            return super().finish(state, transcript, rng=rng, **more)
        free = Domain.of(dict(zip(whole, whole.sizes, strict=True)))
        return Wrapped(GraphicalFit()(free, transcript, rng=rng), whole)


# Mechanisms.


@dataclass(frozen=True, kw_only=True)
class Sound(Independent):
    """Measures every column, with a place for a fault in each part."""

    name = "sound"

    def config(self) -> dict[str, Any]:
        return {**super().config(), "name": self.name}

    def run(self, private: Any, *, rng: Any = None, progress: Any = None) -> Release:
        rng = np.random.default_rng() if rng is None else rng
        private.prepare(self.counted(private.domain))
        self.ask(private)
        if progress is not None:
            progress("fitting", 1.0)
        return self.finish(private, rng)

    def counted(self, domain: Domain) -> list[Clique]:
        return one_way(domain)

    def ask(self, private: Any) -> None:
        private.measure(one_way(private.domain), Gaussian(rho=private.rho))

    def finish(self, private: Any, rng: Any) -> Release:
        model = self.fit(private.domain, private.transcript, rng=rng)
        return build_release(private, model, self.config())


class Misnamed(Sound):
    def config(self) -> dict[str, Any]:
        return {**super().config(), "name": "other"}


class TakesAName(Sound):
    name = "aim"


class Wasteful(Sound):
    def ask(self, private: Any) -> None:
        private.measure(one_way(private.domain), Gaussian(rho=private.rho / 2))


class Unplanned(Sound):
    """Measures one by one: less noise for the first than it plans."""

    def ask(self, private: Any) -> None:
        for clique in one_way(private.domain):
            private.measure([clique], Gaussian(rho=private.remaining * 2 / 3))
        private.measure([clique], Gaussian(rho=private.remaining))


class PlansOthers(Sound):
    def steps(self, domain: Domain, rho: Any, unit: Any) -> list[PlannedMeasurement]:
        each = rho / len(domain)
        return [PlannedMeasurement.of("columns", [one_way(domain)[-1]] * len(domain), each, unit)]


class Unannounced(Sound):
    def reads(self, domain: Domain) -> list[Clique]:
        return one_way(domain)[:1]


class ScansTwice(Sound):
    def counted(self, domain: Domain) -> list[Clique]:
        return one_way(domain)[1:]


class Peeping(Sound):
    """Counts behind the gate: the checks' own gate keeps the real one in ``private``."""

    def ask(self, private: Any) -> None:
        gate = getattr(private, "private", private)
        gate._table.count([(private.domain.attributes[0],)])
        super().ask(private)


class Unrepeatable(Sound):
    def finish(self, private: Any, rng: Any) -> Release:
        return super().finish(private, np.random.default_rng())


class TellsRows(Sound):
    """The stage that it reports is the number of rows."""

    def run(self, private: Any, *, rng: Any = None, progress: Any = None) -> Release:
        rows = private._table.rows() if progress is not None else 0
        told = None if progress is None else (lambda stage, done: progress(f"{stage} {rows}", done))
        return super().run(private, rng=rng, progress=told)


class FallsBack(Sound):
    def ask(self, private: Any) -> None:
        super().ask(private)
        self.report(0.7)
        self.report(0.2)

    def run(self, private: Any, *, rng: Any = None, progress: Any = None) -> Release:
        object.__setattr__(self, "report", partial(progress or (lambda *_: None), "measuring"))
        return super().run(private, rng=rng, progress=progress)


class EndsEarly(Sound):
    def run(self, private: Any, *, rng: Any = None, progress: Any = None) -> Release:
        at = None if progress is None else (lambda stage, done: progress(stage, done / 2))
        return super().run(private, rng=rng, progress=at)


class NamesARound(Sound):
    def run(self, private: Any, *, rng: Any = None, progress: Any = None) -> Release:
        at = None if progress is None else (lambda stage, done: progress(f"{stage} 1", done))
        return super().run(private, rng=rng, progress=at)


class AsksByRows(Sound):
    """Asks in another order if the number of rows is odd."""

    def ask(self, private: Any) -> None:
        odd = getattr(private, "private", private)._table.rows() % 2
        cliques = one_way(private.domain)[:: -1 if odd else 1]
        private.measure(cliques, Gaussian(rho=private.rho))


class Prints(Sound):
    def finish(self, private: Any, rng: Any) -> Release:
        sys.stdout.write("fitting\n")
        return super().finish(private, rng)


class RefusesLate(Sound):
    def finish(self, private: Any, rng: Any) -> Release:
        if private.domain.zeros:
            raise InputError("Structural zeros are not supported.")
        return super().finish(private, rng)


class RefusesInTime(Sound):
    def counted(self, domain: Domain) -> list[Clique]:
        if domain.zeros:
            raise InputError("Structural zeros are not supported.")
        return super().counted(domain)


MECHANISM_FAULTS: dict[str, tuple[Callable[[], Mechanism], str, str]] = {
    "another name in config": (Misnamed, "description", "states the name 'other', not 'sound'"),
    "a built-in name": (TakesAName, "description", "is that of a built-in mechanism"),
    "half of the budget": (Wasteful, "table: one row", "It spent rho 7/22 of 7/11"),
    "half of every budget": (Wasteful, "budgets, replace one row", "It spent rho"),
    "noise of other scales": (Unplanned, "table: five columns", "plans a noise scale of"),
    "other marginals than planned": (PlansOthers, "table: two columns", "does not name"),
    "marginals that reads() lacks": (Unannounced, "table: two columns", r"which reads\(\) does not list"),
    "two scans": (ScansTwice, "table: two columns", "scanned the table 2 times"),
    "a count behind the gate": (Peeping, "table: one row", "outside a question"),
    "a model of another seed": (lambda: Unrepeatable(fit=SMALL), "seed", "The same seeds give another"),
    "a model that no loader knows": (
        lambda: Sound(fit=WithoutLoader()), "table: one row", "A loaded release has no model",
    ),
    "progress that falls": (FallsBack, "table: one row", "Its progress falls"),
    "progress that ends early": (EndsEarly, "table: one row", r"ends at 0\.5, not at 1"),
    "a digit in a stage": (NamesARound, "table: one row", r"stage \['fitting 1'\] has a digit"),
    "another question": (
        AsksByRows, "loss, add or remove one row",
        r"the run asked another question: noisy counts of shape \(\d,\) at .*, not noisy .*\(rule 3",
    ),
    "rows in the progress": (TellsRows, "same answers, add or remove one row", r"\['progress'\]"),
    "a refusal that costs": (RefusesLate, "structural zeros", "after it spent budget"),
    "words on the output": (Prints, "same answers, add or remove one row", "prints"),
}  # fmt: skip


def test_ignored_structural_zeros_are_seen() -> None:
    mechanism_checks(lambda _: Sound())["structural zeros"]()
    mechanism_checks(lambda _: RefusesInTime())["structural zeros"]()
    with pytest.raises(AssertionError, match="gives impossible combinations a probability"):
        mechanism_checks(lambda _: Sound(fit=IgnoresZeros()))["structural zeros"]()


@pytest.mark.parametrize("fault", MECHANISM_FAULTS)
def test_a_fault_of_a_mechanism_is_seen(fault: str) -> None:
    make, check, sentence = MECHANISM_FAULTS[fault]
    mechanism_checks(lambda _: Sound())[check]()
    with pytest.raises(AssertionError, match=sentence):
        mechanism_checks(lambda _: make())[check]()


def test_a_loss_above_the_charge_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    check = mechanism_checks(lambda _: Sound())["loss, add or remove one row"]
    check()
    honest = Gaussian.price

    def wrong(self: Gaussian, *known: Any) -> NoisePrice:
        price = honest(self, *known)
        return NoisePrice(price.scale * 0.99, price.rho_each)

    monkeypatch.setattr(Gaussian, "price", wrong)
    with pytest.raises(AssertionError, match=r"a measure loses 1\.02\d* times its charge"):
        check()


def test_check_mechanism_runs_every_check() -> None:
    with pytest.raises(AssertionError, match="prints"):
        check_mechanism(lambda _: Prints())


# Fits of the library, and faults.

QUICK: dict[str, Callable[[], Fit]] = {
    "max-entropy": Estimated,
    "latent-classes": lambda: FEW_SWEEPS,
    "particles": lambda: FEW_PARTICLES,
    "genetic": lambda: FEW_RECORDS,
    "generator": lambda: SMALL,
    "relaxed": lambda: SMALL_TABLE,
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n,
            marks=[pytest.mark.slow]
            * (n in ("generator", "relaxed", "annealed", "latent-classes")),
        )
        for n in FITS
    ],
)
def test_every_fit_passes(name: str) -> None:
    check_fit(QUICK.get(name, FITS[name])())


class FailsOnCells(GraphicalFit):
    """States that it takes single cells, and cannot."""

    def finish(self, state: Any, transcript: Any, **more: Any) -> Any:
        model = super().finish(state, transcript, **more)
        return Wrapped(model, model.domain, float("nan")) if transcript.answers else model


class Restless(GraphicalFit):
    """Draws from a generator of its own, once it has answers."""

    def finish(self, state: Any, transcript: Any, **more: Any) -> Any:
        model = super().finish(state, transcript, **more)
        kind: Any = type(model)
        return kind(model.domain, model.total + np.random.default_rng().random(), model.potentials)


class ChangesItsState(GraphicalFit):
    def update(self, state: Any, transcript: Any, **more: Any) -> Any:
        later = super().update(state, transcript, **more)
        object.__setattr__(state, "fitted", later.fitted)
        return later


class TakesAnything(GraphicalFit):
    """States that it uses single cells alone, and drops entries of the kinds that it does not state."""

    entries = frozenset({EntryKind.CELL})

    def __call__(self, domain: Any, transcript: Any, **more: Any) -> Any:
        plain = (m for m in transcript.measurements if m.query.is_identity)
        used = transcript.answers if kinds_of(transcript) <= self.entries else ()
        return super().__call__(domain, Transcript((*plain, *used)), **more)


FIT_FAULTS: dict[str, tuple[type[Fit], str]] = {
    "a kind without a loader": (WithoutLoader, "A loaded release has no model"),
    "zeros ignored": (IgnoresZeros, "impossible combinations"),
    "an entry that it cannot use": (FailsOnCells, "of single cells has a marginal"),
    "a kind that it does not state": (TakesAnything, "states no use for counts of sets of codes"),
    "another seed": (Restless, "The same seed and the same answers"),
    "a state that changes": (ChangesItsState, "changes the state"),
}


@pytest.mark.parametrize("fault", FIT_FAULTS)
def test_a_fault_of_a_fit_is_seen(fault: str) -> None:
    kind, sentence = FIT_FAULTS[fault]
    with pytest.raises(AssertionError, match=sentence):
        check_fit(kind())


# Scores.


def gap_of(kind: type[MarginalGap]) -> Callable[[Domain, list[Clique]], MarginalGap]:
    def make(domain: Domain, candidates: list[Clique]) -> MarginalGap:
        zeros = {c: np.zeros(domain.shape(c)) for c in candidates}
        return kind(zeros, dict.fromkeys(candidates, 2.0), dict.fromkeys(candidates, 0.0))

    return make


def improvement(domain: Domain, candidates: list[Clique]) -> Improvement:
    zeros = {c: np.zeros(domain.shape(c)) for c in candidates}
    publics = {c: np.full(domain.shape(c), 7.0) for c in candidates[1:]}
    ones = dict.fromkeys(candidates, 1.0)
    return Improvement(zeros, publics, ones, ones)


def relative(domain: Domain, candidates: list[Clique]) -> RelativeGap:
    zeros = {c: np.zeros(domain.shape(c)) for c in candidates}
    weights = {c: 3.0**i for i, c in enumerate(candidates)}
    return RelativeGap(zeros, weights, dict.fromkeys(candidates, 2.5), margin=7.0)


def test_every_score_passes() -> None:
    check_score(gap_of(MarginalGap))
    check_score(improvement)
    check_score(relative)
    check_score(lambda domain, candidates: Dependence())


class SlightlyTooSmall(MarginalGap):
    lipschitz = 1.99


class TellsCounts(MarginalGap):
    """Its public terms are those of the last call: true counts."""

    def __call__(self, candidates: Any, counts: Any) -> Any:
        object.__setattr__(self, "seen", [float(counts[c].sum()) for c in candidates])
        return super().__call__(candidates, counts)

    def terms(self, candidates: Any) -> Any:
        return {"seen": getattr(self, "seen", [0.0] * len(candidates))}


class RemembersCounts(MarginalGap):
    """Compares with the counts of the call before."""

    def __call__(self, candidates: Any, counts: Any) -> Any:
        found = super().__call__(candidates, counts)
        calls = getattr(self, "calls", 0) + 1
        object.__setattr__(self, "calls", calls)
        moved = tuple(v + (calls % 2) for v in found.values)
        return found._replace(values=moved)


class GivesTooFew(MarginalGap):
    def __call__(self, candidates: Any, counts: Any) -> Any:
        return super().__call__(candidates[:2], counts)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (SlightlyTooSmall, r"moves it by 2, and its lipschitz is 1\.99"),
        (TellsCounts, "Its terms, which are public, depend on counts"),
        (RemembersCounts, "depend on counts of earlier calls"),
        (GivesTooFew, "2 scores to 3 options"),
    ],
)
def test_a_fault_of_a_score_is_seen(kind: type[MarginalGap], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_score(gap_of(kind))


# Tables.


def in_memory(schema: TinySchema, rows: list[Row], persons: list[int]) -> MemoryTable:
    known = replace(
        Schema.coded(dict(zip(schema.domain, schema.domain.sizes, strict=True))), person="who"
    )
    return MemoryTable(known, codes_of(known.domain, rows), np.array(persons, dtype=np.int64))


def test_every_table_passes() -> None:
    check_table(TinyTable)
    check_table(in_memory)
    check_table(in_memory, rows_per_person=1)


class Unlimited(TinyTable):
    def bounded(self, rows_per_person: int) -> TinyTable:
        return self


class LimitsTheWhole(TinyTable):
    """Keeps the right number of rows, of the wrong persons."""

    def bounded(self, rows_per_person: int) -> TinyTable:
        kept = super().bounded(rows_per_person).rows()
        return TinyTable(self.schema, self.data[:kept], self.persons[:kept])


class Moves(TinyTable):
    """Gives other rows a second time: a view that changes between two scans."""

    def count(self, cliques: Any) -> Any:
        found = super().count(cliques)
        self.data = [
            tuple((code + 1) % s for code, s in zip(row, self.domain.sizes, strict=True))
            for row in self.data
        ]
        return found


class MovesWhenLimited(TinyTable):
    """Draws the rows of each person anew at every count."""

    def bounded(self, rows_per_person: int) -> TinyTable:
        kept = super().bounded(rows_per_person)
        return Moves(kept.schema, kept.data, kept.persons)


class LimitsItself(TinyTable):
    """``bounded`` cuts the table that it is called on too."""

    def bounded(self, rows_per_person: int) -> TinyTable:
        kept = super().bounded(rows_per_person)
        self.data, self.persons = kept.data, kept.persons
        return kept


class GivesItsOwnArrays(TinyTable):
    """Keeps its counts, and gives the same arrays to every caller."""

    def count(self, cliques: Any) -> Any:
        known = vars(self).setdefault("known", {})
        known |= super().count([c for c in cliques if c not in known])
        return {c: known[c] for c in cliques}


class CountsFloats(TinyTable):
    def count(self, cliques: Any) -> Any:
        return {c: counts.astype(float) for c, counts in super().count(cliques).items()}


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Unlimited, r"bounded\(2\) keeps 3 rows, not 2|bounded\(2\) keeps 40 rows"),
        (LimitsTheWhole, "rows of persons who should have"),
        (Moves, "counts other rows the second time"),
        (MovesWhenLimited, "keeps other rows each time"),
        (LimitsItself, "after bounded"),
        (GivesItsOwnArrays, "counts other rows the second time"),
        (CountsFloats, "64-bit integers"),
    ],
)
def test_a_fault_of_a_table_is_seen(kind: type[TinyTable], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_table(kind)
