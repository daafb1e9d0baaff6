"""What every mechanism is held to: the entries of the tables, small tables to run on, and a gate that is watched.

A new mechanism is one line in ``CASES``; a new table is one line in ``SHAPES``. Every check runs on all of them. One
that is told columns of the private rows has lines in ``OWN_COLUMNS`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from margrave.domain import Codes, Domain
from margrave.marginal import QueryFamily
from margrave.mechanisms import (
    AIM,
    FEM,
    GEM,
    HDMM,
    JAMPGM,
    MECHANISMS,
    MST,
    MWEM,
    MWEMPGM,
    NAPSUMQ,
    PEP,
    RAP,
    AIMMixture,
    AIMPub,
    DualQuery,
    Forests,
    GaussianMechanism,
    GEMPub,
    Independent,
    Mechanism,
    PEPPub,
    PMWPub,
    PrivateGSD,
    PrivBayes,
    PrivLCM,
    PrivMRF,
    PrivPGD,
    PrivSyn,
    RAPPlus,
    Repeated,
    ResidualPlanner,
)
from margrave.models import (
    CELLS_PER_MB,
    AnnealedFit,
    GeneratorFit,
    GeneticFit,
    GraphicalFit,
    GUMFit,
    LatentClassFit,
    MaxEntropyFit,
    Model,
    NetworkFit,
    ParticleFit,
    RelaxedFit,
)
from margrave.models.graphical.state import GraphicalState
from margrave.models.particles import ConstraintPenalty, HideMean, HideShare, KeepShare
from margrave.models.progress import ShareProgress, no_progress
from margrave.public_table import PublicTable
from margrave.testing.gate import GateCall, SpyTable, WatchedGate, run_on  # noqa: F401
from margrave.testing.tables import (  # noqa: F401
    SHAPES,
    SIZES,
    Row,
    by_person,
    codes_of,
    memory_table,
    shaped,
    some_rows,
    tiny,
)
from margrave.transcript import Transcript
from margrave.types import Clique, FloatArray
from margrave.workload import Workload
from tests.support.rounds import WrappedFit

Make = Callable[[Domain], Mechanism]


def pairs(domain: Domain) -> Workload:
    """Every two-way marginal."""
    return Workload.all_kway(domain, 2)


def uneven(domain: Domain) -> Workload:
    """Two-way marginals and the first column alone, with weights far apart."""
    cliques = [*pairs(domain).cliques, domain.attributes[:1]]
    return Workload.of(domain, {c: 0.375 * (i + 1) ** 2 for i, c in enumerate(cliques)})


def prefixes(domain: Domain) -> QueryFamily:
    """ "At most this code" of the first column, with every code of each other."""
    return QueryFamily.prefixes(
        domain, pairs(domain).cliques or (domain.attributes,), domain.attributes[:1]
    )


def for_a_regression(domain: Domain) -> Workload:
    """The pairs, with those of a regression of the first column on the second named as its purpose."""
    first = pairs(domain).cliques[:1]
    words = (f"ols {first[0][0]} ~ {first[0][1]}",) if first else ()
    return Workload(pairs(domain).weights, words, tuple(first))


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
    runs of these checks. It comes after the last question and sees answers alone. mechanisms/test_napsu_mq.py runs on
    real ones the checks that a model can fail.
    """

    def finish(
        self,
        state: GraphicalState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> Model:
        return GraphicalFit().finish(state, transcript, rng=rng)


SMALL = GeneratorFit(
    hidden=(16,),
    latent_dim=8,
    components=48,
    rate=0.02,
    steps=100,
    active_threshold=0.1,
    cold_steps=300,
    pretraining=5,
    kl_weight=0.02,
)
"""A network that is trained in milliseconds, once compiled; domains of like sizes share what is compiled.

The anchor is a light one: public records that are hardly learned are nothing to stay near.
"""

SMALL_TABLE = RelaxedFit(components=48, steps=100, active_threshold=0.1, cold_steps=300)
SMALL_POINTS = AnnealedFit(components=100, steps=60, doublings=4)
SMALL_BOX = RelaxedFit(components=48, steps=200, rate=0.02, clip=True)

FEW_RECORDS = GeneticFit(records=100, generations=20)
PAPER_SEARCH = GeneticFit(
    population=2,
    records=200,
    generations=600,
    window=100,
    one_way_weight=0.0,
    init_from_columns=False,
)


QUICK_RECORDS = GUMFit(passes=15, period=2)
"""Records that have moved in a few milliseconds."""

FEW_SWEEPS = LatentClassFit(classes=3, chains=2, warmup=64, max_sweeps=40, accept=True)
"""Latent classes that have moved in a few milliseconds."""

FEW_PARTICLES = ParticleFit(particles=400, epochs=200, warm_epochs=20, n_directions=20)
"""Particles that have moved in a tenth of a second."""


def published(domain: Domain) -> PublicTable:
    """A public table: every combination of codes once, or where they are many some that have codes in common."""
    cells = np.arange(min(domain.cells(), 3000))
    columns = dict(zip(domain, np.unravel_index(cells, domain.sizes), strict=True))
    return PublicTable(Codes.of(domain, columns), "made up for the tests")


def partly_published(domain: Domain) -> PublicTable:
    """A public table without the last column, where there are more."""
    return published(domain).select(domain.attributes[: max(1, len(domain) - 1)])


def constrained(domain: Domain) -> tuple[ConstraintPenalty, ...]:
    """Shares of one, two and three columns, sharp and smooth, kept and very faintly hidden; of such as have codes."""
    ordered = [a for a in domain if domain.size(a) > 1]
    few, some = (
        dict.fromkeys(ordered[:2], 1.0),
        dict(zip(ordered[:3], (1.0, -0.5, 0.25), strict=False)),
    )
    last = dict.fromkeys(ordered[-1:], 1.0)
    return (
        KeepShare(coefficients=few, threshold=0.6 * len(few)),
        KeepShare(coefficients=some, threshold=0.3, slope=None),
        HideShare(coefficients=last, threshold=0.4, weight=1e-9),
        HideMean(coefficients=few, weight=1e-9),
    ) if ordered else ()  # fmt: skip


NEEDS_PUBLIC = frozenset({"aim-pub", "jam-pgm", "pmw-pub", "pep-pub", "gem-pub"})
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
    "aim-mixture": {"fit": SMALL_TABLE},
    "rap": {"fit": SMALL_TABLE},
    "privlcm": {"fit": FEW_SWEEPS},
    "rap-plus": {"fit": SMALL_POINTS},
    "privpgd": {"fit": FEW_PARTICLES},
}
"""What stands in for fits that take long."""


def plain(name: str, domain: Domain) -> Mechanism:
    """A mechanism with its defaults, but for fits that take long, and with a public table where it needs one."""
    return MECHANISMS[name](**needed_by(name, domain), **QUICK.get(name, {}))


def hurried(mechanism: Any) -> Any:
    """The mechanism with a fit that trains briefly, if it trains, few samples and few rounds: for thousands of runs of
    checks to which it is all the same how good the model is."""
    match mechanism:
        case FEM():
            return replace(
                mechanism, samples=min(mechanism.samples, 5), rounds=mechanism.rounds or 6
            )
        case Repeated():
            return replace(mechanism, runs=2, mechanism=hurried(mechanism.mechanism))
        case AIMPub():
            return replace(mechanism, rounds=min(mechanism.rounds or 6, 6))
        case JAMPGM():
            mechanism = replace(mechanism, rounds=min(mechanism.rounds or 3, 3))
    match getattr(mechanism, "fit", None):
        case ParticleFit() as fit:
            fit = replace(
                fit, particles=200, epochs=min(fit.epochs, 20), warm_epochs=5, n_directions=5
            )
        case GeneratorFit() | RelaxedFit() as fit:
            fit = replace(
                fit,
                components=min(fit.components, 16),
                steps=min(fit.steps, 10),
                cold_steps=min(fit.cold_steps, 10),
            )
        case AnnealedFit() as fit:
            fit = replace(fit, components=16, steps=3, doublings=2)
        case GraphicalFit() as fit if isinstance(mechanism, JAMPGM | NAPSUMQ):
            fit = replace(fit, steps=1, tolerance=0.1)
        case _:
            return mechanism
    return replace(mechanism, fit=fit)


CASES: dict[str, Make] = {
    "aim": lambda d: AIM(column_error=None),
    "aim pairs": lambda d: AIM(workload=pairs(d), column_error=None),
    "aim few rows": lambda d: AIM(),
    "aim generalized": lambda d: AIM(workload=uneven(d), generalized=True, column_error=None),
    "aim uneven": lambda d: AIM(workload=uneven(d), alpha=Fraction(3, 4), rounds=9),
    "aim shortlist": lambda d: AIM(shortlist=3, column_error=None),
    "aim purposes": lambda d: AIM(workload=for_a_regression(d), rounds=9, column_error=None),
    "aim small": lambda d: AIM(max_model_mb=tight(d), rounds=1),
    "mst": lambda d: MST(),
    "mst unmerged": lambda d: MST(rare_threshold=0.0),
    "forests": lambda d: Forests(),
    "forests small": lambda d: Forests(forests=2, max_model_mb=tight(d)),
    "privbayes": lambda d: PrivBayes(max_parents=1, theta=0.01),
    "privbayes network": lambda d: PrivBayes(fit=NetworkFit(), max_parents=1, theta=0.01),
    "privbayes paper": lambda d: PrivBayes.as_published("2019", theta=0.01),
    "mwem-pgm": lambda d: MWEMPGM(),
    "mwem-pgm pairs": lambda d: MWEMPGM(workload=pairs(d), rounds=4, max_model_mb=tight(d)),
    "mwem-pgm paper": lambda d: MWEMPGM(
        workload=pairs(d), measure_one_way=False, max_model_mb=None
    ),
    "privmrf": lambda d: PrivMRF(theta=0.2),
    "privmrf paper": lambda d: PrivMRF.as_published(fit=GraphicalFit(), theta=0.05),
    "privmrf small": lambda d: PrivMRF(
        theta=0.05, max_model_mb=2 * tight(d), candidates=2, graph_share=Fraction(2, 7)
    ),
    "independent": lambda d: Independent(),
    "gaussian": lambda d: GaussianMechanism(),
    "gaussian uneven": lambda d: GaussianMechanism(workload=uneven(d), fit=GraphicalFit()),
    "residual-planner": lambda d: ResidualPlanner(),
    "hdmm": lambda d: HDMM(),
    "hdmm small": lambda d: HDMM(workload=uneven(d), max_model_mb=tight(d)),
    "napsu-mq": lambda d: NAPSUMQ(fit=Estimated()),
    "napsu-mq pair": lambda d: NAPSUMQ(
        workload=first_pair(d), select_fraction=Fraction(2, 7), fit=Estimated()
    ),
    "napsu-mq apart": lambda d: NAPSUMQ(
        workload=first_pair(d), connect_columns=False, fit=Estimated()
    ),
    "privlcm": lambda d: PrivLCM(fit=FEW_SWEEPS),
    "repeated": lambda d: Repeated(runs=2),
    "repeated aim": lambda d: Repeated(mechanism=AIM(workload=pairs(d), column_error=None), runs=2),
    "mwem": lambda d: MWEM(rounds=4, passes=200),
    "mwem uneven": lambda d: MWEM(workload=uneven(d), rounds=4),
    "mwem graphical": lambda d: MWEM(
        workload=pairs(d), rounds=4, fit=GraphicalFit(), max_model_mb=tight(d)
    ),
    "mwem queries": lambda d: MWEM(workload=pairs(d), rounds=9, granularity="query"),
    "mwem paper": lambda d: MWEM(
        rounds=4, granularity="query", passes=0, average=True, alpha=Fraction(2, 3)
    ),
    "mwem at once": lambda d: MWEM(workload=pairs(d), rounds=9, granularity="query", at_once=True),
    "pep": lambda d: PEP(rounds=3),
    "pep queries": lambda d: PEP(workload=pairs(d), rounds=9, granularity="query", gamma=0.0),
    "pep prefixes": lambda d: PEP(
        queries=prefixes(d), rounds=9, granularity="query", max_iterations=5
    ),
    "pmw-pub": lambda d: PMWPub(public=published(d), rounds=4, passes=200),
    "pmw-pub queries": lambda d: PMWPub(
        public=published(d), workload=pairs(d), rounds=9, granularity="query"
    ),
    "aim-pub": lambda d: AIMPub(public=partly_published(d)),
    "aim-pub pairs": lambda d: AIMPub(
        public=published(d), workload=pairs(d), rounds=9, max_model_mb=tight(d)
    ),
    "jam-pgm": lambda d: JAMPGM(public=published(d), rounds=6),
    "jam-pgm surviving": lambda d: JAMPGM(public=published(d), rounds=5, penalty="projected"),
    "jam-pgm paper": lambda d: JAMPGM(
        public=partly_published(d), workload=uneven(d), rounds=5, equal_weights=True
    ),
    "pep-pub": lambda d: PEPPub(public=published(d), rounds=3),
    "pep-pub queries": lambda d: PEPPub(
        public=published(d), workload=pairs(d), rounds=9, granularity="query"
    ),
    "gem": lambda d: GEM(rounds=12, granularity="query", fit=SMALL),
    "gem pairs": lambda d: GEM(
        workload=pairs(d),
        granularity="query",
        rounds=9,
        fit=replace(SMALL, resample=True, kl_weight=0.0),
        alpha=Fraction(2, 7),
    ),
    "gem marginals": lambda d: GEM(
        rounds=4, granularity="marginal", fit=replace(SMALL, weighted=True)
    ),
    "gem-pub": lambda d: GEMPub(
        rounds=4, workload=pairs(d), granularity="marginal", fit=SMALL, public=published(d)
    ),
    "gem-pub queries": lambda d: GEMPub(
        rounds=9, granularity="query", fit=SMALL, public=partly_published(d)
    ),
    "aim-mixture": lambda d: AIMMixture(workload=pairs(d), rounds=9, fit=SMALL_TABLE),
    "aim-mixture network": lambda d: AIMMixture(workload=uneven(d), rounds=9, fit=SMALL),
    "rap": lambda d: RAP(rounds=4, queries_per_round=3, granularity="query", fit=SMALL_TABLE),
    "rap box": lambda d: RAP(
        workload=pairs(d), rounds=3, queries_per_round=8, granularity="query", fit=SMALL_BOX
    ),
    "rap marginals": lambda d: RAP(
        rounds=4, workload=pairs(d), granularity="marginal", fit=SMALL_TABLE
    ),
    "rap-plus": lambda d: RAPPlus(epochs=4, candidates=8, columns=3, fit=SMALL_POINTS),
    "private-gsd": lambda d: PrivateGSD(),
    "private-gsd paper": lambda d: PrivateGSD(workload=uneven(d), fit=PAPER_SEARCH),
    "private-gsd rounds": lambda d: PrivateGSD(adaptive=True, rounds=4),
    "private-gsd queries": lambda d: PrivateGSD(
        queries=prefixes(d),
        adaptive=True,
        granularity="query",
        rounds=9,
        alpha=Fraction(2, 7),
        fit=FEW_RECORDS,
    ),
    "dual-query": lambda d: DualQuery(rounds=4, samples=3, max_nodes=0),
    "dual-query exact": lambda d: DualQuery(workload=pairs(d), rounds=5, samples=6, max_nodes=20),
    "dual-query ruled": lambda d: DualQuery(workload=first_pair(d), samples=8, max_nodes=0),
    "fem": lambda d: FEM(rounds=4, samples=3),
    "privpgd": lambda d: PrivPGD(fit=FEW_PARTICLES),
    "privpgd uneven": lambda d: PrivPGD(
        workload=uneven(d), fit=replace(FEW_PARTICLES, embedding="equidistant")
    ),
    "privpgd constraints": lambda d: PrivPGD(
        fit=replace(FEW_PARTICLES, epochs=100, penalties=constrained(d)),
        constraint_fraction=Fraction(2, 7),
    ),
    "privsyn": lambda d: PrivSyn(fit=QUICK_RECORDS),
    "privsyn joined": lambda d: PrivSyn(clique_columns=4, fit=QUICK_RECORDS),
    "privsyn graphical": lambda d: PrivSyn(fit=GraphicalFit(), max_model_mb=tight(d)),
    "aim particles": lambda d: AIM(rounds=2, fit=FEW_PARTICLES),
    "mst particles": lambda d: MST(fit=FEW_PARTICLES),
    "mwem-pgm particles": lambda d: MWEMPGM(workload=pairs(d), rounds=2, fit=FEW_PARTICLES),
    "fem exact": lambda d: FEM(queries=prefixes(d), rounds=3, samples=2, max_nodes=20),
    "pmw-pub paper": lambda d: PMWPub(
        public=published(d), workload=pairs(d), rounds=3, shrink=False, anneal=False
    ),
    "pep-pub paper": lambda d: PEPPub(
        public=published(d), workload=pairs(d), rounds=3, shrink=False, anneal=False
    ),
    "aim full": lambda d: AIM(workload=uneven(d), penalty="full", column_error=None),
}
"""Every mechanism, in its own form and in those that take other paths; the first word is its name."""

NO_RECORDS = frozenset({"gaussian", "residual-planner"})
"""Those whose release answers marginals only."""

CHOOSING = frozenset({"dual-query", "fem"})
"""Those that choose and do not measure: their releases are a few records, and hold no answers to fit a model to."""

NO_ZEROS = frozenset({"gem", "gem-pub", "aim-mixture", "rap", "rap-plus", "privlcm"})
"""The names of those that refuse structural zeros before anything is spent."""


def measures(case: str) -> bool:
    """Whether a case measures anything but the number of records."""
    return case.split()[0] not in CHOOSING


def keeps_zeros(case: str) -> bool:
    """Whether a case takes a domain with structural zeros."""
    return case.split()[0] not in NO_ZEROS and case != "privbayes network"


# Columns of the rows themselves that are public.


def own_columns(domain: Domain, rows: Sequence[Row]) -> PublicTable:
    """All columns of these rows but the last, as public."""
    codes = codes_of(domain, rows)
    return PublicTable(codes, "made up for the tests", same_records=True).select(
        domain.attributes[:-1]
    )


OWN_COLUMNS: dict[str, Callable[[Domain, Sequence[Row]], Mechanism]] = {
    "aim-pub own columns": lambda d, rows: AIMPub(public=own_columns(d, rows)),
    "aim-pub own columns uneven": lambda d, rows: AIMPub(
        public=own_columns(d, rows), workload=uneven(d), rounds=9
    ),
}
"""Mechanisms that know the public columns of just the rows behind the gate.

They run where the number of rows is public and tables have the same public columns: a neighbor has another last code
in one row. So they are no cases of ``CASES``, and the checks that fit them name them.
"""


class Remembered(WrappedFit):
    """A fit that is asked once for each transcript, and its models once for each list of marginals: replays of one
    recording ask the same again and again. Sizes are remembered too."""

    def __init__(self, fit: Any) -> None:
        super().__init__(fit)
        self.known: dict[tuple[object, ...], Any] = {}

    def key(self, transcript: Transcript, state: Any) -> tuple[object, ...]:
        """What a state or a model is the same for."""
        known = tuple(
            (m.clique, m.values.tobytes(), m.scale, repr(m.query)) for m in transcript.measurements
        )
        readings = tuple(
            (r.clique, r.values.tobytes(), r.scales.tobytes()) for r in transcript.readings
        )
        return (known, readings, transcript.answers, transcript.total(), id(state))

    def init(self, domain: Domain, *, rng: np.random.Generator) -> Any:
        return self._once(("init", domain), lambda: self.fit.init(domain, rng=rng))

    def update(
        self, state: Any, transcript: Transcript, *, rng: np.random.Generator, done: float = 0.0
    ) -> Any:
        key = ("update", self.key(transcript, state), done)
        return self._once(key, lambda: self.fit.update(state, transcript, rng=rng, done=done))

    def model(self, state: Any) -> Any:
        return self._once(("model", id(state)), lambda: _remember_answers(self.fit.model(state)))

    def finish(
        self,
        state: Any,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> Any:
        key = ("finish", self.key(transcript, state))
        return self._once(
            key, lambda: _remember_answers(self.fit.finish(state, transcript, rng=rng))
        )

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        key = ("cells", domain, tuple(cliques))
        return int(self._once(key, lambda: self.fit.cells(domain, cliques)))

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        key = ("sizes", domain, tuple(cliques), tuple(candidates))
        found: FloatArray = self._once(
            key, lambda: self.fit.sizes_with(domain, cliques, candidates)
        )
        return found

    def _once(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]


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
    if isinstance(mechanism, Repeated):
        return replaced_in(mechanism, mechanism=remembering(mechanism.mechanism, kind))
    if "fit" not in {f.name for f in fields(mechanism)}:
        return mechanism
    return standing_in(mechanism, kind(mechanism.estimator()))


def standing_in(mechanism: Any, fit: Any) -> Any:
    """The mechanism with something else called in the place of its fit, which it would refuse for its kind."""
    return replaced_in(mechanism, fit=fit)


def replaced_in(mechanism: Any, /, **parameters: Any) -> Any:
    """The mechanism with other values of some parameters, unchecked."""
    other = copy(mechanism)
    for name, value in parameters.items():
        object.__setattr__(other, name, value)
    return other
