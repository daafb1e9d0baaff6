"""The unit of privacy: what may differ between two neighbouring tables, and how far that moves the counts.

Every sensitivity in margrave comes from ``sensitivity`` below; no other module writes one down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrave.errors import InputError
from margrave.marginal import IDENTITY, Query, SingleQuery
from margrave.schema.domain import Domain


@dataclass(frozen=True)
class AddRemoveRow:
    """Neighbours differ by one row more or less. The number of rows is private."""

    def __str__(self) -> str:
        return "add or remove one row"


@dataclass(frozen=True)
class ReplaceRow:
    """Neighbours differ in the values of one row. The number of rows is public."""

    def __str__(self) -> str:
        return "replace one row"


@dataclass(frozen=True)
class AddRemovePerson:
    """Neighbours differ by one person, with at most ``max_rows`` rows, more or less."""

    max_rows: int

    def __post_init__(self) -> None:
        _check_max_rows(self.max_rows)

    def __str__(self) -> str:
        return f"add or remove one person of at most {_rows(self.max_rows)}"


@dataclass(frozen=True)
class ReplacePerson:
    """Neighbours differ in the rows of one person, who has at most ``max_rows`` in either.

    The number of persons is public, the number of rows is not.
    """

    max_rows: int

    def __post_init__(self) -> None:
        _check_max_rows(self.max_rows)

    def __str__(self) -> str:
        return f"replace one person of at most {_rows(self.max_rows)}"


Unit = AddRemoveRow | ReplaceRow | AddRemovePerson | ReplacePerson


class Sensitivity(NamedTuple):
    """The largest change of one answer between neighbours: its L1 norm, and the square of its L2 norm."""

    l1: int
    l2_squared: int


def sensitivity(unit: Unit, query: Query | SingleQuery = IDENTITY) -> Sensitivity:
    """How far one answer can move: ``l1 = max ‖x − x'‖₁`` and ``l2_squared = max ‖x − x'‖₂²`` over neighbours.

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
    single = not isinstance(query, Query)
    most = 1 if isinstance(query, Query) else query.most
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
            raise InputError(
                f"The unit of privacy is {unit!r}.",
                remedy="It is one of margrave's own, AddRemoveRow(), ReplaceRow(), AddRemovePerson(K) or"
                f" ReplacePerson(K), or its name: {', '.join(_UNITS)}.",
            )


def check_query(query: Query, domain: Domain) -> None:
    """Raise unless the query partitions cells: one group, 0 or more, per code of each attribute it names."""
    for attribute, groups in query.groups.items():
        fits = groups.shape == (domain.size(attribute),) and np.issubdtype(groups.dtype, np.integer)
        if not fits or int(groups.min()) < 0:
            raise InputError(f"The query's groups of {attribute!r} are not one number, 0 or more, per code.")


def _add_remove(k: int) -> Sensitivity:
    return Sensitivity(l1=k, l2_squared=k * k)


def _replace(k: int) -> Sensitivity:
    return Sensitivity(l1=2 * k, l2_squared=2 * k * k)


def size_is_public(unit: Unit) -> bool:
    """Whether neighbours always have the same number of rows, so that it may be told."""
    return isinstance(unit, ReplaceRow)


def rows_per_person(unit: Unit) -> int | None:
    """The most rows of one person that may stay in the table; None where the unit is a row."""
    return unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else None


_UNITS = ("add-remove-row", "replace-row", "add-remove-person:K", "replace-person:K")


def parse_unit(text: str) -> Unit:
    """The unit that a text names: "add-remove-row", "replace-row", "add-remove-person:5", "replace-person:5".

    >>> parse_unit("add-remove-person:5")
    AddRemovePerson(max_rows=5)
    """
    name, colon, rows = text.strip().lower().partition(":")
    if not colon and name == "add-remove-row":
        return AddRemoveRow()
    if not colon and name == "replace-row":
        return ReplaceRow()
    if name in ("add-remove-person", "replace-person") and re.fullmatch(r"[0-9]{1,18}", rows):
        return AddRemovePerson(int(rows)) if name == "add-remove-person" else ReplacePerson(int(rows))
    raise InputError(
        f"{text[:60]!r} is not a unit of privacy.",
        remedy=f"Write one of: {', '.join(_UNITS)}, with K the most rows a person may contribute.",
    )


def unit_of(unit: Unit | str) -> Unit:
    """A unit as it is, or by its name; refuses what is neither.

    >>> unit_of("replace-row"), unit_of(AddRemovePerson(5))
    (ReplaceRow(), AddRemovePerson(max_rows=5))
    """
    found = parse_unit(unit) if isinstance(unit, str) else unit
    sensitivity(found)
    return found


def unit_name(unit: Unit) -> str:
    """The text that ``parse_unit`` reads as this unit.

    >>> unit_name(ReplacePerson(max_rows=5))
    'replace-person:5'
    """
    match unit:
        case AddRemoveRow():
            return "add-remove-row"
        case ReplaceRow():
            return "replace-row"
        case AddRemovePerson(max_rows=k):
            return f"add-remove-person:{k}"
        case ReplacePerson(max_rows=k):
            return f"replace-person:{k}"


def _check_max_rows(max_rows: int) -> None:
    if not isinstance(max_rows, int) or isinstance(max_rows, bool) or not 1 <= max_rows <= 1_000_000:
        raise InputError(
            f"max_rows is {max_rows!r}.",
            remedy="Give the most rows one person may contribute: a whole number from 1 to 1,000,000.",
        )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
