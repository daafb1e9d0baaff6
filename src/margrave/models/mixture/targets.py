"""Noisy answers as training targets of a mixture, in arrays of few shapes: many rounds compile a
few times.

The mixture's columns are the codes of all attributes side by side, a column of ones, and the sums
over the sets of codes that queries name. A target is a product of columns, averaged over the
components. There are four kinds:

- ``columns``: one-way marginals, one number per code;
- ``pairs``: two-way marginals, cells of the matrix of products of any two codes;
- ``tiles``: larger marginals, cut into tiles of some left by some right columns;
- ``queries``: single linear queries, a product of a few columns each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Domain
from margrave.marginal import TOTAL, LinearQuery
from margrave.models.mixture.model import Floats, blocks_of
from margrave.models.terms import Term, sets_of, terms_of
from margrave.transcript import Measurement, Transcript
from margrave.types import AnyArray, Clique, IntArray

Ints = NDArray[np.int32]

#: An array of numbers: NumPy's where it is made, JAX's in training.
Array = Any

#: The size of a tile.
LEFT, RIGHT = 32, 16

#: Codes beyond which pairs are cut into tiles: the matrix of all pairs would cost more.
MANY_CODES = 1500


class Part(NamedTuple):
    """Targets of one kind: ``values`` in shares of the records, and ``weights``, 0 where there is no target."""

    values: Array
    weights: Array


class Targets(NamedTuple):
    """All targets, padded to few shapes; a kind of which there are none is None.

    ``members[c, a]`` is 1 where code c is one of attribute a; ``sets`` has a row of weights over
    the codes per set, 1 for those in it. ``left``, ``right`` and ``factors`` number columns: the
    factors of a tile's rows and columns, and of queries.
    """

    members: Array
    sets: Array | None = None
    columns: Part | None = None
    pairs: Part | None = None
    left: Array | None = None
    right: Array | None = None
    tiles: Part | None = None
    factors: Array | None = None
    queries: Part | None = None


@dataclass(frozen=True)
class NoisyQuery:
    """A noisy answer: ``value`` in records, and the standard deviation of its noise.

    The query is a product over the attributes of the clique. ``weights`` has, for each of them, the
    codes that count with their weights.
    """

    clique: Clique
    weights: tuple[tuple[tuple[int, float], ...], ...]
    value: float
    scale: float

    @staticmethod
    def of(query: LinearQuery, value: float, scale: float) -> NoisyQuery:
        """Return the answer of a count."""
        weights = tuple(tuple((code, 1.0) for code in codes) for codes in query.codes)
        return NoisyQuery(query.clique, weights, value, scale)

    @property
    def is_count(self) -> bool:
        """True if all weights are 1, so that the answer is a share of the records."""
        return all(weight == 1.0 for codes in self.weights for _, weight in codes)


def members_of(domain: Domain) -> Floats:
    """Return which code belongs to which attribute, padded so that domains of similar size share
    compiled code.
    """
    members = np.zeros((_up(sum(domain.sizes), 32), _up(len(domain), 16)), dtype=np.float32)
    for number, block in enumerate(blocks_of(domain).values()):
        members[block, number] = 1.0
    return members


def targets_of(domain: Domain, transcript: Transcript, *, weighted: bool) -> Targets:
    """Return all answers of a transcript but the number of records. ``weighted``: by 1 / scale, the
    least noise weighing 1.
    """
    whole = [m for m in transcript.evidence if m.query.is_identity]
    mapped = [m for m in transcript.measurements if not m.query.is_identity]
    known = [
        NoisyQuery.of(sets_of(a.query), a.value, a.scale)
        for a in transcript.answers
        if a.query != TOTAL
    ]
    known += [k for m in mapped for k in _of_map(domain, m)]
    return targets_from(
        domain, terms_of(domain, whole), known, transcript.total(), weighted=weighted
    )


def targets_from(
    domain: Domain,
    terms: Sequence[Term],
    known: Sequence[NoisyQuery],
    total: float,
    *,
    weighted: bool,
) -> Targets:
    """Return the targets of whole marginals and of single queries."""
    least = min([*(float(t.scales.min()) for t in terms), *(k.scale for k in known)], default=1.0)
    if not weighted:
        terms = [
            Term(t.clique, t.values, np.where(np.isfinite(t.scales), 1.0, np.inf)) for t in terms
        ]
        known, least = [replace(k, scale=1.0) for k in known], 1.0
    terms = [Term(t.clique, t.values / total, least / t.scales) for t in terms]
    found = Targets(members_of(domain))
    wide = sum(domain.sizes) > MANY_CODES
    singles = [t for t in terms if len(t.clique) == 1]
    pairs = [t for t in terms if len(t.clique) == 2 and not wide]
    large = [t for t in terms if len(t.clique) > 2 or (wide and len(t.clique) == 2)]
    if singles:
        found = found._replace(columns=_columns(domain, singles))
    if pairs:
        found = found._replace(pairs=_pairs(domain, pairs))
    if large:
        left, right, tiles = _tiles(domain, large)
        found = found._replace(left=left, right=right, tiles=tiles)
    if known:
        shares = [replace(k, value=_share(k, total), scale=least / k.scale) for k in known]
        sets, factors, queries = _queries(domain, shares)
        found = found._replace(sets=sets, factors=factors, queries=queries)
    return found


def _share(query: NoisyQuery, total: float) -> float:
    share = query.value / total
    return min(max(share, 0.0), 1.0) if query.is_count else share


def _of_map(domain: Domain, m: Measurement) -> Iterable[NoisyQuery]:
    # by the largest weight, so that without weights by noise a sum counts as much as a cell
    matrices = {a: m.query.rows(a, domain.size(a)) for a in m.clique}
    rows = [
        [
            tuple((int(code), row[code] / np.abs(matrix).max()) for code in np.flatnonzero(row))
            for row in matrix
        ]
        for matrix in matrices.values()
    ]
    largest = m.query.max_weight
    for at in np.ndindex(m.values.shape):
        weights = tuple(rows[i][row] for i, row in enumerate(at))
        if all(weights):
            yield NoisyQuery(m.clique, weights, float(m.values[at]) / largest, m.scale / largest)


def _columns(domain: Domain, terms: Sequence[Term]) -> Part:
    part, blocks = _part(_up(sum(domain.sizes), 32)), blocks_of(domain)
    for term in terms:
        part.values[blocks[term.clique[0]]], part.weights[blocks[term.clique[0]]] = (
            term.values,
            term.scales,
        )
    return part


def _pairs(domain: Domain, terms: Sequence[Term]) -> Part:
    codes, blocks = _up(sum(domain.sizes), 32), blocks_of(domain)
    part = _part(codes, codes)
    for term in terms:
        one, other = (blocks[a] for a in term.clique)
        part.values[one, other], part.weights[one, other] = term.values, term.scales
    return part


def _tiles(domain: Domain, terms: Sequence[Term]) -> tuple[Ints, Ints, Part]:
    longest = max(len(t.clique) for t in terms)
    rights, lefts = max(1, longest // 2), max(2, longest - longest // 2)
    stacks: dict[Clique, list[tuple[IntArray, AnyArray, AnyArray]]] = {}
    for term in terms:
        right = _right(domain, term.clique, rights, lefts)
        left = tuple(a for a in term.clique if a not in right)
        order = [term.clique.index(a) for a in (*left, *right)]
        shape = (domain.cells(left), domain.cells(right))
        values, weights = (x.transpose(order).reshape(shape) for x in (term.values, term.scales))
        stacks.setdefault(right, []).append((_products(domain, left, lefts), values, weights))
    one, found = _up(sum(domain.sizes), 32), []
    for right, stack in stacks.items():
        across = _products(domain, right, rights)
        down, values, weights = (np.concatenate([s[i] for s in stack]) for i in range(3))
        for i in range(0, len(down), LEFT):
            for j in range(0, len(across), RIGHT):
                part = (slice(i, i + LEFT), slice(j, j + RIGHT))
                found.append((down[part[0]], across[part[1]], values[part], weights[part]))
    many = doubled(len(found), 4)
    lefts_of = np.full((many, LEFT, lefts), one, dtype=np.int32)
    rights_of = np.full((many, RIGHT, rights), one, dtype=np.int32)
    tiles = _part(many, LEFT, RIGHT)
    for n, (down, across, values, weights) in enumerate(found):
        lefts_of[n, : len(down)], rights_of[n, : len(across)] = down, across
        tiles.values[n, : len(down), : len(across)] = values
        tiles.weights[n, : len(down), : len(across)] = weights
    return lefts_of, rights_of, tiles


def _right(domain: Domain, clique: Clique, rights: int, lefts: int) -> Clique:

    def fill(right: Clique) -> tuple[float, int]:
        cells = domain.cells(right)
        return cells / _up(cells, RIGHT), cells

    fewest = max(1, len(clique) - lefts)
    options = [
        c for k in range(fewest, min(rights, len(clique) - 1) + 1) for c in combinations(clique, k)
    ]
    return max(options, key=fill)


def _products(domain: Domain, clique: Clique, factors: int) -> IntArray:
    blocks = blocks_of(domain)
    grid = np.indices(domain.shape(clique)).reshape(len(clique), -1).T
    rows = np.full((len(grid), factors), _up(sum(domain.sizes), 32))
    rows[:, : len(clique)] = grid + np.array([blocks[a].start for a in clique])
    return rows


def _queries(domain: Domain, known: Sequence[NoisyQuery]) -> tuple[Floats | None, Ints, Part]:
    blocks, one = blocks_of(domain), _up(sum(domain.sizes), 32)
    numbers: dict[tuple[tuple[int, float], ...], int] = {}
    factors = np.full(
        (doubled(len(known), 16), max(3, *(len(k.clique) for k in known))),
        one,
        dtype=np.int32,
    )
    part = _part(len(factors))
    for row, k in enumerate(known):
        part.values[row], part.weights[row] = k.value, k.scale
        for place, (attribute, codes) in enumerate(zip(k.clique, k.weights, strict=True)):
            columns = tuple((blocks[attribute].start + c, weight) for c, weight in codes)
            if len(columns) == 1 and columns[0][1] == 1.0:
                factors[row, place] = columns[0][0]
            else:
                factors[row, place] = one + 1 + numbers.setdefault(columns, len(numbers))
    if not numbers:
        return None, factors, part
    sets = np.zeros((doubled(len(numbers), 16), one), dtype=np.float32)
    for columns, number in numbers.items():
        for column, weight in columns:
            sets[number, column] = weight
    return sets, factors, part


def _part(*shape: int) -> Part:
    return Part(np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32))


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def doubled(number: int, least: int) -> int:
    """Return the smallest of ``least``, twice as many, … that is at least a number."""
    return least << max(0, (-(-number // least) - 1).bit_length())
