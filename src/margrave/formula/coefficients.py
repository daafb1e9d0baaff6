"""Names of coefficients: the factors of their term, each with the level of its category."""

from __future__ import annotations

import re
from collections.abc import Iterator

from margrave.errors import InputError
from margrave.formula.nodes import Node, written
from margrave.formula.parser import parse_factor

#: Suffix of a category in orthogonal polynomials.
_DEGREE = re.compile(r"(?:\.(?:Linear|Quadratic|Cubic)|\^[0-9]+)$")


def factors_of(coefficient: str) -> list[tuple[Node, str | None]]:
    """Return the factors of a coefficient's term, each with the level that it is of; None for no category.

    Raises:
        InputError: A factor cannot be read, since a level has brackets or quotes of its own.

    >>> [(type(node).__name__, level) for node, level in factors_of("C(a, Treatment('x:y'))[T.it's]:c")]
    [('Category', "T.it's"), ('ColumnName', None)]
    """
    return [(parse_factor(_DEGREE.sub("", text)), level) for text, level in split(coefficient)]


def split(coefficient: str) -> Iterator[tuple[str, str | None]]:
    """Yield the texts of the factors and of their levels."""
    quotes = {"'": "'", '"': '"', "`": "`"}
    start, depth, inside, bracket, escaped = 0, 0, "", -1, False
    for i, sign in enumerate(coefficient):
        if inside:  # a quoted text, or a level
            inside = "" if sign == inside and not escaped else inside
            escaped = sign == "\\" and not escaped and inside in ("'", '"')
        elif sign in quotes:
            inside = quotes[sign]
        elif sign == "[" and not depth:
            inside, bracket = "]", i if bracket < 0 else bracket
        elif sign in "()":
            depth += 1 if sign == "(" else -1
            if depth < 0:
                raise InputError(f"{coefficient!r} is not the name of a coefficient.")
        elif sign == ":" and not depth:
            yield _parts(coefficient, start, bracket, i)
            start, bracket = i + 1, -1
    yield _parts(coefficient, start, bracket, len(coefficient))


def _parts(coefficient: str, start: int, bracket: int, end: int) -> tuple[str, str | None]:
    if bracket < 0:
        return coefficient[start:end].strip(), None
    return coefficient[start:bracket].strip(), coefficient[bracket + 1 : end].removesuffix("]")


def spelled(coefficient: str) -> str:
    """Return a coefficient's name in margrave's spelling; as it is if it cannot be read.

    >>> spelled('x:C(z,Treatment(reference="c"))[T.b]'), spelled("mean(x)")
    ("x:C(z, Treatment('c'))[T.b]", 'mean(x)')
    """
    try:
        return ":".join(_spelled(text, level) for text, level in split(coefficient))
    except InputError:
        return coefficient


def _spelled(text: str, level: str | None) -> str:
    degree = _DEGREE.search(text)
    factor = written(parse_factor(_DEGREE.sub("", text)))
    return f"{factor}{degree[0] if degree else ''}{'' if level is None else f'[{level}]'}"
