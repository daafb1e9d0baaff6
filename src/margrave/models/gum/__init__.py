"""Records that are moved, marginal by marginal, until their counts are the noisy ones."""

from margrave.models.gum.fit import GUMFit

__all__ = ["GUMFit"]
