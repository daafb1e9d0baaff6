"""Every parameter of every mechanism and fit refuses what is not of its kind, before anything is asked of rows."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, get_type_hints

import numpy as np
import pytest

from margrave import models
from margrave.errors import InputError
from margrave.mechanisms import AIM, GEM, MECHANISMS, MST, MWEM, NAPSUMQ, PEP, PrivPGD
from margrave.models import GraphicalFit, MaxEntropyFit, ParticleFit

FITS = [
    getattr(models, name)
    for name in models.__all__
    if name.endswith("Fit") and name not in ("Fit", "SimpleFit")
]
MADE = [*MECHANISMS.values(), *FITS]


def cases() -> list[tuple[Any, str]]:
    return [(kind, f.name) for kind in MADE if is_dataclass(kind) for f in fields(kind)]


@pytest.mark.parametrize(("kind", "name"), cases(), ids=lambda x: getattr(x, "__name__", x))
def test_no_parameter_takes_what_it_cannot_use(kind: Any, name: str) -> None:
    hint = str(get_type_hints(kind)[name])
    wrong = [object(), GraphicalFit, b"three"]
    wrong += [] if "str" in hint or "Literal" in hint else ["three"]
    wrong += [float("nan"), 2 + 1j]
    wrong += [2.5] if "float" not in hint and "Fraction" not in hint else []
    for value in wrong:
        with pytest.raises(InputError):
            kind(**{name: value})


@pytest.mark.parametrize("kind", MADE, ids=lambda k: k.__name__)
def test_defaults_are_of_their_kind(kind: Any) -> None:
    kind()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: MWEM(rounds=2.5), r"MWEM: rounds is 2.5. Give a whole number or None"),  # type: ignore[arg-type]
        (lambda: AIM(fit="graphical"), r"fit is 'graphical'. Give a fit"),  # type: ignore[arg-type]
        (lambda: AIM(fit=GraphicalFit), "fit is a type. Give a fit"),  # type: ignore[arg-type]
        (lambda: NAPSUMQ(fit="graphical"), "Give a fit, such as margrave.models.GraphicalFit()"),  # type: ignore[arg-type]
        (lambda: AIM(workload=[("a", "b")]), "workload is a list. Give a Workload"),  # type: ignore[arg-type]
        (lambda: MST(rare_threshold="a"), "rare_threshold is 'a'. Give a number"),  # type: ignore[arg-type]
        (lambda: AIM(max_model_mb=-1), "max_model_mb is -1. Give a number above 0"),
        (lambda: MST(rare_threshold=-1), "rare_threshold is -1. Give at least 0"),
        (lambda: PEP(gamma=-1e-12), "gamma is -1e-12. Give at least 0"),
        (lambda: MWEM(passes=-1), "passes is -1. Give at least 0"),
        (lambda: GEM(rounds=True), "rounds is True"),
    ],
)
def test_the_error_names_the_parameter_and_what_it_takes(made: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made()


def test_numbers_of_other_kinds_become_what_is_meant() -> None:
    """A power of ten is a float, and NumPy's integers are not Python's: neither may reach a release's certificate."""
    assert type(PrivPGD(epochs=1e2).epochs) is int  # type: ignore[arg-type]
    assert type(ParticleFit(n_projections=np.int64(3)).n_projections) is int  # type: ignore[arg-type]
    assert type(AIM(max_model_mb=40).max_model_mb) is float
    assert type(MST(rare_threshold=Fraction(7, 2)).rare_threshold) is float  # type: ignore[arg-type]
    assert AIM(alpha=0.9).alpha == Fraction(9, 10)  # type: ignore[arg-type]
    assert MaxEntropyFit(warmup=np.int32(100)) == MaxEntropyFit(warmup=100)  # type: ignore[arg-type]
