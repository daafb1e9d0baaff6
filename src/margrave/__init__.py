"""margrave: synthetic copies of sensitive tables under differential privacy.

Importing the package loads nothing heavy: each name of ``__init__.pyi`` is fetched from its module when first used.
"""

from __future__ import annotations

import ast
from importlib import import_module
from sys import modules


def _names() -> dict[str, str]:
    """Return the module of every name in the stub, which is the one list of them."""
    with open(f"{__file__.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
        imports = [n for n in ast.parse(stub.read()).body if isinstance(n, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOME = _names()
_PARTS = tuple(name for name, home in _HOME.items() if home == "margrave")
__all__ = [name for name in _HOME if name not in (*_PARTS, "__version__")]


def __getattr__(name: str) -> object:
    """Fetch a public name from the module it lives in, or a part of the package (PEP 562)."""
    if name in _PARTS:
        return import_module(f"margrave.{name}")
    if name not in _HOME:
        raise AttributeError(_unknown(name), name=name, obj=modules[__name__])
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def _unknown(name: str) -> str:
    """Return the message for an unknown name, with the part that has it."""
    errors = import_module("margrave.errors")
    for part in _PARTS if name[:1].isupper() else ():
        try:
            names = getattr(import_module(f"margrave.{part}"), "__all__", ())
        except errors.InputError:  # an extra is not installed
            continue
        if name in names:
            return f"module 'margrave' has no attribute {name!r}. It is margrave.{part}.{name}"
    hint = import_module("margrave._other_names").in_our_words("margrave", name)
    if not hint and not name.startswith("_"):
        hint = errors.did_you_mean(name, __all__).strip()
    return f"module 'margrave' has no attribute {name!r}{hint and f'. {hint}'}"


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS, "__version__"})
