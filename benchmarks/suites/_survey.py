"""The American Community Survey as codes, by the groups and bounds of ``survey.toml``.

The extracts of the paper on GEM (Pennsylvania, California, Ohio) are not available. This stands
in for them: a random part of the survey's persons of 2018 with an income, all states. The columns
and how coarse they are follow the paper's published domains where the survey's questions are the
same. Nothing here is read from the rows: a value outside is an error.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.core.library import Codes
from benchmarks.core.tables import codes_of

STATES = {"pa": "Pennsylvania/PA", "ca": "California/CA", "oh": "Ohio/OH"}


@dataclass(frozen=True)
class Column:
    """A column of the survey: how its values become codes. See ``survey.toml``."""

    name: str
    source: str
    groups: Sequence[str | Sequence[str]] = ()
    edges: Sequence[int] = ()
    missing: bool = False
    hours: bool = False
    states: bool = False

    @property
    def size(self) -> int:
        """The number of codes."""
        if self.hours:
            return 13
        return len(self.groups) + self.states if self.groups else len(self.edges) + 1 + self.missing

    def code(self, value: Any) -> int:
        """Return the code of a value. A ValueError reports one outside, without naming it."""
        if self.hours:
            return _hours(value)
        return self._group(value) if self.groups else self._bin(value)

    def _bin(self, value: float | None) -> int:
        if value is None and not self.missing:
            raise ValueError(f"column {self.source!r} holds a missing value")
        return len(self.edges) + 1 if value is None else bisect_right(self.edges, value)

    def _group(self, value: str) -> int:
        for code, group in enumerate(self.groups):
            for text in (group,) if isinstance(group, str) else group:
                if value == text or (text.endswith("...") and value.startswith(text[:-3])):
                    last = code == len(self.groups) - 1
                    return code + (self.states and last and "/" in value)
        raise ValueError(f"column {self.source!r} holds a text that is none of its categories")

    def codes(self, values: Any) -> np.ndarray:
        """Return the codes of a whole column. Every distinct value is coded once."""
        encoded = pc.dictionary_encode(values.combine_chunks(), null_encoding="encode")
        codes = np.array([self.code(v) for v in encoded.dictionary.to_pylist()], dtype=np.int64)
        return codes[encoded.indices.to_numpy()]


def _hours(value: str) -> int:
    if value.startswith("N/A"):
        return 12
    time, half = value.split()[:2]
    return (int(time.split(":")[0]) % 12 + 12 * (half == "p.m.")) // 2


COLUMNS = tuple(
    Column(**column)
    for column in tomllib.loads(Path(__file__).with_name("survey.toml").read_text())["column"]
)
REDUCED = tuple(c.name for c in COLUMNS[:15])
"""The fifteen columns with the fewest codes: 921,600 cells in all."""


def read(data: Path) -> tuple[Codes, np.ndarray]:
    """Return the codes of all persons, and the state of each."""
    table = pq.read_table(data / "acs" / "acs_income_2018_us_wide.parquet")
    rows = [c.codes(table[c.source]) for c in COLUMNS]
    return codes_of({c.name: c.size for c in COLUMNS}, rows), np.array(table["State"].to_pylist())
