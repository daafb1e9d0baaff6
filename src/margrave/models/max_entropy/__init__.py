"""The maximum-entropy model and its posterior given noisy marginals. Importing it does not import JAX; fitting does."""

from margrave.models.max_entropy.fit import MaxEntropyFit
from margrave.models.max_entropy.model import MaxEntropyModel, load_max_entropy

__all__ = ["MaxEntropyFit", "MaxEntropyModel", "load_max_entropy"]
