"""How the cliques of the two estimation tasks were chosen. Its output is kept in tasks.py; it need not be run again.

    python benchmarks/choose.py --data DIR
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from prepare import read_codes, read_sizes

Cliques = list[tuple[int, ...]]

SEED = 20240601
TRIPLES = 30
LIMIT = 10_000_000
"""Cells of the junction tree: 80 MB in double precision."""


def tree_cells(sizes: Sequence[int], cliques: Cliques) -> int:
    """Cells of the junction tree's maximal cliques, triangulated by eliminating the cheapest attribute first."""
    neighbours: list[set[int]] = [set() for _ in sizes]
    for clique in cliques:
        for a in clique:
            neighbours[a].update(b for b in clique if b != a)
    left = set(range(len(sizes)))
    formed: list[frozenset[int]] = []
    while left:
        a = min(left, key=lambda v: (prod(sizes[u] for u in {v} | neighbours[v]), v))
        around = neighbours[a]
        formed.append(frozenset({a} | around))
        for b in around:
            neighbours[b] |= around - {b}
            neighbours[b].discard(a)
        left.remove(a)
    maximal = [c for c in set(formed) if not any(c < other for other in formed)]
    return sum(prod(sizes[a] for a in c) for c in maximal)


def mutual_information(codes: NDArray[np.int64], sizes: Sequence[int], a: int, b: int) -> float:
    counts = np.bincount(codes[a] * sizes[b] + codes[b], minlength=sizes[a] * sizes[b])
    p = counts.reshape(sizes[a], sizes[b]) / counts.sum()
    independent = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
    seen = p > 0
    return float((p[seen] * np.log(p[seen] / independent[seen])).sum())


def spanning_tree(codes: NDArray[np.int64], sizes: Sequence[int]) -> Cliques:
    """The pairs of a spanning tree of largest total mutual information, by Kruskal's rule."""
    pairs = list(combinations(range(len(sizes)), 2))
    pairs.sort(key=lambda pair: -mutual_information(codes, sizes, *pair))
    group = list(range(len(sizes)))
    chosen: Cliques = []
    for a, b in pairs:
        if group[a] != group[b]:
            old, new = group[a], group[b]
            group = [new if g == old else g for g in group]
            chosen.append((a, b))
    return sorted(chosen)


def triples(sizes: Sequence[int]) -> Cliques:
    """Triples in random order, each kept if the junction tree stays within the limit, until there are enough."""
    candidates: Cliques = list(combinations(range(len(sizes)), 3))
    random.Random(SEED).shuffle(candidates)
    kept: Cliques = []
    for candidate in candidates:
        if len(kept) < TRIPLES and tree_cells(sizes, [*kept, candidate]) <= LIMIT:
            kept.append(candidate)
    return sorted(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    sizes = list(read_sizes(folder / "aim" / "adult.schema.json").values())
    codes = read_codes(folder / "aim" / "adult.parquet")
    for name, cliques in (("TREE", spanning_tree(codes, sizes)), ("TRIPLES", triples(sizes))):
        print(f"{name} = {tuple(cliques)}  # junction tree of {tree_cells(sizes, cliques):,} cells")


if __name__ == "__main__":
    main()
