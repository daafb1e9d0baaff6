"""Errors of linear queries: the largest, the mean, and the root mean square."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from margrave.data import Table
from margrave.domain import Domain
from margrave.error_sanitizer import hide_rows
from margrave.errors import InputError
from margrave.evaluation.inputs import Real, Synthetic, comparison_sides, real_table
from margrave.marginal import LinearQuery, QueryFamily
from margrave.models import Answerer
from margrave.release import Release
from margrave.schema import Column, Schema
from margrave.types import AnyArray, Clique, FloatArray

BATCH_CELLS = 1 << 24


@dataclass(frozen=True)
class QueryErrors:
    """``|q(D) / n − q(D') / n'|`` over a set of queries. **Not private**: D are the real rows.

    ``largest`` is that of the query ``worst``, in words with the labels of the schema.
    """

    queries: int
    largest: float
    mean: float
    rmse: float
    worst: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return dict(vars(self))


@hide_rows
def query_errors(
    real: Real,
    synthetic: Synthetic,
    queries: QueryFamily,
    *,
    rows: int | None = None,
    seed: int | None = None,
) -> QueryErrors:
    """Return the errors of a synthetic table's answers: shares of its own records against real
    shares.

    A release draws ``rows`` records, different ones each time unless ``seed`` is given.

    Raises:
        InputError: Tables or queries of other columns; a frame if no side has a schema; or ``rows``
            or ``seed`` with a table that has its own records.

    Privacy:
        NOT private: it reads the real rows outside the gate.

    >>> from margrave.data import MemoryTable
    >>> from margrave.domain import Codes
    >>> from margrave.schema import Schema
    >>> schema = Schema.coded({"a": 2})
    >>> one, other = (
    ...     MemoryTable(schema, Codes.of(schema.domain, {"a": np.array(codes)})) for codes in ([0, 1, 1, 1], [0, 1])
    ... )
    >>> query_errors(one, other, QueryFamily.cells(schema.domain, [("a",)]))
    QueryErrors(queries=2, largest=0.25, mean=0.25, rmse=0.25, worst='a = 0')
    """
    real, synthetic = comparison_sides(real, synthetic, rows, seed)
    check_same(synthetic.domain, real, queries)
    summed = Errors(queries)
    for batch in batches(real.domain, queries.cliques):
        left, right = real.count(batch), synthetic.count(batch)
        for clique in batch:
            summed.add(clique, share(left[clique]), share(right[clique]))
    return summed.found(real.schema)


@hide_rows
def model_errors(real: Real, model: Answerer | Release, queries: QueryFamily) -> QueryErrors:
    """Return the errors of a model's own answers as shares of its number of records, without
    sampling error.
    """
    answerer = model.model if isinstance(model, Release) else model
    schema = model.schema if isinstance(model, Release) else None
    real = real_table(real, schema, of_release=schema is not None)
    if not isinstance(answerer, Answerer):
        raise InputError(
            f"{type(model).__name__} is not a model.",
            remedy="Give a release, or its release.model.",
        )
    check_same(answerer.domain, real, queries)
    summed = Errors(queries)
    for batch in batches(real.domain, queries.cliques):
        left, right = real.count(batch), answerer.answer(batch)
        for clique in batch:
            summed.add(
                clique, share(left[clique]), np.asarray(right[clique]) / max(answerer.total, 1e-300)
            )
    return summed.found(real.schema)


@dataclass(eq=False)
class Errors:
    """Errors added up clique by clique."""

    queries: QueryFamily
    _sums: FloatArray = field(default_factory=lambda: np.zeros(2))
    _largest: tuple[float, int] = (-1.0, 0)

    def add(self, clique: Clique, real: FloatArray, synthetic: FloatArray) -> None:
        """Add the queries of one clique, given both shares of its cells."""
        error = np.abs(self.queries.answer(clique, real - synthetic)).reshape(-1)
        self._sums += error.sum(), error @ error
        top = int(np.argmax(error))
        if error[top] > self._largest[0]:
            self._largest = float(error[top]), self._starts[clique] + top

    @cached_property
    def _starts(self) -> dict[Clique, int]:
        return dict(zip(self.queries.cliques, self.queries.starts.tolist(), strict=False))

    def found(self, schema: Schema) -> QueryErrors:
        """Return the summary of all errors."""
        n, (largest, number) = len(self.queries), self._largest
        mean, square = (float(s) / n for s in self._sums)
        return QueryErrors(
            n, largest, mean, float(np.sqrt(square)), _in_words(self.queries[number], schema)
        )


def _in_words(query: LinearQuery, schema: Schema) -> str:
    named = zip(query.clique, query.codes, strict=True)
    return ", ".join(f"{a} = {_labelled(schema.column(a), codes)}" for a, codes in named) or (
        "all records"
    )


def _labelled(column: Column, codes: Sequence[int]) -> str:
    labels, first, last = column.labels(), codes[0], codes[-1]
    if len(codes) > 2 and last - first == len(codes) - 1:
        return f"{labels[first]} through {labels[last]}"
    return " or ".join(labels[code] for code in codes)


def share(counts: AnyArray) -> FloatArray:
    """Return counts as shares of their sum; of an empty table they are 0."""
    total = int(counts.sum())
    return counts / total if total else np.zeros(counts.shape)


def batches(domain: Domain, cliques: Iterable[Clique]) -> Iterator[list[Clique]]:
    """Yield some cliques at a time, to bound the memory."""
    batch: list[Clique] = []
    cells = 0
    for clique in cliques:
        size = domain.cells(clique)
        if batch and cells + size > BATCH_CELLS:
            yield batch
            batch, cells = [], 0
        batch.append(clique)
        cells += size
    if batch:
        yield batch


def fits_in_memory(domain: Domain, cliques: Iterable[Clique]) -> None:
    """Raise ``InputError`` for a marginal of too many cells, by its name."""
    max_cells = 1 << 27
    for clique in cliques:
        if domain.cells(clique) > max_cells:
            raise InputError(
                f"The marginal of {', '.join(clique)} has {domain.cells(clique)} cells, too many to compare.",
                remedy="Name a workload without it, or give its columns fewer bins.",
            )


def check_same(domain: Domain, real: Table, queries: object) -> None:
    """Raise ``InputError`` unless ``queries`` are queries and all three have the same columns."""
    if not isinstance(queries, QueryFamily):
        raise InputError(
            f"The queries are a {type(queries).__name__}.",
            remedy="Give a QueryFamily: every cell of some marginals is QueryFamily.cells(schema.domain, marginals).",
        )
    if difference := real.domain.difference(domain) or real.domain.difference(queries.domain):
        raise InputError(
            "The real table, what it is compared with and the queries do not have the same schema:"
            f" {difference}.",
            remedy="Make all three with one schema.",
        )
