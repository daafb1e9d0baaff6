"""The columns and levels that each coefficient of a regression is about, read off its formula."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from margrave.errors import InputError
from margrave.formula import (
    Category,
    ColumnName,
    Compare,
    Formula,
    Functions,
    Node,
    Number,
    Text,
    columns_in,
    factors_of,
    is_column,
    needed_in,
    written,
)
from margrave.formula.nodes import children
from margrave.inference.fitted import EstimateTerm
from margrave.types import Clique

Levels = dict[str, tuple[str, ...] | None]


@lru_cache(maxsize=256)
def terms_of(
    tree: Formula, names: tuple[str, ...], where: Clique = (),
    functions: tuple[tuple[tuple[str, str], str], ...] = (), fixed: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> dict[str, EstimateTerm]:  # fmt: skip
    """Return the columns and levels that each coefficient of a formula is about.

    Calls of ``functions``, given by function and column, are about the columns that these name. ``fixed`` has the
    references of numbers, by factor.

    The intercept is the estimate at the reference of every category, and depends on every slope.

    Example:
        >>> from margrave.formula import parse
        >>> terms_of(parse("y ~ x * C(z)"), ("Intercept", "x:C(z)[T.b]"))["x:C(z)[T.b]"]
        EstimateTerm(columns=('y', 'x', 'z'), joins=('y', 'x', 'z'), pivots=('x', 'z'), levels={'z': ('b', '')})
    """
    known, own = dict(functions), {text: levels[0] for text, levels in fixed}
    outcome, of_outcome = columns_in(tree.left, functions=known), _equated(tree.left, known)
    every = (*outcome, *columns_in(tree.right, functions=known))
    terms, references = dict[str, EstimateTerm](), dict[str, tuple[str, ...]]()
    for name in names:
        inside, levels = _factors(tree, name, known, own)
        levels = of_outcome | levels
        joins, pivots = dict.fromkeys([*outcome, *inside, *where]), {*inside, *where}
        terms[name] = EstimateTerm(
            tuple(joins), tuple(joins), tuple(p for p in joins if p in pivots), levels
        )
        for column, compared in levels.items():
            if compared is not None and compared[1:]:
                references[column] = (*references.get(column, ()), compared[1])
    if "Intercept" in terms:
        columns = tuple(dict.fromkeys([*every, *where]))
        unique = of_outcome | {c: tuple(dict.fromkeys(v)) for c, v in references.items()}
        joins = dict.fromkeys([*outcome, *where])
        terms["Intercept"] = EstimateTerm(columns, tuple(joins), columns, unique)
    return terms


def _factors(
    tree: Formula, name: str, functions: Functions, fixed: Mapping[str, str]
) -> tuple[Clique, Levels]:
    """Return the columns of a coefficient's term, and the levels that it compares of categories.

    A level of an expression, such as ``C(age > 40)``, is not a value of a column. The coefficient's name stands for it.
    """
    if name == "Intercept":
        return (), {}
    try:
        factors = factors_of(name)
    except InputError:  # a level with brackets or quotes of its own
        left, right = (columns_in(s, functions=functions) for s in (tree.left, tree.right))
        return right, dict.fromkeys([*left, *right])
    levels: Levels = {}
    for node, level in factors:
        coding = node.coding if isinstance(node, Category) else None
        if coding is not None or (level is not None and isinstance(node, Category | ColumnName)):
            known = fixed.get(written(node), "")
            reference = known if coding is None or coding.option is None else str(coding.option)
            compared = _compared(coding, level or "", reference)
            if compared and isinstance(node, Category) and not is_column(node.operand, functions):
                compared = (name,) * len(compared)
            levels |= dict.fromkeys(columns_in(node, functions=functions), compared)
        levels |= _equated(node, functions)
    inside = (c for node, _ in factors for c in columns_in(node, functions=functions))
    return tuple(dict.fromkeys(inside)), levels


def _equated(node: Node, functions: Functions) -> Levels:
    """Return, by column, the values with which an expression compares it by == or !=."""
    found: dict[str, tuple[str, ...]] = {}
    if isinstance(node, Compare):
        sides = (node.first, *(side for _, side in node.rest))
        for left, (sign, _), right in zip(sides, node.rest, sides[1:], strict=False):
            for column, value in ((left, right), (right, left)):
                if sign in ("==", "!=") and is_column(column, functions):
                    (name,) = columns_in(column, functions=functions)
                    if isinstance(value, Text | Number):
                        text = value.value if isinstance(value, Text) else written(value)
                        found[name] = (*found.get(name, ()), text)
    for child in children(node):
        for name, values in _equated(child, functions).items():
            found[name] = (*found.get(name, ()), *(values or ()))
    return dict(found)


def needed_by(tree: Formula, functions: Functions) -> Clique:
    """Return the columns whose missing values leave a record out: all that are not only tested for missing values.

    >>> from margrave.formula import parse
    >>> needed_by(parse("y ~ a + b.isna()"), {})
    ('y', 'a')
    """
    needed = {*needed_in(tree.left), *needed_in(tree.right)}
    origins = {part: column for (_, column), part in functions.items()}
    named = chain(*(columns_in(side, functions=functions) for side in (tree.left, tree.right)))
    return tuple(dict.fromkeys(c for c in named if origins.get(c, c) in needed))


def _compared(coding: Any, level: str, reference: str) -> tuple[str, ...] | None:
    # Codings of categories in which a coefficient compares every level.
    all_levels = ("Sum", "Poly", "Helmert", "Diff")
    if coding is not None and coding.name in all_levels:
        return None
    return (level[2:], reference) if level.startswith("T.") else (level,)
