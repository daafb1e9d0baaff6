"""Terms of a formula's right side: the algebra of ``+ - * / : **``."""

from __future__ import annotations

from dataclasses import dataclass

from margrave._card import listed
from margrave.errors import InputError
from margrave.formula.functions import PARTS
from margrave.formula.nodes import (
    Category,
    Chain,
    ColumnName,
    Formula,
    Node,
    Number,
    Power,
    columns_in,
    written,
)

#: Terms of a formula, the intercept not among them.
MAX_TERMS = 200

#: Factors that interact, by their texts.
Term = dict[str, Node]

_Key = frozenset[str]


@dataclass(frozen=True)
class _Terms:
    """Terms by their factors, and whether the intercept was named (True), removed (False) or neither (None)."""

    found: dict[_Key, Term]
    intercept: bool | None = None


def expand(right: Node) -> tuple[bool, list[Term]]:
    """Return whether there is an intercept, and the terms in their order.

    Raises:
        InputError: There are too many terms, or an intercept interacts.

    >>> from margrave.formula.parser import parse
    >>> has, terms = expand(parse("y ~ (a + b) ** 2 - b").right)
    >>> has, [":".join(term) for term in terms]
    (True, ['a', 'a:b'])
    """
    terms = _Expansion().of(right)
    return terms.intercept is not False, list(terms.found.values())


def has_columns_alone(formula: Formula) -> bool:
    """Return whether the outcome and each term is a column or ``C(column)``, without interactions and functions.

    Sums and counts of pairs of columns are all that such a regression rests on.

    >>> from margrave.formula.parser import parse
    >>> [has_columns_alone(parse(text)) for text in ("y ~ a + C(b)", "y ~ a * b", "y ~ I(a ** 2)")]
    [True, False, False]
    """
    terms = expand(formula.right)[1]
    nodes = (node for term in terms for node in term.values())
    plain = (node.operand if isinstance(node, Category) else node for node in nodes)
    columns = (isinstance(node, ColumnName) for node in (formula.left, *plain))
    return all(len(term) == 1 for term in terms) and all(columns)


class _Expansion:
    def __init__(self) -> None:
        self._products = 0

    def of(self, node: Node) -> _Terms:
        """Return the terms of an expression."""
        if isinstance(node, Number):
            return _Terms({}, node.value == 1.0)
        if isinstance(node, Power):
            base = self.of(node.base)
            found = base
            for _ in range(int(node.exponent) - 1):
                found = _Terms(self._union(found.found, self._crossed(found, base)))
            return found if node.exponent > 1 else base
        if isinstance(node, Chain):
            found = self.of(node.first)
            for sign, part in node.rest:
                found = self._joined(sign, found, self.of(part))
            return found
        text = written(node)
        return _Terms({frozenset({text}): {text: node}})

    def _joined(self, sign: str, left: _Terms, right: _Terms) -> _Terms:
        if sign == "+":
            intercept = left.intercept if right.intercept is None else right.intercept
            return _Terms(self._union(left.found, right.found), intercept)
        if sign == "-":
            kept = {key: term for key, term in left.found.items() if key not in right.found}
            return _Terms(kept, left.intercept if right.intercept is None else not right.intercept)
        if sign == "/":
            whole: Term = {}
            for term in left.found.values():
                whole |= term
            inside = self._crossed(_Terms({frozenset(whole): whole}, left.intercept), right)
            return _Terms(self._union(left.found, inside))
        crossed = self._crossed(left, right)
        return _Terms(
            crossed if sign == ":" else self._union(self._union(left.found, right.found), crossed)
        )

    def _crossed(self, left: _Terms, right: _Terms) -> dict[_Key, Term]:
        # Pairs of terms that are multiplied while a formula is expanded.
        max_products = 20_000
        if left.intercept is not None or right.intercept is not None:
            raise InputError(
                "An intercept, 0 or 1, interacts with nothing in a formula.", remedy="Add it by +."
            )
        self._products += len(left.found) * len(right.found)
        if self._products > max_products:
            raise _too_many()
        found: dict[_Key, Term] = {}
        for a in left.found.values():
            for b in right.found.values():
                found.setdefault(frozenset((*a, *b)), {**a, **b})
        return self._union({}, found)

    def _union(self, left: dict[_Key, Term], right: dict[_Key, Term]) -> dict[_Key, Term]:
        found = {**left, **{key: term for key, term in right.items() if key not in left}}
        if len(found) > MAX_TERMS:
            raise _too_many()
        return found


def _too_many() -> InputError:
    return InputError(
        f"The formula has more than {MAX_TERMS} terms when its products and powers are written out.",
        remedy="Name fewer of them.",
    )


def check_outcome(tree: Formula) -> None:
    """Raise `InputError` if the right side has all columns of the outcome; parts of times are columns of their own."""
    columns = {*columns_in(tree.left), *columns_in(tree.right)}
    parts = {(part, c): f"{part}({c})" for part in PARTS for c in columns}
    factors = [node for term in expand(tree.right)[1] for node in term.values()]
    right = {c for node in factors for c in columns_in(node, functions=parts)}
    outcome = columns_in(tree.left, functions=parts)
    if outcome and right.issuperset(outcome):
        verbs, them = (("is", "stands"), "it") if len(outcome) == 1 else (("are", "stand"), "them")
        raise InputError(
            f"{listed(outcome)} {verbs[0]} the outcome and {verbs[1]} on the right side too.",
            remedy=f"Leave {them} out there.",
        )
