# /// script
# dependencies = ["torch==2.15.0", "numpy==2.4.6", "pyarrow==26.0.1"]
# [tool.benchmarks]
# jobs = ["gem", "particles"]
# module = "torch"
# ///
"""GEM and PrivPGD's descent in plain PyTorch, as one would write them down: for speed and error.

"gem" is Algorithms 3 and 4 of Liu, Vietri, Wu (2021). Nothing of margrave is used. Its noise is
continuous and comes from a seeded generator: for comparisons only, not for privacy.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
import torch
from job import Job, main, rho_of
from torch import Tensor, nn

BATCH, LATENT, HIDDEN = 1000, 128, (512, 1024, 1024)
LEARNING_RATE, MOST_STEPS = 1e-4, 100
ALPHA = 0.67
"""The share of a round's epsilon that chooses the query."""
ERROR_BETA, WEIGHT_BETA = 0.5, 0.9
"""Of the moving averages of the chosen errors, and of the weights in the latter half."""


class Generator(nn.Module):
    """A multilayer perceptron whose output is a probability vector for every column."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = list(sizes)
        layers: list[nn.Module] = []
        wide = LATENT
        for width in HIDDEN:
            layers += [nn.Linear(wide, width), nn.ReLU()]
            wide = width
        self.layers = nn.Sequential(*layers, nn.Linear(wide, sum(sizes)))

    def forward(self, z: Tensor) -> Tensor:
        columns = self.layers(z).split(self.sizes, dim=1)
        return torch.cat([c.softmax(dim=1) for c in columns], dim=1)


class Queries:
    """Every cell of every marginal, as the positions in the one-hot encoding whose product is its probability."""

    def __init__(self, sizes: Sequence[int], cliques: Sequence[Sequence[int]]) -> None:
        starts = np.cumsum([0, *sizes])
        self.blocks = [[slice(int(starts[a]), int(starts[a + 1])) for a in c] for c in cliques]
        cells = [
            np.indices([sizes[a] for a in c]).reshape(len(c), -1).T + starts[list(c)]
            for c in cliques
        ]
        self.places = torch.from_numpy(np.concatenate(cells))

    def of(self, p: Tensor, chosen: Tensor) -> Tensor:
        """Return the mean answers of some queries over a batch."""
        return p[:, self.places[chosen]].prod(dim=2).mean(dim=0)

    def all(self, p: Tensor) -> Tensor:
        """Return the mean answers of all: one product of matrices for each marginal."""
        return torch.cat([self._marginal(p, blocks) for blocks in self.blocks])

    @staticmethod
    def _marginal(p: Tensor, blocks: Sequence[slice]) -> Tensor:
        left = p[:, blocks[0]]
        for block in blocks[1:-1]:
            left = (left[:, :, None] * p[:, None, block]).flatten(1)
        return (
            (left.T @ p[:, blocks[-1]] / len(p)).flatten() if len(blocks) > 1 else left.mean(dim=0)
        )


def truth_of(codes: np.ndarray, sizes: Sequence[int], cliques: Sequence[Sequence[int]]) -> Tensor:
    """Return the true share of every query."""
    shares = []
    for c in cliques:
        shape = [sizes[a] for a in c]
        flat = np.ravel_multi_index(tuple(codes[a].astype(np.int64) for a in c), shape)
        shares.append(np.bincount(flat, minlength=prod(shape)) / codes.shape[1])
    return torch.from_numpy(np.concatenate(shares))


def update(
    generator: Generator, optimizer: torch.optim.Optimizer, queries: Queries, chosen: Tensor, noisy: Tensor,
    gamma: float,
) -> int:  # fmt: skip
    """Take steps of Algorithm 4 until all errors are below gamma; return how many."""
    for step in range(MOST_STEPS):
        errors = noisy - queries.of(generator(torch.randn(BATCH, LATENT)), chosen)
        far = errors.abs() >= gamma
        if not far.any():
            return step
        optimizer.zero_grad()
        errors[far].abs().mean().backward()
        optimizer.step()
    return MOST_STEPS


def gem(
    job: Job, truth: Tensor, n: int, sizes: Sequence[int], queries: Queries
) -> tuple[Tensor, dict[str, Any]]:
    """Run Algorithm 3: choose by the exponential mechanism, measure, update, T times."""
    rounds, most_s, start = int(job["rounds"]), job.get("seconds"), time.perf_counter()
    rho = rho_of(job["epsilon"], job["delta"])
    epsilon = sqrt(2 * rho / (rounds * (ALPHA**2 + (1 - ALPHA) ** 2)))
    generator = Generator(sizes)
    optimizer = torch.optim.Adam(generator.parameters(), lr=LEARNING_RATE)
    average: Generator | None = None
    chosen, noisy, typical, steps, seconds = [], [], 0.0, 0, []
    for t in range(rounds):
        if most_s is not None and time.perf_counter() - start > most_s:
            break
        begun = time.perf_counter()
        with torch.no_grad():
            current = queries.all(generator(torch.randn(BATCH, LATENT))).double()
        # the sensitivity is 1 / n, the mechanism's epsilon 2 alpha epsilon, halved in its exponent
        gumbel = -torch.log(-torch.log(torch.rand(len(current), dtype=torch.float64)))
        q = int((ALPHA * epsilon * n * (truth - current).abs() + gumbel).argmax())
        answer = float(truth[q]) + float(torch.randn(())) / (n * (1 - ALPHA) * epsilon)
        seen = abs(answer - float(current[q]))
        chosen.append(q)
        noisy.append(answer)
        typical = seen if t == 0 else ERROR_BETA * typical + (1 - ERROR_BETA) * seen
        steps += update(
            generator, optimizer, queries, torch.tensor(chosen), torch.tensor(noisy), typical / 2
        )
        if t >= rounds // 2:
            average = copy.deepcopy(generator) if average is None else mixed(average, generator)
        seconds.append(time.perf_counter() - begun)
        job.progress(round=t, steps=steps)
    with torch.no_grad():
        answers = queries.all((average or generator)(torch.randn(BATCH, LATENT)))
    return answers, {"rounds": len(chosen), "steps": steps, "round_s": float(np.median(seconds))}


def mixed(average: Generator, generator: Generator) -> Generator:
    """Return the moving average of the weights."""
    with torch.no_grad():
        for mean, new in zip(average.parameters(), generator.parameters(), strict=True):
            mean.mul_(WEIGHT_BETA).add_(new, alpha=1 - WEIGHT_BETA)
    return average


def run_gem(job: Job) -> None:
    """Run GEM and write the share of every query, in order."""
    with np.load(job["codes"]) as stored:
        codes, sizes, cliques = (stored[name] for name in ("codes", "sizes", "cliques"))
    torch.manual_seed(job["seed"])
    wall, cpu = time.perf_counter(), time.process_time()
    queries, truth = Queries(sizes.tolist(), cliques.tolist()), truth_of(codes, sizes, cliques)
    answers, facts = gem(job, truth, codes.shape[1], sizes.tolist(), queries)
    facts |= {"fit_wall_s": time.perf_counter() - wall, "fit_cpu_s": time.process_time() - cpu}
    np.save(job.out / "answers.npy", answers.numpy())
    job.finish(**facts, torch=torch.__version__, threads=torch.get_num_threads())


# PrivPGD's descent: every step sorts every projection of all particles, and autograd does the rest

LINES, PAIRS, KEPT = 10, 5, 0.2


def particles(job: Job) -> None:
    """Take the time of epochs. The targets hold ``columns{i}``, ``points{i}``, ``shares{i}``."""
    torch.manual_seed(0)
    count, stored = job["particles"], np.load(job["targets"])
    size = sum(name.startswith("columns") for name in stored.files)
    columns = [torch.from_numpy(stored[f"columns{i}"]) for i in range(size)]
    targets = [quantized(stored[f"points{i}"], stored[f"shares{i}"], count) for i in range(size)]
    dimensions = 1 + max(int(c.max()) for c in columns)
    flat = torch.rand(count * dimensions, 1).requires_grad_()
    optimizer = torch.optim.SparseAdam([flat], lr=0.1)
    epochs = []
    for _ in range(job["epochs"]):
        cpu, wall = time.process_time(), time.perf_counter()
        for batch in torch.randperm(size).split(PAIRS):
            own, goals = [columns[i] for i in batch], [targets[i] for i in batch]
            step(flat, dimensions, own, goals, optimizer)
        seconds = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
        epochs.append(seconds)
    job.finish(version=torch.__version__, marginals=size, epochs=epochs)


def quantized(points: np.ndarray, shares: np.ndarray, count: int) -> Tensor:
    """Return ``count`` points with these shares, up to rounding."""
    ends = np.round(np.cumsum(shares) * count).astype(int)
    return torch.from_numpy(np.repeat(points, np.diff(ends, prepend=0), axis=0).astype(np.float32))


def step(
    flat: Tensor, dimensions: int, columns: list[Tensor], targets: list[Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:  # fmt: skip
    """Take a step of Adam on the kept entries of the gradient of the batch's sum of SW2²."""
    places = flat.detach().reshape(-1, dimensions).requires_grad_()
    loss = torch.zeros(())
    for own, target in zip(columns, targets, strict=True):
        directions = torch.randn(len(own), LINES)
        directions /= directions.norm(dim=0)
        one = (places[:, own] @ directions).sort(dim=0).values
        other = (target @ directions).sort(dim=0).values
        loss = loss + ((one - other) ** 2).sum(dim=0).mean()
    (gradient,) = torch.autograd.grad(loss, places)
    entries = ((torch.rand_like(gradient) < KEPT) & (gradient != 0)).reshape(-1).nonzero()[:, 0]
    values = gradient.reshape(-1)[entries][:, None]
    flat.grad = torch.sparse_coo_tensor(entries[None], values, flat.shape).coalesce()
    optimizer.step()


if __name__ == "__main__":
    main({"gem": run_gem, "particles": particles})
