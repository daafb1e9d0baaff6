"""Estimation: the maximum-entropy distribution that explains noisy marginals, with a certified stopping rule.

The problem, for measurements y_i of scale sigma_i and N records (McKenna, Sheldon, Miklau 2019):

    minimize over distributions p    L(mu) - tau · N · H(p)
    with    L(mu) = Σ_i ||mu_i - y_i||² / (2 sigma_i²),    mu_i = N · M_i(p)

With tau = 0 this is maximum likelihood, whose solutions of highest entropy are graphical models. With tau > 0 the
entropy makes the problem strictly convex. Its dual is smooth, unconstrained and cheap:

    minimize over phi    F(phi) = N · A(phi / sigma) - <phi, y / sigma> + tau / 2 ||phi||²

where A is the log partition function of the model with potentials theta_i = phi_i / sigma_i. One calibration gives F
and its gradient g = (mu - y) / sigma + tau · phi, and the duality gap is exactly ||g||² / 2: every iterate knows how
far from the optimum it is. L-BFGS solves it, in coordinates that leave out what changes no distribution; potentials
of the last round start the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from margrave.models.terms import Term
from margrave.types import FloatArray

#: A symmetric positive definite matrix as a function of a vector.
Operator = Callable[[FloatArray], FloatArray]

#: A function: point -> (F, gradient, an approximate inverse of the Hessian there).
Objective = Callable[[FloatArray], tuple[float, FloatArray, Operator]]


@dataclass(frozen=True, eq=False)
class Solution:
    """Where L-BFGS stopped: the point, the value, the certified duality gap and what it took."""

    point: FloatArray
    value: float
    gap: float
    calibrations: int
    converged: bool


def dot(left: FloatArray, right: FloatArray) -> float:
    """Return the inner product, on this thread.

    BLAS would start threads of its own for it, which fight the propagation's for the cores: five times slower in all.
    """
    return float(np.einsum("i,i->", left, right))


def minimize(
    objective: Objective, start: FloatArray, *, gap: float, max_calibrations: int, memory: int = 12
) -> Solution:
    """Minimize by L-BFGS (Nocedal and Wright 2006, Algorithm 7.4) until ||gradient||² / 2 <= gap.

    The initial inverse Hessian of each step is the objective's own guess, scaled by the last pair.
    The step is halved, by interpolation, until the value falls enough; convexity makes every
    curvature pair valid.
    """
    point = start
    value, gradient, inverse = objective(point)
    used = 1
    if value == np.inf:  # too far out to see anything from
        point = np.zeros_like(start)
        value, gradient, inverse = objective(point)
        used = 2
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=memory)
    while used < max_calibrations and dot(gradient, gradient) / 2 > gap:
        direction = -_inverse_hessian(pairs, gradient, inverse)
        slope = dot(gradient, direction)
        if slope >= 0.0:  # numerically lost: forget the pairs
            pairs.clear()
            direction = -inverse(gradient)
            slope = dot(gradient, direction)
        step = 1.0
        while True:
            trial = point + step * direction
            trial_value, trial_gradient, trial_inverse = objective(trial)
            used += 1
            if (
                trial_value <= value + 1e-4 * step * slope + 1e-12 * abs(value)
                or used >= max_calibrations
            ):
                break
            curvature = trial_value - value - step * slope
            step *= (
                min(0.5, max(0.1, -step * slope / (2.0 * curvature)))
                if np.isfinite(curvature)
                else 0.1
            )
            if np.array_equal(trial, point):
                break  # the step is below the resolution of floats
        if not trial_value <= value + 1e-12 * abs(value):
            break
        moved, turned = trial - point, trial_gradient - gradient
        product = dot(moved, turned)
        if product > 1e-14 * float(np.sqrt(dot(moved, moved) * dot(turned, turned))):
            pairs.append((moved, turned, product))
        point, value, gradient, inverse = trial, trial_value, trial_gradient, trial_inverse
    found = dot(gradient, gradient) / 2
    return Solution(point, value, found, used, found <= gap)


def _inverse_hessian(
    pairs: deque[tuple[FloatArray, FloatArray, float]], gradient: FloatArray, inverse: Operator
) -> FloatArray:
    q = gradient.copy()
    weights = []
    for moved, turned, product in reversed(pairs):
        a = dot(moved, q) / product
        q -= a * turned
        weights.append(a)
    q = inverse(q)
    if pairs:
        moved, turned, product = pairs[-1]
        q *= product / dot(turned, inverse(turned))
    for (moved, turned, product), a in zip(pairs, reversed(weights), strict=True):
        q += (a - dot(turned, q) / product) * moved
    return q


def initial_potentials(expected: FloatArray, term: Term, entropy: float) -> FloatArray:
    """Return theta with expected · exp(theta) + entropy · scale² · theta = y, cell by cell, by
    Newton's method.

    The left side is increasing and convex, so steps from the right of the solution never overshoot it. A cell of which
    nothing is known keeps theta = 0.
    """
    known = np.isfinite(term.scales)
    stiffness = np.where(known, entropy * term.scales**2, 1.0)
    expected = np.maximum(expected, 1e-9)  # without it, the start would be left of the solution
    theta = np.log(np.maximum(term.values, expected) / expected)
    for _ in range(30):
        moved = expected * np.exp(theta)
        step = (moved + stiffness * theta - term.values) / (moved + stiffness)
        theta -= step
        if np.abs(step).max(initial=0.0) < 1e-9:
            break  # what is left is less than the square of it
    return np.where(known, theta, 0.0)
