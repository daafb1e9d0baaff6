"""Count all triples of a Parquet file, in memory or batch by batch: the process that `rows` measures."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.core import library as lib

SIZES = (9, 16, 7, 15, 6, 5, 2, 32, 2, 20, 16, 10, 8, 12, 4)
COLUMNS = tuple(f"c{i:02}" for i in range(len(SIZES)))
TRIPLES = tuple(combinations(COLUMNS, 3))
CHECKED = TRIPLES[:: len(TRIPLES) // 20][:20]


def main(source: str, way: str, output: str) -> None:
    """Read a table, count, and write the counts that are checked."""
    schema = lib.Schema.coded(dict(zip(COLUMNS, SIZES, strict=True)))
    persons = {"person": "who"} if way == "persons" else {"ignore": ("who",)}
    lib.MemoryTable.max_code_bytes = 1 << 60 if way == "memory" else 0
    table: lib.Table = lib.read_table(source, replace(schema, **persons))
    table = table.bounded(3) if way == "persons" else table
    counts = table.count(TRIPLES)
    np.savez(Path(output), **{"-".join(c): counts[c] for c in CHECKED})


if __name__ == "__main__":
    main(*sys.argv[1:])
