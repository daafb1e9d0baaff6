"""Real against synthetic: for the custodian's eyes only. Nothing here is private, and none of it enters a release."""

from margrave.evaluate.downstream import downstream_error
from margrave.evaluate.evaluation import WARNING, ColumnSummary, Evaluation, evaluate
from margrave.evaluate.geometry import GeometryErrors, covariance_error, geometry_errors, sliced_wasserstein
from margrave.evaluate.mixture import BestMixture, best_mixture_error
from margrave.evaluate.numbers import NumberSummary, Spread, number_summaries
from margrave.evaluate.queries import QueryErrors, model_errors, query_errors
from margrave.evaluate.sparse import counting_error, thresholding_error

__all__ = [
    "WARNING",
    "BestMixture",
    "ColumnSummary",
    "Evaluation",
    "GeometryErrors",
    "NumberSummary",
    "QueryErrors",
    "Spread",
    "best_mixture_error",
    "counting_error",
    "covariance_error",
    "downstream_error",
    "evaluate",
    "geometry_errors",
    "model_errors",
    "number_summaries",
    "query_errors",
    "sliced_wasserstein",
    "thresholding_error",
]
