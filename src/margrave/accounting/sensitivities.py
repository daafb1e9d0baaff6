"""The most that neighboring tables can differ in a count.

Every sensitivity in margrave comes from ``sensitivity`` below; no other module writes one down.
"""

from __future__ import annotations

from typing import NamedTuple

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import IDENTITY, LinearMap, SingleQuery
from margrave.marginal.linear_map import Norms
from margrave.schema.column_queries import ClippedSum, ColumnQuery, DecimalCells, LineCells
from margrave.unit import (
    AddRemovePerson,
    AddRemoveRow,
    ReplacePerson,
    ReplaceRow,
    Unit,
    unknown_unit,
)


class Sensitivity(NamedTuple):
    """The largest change of one answer between neighbors: its L1 norm, and the square of its L2 norm.

    The change of a whole marginal is of its array of counts. Both are exact whole numbers.
    """

    l1: int
    l2_squared: int


def sensitivity(
    unit: Unit,
    query: LinearMap | SingleQuery | ColumnQuery = IDENTITY,
    domain: Domain | None = None,
) -> Sensitivity:
    """Return the sensitivity of one answer: ``l1 = max ‖x − x'‖₁`` and ``l2_squared = max ‖x − x'‖₂²`` over neighbors.

    ``domain`` are the attributes of the marginal; a map with matrices needs it.

    **Privacy:** none spent; this is where every charge and every noise scale starts. A query sums groups that
    partition the cells, so a row still counts in one cell of the answer, whatever the query: the marginal's figures
    hold. A single query is one count, which a row that goes and the row that replaces it do not move twice; where a row
    counts up to ``query.most``, it moves as many times as far.

    >>> sensitivity(ReplaceRow())
    Sensitivity(l1=2, l2_squared=2)
    >>> sensitivity(AddRemovePerson(max_rows=3))
    Sensitivity(l1=3, l2_squared=9)
    >>> from margrave.marginal import LinearQuery
    >>> sensitivity(ReplaceRow(), LinearQuery(("age",), ((0,),)))
    Sensitivity(l1=1, l2_squared=1)
    """
    if isinstance(query, LinearMap) and not query.is_partition:
        return _of_map(unit, query, domain)
    if isinstance(query, LineCells | DecimalCells):  # a row lies in one of the cells
        return sensitivity(unit)
    if isinstance(query, ClippedSum):
        return _of_sum(unit, query)
    single = not isinstance(query, LinearMap)
    most = 1 if isinstance(query, LinearMap) else query.max_contribution
    # Let u ≥ 0 be the counts of the rows that go and v ≥ 0 of those that come, so that the answer moves by v − u.
    # With at most k rows each way ‖u‖₁, ‖v‖₁ ≤ k, hence ‖u‖₂², ‖v‖₂² ≤ k²: attained with all k rows in one cell.
    # Add or remove: one of them is zero, so ‖v − u‖₁ ≤ k and ‖v − u‖₂² ≤ k².
    # Replace: ‖v − u‖₁ ≤ 2k, and ‖v − u‖₂² = ‖u‖₂² + ‖v‖₂² − 2u·v ≤ 2k² because u·v ≥ 0: attained with all k rows
    # moved from one cell to another. One count alone, in which a row counts from 0 to w = ``most``, moves by v − u with
    # 0 ≤ u, v ≤ k·w, so by k·w at most in either case.
    match unit:
        case AddRemoveRow():
            return _add_remove(most)
        case AddRemovePerson(max_rows=k):
            return _add_remove(k * most)
        case ReplaceRow():
            return _add_remove(most) if single else _replace(1)
        case ReplacePerson(max_rows=k):
            return _add_remove(k * most) if single else _replace(k)
        case _:
            raise unknown_unit(unit)


def _of_map(unit: Unit, query: LinearMap, domain: Domain | None) -> Sensitivity:
    """Return the sensitivity of a map A that may count a row in many answers.

    A row at cell x moves the answers by the column A_x. Of at most k rows each way, the answers move by
    v − u, with u and v in the convex hull of 0 and all k·A_x. A norm is largest at corners of this set:
    k·max ‖A_x‖ or k·max ‖A_x − A_y‖. A row that takes the place of another moves them by A_x − A_y.
    """
    if domain is None:
        raise InputError(
            "The sensitivity of a map with matrices depends on the marginal's columns."
        )
    match unit:
        case AddRemoveRow():
            return _times(1, query.one_row())
        case AddRemovePerson(max_rows=k):
            return _times(k, query.one_row())
        case ReplaceRow():
            moved = _times(1, query.two_rows(domain))
            if not moved.l2_squared:
                raise InputError(
                    "The map gives the same answers for all tables of as many rows.",
                    remedy="Do not measure it: the number of rows is public.",
                )
            return moved
        case ReplacePerson(max_rows=k):
            one, two = query.one_row(), query.two_rows(domain)
            return _times(k, Norms(max(one.l1, two.l1), max(one.l2_squared, two.l2_squared)))
        case _:
            raise unknown_unit(unit)


def _of_sum(unit: Unit, query: ClippedSum) -> Sensitivity:
    """Return the sensitivity of a sum of contributions of either sign.

    A row contributes from -a to b, and a + b is ``query.max_change``. A row that comes or goes moves
    the sum by max(a, b) at most, a row that takes another's place by a + b. Up to k rows that go and
    up to k that come move it by k (a + b) at most: attained with -a for all that go and b for all
    that come.
    """
    match unit:
        case AddRemoveRow():
            return _add_remove(query.max_contribution)
        case AddRemovePerson(max_rows=k):
            return _add_remove(k * query.max_contribution)
        case ReplaceRow():
            return _add_remove(query.max_change)
        case ReplacePerson(max_rows=k):
            return _add_remove(k * query.max_change)
        case _:
            raise unknown_unit(unit)


def _times(k: int, norms: Norms) -> Sensitivity:
    return Sensitivity(l1=k * norms.l1, l2_squared=k * k * norms.l2_squared)


def _add_remove(k: int) -> Sensitivity:
    return Sensitivity(l1=k, l2_squared=k * k)


def _replace(k: int) -> Sensitivity:
    return Sensitivity(l1=2 * k, l2_squared=2 * k * k)
