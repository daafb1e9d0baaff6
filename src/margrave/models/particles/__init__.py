"""Particles: records found by gradients, near the measured marginals in sliced Wasserstein distance (PrivPGD)."""

from margrave.models.particles.constraints import Constraint, HideMean, HideShare, KeepShare
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.fit import ParticleFit
from margrave.models.particles.order import InOrder
from margrave.models.particles.penalties import Differentiable, Penalty, Repulsion
from margrave.models.particles.statistic import Statistic

__all__ = [
    "Constraint",
    "Differentiable",
    "Embedding",
    "HideMean",
    "HideShare",
    "InOrder",
    "KeepShare",
    "ParticleFit",
    "Penalty",
    "Repulsion",
    "Statistic",
]
