"""A transcript's answers for a set of records, laid out so that the change of one entry is a few
look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrave.domain import Domain
from margrave.marginal import IDENTITY, TOTAL, LinearMap, LinearQuery
from margrave.models.best_response.blocks import Block, Blocks
from margrave.models.genetic import kernels
from margrave.models.precision_means import PrecisionMeans, column_mean
from margrave.models.terms import Evidence, scales_of, sets_of, unfolded
from margrave.transcript import Answer, Transcript
from margrave.types import Attribute, Clique, FloatArray, IntArray


class QueryLayout(NamedTuple):
    """The statistics as flat arrays, for compiled loops.

    Term j counts every record in one cell, ``bases[j] + Σ tables[first + choice]`` over its parts: the sites that it
    depends on (``part_sites``) and where the table of each begins (``part_tables``), at ``part_starts[j]`` and after.
    Site t is in the terms ``site_terms[site_starts[t]:site_starts[t + 1]]``, whose tables for it begin at
    ``site_tables``. ``sizes`` are the numbers of choices of the sites.
    """

    bases: IntArray
    part_starts: IntArray
    part_sites: IntArray
    part_tables: IntArray
    site_starts: IntArray
    site_terms: IntArray
    site_tables: IntArray
    tables: IntArray
    sizes: IntArray


@dataclass(frozen=True, eq=False)
class Statistics:
    """The squared loss of records to noisy answers, ``Σ_k weights[k] · (step · count_k − values[k])²``.

    ``step`` is how many real records one of the records stands for; weights are 1 / scale² of each answer's noise.
    A query of several codes has as many cells as it names columns, plus one: records are counted by how many columns
    keep them out of it, and only those that none does have a weight.
    """

    layout: QueryLayout
    values: FloatArray
    weights: FloatArray
    step: float

    @staticmethod
    def of(
        domain: Domain, sites: Blocks, transcript: Transcript, *, records: int, hold: float
    ) -> Statistics:
        """Return the statistics of a transcript for so many records.

        ``hold``: the weight of what all marginals together say of each column, in units of one cell's (``columns_of``).
        """
        total = transcript.total()
        transcript = Transcript(tuple(x for e in transcript for x in unfolded(domain, e)))
        terms = [*_marginals(domain, transcript), *_sets(domain, transcript.answers)]
        if hold:
            held = columns_of(domain, transcript.evidence, total)
            terms += [
                _Term.of(domain, (a,), values, hold * weight)
                for a, (values, weight) in held.items()
            ]
        cells = np.cumsum([0, *(len(t.values) for t in terms)])
        none = np.empty(0)
        return Statistics(
            _layout(sites, terms, cells),
            np.concatenate([none, *(t.values for t in terms)]),
            np.concatenate([none, *(t.weights for t in terms)]),
            total / records,
        )

    @property
    def answers(self) -> int:
        """The number of answers: the mean loss of the true counts."""
        return int(np.count_nonzero(self.weights))

    def counts(self, rows: IntArray) -> IntArray:
        """Return the number of records (choices of each site) in every cell."""
        counts = np.zeros(len(self.values), dtype=np.int64)
        kernels.tally(rows, self.layout, counts)
        return counts

    def loss(self, rows: IntArray) -> float:
        """Return the loss of some records."""
        miss = self.step * self.counts(rows) - self.values
        return float(self.weights @ miss**2)

    def gains(self, rows: IntArray) -> FloatArray:
        """Return the change of the loss for one more record in each cell."""
        miss = self.step * self.counts(rows) - self.values
        return np.asarray(self.weights * (2.0 * self.step * miss + self.step**2), dtype=np.float64)


class _Term:
    """One group of cells: which cell a record is in is the sum, over attributes, of a number for its code."""

    def __init__(
        self, clique: Clique, offsets: Sequence[IntArray], values: FloatArray, weights: FloatArray
    ) -> None:
        self.clique, self.offsets, self.values, self.weights = clique, offsets, values, weights

    @staticmethod
    def of(
        domain: Domain,
        clique: Clique,
        values: FloatArray,
        weights: FloatArray | float,
        query: LinearMap = IDENTITY,
    ) -> _Term:
        """Return the cells of a marginal, or of its groups of codes."""
        offsets, stride = [], values.size
        for attribute, count in zip(clique, values.shape, strict=True):
            stride //= count
            groups = query.groups.get(attribute, np.arange(domain.size(attribute)))
            offsets.append(np.asarray(groups * stride, dtype=np.int64))
        everywhere = np.broadcast_to(weights, values.shape)
        return _Term(
            clique,
            offsets,
            values.reshape(-1).astype(np.float64),
            everywhere.reshape(-1).astype(np.float64),
        )

    def table(self, site: Block) -> IntArray:
        """Return the numbers of a site's choices."""
        table = np.zeros(len(site.choices), dtype=np.int64)
        for attribute, offsets in zip(self.clique, self.offsets, strict=True):
            if attribute in site.clique:
                table += offsets[site.choices[:, site.clique.index(attribute)]]
        return table


def _marginals(domain: Domain, transcript: Transcript) -> list[_Term]:
    means = PrecisionMeans[tuple[Clique, bytes]]()
    queries: dict[bytes, LinearMap] = {IDENTITY.key: IDENTITY}
    for m in transcript.evidence:
        queries[m.query.key] = m.query
        precision = scales_of(m) ** -2.0
        means.add((m.clique, m.query.key), m.values * precision, precision)
    for answer in transcript.answers:
        clique = answer.query.clique
        if clique and answer.query.is_cell:
            cell = tuple(codes[0] for codes in sets_of(answer.query).codes)
            key = (clique, IDENTITY.key)
            means.add_cell(key, domain.shape(clique), cell, answer.value, answer.scale)
    return [
        _Term.of(domain, clique, mean, precision, queries[query])
        for (clique, query), mean, precision in means
    ]


def _sets(domain: Domain, answers: Iterable[Answer]) -> list[_Term]:
    asked = PrecisionMeans[LinearQuery]()
    for a in answers:
        if a.query != TOTAL and not a.query.is_cell:
            asked.add(sets_of(a.query), a.value / a.scale**2, a.scale**-2)
    terms = []
    for query, mean, precision in asked:
        cells = len(query.clique) + 1
        values, weights = np.zeros(cells), np.zeros(cells)
        values[0], weights[0] = mean, precision
        offsets = [
            _outside(domain.size(a), codes)
            for a, codes in zip(query.clique, query.codes, strict=True)
        ]
        terms.append(_Term(query.clique, offsets, values, weights))
    return terms


def _outside(size: int, codes: Sequence[int]) -> IntArray:
    outside = np.ones(size, dtype=np.int64)
    outside[list(codes)] = 0
    return outside


def columns_of(
    domain: Domain, evidence: Iterable[Evidence], total: float
) -> dict[Attribute, tuple[FloatArray, float]]:
    """Return each column's counts by all marginals that contain it in full, summing to the total.

    Each marginal's sums are weighted by their precision. With each column comes the largest
    precision of a single cell.
    """
    # a marginal with a cell of which nothing is known says nothing of single columns
    noisy = [m for m in evidence if np.isfinite(scales_of(m)).all()]
    found = {}
    for a in domain:
        holding = [
            m for m in noisy if a in m.clique and m.query.is_partition and a not in m.query.groups
        ]
        if holding:
            counts, _ = column_mean(a, [(m.clique, m.values, scales_of(m)) for m in holding])
            best = max(m.scale**-2 for m in holding)
            found[a] = (counts + (total - counts.sum()) / len(counts), best)
    return found


def _layout(sites: Blocks, terms: Sequence[_Term], cells: IntArray) -> QueryLayout:
    home = {a: t for t, site in enumerate(sites.sites) for a in site.clique}
    part_sites: list[int] = []
    part_tables: list[int] = []
    part_starts, tables, filled = [0], [np.empty(0, dtype=np.int64)], 0
    seen: list[list[tuple[int, int]]] = [[] for _ in sites.sites]
    for j, term in enumerate(terms):
        for t in dict.fromkeys(home[a] for a in term.clique):
            part_sites.append(t)
            part_tables.append(filled)
            seen[t].append((j, filled))
            tables.append(term.table(sites.sites[t]))
            filled += len(tables[-1])
        part_starts.append(len(part_sites))
    flat = [pair for pairs in seen for pair in pairs]
    whole = {
        "bases": cells[:-1],
        "part_starts": part_starts,
        "part_sites": part_sites,
        "part_tables": part_tables,
        "site_starts": np.cumsum([0, *map(len, seen)]),
        "site_terms": [j for j, _ in flat],
        "site_tables": [first for _, first in flat],
        "tables": np.concatenate(tables),
        "sizes": [len(site.choices) for site in sites.sites],
    }
    return QueryLayout(
        **{name: np.array(numbers, dtype=np.int64) for name, numbers in whole.items()}
    )
