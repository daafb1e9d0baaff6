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

WRONG = object()
"""What a value of the wrong kind is settled as."""


def check_parameters(made: Any) -> None:
    """Every field of a frozen dataclass is what its annotation says, or an ``InputError`` names it.

    Numbers of other libraries become Python's own, whole floats where whole numbers are asked for too. A field with
    ``above`` in its metadata must be above that, one with ``least`` at least that.
    """
    kind: Any = type(made)
    hints = _hints(kind)
    for field in fields(made):
        value, wanted = getattr(made, field.name), hints[field.name]
        settled = _as(wanted, value)
        if settled is WRONG:
            raise InputError(
                f"{kind.__name__}: {field.name} is {_shown(value)}.", remedy=f"Give {_words(wanted)}."
            )
        if settled is not None:
            check_range(f"{kind.__name__}: {field.name} is {value}.", settled, field.metadata)
        if settled is not value:
            object.__setattr__(made, field.name, settled)


def check_range(told: str, value: Any, metadata: Mapping[str, Any]) -> None:
    """Raise ``InputError``, with what is ``told``, for a value below what the metadata of its field says."""
    above, least = metadata.get("above"), metadata.get("least")
    if above is not None and not value > above:
        raise InputError(told, remedy=f"It is above {above:g}.")
    if least is not None and not value >= least:
        raise InputError(told, remedy=f"It is at least {least:g}.")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _as(kind: Any, value: Any) -> Any:
    """The value as one of this kind, or ``WRONG``."""
    if get_origin(kind) in (UnionType, Union):
        found = (_as(k, value) for k in get_args(kind))
        return next((f for f in found if f is not WRONG), WRONG)
    if get_origin(kind) is Literal:
        return value if isinstance(value, str) and value in get_args(kind) else WRONG
    if get_origin(kind) is tuple:
        each = get_args(kind)[0]
        parts = [_as(each, v) for v in value] if isinstance(value, tuple | list) else [WRONG]
        return WRONG if any(p is WRONG for p in parts) else tuple(parts)
    return _as_one(kind, value)


def _as_one(kind: Any, value: Any) -> Any:
    if isinstance(value, bool) or kind is bool:
        return value if isinstance(value, bool) and kind is bool else WRONG
    if kind is int:
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        return int(value) if whole else WRONG
    if kind is float:
        return float(value) if isinstance(value, Real) and not math.isnan(value) else WRONG
    if kind is Fraction:
        return value if isinstance(value, Rational) or (isinstance(value, Real) and math.isfinite(value)) else WRONG
    if getattr(kind, "_is_protocol", False):  # anything with its methods: of those only a call can be seen from here
        other = isinstance(value, str | bytes | Real | complex | type | NoneType)
        return WRONG if other or ("__call__" in vars(kind) and not callable(value)) else value
    return value if isinstance(value, kind) else WRONG


def _shown(value: Any) -> str:
    """A value in an error: its type where its text may be long."""
    return repr(value) if isinstance(value, str | Real | NoneType) else f"a {type(value).__name__}"


NAMES = {int: "a whole number", float: "a number", Fraction: "a number", str: "text", bool: "True or False"}


def _words(kind: Any) -> str:
    """What a kind is called in an error."""
    if get_origin(kind) in (UnionType, Union):
        return " or ".join(_words(k) for k in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(repr(a) for a in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a tuple, each {_words(get_args(kind)[0])}"
    if kind is NoneType:
        return "None"
    fit = kind.__name__ == "Fit"
    return NAMES.get(kind, "a fit, such as margrave.GraphicalFit()" if fit else f"a margrave.{kind.__name__}")


def is_number(value: object) -> bool:
    """Whether a value is a number, of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number, ``least`` or more; truth values are none."""
    return is_number(value) and isinstance(value, Integral) and int(value) >= least


def check_level(level: float) -> None:
    """Raise ``InputError`` unless a level is a probability, and no certainty."""
    if not is_number(level) or not 0.0 < level < 1.0:
        raise InputError(f"The level {level!r} is no probability.", remedy="Give one such as 0.95.")
