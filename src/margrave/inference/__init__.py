"""Inference for the population behind a release: data sets from its posterior, analysed one by one and combined.

Needs the extra ``inference``: ``pip install 'margrave[inference]'``.
"""

from margrave.errors import InputError

try:
    from margrave.inference.analyse import analyse, analyse_posterior, analyse_several
    from margrave.inference.analysis import Analysis
    from margrave.inference.combine import Mixture, WaldTest, combine, mix, wald
    from margrave.inference.correlation import Correlation
    from margrave.inference.estimate import Estimate
    from margrave.inference.fits import Fitted
    from margrave.inference.groups import By
    from margrave.inference.models import OLS, Logistic, Mean, Proportion, Quantile
    from margrave.inference.totals import Count, Total
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pandas", "scipy"):
        raise
    raise InputError(
        f"Inference needs {error.name}, which is not installed.", remedy="pip install 'margrave[inference]'"
    ) from None

__all__ = [
    "OLS",
    "Analysis",
    "By",
    "Correlation",
    "Count",
    "Estimate",
    "Fitted",
    "Logistic",
    "Mean",
    "Mixture",
    "Proportion",
    "Quantile",
    "Total",
    "WaldTest",
    "analyse",
    "analyse_posterior",
    "analyse_several",
    "combine",
    "mix",
    "wald",
]
