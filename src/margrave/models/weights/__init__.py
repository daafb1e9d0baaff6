"""One weight per cell of the domain (a histogram), or per public record (its support); what moves them."""

from margrave.models.weights.fit import EntropyProjectionFit, MultiplicativeWeightsFit
from margrave.models.weights.model import (
    WeightsModel,
    empirical,
    load_histogram,
    load_support,
)

__all__ = [
    "EntropyProjectionFit",
    "MultiplicativeWeightsFit",
    "WeightsModel",
    "empirical",
    "load_histogram",
    "load_support",
]
