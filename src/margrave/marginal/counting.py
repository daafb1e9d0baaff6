"""Counting: how many records fall in each cell of many cliques.

Only the maximal cliques are counted over records; the others are their sums. Counts are exact 64-bit integers, so the
answer depends on no order, of rows, cliques or threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from margrave._kernel import kernel
from margrave.domain import Codes, Domain
from margrave.errors import ModelTooLargeError
from margrave.marginal.cliques import maximal
from margrave.marginal.lattice import marginals_of
from margrave.types import Clique, IntArray

THREADS = 2
#: Up to this many (record, clique) pairs NumPy is faster than loading the compiled loop.
MAX_NUMPY_PAIRS = 1_000_000
BLOCK = 2048


def count_cliques(codes: Codes, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
    """Return the number of records in every cell of each clique: int64 arrays with one axis per
    attribute.

    **Privacy:** none is given; these are true counts, for the inside of the gate, for evaluation and for synthetic
    records. Time grows as records × maximal cliques, about 0.6 ns each on two cores.

    >>> from margrave.domain import Domain
    >>> domain = Domain.of({"age": 3, "sex": 2})
    >>> codes = Codes.of(domain, {"age": np.array([0, 2, 2]), "sex": np.array([1, 0, 0])})
    >>> counts = count_cliques(codes, [("age",), ("age", "sex")])
    >>> counts["age", "sex"].tolist()
    [[0, 1], [0, 0], [2, 0]]
    >>> counts["age",].tolist()
    [1, 0, 2]
    """
    tally = Tally(codes.domain, cliques)
    tally.add(codes)
    return tally.counts()


class Tally:
    """Counts of records in the cells of cliques, added up over the pieces of a table."""

    def __init__(self, domain: Domain, cliques: Iterable[Clique]) -> None:
        self._wanted = list(dict.fromkeys(cliques))
        tops = maximal(self._wanted)
        _refuse_large(domain, tops)
        self._counts = {c: np.zeros(domain.shape(c), dtype=np.int64) for c in tops}

    def add(self, codes: Codes) -> None:
        """Count some more records."""
        if len(codes) * len(self._counts) <= MAX_NUMPY_PAIRS:
            for clique, out in self._counts.items():
                _tally_numpy(codes, clique, out)
        else:
            _tally_threads(codes, self._counts)

    def cells(self) -> IntArray:
        """Return the counts of the maximal cliques as one vector."""
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(c.ravel() for c in self._counts.values())]
        )

    def add_cells(self, cells: IntArray) -> None:
        """Add the ``cells`` of another tally of the same cliques."""
        start = 0
        for counts in self._counts.values():
            counts += cells[start : start + counts.size].reshape(counts.shape)
            start += counts.size

    def counts(self) -> dict[Clique, IntArray]:
        """Return the counts of all cliques so far."""
        smaller = [c for c in self._wanted if c not in self._counts]
        counts = self._counts | marginals_of(self._counts, smaller)
        return {c: counts[c] for c in self._wanted}


def _refuse_large(domain: Domain, cliques: Iterable[Clique]) -> None:
    # Cells of the largest marginal: 16 GiB of counts.
    max_cells = 1 << 31
    for clique in cliques:
        if domain.cells(clique) > max_cells:
            raise ModelTooLargeError(
                f"The marginal of {', '.join(clique)} has {domain.cells(clique):,} cells.",
                remedy="Ask for fewer columns at once, or give them fewer bins or categories.",
            )


def _tally_numpy(codes: Codes, clique: Clique, out: IntArray) -> None:
    index = np.zeros(len(codes), dtype=np.int64)
    for attribute in clique:
        index *= codes.domain.size(attribute)
        index += codes.column(attribute)
    out += np.bincount(index, minlength=out.size).reshape(out.shape)


def _tally_threads(codes: Codes, counts: dict[Clique, IntArray]) -> None:
    domain = codes.domain
    queue: Iterator[Clique] = iter(tuple(counts))

    def work() -> None:
        for clique in queue:
            members = np.array([domain.index(a) for a in clique], dtype=np.int64)
            sizes = np.array(domain.shape(clique), dtype=np.uint32)
            _tally(codes.values, members, sizes, counts[clique].reshape(-1))

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work) for _ in range(THREADS)]:
            done.result()


@kernel
def _tally(values, members, sizes, out):  # type: ignore[no-untyped-def]
    """Add the records' cells to ``out``: block by block, first all flat indices (vector code), then the increments.

    One program serves cliques of every length.
    """
    index = np.empty(BLOCK, np.uint32)
    rows = values.shape[1]
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        for i in range(n):
            index[i] = 0
        for k in range(len(members)):
            column = values[
                members[k], start:
            ]  # not start:start + n, which takes half as long again to compile
            for i in range(n):
                index[i] = index[i] * sizes[k] + column[i]
        for i in range(n):
            out[index[i]] += 1
