"""The tree of a formula: frozen nodes, their text, and the columns that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from margrave.formula.functions import MODULES

Option = float | bool | str | tuple[float, ...]
#: Columns that are a function of another, by function and column.
Functions = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Number:
    """A finite number."""

    value: float


@dataclass(frozen=True)
class Text:
    """A text in quotes, which a comparison compares a column with."""

    value: str


@dataclass(frozen=True)
class ColumnName:
    """A column of the table, by its name."""

    name: str


@dataclass(frozen=True)
class Missing:
    """A test for missing values, ``x.isna()``, or for present ones, ``x.notna()``."""

    column: ColumnName
    present: bool = False


@dataclass(frozen=True)
class Chain:
    """Operators of one precedence: ``+ -``, ``* /`` or, between factors, ``:``."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Power:
    """A power with a small exponent."""

    base: Node
    exponent: float


@dataclass(frozen=True)
class Negative:
    """An expression with a minus sign."""

    operand: Node


@dataclass(frozen=True)
class Compare:
    """A comparison, or several in a row: ``18 <= age < 65``."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Logic:
    """Truths joined by ``&`` or by ``|``."""

    sign: str
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Not:
    """The opposite of a truth."""

    operand: Node


@dataclass(frozen=True)
class Call:
    """A function of the grammar with its arguments and options."""

    function: str
    arguments: tuple[Node, ...]
    options: tuple[tuple[str, Option], ...] = ()


@dataclass(frozen=True)
class Coding:
    """A coding of categories: ``Treatment``, ``Sum``, ``Poly``, ``Helmert`` or ``Diff``, with its option."""

    name: str
    option: str | float | tuple[float, ...] | None = None


@dataclass(frozen=True)
class Category:
    """Values taken as categories: ``C(x)``, ``C(x, Treatment('b'))``."""

    operand: Node
    coding: Coding | None = None


@dataclass(frozen=True)
class Formula:
    """A formula: an outcome and, as an expression that ``expand`` reads, its terms."""

    left: Node
    right: Node

    def __str__(self) -> str:
        return f"{written(self.left)} ~ {written(self.right)}"


Node = (
    Number
    | Text
    | ColumnName
    | Missing
    | Chain
    | Power
    | Negative
    | Compare
    | Logic
    | Not
    | Call
    | Category
)


_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _CROSS, _NEGATIVE, _POWER, _ATOM = range(10)


def written(node: Node) -> str:
    """Return a node's text in the one spelling that margrave prints.

    >>> from margrave.formula.parser import parse_factor
    >>> written(parse_factor('C( sex,Treatment(reference = "m") )')), written(parse_factor("`zip code`"))
    ("C(sex, Treatment('m'))", "Q('zip code')")
    """
    # Names of columns that stand in Q(...) alone.
    words = frozenset({"and", "or", "not", "True", "False", *MODULES})
    plain = re.compile(r"[^\W\d]\w*")
    # Functions of which an option is written without its name.
    by_place = {"pd.cut": "bins"}
    match node:
        case Number(value):
            return number(value)
        case Text(value):
            return quoted(value)
        case ColumnName(name):
            return name if plain.fullmatch(name) and name not in words else f"Q({quoted(name)})"
        case Missing(column, present):
            return f"{written(column)}.{'notna' if present else 'isna'}()"
        case Chain(first, rest) | Compare(first, rest):
            level = _level(node)
            gap = "" if level == _CROSS else " "
            return _inside(first, level) + "".join(
                f"{gap}{sign}{gap}{_inside(n, level)}" for sign, n in rest
            )
        case Power(base, exponent):
            return f"{_inside(base, _POWER)} ** {number(exponent)}"
        case Negative(operand):
            return f"-{_inside(operand, _CROSS)}"
        case Logic(sign, parts):
            return f" {sign} ".join(_inside(part, _level(node)) for part in parts)
        case Not(operand):
            return f"~{_inside(operand, _POWER)}"
        case Category(operand, coding):
            return f"C({written(operand)}{'' if coding is None else ', ' + _coding(coding)})"
        case Call(function, arguments, options):
            named = [o if n == by_place.get(function) else f"{n}={o}" for n, o in _texts(options)]
            return f"{function}({', '.join([*map(written, arguments), *named])})"


def number(value: float) -> str:
    """Return a number's text, a whole one without a fraction."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def quoted(text: str) -> str:
    """Return a text in single quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _texts(options: tuple[tuple[str, Option], ...]) -> list[tuple[str, str]]:
    return [(name, _option(option)) for name, option in options]


def _option(option: Option) -> str:
    if isinstance(option, bool):
        return str(option)
    if isinstance(option, tuple):
        return f"[{', '.join(map(number, option))}]"
    return quoted(option) if isinstance(option, str) else number(option)


def _coding(coding: Coding) -> str:
    return coding.name if coding.option is None else f"{coding.name}({_option(coding.option)})"


def _inside(node: Node, level: int) -> str:
    """Return the text of a node within one of that precedence, in parentheses if it needs them."""
    text = written(node)
    return text if _level(node) > level else f"({text})"


def _level(node: Node) -> int:
    signs = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, ":": _CROSS}
    match node:
        case Logic(sign, _):
            return _OR if sign == "|" else _AND
        case Not():
            return _NOT
        case Compare():
            return _COMPARE
        case Chain(_, rest):
            return signs[rest[0][0]]
        case Negative():
            return _NEGATIVE
        case Number(value):
            return _NEGATIVE if value < 0 or str(value) == "-0.0" else _ATOM
        case Power():
            return _POWER
        case _:
            return _ATOM


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly inside a node."""
    match node:
        case Missing(column, _):
            return (column,)
        case Chain(first, rest) | Compare(first, rest):
            return (first, *(n for _, n in rest))
        case Power(operand, _) | Negative(operand) | Not(operand) | Category(operand, _):
            return (operand,)
        case Logic(_, parts) | Call(_, parts):
            return parts
        case _:
            return ()


def columns_in(
    node: Node, *, coded: bool = True, functions: Functions = MappingProxyType({})
) -> tuple[str, ...]:
    """Return the columns that a node names, each once.

    Args:
        node: The node.
        coded: False without those that are categories as they are, ``C(x)``. Within ``C(x > 3)`` numbers count.
        functions: Columns that are a function of another: the function's call names the column.

    >>> call = Call("hour", (ColumnName("pickup"),))
    >>> columns_in(call), columns_in(call, functions={("hour", "pickup"): "pickup.hour"})
    (('pickup',), ('pickup.hour',))
    """
    return tuple(dict.fromkeys(_columns(node, functions, coded=coded)))


def needed_in(node: Node) -> tuple[str, ...]:
    """Return the columns whose missing values leave a record out: all that are not only tested for missing values."""
    return tuple(dict.fromkeys(_columns(node, {}, tested=False)))


def is_column(node: Node, functions: Functions) -> bool:
    """Return whether a node is a column, or a function of one that is a column too."""
    match node:
        case Call(function, (ColumnName(column),)):
            return (function, column) in functions
        case _:
            return isinstance(node, ColumnName)


def _columns(
    node: Node, functions: Functions, *, coded: bool = True, tested: bool = True
) -> Iterator[str]:
    match node:
        case ColumnName(name):
            yield name
        case Call(function, (ColumnName(column),)) if (function, column) in functions:
            yield functions[function, column]
        case Category(operand, _) if not coded and is_column(operand, functions):
            return
        case Missing() if not tested:
            return
        case _:
            for child in children(node):
                yield from _columns(child, functions, coded=coded, tested=tested)


def gives_truth(node: Node) -> bool:
    """Return whether an expression is true or false by its form."""
    return isinstance(node, Compare | Logic | Not | Missing)
