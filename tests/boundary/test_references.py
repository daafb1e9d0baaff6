"""Files that a schema names: in its folder, not the private table, never quoted, and named in the certificate."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import margrave
from margrave.cli.main import run
from margrave.data import read_table
from margrave.errors import SchemaError
from margrave.profiling import check_table
from margrave.release import Release
from margrave.report import write_report
from margrave.schema import Schema, references

CITIES = ["York", "Hull", "Bonn"]
STATES = {"York": "England", "Hull": "England", "Bonn": "Germany"}
BUDGET = ["--epsilon", "5", "--delta", "1e-9", "-m", "independent"]


def lines_of(rows: int = 60) -> str:
    return "city,state\n" + "".join(f"{c},{STATES[c]}\n" for c in (CITIES * rows)[:rows])


def toml_of(cities: str, states: str = '["England", "Germany"]', constraint: str = "") -> str:
    return (
        '[schema]\nversion = 1\ndraft = false\n\n[[column]]\nname = "city"\nkind = "categorical"\n'
        f'categories = {cities}\n\n[[column]]\nname = "state"\nkind = "categorical"\ncategories = {states}\n'
        f"{constraint}"
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder ``study`` with a private table, and a code book beside a schema in ``study/schemas``."""
    folder = tmp_path / "study" / "schemas"
    folder.mkdir(parents=True)
    (folder.parent / "private.csv").write_text(lines_of())
    (folder / "cities.csv").write_text("code,city\n1,York\n2,Hull\n3,Bonn\n4,Rome\n")
    (folder / "s.toml").write_text(toml_of('"cities.csv"'))
    monkeypatch.chdir(folder.parent)
    return folder


# Where a file may lie.


OUTSIDE: dict[str, Callable[[Path], str]] = {
    "the parent": lambda folder: "../private.csv",
    "a way out and back": lambda folder: "../schemas/cities.csv",
    "a parent below": lambda folder: "sub/../../private.csv",
    "an absolute path": lambda folder: str(folder.parent / "private.csv"),
    "an absolute path inside": lambda folder: str(folder / "cities.csv"),
    "a drive": lambda folder: "C:/private.csv",
    "a drive without a root": lambda folder: "C:private.csv",
    "a share": lambda folder: "\\\\host\\share\\private.csv",
    "a parent of Windows": lambda folder: "..\\private.csv",
    "nothing": lambda folder: "",
    "a control character": lambda folder: "cit\nies.csv",
    "a long name": lambda folder: "c" * 400,
    "a link": lambda folder: linked(folder, "link.csv", folder.parent / "private.csv"),
    "a folder that is a link": lambda folder: f"{linked(folder, 'up', folder.parent)}/private.csv",
}


def linked(folder: Path, name: str, target: Path) -> str:
    (folder / name).symlink_to(target)
    return name


@pytest.mark.parametrize("way", OUTSIDE)
@pytest.mark.parametrize("place", ["categories", "allowed", "depends"])
def test_a_file_outside_the_schemas_folder_is_refused(here: Path, way: str, place: str) -> None:
    name = json.dumps(OUTSIDE[way](here))
    constraint = f'\n[[constraint]]\ncolumns = ["city", "state"]\n{place} = {name}\n'
    text = (
        toml_of(name)
        if place == "categories"
        else toml_of(json.dumps(CITIES), constraint=constraint)
    )
    (here / "s.toml").write_text(text)
    with pytest.raises(SchemaError, match="is not in the schema's folder") as refused:
        Schema.load(here / "s.toml")
    assert "York" not in str(refused.value)
    assert (
        run(
            [
                "synthesize",
                "private.csv",
                "-s",
                "schemas/s.toml",
                *BUDGET,
                "--release",
                "r.margrave",
            ]
        )
        == 3
    )
    assert run(["plan", "-s", "schemas/s.toml", *BUDGET]) == 3
    assert run(["schema", "check", "private.csv", "-s", "schemas/s.toml"]) == 3
    assert not Path("r.margrave").exists()


def test_a_file_below_the_schema_and_a_link_inside_are_read(here: Path) -> None:
    (here / "books").mkdir()
    shutil.copy(here / "cities.csv", here / "books" / "c.csv")
    linked(here, "l.csv", here / "books" / "c.csv")
    for name in ("books/c.csv", "./cities.csv", "l.csv"):
        (here / "s.toml").write_text(toml_of(json.dumps(name)))
        assert Schema.load(here / "s.toml").columns[0].size == 4
    linked(here.parent, "s.toml", here / "s.toml")  # the folder is that of the name given
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.load("s.toml")


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "a loop": lambda path: path.symlink_to(path),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("what", IRREGULAR)
def test_what_is_not_a_regular_file_is_refused_at_once(here: Path, what: str) -> None:
    IRREGULAR[what](here / "odd.csv")
    (here / "s.toml").write_text(toml_of('"odd.csv"'))
    with pytest.raises(
        SchemaError, match=r"'odd.csv' of column 'city' (is not a regular file|cannot be read)"
    ):
        Schema.load(here / "s.toml")


def test_files_have_a_limit_of_size_together(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (here / "cities.csv").stat().st_size
    (here / "states.csv").write_text("state\nEngland\nGermany\n")
    (here / "s.toml").write_text(toml_of('"cities.csv"', '"states.csv"'))
    monkeypatch.setattr(references, "MAX_REFERENCED_BYTES", size + 5)
    with pytest.raises(SchemaError, match=r"'states.csv' of column 'state' is too large"):
        Schema.load(here / "s.toml")
    monkeypatch.setattr(references, "MAX_REFERENCED_BYTES", size + 50)
    assert len(Schema.load(here / "s.toml").files) == 2


# The private table.


def by_itself(folder: Path) -> Path:
    return folder / "table.csv"


def by_a_link(folder: Path) -> Path:
    Path("elsewhere.csv").symlink_to(folder / "table.csv")
    return Path("elsewhere.csv")


def by_a_hard_link(folder: Path) -> Path:
    os.link(folder / "table.csv", "hard.csv")
    return Path("hard.csv")


def by_a_copy(folder: Path) -> Path:
    return Path(shutil.copy(folder / "table.csv", "copy.csv"))


def by_gzip(folder: Path) -> Path:
    Path("table.csv.gz").write_bytes(gzip.compress((folder / "table.csv").read_bytes()))
    return Path("table.csv.gz")


ROUTES = [by_itself, by_a_link, by_a_hard_link, by_a_copy, by_gzip]


def naming_the_table(folder: Path, place: str) -> None:
    """A schema whose categories, or combinations, are the file ``table.csv`` beside it."""
    text = lines_of(3) if place == "categories" else lines_of()
    (folder / "table.csv").write_text(text)
    constraint = f'\n[[constraint]]\ncolumns = ["city", "state"]\n{place} = "table.csv"\n'
    (folder / "s.toml").write_text(
        toml_of('"table.csv"')
        if place == "categories"
        else toml_of(json.dumps(CITIES), constraint=constraint)
    )


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("place", ["categories", "allowed", "depends"])
def test_the_private_table_is_refused_as_a_file_of_the_schema(
    here: Path, route: Callable[[Path], Path], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    naming_the_table(here, place)
    table = str(route(here))
    schema = Schema.load(here / "s.toml")
    for read in (read_table, check_table):
        with pytest.raises(SchemaError, match=r"read from 'table.csv', which is the private table"):
            read(table, schema)
    with pytest.raises(SchemaError, match="which is the private table"):
        margrave.synthesize(
            table, here / "s.toml", epsilon=5.0, delta=1e-9, mechanism="independent"
        )
    capsys.readouterr()
    outputs = ["--release", "r.margrave", "-o", "o.csv", "--journal", "j.journal"]
    assert run(["synthesize", table, "-s", "schemas/s.toml", *BUDGET, *outputs]) == 3
    assert run(["schema", "check", table, "-s", "schemas/s.toml"]) == 3
    written = capsys.readouterr()
    assert not any(Path(p).exists() for p in ("r.margrave", "o.csv", "j.journal"))
    assert not any(value in written.out + written.err for value in (*CITIES, *STATES.values()))


@pytest.mark.parametrize("place", ["categories", "depends"])
def test_a_table_of_repeats_is_refused_as_the_table_and_not_for_its_repeats(
    here: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error about a doubled line is a fact about two rows, and its remedy would lead to a table without doubles."""
    naming_the_table(here, place)
    rows = (here / "table.csv").read_text().splitlines()
    (here / "table.csv").write_text("\n".join([*rows, rows[1], rows[1]]) + "\n")
    table = str(here / "table.csv")
    with pytest.raises(SchemaError, match="which is the private table"):
        margrave.synthesize(
            table, here / "s.toml", epsilon=5.0, delta=1e-9, mechanism="independent"
        )
    for command in (
        ["synthesize", table, "-s", "schemas/s.toml", *BUDGET, "-o", "o.csv"],
        ["schema", "check", table, "-s", "schemas/s.toml"],
        ["evaluate", table, table, "-s", "schemas/s.toml"],
    ):
        assert run(command) == 3
        assert "which is the private table" in capsys.readouterr().err


def test_a_schema_that_was_written_back_still_knows_the_table(here: Path) -> None:
    naming_the_table(here, "depends")
    schema = Schema.load(here / "s.toml")
    schema.save("whole.toml")
    again = Schema.load("whole.toml")
    assert again.files == schema.files
    assert again == schema
    with pytest.raises(SchemaError, match="which is the private table"):
        read_table(here / "table.csv", again.select(["city", "state"]))


def test_a_table_of_other_bytes_is_read_and_a_frame_has_no_file(here: Path) -> None:
    naming_the_table(here, "depends")
    schema = Schema.load(here / "s.toml")
    Path("other.csv").write_text(lines_of(59) + "York,England\n")
    assert read_table("other.csv", schema).rows() == 60
    assert (
        read_table(pa.table({"city": CITIES, "state": list(STATES.values())}), schema).rows() == 3
    )
    with pytest.raises(margrave.MargraveError, match=r"none\.csv"):
        read_table("none.csv", schema)


def test_a_pipe_is_not_read_to_compare_it(here: Path) -> None:
    naming_the_table(here, "categories")
    os.mkfifo("pipe.csv")
    assert not Schema.load(here / "s.toml").files[0].holds(Path("pipe.csv"))


# What errors say.


SECRET = st.text(st.sampled_from("QZXJ"), min_size=6, max_size=9)


def broken(cells: list[str], place: str, how: str) -> tuple[str, str]:
    """A schema, and the file that it names, which is wrong in one way and full of these cells."""
    first, second = cells[0], cells[1]
    pairs = [f"{c},{cells[-1]}" for c in cells]
    wrong = {
        "twice": [*pairs, pairs[0].replace(",", ",x") if place == "depends" else pairs[0]],
        "blanks": [*pairs, f" {first},{second}"],
        "short": [*pairs, first],
        "unknown": pairs,
        "quotes": [*pairs, f'"{first}" {second},"'],
        "open": [*pairs, f'"{first}'],
    }[how]
    header = f"{first},{second}" if how == "unknown" and place == "categories" else "city,state"
    constraint = f'\n[[constraint]]\ncolumns = ["city", "state"]\n{place} = "f.csv"\n'
    if place == "categories":
        named = '{file = "f.csv", column = "town"}' if how == "unknown" else '"f.csv"'
        return toml_of(named), header_and(header, wrong)
    return toml_of('["York"]', constraint=constraint), header_and(header, wrong)


def header_and(header: str, lines: list[str]) -> str:
    return "\n".join([header, *lines]) + "\n"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cells=st.lists(SECRET, min_size=3, max_size=5, unique=True),
    place=st.sampled_from(["categories", "allowed", "depends"]),
    how=st.sampled_from(["twice", "blanks", "short", "unknown", "quotes", "open"]),
)
def test_no_error_quotes_a_cell_of_a_file(
    here: Path, cells: list[str], place: str, how: str
) -> None:
    text, content = broken(cells, place, how)
    (here / "s.toml").write_text(text)
    (here / "f.csv").write_text(content)
    with pytest.raises(SchemaError) as refused:
        Schema.load(here / "s.toml")
    assert not any(cell in str(refused.value) for cell in cells)


KINDS = {
    "integer": 'kind = "integer"\nlow = 0\nhigh = 99\nbins = 10',
    "real": 'kind = "real"\nlow = 0.0\nhigh = 1.0',
    "date": 'kind = "date"\nlow = 2020-01-01\nhigh = 2020-12-31',
    "boolean": 'kind = "boolean"',
    "coded": 'kind = "coded"\ncodes = 3',
    "ordinal": 'kind = "ordinal"\ncategories = "book.csv"',
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", ["QZXJQZ", "7654321", "73"])
@pytest.mark.parametrize("place", ["allowed", "depends"])
def test_nor_of_a_column_of_any_kind(here: Path, kind: str, cell: str, place: str) -> None:
    (here / "book.csv").write_text("x\nJJJJJJ\nXXXXXX\n")
    (here / "f.csv").write_text(f"x,state\n{cell},England\n")
    (here / "s.toml").write_text(
        f'[schema]\nversion = 1\n[[column]]\nname = "x"\n{KINDS[kind]}\n[[column]]\nname = "state"\n'
        f'kind = "categorical"\ncategories = ["England"]\n[[constraint]]\ncolumns = ["x", "state"]\n{place} = "f.csv"\n'
    )
    with pytest.raises(SchemaError) as refused:
        Schema.load(here / "s.toml")
    said = str(refused.value).replace(str(here), "")
    assert not any(value in said for value in (cell, "JJJJJJ", "XXXXXX"))


@pytest.mark.parametrize(
    "constraint",
    [
        'depends = [["York", "England"]]\ncolumns = ["city", "state"]',
        'allowed = [["Rome", "England"]]\ncolumns = ["city", "state"]',
        'impossible = {city = "Rome"}',
        'impossible = {city = {from = "York"}}',
    ],
)
def test_nor_where_a_constraint_in_the_schema_meets_categories_of_a_file(
    here: Path, constraint: str
) -> None:
    (here / "f.csv").write_text("city\nQZXJQZ\nYork\n")
    (here / "s.toml").write_text(toml_of('"f.csv"', constraint=f"\n[[constraint]]\n{constraint}\n"))
    with pytest.raises(SchemaError) as refused:
        Schema.load(here / "s.toml")
    assert "QZXJQZ" not in str(refused.value)


# What stays.


def test_a_schema_keeps_the_files_it_was_read_from(here: Path) -> None:
    schema = Schema.load(here / "s.toml")
    digest = hashlib.sha256((here / "cities.csv").read_bytes()).hexdigest()
    assert [(f.name, f.sha256) for f in schema.files] == [("cities.csv", digest)]
    assert schema.confirmed().select(["city"]).files == schema.files
    plain = Schema.from_toml(schema.to_toml())
    assert plain.files == schema.files
    assert plain.to_toml() == schema.to_toml()
    assert schema.hash() == Schema(schema.columns).hash()


@pytest.mark.parametrize(
    "files",
    [
        '"cities.csv"',
        '["cities.csv"]',
        '[{name = "c.csv"}]',
        '[{name = "../c.csv", sha256 = "' + "0" * 64 + '", bytes = 3}]',
        '[{name = "c.csv", sha256 = "' + "0" * 63 + '", bytes = 3}]',
        '[{name = "c.csv", sha256 = "' + "0" * 64 + '", bytes = -1}]',
        '[{name = "c.csv", sha256 = "' + "0" * 64 + '", bytes = true}]',
        '[{name = 3, sha256 = "' + "0" * 64 + '", bytes = 3}]',
    ],
)
def test_a_list_of_files_in_another_form_is_refused(files: str) -> None:
    text = toml_of('["York"]').replace("draft = false", f"files = {files}")
    with pytest.raises(SchemaError, match=r"files in .schema. is not a list"):
        Schema.from_toml(text)


def test_certificate_report_and_a_saved_release_name_the_files(here: Path) -> None:
    digest = hashlib.sha256((here / "cities.csv").read_bytes()).hexdigest()
    assert (
        run(
            [
                "synthesize",
                "private.csv",
                "-s",
                "schemas/s.toml",
                *BUDGET,
                "--release",
                "r.margrave",
            ]
        )
        == 0
    )
    release = Release.load("r.margrave")
    facts = release.certificate()
    assert facts["schema"]["files"] == [{"name": "cities.csv", "sha256": digest}]
    assert (
        f"the file cities.csv that the schema was read from, sha256 {digest}"
        in facts["public_inputs"]
    )
    write_report(release, "r.html")
    assert digest in Path("r.html").read_text(encoding="utf-8")
    release.save("again.margrave")
    assert Release.load("again.margrave").certificate()["schema"] == facts["schema"]


# Lists that are those of the rows.


def test_the_custodian_hears_of_categories_that_all_occur(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    outputs = ["--release", "r.margrave", "--report", "r.html", "-o", "o.csv"]
    assert run(["synthesize", "private.csv", "-s", "schemas/s.toml", *BUDGET, *outputs]) == 0
    written = capsys.readouterr()
    sentence = "Bounds or categories as these rows have them: state."  # Rome is in no row
    assert written.err.count(sentence) == 1
    assert "NOT PRIVATE" in written.err
    assert sentence not in written.out
    with zipfile.ZipFile("r.margrave") as packed:
        inside = [packed.read(name) for name in packed.namelist()]
    assert not any(
        b"as these rows have them" in part
        for part in (*inside, *(Path(p).read_bytes() for p in ("r.html", "o.csv")))
    )


@pytest.mark.parametrize(
    ("settings_", "cities", "told"),
    [
        ("", ["a", "b"], True),
        ("", ["a", "a"], False),
        ("missing = true", ["a", "b", None], True),
        ("other = true", ["a", "b"], True),
        ("other = true", ["a", "b", "c"], False),
    ],
)
def test_only_lists_that_the_rows_fill_are_named(
    settings_: str, cities: list[str | None], told: bool
) -> None:
    schema = Schema.from_toml(
        '[schema]\nversion = 1\n[[column]]\nname = "city"\nkind = "categorical"\n'
        f'categories = ["a", "b"]\n{settings_}\n[[column]]\nname = "n"\nkind = "coded"\ncodes = 2\n'
    )
    frame = pa.table({"city": cities * 20, "n": [0, 1] * (len(cities) * 10)})
    sentences: list[str] = []
    options = {"epsilon": 5.0, "delta": 1e-9, "mechanism": "independent"}
    margrave.synthesize(frame, schema, on_custodian=sentences.append, **options)  # type: ignore[arg-type]
    assert len(sentences) == told
    assert not told or "these rows have them: city." in sentences[0]
    margrave.synthesize(frame, schema, **options)  # type: ignore[arg-type]
