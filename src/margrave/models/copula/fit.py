"""GaussianCopulaFit: from noisy marginals to records of a Gaussian copula."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.marginal.simplex import project_to_simplex
from margrave.models.answers import Answers
from margrave.models.copula.polychoric import completed, correlation_of, hermite_scores
from margrave.models.cost import CELLS_PER_MB, Cost, FitLoad
from margrave.models.entries import EntryKind, check_kinds
from margrave.models.measured_cells import MeasuredCellsFit
from margrave.models.protocol import Needs
from margrave.models.sampling import deal
from margrave.models.terms import common_groups, compress, terms_of
from margrave.models.weights.model import WeightsModel, empirical
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique, FloatArray


@dataclass(frozen=True, kw_only=True)
class GaussianCopulaFit(MeasuredCellsFit):
    """Records of a Gaussian copula: every column is a binned normal variable, and pairs have correlations.

    The correlation of each pair that a measured marginal contains is the polychoric one, by least squares in the
    cells with a normal prior. Pairs that no marginal contains are independent given the other columns. The
    columns keep their noisy distributions, and the codes have the order of the schema. Time and memory grow with the
    square of the number of columns and not with their codes: hundreds of columns are possible.

    Relations that are not monotone, such as those of names in no order, are lost, and so are all of three columns.

    Args:
        records: The number of records of the model.
        prior: Standard deviation of the correlations before anything is known.

    Raises:
        InputError: The domain has structural zeros, to which a copula gives a probability. ``check`` raises it first.

    Privacy:
        None spent; post-processing of noisy answers.

    Example:
        >>> GaussianCopulaFit(records=20_000).prior
        0.5

    References:
        Li, Xiong, Jiang (2014), DPCopula. Asghar, Ding, Rakotoarivelo, Mrabet, Kaafar (2019), who take correlations
        from noisy two-way marginals. Olsson (1979), polychoric correlations.
    """

    entries: ClassVar[frozenset[EntryKind]] = frozenset({EntryKind.MERGED, EntryKind.READING})

    #: Terms of Mehler's series: it holds correlations up to ``_largest`` well enough.
    _order: ClassVar[int] = 60
    _largest: ClassVar[float] = 0.98

    records: int = 50_000
    prior: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        if self.records < 1 or not self.prior > 0:
            raise InputError("GaussianCopulaFit needs records of 1 or more and a prior above 0.")

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> WeightsModel:
        """Return the records for a transcript; a column that was never measured is uniform."""
        _refuse_zeros(domain)
        check_kinds(self, transcript)
        total, groups = transcript.total(), common_groups(domain, transcript.evidence)
        coarse, evidence, within = compress(domain, transcript.evidence, groups)
        terms = [t for t in terms_of(coarse, evidence) if np.isfinite(t.scales).any()]
        answers = Answers(coarse, total, terms)
        measured = {a for t in terms for a in t.clique}
        shares = {
            a: _shares(answers.project((a,)).values)
            if a in measured
            else np.full(coarse.size(a), 1.0 / coarse.size(a))
            for a in coarse
        }
        latent = self._latent(coarse, answers, shares)
        normal = rng.standard_normal((len(coarse), self.records))
        values = np.linalg.cholesky(latent) @ normal
        columns = {a: _ranked(values[i], shares[a], rng.random()) for i, a in enumerate(coarse)}
        for a, share in within.items():
            members = groups[a] == np.arange(int(groups[a].max()) + 1)[:, None]
            columns[a] = deal(columns[a], np.where(members, share, 0.0), rng).astype(np.int64)
        return empirical(Codes.of(domain, columns), total)

    def _latent(
        self, domain: Domain, answers: Answers, shares: dict[Attribute, FloatArray]
    ) -> FloatArray:
        scores = {a: hermite_scores(p, self._order) for a, p in shares.items()}
        scales = dict[Clique, float]()
        for term in answers.terms:
            precision = float(np.mean(term.scales**-2.0)) * domain.cells(term.clique)
            for pair in combinations(term.clique, 2):
                scales[pair] = scales.get(pair, 0.0) + precision / domain.cells(pair)
        known, total = {}, max(answers.total, 1.0)
        for (a, b), precision in scales.items():
            noisy = answers.project((a, b)).values / total
            # of the noise, and of the sampling of the rows
            variance = (1.0 / precision + total / domain.cells((a, b))) / total**2
            place = domain.index(a), domain.index(b)
            known[place] = correlation_of(
                noisy, scores[a], scores[b], variance,
                prior_variance=self.prior**2, largest=self._largest,
            )  # fmt: skip
        return completed(len(domain), known)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise `InputError` if the domain has structural zeros."""
        _refuse_zeros(domain)
        super().check(domain, needs)

    def own_cells(self, domain: Domain) -> int:
        """Return the cells of the records."""
        return self.records * len(domain)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of all measured pairs in each round, and the memory of the records."""
        seconds_per_pair = 2e-3
        numbers = 4 * self.records * len(domain) + 2 * load.cells
        seconds = seconds_per_pair * load.measured * max(1, load.rounds / 2)
        return Cost(seconds, numbers / CELLS_PER_MB)


def _shares(counts: FloatArray) -> FloatArray:
    total = float(counts.sum())
    if not total > 0.0:
        return np.full(counts.shape, 1.0 / counts.size)
    return project_to_simplex(counts / total)


def _ranked(values: FloatArray, shares: FloatArray, start: float) -> Any:
    """Return the codes of the smallest to the largest values, as many of each as its share, rounded."""
    n = len(values)
    ends = np.floor(n * np.cumsum(shares)[:-1] + start).astype(np.int64)
    codes = np.empty(n, dtype=np.int64)
    codes[np.argsort(values)] = np.searchsorted(ends, np.arange(n), side="right")
    return codes


def _refuse_zeros(domain: Domain) -> None:
    if domain.zeros:
        raise InputError(
            "A copula gives impossible combinations of codes a probability.",
            remedy="Use another fit, such as margrave.models.GraphicalFit().",
        )
