"""Wrong inputs as a custodian meets them, graded: each gets one sentence that names the thing and the remedy.

A: one line with the thing and the remedy. B: the remedy is missing. C: the thing is missing. D: a traceback, or several
lines. F: accepted, or something was written. Every input of the tables has grade A, before the gate opens.
"""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import margrave
import margrave.run
from margrave.accounting import Budget, Ledger
from margrave.cli.main import run
from margrave.errors import MargraveError
from margrave.mechanisms import AIM, MST
from margrave.release.conditions import codes_of
from margrave.schema import Categorical, Integer, Real, Schema

HEADER = "age,sex,job,pay\n"
ROWS = "".join(
    f"{i % 90},{'fm'[i % 2]},{['clerk', 'nurse', 'cook'][i % 3]},{i % 40 * 1.5}\n"
    for i in range(120)
)
SCHEMA = Schema(
    [
        Integer("age", 0, 99, bins=10),
        Categorical("sex", ["f", "m"]),
        Categorical("job", ["clerk", "nurse", "cook"]),
        Real("pay", 0.0, 60.0, bins=6),
    ]
)
TOML = SCHEMA.to_toml()
COST: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}


class Wrong(NamedTuple):
    """A command, its exit code, and the words of its error that are the thing and the remedy."""

    command: str
    code: int
    thing: str
    remedy: str


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("visits.csv", HEADER)
    return packed.getvalue()


NESTED = json.dumps([{"age": 1, "sex": {"is": "f"}}])
TABLES: dict[str, tuple[str, str | bytes, str, str]] = {
    "missing": ("nowhere.csv", "", "nowhere.csv", "Check the path"),
    "empty": ("t.csv", " ", "t.csv has no header", "must name the columns"),
    "only a header": ("t.csv", HEADER, "no rows", "right file"),
    "UTF-16": ("t.csv", (HEADER + ROWS).encode("utf-16"), "UTF-16", "Save As"),
    "Latin 1": ("t.csv", HEADER.encode() + b"5,f,caf\xe9,3\n", "line 2", "Save As"),
    "bytes": ("t.csv", bytes(range(256)) * 20, "t.csv is not text", "Export"),
    "a PDF": ("t.pdf", b"%PDF-1.4\n", "t.pdf is not text", "Export"),
    "a zip archive": ("t.csv", zipped(), "zip archive", "Unpack"),
    "nested JSON": ("t.json", NESTED, "t.json is JSON", "one object per line"),
    "broken JSON Lines": ("t.jsonl", '{"age":1\n', "line 1", "one object per line"),
    "ragged rows": ("t.csv", HEADER + ROWS + "1,f\n", "line 122", "complete it"),
    "a column twice": ("t.csv", "age,sex,job,age\n" + ROWS, "Columns 1 and 4", "Rename"),
    "mixed types": ("t.csv", HEADER + ROWS + "old,f,clerk,3\n", "'age'", "missing to true"),
    "a huge field": ("t.csv", HEADER + f"1,f,{'x' * 10**6},3\n", "'job'", "Widen"),
    "no header": ("t.csv", ROWS, "No column", "is it there?"),
    "a quote without end": ("t.csv", HEADER + ROWS + '1,"f,clerk,3\n', "line 122", "Close it"),
    "another spelling": ("t.csv", HEADER.replace("age", "Age") + ROWS, '"Age"', "agree"),
    "decimal commas": ("t.csv", HEADER + '"1","f","cook","3,5"\n' * 9, "'pay'", "decimal point"),
    "a title above": ("t.csv", "Visits\n" + HEADER + ROWS, "a single field", "Delete a title"),
    "a title of the sheet": (
        "t.csv",
        "Visits,,,\n" + HEADER + ROWS,
        "Column 2",
        "delete a title or another header",
    ),
    "the separator of a spreadsheet": (
        "t.csv",
        "sep=,\n" + HEADER + ROWS,
        "Column 2",
        "The first line must name",
    ),
    "a blank line above": ("t.csv", "\n" + HEADER + ROWS, "t.csv has no header", "first line"),
    "an index without a name": (
        "t.csv",
        f",{HEADER}" + ROWS.replace("\n", ",\n"),
        "Column 1",
        "or delete it",
    ),
    "blanks as separators": (
        "t.csv",
        (HEADER + ROWS).replace(",", " "),
        "a single field",
        "separator",
    ),
    "a blank in a name": ("t.csv", HEADER.replace("age", "age\u00a0") + ROWS, '"age"', "blanks"),
    "a renamed column": ("t.csv", HEADER.replace("pay", "income") + ROWS, '"income"', "ignore"),
    "separators of thousands": (
        "t.csv",
        HEADER + '1,f,cook,"1,200"\n' * 9,
        "'pay'",
        "no separators of thousands",
    ),
    "NA as a text": ("t.csv", HEADER + ROWS + "NA,f,cook,3\n", "'age'", "missing to true"),
    "line ends of old Macs": ("t.csv", (HEADER + ROWS).replace("\n", "\r"), "t.csv", "first line"),
    "a file of R": ("t.rds", b"RDX3", "a file of R", "Export"),
    "a page": ("t.html", "<html><table>", "HTML or XML", "Export"),
    "a release as the table": ("r.margrave", "", "is a release", "margrave sample r.margrave"),
    "a schema as the table": ("wrong.toml", TOML, "is a schema", "Name the table"),
    "a damaged workbook": ("t.xlsx", b"PK", "t.xlsx", "Save it anew"),
    "no columns in a Parquet file": ("t.parquet", b"PAR1 and no more", "t.parquet", "Save it anew"),
}

SCHEMAS: dict[str, tuple[str, str, str, str]] = {
    "CSV": (TOML, HEADER + ROWS, "is a table, not a schema", "schema draft"),
    "a misspelt key": ("bins = 10", "bin = 10", "'bin'", "Did you mean 'bins'?"),
    "a misspelt kind": ('"integer"', '"integr"', "'age'", "Did you mean 'integer'?"),
    "a misspelt table": ("[[column]]", "[[columns]]", "'columns'", "[[column]]"),
    "a misspelt setting": ("version = 1", "version = 1\nignored = []", "'ignored'", "'ignore'?"),
    "contradictory keys": ("bins = 10", "bins = 10\nedges = [0, 10, 99]", "both", "Keep one"),
    "bounds in reverse": ("low = 0\nhigh = 99", "low = 99\nhigh = 0", "'age'", "Exchange"),
    "a column twice": ('"job"', '"sex"', "'sex' occurs twice", "Keep one"),
    "a category twice": ('"f", "m"', '"f", "f"', "'f' is listed twice", "once"),
    "a list in quotes": (
        'categories = ["f", "m"]',
        'categories = "f, m"',
        "'f, m' of column 'sex' cannot be read",
        'written categories = ["F", "M"]',
    ),
    "learned and refused": (
        'categories = ["f", "m"]',
        "learn = true",
        "'sex'",
        "Take outside out",
    ),
    "learned and declared": ("bins = 10", "learn = true\nbins = 10", "bins contradicts", "out"),
    "ignored and used": ("version = 1", 'version = 1\nignore = ["age"]', "'age'", "out of ignore"),
    "a draft": ("version = 1", "version = 1\ndraft = true", "draft", "write the public value"),
    "another version": ("version = 1", "version = 9", "version", "Write version = 1"),
    "no bound": ("high = 99\n", "", "no high", "learn = true"),
    "a bound in quotes": ("low = 0\n", 'low = "0"\n', "low is not", "Write low"),
    "no number as a bound": ("low = 0.0", "low = nan", "'pay'", "Give a bound"),
    "an unknown policy": ('"clip"', '"cut"', "outside", "Choose one of"),
    "no categories": ('["f", "m"]', "[]", "'sex'", "List the categories"),
    "no bins": ("bins = 10", "bins = 0", "bins is out of range", "between 1 and"),
    "a constraint of no kind": (
        "[schema]",
        "[[constraint]]\nimposible = {}\n[schema]",
        "A constraint",
        "impossible",
    ),
    "a constraint on no column": (
        "[schema]",
        '[[constraint]]\nordered = ["age", "agee"]\n[schema]',
        "'agee'",
        "",
    ),
}

RUN = "synthesize visits.csv -s schema.toml --release out.margrave"
ASK = f"{RUN} -e 1 --delta 1e-9"
OPTIONS = (
    Wrong(f"{RUN} -e 0 --delta 1e-9", 2, "epsilon is 0", "Give a number"),
    Wrong(f"{RUN} -e nan --delta 1e-9", 2, "epsilon is nan", "Give a number"),
    Wrong(f"{RUN} -e 1e9 --delta 1e-9", 2, "epsilon is 1e+09", "Lower epsilon"),
    Wrong(f"{RUN} -e 1,5 --delta 1e-9", 2, "--epsilon is '1,5'", "decimal point"),
    Wrong(f"{RUN} -e 1 --delta 1", 2, "delta is 1", "between 0 and 1"),
    Wrong(f"{RUN} -e 1 --delta 0.5", 2, "delta is 0.5", "1e-9, say"),
    Wrong(f"{RUN} -e 1", 2, "--delta is missing", "1e-09 for up to 1,000,000 rows"),
    Wrong(f"{RUN} --delta 1e-9", 2, "--epsilon is missing", "such as 1"),
    Wrong("plan -s schema.toml -e 1", 2, "--delta is missing", "1e-09 for up to 1,000,000 rows"),
    Wrong(f"{ASK} --unit add-remove-rows", 2, "'add-remove-rows'", "'add-remove-row'?"),
    Wrong(f"{ASK} --unit add-remove-person:3", 3, "the schema names no column", 'person = "'),
    Wrong(f"{ASK} -m msst", 2, "'msst'", "Did you mean 'mst'?"),
    Wrong(f"{ASK} -m AIM", 2, "'AIM'", "Did you mean 'aim'?"),
    Wrong(f"{ASK} -m mst --rounds 3", 2, "--rounds means nothing to mst", "aim, mwem-pgm"),
    Wrong(f"{ASK} -m aim --rounds ten", 2, "--rounds is 'ten'", "Give a number"),
    Wrong(f"{ASK} -m aim --max-model-mbb 3", 2, "--max-model-mbb", "'--max-model-mb'?"),
    Wrong(f"{ASK} -m aim --alpha half", 2, "--alpha is 'half'", "0.5 or 1/2"),
    Wrong(f"{RUN} --delta 1e-9 --epsilon", 2, "'--epsilon'", "behind --epsilon"),
    Wrong(f"{ASK} --sealed=yes", 2, "'--sealed'", "Write --sealed alone"),
    Wrong(f"{ASK} --journal no/j", 2, "The folder no", "Make it first"),
    Wrong("synthesize visits.csv -s '' -e 1 --delta 1e-9 -o o.csv", 3, "schema file", "Draft one"),
    Wrong("plan visits.csv -s schema.toml -e 1 --delta 1e-9", 2, "(visits.csv)", "Leave it out"),
    Wrong(f"{ASK} visits-2.csv", 2, "(visits-2.csv)", "a pattern of files, in quotes"),
    Wrong(f"{ASK} --fit grafical", 2, "'grafical'", "Did you mean 'graphical'?"),
    Wrong(f"{ASK} --workload all3way", 2, "'all3way'", "Did you mean 'all-3way'?"),
    Wrong(f"{ASK} --workload skewd", 2, "'skewd'", "Did you mean 'skewed'?"),
    Wrong(f"{ASK} --workload all-three-way", 2, "'all-three-way'", "Did you mean 'all-3way'?"),
    Wrong(f"{ASK} --workload aroud:age", 2, "'aroud:age'", "'around:age'?"),
    Wrong(f"{ASK} --workload age,sexx", 2, "'sexx'", "Did you mean 'sex'?"),
    Wrong(f"{ASK} -m aim --as-published=Nobody", 2, "'Nobody'", "Its forms"),
    Wrong(f"{ASK} -m pmw-pub", 2, "a public table", "--public FILE"),
    Wrong(f"{ASK} -m mst --public other.csv", 2, "nothing to mst", "aim-pub"),
    Wrong(
        f"{ASK} -m aim-pub --public visits.csv",
        2,
        "--public names the private table",
        "another file",
    ),
    Wrong(f"{ASK} --workload visits.csv", 2, "--workload names the private table", "another file"),
    Wrong(f"{ASK} --policy visits.csv", 2, "--policy names the private table", "another file"),
    Wrong(f"{ASK} --for 'mean of payy'", 2, "'payy'", "Did you mean 'pay'?"),
    Wrong(f"{ASK} --for 'men pay'", 2, "'men pay'", 'Write "mean'),
    Wrong(f"{ASK} --for 'mean sex'", 2, "'sex' has categories", "share sex"),
    Wrong(f"{ASK} --for 'ols pay ~ agee'", 2, "'agee'", "Did you mean 'age'?"),
    Wrong(f"{ASK} --for 'ols pay ~ age + pay'", 2, "pay is the outcome and stands", "Leave it out"),
    Wrong(f"{ASK} --for 'ols pay ~ age | sex'", 2, "sex is not true or false", "a comparison"),
    Wrong(f"{ASK} --for 'ols pay ~ log(sex)'", 2, "sex is not a number", "write C(sex)"),
    Wrong(f"{ASK} --for 'ols pay ~ (sex > 3)'", 2, "sex has no value 3", "Its values: f, m"),
    Wrong(
        f"""{ASK} --for "ols pay ~ sex == 'g'" """, 2, "sex has no value 'g'", "Its values: f, m"
    ),
    Wrong(f"{ASK} --for 'ols pay ~ age +'", 2, "character 12", "Write one such as"),
    Wrong(f"{ASK} --ledger no.db --dataset d", 8, "no.db", "ledger init"),
    Wrong(f"{ASK} --ledger books.db", 2, "which data set", "--dataset ID"),
    Wrong(f"{ASK} --ledger books.db --dataset other", 2, "'other'", "ledger init"),
    Wrong(f"{ASK} --ledger books.db --dataset small", 5, "'small'", "Spend at most that"),
    Wrong(f"{ASK} --ledger visits.csv --dataset d", 8, "visits.csv", "Name another file"),
    Wrong(f"{ASK} --dataset d", 2, "'d' is named without a ledger", "--ledger FILE"),
    Wrong(f"{ASK} --policy rules.toml", 2, "'max_epsilonn'", "Did you mean 'max_epsilon'?"),
    Wrong(f"{ASK} --resume", 8, "out.margrave.journal", "leave --resume"),
    Wrong(f"{RUN} -e -1 --delta 1e-9", 2, "epsilon is -1", "Give a number"),
    Wrong(f"{RUN} -e 1 --delta 10^-9", 2, "--delta is '10^-9'", "decimal point"),
    Wrong(f"{ASK} --rows -5", 2, "--rows is -5", "at least 0"),
    Wrong(f"{ASK} --rows 0 -o o.csv", 2, "--rows is 0", "at least 1"),
    Wrong(f"{ASK} -o .", 2, ". is a folder", "Name a file"),
    Wrong("synthesize visits.csv schema.toml -e 1 --delta 1e-9", 2, "(schema.toml)", "--schema s"),
    Wrong(f"{ASK} age", 2, "(age)", "in quotes"),
    Wrong("ledger show visits.csv", 8, "visits.csv is not a margrave ledger", "Name another file"),
    Wrong(f"{ASK} --report o.html --title {'a' * 201}", 2, "title", "at most 200"),
    Wrong(f"{ASK} --office Office", 2, "--office", "Give --report"),
    Wrong(
        "synthesize visits.csv -s r.margrave -e 1 --delta 1e-9 -o o.csv", 3, "r.margrave", ".toml"
    ),
    Wrong("sample r.margrave -n 1,000 -o o.csv", 2, "--rows is '1,000'", "Give a number"),
    Wrong("sample r.margrave -n -5 -o o.csv", 2, "-5 rows", "at least 0"),
    Wrong("report visits.csv -o o.html", 7, "visits.csv is not a release", ".margrave"),
    Wrong("analyze ols r.margrave 'pay ~ wages'", 2, "'wages'", "Did you mean 'age'?"),
    Wrong(
        "analyze ols r.margrave 'pay ~ age + pay'", 2, "pay is the outcome", "Leave it out there"
    ),
    Wrong("analyze logistic r.margrave 'sex ~ C(sex)'", 2, "sex is the outcome", "Leave it out"),
    Wrong("analyze ols r.margrave 'log(pay) ~ pay'", 2, "pay is the outcome", "Leave it out there"),
    Wrong("analyze ols r.margrave pay ~ age", 2, "(~ age)", "in quotes"),
    Wrong("sample r.margrave -o no/o.csv", 2, "The folder no", "Make it first"),
    Wrong("sample r.margrave -o visits.csv", 2, "visits.csv exists", "--overwrite"),
    Wrong(
        "sample r.margrave -o visits.csv/o.csv", 2, "visits.csv is a file, not a folder", "Name an"
    ),
    Wrong("sample r.margrave -o o.csv.gz", 2, "o.csv.gz", "Name it so: o.csv or o.parquet."),
    Wrong("verify r.margrave s.margrave", 2, "(s.margrave)", "verify takes one release"),
    Wrong("sample r.margrave -o o.xls", 2, "o.xls", "Name it so: o.parquet"),
    Wrong("sample r.margrave -n many -o o.csv", 2, "--rows is 'many'", "Give a number"),
    Wrong("sample r.margrave --where age=150.. -o o.csv", 2, "'age' lies outside", "from 0 to 99"),
    Wrong("sample r.margrave --where age= -o o.csv", 2, "'age'", "from 0 to 99"),
    Wrong("sample r.margrave --where agee=3 -o o.csv", 2, "'agee'", "Did you mean 'age'?"),
    Wrong(
        "sample r.margrave --where 'sex=f, age=30..40' -o o.csv",
        2,
        "has 2 conditions in one",
        '--where "sex=f" --where "age=30..40"',
    ),
    Wrong(
        "analyze mean r.margrave pay --where 'age=30..40 and sex=f'",
        2,
        "has 2 conditions in one",
        '--where "age=30..40" --where "sex=f"',
    ),
    Wrong("sample r.margrave --where 'age>3' -o o.csv", 2, "'age>3'", "Write COLUMN=VALUE"),
    Wrong("sample r.margrave --where age=50..20 -o o.csv", 2, "'age'", "Exchange"),
    Wrong("sample r.margrave --outptu o.csv", 2, "--outptu", "Did you mean '--output'?"),
    Wrong("certificate half.margrave", 7, "half.margrave", "Copy it anew"),
    Wrong("certificate later.margrave", 7, "later.margrave", "the margrave that wrote it"),
    Wrong("certificate other.zip", 7, "it has no manifest", "Copy it anew"),
    Wrong("certificate visits.csv", 7, "visits.csv is not a release", ".margrave"),
    Wrong("certificate none.margrave", 7, "none.margrave", "Check the path"),
    Wrong("certificate", 2, "RELEASE is missing", "Write: margrave certificate"),
    Wrong("evaluate r.margrave visits.csv", 2, "REAL is a release", "Write the table first"),
    Wrong("evaluate visits.csv visits.csv", 2, "needs a schema", "Give --schema"),
    Wrong("evaluate visits.csv r.margrave --target age", 2, "--target", "Give both"),
    Wrong("evaluate visits.csv r.margrave --regression", 2, "--regression", "Give --target"),
    Wrong("evaluate visits.csv r.margrave -n 0", 2, "--rows is 0", "at least 1"),
    Wrong(
        "numbers r.margrave --columns 'age;pay'", 2, "'age;pay': a comma is missing", '"age, pay"'
    ),
    Wrong("numbers r.margrave --columns ,", 2, "names no column", "Name at least one"),
    Wrong("numbers r.margrave --by sex --columns sex", 2, "besides 'sex'", "Name at least one"),
    Wrong(
        "croissant r.margrave visits.csv -o o.json --name n --license l --creator c --url u --published 31.1.2026",
        2,
        "'31.1.2026'",
        "2026-01-31",
    ),
    Wrong("smaple r.margrave", 2, "'smaple'", "Did you mean 'sample'?"),
    Wrong("analyze men r.margrave age", 2, "'men'", "Did you mean 'mean'?"),
    Wrong("analyze mean r.margrave", 2, "COLUMN is missing", "Write: margrave analyze mean"),
    Wrong("analyze mean r.margrave age --method bootstap", 2, "'bootstap'", "'bootstrap'?"),
    Wrong("analyze several r.margrave 'men age'", 2, "'men age'", "Did you mean 'mean'?"),
    Wrong("schema import none.json -o x.toml", 2, "none.json", "Check the path"),
    Wrong("schema import . -o x.toml", 2, ". is a folder", "Name a file"),
    Wrong("schema check visits.csv -s .", 2, ". is a folder", "Name a file"),
    Wrong("schema export --schema schema.toml --form sdvv", 2, "'sdvv'", "Did you mean 'sdv'?"),
)

COLUMN = {"name": "age", "datatype": {"base": "integer", "minimum": 0}}
REDCAP = '"Variable / Field Name","Field Type","Text Validation Type OR Show Slider Number"\n'
DDI = '<codeBook><var name="age" intrvl="contin">{}</var></codeBook>'
CODE_BOOKS: dict[str, tuple[object, str, str]] = {
    "a datatype of CSVW": ({**COLUMN, "datatype": "intger"}, "'intger'", "'integer'?"),
    "a bound of CSVW": ({**COLUMN, "datatype": {"minimun": 0}}, "'minimun'", "'minimum'?"),
    "a property of CSVW": ({**COLUMN, "requird": True}, "'requird'", "'required'?"),
    "a field type of REDCap": (f"{REDCAP}age,txt,\n", "'txt'", "'text'?"),
    "a validation of REDCap": (f"{REDCAP}age,text,intger\n", "'intger'", "'integer'?"),
    "an element of DDI": (DDI.format("<valrnge/>"), "'valrnge'", "'valrng'?"),
    "an interval of DDI": (DDI.format("").replace("contin", "contn"), "'contn'", "'contin'?"),
    "a type of DDI": (DDI.format('<varFormat type="numerc"/>'), "'numerc'", "'numeric'?"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, its schema, a ledger, and releases that are whole, cut off, and of another version."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "visits.csv").write_text(HEADER + ROWS)
    SCHEMA.save(folder / "schema.toml")
    release = margrave.synthesize(folder / "visits.csv", SCHEMA, mechanism="independent", **COST)
    release.save(folder / "r.margrave")
    whole = (folder / "r.margrave").read_bytes()
    (folder / "half.margrave").write_bytes(whole[: len(whole) // 2])
    (folder / "other.zip").write_bytes(zipped())
    with (
        zipfile.ZipFile(folder / "r.margrave") as old,
        zipfile.ZipFile(folder / "later.margrave", "w") as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                content = json.dumps({**json.loads(content), "version": 99}).encode()
            new.writestr(name, content)
    (folder / "rules.toml").write_text("[policy]\nversion = 1\nmax_epsilonn = 1.0\n")
    for name, epsilon in (("d", 2.0), ("small", 0.1)):
        cap = Budget.approx(epsilon, 1e-9)
        Ledger(folder / "books.db").init(name, unit="add-remove-row", cap=cap)
    return folder


@pytest.fixture
def graded(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Wrong], str]:
    """Return the grade of a wrong input, with the gate shut."""
    monkeypatch.chdir(home)

    def opened(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the gate was opened")

    monkeypatch.setattr(margrave.run, "protect", opened)

    def grade(wrong: Wrong) -> str:
        before = {p: p.stat().st_mtime_ns for p in home.rglob("*")}
        code = run(shlex.split(wrong.command))
        printed = capsys.readouterr()
        said = printed.err.strip()
        if code == 0 or printed.out or {p: p.stat().st_mtime_ns for p in home.rglob("*")} != before:
            return "F"
        if code != wrong.code or not said.startswith("Error: ") or "\n" in said:
            return f"D: {code} {said}"
        if wrong.thing not in said:
            return f"C: {said}"
        return "A" if wrong.remedy in said else f"B: {said}"

    return grade


@pytest.mark.parametrize("wrong", OPTIONS, ids=lambda w: w.command)
def test_wrong_options(wrong: Wrong, graded: Callable[[Wrong], str]) -> None:
    assert graded(wrong) == "A"


@pytest.mark.parametrize("what", TABLES)
def test_wrong_tables(what: str, home: Path, graded: Callable[[Wrong], str]) -> None:
    name, content, thing, remedy = TABLES[what]
    if content:
        (home / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if name.endswith(".xlsx"):
        pytest.importorskip("fastexcel", reason="fastexcel is not installed")
    assert graded(Wrong(ASK.replace("visits.csv", name), 4, thing, remedy)) == "A"


@pytest.mark.parametrize("what", SCHEMAS)
def test_wrong_schemas(what: str, home: Path, graded: Callable[[Wrong], str]) -> None:
    old, new, thing, remedy = SCHEMAS[what]
    assert old in TOML
    (home / "wrong.toml").write_text(TOML.replace(old, new))
    assert graded(Wrong(ASK.replace("schema.toml", "wrong.toml"), 3, thing, remedy)) == "A"


@pytest.mark.parametrize("what", CODE_BOOKS)
def test_misspelt_code_books(what: str, home: Path, graded: Callable[[Wrong], str]) -> None:
    book, thing, remedy = CODE_BOOKS[what]
    if not isinstance(book, str):
        book = json.dumps({"tableSchema": {"columns": [book]}})
    (home / "book").write_text(book)
    assert graded(Wrong("schema import book -o x.toml", 3, thing, remedy)) == "A"


FRAME = pa.table({"age": [1, 2], "sex": ["f", "m"], "job": ["cook", "cook"], "pay": [1.0, 2.0]})
TIMES = pa.array([datetime(2024, 5, 1), None], pa.timestamp("s", "Europe/Zurich"))


def levels() -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = FRAME.to_pandas()
    frame.columns = pandas.MultiIndex.from_tuples([("a", name) for name in frame.columns])
    return frame


def longer() -> pa.Table:
    return pa.concat_tables([FRAME] * 60)


def synthesized(table: Any) -> Any:
    return margrave.synthesize(table, SCHEMA, **COST)


CALLS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a list of rows": (lambda: margrave.synthesize([1, 2], SCHEMA, **COST), "not a table", "Give"),
    "a frame without a column": (
        lambda: margrave.synthesize(FRAME.drop_columns("pay"), SCHEMA, **COST),
        '"pay"',
        "take it out of the schema",
    ),
    "a frame with a column more": (
        lambda: margrave.synthesize(FRAME.append_column("x", [[1, 2]]), SCHEMA, **COST),
        '"x"',
        "ignore",
    ),
    "a frame without rows": (
        lambda: margrave.synthesize(FRAME.slice(0, 0), SCHEMA, **COST),
        "no rows",
        "right file",
    ),
    "columns in several levels": (lambda: synthesized(levels()), "names of 2 levels", "Join them"),
    "columns named by numbers": (
        lambda: synthesized(FRAME.rename_columns(list("0123"))),
        "No column",
        "by text",
    ),
    "a list in each cell": (
        lambda: synthesized(longer().set_column(2, "job", [[["cook"]] * 120])),
        "'job'",
        "not a list",
    ),
    "a record in each cell": (
        lambda: synthesized(longer().set_column(2, "job", [[{"a": "cook"}] * 120])),
        "'job'",
        "not a list or a record",
    ),
    "times for numbers": (
        lambda: synthesized(FRAME.set_column(3, "pay", [TIMES])),
        "'pay'",
        "the column's kind",
    ),
    "only missing values": (
        lambda: synthesized(FRAME.set_column(0, "age", [[None, None]])),
        "'age': 2 values missing",
        "missing to true",
    ),
    "a release in memory": (
        lambda: margrave.Release.load(b"PK"),  # type: ignore[arg-type]
        "type bytes",
        "visits.margrave",
    ),
    "epsilon as a truth value": (
        lambda: margrave.plan(SCHEMA, epsilon=True, delta=1e-9),
        "epsilon is True",
        "Give a number",
    ),
    "epsilon as text": (
        lambda: margrave.plan(SCHEMA, epsilon="1", delta=1e-9),  # type: ignore[arg-type]
        "epsilon",
        "number",
    ),
    "no delta": (
        lambda: margrave.plan(SCHEMA, epsilon=1.0, delta=None),  # type: ignore[arg-type]
        "delta",
        "1e-9",
    ),
    "rounds as text": (lambda: AIM(rounds="3"), "rounds", "whole number"),  # type: ignore[arg-type]
    "a negative size": (lambda: AIM(max_model_mb=-1), "max_model_mb", "above 0"),
    "a workload as text": (lambda: AIM(workload="all-3way"), "workload", "Workload"),  # type: ignore[arg-type]
    "a fit as text": (lambda: MST(fit="graphical"), "fit", ""),  # type: ignore[arg-type]
    "a ledger in place of its path": (
        lambda: margrave.plan(SCHEMA, ledger=Ledger("l"), dataset="d", **COST),  # type: ignore[arg-type]
        "type Ledger, which is not a path",
        "visits.ledger",
    ),
    "a ledger of nothing": (lambda: Ledger(None), "type NoneType", "visits.ledger"),  # type: ignore[arg-type]
    "a condition as a function": (
        lambda: codes_of(SCHEMA, "age", len),  # type: ignore[arg-type]
        "'age' cannot be held to",
        "a list of values, or (low, high)",
    ),
    "a schema of nothing": (lambda: Schema([]), "no columns", "Add"),
    "bounds in reverse": (lambda: Integer("age", 9, 0), "low is above high", "Exchange"),
    "categories as a text": (lambda: Categorical("sex", "fm"), "'sex'", "list"),
}


@pytest.mark.parametrize("what", CALLS)
def test_wrong_calls(what: str) -> None:
    call, thing, remedy = CALLS[what]
    with pytest.raises(MargraveError) as raised:
        call()
    said = str(raised.value)
    assert thing in said
    assert remedy in said
    assert "\n" not in said
