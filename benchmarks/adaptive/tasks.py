"""The paper's tables and workloads, as near as they can be had, and one of a hundred columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import prepare
import pyarrow.parquet as pq
from benchmarks.adaptive import acs
from numpy.typing import NDArray

from margrave import Schema, Workload
from margrave.marginal.counting import count_cliques
from margrave.public import Public
from margrave.schema import Codes, Domain
from margrave.typing import Clique

EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
RUNS = 5

SEED = 2021
"""Of what is drawn here: the splits, the public samples, the noisy copies. It is public; no noise comes from it."""

KNOWN_COLUMNS = ("sex", "race", "relationship", "marital-status", "occupation", "education", "age")
"""The columns of the reduced public table of Adult; the paper has education as its number, which says the same."""

TENTH = "a random tenth of the same table, set apart with a fixed seed"
STAR_MARGINALS = 64
STATES_ROWS = 60_000
WIDE_COLUMNS = 100
COPIED_WRONG = 0.2
"""The share of the values of a copied column that are drawn anew."""


@dataclass(frozen=True, eq=False)
class Task:
    """The private table, the marginals whose cells are the queries, and the public tables by name."""

    name: str
    title: str
    codes: Codes
    cliques: tuple[Clique, ...]
    publics: Mapping[str, Public] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """Integer codes, with the published numbers of them."""
        return Schema.coded(dict(zip(self.codes.domain, self.codes.domain.sizes, strict=True)))

    @property
    def n(self) -> int:
        """Records, public since neighbours differ in a replaced one."""
        return len(self.codes)

    @property
    def delta(self) -> float:
        """1 / n²."""
        return 1.0 / self.n**2

    @property
    def workload(self) -> Workload:
        """The marginals, of equal weight."""
        return Workload.of(self.schema.domain, dict.fromkeys(self.cliques, 1.0))

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """The share of the records in every cell, marginal after marginal. Not private."""
        return shares(self.codes, self.cliques)


def shares(codes: Codes, cliques: tuple[Clique, ...]) -> NDArray[np.float64]:
    """The share of the records in every cell, marginal after marginal."""
    counts = count_cliques(codes, cliques)
    return np.concatenate([counts[c].ravel() for c in cliques]) / len(codes)


def triples(codes: Codes) -> tuple[Clique, ...]:
    """All three-way marginals."""
    return tuple(combinations(codes.domain.attributes, 3))


def load(data: Path, name: str) -> Codes:
    """A coded table of the folder."""
    sizes = prepare.read_sizes(data / "gem" / f"{name}.schema.json")
    rows = prepare.read_codes(data / "gem" / f"{name}.parquet", list(sizes))
    return Codes.of(Schema.coded(sizes).domain, dict(zip(sizes, rows, strict=True)))


def split(codes: Codes) -> tuple[Codes, Codes]:
    """Nine tenths of the rows, and one: which, is drawn with the public seed."""
    order = np.random.default_rng(SEED).permutation(len(codes))
    tenth = len(codes) // 10
    return codes.take(np.sort(order[tenth:])), codes.take(np.sort(order[:tenth]))


def columns(codes: Codes, names: tuple[str, ...]) -> Codes:
    """Some columns only."""
    domain = codes.domain.project(names)
    return Codes.of(domain, {a: codes.column(a) for a in domain})


def adult(data: Path) -> Task:
    """Thirteen columns of Adult: nine tenths are private, one is public."""
    private, public = split(load(data, "adult"))
    fewer = Public(columns(public, KNOWN_COLUMNS), f"{TENTH}; 7 columns")
    publics = {"tenth": Public(public, TENTH), "reduced": fewer}
    return Task("adult", "ADULT", private, triples(private), publics)


def adult_reduced(data: Path) -> Task:
    """Seven columns of Adult: nine tenths are private, one is public."""
    private, public = split(load(data, "adult_reduced"))
    publics = {"tenth": Public(public, TENTH)}
    return Task("adult_reduced", "ADULT (reduced)", private, triples(private), publics)


def adult_star(data: Path) -> Task:
    """Adult with a code for each value up to a hundred, whole, and 64 of its 364 three-way marginals."""
    codes = load(data, "adult_star_fem")
    return Task("adult_star", "ADULT*", codes, small_subset(codes.domain, triples(codes)))


def small_subset(domain: Domain, cliques: tuple[Clique, ...]) -> tuple[Clique, ...]:
    """Of random subsets by the seeds 0 to 999 the one with the fewest cells: still twice as many as the paper's."""
    cells = np.array([domain.cells(c) for c in cliques])
    subsets = [np.random.default_rng(s).choice(len(cliques), STAR_MARGINALS, replace=False) for s in range(1000)]
    return tuple(cliques[i] for i in np.sort(min(subsets, key=lambda chosen: int(cells[chosen].sum()))))


def survey(data: Path, names: tuple[str, ...] | None) -> tuple[Codes, NDArray[np.str_]]:
    """The stand-in for the American Community Survey, and the state of each person."""
    rows, states = acs.read(data)
    sizes = acs.sizes()
    codes = Codes.of(Schema.coded(sizes).domain, dict(zip(sizes, rows, strict=True)))
    return codes if names is None else columns(codes, names), np.array(states)


def acs_whole(data: Path) -> Task:
    """29 columns of Pennsylvania; California, Ohio, and a sample of the other states are public."""
    codes, states = survey(data, None)
    private, *others = (codes.take(np.flatnonzero(states == acs.STATES[s])) for s in ("pa", "ca", "oh"))
    rest = np.flatnonzero(~np.isin(states, list(acs.STATES.values())))
    drawn = np.sort(np.random.default_rng(SEED).choice(rest, len(others[0]), replace=False))
    tables = {"ca": others[0], "oh": others[1], "us": codes.take(drawn)}
    where = {"ca": "California", "oh": "Ohio", "us": "a random sample of the states but Pennsylvania and these two"}
    said = {s: f"the survey's public use microdata of 2018: {text}" for s, text in where.items()}
    return Task("acs", "ACS PA", private, triples(private), {s: Public(t, said[s]) for s, t in tables.items()})


def acs_reduced(data: Path) -> Task:
    """The fifteen columns of Pennsylvania with the fewest codes."""
    codes, states = survey(data, acs.REDUCED)
    private = codes.take(np.flatnonzero(states == acs.STATES["pa"]))
    return Task("acs_reduced", "ACS (reduced) PA", private, triples(private))


def acs_reduced_states(data: Path) -> Task:
    """The same fifteen columns of persons from all states: five times as many."""
    codes, _ = survey(data, acs.REDUCED)
    drawn = np.random.default_rng(SEED).choice(len(codes), STATES_ROWS, replace=False)
    private = codes.take(np.sort(drawn))
    return Task("acs_reduced_us", "ACS (reduced) of all states", private, triples(private))


def wide(data: Path) -> Task:
    """Connect four with noisy copies of its columns, a hundred in all, and every pair of them."""
    rows, sizes = widened(*_connect4(data), np.random.default_rng(SEED))
    codes = Codes.of(Schema.coded(sizes).domain, dict(zip(sizes, rows, strict=True)))
    return Task("wide", "100 columns", codes, tuple(combinations(codes.domain.attributes, 2)))


def widened(
    rows: prepare.Codes, sizes: Mapping[str, int], rng: np.random.Generator
) -> tuple[prepare.Codes, dict[str, int]]:
    """Columns copied in turn until there are a hundred; a share of the values of each copy is drawn uniformly."""
    names, all_rows, all_sizes = list(sizes), list(rows), dict(sizes)
    for i in range(WIDE_COLUMNS - len(names)):
        name, row = names[i % len(names)], rows[i % len(names)]
        anew = rng.random(row.size) < COPIED_WRONG
        all_rows.append(np.where(anew, rng.integers(0, sizes[name], row.size), row))
        all_sizes[f"{name}_copy{i // len(names) + 1}"] = sizes[name]
    return np.stack(all_rows), all_sizes


def _connect4(data: Path) -> tuple[prepare.Codes, dict[str, int]]:
    """Its columns hold 0, 1 and 2: empty, one player's, the other's; the target which of them wins, or none."""
    table = pq.read_table(data / "uci" / "connect4.parquet")
    rows = np.stack([column.to_numpy().astype(np.int64) for column in table.columns])
    if rows.min() < 0 or rows.max() > 2:
        raise ValueError("connect4 holds codes outside 0..2")
    return rows, dict.fromkeys(table.column_names, 3)


TASKS: dict[str, Callable[[Path], Task]] = {
    "adult_reduced": adult_reduced,
    "acs_reduced": acs_reduced,
    "acs_reduced_us": acs_reduced_states,
    "adult": adult,
    "acs": acs_whole,
    "adult_star": adult_star,
    "wide": wide,
}
TITLES = {
    "adult_reduced": "ADULT (reduced)", "acs_reduced": "ACS (reduced) PA",
    "acs_reduced_us": "ACS (reduced) of all states", "adult": "ADULT", "acs": "ACS PA",
    "adult_star": "ADULT*", "wide": "100 columns",
}  # fmt: skip
