"""The inputs that tasks make for themselves: noisy marginals and large tables, from fixed seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common.job import write_marginals
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def read_sizes(schema: Path) -> dict[str, int]:
    """Column name to number of codes."""
    columns = json.loads(schema.read_text())["columns"]
    return {column["name"]: int(column["domain_size"]) for column in columns}


def read_codes(table: Path, names: Sequence[str] | None = None) -> Codes:
    """A coded table as one row of 64-bit codes per column."""
    stored = pq.read_table(table)
    names = stored.column_names if names is None else names
    missing = [name for name in names if name not in stored.column_names]
    if missing:
        raise ValueError(f"columns {missing} are missing")
    holes = [name for name in names if stored[name].null_count]
    if holes:
        raise ValueError(f"columns {holes} hold nulls")
    return np.stack([stored[name].to_numpy().astype(np.int64) for name in names])


def count(codes: Codes, sizes: Sequence[int], clique: Sequence[int]) -> NDArray[np.int64]:
    """The number of records in each cell of a clique (of column positions)."""
    shape = tuple(sizes[a] for a in clique)
    flat = np.ravel_multi_index(tuple(codes[a] for a in clique), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def noisy_marginals(
    table: Path, schema: Path, cliques: Sequence[Sequence[int]], sigma: float, seed: int, cache: Path
) -> tuple[Path, str]:
    """Counts with rounded Gaussian noise from one seeded generator, and a digest of them for the results.

    Rounded, because the noise of a real release is discrete; seeded, because every contender must get the same. Such
    noise is good for comparisons only, not for privacy.
    """
    sizes = read_sizes(schema)
    names = list(sizes)
    codes = read_codes(table, names)
    rng = np.random.default_rng(seed)
    noisy = []
    for clique in cliques:
        exact = count(codes, list(sizes.values()), clique)
        noisy.append(np.rint(exact + sigma * rng.standard_normal(exact.shape)).astype(np.int64))
    digest = hashlib.sha256(b"".join(y.tobytes() for y in noisy)).hexdigest()[:16]
    path = cache / f"marginals-{digest}.npz"
    cache.mkdir(parents=True, exist_ok=True)
    write_marginals(path, [tuple(names[a] for a in clique) for clique in cliques], noisy)
    return path, digest


def resampled(table: Path, rows: int, seed: int, cache: Path) -> Path:
    """That many rows drawn with replacement, as a Parquet file with the columns' own types."""
    path = cache / f"{table.parent.name}-{table.stem}-{rows}-{seed}.parquet"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        stored = pq.read_table(table)
        rng = np.random.default_rng(seed)
        drawn = stored.take(pa.array(rng.integers(0, stored.num_rows, rows)))
        partial = path.with_suffix(".partial")
        pq.write_table(drawn, partial)
        partial.rename(path)
    return path
