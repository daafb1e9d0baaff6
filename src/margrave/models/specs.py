"""A fit as data, for certificates and releases, and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from margrave.errors import InputError
from margrave.models.families import FITS
from margrave.models.no_model import one_line
from margrave.models.protocol import Fit
from margrave.provenance import FitSpec, is_plain


def fit_config(fit: Fit) -> dict[str, Any]:
    """Return the entry of a mechanism's ``config()`` for its fit."""
    return {"fit": fit_spec(fit)}


def fit_spec(fit: Fit) -> FitSpec:
    """Return a fit as data: ``fit_of_spec`` rebuilds a built-in one whose parameters are plain.

    Example:
        >>> from margrave.models import GraphicalFit
        >>> fit_spec(GraphicalFit(steps=5)).parameters["steps"]
        5
    """
    name = next((name for name, kind in FITS.items() if type(fit) is kind), None)
    public = None if fit.public is None else fit.public.facts()
    # the repr of any other object may hold its address
    words = repr(fit) if is_dataclass(fit) else type(fit).__name__
    if name is not None:
        values = {f.name: vars(fit)[f.name] for f in fields(fit)}  # type: ignore[arg-type]
        if is_plain(values):
            return FitSpec(words, name, values, public)
    return FitSpec(words, public=public)


def fit_of_spec(spec: FitSpec) -> Fit:
    """Return the fit that a spec describes. Nothing is run.

    Raises:
        InputError: It is not a built-in fit with plain parameters.
    """
    kind = None if spec.name is None else FITS.get(spec.name)
    if kind is not None:
        try:
            return kind(**spec.parameters)
        except (TypeError, ValueError, InputError):
            pass
    raise InputError(
        f"The fit {one_line(spec.words)} cannot be rebuilt from what the release says of it.",
        remedy="Only built-in fits whose parameters are plain numbers and texts can.",
    )
