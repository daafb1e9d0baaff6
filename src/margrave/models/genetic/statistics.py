"""What a transcript asks of records, laid out so that the change of one entry is looked up in a few steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrave.marginal import IDENTITY, TOTAL, LinearQuery, Query
from margrave.models.genetic import kernels
from margrave.models.oracle.sites import Site, Sites
from margrave.models.terms import Evidence, scales_of, sets_of
from margrave.schema.domain import Domain
from margrave.transcript import Answer, Transcript
from margrave.typing import Attribute, Clique, FloatArray, IntArray


class Layout(NamedTuple):
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

    layout: Layout
    values: FloatArray
    weights: FloatArray
    step: float

    @staticmethod
    def of(domain: Domain, sites: Sites, transcript: Transcript, *, records: int, hold: float) -> Statistics:
        """The statistics of a transcript for so many records.

        ``hold``: the weight of what all marginals together say of each column, in units of one cell's (``columns_of``).
        """
        total = transcript.total()
        terms = [*_marginals(domain, transcript), *_sets(domain, transcript.answers)]
        if hold:
            held = columns_of(domain, transcript.evidence, total)
            terms += [_Term.of(domain, (a,), values, hold * weight) for a, (values, weight) in held.items()]
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
        """How many numbers there are answers for: the loss that true counts have on average."""
        return int(np.count_nonzero(self.weights))

    def counts(self, rows: IntArray) -> IntArray:
        """How many records (choices of each site) are in every cell."""
        counts = np.zeros(len(self.values), dtype=np.int64)
        kernels.tally(rows, self.layout, counts)
        return counts

    def loss(self, rows: IntArray) -> float:
        """The loss of some records."""
        miss = self.step * self.counts(rows) - self.values
        return float(self.weights @ miss**2)

    def gains(self, rows: IntArray) -> FloatArray:
        """What one more record in each cell would add to the loss."""
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
        domain: Domain, clique: Clique, values: FloatArray, weights: FloatArray | float, query: Query = IDENTITY
    ) -> _Term:
        """The cells of a marginal, or of its groups of codes."""
        offsets, stride = [], values.size
        for attribute, count in zip(clique, values.shape, strict=True):
            stride //= count
            groups = query.groups.get(attribute, np.arange(domain.size(attribute)))
            offsets.append(np.asarray(groups * stride, dtype=np.int64))
        everywhere = np.broadcast_to(weights, values.shape)
        return _Term(clique, offsets, values.reshape(-1).astype(np.float64), everywhere.reshape(-1).astype(np.float64))

    def table(self, site: Site) -> IntArray:
        """The numbers of a site's choices."""
        table = np.zeros(len(site.choices), dtype=np.int64)
        for attribute, offsets in zip(self.clique, self.offsets, strict=True):
            if attribute in site.clique:
                table += offsets[site.choices[:, site.clique.index(attribute)]]
        return table


def _marginals(domain: Domain, transcript: Transcript) -> list[_Term]:
    """Marginals, whole or of merged codes, and single cells; what was asked several times is averaged."""
    sums: dict[tuple[Clique, bytes], tuple[Query, FloatArray, FloatArray]] = {}

    def place(clique: Clique, query: Query) -> tuple[FloatArray, FloatArray]:
        shape = query.domain(domain.project(clique)).sizes if query.groups else domain.shape(clique)
        key = clique, b"|".join(a.encode() + query.groups[a].tobytes() for a in clique if a in query.groups)
        return sums.setdefault(key, (query, np.zeros(shape), np.zeros(shape)))[1:]

    for m in transcript.evidence:
        weighted, precision = place(m.clique, m.query)
        weighted += m.values * scales_of(m) ** -2.0
        precision += scales_of(m) ** -2.0
    for answer in transcript.answers:
        if answer.query.clique and answer.query.is_cell:
            weighted, precision = place(answer.query.clique, IDENTITY)
            cell = tuple(codes[0] for codes in sets_of(answer.query).codes)
            weighted[cell] += answer.value / answer.scale**2
            precision[cell] += answer.scale**-2
    return [
        _Term.of(domain, clique, weighted / np.where(precision > 0, precision, 1.0), precision, query)
        for (clique, _), (query, weighted, precision) in sums.items()
    ]


def _sets(domain: Domain, answers: Iterable[Answer]) -> list[_Term]:
    """Queries of several codes. How many records there are is known, so the total is none."""
    asked: dict[LinearQuery, tuple[float, float]] = {}
    for a in answers:
        if a.query != TOTAL and not a.query.is_cell:
            query = sets_of(a.query)
            weighted, precision = asked.get(query, (0.0, 0.0))
            asked[query] = (weighted + a.value / a.scale**2, precision + a.scale**-2)
    terms = []
    for query, (weighted, precision) in asked.items():
        cells = len(query.clique) + 1
        values, weights = np.zeros(cells), np.zeros(cells)
        values[0], weights[0] = weighted / precision, precision
        offsets = [_outside(domain.size(a), codes) for a, codes in zip(query.clique, query.codes, strict=True)]
        terms.append(_Term(query.clique, offsets, values, weights))
    return terms


def _outside(size: int, codes: Sequence[int]) -> IntArray:
    """1 for every code that is not among some."""
    outside = np.ones(size, dtype=np.int64)
    outside[list(codes)] = 0
    return outside


def columns_of(
    domain: Domain, evidence: Iterable[Evidence], total: float
) -> dict[Attribute, tuple[FloatArray, float]]:
    """What all marginals that hold a column, with every code of it, say together: counts that sum to the total.

    Each marginal's sums are weighted by their precision. With each column comes the largest precision of a single cell.
    """
    sums: dict[Attribute, tuple[FloatArray, float, float]] = {}
    for m in evidence:
        if not np.isfinite(scales_of(m)).all():
            continue  # what it says of single columns is not known
        for axis, attribute in enumerate(m.clique):
            if attribute in m.query.groups:
                continue
            along = m.values.sum(axis=tuple(i for i in range(m.values.ndim) if i != axis)).astype(np.float64)
            cell = m.scale**-2
            precision = cell * len(along) / m.values.size
            weighted, whole, best = sums.get(attribute, (np.zeros(len(along)), 0.0, 0.0))
            sums[attribute] = (weighted + precision * along, whole + precision, max(best, cell))
    found = {}
    for attribute in domain:
        if attribute in sums:
            weighted, whole, best = sums[attribute]
            counts = weighted / whole
            found[attribute] = (counts + (total - counts.sum()) / len(counts), best)
    return found


def _layout(sites: Sites, terms: Sequence[_Term], cells: IntArray) -> Layout:
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
    return Layout(**{name: np.array(numbers, dtype=np.int64) for name, numbers in whole.items()})
