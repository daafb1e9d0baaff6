"""Real against synthetic: for the custodian's eyes only. Nothing here is private, and none of it enters a release."""

from margrave.evaluation.comparison import WARNING, ColumnSummary, Evaluation, evaluate
from margrave.evaluation.downstream import downstream_error
from margrave.evaluation.geometry import (
    GeometryErrors,
    covariance_error,
    geometry_errors,
    sliced_wasserstein,
)
from margrave.evaluation.mixture import BestMixture, best_mixture_error
from margrave.evaluation.numeric import NumberSummary, Spread, number_summaries
from margrave.evaluation.pictures import (
    CellGap,
    GroupGap,
    Pictures,
    PurposeGap,
)
from margrave.evaluation.private_page import PrivatePage, check_apart
from margrave.evaluation.queries import QueryErrors, model_errors, query_errors
from margrave.evaluation.random_queries import counting_error, thresholding_error

__all__ = [
    "WARNING",
    "BestMixture",
    "CellGap",
    "ColumnSummary",
    "Evaluation",
    "GeometryErrors",
    "GroupGap",
    "NumberSummary",
    "Pictures",
    "PrivatePage",
    "PurposeGap",
    "QueryErrors",
    "Spread",
    "best_mixture_error",
    "check_apart",
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
