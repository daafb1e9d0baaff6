"""The smallest error of any distribution on public records: a limit of their support."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave.data import Table
from margrave.domain import Codes, Domain
from margrave.errors import InputError, ModelTooLargeError
from margrave.evaluation.inputs import real_table
from margrave.public_table import PublicTable
from margrave.types import AnyArray, Attribute, Clique, FloatArray
from margrave.workload import Workload

#: Numbers of the largest linear program, which takes about a minute.
MAX_PROGRAM_CELLS = 2_000_000


@dataclass(frozen=True)
class BestMixture:
    """The result of ``best_mixture_error``. **Not private**: it comes from the real rows.

    ``error`` is the largest difference of shares over all cells of the workload, 0 to 1.
    ``records`` is the number of public records that the workload separates.
    """

    private: ClassVar[bool] = False

    error: float
    records: int
    queries: int


def best_mixture_error(
    real: Table,
    public: PublicTable,
    workload: Workload | Iterable[Iterable[Attribute]] | None = None,
) -> BestMixture:
    """Return the least, over all weights on the public records, of the largest error on the cells
    of a workload.

        min over w >= 0, Σ w = 1   of   max over marginals r and cells c   |Σ_{public x in c} w_x − share of c|

    A linear program. It bounds from below what PMW^Pub and PEP^Pub reach with this public table, at any budget;
    ``workload``: None means every three-way marginal.

    **Privacy:** NOT private. It reads the real rows outside the gate, for the custodian alone: choosing a public table
    by it uses the real rows, for which no ledger accounts.

    Raises ``InputError`` where SciPy is missing or a column is, ``ModelTooLargeError`` for a program too large.

    Source: Liu, Vietri, Wu (2021), Appendix E; Liu, Vietri, Steinke, Ullman, Wu (2021).
    """
    domain = real_table(real).domain
    public.needs(domain, "a mixture of public records")
    cliques = (
        Workload.all_kway(domain, 3) if workload is None else Workload.of(domain, workload)
    ).cliques
    records = _distinct(domain, public, cliques)
    if 2 * records.shape[1] * len(cliques) > MAX_PROGRAM_CELLS:
        raise ModelTooLargeError(
            f"{records.shape[1]:,} distinct public records and {len(cliques):,} marginals make too large a program.",
            remedy="Name a smaller workload, or give some of the public records.",
        )
    if not real.rows():
        raise InputError("The real table has no rows to compare with.")
    cells, shares = _program(domain, records, cliques, real)
    return BestMixture(
        _solved(cells, shares), records.shape[1], int(sum(map(domain.cells, cliques)))
    )


def _distinct(domain: Domain, public: PublicTable, cliques: Sequence[Clique]) -> AnyArray:
    named = {a for c in cliques for a in c}
    values = Codes(
        domain, public.codes.values[[public.domain.index(a) for a in domain]]
    ).values.copy()
    values[[a not in named for a in domain]] = 0
    return np.unique(values, axis=1)


def _program(
    domain: Domain, records: AnyArray, cliques: Sequence[Clique], real: Table
) -> tuple[AnyArray, FloatArray]:
    """Return for every clique the row of the program that each record counts in, and each row's
    real share.

    The first row stands for all cells without a public record: only the largest of their shares
    matters.
    """
    rows, shares, counts = [], [np.zeros(1)], real.count(cliques)
    for clique in cliques:
        truth = counts[clique].reshape(-1) / real.rows()
        held = np.ravel_multi_index(
            [records[domain.index(a)] for a in clique], domain.shape(clique)
        )
        occupied, place = np.unique(held, return_inverse=True)
        rows.append(place + sum(map(len, shares)))
        shares.append(truth[occupied])
        shares[0] = np.maximum(shares[0], np.delete(truth, occupied).max(initial=0.0))
    return np.array(rows), np.concatenate(shares)


def _solved(cells: AnyArray, shares: FloatArray) -> float:
    try:
        from scipy.optimize import linprog
        from scipy.sparse import coo_array, hstack, vstack
    except ModuleNotFoundError:
        raise InputError(
            "The best mixture needs scipy, which is not installed.",
            remedy="pip install 'margrave[inference]'",
        ) from None
    cliques, records = cells.shape
    columns = np.tile(np.arange(records), cliques)
    counted: Any = coo_array(
        (np.ones(columns.size), (cells.reshape(-1), columns)), shape=(len(shares), records)
    )
    slack = np.full((len(shares), 1), -1.0)
    found = linprog(
        np.append(np.zeros(records), 1.0),
        A_ub=vstack([hstack([counted, slack]), hstack([-counted, slack])], format="csr"),
        b_ub=np.concatenate([shares, -shares]),
        A_eq=np.append(np.ones(records), 0.0)[None, :],
        b_eq=np.ones(1),
        method="highs",
    )
    if not found.success:
        raise InputError(
            "The linear program of the best mixture was not solved.",
            remedy="Try a smaller workload.",
        )
    return max(0.0, float(found.fun))
