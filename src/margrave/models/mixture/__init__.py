"""Mixtures of product distributions: a generator network's or a relaxed table's (GEM, RAP)."""

from margrave.models.mixture.annealed import AnnealedFit
from margrave.models.mixture.fit import GeneratorFit, RelaxedFit
from margrave.models.mixture.model import MixtureModel, load_mixture

__all__ = ["AnnealedFit", "GeneratorFit", "MixtureModel", "RelaxedFit", "load_mixture"]
