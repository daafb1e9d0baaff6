"""PrivPGD's descent written plainly in PyTorch: CPU seconds of its epochs, as one line of JSON.

Every step sorts every projection of all particles and lets autograd do the rest; torch.optim.SparseAdam moves the
entries that are kept. Run it by path, in an environment with torch and numpy (``requirements.txt``):

``python benchmarks/peers/torch/privpgd_step.py marginals.npz --particles 100000 --epochs 2``

The file holds, for each marginal i, ``columns{i}``, ``points{i}`` (one row an atom) and ``shares{i}``.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch

LINES, BATCH, KEPT = 10, 5, 0.2


def quantised(points: np.ndarray, shares: np.ndarray, particles: int) -> torch.Tensor:
    """So many points with these shares, up to rounding."""
    ends = np.round(np.cumsum(shares) * particles).astype(int)
    return torch.from_numpy(np.repeat(points, np.diff(ends, prepend=0), axis=0).astype(np.float32))


def main() -> None:
    """Time some epochs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("marginals")
    parser.add_argument("--particles", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=1)
    given = parser.parse_args()
    torch.manual_seed(0)
    stored = np.load(given.marginals)
    count = sum(name.startswith("columns") for name in stored.files)
    columns = [torch.from_numpy(stored[f"columns{i}"]) for i in range(count)]
    targets = [quantised(stored[f"points{i}"], stored[f"shares{i}"], given.particles) for i in range(count)]
    dimensions = 1 + max(int(c.max()) for c in columns)
    particles = torch.rand(given.particles, dimensions).requires_grad_()
    flat = particles.detach().reshape(-1, 1).clone().requires_grad_()
    optimiser = torch.optim.SparseAdam([flat], lr=0.1)
    for epoch in range(given.epochs):
        begin, wall = time.process_time(), time.perf_counter()
        for batch in torch.randperm(count).split(BATCH):
            step(flat, dimensions, [columns[i] for i in batch], [targets[i] for i in batch], optimiser)
        used = {"epoch": epoch, "cpu_s": time.process_time() - begin, "wall_s": time.perf_counter() - wall}
        print(json.dumps({"marginals": count, "particles": given.particles, **used}), flush=True)


def step(
    flat: torch.Tensor, dimensions: int, columns: list[torch.Tensor], targets: list[torch.Tensor],
    optimiser: torch.optim.Optimizer,
) -> None:  # fmt: skip
    """One step of Adam on the kept entries of the gradient of the batch's sum of SW2²."""
    particles = flat.detach().reshape(-1, dimensions).requires_grad_()
    loss = torch.zeros(())
    for own, target in zip(columns, targets, strict=True):
        directions = torch.randn(len(own), LINES)
        directions /= directions.norm(dim=0)
        one = (particles[:, own] @ directions).sort(dim=0).values
        other = (target @ directions).sort(dim=0).values
        loss = loss + ((one - other) ** 2).sum(dim=0).mean()
    (gradient,) = torch.autograd.grad(loss, particles)
    kept = ((torch.rand_like(gradient) < KEPT) & (gradient != 0)).reshape(-1).nonzero()[:, 0]
    values = gradient.reshape(-1)[kept][:, None]
    flat.grad = torch.sparse_coo_tensor(kept[None], values, flat.shape).coalesce()
    optimiser.step()


if __name__ == "__main__":
    main()
