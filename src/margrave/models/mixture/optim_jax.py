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

from margrave.models.mixture.config import Kind
from margrave.models.mixture.model import Floats
from margrave.models.mixture.targets import Part, Targets

#: Layers of a network as pairs of matrix and offset, the logits of a table, or the entries of one
#: in a box.
Weights = Any


#: Tiles of public marginals in one step.
LESSON = 64

ADAM = optax.scale_by_adam()


class State(NamedTuple):
    """The state of training: the weights, Adam's moments, the network's input, and the random key."""

    weights: Weights
    moments: Any
    noise: jax.Array
    key: jax.Array


def started(weights: Weights, noise: Floats, seed: int) -> State:
    """Return the state before the first step."""
    begun: State = _begun(weights, noise, np.uint32(seed))
    return begun


@jax.jit
def _begun(weights: Weights, noise: jax.Array, seed: jax.Array) -> State:
    return State(weights, ADAM.init(weights), noise, jax.random.key(seed))


@jax.jit
def blended(keep: jax.Array, old: Weights, new: Weights) -> Weights:
    """Return ``keep · old + (1 − keep) · new``."""
    return jax.tree.map(lambda one, other: keep * one + (1.0 - keep) * other, old, new)


def network(widths: Sequence[int], rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """Return the layers of a perceptron, uniform within 1 / sqrt(width of the layer before)."""
    layers = []
    for width, following in pairwise(widths):
        reach = 1.0 / np.sqrt(width)
        matrix, offset = (
            rng.uniform(-reach, reach, (width, following)),
            rng.uniform(-reach, reach, following),
        )
        layers.append((matrix.astype(np.float32), offset.astype(np.float32)))
    return layers


def table_of(kind: Kind, weights: Weights, noise: jax.Array, members: jax.Array) -> jax.Array:
    """Return the mixture: one row per code, one column per component."""
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
    """Return probabilities in every attribute's block; columns of no attribute are 0."""
    # Largest logit for which probabilities fit in 32 bits.
    largest_logit = 40.0
    powers = jnp.exp(jnp.clip(logits, -largest_logit, largest_logit))
    sums = powers @ members
    return powers * ((1.0 / jnp.where(sums > 0, sums, 1.0)) @ members.T)


def residuals(table: jax.Array, targets: Targets) -> list[tuple[jax.Array, jax.Array]]:
    """Return the errors of the mixture's answers for each kind of target, and the targets' weights."""
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
    found = columns[factors[..., 0]]
    for place in range(1, factors.shape[-1]):
        found = found * columns[factors[..., place]]
    return found


def absolute(missing: list[tuple[jax.Array, jax.Array]], threshold: jax.Array) -> jax.Array:
    """Return GEM's loss: 1 / |J| Σ_{j ∈ J} |c_j|, with J the targets missed by the threshold."""
    total = count = jnp.zeros(())
    for misses_of, weights in missing:
        inside = (jnp.abs(misses_of) >= threshold) & (weights > 0)
        total = total + jnp.sum(jnp.where(inside, jnp.abs(misses_of) * weights, 0.0))
        count = count + jnp.sum(inside)
    return total / jnp.maximum(count, 1)


def kl_to_reference(before: jax.Array, table: jax.Array) -> jax.Array:
    """Return the mean divergence of the components' products from what they were, but for a
    constant.
    """
    # Floor for logarithms.
    min_probability = 1e-30
    return -jnp.sum(before * jnp.log(jnp.maximum(table, min_probability))) / table.shape[1]


def missed(missing: list[tuple[jax.Array, jax.Array]], threshold: jax.Array) -> jax.Array:
    """Return the number of targets whose error is the threshold or more, at least 1."""
    return jnp.maximum(sum(jnp.sum((jnp.abs(m) >= threshold) & (w > 0)) for m, w in missing), 1)


def squared(missing: list[tuple[jax.Array, jax.Array]], threshold: jax.Array) -> jax.Array:
    """Return RAP's loss: the sum of squared errors."""
    return sum((jnp.sum(w * m**2) for m, w in missing), start=jnp.zeros(()))


LOSSES = {"absolute": absolute, "squared": squared}


def worst_of(missing: list[tuple[jax.Array, jax.Array]]) -> jax.Array:
    """Return the largest error."""
    return jnp.max(jnp.stack([jnp.max(jnp.where(w > 0, jnp.abs(m), 0.0)) for m, w in missing]))


def _stepped(kind: Kind, state: State, slope: Weights, rate: jax.Array) -> tuple[Weights, Any]:
    change, moments = ADAM.update(slope, state.moments)
    weights = jax.tree.map(lambda w, c: w - rate * c, state.weights, change)
    return jnp.clip(weights, -1.0, 1.0) if kind == "box" else weights, moments


@partial(jax.jit, static_argnames=("kind", "loss", "resample", "anchored"))
def update(
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
    """Take steps of Adam until no target is missed by the threshold, and return how many there were.

    The anchor holds to the weights it begins with, and by the share ``pull`` of each code to those
    of the ``origin``.

    References:
        Liu, Vietri, Wu (2021), Algorithm 4 (GEM-UPDATE), with ``most`` its T_max and the threshold
        its gamma. With ``kind="box"`` and squared errors it is RAP's projection (Aydore et al. 2021).
    """
    begun, members = state.weights, targets.members

    def fixed_input(noise: jax.Array) -> jax.Array:
        now, first = (table_of(kind, w, noise, members) for w in (begun, origin))
        return now + pull[:, None] * (first - now)

    fixed = fixed_input(state.noise)

    def objective(weights: Weights, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        table = table_of(kind, weights, noise, members)
        missing = residuals(table, targets)  # c
        value = LOSSES[loss](missing, threshold)  # over J
        if anchored:
            before = fixed_input(noise) if resample else fixed
            value = value + anchor * kl_to_reference(before, table) / missed(missing, threshold)
        return value, worst_of(missing)

    def going(carry: tuple[State, jax.Array, jax.Array]) -> jax.Array:
        _, steps, worst = carry
        return (steps < most) & (worst >= threshold)  # while i < T_max and max |c| >= gamma

    def step(carry: tuple[State, jax.Array, jax.Array]) -> tuple[State, jax.Array, jax.Array]:
        state, steps, _ = carry
        (_, worst), slope = jax.value_and_grad(objective, has_aux=True)(state.weights, state.noise)
        weights, moments = _stepped(kind, state, slope, rate)  # update G
        key, noise = state.key, state.noise
        if resample:  # sample z
            key, drawn = jax.random.split(key)
            noise = jax.random.normal(drawn, noise.shape, noise.dtype)
        moved = State(weights, moments, noise, key)
        stays = worst < threshold
        kept = jax.tree.map(
            lambda new, old: jnp.where(stays, old, new), (weights, moments), state[:2]
        )
        return (
            moved._replace(weights=kept[0], moments=kept[1]),
            steps + jnp.where(stays, 0, 1),
            worst,
        )

    state, steps, _ = jax.lax.while_loop(
        going, step, (state, jnp.zeros((), jnp.int32), jnp.full((), jnp.inf))
    )
    return state, steps


@partial(jax.jit, static_argnames=("kind", "loss", "resample"))
def pretrain(
    state: State,
    targets: Targets,
    steps: jax.Array,
    rate: jax.Array,
    *,
    kind: Kind,
    loss: str,
    resample: bool,
) -> State:
    """Run Adam for ``steps`` steps; each step sees some tiles, drawn at random."""

    def objective(weights: Weights, noise: jax.Array, some: Targets) -> jax.Array:
        missing = residuals(table_of(kind, weights, noise, targets.members), some)
        return LOSSES[loss](missing, jnp.zeros(()))

    def step(_: int, state: State) -> State:
        key, chosen, drawn = jax.random.split(state.key, 3)
        some, noise = targets, state.noise
        if targets.left is not None and len(targets.left) > LESSON:
            tiles = jax.random.randint(chosen, (LESSON,), 0, len(targets.left))
            left, right, part = jax.tree.map(
                lambda x: x[tiles], (targets.left, targets.right, targets.tiles)
            )
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
    """Return the mixture as it stands, one row per component."""
    return table_of(kind, weights, noise, members).T
