"""The speed of PrivPGD's steps, one line of JSON for each epoch.

CPU seconds of an epoch on all pairs of ADULT, 100,000 particles, batches of 5 and 10 lines, Adam, and as the library
sets it; with ``--torch PYTHON`` also of the plain PyTorch step under that interpreter (``peers/torch``). What its
records are like is measured by ``python -m benchmarks.transport``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from jam import load
from run import default_data

from margrave.marginal.counting import count_cliques
from margrave.models.particles.descent import Descent, Schedule
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.targets import Target


def speed(folder: Path, particles: int, torch: str | None) -> list[dict[str, Any]]:
    """CPU seconds of epochs, with the true marginals for targets."""
    schema, rows = load(folder, "adult")
    embedding = Embedding.of(schema.domain)
    targets = []
    for clique, counts in count_cliques(rows, combinations(schema.domain.attributes, 2)).items():
        cells = np.flatnonzero(counts)
        shares = counts.reshape(-1)[cells] / len(rows)
        targets.append(Target(clique, embedding.coordinates(clique), embedding.cells(clique, cells), shares, 1.0))
    found = []
    plain = {"epochs": 1, "batch": 5, "lines": 10, "kept": 0.2, "rate": 0.1, "decay": 0.75}
    for name, changed in {
        "adam": {"optimiser": "adam"}, "transport": {"optimiser": "transport", "batch": 1, "lines": None, "kept": 0.5},
    }.items():  # fmt: skip
        rng = np.random.default_rng(0)
        start = rng.random((embedding.dimensions, particles), dtype=np.float32)
        moving = Descent(start, targets, [], Schedule(**{**plain, **changed}))
        for epoch in range(4):
            begin, wall = time.process_time(), time.perf_counter()
            moving.run(rng)
            used = {"cpu_s": time.process_time() - begin, "wall_s": time.perf_counter() - wall}
            found.append({"step": name, "marginals": len(targets), "epoch": epoch, **used})
    if torch is not None:
        found += by_torch(targets, particles, torch)
    return found


def by_torch(targets: list[Target], particles: int, python: str) -> list[dict[str, Any]]:
    """The plain PyTorch step on the same targets."""
    arrays: dict[str, Any] = {}
    for i, target in enumerate(targets):
        arrays |= {f"columns{i}": target.coordinates, f"points{i}": target.points.T, f"shares{i}": target.shares}
    script = Path(__file__).parent / "peers" / "torch" / "privpgd_step.py"
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder) / "marginals.npz"
        np.savez(stored, **arrays)
        command = [python, str(script), str(stored), "--particles", str(particles), "--epochs", "2"]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [{"step": "torch", **json.loads(line)} for line in told.splitlines()]


def main() -> None:
    """The epochs of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--particles", type=int, default=100_000)
    parser.add_argument("--torch", help="An interpreter with PyTorch.")
    parser.add_argument("--data", type=Path, default=default_data())
    given = parser.parse_args()
    for line in speed(given.data / "aim", given.particles, given.torch):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
