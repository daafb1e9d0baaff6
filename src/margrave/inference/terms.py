"""Coefficients of a formula: the columns that their terms join, and the levels of categories that they compare."""

from __future__ import annotations

from dataclasses import dataclass

from margrave.errors import InputError
from margrave.formula import Category, Column, Node, columns_in, factors_of, parse
from margrave.inference.formulas import columns_of, inside
from margrave.typing import Clique

#: Codings of categories in which a coefficient is about every level.
OF_EVERY_LEVEL = ("Sum", "Poly", "Helmert", "Diff")


def joined_by(formula: str, coefficient: str) -> Clique:
    """Return the columns whose relation all at once a coefficient is about: the outcome's, and those of its term.

    >>> joined_by("y ~ x * C(z)", "x:C(z)[T.b]"), joined_by("y ~ x * C(z)", "Intercept")
    (('y', 'x', 'z'), ('y',))
    """
    left = columns_in(parse(formula).left)
    return left if coefficient == "Intercept" else tuple(dict.fromkeys([*left, *inside(formula, coefficient)]))


@dataclass(frozen=True)
class Levels:
    """What a coefficient compares of a column of categories: its ``own`` level with the ``reference``.

    ``reference`` is "" for the column's first level, and None where there is none; ``every``: all levels count.
    """

    own: str = ""
    reference: str | None = None
    every: bool = False


def levels_in(formula: str, coefficient: str) -> dict[str, Levels]:
    """Return what a coefficient compares of the columns of its term that are categories there.

    >>> levels_in("y ~ x * C(z, Treatment('c'))", "x:C(z, Treatment('c'))[T.b]")
    {'z': Levels(own='b', reference='c', every=False)}
    """
    try:
        factors = factors_of(coefficient)
    except InputError:  # a level's name with brackets or quotes of its own
        return dict.fromkeys(columns_of(formula), Levels(every=True))
    found: dict[str, Levels] = {}
    for factor, level in factors:
        coded = isinstance(factor, Category) and factor.coding is not None
        if coded or (level is not None and isinstance(factor, Category | Column)):  # and not bs(x)[0]
            found |= dict.fromkeys(columns_in(factor), _compared(factor, level or ""))
    return found


def _compared(factor: Node, level: str) -> Levels:
    coding = factor.coding if isinstance(factor, Category) else None
    if coding is not None and coding.name in OF_EVERY_LEVEL:
        return Levels(every=True)
    if not level.startswith("T."):
        return Levels(level)
    return Levels(level.removeprefix("T."), "" if coding is None or coding.option is None else str(coding.option))
