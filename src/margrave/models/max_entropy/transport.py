"""Coordinates in which the posterior is nearly a standard normal, however long its tails are in θ.

If the noise hides whether a cell is empty, its potential can lie anywhere between its noisy count and
the prior's limit: an edge with a long plateau. In θ such edges move with every other parameter of the
same codes. Three changes of variables separate them and make them easy to sample.

1. Odds: leaves to root, the messages of lower nodes are added to a node's parameters, so that
   o_(S,v) = log P(v_R, others at reference | v_Q) − log P(all at reference | v_Q), where Q is the part
   of S in the node's separator and R the rest, if R is all of the node's attributes outside the
   separator. The codes of the other attributes are averaged over with fixed weights if they are fewer
   than those of R, else they stay at reference.
2. c: the log probability of a cell, for the reference code as for every other. Odds against a
   reference cell that may be empty would all move with it. If R is one attribute, all its codes at one
   Q are a group with weights exp(c). Their shares follow from the odds, and the logarithm s of their
   sum over P(v_Q) is free: one more variable, independent of θ, s ~ N(0, σ²). With c_r for the
   reference code, c_v = o_v + c_r and c_r = s + log P(v_Q) − log Σ_v exp(o_v). σ is the spread of the
   sum if only the noisy count of each cell is known: weights are then about independent, as are the
   Gamma variables whose shares are Dirichlet.
3. c_j = g_j(u_j) with g_j increasing, so that the density along coordinate j, through the mode, is a
   standard normal's.

All are exact. Each step of the first two adds functions of other nodes, of queries with more attributes
in R, or of the group's odds: d(θ, s) / dc has determinant 1. So the density of u is that of θ, times
that of s, times the derivatives of all g_j.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.linalg import block_diag
from scipy.special import log_ndtr

from margrave.models.max_entropy.density import Density, LogPosterior, Point
from margrave.models.max_entropy.laplace import Laplace
from margrave.models.max_entropy.tree import IMPOSSIBLE, Node, TreeLayout
from margrave.models.progress import ShareProgress, no_progress
from margrave.types import Attribute, FloatArray

#: The result of ``weights_of``.
Weights = Sequence[Sequence[FloatArray]]

#: Between −REACH and REACH the functions g_j bend; beyond, they are linear.
REACH = 4.5
#: Number of knots in that range.
KNOTS = 37
#: Points along a coordinate at which the density is evaluated.
PROBES = 81


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["weights", "sums", "mode", "information", "log_slopes", "heights"],
    meta_fields=["layout"],
)
@dataclass(frozen=True, eq=False)
class Transport:
    """c = mode + g(u), with log g_j' linear between knots: ``log_slopes`` and ``heights`` are log g_j' and g_j there.

    ``sums`` are the σ of the groups' sums. ``information`` is the negative Hessian of the log density in c at the mode.
    """

    layout: TreeLayout
    weights: Weights
    sums: FloatArray
    mode: FloatArray
    information: FloatArray
    log_slopes: FloatArray
    heights: FloatArray

    @property
    def size(self) -> int:
        """The number of coordinates: those of a point θ, and one for every group."""
        return len(self.mode)

    def theta(self, u: Point) -> tuple[Point, jax.Array]:
        """Return the point θ, and the log density that u has besides that of θ: of the sums, and of
        d(θ, s) / du.
        """
        c, log_slopes = self.cells(u)
        theta, sums = from_cells(self.layout, self.weights, c)
        return theta, jnp.sum(log_slopes) + _log_density_of(sums, jnp.asarray(self.sums))

    def cells(self, u: Point) -> tuple[Point, Point]:
        """Return c, and log g_j'(u_j) of every coordinate."""
        step = 2 * REACH / (KNOTS - 1)
        place = jnp.clip((u + REACH) / step, 0.0, KNOTS - 1 - 1e-9)
        k = place.astype(int)
        j = jnp.arange(len(self.mode))
        slopes, heights = jnp.asarray(self.log_slopes), jnp.asarray(self.heights)
        low, high = slopes[j, k], slopes[j, k + 1]
        part = place - k
        bend = (high - low) * part
        inside = heights[j, k] + jnp.exp(low) * step * part * _relative(bend)
        log_slopes = low + bend
        beyond = u - jnp.clip(u, -REACH, REACH)
        return jnp.asarray(self.mode) + inside + beyond * jnp.exp(log_slopes), log_slopes

    def first_root(self) -> FloatArray:
        """Return a first root of a covariance for u: that of the Laplace approximation, shrunk
        halfway to I.

        Along each coordinate alone the density has unit variance. The approximation gives their
        correlations, but only near the mode.
        """
        own = np.diag(self.information)
        unit = self.information / np.sqrt(np.outer(own, own))
        root: FloatArray = np.linalg.cholesky(np.linalg.inv((unit + np.eye(len(unit))) / 2))
        return root

    def along(self, log_density: Density) -> Density:
        """Return the log density of u, given that of θ."""

        def of_u(u: Point) -> jax.Array:
            theta, more = self.theta(u)
            return log_density(theta) + more

        return of_u


def _relative(x: jax.Array) -> jax.Array:
    small = jnp.abs(x) < 1e-5
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1.0 + x / 2, jnp.expm1(safe) / safe)


def fit_transport(
    posterior: LogPosterior,
    around: Laplace,
    shares: Mapping[Attribute, FloatArray],
    progress: ShareProgress = no_progress,
) -> Transport:
    """Return coordinates fitted to the density along each c_j through the mode; ``shares`` are
    those of every column.
    """
    # Distance of points whose differences give slopes.
    slope_step = 1e-5
    # Distance of probes from the mode at most, in prior standard deviations.
    max_distance = 8.0
    layout = posterior.layout
    weights = weights_of(layout, shares)
    cells, places = _to_cells(layout, weights, jnp.asarray(around.mode))
    mode, spreads = np.asarray(cells), _spreads(posterior, np.exp(np.asarray(places)))
    own = np.eye(len(mode))
    near = [
        _probed(posterior, weights, spreads, mode + side * slope_step * own)[1] for side in (1, -1)
    ]
    slope = (near[0] - near[1]).T / (2 * slope_step)  # d(θ, s) / dc
    known = block_diag(np.linalg.inv(around.factor @ around.factor.T), np.diag(spreads**-2))
    information = slope.T @ known @ slope
    spread = 1.0 / np.sqrt(np.diag(information))
    reach = np.maximum(max_distance * posterior.prior, 10 * spread)
    grid = np.linspace(-1.0, 1.0, PROBES)
    probes = spread[:, None] * np.sinh(grid * np.arcsinh(reach / spread)[:, None])

    slopes, heights = np.empty((len(mode), KNOTS)), np.empty((len(mode), KNOTS))
    for j, lengths in enumerate(probes):
        values, _ = _probed(posterior, weights, spreads, mode + np.outer(lengths, own[j]))
        slopes[j], heights[j] = gaussianize(lengths, values)
        progress((j + 1) / len(mode))
    return Transport(layout, weights, spreads, mode, information, slopes, heights)


def _spreads(posterior: LogPosterior, shares: FloatArray) -> FloatArray:
    # Largest σ of a group's sum.
    max_spread = 1.0
    layout, known = posterior.layout, posterior.sufficient
    variance = np.diag(known.covariance)[layout.order]
    records = np.maximum(known.total * shares, 1.0)
    codes = np.concatenate([n.odds.members.sum(axis=1) for n in layout.nodes])
    noise = np.concatenate([n.odds.members @ variance[n.own] for n in layout.nodes])
    noise *= (codes + 1) / codes  # as much for the reference code as for the others
    spreads: FloatArray = np.minimum(max_spread, np.sqrt(records + noise) / records)
    return spreads


def _log_density_of(sums: jax.Array, spreads: jax.Array) -> jax.Array:
    value: jax.Array = -0.5 * jnp.sum((sums / spreads) ** 2)
    return value


def _probed(
    posterior: LogPosterior, weights: Weights, spreads: FloatArray, points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    values, joint = [], []
    for start in range(0, len(points), PROBES):
        part = points[start : start + PROBES]
        filled = np.concatenate([part, np.repeat(part[:1], PROBES - len(part), axis=0)])
        found = _batch(posterior, weights, jnp.asarray(spreads), jnp.asarray(filled))
        values.append(np.asarray(found[0])[: len(part)])
        joint.append(np.asarray(found[1])[: len(part)])
    return np.concatenate(values), np.concatenate(joint)


@jax.jit
def _batch(
    posterior: LogPosterior, weights: Weights, spreads: Point, points: Point
) -> tuple[jax.Array, jax.Array]:
    def at(c: Point) -> tuple[jax.Array, jax.Array]:
        theta, sums = from_cells(posterior.layout, weights, c)
        return posterior.log_density(theta) + _log_density_of(sums, spreads), jnp.concatenate(
            [theta, sums]
        )

    found: tuple[jax.Array, jax.Array] = jax.lax.map(at, points)
    return found


def from_cells(layout: TreeLayout, weights: Weights, c: Point) -> tuple[Point, Point]:
    """Return θ and s of c; coordinates of θ after the queries' stay what they are, those of groups
    come last in c.
    """
    groups = layout.groups
    size = len(c) - groups[-1].stop
    cells, references = c[: len(layout.order)], c[size:]
    odds = {
        k: cells[n.own] - n.odds.first * (references[groups[k]] @ n.odds.members)
        for k, n in enumerate(layout.nodes)
    }
    sums = [
        _log_sum(n, cells[n.own], references[g]) - place
        for n, g, place in zip(layout.nodes, groups, _places(layout, weights, odds), strict=True)
    ]
    messages: dict[int, jax.Array] = {}
    theta: dict[int, jax.Array] = {}
    for k in reversed(range(len(layout.nodes))):
        node = layout.nodes[k]
        incoming, added = _incoming(node, messages)
        theta[k] = _parameters(node, weights[k], odds[k] - added)
        messages[k] = _message(node, theta[k], incoming)
    return jnp.concatenate(
        [*_in_order(layout, theta), c[len(layout.order) : size]]
    ), jnp.concatenate(sums)


def to_cells(
    layout: TreeLayout, weights: Weights, theta: Point, sums: Point
) -> tuple[Point, Point]:
    """Return c of θ and s, and log P(v_Q) of every group."""
    odds = _odds(layout, weights, theta)
    groups, places = layout.groups, _places(layout, weights, odds)
    cells, references = {}, []
    for k, (node, place) in enumerate(zip(layout.nodes, places, strict=True)):
        reference = (
            sums[groups[k]] + place - _log_sum(node, odds[k], jnp.zeros(len(node.odds.members)))
        )
        cells[k] = odds[k] + node.odds.first * (reference @ node.odds.members)
        references.append(reference)
    c = jnp.concatenate([*_in_order(layout, cells), theta[len(layout.order) :], *references])
    return c, jnp.concatenate(places)


@partial(jax.jit, static_argnums=0)
def _to_cells(layout: TreeLayout, weights: Weights, theta: Point) -> tuple[Point, Point]:
    return to_cells(layout, weights, theta, jnp.zeros(layout.groups[-1].stop))


def _odds(layout: TreeLayout, weights: Weights, theta: Point) -> dict[int, jax.Array]:
    messages: dict[int, jax.Array] = {}
    odds: dict[int, jax.Array] = {}
    for k in reversed(range(len(layout.nodes))):
        node = layout.nodes[k]
        incoming, added = _incoming(node, messages)
        odds[k] = _values(node, weights[k], theta[node.own]) + added
        messages[k] = _message(node, theta[node.own], incoming)
    return odds


def _log_sum(node: Node, cells: jax.Array, references: jax.Array) -> jax.Array:
    if not len(node.odds.members):
        return jnp.zeros(0)
    outside = IMPOSSIBLE * (1 - jnp.asarray(node.odds.members))
    value: jax.Array = jnp.logaddexp(
        jax.scipy.special.logsumexp(cells + outside, axis=1), references
    )
    return value


def _in_order(layout: TreeLayout, parts: Mapping[int, jax.Array]) -> list[jax.Array]:
    return [
        parts[k]
        for k in sorted(parts, key=lambda k: (layout.nodes[k].own.start, layout.nodes[k].own.stop))
    ]


def _incoming(node: Node, messages: Mapping[int, jax.Array]) -> tuple[jax.Array, jax.Array]:
    incoming = jnp.zeros(len(node.base))
    for c, meets in zip(node.children, node.meets, strict=True):
        incoming = incoming + jnp.asarray(meets) @ messages[c]
    return incoming, jnp.asarray(node.odds.first) * (
        incoming[node.odds.up] - incoming[node.odds.down]
    )


def _message(node: Node, theta: jax.Array, incoming: jax.Array) -> jax.Array:
    logits = node.base + jnp.asarray(node.queries) @ theta + incoming
    message: jax.Array = jax.scipy.special.logsumexp(
        logits.reshape(node.separator_cells, -1), axis=1
    )
    return message


def _values(node: Node, weights: Sequence[FloatArray], theta: jax.Array) -> jax.Array:
    values = jnp.zeros(len(theta))
    for level, weight in zip(node.odds.levels, weights, strict=True):
        tied = jax.scipy.special.logsumexp(weight + jnp.asarray(level.others) @ theta, axis=1)
        values = values.at[level.own].set(jnp.asarray(level.sums) @ theta[level.own] + tied)
    return values


def _parameters(node: Node, weights: Sequence[FloatArray], values: jax.Array) -> jax.Array:
    theta = jnp.zeros(len(values))
    for level, weight in zip(node.odds.levels, weights, strict=True):
        tied = jax.scipy.special.logsumexp(weight + jnp.asarray(level.others) @ theta, axis=1)
        theta = theta.at[level.own].set(jnp.asarray(level.apart) @ (values[level.own] - tied))
    return theta


def _places(layout: TreeLayout, weights: Weights, odds: Mapping[int, jax.Array]) -> list[jax.Array]:
    """Return log P(v_Q) of every node's groups, root to leaves.

    Probabilities are those of the odds alone: exact where every separator lies in a measured clique, and always
    functions of what is nearer the root.
    """
    # Added to probabilities before their logarithm.
    min_probability = 1e-60
    separators: dict[int, jax.Array] = {0: jnp.ones(1)}
    found = []
    for k, node in enumerate(layout.nodes):
        found.append(jnp.log(jnp.asarray(node.odds.within) @ separators[k] + min_probability))
        logits = node.base + jnp.asarray(node.queries) @ _parameters(node, weights[k], odds[k])
        share = jax.nn.softmax(logits.reshape(node.separator_cells, -1), axis=1)
        cells = (separators[k][:, None] * share).ravel()
        for c, meets in zip(node.children, node.meets, strict=True):
            separators[c] = jnp.asarray(meets.T) @ cells
    return found


def weights_of(layout: TreeLayout, shares: Mapping[Attribute, FloatArray]) -> Weights:
    """Return log Π shares of the codes y that each level's averages are over, an attribute left out
    standing for the rest.

    One array (queries, y) a level of each node.
    """
    # Floor for the weight of a code, as a share of the records.
    smallest_share = 1e-4
    found = []
    for node in layout.nodes:
        levels = []
        for level in node.odds.levels:
            weight = level.lacks.copy()
            for i, choices in enumerate(level.codes):
                for j, y in enumerate(choices):
                    weight[i, j] = sum(
                        np.log(max(float(shares[a][v]), smallest_share)) for a, v in y
                    )
            levels.append(weight)
        found.append(levels)
    return found


def gaussianize(lengths: FloatArray, log_values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log g' and g at the knots, from a log density on a grid of lengths.

    g takes u to the length at which as much mass lies below as below u in a standard normal.
    """
    # Floor for log densities, relative to the largest along a coordinate.
    min_log_density = -1e4
    fine = np.interp(
        np.linspace(0, len(lengths) - 1, 32 * len(lengths)), np.arange(len(lengths)), lengths
    )
    finite = np.nan_to_num(log_values, nan=-np.inf, neginf=-np.inf)
    logs = PchipInterpolator(lengths, np.maximum(finite - finite.max(), min_log_density))(fine)
    density = np.exp(logs)
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
    knots = np.linspace(-REACH, REACH, KNOTS)
    below = np.exp(log_ndtr(knots))
    at = np.interp(below * mass[-1], mass, fine)
    log_slope = (
        -0.5 * knots**2 - 0.5 * np.log(2 * np.pi) - np.interp(at, fine, logs) + np.log(mass[-1])
    )
    center = np.median(log_slope)
    log_slope = np.clip(log_slope, center - 6.0, center + 6.0)
    step = knots[1] - knots[0]
    bend = np.diff(log_slope)
    safe = np.where(np.abs(bend) < 1e-5, 1.0, bend)
    growth = np.where(np.abs(bend) < 1e-5, 1.0 + bend / 2, np.expm1(safe) / safe)
    heights = np.concatenate([[0.0], np.cumsum(np.exp(log_slope[:-1]) * step * growth)])
    middle = KNOTS // 2
    return log_slope, heights - heights[middle] + at[middle]
