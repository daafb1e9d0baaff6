"""Latent classes and their posterior given noisy marginals (PrivLCM's model)."""

from margrave.models.latent_classes.fit import LatentClassFit
from margrave.models.latent_classes.model import LatentClassModel, load_latent_classes

__all__ = ["LatentClassFit", "LatentClassModel", "load_latent_classes"]
