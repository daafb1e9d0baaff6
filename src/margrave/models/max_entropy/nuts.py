"""Draws from the posterior by the no-U-turn sampler, in coordinates in which it is nearly a standard normal."""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import dual_averaging_adaptation

from margrave.models.max_entropy.density import LogPosterior
from margrave.models.max_entropy.transport import Transport
from margrave.models.progress import ShareProgress, no_progress, subprogress
from margrave.types import AnyArray, FloatArray

#: Iterations per call of the compiled sampler.
CHUNK = 20
#: Target mean acceptance of the step size adaptation.
ACCEPTANCE = 0.8

Target = tuple[LogPosterior, Transport]


@dataclass
class _Chain:
    """One chain: its key, where it is, its step size, and what its last walk brought."""

    key: Any
    point: FloatArray
    size: float
    points: FloatArray
    diverged: AnyArray
    steps: AnyArray
    done: int = 0

    def walk(
        self, target: Target, center: FloatArray, root: FloatArray, count: int, adapting: bool
    ) -> None:
        """Run ``count`` iterations in the coordinates u = center + root z."""
        with jax.enable_x64(True):  # of this thread
            state, found = _begin(*target, self.point, center, root), []
            # arrays of one kind whatever the stage: what is compiled for one then serves all
            tuning = jax.tree.map(
                lambda x: jnp.asarray(np.asarray(x)), TUNE_FROM(np.float64(self.size))
            )
            fixed, adapt = jnp.asarray(np.float64(self.size)), jnp.asarray(np.bool_(adapting))
            for _ in range(0, count, CHUNK):
                self.key, key = jax.random.split(self.key)
                state, tuning, visited = _chunk(
                    *target, key, state, center, root, tuning, fixed, adapt
                )
                found.append(jax.device_get(visited))
                self.done += CHUNK
            self.points, self.diverged, self.steps = (
                np.concatenate([f[i] for f in found]) for i in range(3)
            )
            self.point = self.points[-1]
            if adapting:
                self.size = float(TUNED(tuning))


class Chains:
    """Independent chains in z, u = center + R z, started from the normal approximation of u.

    ``warm_up`` adapts step sizes, and R twice, to the covariance of the draws of all chains.
    ``extend`` adds to ``draws``, points θ of shape (chains, draws, coordinates), and to
    ``diverged`` and ``steps``.
    """

    def __init__(
        self,
        posterior: LogPosterior,
        coordinates: Transport,
        root: FloatArray,
        chains: int,
        rng: np.random.Generator,
    ) -> None:
        self._target = posterior, coordinates
        self._center, self._root = np.zeros(len(root)), root
        none = np.zeros(0)
        self._chains = [
            _Chain(
                key,
                root @ rng.standard_normal(len(root)),
                0.5 * len(root) ** -0.25,
                none,
                none,
                none,
            )
            for key in jax.random.split(jax.random.key(int(rng.integers(2**31))), chains)
        ]
        self.draws = np.zeros((chains, 0, posterior.size))
        self.diverged, self.steps = (
            np.zeros((chains, 0), dtype=bool),
            np.zeros((chains, 0), dtype=np.int64),
        )

    def _walk(self, count: int, adapting: bool, progress: ShareProgress) -> None:
        # Seconds between two updates of the progress.
        look = 0.5
        before, all_of_it = self._done(), len(self._chains) * -(-count // CHUNK) * CHUNK
        with ThreadPoolExecutor(max_workers=len(self._chains)) as pool:
            walks = [
                pool.submit(c.walk, self._target, self._center, self._root, count, adapting)
                for c in self._chains
            ]
            while wait(walks, timeout=look, return_when=FIRST_EXCEPTION).not_done:
                progress(
                    (self._done() - before) / all_of_it
                )  # from this thread: the callback need not be thread-safe
            for walk in walks:
                walk.result()
        progress(1.0)

    def _done(self) -> int:
        return sum(c.done for c in self._chains)

    def warm_up(self, count: int, progress: ShareProgress = no_progress) -> None:
        """Adapt in about ``count`` iterations, in three stages."""
        for stage in range(3):
            self._walk(
                -(-count // 3),
                adapting=True,
                progress=subprogress(progress, stage / 3, (stage + 1) / 3),
            )
            if stage < 2:
                seen = np.concatenate([c.points[len(c.points) // 2 :] for c in self._chains])
                white = np.linalg.solve(self._root, (seen - seen.mean(axis=0)).T).T
                self._root = self._root @ _root_of(white)
                self._center = seen.mean(axis=0)

    def extend(self, count: int, progress: ShareProgress = no_progress) -> None:
        """Add at least ``count`` draws to each chain."""
        self._walk(count, adapting=False, progress=progress)
        points = np.array([np.asarray(_theta(self._target[1], c.points)) for c in self._chains])
        self.draws = np.concatenate([self.draws, points], axis=1)
        self.diverged = np.concatenate([self.diverged, [c.diverged for c in self._chains]], axis=1)
        self.steps = np.concatenate([self.steps, [c.steps for c in self._chains]], axis=1)


TUNE_FROM, TUNE, TUNED = dual_averaging_adaptation(ACCEPTANCE)


def _root_of(seen: FloatArray) -> FloatArray:
    size = seen.shape[1]
    weight = len(seen) / (len(seen) + 5 * size)
    covariance = weight * (seen.T @ seen) / len(seen) + (1 - weight) * np.eye(size)
    root: FloatArray = np.linalg.cholesky(covariance)
    return root


STATE = blackjax.mcmc.hmc.HMCState


@jax.jit
def _theta(coordinates: Transport, points: Any) -> Any:
    return jax.vmap(lambda u: coordinates.theta(u)[0])(points)


def _begin(
    posterior: LogPosterior,
    coordinates: Transport,
    u: FloatArray,
    center: FloatArray,
    root: FloatArray,
) -> Any:
    """Return the sampler's state at a point u: z, the log density there, and its gradient in z.

    The density of θ and its gradient come from the function that the mode was found with: inside ``_chunk`` the
    gradient would be compiled a second time, which takes as long as many draws.
    """
    theta, more, _ = _pulled(coordinates, u, np.zeros(posterior.size))
    value, slope, _ = posterior.evaluate(np.asarray(theta))
    _, _, gradient = _pulled(coordinates, u, slope)
    z = np.linalg.solve(root, u - center)
    return STATE(
        jnp.asarray(z), jnp.asarray(value + more), jnp.asarray(root.T @ np.asarray(gradient))
    )


@jax.jit
def _pulled(coordinates: Transport, u: Any, slope: Any) -> tuple[Any, Any, Any]:
    (theta, more), back = jax.vjp(coordinates.theta, u)
    return theta, more, back((slope, jnp.ones(())))[0]


@jax.jit
def _chunk(
    posterior: LogPosterior,
    coordinates: Transport,
    key: Any,
    state: Any,
    center: Any,
    root: Any,
    tuning: Any,
    fixed: Any,
    adapting: Any,
) -> tuple[Any, Any, tuple[Any, Any, Any]]:
    # A trajectory has fewer than 2**10 steps.
    max_depth = 10
    kernel = blackjax.nuts.build_kernel()
    of_u = coordinates.along(posterior.log_density)
    metric = jnp.ones(len(center))

    def log_density(at: jax.Array) -> jax.Array:
        return of_u(center + root @ at)

    def step(carry: tuple[Any, Any], one: Any) -> tuple[tuple[Any, Any], tuple[Any, Any, Any]]:
        state, tuning = carry
        size = jnp.where(adapting, jnp.exp(tuning.log_step_size), fixed)
        state, info = kernel(one, state, log_density, size, metric, max_depth)
        visited = center + root @ state.position, info.is_divergent, info.num_integration_steps
        return (state, TUNE(tuning, info.acceptance_rate)), visited

    (state, tuning), visited = jax.lax.scan(step, (state, tuning), jax.random.split(key, CHUNK))
    return state, tuning, visited
