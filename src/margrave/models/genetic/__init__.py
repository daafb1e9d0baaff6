"""Records that are edited, one entry at a time, until they answer as the noisy answers say."""

from margrave.models.genetic.fit import GeneticFit

__all__ = ["GeneticFit"]
