"""Error bounds of marginals, and the equivalent sample size, from a transcript alone."""

from margrave.bounds.equivalent_sample import EquivalentSample
from margrave.bounds.error_bounds import Bound, BoundTable, Intervals

__all__ = ["Bound", "BoundTable", "Intervals", "EquivalentSample"]
