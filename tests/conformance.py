"""What every mechanism is held to: the entries of the tables, small tables to run on, and a gate that is watched.

A new mechanism is one line in ``CASES``; a new table is one line in ``SHAPES``. Every check runs on all of them. One
that is told columns of the private rows has lines in ``OWN_COLUMNS`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from margrave.data import MemoryTable
from margrave.marginal import LinearQuery, Queries
from margrave.mechanisms import (
    AIM,
    FEM,
    GEM,
    GEMAIM,
    JAM,
    JAMPGM,
    MECHANISMS,
    MST,
    MWEM,
    MWEMPGM,
    NAPSUMQ,
    PEP,
    RAP,
    DualQuery,
    GaussianMechanism,
    GEMPub,
    Independent,
    Mechanism,
    PEPPub,
    PMWPub,
    PrivateGSD,
    PrivPGD,
)
from margrave.mechanisms.common import CELLS_PER_MB
from margrave.mechanisms.fem import FEWEST
from margrave.models import (
    GeneratorFit,
    GeneticFit,
    GraphicalFit,
    MaxEntropyFit,
    Model,
    ParticleFit,
    RelaxedFit,
)
from margrave.models.particles import Constraint, HideMean, HideShare, KeepShare
from margrave.privacy import AddRemovePerson, Budget, Private, Randomness, ReplacePerson, Unit, protect
from margrave.privacy import Gaussian as Noise
from margrave.public import Public
from margrave.release import Release
from margrave.schema import Codes, Domain, Schema
from margrave.transcript import QuerySelection, Transcript
from margrave.typing import Clique, FloatArray, IntArray
from margrave.workload import Workload
from tiny_table import TinyTable

Make = Callable[[Domain], Mechanism]


def pairs(domain: Domain) -> Workload:
    """Every two-way marginal."""
    return Workload.all_kway(domain, 2)


def uneven(domain: Domain) -> Workload:
    """Two-way marginals and the first column alone, with weights far apart."""
    cliques = [*pairs(domain).cliques, domain.attributes[:1]]
    return Workload.of(domain, {c: 0.375 * (i + 1) ** 2 for i, c in enumerate(cliques)})


def prefixes(domain: Domain) -> Queries:
    """ "At most this code" of the first column, with every code of each other."""
    return Queries.prefixes(domain, pairs(domain).cliques or (domain.attributes,), domain.attributes[:1])


def tight(domain: Domain) -> float:
    """A size of model, in MB, that leaves room for little more than independent columns."""
    return 1.6 * sum(domain.sizes) / CELLS_PER_MB


def first_pair(domain: Domain) -> Workload:
    """The marginal of two columns with few codes, the first of such pairs, or of the only column."""
    pairs_of = list(combinations(domain.attributes, 2)) or [domain.attributes]
    return Workload.of(domain, [min(pairs_of, key=domain.cells)])


@dataclass(frozen=True, kw_only=True)
class Estimated(MaxEntropyFit):
    """NAPSU-MQ's fit without the posterior: an estimate of the same answers.

    A posterior is compiled anew for each release, which takes seconds, and NUTS a minute: too long for the hundreds of
    runs of these checks. It comes after the last question and sees answers alone. test_mechanisms_napsu_mq.py runs on
    real ones the checks that a model can fail.
    """

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> Model:
        return GraphicalFit()(domain, transcript, rng=rng, warm=warm)


SMALL = GeneratorFit(
    hidden=(16,), inputs=8, components=48, rate=0.02, steps=100, threshold=0.1, cold=300, pretraining=5, anchor=0.02
)
"""A network that is trained in milliseconds, once compiled; domains of like sizes share what is compiled.

The anchor is a light one: public records that are hardly learned are nothing to stay near.
"""

SMALL_TABLE = RelaxedFit(components=48, steps=100, threshold=0.1, cold=300)
SMALL_BOX = RelaxedFit(components=48, steps=200, rate=0.02, box=True)

FEW_RECORDS = GeneticFit(records=100, generations=20)
PAPER_SEARCH = GeneticFit(elite=2, records=200, generations=600, window=100, hold=0.0, columns=False)


FEW_PARTICLES = ParticleFit(particles=400, epochs=200, warm_epochs=20, directions=20)
"""Particles that have moved in a tenth of a second."""


def published(domain: Domain) -> Public:
    """A public table: every combination of codes once, or where they are many some that have codes in common."""
    cells = np.arange(min(domain.cells(), 3000))
    columns = dict(zip(domain, np.unravel_index(cells, domain.sizes), strict=True))
    return Public(Codes.of(domain, columns), "made up for the tests")


def partly_published(domain: Domain) -> Public:
    """A public table without the last column, where there are more."""
    return published(domain).only(domain.attributes[: max(1, len(domain) - 1)])


def constrained(domain: Domain) -> tuple[Constraint, ...]:
    """Shares of one, two and three columns, sharp and smooth, kept and very faintly hidden; of such as have codes."""
    ordered = [a for a in domain if domain.size(a) > 1]
    few, some = dict.fromkeys(ordered[:2], 1.0), dict(zip(ordered[:3], (1.0, -0.5, 0.25), strict=False))
    last = dict.fromkeys(ordered[-1:], 1.0)
    return (
        KeepShare(coefficients=few, threshold=0.6 * len(few)),
        KeepShare(coefficients=some, threshold=0.3, slope=None),
        HideShare(coefficients=last, threshold=0.4, weight=1e-9),
        HideMean(coefficients=few, weight=1e-9),
    ) if ordered else ()  # fmt: skip


NEEDS_PUBLIC = frozenset({"jam", "jam-pgm", "pmw-pub", "pep-pub", "gem-pub"})
"""Those that do nothing without a public table."""

ALONE = [name for name in MECHANISMS if name not in NEEDS_PUBLIC]
"""Those that can be run as they are."""


def needed_by(name: str, domain: Domain) -> dict[str, Any]:
    """What a mechanism cannot do without."""
    return {"public": published(domain)} if name in NEEDS_PUBLIC else {}


QUICK: dict[str, dict[str, Any]] = {
    "napsu-mq": {"fit": Estimated()},
    "gem": {"fit": SMALL},
    "gem-pub": {"fit": SMALL},
    "gem-aim": {"fit": SMALL_TABLE},
    "rap": {"fit": SMALL_TABLE},
    "privpgd": {"fit": FEW_PARTICLES},
}
"""What stands in for fits that take long."""


def plain(name: str, domain: Domain) -> Mechanism:
    """A mechanism with its defaults, but for fits that take long, and with a public table where it needs one."""
    return MECHANISMS[name](**needed_by(name, domain), **QUICK.get(name, {}))


def hurried(mechanism: Any) -> Any:
    """The mechanism with a fit that trains briefly, if it trains, and few samples: for thousands of runs of checks to
    which it is all the same how good the model is."""
    if isinstance(mechanism, FEM):
        return replace(mechanism, samples=min(mechanism.samples, 5), rounds=mechanism.rounds or FEWEST)
    match getattr(mechanism, "fit", None):
        case ParticleFit() as fit:
            fit = replace(fit, particles=200, epochs=min(fit.epochs, 20), warm_epochs=5, directions=5)
        case GeneratorFit() | RelaxedFit() as fit:
            fit = replace(fit, components=min(fit.components, 16), steps=min(fit.steps, 10), cold=min(fit.cold, 10))
        case GraphicalFit() as fit if isinstance(mechanism, JAMPGM):  # which fits a dozen models in a run
            fit = replace(fit, steps=1, tolerance=0.1)
        case _:
            return mechanism
    return replace(mechanism, fit=fit)


CASES: dict[str, Make] = {
    "aim": lambda d: AIM(),
    "aim pairs": lambda d: AIM(workload=pairs(d)),
    "aim uneven": lambda d: AIM(workload=uneven(d), alpha=Fraction(3, 4), rounds=9),
    "aim small": lambda d: AIM(max_model_mb=tight(d), rounds=1),
    "mst": lambda d: MST(),
    "mst unmerged": lambda d: MST(rare=0.0),
    "mwem-pgm": lambda d: MWEMPGM(),
    "mwem-pgm pairs": lambda d: MWEMPGM(workload=pairs(d), rounds=4, max_model_mb=tight(d)),
    "mwem-pgm paper": lambda d: MWEMPGM(workload=pairs(d), start=False, max_model_mb=None),
    "independent": lambda d: Independent(),
    "gaussian": lambda d: GaussianMechanism(),
    "gaussian uneven": lambda d: GaussianMechanism(workload=uneven(d), fit=GraphicalFit()),
    "napsu-mq": lambda d: NAPSUMQ(fit=Estimated()),
    "napsu-mq pair": lambda d: NAPSUMQ(workload=first_pair(d), choosing=Fraction(2, 7), fit=Estimated()),
    "napsu-mq apart": lambda d: NAPSUMQ(workload=first_pair(d), connect=False, fit=Estimated()),
    "mwem": lambda d: MWEM(rounds=4, passes=200),
    "mwem uneven": lambda d: MWEM(workload=uneven(d), rounds=4),
    "mwem graphical": lambda d: MWEM(workload=pairs(d), rounds=4, fit=GraphicalFit(), max_model_mb=tight(d)),
    "mwem queries": lambda d: MWEM(workload=pairs(d), rounds=9, granularity="query"),
    "mwem paper": lambda d: MWEM(rounds=4, granularity="query", passes=0, average=True, alpha=Fraction(2, 3)),
    "mwem at once": lambda d: MWEM(workload=pairs(d), rounds=9, granularity="query", at_once=True),
    "pep": lambda d: PEP(rounds=3),
    "pep queries": lambda d: PEP(workload=pairs(d), rounds=9, granularity="query", gamma=0.0),
    "pep prefixes": lambda d: PEP(queries=prefixes(d), rounds=9, granularity="query", max_iterations=5),
    "pmw-pub": lambda d: PMWPub(public=published(d), rounds=4, passes=200),
    "pmw-pub queries": lambda d: PMWPub(public=published(d), workload=pairs(d), rounds=9, granularity="query"),
    "jam": lambda d: JAM(public=partly_published(d)),
    "jam pairs": lambda d: JAM(public=published(d), workload=pairs(d), rounds=9, max_model_mb=tight(d)),
    "jam-pgm": lambda d: JAMPGM(public=published(d), rounds=6),
    "jam-pgm surviving": lambda d: JAMPGM(public=published(d), rounds=5, penalty="surviving"),
    "jam-pgm paper": lambda d: JAMPGM(public=partly_published(d), workload=uneven(d), rounds=5, equal_weights=True),
    "pep-pub": lambda d: PEPPub(public=published(d), rounds=3),
    "pep-pub queries": lambda d: PEPPub(public=published(d), workload=pairs(d), rounds=9, granularity="query"),
    "gem": lambda d: GEM(rounds=12, granularity="query", fit=SMALL),
    "gem pairs": lambda d: GEM(
        workload=pairs(d), granularity="query", rounds=9, fit=replace(SMALL, resample=True, anchor=0.0),
        alpha=Fraction(2, 7),
    ),
    "gem marginals": lambda d: GEM(rounds=4, granularity="marginal", fit=replace(SMALL, weighted=True)),
    "gem-pub": lambda d: GEMPub(rounds=4, workload=pairs(d), granularity="marginal", fit=SMALL, public=published(d)),
    "gem-pub queries": lambda d: GEMPub(rounds=9, granularity="query", fit=SMALL, public=partly_published(d)),
    "gem-aim": lambda d: GEMAIM(workload=pairs(d), rounds=9, fit=SMALL_TABLE),
    "gem-aim network": lambda d: GEMAIM(workload=uneven(d), rounds=9, fit=SMALL),
    "rap": lambda d: RAP(rounds=4, each=3, granularity="query", fit=SMALL_TABLE),
    "rap box": lambda d: RAP(workload=pairs(d), rounds=3, each=8, granularity="query", fit=SMALL_BOX),
    "rap marginals": lambda d: RAP(rounds=4, workload=pairs(d), granularity="marginal", fit=SMALL_TABLE),
    "private-gsd": lambda d: PrivateGSD(),
    "private-gsd paper": lambda d: PrivateGSD(workload=uneven(d), fit=PAPER_SEARCH),
    "private-gsd rounds": lambda d: PrivateGSD(adaptive=True, rounds=4),
    "private-gsd queries": lambda d: PrivateGSD(
        queries=prefixes(d), adaptive=True, granularity="query", rounds=9, alpha=Fraction(2, 7), fit=FEW_RECORDS
    ),
    "dual-query": lambda d: DualQuery(rounds=4, samples=3, nodes=0),
    "dual-query exact": lambda d: DualQuery(workload=pairs(d), rounds=5, samples=6, nodes=20),
    "dual-query ruled": lambda d: DualQuery(workload=first_pair(d), samples=8, nodes=0),
    "fem": lambda d: FEM(rounds=4, samples=3),
    "privpgd": lambda d: PrivPGD(fit=FEW_PARTICLES),
    "privpgd uneven": lambda d: PrivPGD(workload=uneven(d), fit=replace(FEW_PARTICLES, nominal="equidistant")),
    "privpgd constraints": lambda d: PrivPGD(
        fit=replace(FEW_PARTICLES, epochs=100, penalties=constrained(d)), for_constraints=Fraction(2, 7)
    ),
    "aim particles": lambda d: AIM(rounds=2, fit=FEW_PARTICLES),
    "mst particles": lambda d: MST(fit=FEW_PARTICLES),
    "mwem-pgm particles": lambda d: MWEMPGM(workload=pairs(d), rounds=2, fit=FEW_PARTICLES),
    "fem exact": lambda d: FEM(queries=prefixes(d), rounds=3, samples=2, nodes=20),
    "pmw-pub paper": lambda d: PMWPub(public=published(d), workload=pairs(d), rounds=3, shrink=False, anneal=False),
    "pep-pub paper": lambda d: PEPPub(public=published(d), workload=pairs(d), rounds=3, shrink=False, anneal=False),
    "aim full": lambda d: AIM(workload=uneven(d), penalty="full"),
}
"""Every mechanism, in its own form and in those that take other paths; the first word is its name."""

NO_RECORDS = frozenset({"gaussian"})
"""Those whose release answers marginals only."""

CHOOSING = frozenset({"dual-query", "fem"})
"""Those that choose and do not measure: their releases are a few records, and hold no answers to fit a model to."""

NO_ZEROS = frozenset({"gem", "gem-pub", "gem-aim", "rap"})
"""The names of those that refuse structural zeros before anything is spent."""

def measures(case: str) -> bool:
    """Whether a case measures anything but the number of records."""
    return case.split()[0] not in CHOOSING


def keeps_zeros(case: str) -> bool:
    """Whether a case takes a domain with structural zeros."""
    return case.split()[0] not in NO_ZEROS


# Tables.

Row = tuple[int, ...]


def codes_of(domain: Domain, rows: Sequence[Row]) -> Codes:
    """Rows as codes."""
    values = np.array(rows, dtype=np.int64).reshape(len(rows), len(domain))
    return Codes.of(domain, {a: values[:, i] for i, a in enumerate(domain)})


def memory_table(sizes: Mapping[str, int], rows: Sequence[Row], persons: Sequence[int] = ()) -> MemoryTable:
    """Rows of codes as a table in memory; with ``persons``, its schema names their column."""
    schema = replace(Schema.coded(sizes), person="who" if len(persons) else None)
    return MemoryTable(schema, codes_of(schema.domain, rows), np.array(persons) if len(persons) else None)


def tiny(sizes: Mapping[str, int], rows: Sequence[Row]) -> TinyTable:
    """Rows as a table that counts in the plainest way, one person to a row; its schema names persons."""
    schema: Any = replace(Schema.coded(sizes), person="who")
    return TinyTable(schema, rows, range(len(rows)))


def some_rows(sizes: Mapping[str, int], count: int, seed: int = 0) -> list[Row]:
    """Rows in which columns depend on each other and low codes are common."""
    rng = np.random.default_rng(seed)
    base = rng.exponential(size=count)
    return [tuple(int(min(s - 1, b * s / 3 + rng.exponential() / 2)) for s in sizes.values()) for b in base]


SIZES = {"a": 2, "b": 3, "c": 4}

SHAPES: dict[str, tuple[dict[str, int], int]] = {
    "empty": (SIZES, 0),
    "one row": (SIZES, 1),
    "one column": ({"only": 5}, 40),
    "two columns": ({"a": 3, "b": 2}, 40),
    "a column of one code": ({"a": 3, "constant": 1, "c": 2, "d": 2}, 40),
    "columns of one code only": ({"a": 1, "b": 1, "c": 1}, 10),
    "a wide column": ({"a": 2, "wide": 300, "c": 2}, 60),
    "five columns": ({"a": 2, "b": 3, "c": 2, "d": 4, "e": 3}, 60),
}
"""Tables that mechanisms must take as they come: the domain, and how many rows."""


def shaped(name: str) -> TinyTable:
    """A table of ``SHAPES``, every row a person's."""
    sizes, count = SHAPES[name]
    return tiny(sizes, some_rows(sizes, count))


def by_person(unit: Unit) -> bool:
    """Whether the unit is one of persons."""
    return isinstance(unit, AddRemovePerson | ReplacePerson)


# Columns of the rows themselves that are public.


def own_columns(domain: Domain, rows: Sequence[Row]) -> Public:
    """All columns of these rows but the last, as public."""
    codes = codes_of(domain, rows)
    return Public(codes, "made up for the tests", same_records=True).only(domain.attributes[:-1])


OWN_COLUMNS: dict[str, Callable[[Domain, Sequence[Row]], Mechanism]] = {
    "jam own columns": lambda d, rows: JAM(public=own_columns(d, rows)),
    "jam own columns uneven": lambda d, rows: JAM(public=own_columns(d, rows), workload=uneven(d), rounds=9),
}
"""Mechanisms that know the public columns of just the rows behind the gate.

They run where the number of rows is public and tables have the same public columns: a neighbour has another last code
in one row. So they are no cases of ``CASES``, and the checks that fit them name them.
"""


# A watched gate.


@dataclass(frozen=True)
class Question:
    """What was put to the rows, what it was charged, and what it can tell (where a replay adds that up)."""

    kind: str
    charged: Fraction
    loss: Fraction


class WatchedGate:
    """Stands between a mechanism and its gate, passes everything on, and notes every question.

    ``inside`` is True while a question is at the gate. ``loss`` tells the privacy loss so far.
    """

    def __init__(self, private: Private, loss: Callable[[], Fraction] = lambda: Fraction(0)) -> None:
        self.private = private
        self.inside = False
        self.questions: list[Question] = []
        self._loss = loss

    def __getattr__(self, name: str) -> Any:
        return getattr(self.private, name)

    def prepare(self, cliques: Iterable[Clique]) -> None:
        self._passed("prepare", lambda: self.private.prepare(cliques))

    def measure(self, cliques: Iterable[Clique], noise: Noise, **more: Any) -> Transcript:
        found: Transcript = self._passed("measure", lambda: self.private.measure(cliques, noise, **more))
        return found

    def select(self, candidates: Iterable[Clique], score: Any, *, rho: Fraction) -> Clique:
        found: Clique = self._passed("select", lambda: self.private.select(candidates, score, rho=rho))
        return found

    def measure_queries(self, queries: Iterable[LinearQuery], noise: Noise) -> Transcript:
        found: Transcript = self._passed("measure", lambda: self.private.measure_queries(queries, noise))
        return found

    def select_query(
        self, queries: Queries, score: Any, *, rho: Fraction, times: int = 1
    ) -> tuple[QuerySelection, ...]:
        found: tuple[QuerySelection, ...] = self._passed(
            "select", lambda: self.private.select_query(queries, score, rho=rho, times=times)
        )
        return found

    def _passed(self, kind: str, work: Callable[[], Any]) -> Any:
        left, lost, self.inside = self.private.remaining, self._loss(), True
        try:
            return work()
        finally:
            self.inside = False
            if kind != "prepare":
                self.questions.append(Question(kind, left - self.private.remaining, self._loss() - lost))


class SpyTable:
    """A table that refuses to be counted outside a question, and notes what is."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.gate: WatchedGate | None = None
        self.counted: set[Clique] = set()
        self.scans = 0

    @property
    def schema(self) -> Any:
        return self.table.schema

    @property
    def domain(self) -> Domain:
        domain: Domain = self.table.domain
        return domain

    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        asked = list(cliques)
        assert self.gate is not None
        assert self.gate.inside, "counted outside measure, select and prepare"
        self.counted.update(asked)
        self.scans += 1
        found: dict[Clique, IntArray] = self.table.count(asked)
        return found

    def rows(self) -> int:
        assert self.gate is None, "the rows were counted after the gate was made"
        return int(self.table.rows())

    def bounded(self, rows_per_person: int) -> SpyTable:
        self.table = self.table.bounded(rows_per_person)
        return self


class Remembered:
    """A fit that is asked once for each transcript, and its models once for each list of marginals: replays of one
    recording ask the same again and again. Sizes are remembered too."""

    def __init__(self, fit: Any) -> None:
        self.fit = fit
        self.models: dict[tuple[object, ...], Model] = {}
        self.sizes: dict[tuple[object, ...], Any] = {}

    def key(self, domain: Domain, transcript: Transcript, warm: Model | None) -> tuple[object, ...]:
        """What a model is the same for."""
        known = tuple((m.clique, m.values.tobytes(), m.scale, repr(m.query)) for m in transcript.measurements)
        readings = tuple((r.clique, r.values.tobytes(), r.scales.tobytes()) for r in transcript.readings)
        return (domain, known, readings, transcript.answers, transcript.total(), id(warm))

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> Model:
        key = self.key(domain, transcript, warm)
        return self._made(key, lambda: _remember_answers(self.fit(domain, transcript, rng=rng, warm=warm)))

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        return int(self._size((domain, tuple(cliques)), lambda: self.fit.cells(domain, cliques)))

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        key = (domain, tuple(cliques), tuple(candidates))
        found: FloatArray = self._size(key, lambda: self.fit.cells_with(domain, cliques, candidates))
        return found

    def _size(self, key: tuple[object, ...], size: Callable[[], Any]) -> Any:
        if key not in self.sizes:
            self.sizes[key] = size()
        return self.sizes[key]

    def averaged(self, before: Model | None, model: Model) -> Model:
        """The same for a fit that averages models."""
        return self._made(("averaged", id(before), id(model)), lambda: self.fit.averaged(before, model))

    def distribution(self, model: Model) -> Model:
        """The same for a fit whose models between rounds are no distributions."""
        return self._made(("distribution", id(model)), lambda: self.fit.distribution(model))

    def _made(self, key: tuple[object, ...], make: Callable[[], Model]) -> Model:
        if key not in self.models:
            self.models[key] = make()
        return self.models[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fit, name)  # what one kind of fit can tell besides


def _remember_answers(model: Any) -> Any:
    """Have a model work out its answers once. Nobody may change them, so they cannot be written to."""
    known: dict[tuple[object, ...], dict[Clique, FloatArray]] = {}
    work_out = model.answer

    def answer(cliques: Iterable[Clique], **how: Any) -> dict[Clique, FloatArray]:
        asked = tuple(cliques)
        key = (asked, how.get("scale"), how.get("limit"))
        if key not in known:
            known[key] = work_out(asked, **how)
            for values in known[key].values():
                values.flags.writeable = False
        return dict(known[key])

    object.__setattr__(model, "answer", answer)
    return model


def remembering(mechanism: Any, kind: type[Remembered] = Remembered) -> Any:
    """The mechanism with a fit that is remembered, if it has one. Fitting sees answers alone, so a replay loses nothing
    by it."""
    if "fit" not in {f.name for f in fields(mechanism)}:
        return mechanism
    fit = mechanism.estimator() if hasattr(mechanism, "estimator") else mechanism.fit
    return standing_in(mechanism, kind(fit))


def standing_in(mechanism: Any, fit: Any) -> Any:
    """The mechanism with something else called in the place of its fit, which it would refuse for its kind."""
    other = copy(mechanism)
    object.__setattr__(other, "fit", fit)
    return other


def run_on(
    mechanism: Mechanism,
    table: Any,
    unit: Unit,
    budget: Budget,
    randomness: Randomness,
    *,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> Release:
    """One whole run, with the gate closed at the end."""
    with protect(table, unit=unit, budget=budget, randomness=randomness) as private:
        return mechanism.run(private, rng=np.random.default_rng(seed), progress=progress)
