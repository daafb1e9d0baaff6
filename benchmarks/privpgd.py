"""PrivPGD on the Diabetes130 table of its paper, and the speed of its steps, one line of JSON a run.

``python benchmarks/privpgd.py quality --runs 5``: eps = 2.5, delta = 1e-5, replacing a row, 80 % of the rows, at most
32 equal bins a column, all pairs; ``--fit paper`` takes the paper's descent.
``python benchmarks/privpgd.py speed``: CPU seconds of an epoch on all pairs of ADULT, 100,000 particles, batches of 5
and 10 lines, Adam; with ``--torch PYTHON`` also of the plain PyTorch step under that interpreter (``peers/torch``).
``python benchmarks/privpgd.py hide``: a share hidden with weights up to 1, to a file and a figure (``hiding``).

The errors are of the private rows, without noise: nothing here is for a release. They are

- ``covariance``: ||C − C'||² / ||C'||², Frobenius, of the embedded rows (0 to 1 in each column);
- ``counting``: the mean of |difference| over 200 queries of three columns, each a random range, that hold 5 to 95 %;
- ``thresholding``: the same for 200 random half-spaces <x, t> + b > 0 of three columns, b drawn from the range of
  <x, t> as the paper has it, so that many hold no rows or all;
- ``sw1`` and ``l1``: the mean over all pairs of SW1 (200 directions) and of Σ|p − p'|.

The paper's tables are of these, as far as can be told: its "TV" exceeds 1, and its covariance errors are squares.
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

import hiding
import numpy as np
import pyarrow.parquet
from jam import load
from run import default_data

from margrave.data import MemoryTable
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import PrivPGD
from margrave.models import ParticleFit
from margrave.models.particles.descent import Descent, Schedule
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.projection import Lines, directions_of
from margrave.models.particles.targets import Target
from margrave.privacy import Budget, ReplaceRow, protect
from margrave.schema import Codes, Schema

HERE = Path(__file__).parent
BINS, QUERIES = 32, 200
FITS = {"default": ParticleFit, "paper": ParticleFit.of_paper}


def diabetes(folder: Path, seed: int) -> Codes:
    """80 % of the rows, in at most 32 equal bins a column."""
    table = pyarrow.parquet.read_table(folder / "diabetes130_balanced.parquet")
    columns: dict[str, Any] = {}
    for name in table.column_names:
        values = np.unique(np.asarray(table[name]), return_inverse=True)
        own, codes = values[0], values[1]
        if len(own) > BINS:
            line = np.asarray(table[name], dtype=np.float64)
            codes = np.minimum(BINS - 1, (line - line.min()) / (line.max() - line.min()) * BINS).astype(np.int64)
        columns[name] = codes
    schema = Schema.coded({name: int(codes.max()) + 1 for name, codes in columns.items()})
    rows = Codes.of(schema.domain, columns)
    return rows.take(np.random.default_rng(seed).permutation(len(rows))[: len(rows) * 4 // 5])


def errors(real: Codes, other: Codes, seed: int) -> dict[str, float]:
    """How far records are from the real ones."""
    rng, embedding = np.random.default_rng(seed), Embedding.of(real.domain)
    one, two = embedding.embed(real), embedding.embed(other)
    covariance = (np.linalg.norm(np.cov(one) - np.cov(two)) / np.linalg.norm(np.cov(two))) ** 2
    counting, thresholding = [], []
    while len(counting) < QUERIES:
        columns = rng.choice(len(real.domain), 3, replace=False)
        low = [int(rng.integers(0, real.domain.sizes[c])) for c in columns]
        high = [int(rng.integers(at, real.domain.sizes[c])) for at, c in zip(low, columns, strict=True)]
        ranges = list(zip(columns, low, high, strict=True))
        shares = [
            float(np.all([(x.values[c] >= a) & (x.values[c] <= b) for c, a, b in ranges], axis=0).mean())
            for x in (real, other)
        ]
        if 0.05 <= shares[0] <= 0.95:
            counting.append(abs(shares[0] - shares[1]))
    for _ in range(QUERIES):
        columns, direction = rng.choice(len(one), 3, replace=False), rng.standard_normal(3)
        score, synthetic = direction @ one[columns], direction @ two[columns]
        bound = rng.uniform(score.min(), score.max())
        thresholding.append(abs((score + bound > 0).mean() - (synthetic + bound > 0).mean()))
    pairs = list(combinations(real.domain.attributes, 2))
    truth, found, directions = count_cliques(real, pairs), count_cliques(other, pairs), directions_of(2, 200, rng)
    sliced, apart = [], []
    for pair in pairs:
        p, q = (x[pair].reshape(-1) / n for x, n in ((truth, len(real)), (found, len(other))))
        sliced.append(Lines.of(embedding.cells(pair, np.arange(len(p))), directions).distance(p, q))
        apart.append(np.abs(p - q).sum())
    found_errors = {
        "covariance": covariance, "counting": np.mean(counting), "thresholding": np.mean(thresholding),
        "sw1": np.mean(sliced), "l1": np.mean(apart),
    }  # fmt: skip
    return {name: float(value) for name, value in found_errors.items()}


def quality(folder: Path, fit: str, seed: int) -> dict[str, Any]:
    """One release and its errors."""
    rows = diabetes(folder, seed)
    table = MemoryTable(Schema.coded(dict(zip(rows.domain, rows.domain.sizes, strict=True))), rows)
    begin, wall = time.process_time(), time.perf_counter()
    with protect(table, unit=ReplaceRow(), budget=Budget.approx(2.5, 1e-5)) as gate:
        release = PrivPGD(fit=FITS[fit]()).run(gate, rng=np.random.default_rng(seed))
    used = {"cpu_s": time.process_time() - begin, "wall_s": time.perf_counter() - wall}
    synthetic = release.model.sample(100_000, rng=np.random.default_rng(seed))
    return {"job": "quality", "fit": fit, "seed": seed, **used, **errors(rows, synthetic, seed)}


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
            found.append({"job": "speed", "step": name, "marginals": len(targets), "epoch": epoch, **used})
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
    return [{"job": "speed", "step": "torch", **json.loads(line)} for line in told.splitlines()]


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=["quality", "speed", "hide"])
    parser.add_argument("--fit", choices=list(FITS), default="default")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--particles", type=int, default=100_000)
    parser.add_argument("--torch", help="An interpreter with PyTorch.")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--slope", type=float, default=20.0, help="Of the hidden share; the paper's is 5.")
    parser.add_argument("--statistics", type=int, default=hiding.STATISTICS, help="How many shares are hidden.")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "privpgd" / "hide.jsonl")
    parser.add_argument("--figure", type=Path, help="Where a picture of what was hidden is written.")
    given = parser.parse_args()
    if given.job == "hide":
        fit = FITS[given.fit](particles=given.particles)
        hiding.run(given.data / "acs", given.out, given.figure, given.slope, fit, given.statistics)
    elif given.job == "speed":
        for line in speed(given.data / "aim", given.particles, given.torch):
            print(json.dumps(line), flush=True)
    else:
        for seed in range(given.runs):
            print(json.dumps(quality(given.data / "privpgd", given.fit, seed)), flush=True)


if __name__ == "__main__":
    main()
