"""A fit as plain data, for certificates and releases, and back: a name, parameters, and what is not plain in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from margrave.errors import InputError
from margrave.models import FITS, AnswersFit, MultiplicativeWeightsFit
from margrave.models.absent import one_line
from margrave.models.protocol import Fit

BUILT_IN: dict[str, type[Fit]] = {**FITS, "answers": AnswersFit, "weights": MultiplicativeWeightsFit}
"""The fits that can be rebuilt by name: those of the command line, and those that it does not offer."""


def fit_config(fit: Fit, *, public: str = "public") -> dict[str, Any]:
    """Return what a certificate says of a fit; what is known of the public table that it holds goes by ``public``."""
    table = getattr(fit, "public", None)
    return {"fit": fit_spec(fit), **({} if table is None else {public: table.facts()})}


def fit_spec(fit: Fit) -> dict[str, Any]:
    """Return a fit as plain data: ``fit_of_spec`` rebuilds it if it is a built-in one with plain parameters.

    >>> from margrave.models import GraphicalFit
    >>> fit_spec(GraphicalFit(steps=5))["parameters"]["steps"]
    5
    """
    name = next((name for name, kind in BUILT_IN.items() if type(fit) is kind), None)
    if name is None:
        table = getattr(fit, "public", None)
        return {"name": None, "words": repr(fit), **({} if table is None else {"other": {"public": repr(table)}})}
    values = {f.name: getattr(fit, f.name) for f in fields(fit)}  # type: ignore[arg-type]
    plain = {k: _plain(v) for k, v in values.items() if _is_plain(v)}
    other = {k: repr(v) for k, v in values.items() if not _is_plain(v)}
    return {"name": name, "parameters": plain, **({"other": other} if other else {})}


def fit_of_spec(spec: object) -> Fit:
    """Return the fit that plain data describe; an ``InputError`` if it cannot be rebuilt from them. Nothing is run."""
    found: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {}
    parameters = found.get("parameters")
    kind = BUILT_IN.get(str(found.get("name")))
    if kind is not None and isinstance(parameters, Mapping) and not found.get("other"):
        try:
            return kind(**parameters)
        except (TypeError, ValueError, InputError):
            pass
    raise InputError(
        f"The fit {one_line(spec_words(spec))} cannot be rebuilt from what the release says of it.",
        remedy="Only built-in fits whose parameters are plain numbers and texts can.",
    )


def spec_words(spec: object) -> str:
    """Return a fit as it would be written in Python, for people to read; a release file may hold anything there."""
    if not isinstance(spec, Mapping):
        return f"{spec!s:.200}"
    if "words" in spec:
        return str(spec["words"])
    name = spec.get("name")
    kind = BUILT_IN[name].__name__ if isinstance(name, str) and name in BUILT_IN else str(name)
    held = [spec.get("parameters"), spec.get("other")]
    plain, other = (dict(h) if isinstance(h, Mapping) else {} for h in held)
    shown = [f"{k}={v!r}" for k, v in plain.items()] + [f"{k}={v}" for k, v in other.items()]
    return f"{kind}({', '.join(shown)})"


def starts_from_public(spec: object) -> bool:
    """Return whether a fit holds a public table that it starts from."""
    other = spec.get("other") if isinstance(spec, Mapping) else None
    return isinstance(other, Mapping) and "public" in other


def keeps_answers_only(spec: object) -> bool:
    """Return whether a fit keeps the noisy answers and makes no distribution of them."""
    return isinstance(spec, Mapping) and spec.get("name") == "answers"


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value
