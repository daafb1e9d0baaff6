"""Texts that reach a sink: paths, column names and labels, by grammar, from the table's file to every output.

Whatever a file, a column or a category is called, a run either writes just the outputs that it was asked for, with the
texts as they were, or it is refused and writes nothing. The sinks are the file system, DuckDB, TOML, CSV, Parquet,
JSON, HTML and the terminal.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from margrave import Release, read_table
from margrave.cli.main import run
from margrave.data import read_synthetic
from margrave.errors import MargraveError
from margrave.schema import Categorical, Integer, Schema
from tests.support.command_line import tree

FILE_SIGNS = (
    "data", "visits 2024", "'", '"', "''", "*", "?", "[1]", "[a-z]", "[!a]", "{1,2}", "%20", "%s", "%", "$HOME", "${x}",
    " ", "~", "-", "--help", "http:", "s3:", "file:", ":memory:", ";", "\\", "|", "&", "#", "(", ")", ",", "`id`", "!",
    "@", "^", "é", "e\N{COMBINING ACUTE ACCENT}", "日本", "\N{RIGHT-TO-LEFT OVERRIDE}x", "<b>", "<!--", "a=b",
    ".csv", ".parquet", "x" * 60, "SELECT", "--",
)  # fmt: skip
"""What names of files and folders are made of."""

NAME_SIGNS = (
    "age", "sex", "a b", "'", '"', '""', "''", ".", "..", "[", "]", "[0]", "{", "}", "(", ")", "__proto__", "rowid",
    "filename", "select", "from", "a=b", ",", ";", "|", "?", "$1", ":x", "%", "\\", "\\n", "é", "ß", "日本", "<script>",
    "</th>", "&amp;", "=1+1", "+", "-", "@", "#", "//", "--", "1", "null", "true", "x" * 80, "[bold]", "[/]", "🏥",
)  # fmt: skip
"""What names of columns are made of; those of signs that cannot be printed are refused."""

LABEL_SIGNS = (
    "clerk", "<script>alert(1)</script>", "</style>", "</svg>", "<img src=x onerror=y>", "&lt;", "'", '"', '""', "]]>",
    "-->", "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "=1", ",", ";", "|", "\\", "\\N", "é", "日本",
    "\N{ZERO WIDTH SPACE}", "%", "{}", "[bold red]", "[/]", "$", "`", "\N{RIGHT-TO-LEFT OVERRIDE}x", "a b", "1e5",
    "x" * 90, "🏥", "#", "javascript:", "url(x)",
)  # fmt: skip
"""What labels of categories are made of."""

UNPRINTABLE = ("\t", "\n", "\r\n", "\x00", "\x1b[2J", "\x07", "\x85", "\N{LINE SEPARATOR}")


def joined(signs: Sequence[str], most: int = 3) -> st.SearchStrategy[str]:
    return (
        st.lists(st.sampled_from(signs), min_size=1, max_size=most)
        .map("".join)
        .filter(lambda t: t != "..")
    )


@dataclass(frozen=True)
class Texts:
    """A table of two columns, where it lies, and how its file and its output are written."""

    folder: str
    file: str
    output: str
    names: tuple[str, str]
    labels: tuple[str, ...]
    read_as: str
    write_as: str


ENDINGS = st.sampled_from([".csv", ".parquet"])
LABELS = st.lists(joined(LABEL_SIGNS), min_size=2, max_size=4).map(tuple)
TEXTS = st.builds(
    Texts,
    folder=joined(FILE_SIGNS),
    file=joined(FILE_SIGNS),
    output=joined(FILE_SIGNS),
    names=st.tuples(joined(NAME_SIGNS), joined(NAME_SIGNS)),
    labels=st.one_of(
        LABELS, LABELS.map(lambda few: tuple(f"{few[i % len(few)]}{i}" for i in range(24)))
    ),
    read_as=ENDINGS,
    write_as=ENDINGS,
)

PLAIN = Texts("folder", "table", "rows", ("job_now", "age"), ("clerk", "nurse"), ".csv", ".csv")


def schema_of(given: Texts) -> Schema | None:
    """The schema; None if it is refused."""
    try:
        return Schema(
            (Categorical(given.names[0], list(given.labels)), Integer(given.names[1], 0, 3, bins=4))
        )
    except MargraveError:
        return None


def table_of(given: Texts) -> pa.Table:
    """Ten rows for each label, which mostly goes with one number."""
    rows = [(label, (i + (k == 9)) % 4) for i, label in enumerate(given.labels) for k in range(10)]
    first, second = zip(*rows, strict=True)
    return pa.table(
        [pa.array(first, pa.string()), pa.array(second, pa.int64())], names=list(given.names)
    )


def write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        with path.open("wb") as file:
            pa.parquet.write_table(table, file)
        return
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows(
            [table.column_names, *zip(*(c.to_pylist() for c in table.columns), strict=True)]
        )


def read(path: Path) -> tuple[list[str], list[str]]:
    """The names of the columns, and the first column's values, by a reader that is not margrave's."""
    if path.suffix == ".parquet":
        table = pa.parquet.read_table(pa.BufferReader(path.read_bytes()))
        return table.column_names, table.column(0).to_pylist()
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    return names, [row[0] for row in rows]


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@dataclass
class Done:
    """How a run ended, what it said, and what it changed in the folder."""

    code: int
    out: str
    err: str
    made: set[str]
    changed: set[str]


def command(arguments: list[str], root: Path) -> Done:
    before = tree(root)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    after = tree(root)
    changed = {name for name in before if after.get(name) != before[name]}
    return Done(code, out.getvalue(), err.getvalue(), set(after) - set(before), changed)


def place(given: Texts, root: Path) -> tuple[Path, list[Path]]:
    """The folder with the table and the schema in it, and the paths of the outputs."""
    folder = root / given.folder
    table, rows = (
        folder / f"{given.file}{given.read_as}",
        folder / f"o{given.output}{given.write_as}",
    )
    outputs = [rows, folder / f"r{given.output}.margrave", folder / f"p{given.output}.html"]
    folder.mkdir()
    write(table_of(given), table)
    return table, outputs


def synthesized(given: Texts, root: Path) -> tuple[Done, Path, list[Path]]:
    """Run on a table, by paths relative to the folder above its own."""
    root.mkdir()
    with inside(root):
        table, outputs = place(given, Path())
        schema = schema_of(given)
        assert schema is not None
        schema.save(table.parent / "schema.toml")
        options = [
            "-s",
            str(table.parent / "schema.toml"),
            "-e",
            "8",
            "--delta",
            "1e-9",
            "-m",
            "mst",
        ]
        targets = itertools.chain(
            *zip(("-o", "--release", "--report"), map(str, outputs), strict=True)
        )
        done = command(
            [
                "synthesize",
                *options,
                "-n",
                "9",
                "--seed",
                "1",
                "--json",
                *targets,
                "--",
                str(table),
            ],
            Path(),
        )
    return done, root / table, [root / p for p in outputs]


class Page(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.marks: set[str] = set()
        self.text: list[str] = []
        self.style: list[str] = []
        self._in_style = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.marks |= {tag, *(f"{tag} {name}" for name, _ in attrs)}
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_decl(self, decl: str) -> None:
        self.marks.add(f"<!{decl}>")

    def handle_comment(self, data: str) -> None:
        self.marks.add("comment")

    def handle_data(self, data: str) -> None:
        (self.style if self._in_style else self.text).append(data)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of a table whose texts are plain."""
    done, _, (_, _, report) = synthesized(PLAIN, tmp_path_factory.mktemp("plain") / "root")
    assert done.code == 0, done.err
    return Page(report.read_text(encoding="utf-8"))


Folders = Callable[[], Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """A new folder for every example."""
    above, number = tmp_path_factory.mktemp("sinks"), itertools.count()
    return lambda: above / str(next(number))


def check(given: Texts, root: Path, plain: Page) -> None:
    schema = schema_of(given)
    assert schema is not None
    done, table, outputs = synthesized(given, root)
    assert done.changed == set()
    if done.code == 4 and unreadable(table):
        assert done.made == set()
        return
    assert done.code == 0, (done.code, done.out, done.err)
    assert done.made == {str(p.relative_to(root)) for p in outputs}
    facts = json.loads(done.out)
    assert [*facts["outputs"].values()] == [str(p.relative_to(root)) for p in outputs]
    check_reading(given, schema, table)
    rows, release, report = outputs
    names, values = read(rows)
    assert (names, len(values)) == (list(given.names), 9)
    assert set(values) <= set(given.labels)
    if not unreadable(rows):
        assert read_synthetic(rows, schema).rows() == 9
    assert Release.load(release).schema == schema
    page = Page(report.read_text(encoding="utf-8"))
    assert page.marks <= plain.marks
    assert page.style == plain.style
    assert all(shown(name) in shown("".join(page.text)) for name in given.names)


def unreadable(path: Path) -> bool:
    """Whether DuckDB may not find the file: its search for plain patterns stumbles over a backslash beside them."""
    names = [str(path), *(p.name for p in path.parent.iterdir())]
    return any("\\" in name for name in names) and any(sign in str(path) for sign in "*?[")


def check_reading(given: Texts, schema: Schema, table: Path) -> None:
    """The file is read as the same codes as the frame that was written to it."""
    file, frame = (
        read_table(source, schema).count([given.names])[given.names]
        for source in (table, table_of(given))
    )
    assert file.tolist() == frame.tolist()


def shown(text: str) -> str:
    return "".join(text.split())


SETTINGS = settings(
    deadline=None, derandomize=True, database=None, report_multiple_bugs=False, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip


@settings(SETTINGS, max_examples=10)
@example(given=replace(PLAIN, labels=tuple(f"</style><script>{i}" for i in range(24))))
@example(
    given=replace(
        PLAIN, names=("<script>", "</title><b>"), labels=("<img src=x onerror=y>", '" onload="')
    )
)
@given(given=TEXTS)
def test_a_run_writes_what_it_was_asked_for_whatever_it_is_called(
    folders: Folders, plain: Page, given: Texts
) -> None:
    assume(schema_of(given) is not None)
    check(given, folders(), plain)


@pytest.mark.slow
@settings(SETTINGS, max_examples=600, derandomize=False)
@given(given=TEXTS)
def test_many_runs_write_what_they_were_asked_for(
    folders: Folders, plain: Page, given: Texts
) -> None:
    assume(schema_of(given) is not None)
    check(given, folders(), plain)


@settings(SETTINGS, max_examples=8)
@given(given=TEXTS, sign=st.sampled_from(UNPRINTABLE), where=st.sampled_from(["name", "label"]))
def test_signs_that_cannot_be_printed_are_kept_or_refused(
    folders: Folders, plain: Page, given: Texts, sign: str, where: str
) -> None:
    names, labels = given.names, given.labels
    if where == "name":
        odd = replace(given, names=(f"{names[0]}{sign}x", names[1]))
        assert schema_of(odd) is None
        return
    odd = replace(given, labels=(f"{labels[0]}{sign}x", *labels[1:]))
    schema = schema_of(odd)
    assume(schema is not None)
    root = folders()
    done, _, outputs = synthesized(odd, root)
    assert (done.code, done.made) == (4, set()) if done.code else len(done.made) == 3
    if done.code == 0:
        assert set(read(outputs[0])[1]) <= set(odd.labels)
        assert Page(outputs[2].read_text(encoding="utf-8")).marks <= plain.marks


def controls(said: str) -> str:
    """The control characters of a text, line feeds left out."""
    return "".join(sign for sign in said if sign != "\n" and unicodedata.category(sign) == "Cc")


SCREEN = ("\x1b[2J", "\x1b]0;title\x07", "\r", "\x08", "\x9b31m", "\x7f")


def lines(sign: str, table: Path, outputs: list[Path]) -> list[list[str]]:
    """Commands that name their files, and some that fail."""
    rows, release, report = map(str, outputs)
    schema = str(table.parent / "schema.toml")
    options = ["-s", schema, "-e", "8", "--delta", "1e-9", "-m", "independent"]
    run_it = [
        "synthesize",
        str(table),
        *options,
        "-o",
        rows,
        "--release",
        release,
        "--report",
        report,
    ]
    return [
        run_it, run_it, ["synthesize", f"none{sign}.csv", *options, "-o", f"{rows}2.csv"],
        ["certificate", release], ["bounds", release], ["report", release, "-o", f"{report}2.html"],
        ["schema", "check", str(table), "-s", schema], ["certificate", f"none{sign}"],
        ["plan", *options], ["plan", *options, "--workload", f"job{sign}"],
    ]  # fmt: skip


@pytest.mark.parametrize("sign", SCREEN, ids=ascii)
@pytest.mark.parametrize("where", ["folder", "label"])
def test_no_control_character_reaches_a_terminal(folders: Folders, sign: str, where: str) -> None:
    """Whether it comes from a path or from a label, and whether the command fails or not."""
    odd = replace(PLAIN, labels=("clerk", f"x{sign}y"), read_as=".parquet")
    if where == "folder":
        odd = replace(PLAIN, folder=f"a{sign}b")
    root = folders()
    root.mkdir()
    with inside(root):
        table, outputs = place(odd, Path())
        schema = schema_of(odd)
        assert schema is not None
        schema.save(table.parent / "schema.toml")
        said = [command(arguments, Path()) for arguments in lines(sign, table, outputs)]
    assert "".join(controls(done.out + done.err) for done in said) == ""
    codes = [done.code for done in said]
    assert [code == 0 for code in codes[:9]] == [
        True,
        False,
        False,
        True,
        True,
        True,
        True,
        False,
        True,
    ]
    assert 70 not in codes


PATTERNS = {
    "*": "zz", "?": "z", "[1]": "1", "[a-z]": "b", "[!a]": "b", "{1,2}": "1", "**": "z", "a\\b": "ab", "%41": "A",
}  # fmt: skip


@pytest.mark.parametrize("read_as", [".csv", ".parquet"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_in_a_name_stands_for_itself(
    folders: Folders, pattern: str, read_as: str
) -> None:
    """Files and folders that the name would match as a pattern are not read in its place, nor beside it."""
    root, match = folders(), PATTERNS[pattern]
    for name, rows in ((pattern, 12), (match, 5)):
        for folder in (root / "f", root / name):
            folder.mkdir(parents=True, exist_ok=True)
            write(table_of(PLAIN).slice(0, rows), folder / f"{name}{read_as}")
    schema = schema_of(PLAIN)
    assert schema is not None
    assert read_table(root / "f" / f"{pattern}{read_as}", schema).rows() == 12
    if not unreadable(root / pattern):
        assert read_table(root / pattern / f"{pattern}{read_as}", schema).rows() == 12


@pytest.mark.parametrize("read_as", [".csv", ".parquet"])
def test_a_folder_that_names_a_value_is_no_column(
    folders: Folders, plain: Page, read_as: str
) -> None:
    check(replace(PLAIN, folder="job=clerk", read_as=read_as), folders(), plain)
    check(replace(PLAIN, folder="age=0", read_as=read_as), folders(), plain)


@pytest.mark.parametrize("write_as", [".csv", ".parquet"])
@pytest.mark.parametrize("folder", ["http:", "s3:", "file:", "~", "-"])
def test_an_output_whose_path_looks_like_an_address_is_a_file(
    folders: Folders, plain: Page, folder: str, write_as: str
) -> None:
    check(replace(PLAIN, folder=folder, write_as=write_as), folders(), plain)


UNUSUAL = [
    *FILE_SIGNS,
    "/",
    "x" * 200,
    *(sign for sign in UNPRINTABLE if sign != "\x00"),
]  # which no argument holds
NAMES = st.one_of(joined(FILE_SIGNS), joined(UNUSUAL))


@settings(SETTINGS, max_examples=60)
@given(table=NAMES, output=NAMES, schema=NAMES)
def test_paths_that_lead_nowhere_are_refused(
    folders: Folders, table: str, output: str, schema: str
) -> None:
    """No table, no schema, or no folder for the output: an error of margrave's, and no file is made or changed."""
    root = folders()
    root.mkdir()
    options = ["-e", "1", "--delta", "1e-9", "-m", "independent"]
    with inside(root):
        write(table_of(PLAIN), Path("table.csv"))
        Schema.coded({"job": 2, "age": 4}).save("schema.toml")
        for given_table, given_output, given_schema in (
            (table, "rows.csv", "schema.toml"),
            ("table.csv", f"{output}/rows.csv", "schema.toml"),
            ("table.csv", "rows.csv", schema),
        ):
            words = [
                "synthesize",
                "-s",
                given_schema,
                *options,
                "-o",
                given_output,
                "--",
                given_table,
            ]
            done = command(words, Path())
            assert (done.code in range(1, 10), done.made, done.changed) == (True, set(), set()), (
                done,
                words,
            )


def test_a_planted_mistake_is_seen(
    folders: Folders, plain: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels that are not escaped, a file too many, and rows that are changed on their way."""
    script = replace(PLAIN, labels=("<script>", "nurse"))
    check(script, folders(), plain)
    with monkeypatch.context() as patch:
        patch.setattr("margrave.report.charts.svg.escape", Markup)
        with pytest.raises(AssertionError):
            check(script, folders(), plain)
    with monkeypatch.context() as patch:
        patch.setattr(
            "margrave.report.Page.save",
            lambda *_, **__: Path("other.html").write_text("x"),
        )
        with pytest.raises(AssertionError):
            check(script, folders(), plain)
