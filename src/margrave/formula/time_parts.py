"""Texts such as ``hour(pickup)``: a function of formulas, of a column of dates or times."""

from __future__ import annotations

from margrave.errors import InputError
from margrave.formula.functions import PARTS
from margrave.formula.nodes import Call, ColumnName
from margrave.formula.parser import parse_factor


def time_part(text: str) -> tuple[str, str] | None:
    """Return the function and the column of a part of dates or times; None for any other text.

    >>> time_part("hour(pickup)"), time_part("weekday(Q('seen at'))"), time_part("fare")
    (('hour', 'pickup'), ('weekday', 'seen at'), None)
    """
    try:
        node = parse_factor(text)
    except InputError:
        return None
    match node:
        case Call(function, (ColumnName(column),)) if function in PARTS:
            return function, column
    return None
