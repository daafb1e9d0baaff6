"""GUMFit: records whose marginals are the noisy ones, made consistent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.models.best_response.blocks import Blocks
from margrave.models.cost import CELLS_PER_MB, Cost, FitLoad
from margrave.models.empty_codes import WithoutEmpty
from margrave.models.entries import EntryKind, check_kinds
from margrave.models.genetic.fit import FEWEST, MOST
from margrave.models.gum.consistency import consistent
from margrave.models.gum.targets import CountTarget, likely_choices, possible_cells
from margrave.models.gum.update import PassSchedule, records_of
from margrave.models.measured_cells import MeasuredCellsFit
from margrave.models.protocol import Needs
from margrave.models.sampling import deal
from margrave.models.terms import Term, common_groups, compress, terms_of
from margrave.models.weights.model import WeightsModel, empirical
from margrave.transcript import Transcript


@dataclass(frozen=True, kw_only=True)
class GUMFit(MeasuredCellsFit):
    """Records that are moved gradually until their marginals are the noisy ones (GUM).

    The noisy marginals are made consistent first: those that share columns agree on them, by means
    with inverse variances, and no count is negative. Records start with independent columns. Each
    pass goes over all marginals, the worst one first. Cells with too many records give some to cells
    with too few. Half of these become copies of a record there, and half change only the marginal's
    columns. A column of one marginal alone is not moved, but drawn given the marginal's other
    columns at the end. The same holds for the columns that are then in one marginal alone. So a
    tree of pairs takes 0 passes. Parts that share no column are made apart. Structural zeros are
    kept: columns that they join change together. Time is linear in records, marginals and passes:
    about 1 ms a move for 50,000 records.

    Args:
        records: The number of records; by default the row count, clipped to 1,000 to 100,000.
        passes: The number of passes over the marginals.
        alpha: A cell of S records gets at most ``alpha · S`` in a move, an empty one a share alpha.
        decay: The factor of alpha after each ``period`` passes.
        period: The number of passes with the same alpha.
        consistency_rounds: How often agreement and non-negativity alternate at most.
        empty_below: Threshold in noise scales of empty codes, as in ``GraphicalFit``.

    Raises:
        InputError: Constraints join columns into over a million combinations, or leave none.

    Privacy:
        None spent; post-processing of noisy answers.

    References:
        Zhang et al. (2021), PrivSyn, with ``passes=100, period=20, empty_below=0``.
        Departure: the default alpha falls faster.
    """

    cells_per_measured: ClassVar[int] = 2
    entries: ClassVar[frozenset[EntryKind]] = frozenset({EntryKind.MERGED, EntryKind.READING})

    records: int | None = None
    passes: int = 60
    alpha: float = 1.0
    decay: float = 0.84
    period: int = 5
    consistency_rounds: int = 30
    empty_below: float = WithoutEmpty.below

    def __post_init__(self) -> None:
        check_fields(self)
        whole = [self.period, self.consistency_rounds, 1 if self.records is None else self.records]
        if min(whole) < 1 or self.passes < 0:
            raise InputError(
                "GUMFit needs records, a period and consistency_rounds of 1 or more, and passes of"
                " 0 or more."
            )
        if not (0 < self.alpha <= 1 and 0 < self.decay <= 1):
            raise InputError("GUMFit needs alpha and decay above 0 and at most 1.")

    def estimate(
        self,
        domain: Domain,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        warm: Any = None,
    ) -> WeightsModel:
        """Return the records for a transcript, made from the start."""
        check_kinds(self, transcript)
        total = transcript.total()
        m = self.records or int(min(max(round(total), FEWEST), MOST))
        groups = common_groups(domain, transcript.evidence)
        coarse, evidence, shares = compress(domain, transcript.evidence, groups)
        blocks = Blocks.listed(coarse)
        terms = [t for t in terms_of(coarse, evidence) if np.isfinite(t.scales).any()]
        possible = {t.clique: possible_cells(coarse, blocks, t.clique) for t in terms}
        terms = consistent(coarse, terms, total, possible, rounds=self.consistency_rounds)
        scaled = [Term(t.clique, t.values * (m / total), t.scales) for t in terms]
        rows = records_of(
            [CountTarget.of(coarse, blocks, t) for t in scaled],
            likely_choices(coarse, blocks, scaled),
            m,
            PassSchedule(self.passes, self.alpha, self.decay, self.period),
            rng,
        )
        columns = blocks.columns(rows)
        for a, share in shares.items():
            members = groups[a] == np.arange(int(groups[a].max()) + 1)[:, None]
            columns[a] = deal(columns[a], np.where(members, share, 0.0), rng)
        return empirical(Codes.of(domain, columns), total)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise if constraints join too many combinations, or leave none."""
        Blocks.listed(domain)
        super().check(domain, needs)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of all passes over every marginal, in each round."""
        seconds_per_record = 2e-8  # of a move
        records = self.records or min(max(load.rows, FEWEST), MOST)
        moves = self.passes * load.measured * max(1, load.rounds / 2)
        # records, their cells, and marginals with their working copies
        numbers = records * (len(domain) + 4) + 8 * load.cells
        return Cost(moves * records * seconds_per_record, numbers / CELLS_PER_MB)

    def own_cells(self, domain: Domain) -> int:
        """Return the cells of the records."""
        return (self.records or MOST) * len(domain)
