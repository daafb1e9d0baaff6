"""Logistic regression of a table whose design has few distinct rows: counts in their place, and Newton's method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from margrave.inference import Fitted
from margrave.inference.fits import estimable

Array = NDArray[np.float64]

MAX_STEPS = 100
CONVERGED = 1e-8
"""Change of the deviance below which to stop: that of statsmodels, so that estimates of separated data agree too."""


def logistic(names: Sequence[str], design: Array, trials: Array, successes: Array) -> Fitted:
    """Maximum likelihood from ``successes`` of ``trials`` at each row of ``design``.

    Equal to the regression on single records. Coefficients that the rows with trials do not determine are left out.
    """
    seen = trials > 0
    x, t, s = design[seen], trials[seen], successes[seen]
    alone, independent = estimable(x)
    points, covariance, converged = _newton(x[:, independent], t, s)
    kept = tuple(n for n, k in zip(names, independent, strict=True) if k)
    return Fitted.of(kept, points, covariance, converged=converged).only(alone[independent])


def _newton(x: Array, t: Array, s: Array) -> tuple[Array, Array, bool]:
    beta, last = np.zeros(x.shape[1]), np.inf
    for _ in range(MAX_STEPS):
        eta = x @ beta
        p = 1.0 / (1.0 + np.exp(-eta))
        deviance = 2.0 * float((t * np.logaddexp(0.0, eta) - s * eta).sum())
        information = (x.T * (t * p * (1.0 - p))) @ x
        try:
            covariance = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            break
        if abs(last - deviance) < CONVERGED:
            return beta, covariance, True
        last, beta = deviance, beta + covariance @ (x.T @ (s - t * p))
    return beta, np.full((len(beta), len(beta)), np.nan), False
