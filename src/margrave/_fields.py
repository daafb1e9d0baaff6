"""Kinds of the parameters of mechanisms and fits, checked when one is made: a wrong one must not cost a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cache
from numbers import Integral, Rational, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from margrave.errors import InputError

#: Result for a value of the wrong kind.
INVALID = object()


def check_fields(parameters: Any) -> None:
    """Raise ``InputError`` unless every field of a frozen dataclass has the type of its annotation.

    Numbers of other libraries become Python's own; a whole float becomes an int where an int is
    expected. Field metadata may set limits (``check_range``). Fractions get a
    denominator of at most a million.
    """
    kind: Any = type(parameters)
    hints = _hints(kind)
    for field in fields(parameters):
        value, expected = getattr(parameters, field.name), hints[field.name]
        settled = _as(expected, value)
        if settled is INVALID:
            raise InputError(
                f"{kind.__name__}: {field.name} is {shown_value(value)}.",
                remedy=f"Give {_words(expected)}.",
            )
        if settled is not None:
            shown = repr(value) if isinstance(value, str) else value
            check_range(f"{kind.__name__}: {field.name} is {shown}.", settled, field.metadata)
        if settled is not value:
            object.__setattr__(parameters, field.name, settled)


def check_range(what: str, value: Any, metadata: Mapping[str, Any]) -> None:
    """Raise ``InputError(what)`` if a value is outside the limits in its field's metadata.

    Args:
        what: The message.
        value: The value.
        metadata: ``above`` and ``below`` (exclusive), ``least`` (inclusive), ``choices``.
    """
    above, least, below = (metadata.get(key) for key in ("above", "least", "below"))
    if above is not None and not value > above:
        raise InputError(what, remedy=f"Give a number above {above:g}.")
    if least is not None and not value >= least:
        raise InputError(what, remedy=f"Give at least {least:g}.")
    if below is not None and not value < below:
        raise InputError(what, remedy=f"Give a number below {below:g}.")
    choices = metadata.get("choices")
    if choices and value not in choices:
        named = " or ".join(f'"{choice}"' for choice in choices)
        raise InputError(what, remedy=f"Give {named}.")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _as(kind: Any, value: Any) -> Any:
    if get_origin(kind) in (UnionType, Union):
        found = (_as(k, value) for k in get_args(kind))
        return next((f for f in found if f is not INVALID), INVALID)
    if get_origin(kind) is Literal:
        return value if isinstance(value, str) and value in get_args(kind) else INVALID
    if get_origin(kind) is tuple:
        each = get_args(kind)[0]
        parts = [_as(each, v) for v in value] if isinstance(value, tuple | list) else [INVALID]
        return INVALID if any(p is INVALID for p in parts) else tuple(parts)
    return _as_one(kind, value)


def _as_one(kind: Any, value: Any) -> Any:
    if isinstance(value, bool) or kind is bool:
        return value if isinstance(value, bool) and kind is bool else INVALID
    if kind is int:
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        return int(value) if whole else INVALID
    if kind is float:
        return float(value) if isinstance(value, Real) and not math.isnan(value) else INVALID
    if kind is Fraction:
        exact = isinstance(value, Rational) or (isinstance(value, Real) and math.isfinite(value))
        return Fraction(value).limit_denominator(10**6) if exact else INVALID
    if getattr(
        kind, "_is_protocol", False
    ):  # a protocol without isinstance: only a call can be checked
        other = isinstance(value, str | bytes | Real | complex | type | NoneType)
        return INVALID if other or ("__call__" in vars(kind) and not callable(value)) else value
    return value if isinstance(value, kind) else INVALID


def shown_value(value: Any) -> str:
    """Return a text or a number as it is written, and the type of anything else."""
    if isinstance(value, type):
        return "a type"
    return repr(value) if isinstance(value, str | Real | NoneType) else f"a {type(value).__name__}"


def _words(kind: Any) -> str:
    names = {
        int: "a whole number",
        float: "a number",
        Fraction: "a number",
        str: "text",
        bool: "True or False",
    }
    if get_origin(kind) in (UnionType, Union):
        return " or ".join(_words(k) for k in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(repr(a) for a in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a tuple, each {_words(get_args(kind)[0])}"
    if kind is NoneType:
        return "None"
    fit = kind.__name__ == "Fit"
    return names.get(
        kind, "a fit, such as margrave.models.GraphicalFit()" if fit else f"a {kind.__name__}"
    )


def is_number(value: object) -> bool:
    """Return True if a value is a number of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object, least: int) -> bool:
    """Return True if a value is a whole number, ``least`` or more, and not a truth value."""
    return is_number(value) and isinstance(value, Integral) and int(value) >= least


def check_level(level: float) -> None:
    """Raise ``InputError`` unless a level is a number strictly between 1e-15 and 1."""
    least = 1e-15  # below it (1 + level) / 2 is rounded to 1/2, and intervals have no width
    if not is_number(level) or not least < level < 1.0:
        raise InputError(
            f"The level {level!r} is not a probability.", remedy="Give one such as 0.95."
        )
