"""Seconds of a generator's and of the particles' steps on every device that JAX sees, and by the compiled loops.

``python -m benchmarks.accelerators`` prints one line of JSON per timing. The library itself needs no accelerator:
generators and relaxed tables run where JAX runs, particles on the processor. What a device would give the particles
is read from the same step written for JAX here, with exact ranks by sorting in place of a histogram.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from margrave.domain import Domain
from margrave.models import GeneratorFit, ParticleFit, RelaxedFit
from margrave.models.mixture.model import Floats
from margrave.models.mixture.optim_jax import State, update
from margrave.models.mixture.state import _untrained
from margrave.models.mixture.targets import targets_of as targets_of_mixture
from margrave.models.particles.descent import Descent, Lines
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.kernels import BLOCK
from margrave.models.particles.targets import targets_of
from margrave.transcript import Measurement, Transcript
from margrave.types import AnyArray, Clique

# Codes of the columns of a census table.
SIZES = (85, 9, 100, 16, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
ROWS = 48_842


def transcript_of(domain: Domain, cliques: list[Clique], seed: int) -> Transcript:
    """Return noisy marginals of invented rows."""
    rng = np.random.default_rng(seed)
    found = []
    for clique in cliques:
        shares = rng.dirichlet(np.full(domain.cells(clique), 0.1)).reshape(domain.shape(clique))
        values = np.rint(ROWS * shares + rng.normal(0, 10, shares.shape)).astype(np.int64)
        found.append(Measurement(clique, values, 10.0, Fraction(1, 200)))
    return Transcript(tuple(found))


def seconds(run: Callable[[], Any], times: int) -> float:
    """Return the seconds of one call, after one to compile: the best of so many."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def report(**facts: Any) -> None:
    """Print one line."""
    print(json.dumps(facts), flush=True)


def mixtures(device: Any, steps: int, times: int) -> None:
    """Time a step of a generator's training: the library's own update, as it stands."""
    domain = Domain(tuple(f"c{i}" for i in range(len(SIZES))), SIZES)
    pairs = sorted(combinations(domain, 2), key=domain.cells)
    transcript = transcript_of(domain, [domain.clique(c) for c in pairs[:60]], 0)
    fits = {
        "generator, 256, 1,000 components": GeneratorFit(),
        "generator, 512-1024-1024, 1,000 components": GeneratorFit(
            hidden=(512, 1024, 1024), rate=1e-4, active_threshold=0.5, resample=True, kl_weight=0
        ),
        "relaxed records, 1,000": RelaxedFit(),
        "relaxed records, 50,000": RelaxedFit(components=50_000),
    }
    for name, fit in fits.items():
        recipe = fit.config
        targets = targets_of_mixture(domain, transcript, weighted=False)
        with jax.default_device(device):
            state: State = jax.device_put(
                _untrained(recipe, domain, np.random.default_rng(0)), device
            )
            placed = jax.device_put(targets, device)
            pull: Floats = np.zeros(len(targets.members), np.float32)
            many = max(2, steps // (20 if recipe.components > 10_000 else 1))

            def run(state: State = state, many: int = many, recipe: Any = recipe) -> None:
                jax.block_until_ready(
                    update(
                        state, placed, np.float32(0.0), np.int32(many), np.float32(recipe.rate),  # noqa: B023
                        np.float32(recipe.kl_weight), state.weights, pull, kind=recipe.kind, loss=recipe.loss,  # noqa: B023
                        resample=recipe.resample, anchored=recipe.kl_weight > 0,
                    )
                )  # fmt: skip

            each = seconds(run, times) / many
        report(what=name, device=device.platform, marginals=60, ms_per_step=round(1e3 * each, 4))


@jax.jit
def pulled(
    particles: jax.Array,
    coordinates: jax.Array,
    slots: jax.Array,
    directions: jax.Array,
    factors: jax.Array,
    atoms: jax.Array,
    shares: jax.Array,
    rows: jax.Array,
) -> jax.Array:
    """Return the gradient that ``Descent._pull`` adds, for all particles, with exact ranks."""
    positions = jnp.einsum("lk,lkm->lm", directions, particles[coordinates])
    line = jnp.einsum("lk,lka->la", directions, atoms)
    order = jnp.argsort(line, axis=1)
    line = jnp.take_along_axis(line, order, axis=1)
    mass = jnp.cumsum(jnp.take_along_axis(shares, order, axis=1), axis=1)
    ranks = jnp.argsort(jnp.argsort(positions, axis=1), axis=1)
    share = (ranks + 0.5) / particles.shape[1]
    place = jax.vmap(jnp.searchsorted)(mass, share).clip(0, line.shape[1] - 1)
    missing = factors[:, None] * (positions - jnp.take_along_axis(line, place, axis=1))
    found = jnp.zeros((len(rows), particles.shape[1]), jnp.float32)
    return found.at[slots].add(2.0 * directions[:, :, None] * missing[:, None, :])


def laid(descent: Descent, lines: Lines) -> tuple[AnyArray, AnyArray]:
    """Return the points and shares of all lines, padded to the same number."""
    most, widest = int(lines.atoms[:, 2].max()), lines.coordinates.shape[1]
    atoms = np.zeros((len(lines.dims), widest, most), np.float32)
    shares = np.zeros((len(lines.dims), most), np.float32)
    for t, (points, first, count) in enumerate(lines.atoms):
        for k in range(lines.dims[t]):
            atoms[t, k, :count] = descent.points[points + k * count : points + (k + 1) * count]
        shares[t, :count] = descent.shares[first : first + count]
        atoms[t, :, count:] = 1e6  # beyond all others, without mass
    return atoms, shares


def particles(devices: list[Any], counts: list[int], times: int) -> None:
    """Time a step of the descent: the compiled loops with two threads, and the same step on each device."""
    domain = Domain(tuple(f"c{i}" for i in range(10)), (32,) * 10)
    cliques = [domain.clique(c) for c in combinations(domain, 2)]
    transcript = transcript_of(domain, cliques, 1)
    for count in counts:
        fit = ParticleFit.of_paper(particles=count)
        rng = np.random.default_rng(2)
        embedding = Embedding.of(domain, fit.embedding)
        targets = targets_of(embedding, transcript, rng, weighted=False, directions=10, steps=10)
        start = rng.random((embedding.dimensions, count), dtype=np.float32)
        descent = Descent(start.copy(), targets, [], fit._schedule(between=False))
        batch = list(range(fit.batch))
        with ThreadPoolExecutor(2) as pool:
            own = seconds(lambda: descent._step(batch, 0.0, rng, pool), times)  # noqa: B023
        what = f"particles, {count:,}, {fit.batch} marginals of {fit.n_projections} lines"
        report(
            what=what,
            device="compiled loops, 2 threads, a fifth moved",
            ms_per_step=round(1e3 * own, 3),
        )
        rows = descent._rows(tuple(batch))
        lines = descent._lines(batch, rows, rng)
        atoms, shares = laid(descent, lines)
        blocks = np.arange(-(-count // BLOCK))
        wanted = np.zeros((len(rows), len(blocks) * BLOCK), np.float32)
        with ThreadPoolExecutor(2) as pool:
            descent._pull(lines, blocks, wanted, pool)
        for device in devices:
            given = jax.device_put(
                (
                    start, lines.coordinates, lines.slots, lines.directions.astype(np.float32), lines.factors,
                    atoms, shares, rows,
                ),
                device,
            )  # fmt: skip
            each = seconds(lambda: jax.block_until_ready(pulled(*given)), times)  # noqa: B023
            apart = np.abs(np.asarray(pulled(*given))[:, :count] - wanted[:, :count])
            report(
                what=what, device=device.platform + ", by sorting, all moved", ms_per_step=round(1e3 * each, 3),
                apart=round(float(apart.mean() / np.abs(wanted).mean()), 5),
            )  # fmt: skip


def main() -> None:
    """Run all timings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--particles", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    given = parser.parse_args()
    devices = [jax.devices("cpu")[0]]
    if jax.default_backend() != "cpu":
        devices.insert(0, jax.devices()[0])
    report(devices=[d.device_kind for d in devices], jax=jax.__version__)
    particles(devices, given.particles, given.times)
    for device in devices:
        mixtures(device, given.steps, given.times)


if __name__ == "__main__":
    main()
