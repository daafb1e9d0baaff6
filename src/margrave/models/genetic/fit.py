"""GeneticFit: records that answer as the noisy answers say, found by a genetic search."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from margrave.errors import InputError
from margrave.models.entries import ALL, EntryKind
from margrave.models.genetic.search import Limits, evolve, improve
from margrave.models.genetic.statistics import Statistics, columns_of
from margrave.models.oracle.sites import Site, Sites
from margrave.models.protocol import Model
from margrave.models.sampling import deal
from margrave.models.weights.model import WeightsModel, empirical
from margrave.parameters import check_parameters
from margrave.schema.domain import Codes, Domain
from margrave.schema.zeros import MAX_JOINED
from margrave.transcript import Transcript
from margrave.typing import Attribute, Clique, FloatArray, IntArray

FEWEST, MOST = 1000, 100_000
"""How many records there are where no number is given: as many as the table is estimated to have, within these."""


@dataclass(frozen=True, kw_only=True)
class GeneticFit:
    """The records whose answers are nearest to the noisy ones: a genetic search, which needs no gradients.

        minimise over m records X   Σ_i (n / m · q_i(X) − answer_i)² / scale_i²,   n the number of real records

    A child differs from its parent in one entry, so that its loss is told from the parent's by the few cells that the
    record leaves and enters. By default, an elite of one: in a generation every record in turn tries all codes of one
    entry, at random (a mutation), or with probability ``crossover`` exchanges that entry with another record or becomes
    a copy of it. The best is taken at once if it lowers the loss. With ``elite``, the paper's search: of that many data
    sets, ``mutations`` children with a random code in a random entry, and ``crossovers`` children with an entry of
    another of the elite, compete with the elite for the next one.

    ``records``: m; None means n, but from 1,000 to 100,000. ``generations`` at most; it stops when the loss has fallen
    by less than a share ``tolerance`` in ``window`` generations, or of what noise makes of it. ``hold``: counts cannot
    be negative, so what fits noisy cells best has too many records where there are few, and too flat columns. The mean
    of what all marginals say of a column is without that bias; once the search has ended it goes on with these means as
    answers too, of this many times a cell's weight. ``columns``: the first records follow them, each column on its own,
    instead of being random.

    The paper's: ``GeneticFit(elite=2, records=2000, generations=200_000, window=1000, tolerance=1e-4, hold=0.0,
    columns=False)``.

    Structural zeros: columns that hang together are one entry, whose codes are the possible combinations.

    **Privacy:** none spent; post-processing of noisy answers.

    Errors: an ``InputError`` where constraints hold columns together in a million combinations and more, or leave none.

    Source: Liu, Tang, Vietri, Wu (2023), Generating private synthetic data with genetic algorithms. Departures: the
    default search, ``hold`` and ``columns``.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.HALF_SPACE}

    records: int | None = None
    generations: int = 100
    crossover: float = 0.3
    window: int = 4
    tolerance: float = 1e-2
    hold: float = 10.0
    columns: bool = True
    elite: int | None = None
    mutations: int = 50
    crossovers: int = 50

    def __post_init__(self) -> None:
        check_parameters(self)
        counts = [self.generations, self.window, *(x for x in (self.records, self.elite) if x is not None)]
        if min(counts) < 1 or min(self.mutations, self.crossovers) < 0 or self.mutations + self.crossovers < 1:
            raise InputError("A genetic search needs records, generations, a window, an elite and children above 0.")
        shares = 0 <= self.crossover <= 1 and 0 <= self.tolerance < 1
        if not shares or not 0 <= self.hold < math.inf:
            raise InputError("A genetic search's crossover and tolerance are shares, and it holds by 0 or more.")

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> WeightsModel:
        """The records found; with ``warm``, starting from records of that model."""
        sites, total = self._sites(domain), transcript.total()
        m = self.records or int(min(max(round(total), FEWEST), MOST))
        elite = np.array([self._first(domain, sites, transcript, m, rng, warm) for _ in range(self.elite or 1)])
        held = self.hold if transcript.evidence else 0.0
        for hold in dict.fromkeys((0.0, held)):  # held at once, the search is caught where answers are exact
            statistics = Statistics.of(domain, sites, transcript, records=m, hold=hold)
            elite = self._searched(statistics, elite, rng)
        return empirical(_codes(domain, sites, elite[0]), total)

    def _searched(self, statistics: Statistics, elite: IntArray, rng: np.random.Generator) -> IntArray:
        """The elite after a search, best first."""
        limits = Limits(self.generations, self.window, self.tolerance)
        if self.elite is None:
            return improve(statistics, elite[0], limits, crossover=self.crossover, rng=rng)[None]
        return evolve(statistics, elite, limits, mutations=self.mutations, crossovers=self.crossovers, rng=rng)

    def _first(
        self,
        domain: Domain,
        sites: Sites,
        transcript: Transcript,
        records: int,
        rng: np.random.Generator,
        warm: Model | None,
    ) -> IntArray:
        """The records that the search begins with, as choices of each site."""
        if warm is not None:
            return _choices(domain, sites, warm.sample(records, rng=rng), rng)
        known = columns_of(domain, transcript.evidence, transcript.total()) if self.columns else {}
        counts = {a: np.maximum(values, 0.0) for a, (values, _) in known.items()}
        none = np.zeros(records, dtype=np.int64)
        columns = [deal(none, _likely(site, counts)[None, :], rng) for site in sites.sites]
        return np.array(columns, dtype=np.int64).T.copy()

    def check(self, domain: Domain) -> None:
        """Raise what would keep it from fitting this domain, before anything is spent."""
        self._sites(domain)

    def _sites(self, domain: Domain) -> Sites:
        sites = Sites.of(domain, MAX_JOINED)
        if not sites.free:
            raise InputError(
                "The schema's constraints hold columns together in more combinations than a genetic search can list.",
                remedy="Give those columns fewer codes, leave some constraints out, or use another fit.",
            )
        if not all(len(site.choices) for site in sites.sites):
            raise InputError("No record satisfies all constraints of the schema.", remedy="Leave some of them out.")
        return sites

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The records, and the cells of what is measured."""
        self.check(domain)
        return (self.records or MOST) * len(domain) + 2 * sum(domain.cells(c) for c in set(cliques))

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """``cells`` with each candidate added in turn."""
        known, base = set(cliques), self.cells(domain, cliques)
        return np.array([base + (0 if c in known else 2 * domain.cells(c)) for c in candidates], dtype=np.float64)


def _likely(site: Site, counts: dict[Attribute, FloatArray]) -> FloatArray:
    """How likely each choice of a site is if its columns have these counts; any, where that leaves none."""
    likely = np.ones(len(site.choices))
    for i, attribute in enumerate(site.clique):
        if attribute in counts:
            likely *= counts[attribute][site.choices[:, i]] / max(counts[attribute].max(), 1e-300)
    return likely if likely.any() else np.ones(len(site.choices))


def _codes(domain: Domain, sites: Sites, rows: IntArray) -> Codes:
    """Records as codes."""
    columns = {a: site.choices[rows[:, t], i] for t, site in enumerate(sites.sites) for i, a in enumerate(site.clique)}
    return Codes.of(domain, columns)


def _choices(domain: Domain, sites: Sites, codes: Codes, rng: np.random.Generator) -> IntArray:
    """Codes as choices of each site; what a constraint forbids is any other choice."""
    columns = []
    for site in sites.sites:
        shape = domain.shape(site.clique)
        places = np.full(math.prod(shape), -1, dtype=np.int64)
        places[np.ravel_multi_index(tuple(site.choices.T), shape)] = np.arange(len(site.choices))
        found = places[np.ravel_multi_index([codes.column(a).astype(np.int64) for a in site.clique], shape)]
        columns.append(np.where(found >= 0, found, rng.integers(len(site.choices), size=len(codes))))
    return np.array(columns, dtype=np.int64).T.copy()
