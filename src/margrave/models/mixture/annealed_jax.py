"""Training relaxed records with numbers as points, on JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from margrave.domain import Domain
from margrave.marginal import TOTAL, HalfSpace
from margrave.marginal.half_space import centers
from margrave.models.mixture.model import Floats, blocks_of, numbers_of
from margrave.models.mixture.optim_jax import ADAM, residuals, softmax, squared
from margrave.models.mixture.targets import Array, Part, Targets, doubled, members_of, targets_of
from margrave.transcript import Answer, Transcript


class Weights(NamedTuple):
    """The relaxed records: logits of all codes, and a point in [0, 1] of every column."""

    logits: Array
    points: Array


class Layout(NamedTuple):
    """The codes of all columns side by side: what each belongs to, and where it lies on its column's line.

    ``members[c, a]`` is 1 if code c is one of column a. ``lower`` and ``upper`` are the edges of a number's bins,
    infinite at the ends. ``numbers`` and ``missing`` are 1 for bins of numbers and for states of missing.
    """

    members: Array
    lower: Array
    upper: Array
    centers: Array
    numbers: Array
    missing: Array


class HalfSpaces(NamedTuple):
    """Half-spaces as targets, one row each. ``own_slopes`` are 0 for those with a sharp threshold."""

    normals: Array
    thresholds: Array
    own_slopes: Array
    answers: Part


class Relaxed(NamedTuple):
    """Records at a slope: probabilities of codes, positions in [0, 1], and the share that is not missing."""

    codes: Array
    positions: Array
    present: Array


def started(domain: Domain, components: int, rng: np.random.Generator) -> Weights:
    """Return points that are uniform, and softmaxes that differ a little."""
    codes, columns = members_of(domain).shape
    logits = 0.3 * rng.standard_normal((components, codes))
    points = rng.uniform(0.0, 1.0, (components, columns))
    return Weights(logits.astype(np.float32), points.astype(np.float32))


def trained(
    weights: Weights,
    domain: Domain,
    transcript: Transcript,
    rates: tuple[float, float],
    steps: int,
    slopes: Sequence[float],
    tolerance: float,
) -> Weights:
    """Return the weights after training on all answers of a transcript, at one slope after the other."""
    if not transcript.evidence and all(a.query == TOTAL for a in transcript.answers):
        return weights
    others = tuple(e for e in transcript if not _is_half_space(e))
    found: Weights = _annealed(
        weights,
        layout_of(domain),
        targets_of(domain, Transcript(others), weighted=False),
        half_spaces_of(domain, transcript),
        Weights(*map(np.float32, rates)),
        np.int32(steps),
        np.array(slopes, dtype=np.float32),
        np.float32(tolerance),
    )
    return found


def codes_of(weights: Weights, domain: Domain) -> Floats:
    """Return the probabilities of all codes, a row for each record: each number has the code of its point."""
    sharp = 1e7
    codes = _relaxed(weights, layout_of(domain), np.float32(sharp)).codes
    found: Floats = np.asarray(codes)[:, : sum(domain.sizes)]
    return found


def layout_of(domain: Domain) -> Layout:
    """Return the layout of a domain's codes."""
    members = members_of(domain)
    layout = Layout(members, *(np.zeros(len(members), dtype=np.float32) for _ in range(5)))
    for a, block in blocks_of(domain).items():
        lines = domain.size(a) - (a in domain.missing)
        line = slice(block.start, block.start + lines)
        layout.centers[line] = centers(lines)
        layout.numbers[line] = a in numbers_of(domain)
        edges = np.array([-np.inf, *np.arange(1, lines) / lines, np.inf])
        layout.lower[line], layout.upper[line] = edges[:-1], edges[1:]
        layout.missing[block.start + lines : block.stop] = 1.0
    return layout


def half_spaces_of(domain: Domain, transcript: Transcript) -> HalfSpaces:
    """Return the half-spaces of a transcript, padded so that many rounds compile a few times."""
    asked = [e for e in transcript.answers if _is_half_space(e)]
    rows = doubled(len(asked), 64)
    values, weights, thresholds, slopes = np.zeros((4, rows), dtype=np.float32)
    normals = np.zeros((rows, members_of(domain).shape[1]), dtype=np.float32)
    for row, answer in enumerate(asked):
        query = answer.query
        assert isinstance(query, HalfSpace)
        normals[row, [domain.index(a) for a in query.clique]] = query.coefficients
        thresholds[row], slopes[row] = query.threshold, query.slope or 0.0
        share = answer.value / (query.max_contribution * transcript.total())
        values[row], weights[row] = min(max(share, 0.0), 1.0), 1.0
    return HalfSpaces(normals, thresholds, slopes, Part(values, weights))


def _is_half_space(entry: object) -> bool:
    return isinstance(entry, Answer) and entry.query != TOTAL and isinstance(entry.query, HalfSpace)


def relaxed(weights: Weights, layout: Layout, slope: jax.Array) -> Relaxed:
    """Return the records at a slope: a point lies in a bin by the difference of two sigmoids."""
    names = softmax(weights.logits, layout.members)
    present = 1.0 - (names * layout.missing) @ layout.members
    points, is_number = weights.points @ layout.members.T, layout.numbers
    bins = jax.nn.sigmoid(slope * (points - layout.lower)) - jax.nn.sigmoid(
        slope * (points - layout.upper)
    )
    codes = jnp.where(is_number > 0, bins * (present @ layout.members.T), names)
    centers = (names * layout.centers) @ layout.members
    number = (is_number @ layout.members) > 0
    return Relaxed(codes, jnp.where(number, weights.points, centers), present)


_relaxed = jax.jit(relaxed)


def half_space_errors(records: Relaxed, targets: HalfSpaces, slope: jax.Array) -> jax.Array:
    """Return the errors of the shares in each half-space, of the records that miss none of its columns."""
    slopes = jnp.where(targets.own_slopes > 0, targets.own_slopes, slope)
    score = records.positions @ targets.normals.T - targets.thresholds
    # Floor for logarithms.
    min_share = 1e-30
    logs = jnp.log(jnp.maximum(records.present, min_share))
    whole = jnp.exp(logs @ (targets.normals != 0).T.astype(logs.dtype))
    shares: jax.Array = (jax.nn.sigmoid(slopes * score) * whole).mean(axis=0)
    return jnp.asarray(targets.answers.values) - shares


@jax.jit
def _annealed(
    weights: Weights,
    layout: Layout,
    targets: Targets,
    half_spaces: HalfSpaces,
    rates: Weights,
    steps: jax.Array,
    slopes: jax.Array,
    tolerance: jax.Array,
) -> Weights:
    patience = 5

    def loss(weights: Weights, slope: jax.Array) -> jax.Array:
        records = relaxed(weights, layout, slope)
        errors = half_space_errors(records, half_spaces, slope)
        missing = [*residuals(records.codes.T, targets), (errors, half_spaces.answers.weights)]
        total: jax.Array = squared(missing, jnp.zeros(()))
        return total

    def at_slope(weights: Weights, slope: jax.Array) -> tuple[Weights, None]:
        def going(carry: tuple[Weights, Array, Array, Array, Array]) -> jax.Array:
            _, _, _, stalled, step = carry
            more: jax.Array = (step < steps) & (stalled < patience)
            return more

        def step(
            carry: tuple[Weights, Array, Array, Array, Array],
        ) -> tuple[Weights, Array, Array, Array, Array]:
            weights, moments, best, stalled, step = carry
            value, gradient = jax.value_and_grad(loss)(weights, slope)
            change, moments = ADAM.update(gradient, moments)
            pace = jnp.sqrt(slopes[0] / slope)
            moved = jax.tree.map(lambda w, c, rate: w - pace * rate * c, weights, change, rates)
            moved = moved._replace(points=jnp.clip(moved.points, 0.0, 1.0))
            falls = value < best * (1.0 - tolerance)
            stalled = jnp.where(falls, 0, stalled + 1)
            return moved, moments, jnp.minimum(best, value), stalled, step + 1

        begun = (weights, ADAM.init(weights), jnp.inf, jnp.int32(0), jnp.int32(0))
        return jax.lax.while_loop(going, step, begun)[0], None

    found: Weights = jax.lax.scan(at_slope, weights, slopes)[0]
    return found
