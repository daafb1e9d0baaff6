"""Gaussian copulas: records of latent normal variables with polychoric correlations."""

from margrave.models.copula.fit import GaussianCopulaFit

__all__ = ["GaussianCopulaFit"]
