"""The American Community Survey as codes, by bounds and groups that are public: the survey's own categories.

The paper's extracts (Pennsylvania, California, Ohio) are not to be had; this stands in for them: a random part of the
survey's persons of 2018 with an income, all states. The columns and how coarse they are follow the paper's published
domains, where the survey's questions are the same. Nothing here is read from the rows: a value outside is an error.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from prepare import Codes


@dataclass(frozen=True)
class Column:
    """A column: its name here and in the file, how many codes it has, and the code of a value (None: missing)."""

    name: str
    source: str
    size: int
    code: Callable[[Any], int]


def listed(name: str, source: str, *groups: str | tuple[str, ...]) -> Column:
    """A code for each group of texts; a text that ends in "..." stands for all that begin so."""
    lists = [(group,) if isinstance(group, str) else group for group in groups]
    members = [(text, code) for code, group in enumerate(lists) for text in group]

    def code(value: str) -> int:
        for text, found in members:
            if value == text or (text.endswith("...") and value.startswith(text[:-3])):
                return found
        raise ValueError(f"column {source!r} holds a text that is none of its categories")

    return Column(name, source, len(groups), code)


def binned(name: str, source: str, *edges: int, missing: bool = False) -> Column:
    """A code for each bin: below the first edge, from edge to edge, from the last; one more if it may be missing."""

    def code(value: float | None) -> int:
        if value is None and not missing:
            raise ValueError(f"column {source!r} holds a missing value")
        return len(edges) + 1 if value is None else bisect_right(edges, value)

    return Column(name, source, len(edges) + 1 + missing, code)


def clock(name: str, source: str) -> Column:
    """Two hours of the day to a code, from midnight; the last for whoever did not go to work."""

    def code(value: str) -> int:
        if value.startswith("N/A"):
            return 12
        time, half = value.split()[:2]
        return (int(time.split(":")[0]) % 12 + 12 * (half == "p.m.")) // 2

    return Column(name, source, 13, code)


def birthplace(name: str, source: str) -> Column:
    """This state, its neighbours, other states, islands of the United States, and the world by its largest groups."""
    groups = listed(
        name, source, "Pennsylvania/PA",
        ("New York/NY", "New Jersey/NJ", "Delaware/DE", "Maryland/MD", "West Virginia/WV", "Ohio/OH"),
        ("Puerto Rico", "Guam", "US Virgin Islands", "American Samoa", "Commonwealth of the Northern Mariana Islands"),
        "Mexico", "India", "China", "Philippines", "...",
    )  # fmt: skip
    other_states = groups.size

    def code(value: str) -> int:
        found = groups.code(value)
        return other_states if found == groups.size - 1 and "/" in value else found

    return Column(name, source, groups.size + 1, code)


YES = ("No", "Yes")

COLUMNS = (
    listed("sex", "Gender", "Female", "Male"),
    listed("marital", "Marital Status", "Married", "Widowed", "Divorced", "Separated", "Never married..."),
    listed("selfcare", "Self-care difficulty", *YES),
    listed("hearing", "Hearing difficulty", *YES),
    listed("vision", "Vision difficulty", *YES),
    listed("independent", "Independent living difficulty", *YES),
    listed("walking", "Ambulatory difficulty", *YES),
    listed("cognitive", "Cognitive difficulty", *YES),
    listed("nativity", "Nativity", "Native", "Foreign born"),
    listed("employer_insurance", "Insurance through a current or former employer or union", *YES),
    listed("own_insurance", "Insurance purchased directly from an insurance company", *YES),
    listed("birth_last_year", "Gave birth to child within the past 12 months", "N/A...", *YES),
    listed("moved", "Mobility status", "Yes, same house...", "No, different house...", "No, outside..."),
    listed("military", "Military service", "Now on...", "Only on...", "On active duty in...", "Never served..."),
    listed("english", "Ability to speak English", "N/A...", "Very well", "Well", "Not well", "Not at all"),
    binned("income", "Income", 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000, 200_000),
    binned("age", "Age", 20, 25, 30, 35, 40, 45, 50, 60, 70),
    listed(
        "class", "Workclass", "Employee of a private for-profit...", "Employee of a private not-for-profit...",
        "Local government...", "State government...", "Federal government...", "Self-employed in own not...",
        "Self-employed in own incorporated...", "Working without pay...",
    ),
    listed(
        "education", "Education", ("No schooling completed", "Nursery school, preschool", "Kindergarten"),
        ("Grade 1", "Grade 2", "Grade 3", "Grade 4"), ("Grade 5", "Grade 6", "Grade 7", "Grade 8"), "Grade 9",
        "Grade 10", "Grade 11",
        ("12th grade - no diploma", "Regular high school diploma", "GED or alternative credential"),
        ("Some college, but less than 1 year", "1 or more years of college credit, no degree"), "Associate's degree",
        "Bachelor's degree", ("Master's degree", "Professional degree...", "Doctorate degree"),
    ),
    listed(
        "occupation", "Occupation", "MGR-...", "BUS-...", "FIN-...", "CMM-...", "ENG-...", "SCI-...", "CMS-...",
        "LGL-...", "EDU-...", "ENT-...", "MED-...", "HLS-...", "PRT-...", "EAT-...", "CLN-...", "PRS-...", "SAL-...",
        "OFF-...", "FFF-...", "CON-...", "EXT-...", "RPR-...", "PRD-...", "TRN-...", "MIL-...", "...",
    ),
    birthplace("birthplace", "Place of birth"),
    listed(
        "race", "Race", "White alone", "Black or African American alone", "Asian alone", "American Indian alone",
        "Alaska Native alone", "American Indian and Alaska Native...", "Native Hawaiian...", "Some Other Race alone",
        "Two or More Races",
    ),
    listed(
        "citizen", "Citizenship status", "Born in the U.S.", "Born in Puerto Rico...", "Born abroad...",
        "U.S. citizen by naturalization", "Not a citizen of the U.S.",
    ),
    binned("riders", "Vehicle occupancy", 2, 3, 4, missing=True),
    binned("travel", "Travel time to work", 5, 10, 15, 20, 25, 30, 35, 45, 60, 90, missing=True),
    listed(
        "transport", "Means of transportation to work", "Car, truck, or van", "Bus or trolley bus", "Streetcar...",
        "Subway or elevated", "Railroad", "Ferryboat", "Taxicab", "Motorcycle", "Bicycle", "Walked", "Worked at home",
        "Other method",
    ),
    listed(
        "parents", "Employment status of parents", "N/A...", "Both parents...", "Father only...", "Mother only...",
        "Neither parent...", "Father in...", "Father not...", "Mother in...", "Mother not...",
    ),
    clock("arrives", "Time of arrival at work - hour and minute"),
    clock("leaves", "Time of departure for work - hour and minute"),
)  # fmt: skip

REDUCED = tuple(c.name for c in COLUMNS[:15])
"""The fifteen columns with the fewest codes: 921,600 cells in all, and 455 three-way marginals."""

STATES = {"pa": "Pennsylvania/PA", "ca": "California/CA", "oh": "Ohio/OH"}


def read(data: Path) -> tuple[Codes, list[str]]:
    """The codes of all persons, one row a column, and their states."""
    table = pq.read_table(data / "acs" / "acs_income_2018_us_wide.parquet")
    return np.stack([coded(table[c.source], c) for c in COLUMNS]), table["State"].to_pylist()


def coded(values: Any, column: Column) -> np.ndarray:
    """One column's codes: every distinct value is looked at once."""
    encoded = pc.dictionary_encode(values.combine_chunks(), null_encoding="encode")
    codes = np.array([column.code(v) for v in encoded.dictionary.to_pylist()], dtype=np.int64)
    return codes[encoded.indices.to_numpy()]


def sizes(names: Iterable[str] | None = None) -> dict[str, int]:
    """How many codes each column has."""
    known = {c.name: c.size for c in COLUMNS}
    return known if names is None else {n: known[n] for n in names}
