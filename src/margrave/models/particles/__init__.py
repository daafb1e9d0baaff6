"""Particles: records found by gradients, near the measured marginals in sliced Wasserstein distance (PrivPGD)."""

from margrave.models.particles.embedding import Embedding
from margrave.models.particles.fit import ParticleFit
from margrave.models.particles.penalties import Differentiable, InOrder, Penalty, Repulsion, Statistic

__all__ = ["Differentiable", "Embedding", "InOrder", "ParticleFit", "Penalty", "Repulsion", "Statistic"]
