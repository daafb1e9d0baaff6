"""Particles: records found by gradients, near the measured marginals in sliced Wasserstein distance (PrivPGD)."""

from margrave.models.particles.constraints import ConstraintPenalty, HideMean, HideShare, KeepShare
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.fit import ParticleFit
from margrave.models.particles.moment_penalty import Statistic
from margrave.models.particles.monotone import InOrder
from margrave.models.particles.penalties import Differentiable, Penalty, Repulsion

__all__ = [
    "ConstraintPenalty",
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
