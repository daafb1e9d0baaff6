"""Particles: records found by gradients, near the measured marginals in sliced Wasserstein distance (PrivPGD)."""

from margrave.models.particles.embedding import Embedding
from margrave.models.particles.fit import ParticleFit
from margrave.models.particles.penalties import Penalty

__all__ = ["Embedding", "ParticleFit", "Penalty"]
