"""GeneticFit: records that answer as the noisy answers say, found by a genetic search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.models.best_response.blocks import Block, Blocks
from margrave.models.cost import Cost, FitLoad, calibration_cost
from margrave.models.empty_codes import WithoutEmpty
from margrave.models.entries import ALL, EntryKind
from margrave.models.genetic.search import Limits, evolve, evolve_queries
from margrave.models.genetic.statistics import Statistics, columns_of
from margrave.models.measured_cells import MeasuredCellsFit
from margrave.models.protocol import Needs
from margrave.models.sampling import deal
from margrave.models.weights.model import WeightsModel, empirical
from margrave.transcript import Transcript
from margrave.types import Attribute, FloatArray, IntArray

#: Default number of records: that of the real table, clipped to this range.
FEWEST, MOST = 1000, 100_000


@dataclass(frozen=True, kw_only=True)
class GeneticFit(MeasuredCellsFit):
    """The records whose answers are nearest to the noisy ones: a genetic search without gradients.

        minimize over m records X   Σ_i (n / m · q_i(X) − answer_i)² / scale_i²,   n the number of real records

    A child differs from its parent in one entry, so its loss follows from the few cells that the
    record leaves and enters. The default is an elite of one. In a generation every record in turn
    tries all codes of one random entry (a mutation), or with probability ``crossover`` exchanges
    that entry with another record or becomes a copy of it. An improvement is taken at once. With
    ``population``, the paper's search: ``mutations`` children with a random code in a random entry
    and ``crossovers`` children with an entry of another data set compete with the elite of
    ``population`` data sets.

    ``records``: m; by default n, clipped to 1,000 to 100,000. ``generations``: a maximum; the
    search stops if the loss fell by less than a share ``tolerance`` of itself in ``window``
    generations, or of the loss that noise alone causes. ``one_way_weight``: since counts cannot be
    negative, the best fit to noisy cells has too many records where there are few, and columns that
    are too flat. The mean of all marginals of a column has no such bias. After the search, a second
    one adds these means as answers, with this multiple of a cell's weight. ``init_from_columns``:
    the first records follow the means, each column independently, instead of being random. Columns
    joined by structural zeros are one entry, whose codes are the possible combinations. ``empty_below``:
    as in ``GraphicalFit``.

    The paper's: that of ``PrivateGSD.as_published()``.

    Raises:
        InputError: Constraints join columns into over a million combinations, or leave none.

    Privacy:
        None spent; post-processing of noisy answers.

    References:
        Liu, Tang, Vietri, Wu (2023), Generating private synthetic data with genetic algorithms.
        Departures: the default search, ``one_way_weight`` and ``init_from_columns``.
    """

    cells_per_measured: ClassVar[int] = 2
    entries: ClassVar[frozenset[EntryKind]] = ALL - {
        EntryKind.HALF_SPACE,
        EntryKind.WEIGHTED_MAP,
    }
    finishes_anew: ClassVar[bool] = False

    records: int | None = None
    generations: int = 100
    crossover: float = 0.3
    window: int = 4
    tolerance: float = 1e-2
    one_way_weight: float = 10.0
    init_from_columns: bool = True
    population: int | None = None
    mutations: int = 50
    crossovers: int = 50
    empty_below: float = WithoutEmpty.below

    def __post_init__(self) -> None:
        check_fields(self)
        counts = [
            self.generations,
            self.window,
            *(x for x in (self.records, self.population) if x is not None),
        ]
        if (
            min(counts) < 1
            or min(self.mutations, self.crossovers) < 0
            or self.mutations + self.crossovers < 1
        ):
            raise InputError(
                "A genetic search needs records, generations, a window, a population and children above 0."
            )
        shares = 0 <= self.crossover <= 1 and 0 <= self.tolerance < 1
        if not shares or not 0 <= self.one_way_weight < math.inf:
            raise InputError(
                "A genetic search's crossover and tolerance are shares, and it holds by 0 or more."
            )

    def estimate(
        self,
        domain: Domain,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        warm: WeightsModel | None = None,
    ) -> WeightsModel:
        """Return the records found, starting from those of ``warm``."""
        sites, total = Blocks.listed(domain), transcript.total()
        m = self.records or int(min(max(round(total), FEWEST), MOST))
        elite = np.array(
            [
                self._first(domain, sites, transcript, m, rng, warm)
                for _ in range(self.population or 1)
            ]
        )
        held = self.one_way_weight if transcript.evidence else 0.0
        for hold in dict.fromkeys(
            (0.0, held)
        ):  # held at once, the search is caught where answers are exact
            statistics = Statistics.of(domain, sites, transcript, records=m, hold=hold)
            elite = self._searched(statistics, elite, rng)
        return empirical(Codes.of(domain, sites.columns(elite[0])), total)

    def _searched(
        self, statistics: Statistics, elite: IntArray, rng: np.random.Generator
    ) -> IntArray:
        limits = Limits(self.generations, self.window, self.tolerance)
        if self.population is None:
            return evolve_queries(statistics, elite[0], limits, crossover=self.crossover, rng=rng)[
                None
            ]
        return evolve(
            statistics, elite, limits, mutations=self.mutations, crossovers=self.crossovers, rng=rng
        )

    def _first(
        self,
        domain: Domain,
        sites: Blocks,
        transcript: Transcript,
        records: int,
        rng: np.random.Generator,
        warm: WeightsModel | None,
    ) -> IntArray:
        if warm is not None:
            return _choices(domain, sites, warm.sample(records, rng=rng), rng)
        known = (
            columns_of(domain, transcript.evidence, transcript.total())
            if self.init_from_columns
            else {}
        )
        counts = {a: np.maximum(values, 0.0) for a, (values, _) in known.items()}
        none = np.zeros(records, dtype=np.int64)
        columns = [deal(none, _likely(site, counts)[None, :], rng) for site in sites.sites]
        return np.array(columns, dtype=np.int64).T.copy()

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise if constraints join too many combinations, or leave none."""
        Blocks.listed(domain)
        super().check(domain, needs)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of a search over every marginal, half of them in a round."""
        seconds_per_marginal = 2.5e-3  # of a search
        seconds = load.measured * max(1, load.rounds / 2) * seconds_per_marginal
        return Cost(seconds, calibration_cost(domain, load).mb)

    def own_cells(self, domain: Domain) -> int:
        """Return the cells of the records."""
        return (self.records or MOST) * len(domain)


def _likely(site: Block, counts: dict[Attribute, FloatArray]) -> FloatArray:
    likely = np.ones(len(site.choices))
    for i, attribute in enumerate(site.clique):
        if attribute in counts:
            likely *= counts[attribute][site.choices[:, i]] / max(counts[attribute].max(), 1e-300)
    return likely if likely.any() else np.ones(len(site.choices))


def _choices(domain: Domain, sites: Blocks, codes: Codes, rng: np.random.Generator) -> IntArray:
    columns = []
    for site in sites.sites:
        shape = domain.shape(site.clique)
        places = np.full(math.prod(shape), -1, dtype=np.int64)
        places[np.ravel_multi_index(tuple(site.choices.T), shape)] = np.arange(len(site.choices))
        found = places[
            np.ravel_multi_index([codes.column(a).astype(np.int64) for a in site.clique], shape)
        ]
        columns.append(
            np.where(found >= 0, found, rng.integers(len(site.choices), size=len(codes)))
        )
    return np.array(columns, dtype=np.int64).T.copy()
