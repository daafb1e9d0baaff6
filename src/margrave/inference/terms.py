"""What a coefficient's name says of its term: the columns that it joins, and the levels of categories it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass

from margrave.errors import InputError
from margrave.inference.formulas import columns_of, names_in
from margrave.typing import Clique

LEVEL = re.compile(r"\[([^\]]*)\]")
CODING = re.compile(r"\b(?:Sum|Poly|Helmert|Diff)\b")
"""Codings of categories in which a coefficient is about every level."""
ENDS = {"'": "'", '"': '"', "`": "`", "[": "]"}
REFERENCE = re.compile(r"""\bTreatment\(\s*(?:reference\s*=\s*)?(['"]?)(.*?)\1\s*\)""")


def joined_by(formula: str, coefficient: str) -> Clique:
    """The columns whose relation all at once a coefficient is about: the outcome's, and those of its term.

    >>> joined_by("y ~ x * C(z)", "x:C(z)[T.b]"), joined_by("y ~ x * C(z)", "Intercept")
    (('y', 'x', 'z'), ('y',))
    """
    left = names_in(formula.partition("~")[0], formula)
    if coefficient == "Intercept":
        return tuple(dict.fromkeys(left))
    try:
        inside = names_in(LEVEL.sub("", coefficient), formula)
    except InputError:  # a level's name with brackets or quotes of its own
        return columns_of(formula)
    return tuple(dict.fromkeys([*left, *inside]))


@dataclass(frozen=True)
class Levels:
    """What a coefficient compares of a column of categories: its ``own`` level with the ``reference``.

    ``reference`` is "" for the column's first level, and None where there is none; ``every``: all levels count.
    """

    own: str = ""
    reference: str | None = None
    every: bool = False


def levels_in(formula: str, coefficient: str) -> dict[str, Levels]:
    """What a coefficient compares of the columns of its term that are categories there.

    >>> levels_in("y ~ x * C(z, Treatment('c'))", "x:C(z, Treatment('c'))[T.b]")
    {'z': Levels(own='b', reference='c', every=False)}
    """
    found: dict[str, Levels] = {}
    for factor, level in _factors(coefficient):
        try:
            columns = names_in(factor, formula)
        except InputError:  # a level's name with brackets or quotes of its own
            return dict.fromkeys(columns_of(formula), Levels(every=True))
        if level is not None and factor.startswith(("C(", "Q(", *columns)):  # and not bs(x)[0]
            found |= dict.fromkeys(columns, _compared(factor, level))
    return found


def _compared(factor: str, level: str) -> Levels:
    if CODING.search(factor):
        return Levels(every=True)
    if not level.startswith("T."):
        return Levels(level)
    named = REFERENCE.search(factor)
    return Levels(level.removeprefix("T."), named.group(2) if named else "")


def _factors(coefficient: str) -> list[tuple[str, str | None]]:
    """The factors of a term, each with the level that it is at; None of what is no category.

    >>> _factors("C(a, Treatment('x:y'))[T.it's]:c")
    [("C(a, Treatment('x:y'))", "T.it's"), ('c', None)]
    """
    parts, depth, start, inside = [], 0, 0, ""
    for i, sign in enumerate(coefficient):
        if inside:  # a quoted text, or a level
            inside = "" if sign == inside else inside
        elif sign in ENDS:
            inside = ENDS[sign]
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == ":" and not depth:
            parts.append(coefficient[start:i])
            start = i + 1
    return [_split(part) for part in (*parts, coefficient[start:])]


def _split(factor: str) -> tuple[str, str | None]:
    name, bracket, level = factor.partition("[") if factor.endswith("]") else (factor, "", "")
    return (name, level[:-1]) if bracket else (name.strip(), None)
