"""Training mixtures by gradients, on JAX: the answers of targets, their losses, and the loop of a round's update."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from margrave.models.mixture.model import Floats
from margrave.models.mixture.recipe import Kind
from margrave.models.mixture.targets import Part, Targets

Weights = Any
"""A network's layers as pairs of matrix and offset; or the logits of a table; or the entries of one in a box."""

LARGEST_LOGIT = 40.0
"""Beyond, probabilities would leave what 32 bits hold."""

SMALLEST = 1e-30
"""What no logarithm is taken below."""

LESSON = 64
"""Tiles of public marginals that a step sees."""

ADAM = optax.scale_by_adam()


class State(NamedTuple):
    """What training goes on from: the weights, Adam's moments, the network's input, and the key of its randomness."""

    weights: Weights
    moments: Any
    noise: jax.Array
    key: jax.Array


def started(weights: Weights, noise: Floats, seed: int) -> State:
    """The state before the first step."""
    begun: State = _begun(weights, noise, np.uint32(seed))
    return begun


@jax.jit
def _begun(weights: Weights, noise: jax.Array, seed: jax.Array) -> State:
    """One call for all arrays: made one by one they take as long as the training of a small table."""
    return State(weights, ADAM.init(weights), noise, jax.random.key(seed))


@jax.jit
def blended(keep: jax.Array, old: Weights, new: Weights) -> Weights:
    """``keep · old + (1 − keep) · new``."""
    return jax.tree.map(lambda one, other: keep * one + (1.0 - keep) * other, old, new)


def network(widths: Sequence[int], rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """The layers of a perceptron, uniform within 1 / sqrt(width of the layer before)."""
    layers = []
    for width, following in pairwise(widths):
        reach = 1.0 / np.sqrt(width)
        matrix, offset = rng.uniform(-reach, reach, (width, following)), rng.uniform(-reach, reach, following)
        layers.append((matrix.astype(np.float32), offset.astype(np.float32)))
    return layers


def table_of(kind: Kind, weights: Weights, noise: jax.Array, members: jax.Array) -> jax.Array:
    """The mixture: one row per code, one column per component."""
    if kind == "box":
        return jnp.transpose(weights)
    if kind == "softmax":
        return softmax(weights, members).T
    values = noise
    for matrix, offset in weights[:-1]:
        values = jax.nn.relu(values @ matrix + offset)
    matrix, offset = weights[-1]
    return softmax(values @ matrix + offset, members).T


def softmax(logits: jax.Array, members: jax.Array) -> jax.Array:
    """Probabilities in every attribute's block; columns of no attribute are 0."""
    powers = jnp.exp(jnp.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT))
    sums = powers @ members
    return powers * ((1.0 / jnp.where(sums > 0, sums, 1.0)) @ members.T)


def misses(table: jax.Array, targets: Targets) -> list[tuple[jax.Array, jax.Array]]:
    """What the mixture's answers lack of each kind of target, and the targets' weights."""
    components = table.shape[1]
    found = []

    def note(part: Part | None, answers: jax.Array) -> None:
        if part is not None:
            found.append((part.values - answers, part.weights))

    if targets.columns is not None:
        note(targets.columns, table.mean(axis=1))
    if targets.pairs is not None:
        note(targets.pairs, table @ table.T / components)
    columns = [table, jnp.ones((1, components), table.dtype)]
    if targets.sets is not None:
        columns.append(targets.sets @ table)
    known = jnp.concatenate(columns)
    if targets.left is not None and targets.right is not None:
        left, right = _products(known, targets.left), _products(known, targets.right)
        note(targets.tiles, jnp.einsum("nlb,nrb->nlr", left, right) / components)
    if targets.factors is not None:
        note(targets.queries, _products(known, targets.factors).mean(axis=-1))
    return found


def _products(columns: jax.Array, factors: jax.Array) -> jax.Array:
    """For every list of columns their product, component by component."""
    found = columns[factors[..., 0]]
    for place in range(1, factors.shape[-1]):
        found = found * columns[factors[..., place]]
    return found


def absolute(missing: list[tuple[jax.Array, jax.Array]], threshold: jax.Array) -> jax.Array:
    """Mean absolute error over the targets that are missed by the threshold or more."""
    total = count = jnp.zeros(())
    for misses_of, weights in missing:
        inside = (jnp.abs(misses_of) >= threshold) & (weights > 0)
        total = total + jnp.sum(jnp.where(inside, jnp.abs(misses_of) * weights, 0.0))
        count = count + jnp.sum(inside)
    return total / jnp.maximum(count, 1)


def strayed(before: jax.Array, table: jax.Array) -> jax.Array:
    """The mean divergence of the components' products from what they were, but for a constant."""
    return -jnp.sum(before * jnp.log(jnp.maximum(table, SMALLEST))) / table.shape[1]


def missed(missing: list[tuple[jax.Array, jax.Array]], threshold: jax.Array) -> jax.Array:
    """How many targets are missed by the threshold or more, or 1."""
    return jnp.maximum(sum(jnp.sum((jnp.abs(m) >= threshold) & (w > 0)) for m, w in missing), 1)


def squared(missing: list[tuple[jax.Array, jax.Array]], threshold: jax.Array) -> jax.Array:
    """The sum of squared errors."""
    return sum((jnp.sum(w * m**2) for m, w in missing), start=jnp.zeros(()))


LOSSES = {"absolute": absolute, "squared": squared}


def worst_of(missing: list[tuple[jax.Array, jax.Array]]) -> jax.Array:
    """The largest error."""
    return jnp.max(jnp.stack([jnp.max(jnp.where(w > 0, jnp.abs(m), 0.0)) for m, w in missing]))


def _stepped(kind: Kind, state: State, slope: Weights, rate: jax.Array) -> tuple[Weights, Any]:
    """The weights and moments after a step of Adam."""
    change, moments = ADAM.update(slope, state.moments)
    weights = jax.tree.map(lambda w, c: w - rate * c, state.weights, change)
    return jnp.clip(weights, -1.0, 1.0) if kind == "box" else weights, moments


@partial(jax.jit, static_argnames=("kind", "loss", "resample", "anchored"))
def improve(
    state: State,
    targets: Targets,
    threshold: jax.Array,
    most: jax.Array,
    rate: jax.Array,
    anchor: jax.Array,
    origin: Weights,
    pull: jax.Array,
    *,
    kind: Kind,
    loss: str,
    resample: bool,
    anchored: bool,
) -> tuple[State, jax.Array]:
    """Steps of Adam until no target is missed by the threshold or more, ``most`` at most; how many there were.

    The anchor holds to the weights it begins with, and by the share ``pull`` of each code to those of the ``origin``.
    """
    begun, members = state.weights, targets.members

    def held(noise: jax.Array) -> jax.Array:
        now, first = (table_of(kind, w, noise, members) for w in (begun, origin))
        return now + pull[:, None] * (first - now)

    fixed = held(state.noise)

    def objective(weights: Weights, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        table = table_of(kind, weights, noise, members)
        missing = misses(table, targets)
        value = LOSSES[loss](missing, threshold)
        if anchored:
            before = held(noise) if resample else fixed
            value = value + anchor * strayed(before, table) / missed(missing, threshold)
        return value, worst_of(missing)

    def going(carry: tuple[State, jax.Array, jax.Array]) -> jax.Array:
        _, steps, worst = carry
        return (steps < most) & (worst >= threshold)

    def step(carry: tuple[State, jax.Array, jax.Array]) -> tuple[State, jax.Array, jax.Array]:
        state, steps, _ = carry
        (_, worst), slope = jax.value_and_grad(objective, has_aux=True)(state.weights, state.noise)
        weights, moments = _stepped(kind, state, slope, rate)
        key, noise = state.key, state.noise
        if resample:
            key, drawn = jax.random.split(key)
            noise = jax.random.normal(drawn, noise.shape, noise.dtype)
        moved = State(weights, moments, noise, key)
        stays = worst < threshold
        kept = jax.tree.map(lambda new, old: jnp.where(stays, old, new), (weights, moments), state[:2])
        return moved._replace(weights=kept[0], moments=kept[1]), steps + jnp.where(stays, 0, 1), worst

    state, steps, _ = jax.lax.while_loop(going, step, (state, jnp.zeros((), jnp.int32), jnp.full((), jnp.inf)))
    return state, steps


@partial(jax.jit, static_argnames=("kind", "loss", "resample"))
def practise(
    state: State, targets: Targets, steps: jax.Array, rate: jax.Array, *, kind: Kind, loss: str, resample: bool
) -> State:
    """So many steps of Adam; of tiles each step sees some, drawn at random."""

    def objective(weights: Weights, noise: jax.Array, some: Targets) -> jax.Array:
        missing = misses(table_of(kind, weights, noise, targets.members), some)
        return LOSSES[loss](missing, jnp.zeros(()))

    def step(_: int, state: State) -> State:
        key, chosen, drawn = jax.random.split(state.key, 3)
        some, noise = targets, state.noise
        if targets.left is not None and len(targets.left) > LESSON:
            tiles = jax.random.randint(chosen, (LESSON,), 0, len(targets.left))
            left, right, part = jax.tree.map(lambda x: x[tiles], (targets.left, targets.right, targets.tiles))
            some = targets._replace(left=left, right=right, tiles=part)
        if resample:
            noise = jax.random.normal(drawn, noise.shape, noise.dtype)
        slope = jax.grad(objective)(state.weights, noise, some)
        weights, moments = _stepped(kind, state, slope, rate)
        return State(weights, moments, noise, key)

    trained: State = jax.lax.fori_loop(0, steps, step, state)
    return trained


@partial(jax.jit, static_argnames=("kind",))
def current(weights: Weights, noise: jax.Array, members: jax.Array, *, kind: Kind) -> jax.Array:
    """The mixture as it stands, one row per component."""
    return table_of(kind, weights, noise, members).T
