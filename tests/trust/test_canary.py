"""Canaries: values that occur in the private rows alone must be in nothing that leaves, whatever happens."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import run
from margrave.domain import Domain
from margrave.mechanisms import MECHANISMS, Mechanism
from margrave.models import BestResponse, Fit
from margrave.privacy import SeededRandomness, protect
from margrave.schema import Categorical, Date, Integer, Real, Schema
from tests.support.conformance import (
    ALONE,
    CASES,
    NO_RECORDS,
    SIZES,
    measures,
    memory_table,
    run_on,
    some_rows,
    standing_in,
)
from tests.support.first_cases import FIRST_CASES
from tests.support.rounds import WrappedFit

WORDS = [
    f"Canary-{word}"
    for word in ("Aldous", "Béatrice", "Chinwe", "Dmitri", "Eun-ji", "Fatima", "Guðrún", "Hélio")
]
PERSONS = [f"NHS-{n}" for n in (7719283, 5518272, 3391827, 8827163, 1192837)]
NUMBERS = [314159265, 271828182, 161803398]
REALS = ["577215.664901", "915965.594177"]
DATES = ["1901-07-13", "1899-12-02"]
CANARIES = [*WORDS, *PERSONS, *map(str, NUMBERS), *REALS, *DATES]

SCHEMA = Schema(
    (
        Categorical("job", ["clerk", "nurse"], other=True),
        Integer("age", 0, 99, bins=10, outside="clip", missing=True),
        Real("income", 0.0, 1000.0, bins=5, outside="missing", missing=True),
        Date("seen", date(2020, 1, 1), date(2020, 12, 31), bins=4, outside="clip", missing=True),
    ),
    person="who",
)  # fmt: skip


def rows_of(canaries: bool) -> list[list[str]]:
    """A hundred plain rows of forty persons, and each canary once in a row like the others."""
    rng = np.random.default_rng(6)
    rows = [
        [
            f"p{i % 40}", ("clerk", "nurse")[rng.integers(2)], str(rng.integers(100)),
            f"{rng.uniform(0, 1000):.2f}", f"2020-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
        ]
        for i in range(100)
    ]  # fmt: skip
    if canaries:
        columns = (PERSONS, WORDS, map(str, NUMBERS), REALS, DATES)
        for column, values in enumerate(columns):
            for i, value in enumerate(values):
                rows[7 * i + column][column] = value
    return rows


def csv_of(rows: list[list[str]]) -> str:
    return "\n".join(",".join(r) for r in [["who", "job", "age", "income", "seen"], *rows]) + "\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(csv_of(rows_of(canaries=True)), encoding="utf-8")
    SCHEMA.save("schema.toml")
    return tmp_path


def text_in(array: np.ndarray[Any, Any]) -> str:
    """The canaries that are values of an array. Among the digits of many floats, those of a canary occur by chance."""
    if array.dtype.kind not in "iuf":
        return repr(array.tolist())
    kind = array.dtype if array.dtype.kind == "f" else np.float64
    numbers = [*map(str, NUMBERS), *REALS]
    return " ".join(text for text in numbers if (array == np.float64(text).astype(kind)).any())


def texts_in(path: Path) -> str:
    """All that a file holds: as it is, as text, the members of a zip, the columns of a Parquet file."""
    found = [path.read_bytes()]
    if path.suffix == ".margrave":
        with zipfile.ZipFile(path) as archive:
            found += [archive.read(n) for n in archive.namelist()]
            arrays = [np.load(io.BytesIO(archive.read(n))) for n in archive.namelist()[1:]]
            found += [text_in(array).encode() for array in arrays]
    if path.suffix == ".parquet":
        rows = pyarrow.parquet.read_table(path)
        found += [repr(rows.to_pylist()).encode(), repr(rows.schema.metadata).encode()]
    return "\n".join(f.decode("utf-8", "replace") + f.decode("utf-16", "replace") for f in found)


def canaries_in(text: str) -> list[str]:
    """Those that occur, also with their letters escaped, their thousands set off or their case changed."""
    plain = text.lower().replace("_", "").replace(",", "")
    return [c for c in CANARIES if c.lower() in plain or json.dumps(c.lower())[1:-1] in plain]


@dataclass
class Ear:
    """What is said on standard output and error and to the loggers while commands run."""

    capsys: pytest.CaptureFixture[str]
    log: io.StringIO

    def all(self) -> str:
        out, err = self.capsys.readouterr()
        return out + err + self.log.getvalue()


@pytest.fixture
def ear(capsys: pytest.CaptureFixture[str]) -> Iterator[Ear]:
    log, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(log), root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        yield Ear(capsys, log)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


BUDGET = ["--epsilon", "3", "--delta", "1e-9"]

FEWER_ROUNDS = {
    "rap-plus": ["--epochs", "2"],
    "gem": ["--rounds", "3"],
    "aim-mixture": ["--rounds", "3"],
    "rap": ["--rounds", "3"],
}
"""Options of mechanisms whose rounds take long."""


@pytest.mark.parametrize(
    "unit", ["add-remove-row", pytest.param("replace-person:2", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("mechanism", ALONE)
def test_no_canary_leaves_a_run(here: Path, ear: Ear, mechanism: str, unit: str) -> None:
    """20 canaries, each in one row: 0 in every file written and every word said."""
    assert len(CANARIES) == 20
    private = {"table.csv", "schema.toml"}
    outputs = ["--release", "r.margrave", "--report", "r.html"]
    if mechanism not in NO_RECORDS:
        outputs += ["-o", "rows.parquet"]
    base = [
        "table.csv",
        "--schema",
        "schema.toml",
        *BUDGET,
        "--unit",
        unit,
        "--mechanism",
        mechanism,
        *(FEWER_ROUNDS.get(mechanism, []) if unit == "add-remove-row" else []),
    ]
    assert run(["synthesize", *base, *outputs]) == 0
    assert run(["certificate", "r.margrave"]) == 0
    assert run(["certificate", "r.margrave", "--json"]) == 0
    if mechanism not in NO_RECORDS:
        assert run(["sample", "r.margrave", "-o", "more.csv", "-n", "400"]) == 0
    assert run(["schema", "check", "table.csv", "--schema", "schema.toml"]) == 0
    written = [p for p in here.iterdir() if p.name not in private]
    assert len(written) == (4 if mechanism not in NO_RECORDS else 2)
    for path in written:
        assert canaries_in(texts_in(path)) == [], path.name
    assert canaries_in(ear.all()) == []


def test_the_scan_sees_a_canary(here: Path) -> None:
    """In every kind of file, and as it is written there."""
    assert canaries_in(texts_in(here / "table.csv")) == CANARIES
    names = pa.table({"who": WORDS, "n": [0.5] * len(WORDS)}).replace_schema_metadata(
        {"age": str(NUMBERS[0])}
    )
    pyarrow.parquet.write_table(names, here / "p.parquet", compression="zstd")
    assert canaries_in(texts_in(here / "p.parquet")) == [*WORDS, str(NUMBERS[0])]
    release = run_on(
        CASES["independent"](Domain.of(SIZES)),
        memory_table(SIZES, []),
        AddRemoveRow(),
        USUAL,
        source(),
    )
    seen = replace(release.provenance, parameters={"seen": NUMBERS[1], "who": WORDS[1]})
    replace(release, provenance=seen).save(here / "r.margrave")
    assert canaries_in(texts_in(here / "r.margrave")) == [WORDS[1], str(NUMBERS[1])]
    with zipfile.ZipFile(here / "a.margrave", "w") as archive:
        archive.writestr("manifest.json", "{}")
        for i, array in enumerate(
            (np.int64([2, NUMBERS[0]]), np.float32([0.5, REALS[1]]), np.array(WORDS[:1]))
        ):
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"arrays/{i}.npy", buffer.getvalue())
    assert canaries_in(texts_in(here / "a.margrave")) == [WORDS[0], str(NUMBERS[0]), REALS[1]]
    assert canaries_in(f"There are {NUMBERS[2]:,} rows") == [str(NUMBERS[2])]


def _ragged(text: str) -> bytes:
    lines = text.splitlines()
    lines[8] += f",{WORDS[0]}"
    return "\n".join(lines).encode()


def _quoted(text: str) -> bytes:
    return text.replace(WORDS[1], f'"{WORDS[1]}', 1).encode()


def _latin(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def _headless(text: str) -> bytes:
    return "\n".join(sorted(text.splitlines()[1:], key=lambda row: WORDS[2] not in row)).encode()


DAMAGE = {
    "a ragged row": _ragged,
    "no header": _headless,
    "an open quote": _quoted,
    "another encoding": _latin,
}
POLICIES: dict[str, dict[str, Any]] = {
    "a category refused": {"job": Categorical("job", ["clerk", "nurse"], outside="refuse")},
    "a number refused": {"age": Integer("age", 0, 99, bins=10, outside="refuse")},
    "a kind that is wrong": {"job": Integer("job", 0, 9)},
}


@pytest.mark.parametrize("case", [*DAMAGE, *POLICIES, "a person missing"])
@pytest.mark.parametrize("command", ["synthesize", "evaluate", "schema check"])
def test_no_canary_leaves_in_an_error(here: Path, ear: Ear, case: str, command: str) -> None:
    """Of the files that cannot be read and the values that are refused, no message quotes any."""
    text = csv_of(rows_of(canaries=True))
    (here / "good.csv").write_text(csv_of(rows_of(canaries=False)), encoding="utf-8")
    if case in DAMAGE:
        (here / "table.csv").write_bytes(DAMAGE[case](text))
    elif case in POLICIES:
        columns = [POLICIES[case].get(c.name, c) for c in SCHEMA.columns]
        replace(SCHEMA, columns=columns).save("schema.toml", overwrite=True)
    else:
        (here / "table.csv").write_text(text.replace(PERSONS[0], "", 1), encoding="utf-8")
    words = {
        "synthesize": [
            "synthesize",
            "table.csv",
            *BUDGET,
            "--unit",
            "add-remove-person:2",
            "-o",
            "rows.csv",
        ],
        "evaluate": ["evaluate", "table.csv", "good.csv"],
        "schema check": ["schema", "check", "table.csv"],
    }[command]
    assert run([*words, "--schema", "schema.toml"]) not in (0, 70)
    assert canaries_in(ear.all()) == []
    assert not (here / "rows.csv").exists()


@pytest.mark.parametrize("mechanism", ["aim", "mst", "independent"])
def test_a_category_of_one_row_is_in_no_output(mechanism: str) -> None:
    """With all the budget in the world, a category that the schema does not know comes out as ``other``.

    A category of the schema without a row may come out too: a noisy zero may be a positive count.
    """
    schema = Schema((Categorical("job", ["clerk", "nurse"], other=True), Integer("age", 0, 9)))
    rows = pa.table({"job": ["clerk"] * 30 + [WORDS[0]], "age": [i % 10 for i in range(31)]})
    release = margrave.synthesize(
        rows, schema, epsilon=1e4, delta=1e-9, mechanism=MECHANISMS[mechanism]()
    )
    seen = {job for seed in range(200) for job in release.sample(31, seed=seed)["job"].to_pylist()}
    assert {"clerk", "other"} <= seen <= {"clerk", "nurse", "other"}


# Memory.

USUAL = Budget.zcdp(Fraction(2))


def source() -> SeededRandomness:
    return SeededRandomness(1)


def test_nothing_of_the_table_is_alive_after_a_release() -> None:
    """Of any mechanism; neither in the release nor in a cache, anywhere in a process."""
    command = [sys.executable, "-m", "tests.support.alive"]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["left"] == []
    assert {"MemoryTable", "ndarray"} <= set(found["found"])
    assert found["releases"] == len(ALONE)


# Solvers that fail.


class Failing(WrappedFit):
    """A fit that fails once it has been asked so many times, as a solver that does not converge would."""

    def __init__(self, fit: Any, after: int) -> None:
        if not isinstance(fit, Fit):  # a search in the place of a fit
            self.fit = fit
        else:
            super().__init__(fit)
        self.left = after

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise FloatingPointError("the solver did not converge")

    def update(self, *question: Any, **more: Any) -> Any:
        self._count()
        return super().update(*question, **more)

    def finish(self, *question: Any, **more: Any) -> Any:
        self._count()
        return super().finish(*question, **more)

    def asked(self, *question: Any, **more: Any) -> Any:
        """A search in place of the fit, which fails in the same way."""
        self.left -= 1
        if self.left == 0:
            raise FloatingPointError("the solver did not converge")
        return self.fit(*question, **more)


@pytest.mark.parametrize("case", FIRST_CASES)
def test_a_solver_that_fails_costs_nothing_more(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No question is put after the failure: the books and the answers are those of the sound run, up to there."""
    mechanism: Any = CASES[case](Domain.of(SIZES))
    debits, values = books(mechanism, None)
    for after in (1, 2, 3):
        if measures(case):
            fit = mechanism.estimator() if mechanism.fit is None else mechanism.fit
            broken, found = books(mechanism, Failing(fit, after))
        else:
            broken, found = books_of_a_failing_search(mechanism, after, monkeypatch)
        assert len(broken) <= len(debits)
        assert broken == debits[: len(broken)]
        assert found == values[: len(found)]


def books_of_a_failing_search(
    mechanism: Any, after: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[bytes]]:
    failing = Failing(BestResponse.best, after)
    with monkeypatch.context() as patch:
        patch.setattr(
            BestResponse,
            "best",
            lambda self, objective, rng: failing.asked(self, objective, rng=rng),
        )
        found = books(mechanism, failing)
    assert failing.left == 0, "the search did fail"
    return found


def books(mechanism: Any, fit: Fit | Failing | None) -> tuple[list[Any], list[bytes]]:
    """The debits and the noisy answers of a run, to its end or its failure."""
    wanted: Mechanism = mechanism
    if fit is not None and "fit" in {f.name for f in fields(mechanism)}:
        wanted = standing_in(mechanism, fit)
    table = memory_table(SIZES, some_rows(SIZES, 40))
    with protect(
        table, unit=AddRemoveRow(), budget=USUAL, randomness=SeededRandomness(4)
    ) as private:
        try:
            wanted.run(private, rng=np.random.default_rng(0))
        except FloatingPointError:
            assert isinstance(fit, Failing)
        return list(private.account().debits), [
            m.values.tobytes() for m in private.transcript.measurements
        ]
