"""Real against synthetic: for the custodian's eyes only. Nothing here is private, and none of it enters a release."""

from margrave.evaluate.evaluation import WARNING, ColumnSummary, Evaluation, evaluate
from margrave.evaluate.mixture import BestMixture, best_mixture_error

__all__ = ["WARNING", "BestMixture", "ColumnSummary", "Evaluation", "best_mixture_error", "evaluate"]
