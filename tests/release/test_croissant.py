"""The Croissant description of drawn tables: files, columns, categories and the promise, and nothing of the rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import margrave
from margrave.cli.main import run
from margrave.errors import InputError
from margrave.release import croissant
from margrave.schema import (
    Boolean,
    Categorical,
    ColumnSource,
    Date,
    Impossible,
    Integer,
    Ordinal,
    Schema,
    Timestamp,
)
from margrave.schema.parts import Weekday
from margrave.unit import AddRemoveRow

TEXTS: dict[str, Any] = {
    "name": "Visits, synthetic",
    "license": "https://creativecommons.org/licenses/by/4.0/",
    "creator": "The clinic",
    "url": "https://example.org/visits",
}
SCHEMA = Schema(
    [
        Integer("age in years", 0, 99, bins=10, missing=True),
        Categorical("sex", ["F", "M"], missing=True, other=True),
        Ordinal("health", ["bad", "good"]),
        Boolean("smokes"),
        Date("day", date(2024, 1, 1), date(2024, 12, 31), bins=12),
    ],
    person="id",
)


@pytest.fixture(scope="module")
def release() -> margrave.Release:
    rng, n = np.random.default_rng(0), 300
    rows = {
        "id": np.arange(n) + 1,
        "age in years": rng.integers(100, size=n),
        "sex": rng.choice(["F", "M"], n),
        "health": rng.choice(["bad", "good"], n),
        "smokes": rng.random(n) < 0.3,
        "day": np.datetime64("2024-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]"),
    }
    unit = "add-remove-person:2"
    return margrave.synthesize(
        pa.table(rows), SCHEMA, epsilon=2.0, delta=1e-6, mechanism="independent", unit=unit
    )


@pytest.fixture
def files(release: margrave.Release, tmp_path: Path) -> list[Path]:
    rows = release.sample(40, seed=1)
    pa.parquet.write_table(rows, tmp_path / "rows.parquet")
    pa.csv.write_csv(rows, tmp_path / "rows of 2024.csv")
    return [tmp_path / "rows.parquet", tmp_path / "rows of 2024.csv"]


def test_it_describes_files_columns_and_categories(
    release: margrave.Release, files: list[Path]
) -> None:
    found = json.loads(croissant(release, files, **TEXTS, published=date(2026, 1, 2)))
    assert (found["name"], found["license"]) == (TEXTS["name"], TEXTS["license"])
    assert found["creator"]["name"] == TEXTS["creator"]
    assert found["datePublished"] == "2026-01-02"
    assert [d["encodingFormat"] for d in found["distribution"]] == [
        "application/x-parquet",
        "text/csv",
    ]
    for described, path in zip(found["distribution"], files, strict=True):
        assert described["sha256"] == sha256(path.read_bytes()).hexdigest()
        assert described["contentSize"] == f"{path.stat().st_size} B"
        assert described["contentUrl"] == path.name
    sex, health, *tables = found["recordSet"]
    assert [r["values2/label"] for r in sex["data"]] == ["F", "M", "other"]
    assert [r["values3/label"] for r in health["data"]] == ["bad", "good"]
    assert len(tables) == 2
    for table in tables:
        fields = table["field"]
        assert [f["name"] for f in fields] == [c.name for c in SCHEMA.columns]
        assert [f["source"]["extract"]["column"] for f in fields] == [f["name"] for f in fields]
        kinds = ["sc:Integer", "sc:Text", "sc:Text", "sc:Boolean", "sc:Date"]
        assert [f["dataType"] for f in fields] == kinds
    assert fields[0]["description"] == "Integer, from 0 to 99, values may be missing."


def test_parts_are_not_columns_of_the_rows(tmp_path: Path) -> None:
    day = Date("day", date(2024, 1, 1), date(2024, 1, 28), bins=4)
    schema = Schema([day, Weekday("day.weekday", "day"), Weekday("seen", "moment")])
    rows = {
        "day": np.datetime64("2024-01-01") + np.arange(28).astype("timedelta64[D]"),
        "moment": ["2024-01-01"] * 28,
    }
    release = margrave.synthesize(
        pa.table(rows), schema, epsilon=2.0, delta=1e-6, mechanism="independent"
    )
    pa.csv.write_csv(release.sample(20, seed=1), tmp_path / "rows.csv")
    (table,) = json.loads(croissant(release, [tmp_path / "rows.csv"], **TEXTS))["recordSet"]
    assert [f["name"] for f in table["field"]] == ["day", "seen"]
    assert [f["dataType"] for f in table["field"]] == ["sc:Date", "sc:Text"]


def test_ids_differ_and_have_no_blanks(release: margrave.Release, files: list[Path]) -> None:
    text = croissant(release, files, **TEXTS)
    made = [*ids(json.loads(text))]
    assert len(made) == len(set(made)) == 20
    assert not [i for i in made if " " in i]


def ids(thing: Any) -> list[str]:
    """Return the identifiers of everything that has a type."""
    inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else ()
    own = (
        [thing["@id"]] if isinstance(thing, dict) and {"@id", "@type", "name"} <= set(thing) else []
    )
    return [*own, *(i for part in inner for i in ids(part))]


def test_it_states_the_promise_of_the_unit(release: margrave.Release, files: list[Path]) -> None:
    words = json.loads(croissant(release, files, **TEXTS, description="Visits."))["description"]
    assert words.startswith("Visits. Synthetic rows, drawn from a model of noisy counts")
    assert "epsilon = 2 and delta = 1e-06" in words
    assert "add or remove one person of at most 2 rows" in words
    seeded = replace(release, account=replace(release.account, private=False))
    words = json.loads(croissant(seeded, files, **TEXTS))["description"]
    assert "NOT PRIVATE" in words
    assert "satisfies" not in words
    weak = replace(release, account=replace(release.account, unit=AddRemoveRow(), delta=0.01))
    words = json.loads(croissant(weak, files, **TEXTS))["description"]
    assert "Do not take this release for a private one." in words
    assert "A person with several rows is protected less" in words


def test_what_does_not_fit_is_refused(release: margrave.Release, files: list[Path]) -> None:
    folder = files[0].parent
    other = folder / "other.csv"
    other.write_text("age in years,sex\n1,F\n")
    broken = folder / "broken.parquet"
    broken.write_text("no Parquet")
    wrong: list[tuple[list[Path], dict[str, str], str]] = [
        (files, {"license": " "}, "license is empty"),
        ([], {}, "one at least"),
        ([files[0], files[0]], {}, "names that differ"),
        ([folder / "rows.xlsx"], {}, r"neither \.csv nor \.parquet"),
        ([other], {}, "not those of the release"),
        ([broken], {}, "cannot be read"),
        ([folder / "absent.csv"], {}, "cannot be read"),
    ]
    for paths, texts, words in wrong:
        with pytest.raises(InputError, match=words):
            croissant(release, paths, **{**TEXTS, **texts})


REAL: dict[str, tuple[str, Any]] = {
    "a category that is not listed": ("sex", "Canary"),
    "a number beyond its bounds": ("age in years", 7719),
    "a fraction of a whole number": ("age in years", 71.5),
    "a text among numbers": ("age in years", "Canary"),
    "a missing-value code": ("age in years", -9),
    "a day beyond its bounds": ("day", "2031-07-19"),
    "a day as the real table writes it": ("day", "19.07.2024"),
    "a missing value where none can be": ("smokes", None),
    "a part of a unit of time": ("seen", "2024-01-01T07:19:00"),
}


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_value_that_the_release_cannot_draw_is_refused_by_its_column(
    kind: str, ending: str, hourly: margrave.Release, tmp_path: Path
) -> None:
    column, value = REAL[kind]
    rows = hourly.sample(50, seed=1)
    whole, path = written(rows, tmp_path / f"drawn.{ending}"), tmp_path / f"real.{ending}"
    croissant(hourly, [whole], **TEXTS)
    texts = [None if v is None else str(v) for v in rows[column].to_pylist()]
    texts[30] = None if value is None else str(value)
    real = rows.set_column(rows.column_names.index(column), column, pa.array(texts, pa.string()))
    with pytest.raises(InputError) as caught:
        croissant(hourly, [whole, written(real, path)], **TEXTS)
    refusal = str(caught.value).replace(str(path), "FILE")
    assert refusal.startswith(
        f"Column {column!r} of FILE has a value that the release cannot draw. Name"
    )
    assert not any(text in refusal for text in ("Canary", "7719", "71.5", "-9", "07"))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_row_that_violates_a_constraint_is_refused(
    hourly: margrave.Release, tmp_path: Path
) -> None:
    rows = hourly.sample(50, seed=1).to_pylist()
    real = pa.Table.from_pylist([*rows, {**rows[0], "sex": "M", "health": "bad"}])
    with pytest.raises(
        InputError, match=r"violates constraint .*, so it has a row that the release"
    ):
        croissant(hourly, [written(real, tmp_path / "real.parquet")], **TEXTS)


def written(rows: pa.Table, path: Path) -> Path:
    write = pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table
    write(rows, path)
    return path


@pytest.fixture(scope="module")
def hourly() -> margrave.Release:
    """A release of columns with a format, a missing-value code, a part, a unit and a constraint."""
    day, *_ = (c for c in SCHEMA.columns if c.name == "day")
    schema = Schema(
        [
            *(replace(c, format="%d.%m.%Y") if c is day else c for c in SCHEMA.columns),  # type: ignore[type-var]
            Weekday("day.weekday", "day"),
            Timestamp("seen", datetime(2024, 1, 1), datetime(2024, 1, 2), unit="hour"),
        ],
        sources={"age in years": ColumnSource(missing_codes=("-9",))},
        constraints=[Impossible({"sex": ["M"], "health": ["bad"]})],
    )
    n = 200
    rows = {
        "age in years": [-9 if i % 9 == 0 else i % 100 for i in range(n)],
        "sex": ["F", "M"] * (n // 2),
        "health": ["bad", "good"] * (n // 2),
        "smokes": [True, False] * (n // 2),
        "day": ["19.07.2024"] * n,
        "seen": ["2024-01-01T07:19:00"] * n,
    }
    return margrave.synthesize(
        pa.table(rows), schema, epsilon=5.0, delta=1e-6, mechanism="independent"
    )


def test_the_command_writes_it(
    release: margrave.Release, files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = files[0].parent
    release.save(folder / "r.margrave")
    options = [part for key, text in TEXTS.items() for part in (f"--{key}", text)]
    command = ["croissant", str(folder / "r.margrave"), *map(str, files), *options]
    output = folder / "croissant.json"
    assert run([*command, "-o", str(output), "--published", "2026-01-02"]) == 0
    assert f"Wrote the description of 2 tables to {output}." in capsys.readouterr().out
    expected = croissant(release, files, **TEXTS, published=date(2026, 1, 2))
    assert output.read_text(encoding="utf-8") == f"{expected}\n"
    assert run([*command, "-o", str(output)]) == 2
    assert run([*command, "-o", str(files[0]), "--overwrite"]) == 2
    assert pa.parquet.read_table(files[0]).num_rows == 40


@pytest.mark.slow
def test_mlcroissant_reads_it(release: margrave.Release, files: list[Path]) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    (files[0].parent / "croissant.json").write_text(
        croissant(release, files, **TEXTS, cite="Clinic")
    )
    found = mlcroissant.Dataset(jsonld=str(files[0].parent / "croissant.json"))
    assert not found.metadata.issues.errors
    assert [len(list(found.records(r.id))) for r in found.metadata.record_sets] == [3, 2, 40, 40]
