"""The tables: codes by the paper's rule, a target, and four fifths of the rows private."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from margrave import Schema
from margrave.schema import Codes

BINS = 32
"""The most codes that a column has."""
EPSILONS = (2.5, 1.0, 0.2)
DELTA = 1e-5
SEED = 2024
"""Of the split of the rows, which is the same in every run. It is public; no noise comes from it."""


@dataclass(frozen=True, eq=False)
class Task:
    """The private rows, the test rows, what is to be predicted, and by what error."""

    name: str
    private: Codes
    test: Codes
    target: str
    regression: bool

    @property
    def schema(self) -> Schema:
        """Integer codes, as many as the bins and names of each column."""
        return Schema.coded(dict(zip(self.private.domain, self.private.domain.sizes, strict=True)))


@dataclass(frozen=True)
class Source:
    """Where a table lies, which of its columns stay out, and whether its target is a quantity."""

    path: str
    without: tuple[str, ...] = ()
    regression: bool = False

    def read(self, name: str, data: Path) -> Task:
        """The task. Rows in which anything is missing are left out, as in the paper."""
        table = pq.read_table(data / f"{self.path}.parquet").drop_columns(list(self.without))
        told = json.loads((data / f"{self.path}.schema.json").read_text())
        known = {c["name"]: c for c in told["columns"]}
        codes = coded(complete(table), known)
        order = np.random.default_rng(SEED).permutation(len(codes))
        cut = len(codes) * 4 // 5
        private, test = (codes.take(np.sort(part)) for part in (order[:cut], order[cut:]))
        return Task(name, private, test, told["target"], self.regression)


SOURCES = {
    "diabetes": Source("privpgd/diabetes130_balanced"),
    "diabetes7": Source("privpgd/diabetes130_balanced", without=("time_in_hospital",)),
    "acs": Source("acs/acs_income_2018_us_100k"),
    "diamonds": Source("misc/diamonds", regression=True),
    "adult": Source("aim/adult"),
    "flights": Source("misc/nycflights13", without=("year", "tailnum", "time_hour"), regression=True),
}
TITLES = {
    "diabetes": "Diabetes", "diabetes7": "Diabetes (7)", "acs": "ACS Income", "diamonds": "Diamonds",
    "adult": "Adult", "flights": "Flights",
}  # fmt: skip
PAPER = {"diabetes": "Diab.", "diabetes7": "Diab.", "acs": "Inc."}
"""The paper's tables that these stand for."""


def load(name: str, data: Path) -> Task:
    """A task by its name."""
    return SOURCES[name].read(name, data)


def complete(table: pa.Table) -> pa.Table:
    """The rows without a missing value."""
    whole = np.ones(table.num_rows, dtype=bool)
    for column in table.columns:
        whole &= np.asarray(column.is_valid())
    return table.filter(pa.array(whole))


def coded(table: pa.Table, known: Mapping[str, Mapping[str, Any]]) -> Codes:
    """Every column as codes, by what the schema file says of it."""
    found = {name: column_codes(table[name], known[name]) for name in table.column_names}
    domain = Schema.coded({name: size for name, (_, size) in found.items()}).domain
    return Codes.of(domain, {name: codes for name, (codes, _) in found.items()})


def column_codes(values: pa.ChunkedArray, told: Mapping[str, Any]) -> tuple[NDArray[np.int64], int]:
    """The codes of one column, and how many there are: codes as they are, numbers in bins, names in their order."""
    if told["type"] == "coded":
        size = int(told["domain_size"])
        return grouped(np.asarray(values, dtype=np.int64), size), min(size, BINS)
    if told["type"] in ("integer", "float"):
        whole = told["type"] == "integer"
        return binned(np.asarray(values, dtype=np.float64), told["min"], told["max"], whole=whole)
    return named(values, told.get("categories"))


def binned(
    values: NDArray[np.float64], low: float, high: float, *, whole: bool
) -> tuple[NDArray[np.int64], int]:
    """Equal bins of the range; whole numbers of a range of at most ``BINS`` keep a code each."""
    if whole and high - low < BINS:
        return (values - low).astype(np.int64), int(high - low) + 1
    at = np.floor((values - low) / (high - low) * BINS).astype(np.int64)
    if at.min(initial=0) < 0 or at.max(initial=0) > BINS:
        raise ValueError("a column holds values outside the range of its schema file")
    return np.minimum(at, BINS - 1), BINS


def named(values: pa.ChunkedArray, categories: Sequence[Any] | None) -> tuple[NDArray[np.int64], int]:
    """Places among the categories, in groups; where the schema file lists none, among the values in their order."""
    texts = values.to_pylist()
    order = sorted(set(texts)) if categories is None else list(categories)
    place = {text: i for i, text in enumerate(order)}
    return grouped(np.array([place[t] for t in texts], dtype=np.int64), len(order)), min(len(order), BINS)


def grouped(codes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """At most ``BINS`` groups of neighbouring codes, as equal in number as can be."""
    return codes if size <= BINS else codes * BINS // size

