"""Real against synthetic: for the custodian's eyes only. Nothing here is private, and none of it enters a release."""

from margrave.evaluate.evaluation import WARNING, ColumnSummary, Evaluation, evaluate
from margrave.evaluate.mixture import BestMixture, best_mixture_error
from margrave.evaluate.queries import QueryErrors, model_errors, query_errors

__all__ = [
    "WARNING",
    "BestMixture",
    "ColumnSummary",
    "Evaluation",
    "QueryErrors",
    "best_mixture_error",
    "evaluate",
    "model_errors",
    "query_errors",
]
