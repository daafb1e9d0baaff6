"""The posterior density of the maximum-entropy model's parameters, and its gradient, in JAX at double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from margrave.models.max_entropy.sufficient import Sufficient
from margrave.models.max_entropy.tree import TreeLayout
from margrave.types import FloatArray

Point = jax.Array
Density = Callable[[Point], jax.Array]


# Compiled functions take posteriors as arguments, and are compiled once for all that have the same layout.
jax.tree_util.register_dataclass(
    Sufficient,
    data_fields=["mean", "covariance", "total", "total_variance", "total_slope"],
    meta_fields=["public"],
)


@partial(
    jax.tree_util.register_dataclass, data_fields=["sufficient"], meta_fields=["layout", "prior"]
)
@dataclass(frozen=True, eq=False)
class LogPosterior:
    """log p(θ | ŝ) ∝ log N(θ; 0, prior² I) + log N(ŝ; N μ(θ), N Σ(θ) + K).

    μ(θ) = E a(x) and Σ(θ) = Cov a(x) for one record. A point is θ in the layout's order; where the number of records
    is not public a last coordinate z stands for it, N = N̂ exp(z · sd(N̂) / N̂), with a flat prior on z.

    The sum s = a(D) of N records is taken as normal, as in napsu-mq.txt, Eq. 5.
    """

    layout: TreeLayout
    sufficient: Sufficient
    prior: float

    @property
    def size(self) -> int:
        """The number of coordinates of a point."""
        return len(self.layout.order) + (not self.sufficient.public)

    def log_density(self, point: Point) -> jax.Array:
        """Return the logarithm of the density, up to a constant."""
        value: jax.Array = self._parts(point)[0]
        return value

    def _parts(self, point: Point) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        order, known = self.layout.order, jax.tree.map(jnp.asarray, self.sufficient)
        theta = point[: len(order)]
        mean, covariance = moments(self.layout, theta)
        records = known.total * jnp.exp(self._shift(point))
        observed = known.mean[order] + known.total_slope[order] * (records - known.total)
        spread = records * covariance + known.covariance[np.ix_(order, order)]
        value = gaussian(observed - records * mean, spread) - jnp.sum(theta**2) / (
            2 * self.prior**2
        )
        if not known.public:
            value -= (records - known.total) ** 2 / (2 * known.total_variance)
        return value, (records * covariance, spread)

    def _shift(self, point: Point) -> jax.Array:
        if self.sufficient.public:
            return jnp.zeros(())
        shift: jax.Array = point[-1] * (
            jnp.sqrt(self.sufficient.total_variance) / self.sufficient.total
        )
        return shift

    def records(self, points: FloatArray) -> FloatArray:
        """Return the number of records at each of some points."""
        return np.asarray(
            jax.vmap(lambda p: self.sufficient.total * jnp.exp(self._shift(p)))(jnp.asarray(points))
        )

    def evaluate(self, point: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the log density, its gradient, and the Fisher information of θ (with the prior's).

        The information is that of the mean alone, N Σ (N Σ + K)⁻¹ N Σ + I / prior²: what V's own dependence on θ
        adds is left out.
        """
        value, gradient, information = _evaluate(self, jnp.asarray(point))
        return float(value), np.asarray(gradient), np.asarray(information)


@jax.jit
def _evaluate(posterior: LogPosterior, point: Point) -> tuple[jax.Array, jax.Array, jax.Array]:
    (value, (slope, spread)), gradient = jax.value_and_grad(posterior._parts, has_aux=True)(point)
    information = slope @ jax.scipy.linalg.cho_solve(
        jax.scipy.linalg.cho_factor(spread, lower=True), slope
    )
    full = jnp.eye(posterior.size)  # the coordinate of the number of records has about unit scale
    theta = len(posterior.layout.order)
    information += jnp.eye(theta) / posterior.prior**2
    return value, gradient, full.at[:theta, :theta].set(information)


@jax.custom_vjp
def gaussian(residual: jax.Array, covariance: jax.Array) -> jax.Array:
    """Return log N(residual; 0, covariance) without its constant; differentiated by one inverse,
    not through a factor.
    """
    value: jax.Array = _gaussian(residual, covariance)[0]
    return value


def _gaussian(
    residual: jax.Array, covariance: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    factor = jnp.linalg.cholesky(covariance)
    solved = jax.scipy.linalg.cho_solve((factor, True), residual)
    value = -0.5 * residual @ solved - jnp.sum(jnp.log(jnp.diagonal(factor)))
    return value, (factor, solved)


def _gaussian_back(
    kept: tuple[jax.Array, jax.Array], slope: jax.Array
) -> tuple[jax.Array, jax.Array]:
    factor, solved = kept
    inverse = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(len(solved)))
    return -slope * solved, slope * 0.5 * (jnp.outer(solved, solved) - inverse)


gaussian.defvjp(_gaussian, _gaussian_back)


def moments(layout: TreeLayout, theta: Point) -> tuple[jax.Array, jax.Array]:
    """Return μ(θ) and Σ(θ): mean and covariance of all queries of one record, in the layout's
    order.

    Leaves to root: P(x_C | x_S) of every node C with separator S, and U = E[a_subtree | x_S]. Root
    to leaves: P(x_S). With G = E[a_subtree | x_C] (the node's own queries, and its children's U),
    the law of total covariance gives Σ = Σ_nodes (Gᵀ diag P(x_C) G − Uᵀ diag P(x_S) U), each term
    on the queries of its subtree. These are the gradient and Hessian of the log partition function.
    """
    nodes = layout.nodes
    messages: dict[int, jax.Array] = {}
    conditional: dict[int, jax.Array] = {}
    given: dict[int, jax.Array] = {}
    inner: dict[int, jax.Array] = {}
    for k in reversed(range(len(nodes))):
        node = nodes[k]
        logits = node.base + node.queries @ theta[node.own]
        for c, meets in zip(node.children, node.meets, strict=True):
            logits = logits + meets @ messages[c]
        by_separator = logits.reshape(node.separator_cells, -1)
        messages[k] = jax.scipy.special.logsumexp(by_separator, axis=1)
        conditional[k] = jnp.exp(by_separator - messages[k][:, None])
        parts = [jnp.asarray(node.queries)]
        parts += [
            jnp.asarray(meets) @ given[c]
            for c, meets in zip(node.children, node.meets, strict=True)
        ]
        inner[k] = jnp.concatenate(parts, axis=1)
        stacked = inner[k].reshape(*by_separator.shape, -1)
        given[k] = jnp.einsum("sr,srq->sq", conditional[k], stacked)
    size = len(layout.order)
    covariance = jnp.zeros((size, size))
    separators: dict[int, jax.Array] = {0: jnp.ones(1)}
    for k, node in enumerate(nodes):
        outer = separators[k]
        cells = (outer[:, None] * conditional[k]).ravel()
        block = (inner[k].T * cells) @ inner[k] - (given[k].T * outer) @ given[k]
        covariance = covariance.at[node.whole, node.whole].add(block)
        for c, meets in zip(node.children, node.meets, strict=True):
            separators[c] = jnp.asarray(meets.T) @ cells
    return given[0][0], covariance


def log_partition(layout: TreeLayout, theta: Point) -> jax.Array:
    """Return θ₀(θ) = log Σ_x exp(θᵀ a(x)), by the same upward pass."""
    messages: dict[int, jax.Array] = {}
    for k in reversed(range(len(layout.nodes))):
        node = layout.nodes[k]
        logits = node.base + node.queries @ theta[node.own]
        for c, meets in zip(node.children, node.meets, strict=True):
            logits = logits + meets @ messages[c]
        messages[k] = jax.scipy.special.logsumexp(logits.reshape(node.separator_cells, -1), axis=1)
    return messages[0][0]
