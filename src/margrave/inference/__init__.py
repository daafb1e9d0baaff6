"""Inference for the population behind a release: data sets from its posterior, analyzed one by one and combined.

Needs the extra ``inference``: ``pip install 'margrave[inference]'``.
"""

from margrave.errors import InputError

try:
    from margrave.inference.combine import Mixture, WaldTest, combine, mix, wald
    from margrave.inference.estimands import (
        By,
        Correlation,
        Count,
        Mean,
        Proportion,
        Quantile,
        Total,
    )
    from margrave.inference.estimate import Caveat, Estimate
    from margrave.inference.fitted import Basis, Estimand, EstimateTerm, Fitted
    from margrave.inference.names import other_words
    from margrave.inference.regression import OLS, Logistic
    from margrave.inference.results import Analysis
    from margrave.inference.run import analyze, analyze_posterior, analyze_several
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pandas", "scipy"):
        raise
    raise InputError(
        f"Inference needs {error.name}, which is not installed.",
        remedy="pip install 'margrave[inference]'",
    ) from None


def __getattr__(name: str) -> object:
    """Raise ``InputError`` for another word for an analysis, and ``AttributeError`` for any other name."""
    if (forms := other_words(name)) is not None:
        raise InputError(f"{name} is not an analysis.", remedy=f"Use {forms[0]}.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "OLS",
    "Analysis",
    "Basis",
    "By",
    "Caveat",
    "Correlation",
    "Count",
    "Estimand",
    "Estimate",
    "Fitted",
    "Logistic",
    "Mean",
    "Mixture",
    "Proportion",
    "Quantile",
    "EstimateTerm",
    "Total",
    "WaldTest",
    "analyze",
    "analyze_posterior",
    "analyze_several",
    "combine",
    "mix",
    "wald",
]
