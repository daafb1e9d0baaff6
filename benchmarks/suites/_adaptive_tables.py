"""The tables of the paper on GEM and PEP, as near as they are available."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.core import library as lib
from benchmarks.core.suite import Table, kway
from benchmarks.core.tables import codes_of, load_codes, project, split
from benchmarks.suites import _survey as survey

SEED = 2021
"""Of the splits, the public samples and the noisy copies. It is public; no noise comes from it."""

PUBLIC_COLUMNS = ("sex", "race", "relationship", "marital-status", "occupation", "education", "age")
"""The columns of the reduced public table of Adult."""

TENTH = "a random tenth of the same table, set apart with a fixed seed"
STAR_MARGINALS, STATES_ROWS, WIDE_COLUMNS = 64, 60_000, 100
REDRAWN = 0.2
"""The share of the values of a copied column that are drawn anew."""


def adult(data: Path) -> Table:
    """Return thirteen columns of Adult: nine tenths are private, one is public."""
    whole = load_codes(data, "gem/adult")
    private, public = split(whole, len(whole) // 10, SEED)
    fewer = lib.PublicTable(project(public, PUBLIC_COLUMNS), f"{TENTH}; 7 columns")
    return Table(private, {"tenth": lib.PublicTable(public, TENTH), "reduced": fewer})


def adult_reduced(data: Path) -> Table:
    """Return seven columns of Adult: nine tenths are private, one is public."""
    codes = load_codes(data, "gem/adult_reduced")
    private, public = split(codes, len(codes) // 10, SEED)
    return Table(private, {"tenth": lib.PublicTable(public, TENTH)})


def small_subset(domain: Any) -> Sequence[tuple[str, ...]]:
    """Return the subset with the fewest cells, of random ones by the seeds 0 to 999."""
    cliques = kway(3)(domain)
    cells = np.array([domain.cells(c) for c in cliques])
    subsets = [
        np.random.default_rng(s).choice(len(cliques), STAR_MARGINALS, replace=False)
        for s in range(1000)
    ]
    best = min(subsets, key=lambda chosen: int(cells[chosen].sum()))
    return tuple(cliques[i] for i in np.sort(best))


def acs(data: Path) -> Table:
    """Return 29 columns of Pennsylvania; California, Ohio and other states are public."""
    codes, states = survey.read(data)
    private, *others = (
        codes.take(np.flatnonzero(states == survey.STATES[s])) for s in ("pa", "ca", "oh")
    )
    rest = np.flatnonzero(~np.isin(states, list(survey.STATES.values())))
    drawn = np.sort(np.random.default_rng(SEED).choice(rest, len(others[0]), replace=False))
    tables = {"ca": others[0], "oh": others[1], "us": codes.take(drawn)}
    sample = "a random sample of the states but Pennsylvania and these two"
    words = {"ca": "California", "oh": "Ohio", "us": sample}
    source = "the survey's public use microdata of 2018"
    return Table(
        private, {s: lib.PublicTable(t, f"{source}: {words[s]}") for s, t in tables.items()}
    )


def acs_reduced(data: Path) -> Table:
    """Return the fifteen columns of Pennsylvania with the fewest codes."""
    codes, states = survey.read(data)
    there = np.flatnonzero(states == survey.STATES["pa"])
    return Table(project(codes, survey.REDUCED).take(there))


def acs_reduced_us(data: Path) -> Table:
    """Return the same fifteen columns of five times the persons, from all states."""
    codes, _ = survey.read(data)
    drawn = np.random.default_rng(SEED).choice(len(codes), STATES_ROWS, replace=False)
    return Table(project(codes, survey.REDUCED).take(np.sort(drawn)))


def wide(data: Path) -> Table:
    """Return connect four with noisy copies of its columns, a hundred in all."""
    table = pq.read_table(data / "uci" / "connect4.parquet")
    rows = np.stack([column.to_numpy().astype(np.int64) for column in table.columns])
    rows, sizes = widened(rows, dict.fromkeys(table.column_names, 3), np.random.default_rng(SEED))
    return Table(codes_of(sizes, list(rows)))


def widened(
    rows: np.ndarray, sizes: Mapping[str, int], rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, int]]:
    """Copy columns in turn until there are a hundred, with a share of their values redrawn."""
    names, all_rows, all_sizes = list(sizes), list(rows), dict(sizes)
    for i in range(WIDE_COLUMNS - len(names)):
        name, row = names[i % len(names)], rows[i % len(names)]
        anew = rng.random(row.size) < REDRAWN
        all_rows.append(np.where(anew, rng.integers(0, sizes[name], row.size), row))
        all_sizes[f"{name}_copy{i // len(names) + 1}"] = sizes[name]
    return np.stack(all_rows), all_sizes
