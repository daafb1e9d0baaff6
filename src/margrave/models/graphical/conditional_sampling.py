"""Records some of whose columns are known, and the others drawn from the model: exact, row by row.

Given the codes of some columns, a factor is a table over its other columns alone. So each combination of known codes
has a model of its own over the columns that it lacks, all with the same graph: they are eliminated together, a batch of
combinations at a time, and drawn in the opposite order. It takes combinations · (cells of that graph's cliques) steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import ModelTooLargeError
from margrave.marginal.axes import expand_axes
from margrave.models.conditional import Given, joined, nothing_like
from margrave.models.graphical.elimination import eliminate
from margrave.models.sampling import deal
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray

#: Cells of all tables of a batch together (64 MB).
CELLS_PER_BATCH = 1 << 23

#: Cells of the tables of one combination (1 GB).
MAX_CELLS_PER_COMBINATION = 1 << 27

#: Cells of all tables of all batches together: minutes of work.
MAX_CELLS_IN_ALL = 20_000_000_000


class Factor(NamedTuple):
    """Logarithms, the first axis for the combinations of a batch, the others for the attributes."""

    clique: Clique
    table: FloatArray


def complete(
    domain: Domain, potentials: Mapping[Clique, FloatArray], rows: Codes, rng: np.random.Generator
) -> Codes:
    """Return the rows with the missing columns drawn. Raise ``ModelTooLargeError`` if that takes
    too long.
    """
    touching = {r: t for r, t in potentials.items() if any(a not in rows.domain for a in r)}
    near = {a for r in touching for a in r}
    given = Given.of(domain, rows, tuple(a for a in rows.domain if a in near))
    if not given.lacking or not len(rows):
        return joined(domain, rows, {a: np.zeros(0, dtype=np.int64) for a in given.lacking})
    inner = Domain(given.lacking, tuple(domain.size(a) for a in given.lacking))
    order, neighbors = eliminate(inner, [tuple(a for a in r if a in inner) for r in touching])
    scopes = [tuple(given.lacking[u] for u in (*neighbors[v], v)) for v in order]
    cells = sum(inner.cells(s) for s in scopes)
    if cells > MAX_CELLS_PER_COMBINATION or cells * len(given) > MAX_CELLS_IN_ALL:
        raise ModelTooLargeError(
            f"Completing {len(given):,} different combinations takes {cells:,} cells of the model for each.",
            remedy="Complete fewer rows, or give more of their columns: fewer are left to draw then.",
        )
    drawn = {a: np.zeros(len(rows), dtype=np.int64) for a in given.lacking}
    batch = max(1, CELLS_PER_BATCH // cells)
    by_batch = np.argsort(given.which // batch, kind="stable")
    ends = np.searchsorted(
        given.which[by_batch] // batch, np.arange(0, -(-len(given) // batch)), side="right"
    )
    at = 0
    for number, end in enumerate(ends):
        part, at = by_batch[at:end], end
        codes = given.codes.take(np.arange(number * batch, min((number + 1) * batch, len(given))))
        tables = _eliminated(
            [_restricted(r, t, codes) for r, t in touching.items()], scopes, inner, len(codes)
        )
        found = _drawn(tables, given.which[part] - number * batch, inner, rng)
        for a, column in found.items():
            drawn[a][part] = column
    return joined(domain, rows, drawn)


def _restricted(clique: Clique, potential: FloatArray, codes: Codes) -> Factor:
    known = [i for i, a in enumerate(clique) if a in codes.domain]
    rest = tuple(a for a in clique if a not in codes.domain)
    if not known:
        return Factor(rest, potential[None])
    first = np.moveaxis(potential, known, range(len(known)))
    return Factor(rest, first[tuple(codes.column(clique[i]).astype(np.int64) for i in known)])


def _eliminated(
    factors: list[Factor], scopes: Sequence[Clique], inner: Domain, combinations: int
) -> list[Factor]:
    tables = []
    for scope in scopes:
        mine = [f for f in factors if scope[-1] in f.clique]
        table = np.zeros((combinations, *inner.shape(scope)))
        for factor in mine:
            table += expand_axes(factor.table, factor.clique, scope)
        tables.append(Factor(scope, table))
        left = Factor(scope[:-1], np.logaddexp.reduce(table, axis=-1))
        factors = [*(f for f in factors if scope[-1] not in f.clique), left]
    impossible = np.zeros(combinations, dtype=np.bool_)
    for factor in factors:  # all that is left are numbers, one per combination
        impossible |= ~np.isfinite(factor.table)
    if impossible.any():
        raise nothing_like(int(impossible.sum()))
    return tables


def _drawn(
    tables: Sequence[Factor], which: IntArray, inner: Domain, rng: np.random.Generator
) -> dict[Attribute, AnyArray]:
    found: dict[Attribute, AnyArray] = {}
    for (*before, attribute), table in reversed(tables):
        group = which
        for a in before:
            group = group * inner.size(a) + found[a]
        kinds, group = np.unique(group, return_inverse=True)
        weights = table.reshape(-1, inner.size(attribute))[kinds]
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        found[attribute] = deal(group, weights, rng).astype(np.int64)
    return found
