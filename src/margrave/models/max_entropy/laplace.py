"""The posterior's mode and the normal distribution around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from margrave.models.max_entropy.canonical import Canonical
from margrave.models.max_entropy.density import LogPosterior
from margrave.types import FloatArray

#: The same if rounding allows no further ascent: the gain that a full step may still promise
#: at a mode.
ROUNDING_TOLERANCE = 1e-2

#: Levenberg-Marquardt steps; without convergence by then, the information approximates the
#: Hessian badly.
MAX_DAMPED_STEPS = 30

MAX_STEPS = 500
#: Half the squared Newton step at convergence: the log density that a full step still gains.
CONVERGED = 1e-9

Evaluate = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class Laplace:
    """N(mode, factor factorᵀ): the mode of the posterior and a square root of its inverse negative Hessian there.

    ``converged`` is whether the mode was reached, ``curved`` whether the Hessian was negative definite there (else the
    expected information stands in for it). ``steps`` counts evaluations.
    """

    mode: FloatArray
    factor: FloatArray
    converged: bool
    curved: bool
    steps: int

    def draws(self, m: int, rng: np.random.Generator) -> FloatArray:
        """Return independent points, one per row."""
        return self.mode + rng.standard_normal((m, len(self.mode))) @ self.factor.T


def laplace(posterior: LogPosterior, canonical: Canonical) -> Laplace:
    """Return the mode by Levenberg-Marquardt steps with the Fisher information, and the Hessian
    there.

    The information is positive definite everywhere, so every damped step ascends, and near the mode
    it is usually close to the Hessian. If noise is large beside the counts it is not: it ignores
    the information in the covariance, and steps oscillate around the mode. L-BFGS, preconditioned
    by the information, then estimates the difference. The Hessian at the mode is taken from
    differences of the gradient along directions of unit standard deviation.
    """
    evaluate = posterior.evaluate
    point = _start(posterior, canonical)
    value, gradient, information = evaluate(point)
    damping, converged, steps = 1e-3, False, 1
    while steps < MAX_DAMPED_STEPS:
        damped = information + damping * np.diag(np.diag(information))
        step = cho_solve(cho_factor(damped), gradient)
        promised = float(gradient @ step) / 2
        if promised < CONVERGED:
            converged = True
            break
        tried = evaluate(point + step)
        steps += 1
        if np.isfinite(tried[0]) and tried[0] >= value + 1e-4 * promised:
            point, (value, gradient, information) = point + step, tried
            damping = max(damping / 5, 1e-12)
        elif damping > 1e12:
            # No step ascends: this is the limit of floating point. The remaining gain may be negligible.
            converged = _promised(gradient, information) < ROUNDING_TOLERANCE
            break
        else:
            damping *= 4
    else:
        point, more = _learned(evaluate, point, information)
        value, gradient, information = evaluate(point)
        steps += more
        converged = _promised(gradient, information) < ROUNDING_TOLERANCE
    factor, curved = _inverse_root(evaluate, point, information)
    return Laplace(point, factor, converged, curved, steps)


def _promised(gradient: FloatArray, information: FloatArray) -> float:
    return float(gradient @ cho_solve(cho_factor(information), gradient)) / 2


def _learned(
    evaluate: Evaluate, point: FloatArray, information: FloatArray
) -> tuple[FloatArray, int]:
    root = np.linalg.inv(np.linalg.cholesky(information)).T

    def falls(white: FloatArray) -> tuple[float, FloatArray]:
        value, gradient, _ = evaluate(point + root @ white)
        return (
            (-value, -(gradient @ root)) if np.isfinite(value) else (np.inf, np.zeros_like(white))
        )

    flat = np.sqrt(CONVERGED / len(point))
    options = {"maxiter": MAX_STEPS, "maxfun": MAX_STEPS, "maxcor": 50, "ftol": 0.0, "gtol": flat}
    found = minimize(falls, np.zeros_like(point), jac=True, method="L-BFGS-B", options=options)
    return point + root @ found.x, int(found.nfev)


def _start(posterior: LogPosterior, canonical: Canonical) -> FloatArray:
    known, total = posterior.sufficient, posterior.sufficient.total
    full, theta = np.full(canonical.size, np.nan), np.zeros(canonical.size)
    full[canonical.kept] = known.mean / total
    floor = 1.0 / total
    for a in canonical.domain:
        start = canonical.starts.get((a,))
        if start is not None:
            where = slice(start, start + canonical.domain.size(a) - 1)
            shares = np.clip(np.nan_to_num(full[where], nan=floor), floor, 1.0)
            theta[where] = np.log(shares / max(1.0 - shares.sum(), floor))
    point = np.zeros(posterior.size)
    point[: len(canonical.kept)] = theta[canonical.kept][posterior.layout.order]
    return point


def _inverse_root(
    evaluate: Evaluate, mode: FloatArray, information: FloatArray
) -> tuple[FloatArray, bool]:
    # Distance of gradients for the Hessian by differences, in standard deviations.
    step = 1e-3
    root = np.linalg.inv(
        np.linalg.cholesky(information)
    ).T  # directions of unit expected information
    differences = [
        evaluate(mode + step * root[:, j])[1] - evaluate(mode - step * root[:, j])[1]
        for j in range(len(mode))
    ]
    white = -(np.array(differences) @ root) / (2 * step)
    values, vectors = np.linalg.eigh((white + white.T) / 2)
    if values.min() <= 1e-6:
        return root, False
    factor: FloatArray = root @ (vectors / np.sqrt(values))
    return factor, True
