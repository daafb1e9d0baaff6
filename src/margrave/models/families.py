"""The model families: how each is read from a release file, what fits it, and how the bootstrap refits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.models.answers import AnswersFit, load_answers
from margrave.models.copula import GaussianCopulaFit
from margrave.models.entries import register_fits
from margrave.models.genetic import GeneticFit
from margrave.models.graphical import GraphicalFit, load_graphical
from margrave.models.grem import GReMFit
from margrave.models.gum import GUMFit
from margrave.models.latent_classes import LatentClassFit, load_latent_classes
from margrave.models.least_squares import LeastSquaresFit, load_least_squares
from margrave.models.local_consistency import LocalConsistencyFit, load_pseudo_marginals
from margrave.models.max_entropy import MaxEntropyFit, load_max_entropy
from margrave.models.merged_codes import load_merged_codes
from margrave.models.mixture import AnnealedFit, GeneratorFit, RelaxedFit, load_mixture
from margrave.models.network import NetworkFit, load_network
from margrave.models.no_model import load_absent
from margrave.models.particles import ParticleFit
from margrave.models.protocol import Fit, FittedAnswers
from margrave.models.repeated import load_repeated
from margrave.models.weights import (
    EntropyProjectionFit,
    MultiplicativeWeightsFit,
    load_histogram,
    load_support,
)
from margrave.plugins import FIT_GROUP, Catalog, class_fault
from margrave.types import AnyArray

Loader = Callable[[Domain, Mapping[str, object], Mapping[str, AnyArray]], FittedAnswers]


@dataclass(frozen=True, kw_only=True)
class Family:
    """A model family.

    Attributes:
        kind: The kind of its models' states (``ModelState.kind``).
        load: Builds a model from the facts and arrays of a state, which may hold anything.
        fits: Its fits, by the names that the command line and certificates use.
        bootstrap: What the bootstrap refits: the family "itself", a "graphical" model of the same answers, or None if
            its models have no distribution.
    """

    kind: str
    load: Loader
    fits: Mapping[str, type[Fit]] = field(default_factory=dict)
    bootstrap: Literal["itself", "graphical"] | None = "graphical"


def _load_expanded(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> FittedAnswers:
    return load_merged_codes(domain, facts, arrays, load_graphical)


def _load_repeated(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> FittedAnswers:
    def load(
        domain: Domain, kind: str, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
    ) -> FittedAnswers:
        if (family := family_of(kind)) is None:
            raise ReleaseError(
                f"A run of the release has a model of the kind {kind!r:.60}, which is not installed.",
                remedy="Install the distribution that made it.",
            )
        return family.load(domain, facts, arrays)

    return load_repeated(domain, facts, arrays, load)


FAMILIES: dict[str, Family] = {
    family.kind: family
    for family in (
        Family(
            kind="graphical",
            load=load_graphical,
            fits={"graphical": GraphicalFit},
            bootstrap="itself",
        ),
        Family(kind="expanded", load=_load_expanded, bootstrap="itself"),
        Family(kind="max-entropy", load=load_max_entropy, fits={"max-entropy": MaxEntropyFit}),
        Family(
            kind="histogram",
            load=load_histogram,
            fits={"histogram": EntropyProjectionFit, "weights": MultiplicativeWeightsFit},
        ),
        Family(
            kind="support",
            load=load_support,
            fits={
                "particles": ParticleFit,
                "genetic": GeneticFit,
                "gum": GUMFit,
                "copula": GaussianCopulaFit,
            },
        ),
        Family(
            kind="mixture",
            load=load_mixture,
            fits={"generator": GeneratorFit, "relaxed": RelaxedFit, "annealed": AnnealedFit},
        ),
        Family(
            kind="latent-classes",
            load=load_latent_classes,
            fits={"latent-classes": LatentClassFit},
        ),
        Family(kind="repeated", load=_load_repeated),
        Family(kind="network", load=load_network, fits={"network": NetworkFit}),
        Family(kind="answers", load=load_answers, fits={"answers": AnswersFit}, bootstrap=None),
        Family(
            kind="least-squares",
            load=load_least_squares,
            fits={"least-squares": LeastSquaresFit},
            bootstrap=None,
        ),
        Family(
            kind="pseudo-marginals",
            load=load_pseudo_marginals,
            fits={"ap-pgm": LocalConsistencyFit, "grem": GReMFit},
            bootstrap=None,
        ),
        Family(kind="none", load=load_absent, bootstrap=None),
    )
}

#: Every built-in fit by name.
FITS: dict[str, type[Fit]] = {
    name: fit for family in FAMILIES.values() for name, fit in family.fits.items()
}
register_fits(FITS)


#: The built-in fits, and those of other distributions.
FIT_CATALOG: Catalog[type[Fit]] = Catalog(
    "fit",
    FIT_GROUP,
    FITS,
    lambda name, kind: class_fault(Fit, kind) or _family_fault(name, kind),
    "margrave.models.GraphicalFit()",
)


def _family_fault(name: str, fit: type[Fit]) -> str:
    family = fit.family
    if family is None:
        return ""
    if type(family) is not Family:
        return "its family is not a margrave.models.Family"
    if family.kind in FAMILIES and FAMILIES[family.kind] is not family:
        return f"a model family of the kind {family.kind!r} is registered already"
    if family.kind != name and not FIT_CATALOG.offers(family.kind):
        return f"no entry point of a fit has the name of its model family, {family.kind!r}"
    FAMILIES[family.kind] = family
    return ""


def family_of(kind: str) -> Family | None:
    """Return the model family of a kind, or None if no installed distribution has it.

    A kind that is not built in is imported only if a distribution offers a fit of that name.

    Raises:
        InputError: If that fit cannot be loaded.
    """
    if kind not in FAMILIES and FIT_CATALOG.offers(kind):
        FIT_CATALOG.get(kind)
    return FAMILIES.get(kind)


def register_family(family: Family) -> None:
    """Make models of a family outside the library readable by `Release.load`, in this process.

    Args:
        family: The family. Its kind is not one that is registered already.

    Raises:
        InputError: If the kind is taken.

    Privacy:
        None spent. The loader is run on what a release file holds.
    """
    if family.kind in FAMILIES:
        raise InputError(
            f"A model family of the kind {family.kind!r} is registered already.",
            remedy="Give the family another kind.",
        )
    FAMILIES[family.kind] = family


def fit_named(choice: Fit | str) -> Fit:
    """Return a fit as it is, or by its name with its defaults.

    Raises:
        InputError: If it is neither a fit nor a name.

    Example:
        >>> type(fit_named("particles")).__name__
        'ParticleFit'
    """
    if isinstance(choice, str):
        return FIT_CATALOG.get(choice)()
    if not issubclass(type(choice), Fit):
        name = getattr(choice, "__name__", type(choice).__name__)
        raise InputError(f"{name!r} is not a fit.", remedy=FIT_CATALOG.advice())
    return choice
