"""Units of privacy: the one table of sensitivities, against every neighbor of every small table."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    ReplacePerson,
    ReplaceRow,
    Unit,
    parse_unit,
    sensitivity,
    size_is_public,
)
from margrave.errors import InputError
from margrave.marginal import LinearMap
from margrave.types import IntArray

CELLS = 3


def counts_of_at_most(k: int) -> list[IntArray]:
    """Every way to put up to k rows in the cells."""
    return [np.array(c) for c in product(range(k + 1), repeat=CELLS) if sum(c) <= k]


def moves(unit: Unit) -> list[IntArray]:
    """Every change of the counts between neighbors: what one row or one person brings, less what they take away."""
    match unit:
        case AddRemoveRow():
            return [c for c in counts_of_at_most(1) if c.sum() == 1]
        case ReplaceRow():
            ones = [c for c in counts_of_at_most(1) if c.sum() == 1]
            return [new - old for new in ones for old in ones]
        case AddRemovePerson(max_rows=k):
            return counts_of_at_most(k)
        case ReplacePerson(max_rows=k):
            return [new - old for new in counts_of_at_most(k) for old in counts_of_at_most(k)]


ALL_UNITS: list[Unit] = [
    AddRemoveRow(),
    ReplaceRow(),
    *(AddRemovePerson(k) for k in (1, 2, 4)),
    *(ReplacePerson(k) for k in (1, 2, 4)),
]


@pytest.mark.parametrize("unit", ALL_UNITS, ids=str)
def test_sensitivity_is_the_worst_neighbor_exactly(unit: Unit) -> None:
    assert sensitivity(unit).l1 == max(int(np.abs(m).sum()) for m in moves(unit))
    assert sensitivity(unit).l2_squared == max(int((m**2).sum()) for m in moves(unit))


@pytest.mark.parametrize("unit", ALL_UNITS, ids=str)
def test_groups_of_codes_move_no_further(unit: Unit) -> None:
    query = LinearMap({"a": np.array([0, 1, 1])})
    answers = [query.apply(("a",), m) for m in moves(unit)]
    assert sensitivity(unit, query).l1 >= max(int(np.abs(m).sum()) for m in answers)
    assert sensitivity(unit, query).l2_squared >= max(int((m**2).sum()) for m in answers)


def test_only_replacing_a_row_makes_the_size_public() -> None:
    assert [
        size_is_public(u)
        for u in (AddRemoveRow(), ReplaceRow(), AddRemovePerson(2), ReplacePerson(2))
    ] == [
        False,
        True,
        False,
        False,
    ]


def test_something_else_is_no_unit() -> None:
    with pytest.raises(InputError, match="unit of privacy"):
        sensitivity("add-remove-row")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("add-remove-row", AddRemoveRow()),
        (" Replace-Row ", ReplaceRow()),
        ("add-remove-person:5", AddRemovePerson(5)),
        ("replace-person:1", ReplacePerson(1)),
    ],
)
def test_parse_unit(text: str, unit: Unit) -> None:
    assert parse_unit(text) == unit


@pytest.mark.parametrize(
    "text",
    ["", "row", "add-remove-row:2", "replace-person", "replace-person:0", "replace-person:-1", "add-remove-person:²",
     "replace-person:2.5", "add-remove-person:99999999999"],
)  # fmt: skip
def test_parse_unit_refuses(text: str) -> None:
    with pytest.raises(InputError):
        parse_unit(text)


@pytest.mark.parametrize("rows", [0, -1, True, 2.0, None])
def test_max_rows_is_a_positive_whole_number(rows: object) -> None:
    with pytest.raises(InputError, match=r"K in add-remove-person:K .*\(in Python max_rows\) is"):
        AddRemovePerson(rows)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_rows"):
        ReplacePerson(rows)  # type: ignore[arg-type]


def test_words() -> None:
    assert str(AddRemovePerson(1)) == "add or remove one person of at most 1 row"
    assert str(ReplacePerson(7)) == "replace one person of at most 7 rows"
