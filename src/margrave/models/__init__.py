"""Distribution families: what a fit turns a transcript into. They never see rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from margrave.errors import InputError
from margrave.models.absent import NoModel, load_absent
from margrave.models.answers import Answers, AnswersFit, load_answers
from margrave.models.expanded import ExpandedModel, load_expanded
from margrave.models.genetic import GeneticFit
from margrave.models.graphical import GraphicalFit, GraphicalModel, load_graphical
from margrave.models.max_entropy import MaxEntropyFit, MaxEntropyModel, load_max_entropy
from margrave.models.mixture import GeneratorFit, MixtureModel, RelaxedFit, load_mixture
from margrave.models.oracle import Objective, Oracle
from margrave.models.particles import ParticleFit
from margrave.models.protocol import Fit, Model, ModelState
from margrave.models.surviving import surviving_noise
from margrave.models.weights import (
    EntropyProjectionFit,
    MultiplicativeWeightsFit,
    WeightsModel,
    empirical,
    load_histogram,
    load_support,
)
from margrave.schema.domain import Domain
from margrave.typing import AnyArray

Loader = Callable[[Domain, Mapping[str, object], Mapping[str, AnyArray]], Model]


def _expanded(domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> Model:
    return load_expanded(domain, facts, arrays, load_graphical)


MODELS: dict[str, Loader] = {
    "graphical": load_graphical,
    "expanded": _expanded,
    "answers": load_answers,
    "max-entropy": load_max_entropy,
    "histogram": load_histogram,
    "support": load_support,
    "mixture": load_mixture,
    "none": load_absent,
}
"""How a release file's model is read, by its kind."""

FITS: dict[str, type[Fit]] = {
    "graphical": GraphicalFit,
    "max-entropy": MaxEntropyFit,
    "histogram": EntropyProjectionFit,
    "particles": ParticleFit,
    "genetic": GeneticFit,
    "generator": GeneratorFit,
    "relaxed": RelaxedFit,
}
"""What the noisy answers of a release can be fitted by, under the names that the command line uses."""


def fit_named(choice: Fit | str) -> Fit:
    """A fit as it is, or by its name with its defaults; an InputError for anything else.

    >>> type(fit_named("particles")).__name__
    'ParticleFit'
    """
    if isinstance(choice, str) and choice in FITS:
        return FITS[choice]()
    if isinstance(choice, str | type) or not callable(choice) or not callable(getattr(choice, "cells", None)):
        raise InputError(
            f"{getattr(choice, '__name__', choice)!r} is no fit.",
            remedy="Give an instance, such as margrave.GraphicalFit(), or one of the names"
            f" {', '.join(FITS)}.",
        )
    return choice


__all__ = [
    "FITS",
    "MODELS",
    "Answers",
    "AnswersFit",
    "EntropyProjectionFit",
    "ExpandedModel",
    "Fit",
    "GeneratorFit",
    "GeneticFit",
    "GraphicalFit",
    "GraphicalModel",
    "MaxEntropyFit",
    "MaxEntropyModel",
    "MixtureModel",
    "Model",
    "ModelState",
    "MultiplicativeWeightsFit",
    "NoModel",
    "Objective",
    "Oracle",
    "ParticleFit",
    "RelaxedFit",
    "WeightsModel",
    "empirical",
    "fit_named",
    "surviving_noise",
]
