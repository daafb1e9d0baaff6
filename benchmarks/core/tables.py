"""Tables of the data folder: ``NAME.parquet`` with ``NAME.schema.json`` beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.core.library import Codes, Domain, Schema


def columns_of(data: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the entry of each column in the schema file."""
    stored = json.loads((data / f"{name}.schema.json").read_text())
    return {column["name"]: column for column in stored["columns"]}


def load_codes(data: Path, name: str) -> Codes:
    """Return a table of integer codes, with the published number of codes of every column."""
    sizes = {a: int(c["domain_size"]) for a, c in columns_of(data, name).items()}
    return read_codes(data / f"{name}.parquet", Schema.coded(sizes).domain)


def read_codes(path: Path, domain: Domain) -> Codes:
    """Return the codes in a Parquet file. A ValueError reports missing columns and nulls."""
    stored = pq.read_table(path)
    missing = [a for a in domain if a not in stored.column_names]
    if missing:
        raise ValueError(f"columns {missing} are missing")
    holes = [a for a in domain if stored[a].null_count]
    if holes:
        raise ValueError(f"columns {holes} hold nulls")
    return Codes.of(domain, {a: stored[a].to_numpy() for a in domain})


def counts(codes: Codes, clique: Sequence[str]) -> np.ndarray:
    """Return the records in each cell of a clique, by NumPy: a check on margrave's own counts."""
    shape = codes.domain.shape(tuple(clique))
    flat = np.ravel_multi_index(tuple(codes.column(a).astype(np.int64) for a in clique), shape)
    return np.bincount(flat, minlength=int(np.prod(shape)))


def codes_of(sizes: Mapping[str, int], rows: Sequence[np.ndarray]) -> Codes:
    """Return codes from the number of codes of each column, and its values."""
    return Codes.of(Schema.coded(sizes).domain, dict(zip(sizes, rows, strict=True)))


def project(codes: Codes, names: Sequence[str]) -> Codes:
    """Return some columns only."""
    domain = codes.domain.project(tuple(names))
    return Codes.of(domain, {a: codes.column(a) for a in domain})


def split(codes: Codes, cut: int, seed: int) -> tuple[Codes, Codes]:
    """Return two random parts: the rows from ``cut`` on, and those before, of a permutation."""
    order = np.random.default_rng(seed).permutation(len(codes))
    return codes.take(np.sort(order[cut:])), codes.take(np.sort(order[:cut]))
