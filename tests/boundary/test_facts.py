"""What is said of the rows without being paid for: exactly what the promise lists, and nothing else.

Each fact of the list is provoked from the command line beside a table that passes. Then tables are damaged at random,
in their cells and in their bytes: whatever refuses them must say one of the same things.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from margrave import read_table
from margrave.accounting import Budget
from margrave.errors import DataError, PersonWarning
from margrave.schema import Categorical, Impossible, Integer, Schema
from tests.support.command_line import COLUMNS, ROWS, CommandLine, Row, Step, csv_of
from tests.support.mutants import ROOT

BUDGET = ["-s", "schema.toml", "-e", "2", "--delta", "1e-9", "--seed", "1"]
LEDGER = ["--ledger", "v.ledger", "--dataset", "visits"]
OUTPUTS = ["-o", "rows.csv", "--release", "r.margrave"]
CAP = [
    "ledger",
    "init",
    "v.ledger",
    "--dataset",
    "visits",
    "--rho",
    str(Budget.approx(2.0, 1e-9).rho),
]

JOBS = ["clerk", "nurse", "cook", "pilot", "surgeon"]
STRICT = Schema(
    (
        Categorical("job", JOBS),
        Integer("age", -5, 120, bins=4, outside="refuse"),
        Categorical("ill", ["true", "false"]),
    ),
    ignore=["income"],
    person="who",
    constraints=(Impossible({"job": "pilot", "ill": "true"}, violating="refuse"),),
)
SOUND: list[Row] = [
    (who, job or "clerk", age, income, ill or "false") for who, job, age, income, ill in ROWS
]
HELD = csv_of(SOUND).encode()
COUNT = r"(1 value|\d[\d,]* values)"


def changed(column: str, value: str, *others: int, rows: Sequence[Row] = SOUND) -> list[Row]:
    """The rows, with another value in one column of the first and of those named."""
    at = COLUMNS.index(column)
    return [
        (*row[:at], value, *row[at + 1 :]) if i in (0, *others) else row
        for i, row in enumerate(rows)
    ]


@dataclass(frozen=True)
class Fact:
    """What a refusal may say, how the bad table differs, and what the run was asked for besides."""

    says: str
    bad: Sequence[Row] | bytes
    options: Sequence[str] = ("--unit", "add-remove-person:2")
    schema: Schema = STRICT
    sound: Sequence[Row] | bytes = field(default_factory=lambda: SOUND)
    files: Mapping[str, str] = field(default_factory=dict)


PUBLIC = ["-m", "pmw-pub", "--public", "public.csv", "--attestation", "published last year"]
PUBLIC_SCHEMA = replace(STRICT, person=None, ignore=["who", "income"])

FACTS: dict[str, list[Fact]] = {
    "values outside the schema": [
        Fact(rf"^Column '\w+': {COUNT} outside the schema, and its policy is 'refuse'", changed("age", "200", 3, 4)),
        Fact(rf"^Column '\w+': {COUNT} outside the schema, and its policy is 'refuse'", changed("job", "abbot")),
    ],
    "missing or unreadable values": [
        Fact(rf"^Column '\w+': {COUNT} missing\. Allow missing values", changed("ill", "", 7)),
        Fact(rf"^Column '\w+': {COUNT} cannot be read as its kind", changed("age", "old", 7)),
    ],
    "rows without a person": [Fact(rf"^{COUNT} missing in the column of persons", changed("who", "", 7, 8))],
    "rows that violate a constraint": [
        Fact(
            r"^(1 row violates|\d[\d,]* rows violate) the constraint ",
            changed("job", "pilot", 1, rows=changed("ill", "true", 1)),
        )
    ],
    "a column of unknown values": [
        Fact(r"^Column '\w+': not one of its values (is one that the schema knows|can be read as its kind)", bad)
        for bad in (
            [(who, "abbot", *rest) for who, _, *rest in SOUND],
            [(who, job, "old", *rest) for who, job, _, *rest in SOUND],
        )
    ]
    + [
        Fact(
            r"^Column '\w+': not one of the values that can be read lies in its bounds, ",
            [(who, job, "200", *rest) for who, job, _, *rest in SOUND],
        )
    ],
    "a table without rows": [Fact(r"^The table has no rows", [])],
    "a public table of the private records": [
        Fact(
            r"^The public table's records are the private ones",
            SOUND,
            PUBLIC,
            PUBLIC_SCHEMA,
            SOUND[:-1],
            {"public.csv": csv_of(SOUND)},
        )
    ],
    "public columns of other records": [
        Fact(
            r"^The public columns are not those of the private table's records",
            changed("age", "119"),
            ["-m", "aim-pub", *PUBLIC[2:], "--same-records", "--public-columns", "age", "--unit", "replace-row"],
            PUBLIC_SCHEMA,
            SOUND,
            {"public.csv": csv_of(SOUND)},
        )
    ],
    "a damaged file": [
        Fact(rf"table\.csv{says}", bad)
        for says, bad in (
            (r": line \d+ does not have as many fields as the header", HELD + b"p1,clerk\n"),
            (r": a quote opened in (a line|line \d+) is never closed", HELD + b'p1,"clerk,1,2,true\n'),
            (r": (a line|line \d+) is not clean CSV", HELD + b"p1,clerk,3,4,true\r\n" * 3),
            (r" is not text in UTF-8( \(line \d+\))?", HELD + b"p1,cl\xe9rk,1,2,true\n"),
            (r" (has no header|cannot be read: it is damaged, or no CSV or Parquet file)", b""),
            (r" is (not text in UTF-8, but in UTF-16|a zip archive|an? \w+ database)", b"PK\3\4 and so on"),
            (r" is not text, so it is not a CSV file", b"who\0,class\n"),
            (r" is damaged or not compressed as its beginning says", b"\x1f\x8b and so on"),
        )
    ],
    "names of columns": [
        Fact(says, csv_of(SOUND, names.split(",")).encode())
        for says, names in (
            (r'^The table has no column ".+", which the schema names\.', "who,trade,age,income,ill"),
            (r'^The schema has no column ".+", which the table holds', "who,job,age,town,ill"),
            (r"^No column of the table has a name that the schema knows", "a,b,c,d,e"),
            (r"^Columns \d+ and \d+ of table\.csv have the same name", "who,job,job,income,ill"),
            (r"^Column \d+ of table\.csv has no name", "who,job,age,,ill"),
            (r"^The first line of table\.csv is a single field, and the schema has \d+ columns", "who job age ill"),
            (r"^The header of table\.csv cannot be read", '"who,job,age,income,ill'),
        )
    ],
}  # fmt: skip
"""The facts that refuse a table. "the number of rows" does not, and has a test of its own."""

JOB = Schema(
    (Categorical("job", ["clerk", "nurse"], other=True),), ignore=["who", "age", "income", "ill"]
)
CLERKS: list[Row] = [(who, "clerk", *rest) for who, _, *rest in ROWS]
WARNINGS: dict[str, Fact] = {
    "categories that all occur": Fact(
        r"^NOT PRIVATE, for the custodian alone: Bounds or categories as these rows have them: job\.",
        changed("job", "nurse", rows=CLERKS),
        (),
        JOB,
        CLERKS,
    ),
    "many values outside the schema": Fact(
        r"^NOT PRIVATE, for the custodian alone: Column 'job': many of its values \(above 3 %\) are not",
        changed("job", "abbot", *range(1, 9)),
        (),
        Schema((Categorical("job", JOBS, missing=True),), ignore=JOB.ignore),
    ),
    "doubtful person IDs": Fact(
        r"\d+ of the \d+ identifiers of persons equal another but for case",
        changed("who", "P1"),
        ("--unit", "add-remove-person:2"),
    ),
}
"""The facts that are said to the custodian beside a run that goes on."""

ELSEWHERE = {
    "questions of a draft": "tests/profiling/test_draft_in_python.py",
    "what a draft takes as public": "tests/profiling/test_draft_in_python.py",
    "few rows for columns to learn": "tests/profiling/test_draft_in_python.py",
}
"""The facts that only a draft, or a run in Python, states, with the tests of their marks."""

CASES = [(name, fact) for name, facts in FACTS.items() for fact in facts]


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capfd)


def test_the_promise_lists_each_fact() -> None:
    section = (
        (ROOT / "docs" / "promise.md")
        .read_text(encoding="utf-8")
        .split("## Facts that are not paid for")[1]
    )
    listed = re.findall(r"^\| \*\*(.+?)\*\* \|", section.split("\n## ")[0], re.MULTILINE)
    assert listed == [*FACTS, *WARNINGS, *ELSEWHERE, "the row count"]


@pytest.mark.parametrize(
    ("name", "fact"), CASES, ids=[f"{name} {i}" for i, (name, _) in enumerate(CASES)]
)
def test_a_refusal_says_what_is_listed_and_costs_nothing(
    here: CommandLine, name: str, fact: Fact
) -> None:
    run = [
        "synthesize",
        "table.csv",
        *BUDGET,
        *([] if "-m" in fact.options else ["-m", "independent"]),
        *fact.options,
        *OUTPUTS,
        *LEDGER,
    ]
    unit = next(
        (fact.options[i + 1] for i, o in enumerate(fact.options) if o == "--unit"), "add-remove-row"
    )
    steps: list[Step] = [[*CAP, "--unit", unit], run, ["ledger", "show", "v.ledger", "--json"]]
    here.differing(
        {"sound": fact.sound, "bad": fact.bad}, steps, schema=fact.schema, files=fact.files
    )
    assert here.first["code of step 1"] == b"0", here.first
    error = here.last["stderr of step 1"].decode()
    assert (here.last["code of step 1"], here.last["stdout of step 1"]) == (b"4", b"")
    assert re.search(fact.says, error.removeprefix("Error: ")), error
    assert b'"runs": []' in here.last["stdout of step 2"]
    assert {n[5:] for n in here.last if n.startswith("file ")} == {
        "schema.toml",
        "v.ledger",
        *fact.files,
    }


@pytest.mark.parametrize("name", WARNINGS)
def test_a_warning_reaches_standard_error_and_nothing_else(here: CommandLine, name: str) -> None:
    fact = WARNINGS[name]
    steps = [["synthesize", "table.csv", *BUDGET, "-m", "independent", *fact.options, *OUTPUTS]]
    differing = here.differing({"sound": fact.sound, "bad": fact.bad}, steps, schema=fact.schema)
    assert differing == {"stderr of step 0"}
    assert (here.first["code of step 0"], here.last["code of step 0"]) == (b"0", b"0")
    said_of = [here.first["stderr of step 0"].decode(), here.last["stderr of step 0"].decode()]
    assert [bool(re.search(fact.says, text, re.MULTILINE)) for text in said_of] == [False, True]


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        (Categorical("job", JOBS, missing=True), "abbot", b"They are counted as missing. Are they spelled"),
        (Integer("age", -5, 120, bins=4), "200", b"Values beyond low and high are moved to these bounds: correct low"),
        (Integer("age", -5, 120, bins=4), "7.5", b"have decimals, rounded to whole numbers. If the decimals matter"),
    ],
)  # fmt: skip
def test_the_words_on_many_values_hold_no_number_of_them(
    here: CommandLine, column: Categorical | Integer, value: str, says: bytes
) -> None:
    one, few, many = (changed(column.name, value, *range(1, n)) for n in (1, 8, 12))
    schema = Schema((column,), ignore=[n for n in COLUMNS if n != column.name])
    steps: list[Step] = [["synthesize", "table.csv", *BUDGET, "-m", "independent", *OUTPUTS]]
    assert here.differing({"few": few, "many": many}, steps, schema=schema) == set()
    assert says in here.first["stderr of step 0"]
    here.differing({"few": few, "one": one}, steps, schema=schema)
    assert b"many of its values" not in here.last["stderr of step 0"]


def test_the_number_of_rows_is_in_the_release_where_the_unit_makes_it_public(
    here: CommandLine,
) -> None:
    steps = [
        [
            "synthesize",
            "table.csv",
            *BUDGET,
            "-m",
            "independent",
            *OUTPUTS,
            "--unit",
            "replace-row",
            "--json",
        ]
    ]
    differing = here.differing({"all": ROWS, "fewer": ROWS[:-1]}, steps)
    assert {"stdout of step 0", "file r.margrave"} <= differing
    assert b"the number of records, 60" in here.first["stdout of step 0"]


def said(error: DataError) -> list[str]:
    """The sentences of a refusal that none of the facts says."""
    patterns = [fact.says for _, fact in CASES]
    return [
        line for line in error.message.splitlines() if not any(re.search(p, line) for p in patterns)
    ]


CELLS = {
    "who": ["", "NA", "p1", "P1"],
    "job": ["", "abbot", "pilot", "clerk", '"a,b"', '"'],
    "age": ["", "old", "200", "-5", "1e400", "nan", "7.5"],
    "income": ["", "x", "-1"],
    "ill": ["", "true", "maybe"],
}


@st.composite
def damaged_tables(draw: st.DrawFn) -> bytes:
    """A table with some other cells, a number of rows, maybe another header, and maybe damage to its bytes."""
    rows = [list(row) for row in SOUND[: draw(st.sampled_from([0, 1, 5, 12, 60]))]]
    for _ in range(draw(st.integers(0, 4)) if rows else 0):
        at = draw(st.integers(0, len(COLUMNS) - 1))
        value = draw(st.sampled_from(CELLS[COLUMNS[at]]))
        for row in rows if draw(st.booleans()) else [draw(st.sampled_from(rows))]:
            row[at] = value
    names = list(COLUMNS)
    if draw(st.integers(0, 3)) == 0:
        names[draw(st.integers(0, 4))] = draw(
            st.sampled_from(["", "job", "Job", "town", "12", '"'])
        )
    held = csv_of([tuple(row) for row in rows], names).encode()
    return draw(st.sampled_from(DAMAGE))(held, draw(st.randoms(use_true_random=False)))


def whole(held: bytes, _: random.Random) -> bytes:
    return held


def cut(held: bytes, rng: random.Random) -> bytes:
    return held[: rng.randrange(len(held))]


def with_bytes(held: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(held))
    return (
        held[:at]
        + rng.choice([b'"', b"\0", b"\r", b"\r\n", b"\n\n", b"\xff", b",", b"\x1f\x8b"])
        + held[at:]
    )


def in_utf_16(held: bytes, _: random.Random) -> bytes:
    return held.decode().encode("utf-16")


DAMAGE: list[Callable[[bytes, random.Random], bytes]] = [
    whole,
    whole,
    whole,
    cut,
    with_bytes,
    with_bytes,
    in_utf_16,
]


def unlisted(held: bytes) -> list[str]:
    """What is said of a table in these bytes that is not listed."""
    Path("table.csv").write_bytes(held)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PersonWarning)  # a doubt that is listed
            read_table("table.csv", STRICT)
    except DataError as error:
        return said(error)
    return []


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ANY_FOLDER = [HealthCheck.function_scoped_fixture]


@pytest.mark.filterwarnings("ignore::margrave.errors.PersonWarning")
@pytest.mark.usefixtures("in_a_folder")
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=ANY_FOLDER,
)
@given(held=damaged_tables())
def test_a_damaged_table_is_refused_by_what_is_listed(held: bytes) -> None:
    assert unlisted(held) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrave.errors.PersonWarning")
@pytest.mark.usefixtures("in_a_folder")
@settings(max_examples=5000, deadline=None, suppress_health_check=ANY_FOLDER)
@given(held=damaged_tables())
def test_many_damaged_tables_are_refused_by_what_is_listed(held: bytes) -> None:
    assert unlisted(held) == []


def test_a_sentence_that_is_not_listed_would_be_seen() -> None:
    assert (
        said(DataError("Column 'age': 3 values outside the schema, and its policy is 'refuse'."))
        == []
    )
    assert said(DataError("Column 'age': its mean is above 50.")) != []
