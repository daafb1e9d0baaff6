"""Coordinates in which the posterior is nearly a standard normal, however long its tails are in θ.

Where the noise hides whether a cell is empty, its potential can be anything from what its noisy count says down to
what the prior allows: a narrow edge with a long plateau. Two changes of variables make that easy to walk.

1. η_(S,v) = Σ θ_(T,v_T) over subsets T of S that hold S's last attribute in sampling order: the log odds of one cell
   against its reference. A cell that may be empty then concerns one coordinate, not all that share its codes.
2. η_j = g_j(u_j) with g_j increasing, so that the density along coordinate j, through the mode, is a standard normal's.

Both are exact: the density of u is that of θ times the derivatives of all g_j.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_ndtr

from margrave.models.max_entropy.canonical import Canonical
from margrave.models.max_entropy.density import Density, Point
from margrave.models.max_entropy.laplace import Laplace
from margrave.models.max_entropy.tree import Layout
from margrave.typing import Attribute, FloatArray

REACH = 4.5
"""Between −REACH and REACH the functions g_j bend; beyond, they go on straight."""
KNOTS = 37
"""In that stretch."""
PROBES = 161
"""Points along a coordinate at which the density is taken."""
FARTHEST = 8.0
"""Of them, from the mode, in prior standard deviations."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """θ = mode + unmix g(u), with log g_j' linear between knots: ``log_slopes`` (coordinates, knots), ``at_zero`` g(0).

    ``unmix`` takes η to θ.
    """

    mode: FloatArray
    unmix: FloatArray
    log_slopes: FloatArray
    heights: FloatArray

    def theta(self, u: Point) -> tuple[Point, jax.Array]:
        """The point θ, and the log determinant of dθ / du."""
        step = 2 * REACH / (KNOTS - 1)
        place = jnp.clip((u + REACH) / step, 0.0, KNOTS - 1 - 1e-9)
        k = place.astype(int)
        j = jnp.arange(len(self.mode))
        slopes, heights = jnp.asarray(self.log_slopes), jnp.asarray(self.heights)
        low, high = slopes[j, k], slopes[j, k + 1]
        part = place - k
        bend = (high - low) * part
        inside = heights[j, k] + jnp.exp(low) * step * part * _relative(bend)
        log_slope = low + bend
        beyond = u - jnp.clip(u, -REACH, REACH)
        eta = inside + beyond * jnp.exp(log_slope)
        return jnp.asarray(self.mode) + jnp.asarray(self.unmix) @ eta, jnp.sum(log_slope)

    def first_root(self, around: Laplace) -> FloatArray:
        """A root of a covariance for u to start from: that of the Laplace approximation, drawn halfway to I.

        Along each coordinate alone the density has unit variance; the approximation tells how they go together, but
        only near the mode.
        """
        information = np.linalg.inv(around.factor @ around.factor.T)
        own = self.unmix.T @ information @ self.unmix
        unit = own / np.sqrt(np.outer(np.diag(own), np.diag(own)))
        root: FloatArray = np.linalg.cholesky(np.linalg.inv((unit + np.eye(len(unit))) / 2))
        return root

    def along(self, log_density: Density) -> Density:
        """The log density of u, given that of θ."""

        def of_u(u: Point) -> jax.Array:
            theta, log_determinant = self.theta(u)
            return log_density(theta) + log_determinant

        return of_u


def _relative(x: jax.Array) -> jax.Array:
    """(exp(x) − 1) / x, and 1 at 0."""
    small = jnp.abs(x) < 1e-5
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1.0 + x / 2, jnp.expm1(safe) / safe)


def coordinates(
    log_density: Density,
    canonical: Canonical,
    layout: Layout,
    around: Laplace,
    prior: float,
    ranks: Mapping[Attribute, int],
) -> Coordinates:
    """Coordinates fitted to the density along each η_j through the mode."""
    size = len(around.mode)
    unmix = np.eye(size)
    queries = len(layout.order)
    unmix[:queries, :queries] = np.linalg.inv(_mixing(canonical, layout, ranks))
    information = np.linalg.inv(around.factor @ around.factor.T)
    spread = 1.0 / np.sqrt(np.einsum("ij,ij->j", unmix, information @ unmix))
    reach = np.maximum(FARTHEST * prior, 10 * spread)
    grid = np.linspace(-1.0, 1.0, PROBES)
    probes = spread[:, None] * np.sinh(grid * np.arcsinh(reach / spread)[:, None])

    @jax.jit
    def line(direction: Point, lengths: Point) -> jax.Array:
        values: jax.Array = jax.lax.map(lambda t: log_density(around.mode + t * direction), lengths)
        return values

    slopes, heights = np.empty((size, KNOTS)), np.empty((size, KNOTS))
    for j in range(size):
        values = np.asarray(line(jnp.asarray(unmix[:, j]), jnp.asarray(probes[j])))
        slopes[j], heights[j] = _straighten(probes[j], np.where(np.isfinite(values), values, -1e300))
    return Coordinates(around.mode, unmix, slopes, heights)


def _mixing(canonical: Canonical, layout: Layout, ranks: Mapping[Attribute, int]) -> FloatArray:
    """The matrix from θ to η, both in the layout's order: ones on the diagonal, at most one other for each T in S."""
    place = np.full(canonical.size, -1)
    place[canonical.kept[layout.order]] = np.arange(len(layout.order))
    matrix = np.zeros((len(layout.order), len(layout.order)))
    for s in canonical.subsets:
        last = max(s, key=ranks.__getitem__)
        shape = [canonical.domain.size(a) - 1 for a in s]
        own = place[canonical.starts[s] + np.arange(canonical.free_cells(s))]
        codes = np.indices(shape).reshape(len(s), -1)
        for t in canonical.subsets:
            if last in t and set(t) <= set(s):
                at = np.zeros(codes.shape[1], dtype=np.int64)
                for a in t:
                    at = at * (canonical.domain.size(a) - 1) + codes[s.index(a)]
                other = place[canonical.starts[t] + at]
                both = (own >= 0) & (other >= 0)
                matrix[own[both], other[both]] = 1.0
    return matrix


def _straighten(lengths: FloatArray, log_values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log g' and g at the knots, from a log density on a grid of lengths.

    g takes u to the length at which as much mass lies below as below u in a standard normal.
    """
    fine = np.interp(np.linspace(0, len(lengths) - 1, 16 * len(lengths)), np.arange(len(lengths)), lengths)
    logs = np.interp(fine, lengths, log_values - log_values.max())
    density = np.exp(logs)
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
    knots = np.linspace(-REACH, REACH, KNOTS)
    below = np.exp(log_ndtr(knots))
    at = np.interp(below * mass[-1], mass, fine)
    log_slope = -0.5 * knots**2 - 0.5 * np.log(2 * np.pi) - np.interp(at, fine, logs) + np.log(mass[-1])
    centre = np.median(log_slope)
    log_slope = np.clip(log_slope, centre - 6.0, centre + 6.0)
    step = knots[1] - knots[0]
    bend = np.diff(log_slope)
    safe = np.where(np.abs(bend) < 1e-5, 1.0, bend)
    growth = np.where(np.abs(bend) < 1e-5, 1.0 + bend / 2, np.expm1(safe) / safe)
    heights = np.concatenate([[0.0], np.cumsum(np.exp(log_slope[:-1]) * step * growth)])
    middle = KNOTS // 2
    return log_slope, heights - heights[middle] + at[middle]
