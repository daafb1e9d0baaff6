"""Relaxed marginal consistency (AP-PGM): marginals that agree wherever they overlap, without a joint distribution."""

from margrave.models.local_consistency.fit import LocalConsistencyFit
from margrave.models.local_consistency.model import PseudoMarginals, load_pseudo_marginals

__all__ = ["LocalConsistencyFit", "PseudoMarginals", "load_pseudo_marginals"]
