"""A draft in Python: the questions and notes of the command line, once, as warnings, and never in a release."""

from __future__ import annotations

import contextlib
import re
import warnings
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import margrave
from margrave.accounting import Budget
from margrave.cli.main import run
from margrave.contrib.synthesizer import Synthesizer
from margrave.custodian import NOT_PRIVATE
from margrave.errors import (
    CustodianWarning,
    DataError,
    InputError,
    UnfinishedError,
    UnlearnableError,
)
from margrave.profiling import check_table
from margrave.profiling.draft import draft, quiet_draft
from margrave.profiling.hints import HintWords
from margrave.run import Run
from margrave.schema import (
    Boolean,
    Categorical,
    ColumnSource,
    Elapsed,
    Integer,
    Learn,
    Ordered,
    Schema,
)

SPENDS: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-9, "mechanism": "independent"}


def visits(n: int = 600) -> pa.Table:
    """Rows with codes for missing values, a misspelt ward, and a column of yes and no."""
    rng = np.random.default_rng(5)
    age = np.where(rng.random(n) < 0.05, -9, rng.integers(18, 95, n))
    sex = np.where(rng.random(n) < 0.05, "-9", rng.choice(["F", "M"], n))
    ward = np.where(np.arange(n) < 4, "Cardioligy", rng.choice(["Cardiology", "Surgery"], n))
    return pa.table(
        {"age": age, "sex": sex, "ward": ward, "readmitted": rng.choice(["yes", "no"], n)}
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the visits."""
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(visits(), "t.csv")
    return tmp_path


def texts_of(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(w.message) for w in caught if w.category is CustodianWarning]


def test_python_gives_the_notes_of_the_command_line_once(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(CustodianWarning) as caught:
        release = margrave.synthesize("t.csv", margrave.draft_schema("t.csv"), **SPENDS)
    assert {w.filename for w in caught} == {__file__}
    text = "\n".join(texts_of(caught.list))
    words = ["t.csv", "--accept-draft", "--epsilon", "20", "--delta", "1e-9", "-m", "independent"]
    assert run(["synthesize", *words, "-o", "rows.csv"]) == 0
    lines = capsys.readouterr().err.splitlines()
    prefixes = ("NOT PRIVATE, for the custodian alone: ", "Note: ")
    notes = [
        line.removeprefix(p)
        for line in lines
        for p in (*prefixes, "Taken as public")
        if line.startswith(p)
    ]
    own = ("margrave schema", "--release FILE.margrave")
    shared = [note for note in notes if not any(words in note for words in own)]
    assert len(shared) >= 4
    assert [text.count(note) for note in shared] == [1] * len(shared)
    assert "-9" not in text
    assert "Cardioligy" not in text
    assert "code for missing" not in str(release.certificate()) + release.schema.to_toml()


def test_a_draft_shows_its_open_questions_without_values() -> None:
    drafted = quiet_draft(visits())
    asked = "open questions on age, sex, ward, readmitted"
    assert asked in repr(drafted)
    assert asked in str(drafted)
    assert 'remarks["age"]' in drafted._repr_html_().replace("&quot;", '"')
    assert "-9" not in repr(drafted) + str(drafted)
    left = drafted.declare(Integer("age", 0, 110, missing=True)).drop("ward")
    assert "open questions on sex, readmitted" in repr(left)
    assert "open questions" not in repr(drafted.confirmed())


@pytest.mark.parametrize("read", [False, True])
def test_remarks_speak_of_the_table_and_of_no_option(read: bool) -> None:
    ids = [f"P{i % 240:06d}" for i in range(600)]
    fees = [f"{i},5" for i in range(600)]
    table = visits().append_column("patient_id", pa.array(ids)).append_column("fee", pa.array(fees))
    remarks = "\n".join(draft(table, read=read).remarks.values())
    for sentence in (
        "rewrite them in the table",
        "empty in the table",
        "such as add-remove-person:5",
    ):
        assert sentence in remarks
    assert "the file" not in remarks
    assert "--" not in remarks


def test_a_draft_is_known_by_its_field_and_not_by_the_words_of_its_remarks() -> None:
    drafted = quiet_draft(visits())
    assert drafted.from_draft
    assert drafted.drop("ward").from_draft
    assert not drafted.confirmed().from_draft
    assert not drafted.for_run().from_draft
    assert not Schema.from_toml(drafted.to_toml()).from_draft
    remarks = {"": "A DRAFT by the provider.", "age": "In years."}
    assert "open questions" not in repr(Schema([Integer("age", 0, 110)], remarks=remarks))


def test_checks_and_drafts_that_are_read_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet_draft(visits())
        margrave.draft_schema(visits(), read=True)
        check_table(
            visits(), Schema([Integer("age", 0, 110)], ignore=["sex", "ward", "readmitted"])
        )


def test_an_accepted_draft_of_a_synthesizer_warns() -> None:
    with pytest.warns(
        CustodianWarning, match="Is a value of age, sex a code for missing"
    ) as caught:
        Synthesizer(accept_draft=True, **SPENDS).fit(visits())
    (text,) = (t for t in texts_of(caught.list) if "Is a value of" in t)
    assert "draft is what margrave.draft_schema(table) returns" in text
    assert "Give draft to a synthesizer as its schema, and leave out accept_draft." in text


def test_the_questions_of_an_accepted_draft_go_to_the_callback() -> None:
    heard: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Synthesizer(accept_draft=True, on_custodian=heard.append, **SPENDS).fit(visits())
    assert not [t for t in texts_of(caught) if "code for missing" in t or "Taken as public" in t]
    text = "\n".join(heard)
    assert "Is a value of age, sex a code for missing" in text
    assert heard[0].startswith("Taken as public")
    assert "Give draft to a synthesizer as its schema" in text
    assert "draft_schema returned" not in text


@pytest.mark.parametrize("journal", [None, "run.journal"])
def test_an_unfinished_run_gives_advice_that_can_be_followed(
    here: Path, journal: str | None
) -> None:
    schema = quiet_draft("t.csv")
    options: dict[str, Any] = {**SPENDS, "epsilon": 0.05, "journal": journal}
    with pytest.raises(UnfinishedError, match="No other column is left") as caught:
        margrave.synthesize("t.csv", schema, **options)
    assert "resume=True" not in str(caught.value)
    if journal is not None:
        Path(journal).unlink()
    schema = schema.declare(Boolean("readmitted", missing=True))
    with pytest.raises(UnfinishedError) as caught:
        margrave.synthesize("t.csv", schema, **options)
    text = str(caught.value)
    assert "this error's release holds every noisy answer" in text
    assert "refit" not in text  # which needs counts
    assert ("resume=True" in text) == ("Resume the run" in text) == (journal is not None)
    assert ('pass journal="FILE"' in text) == (journal is None)


def test_a_person_id_column_of_a_draft_is_said_to_be_the_drafts(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [f"P{i % 240:06d}" for i in range(600)]
    pyarrow.csv.write_csv(visits().append_column("patient_id", pa.array(ids)), "p.csv")
    with pytest.raises(InputError, match="The draft takes 'patient_id' for a person ID column"):
        margrave.synthesize("p.csv", quiet_draft("p.csv"), **SPENDS)
    words = ["synthesize", "p.csv", "--epsilon", "9", "--delta", "1e-9", "-o", "rows.csv"]
    assert run([*words, "--accept-draft"]) == 2
    assert "The draft takes 'patient_id' for" in capsys.readouterr().err
    quiet_draft("p.csv").save("p.toml")
    assert run([*words, "-s", "p.toml"]) == 2
    assert "The schema says that 'patient_id' is" in capsys.readouterr().err


# Facts about the rows in a run.


LISTED = Schema([Categorical("ward", ["Cardiology", "Surgery"])])
WARDS = pa.table({"ward": ["Cardiology", "Surgery"] * 100})


def test_a_run_warns_the_custodian_unless_there_is_a_callback() -> None:
    with pytest.warns(CustodianWarning, match="NOT PRIVATE.*as these rows have them: ward"):
        release = margrave.synthesize(WARDS, LISTED, **SPENDS)
    assert "these rows have them" not in str(release.certificate())
    heard: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        margrave.synthesize(WARDS, LISTED, on_custodian=heard.append, **SPENDS)
    assert len(heard) == 1


def test_a_sealed_run_without_a_callback_does_not_warn(tmp_path: Path) -> None:
    ledger = margrave.Ledger(tmp_path / "v.ledger")
    ledger.init("d", unit="add-remove-row", cap=Budget.approx(50.0, 1e-9))
    schema = Schema([Categorical("ward", ["Cardiology", "Surgery"], other=True)])
    ledger.register_schema("d", schema.hash())
    sealed: dict[str, Any] = {"preflight": "sealed", "ledger": ledger.path, "dataset": "d"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        margrave.synthesize(WARDS, schema, **sealed, **SPENDS)
        with pytest.raises(DataError):
            margrave.synthesize(pa.table({"x": [1]}), schema, **sealed, **SPENDS)
    assert texts_of(caught) == []


@pytest.mark.parametrize("case", ["custodian", "callback", "sealed", "persons"])
def test_true_rows_decide_on_a_warning_for_the_custodian_alone(tmp_path: Path, case: str) -> None:
    ledger = margrave.Ledger(tmp_path / "v.ledger")
    ledger.init("d", unit="add-remove-row", cap=Budget.approx(50.0, 1e-9))
    schema = Schema([Learn("x", "integer")], person="who" if case == "persons" else None)
    ledger.register_schema("d", schema.hash())
    more: dict[str, dict[str, Any]] = {
        "callback": {"on_custodian": [].append},
        "sealed": {
            "preflight": "sealed",
            "ledger": ledger.path,
            "dataset": "d",
            "unlearnable": "drop",
        },
        "persons": {"unit": "add-remove-person:1"},
    }
    texts = []
    for rows in (1000, 20_000):
        columns = {"x": np.arange(rows) % 50 + 1}
        if case == "persons":
            columns["who"] = np.arange(rows) + 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.suppress(UnfinishedError, UnlearnableError):
                margrave.synthesize(
                    pa.table(columns), schema, **{**SPENDS, "epsilon": 1.0, **more.get(case, {})}
                )
        texts.append([t for t in texts_of(caught) if "Learning columns" in t])
    assert ["Learning columns needs about" in t for t in texts[0]] == [True]
    assert texts[0][0].startswith(NOT_PRIVATE) == (case == "custodian")
    assert texts[1] == ([] if case == "custodian" else texts[0])


def test_a_warning_that_is_an_error_does_not_cost_a_release() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.integers(500, 600, 3000), "b": rng.integers(0, 50, 3000)})
    schema = Schema(
        [Learn("a", "integer"), Learn("b", "integer")], constraints=[Ordered(["a", "b"])]
    )
    started = Run(schema=schema, budget=Budget.approx(1e4, 1e-6), seed=1, mechanism="independent")

    def refuse(sentence: str) -> None:
        raise CustodianWarning(sentence)

    assert started.synthesize(table, on_custodian=refuse).schema.constraints == ()


# Codes for missing values among texts.


@pytest.mark.parametrize(
    ("codes", "others", "asked"),
    [
        (["-9"], ["F", "M"], True), (["99"], ["F", "M"], True), (["0"], ["F", "M"], True),
        (["Unknown"], ["A1", "B2"], True), (["-"], ["A1", "B2"], True), (["-99"], ["A1", "B2"], True),
        (["none", "-8", "-9"], ["F", "M"], True), (["-6", "-7", "-8", "-9"], ["F", "M"], False),
        (["99"], ["A1", "B2"], False), (["5"], ["F", "M"], False), (["U"], ["F", "M"], False),
    ],
)  # fmt: skip
def test_texts_that_look_like_codes_for_missing_are_asked_about(
    codes: list[str], others: list[str], asked: bool
) -> None:
    table = pa.table({"x": [*others * 100, *codes * 4], "y": ["a", "b"] * (100 + 2 * len(codes))})
    drafted = draft(table)
    assert drafted.column("x") == Learn("x", "categorical")
    assert ("for a missing value?" in drafted.remarks.get("x", "")) == asked
    for column in (Learn("x", "categorical"), Categorical("x", others, other=True, missing=True)):
        schema = Schema([column], ignore=["y"])
        found = [a for a in check_table(table, schema).alarms if "Does that mean missing?" in a]
        assert bool(found) == asked
        stated = {"x": ColumnSource(missing_codes=codes)}
        assert not check_table(table, Schema([column], ignore=["y"], sources=stated)).alarms
    listed = Schema([Categorical("x", [*others, *codes])], ignore=["y"])
    assert not any("missing?" in a for a in check_table(table, listed).alarms)
    assert ("for a missing value?" in draft(table, read=True).remarks.get("x", "")) == asked


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y-%m-%d %H:%M:%S"])
def test_the_line_that_a_draft_offers_for_a_date_that_means_missing_is_enough(form: str) -> None:
    days = [datetime(2020, 1, 1, 8) + timedelta(days=d) for d in range(300)]
    table = pa.table({"seen": [d.strftime(form) for d in [*days, *[datetime(1900, 1, 1)] * 20]]})
    drafted = draft(table)
    assert 'write missing_codes = ["1900-01-01"] beside learn = true' in drafted.remarks["seen"]
    assert any("1900-01-01 on 20 rows" in alarm for alarm in check_table(table, drafted).alarms)
    for code in ("1900-01-01", datetime(1900, 1, 1).strftime(form)):
        found = check_table(table, drafted.declare(missing_codes={"seen": [code]}))
        assert (found.columns[0].empty, found.alarms) == (20, ())


def test_a_second_date_that_means_missing_is_asked_about_by_draft_and_check() -> None:
    days = [date(2020, 1, 1) + timedelta(days=i % 300) for i in range(600)]
    ends = [d + timedelta(days=i % 9) for i, d in enumerate(days)]
    table = pa.table({"admission": days, "discharge": [*ends[:-20], *[date(9999, 12, 31)] * 20]})
    drafted = draft(table)
    stay = Elapsed("discharge", 0, 30, since="admission", missing=True)
    for schema, beyond in ((drafted, 0), (drafted.declare(stay), 1)):
        alarm, *others = check_table(table, schema).alarms
        assert "9999-12-31 on 20 rows" in alarm
        assert ["moved to the nearest cell. Its bounds are 0 to 30" in o for o in others] == [
            True
        ] * beyond
        stated = schema.declare(missing_codes={"discharge": ["9999-12-31"]})
        assert not check_table(table, stated).alarms


def test_numbers_under_a_name_of_codes_are_asked_about() -> None:
    remark = draft(pa.table({"sex": [1, 2] * 100 + [-9] * 8})).remarks["sex"]
    assert 'missing_codes = ["-9"] beside learn = true' in remark


@pytest.mark.parametrize("others", [[1, 0], [1, 2], [3, 0, 1, 2], [0, 0, 0, 1, 2]])
def test_a_lone_number_below_zero_is_asked_about_by_draft_and_check(others: list[int]) -> None:
    table = pa.table({"x": [*others * 40, -9, -9, -9]})
    drafted = draft(table)
    assert drafted.column("x") == Learn("x", "integer")
    remark, classes = drafted.remarks["x"], 'write kind = "categorical"'
    assert (classes in remark) == (others.count(0) < 2)
    assert 'missing_codes = ["-9"] beside learn = true' in remark
    assert any(
        'missing_codes = ["-9"] beside learn = true' in a
        for a in check_table(table, drafted).alarms
    )
    words = HintWords("declare it", "choose apart", "choose classes", "see below", "start again")
    shown = words.hint(remark)
    assert "If so, declare it" in shown
    assert ("choose classes" in shown) == (classes in remark)
    assert " = " not in shown
    of_book = Schema([Integer("x", 0, 3, missing=True)])
    assert any("with public bounds" in a for a in check_table(table, of_book).alarms)


def test_the_lines_that_a_draft_offers_replace_its_own() -> None:
    days = [date(2024, 1, 1 + i % 28) for i in range(80)]
    table = pa.table({
        "emergency": ["yes", "no"] * 40, "sex": ["f", "m"] * 40, "answer": [1, 2, 3, 4] * 20,
        "ward_type": [7, 8, 9, 3] * 20, "start_date": days, "end_date": days,
    })  # fmt: skip
    text = draft(table).to_toml()
    learned, since = "learn = true", 'since = "start_date"\n'
    for name, kind, own, lines in (
        ("emergency", "boolean", learned, "missing = true"),
        ("emergency", "categorical", learned, 'missing = true\ncategories = ["no", "yes"]'),
        ("sex", "categorical", learned, 'missing = true\ncategories = ["f", "m"]'),
        ("answer", "categorical", learned, learned),
        ("ward_type", "integer", learned, learned),
        ("end_date", "date", f'low = 0\nunit = "day"\n{since}{learned}', learned),
    ):
        before, _, after = text.partition(f'name = "{name}"\n')
        old, bar, rest = after.partition("\n\n")
        assert own in old
        new = f'kind = "{kind}"\n{old.partition(chr(10))[2].replace(own, lines)}'
        made = Schema.from_toml(f'{before}name = "{name}"\n{new}{bar}{rest}')
        assert made.column(name).kind == kind


def test_the_line_that_a_draft_offers_makes_a_code_missing() -> None:
    offered = (
        quiet_draft(visits())
        .to_toml()
        .replace('name = "sex"', 'name = "sex"\nmissing_codes = ["-9"]')
    )
    release = margrave.synthesize(visits(), Schema.from_toml(offered), **SPENDS)
    (sex,) = (c for c in release.schema.columns if c.name == "sex")
    assert sex.labels()[:2] == ["F", "M"]
    assert "-9" not in sex.labels()


# Usual categories.


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (["Yes", "no"], 'kind = "boolean" and missing = true'),
        (["y", "N"], 'kind = "boolean" and missing = true'),
        (["J", "N"], 'categories = ["J", "N"] and missing = true'),
        (["f", "m"], 'categories = ["f", "m"] and missing = true'),
        (["F", "M", "-9"], 'categories = ["F", "M"], missing = true and missing_codes = ["-9"]'),
        (["F", "X"], ""),
    ],
)
def test_usual_categories_are_offered_and_never_declared(values: list[str], line: str) -> None:
    table = pa.table({"x": values * 40, "y": ["a", "b"] * (20 * len(values))})
    drafted = draft(table)
    assert drafted.column("x") == Learn("x", "categorical")
    assert ("by its definition" in drafted.remarks.get("x", "")) == bool(line)
    assert line in drafted.remarks.get("x", "")
    words = HintWords(
        "declare it", "choose apart", "choose classes", "a question asks", "start again"
    )
    assert ("Then state its categories" in words.hint(drafted.remarks.get("x", ""))) == bool(line)
    assert "missing_codes" not in words.hint(drafted.remarks.get("x", ""))


def test_the_draft_says_that_truth_values_lose_their_words_and_how_to_keep_them() -> None:
    drafted = draft(pa.table({"x": ["yes", "no"] * 40, "y": ["f", "m"] * 40}))
    kept = 'says true and false: to keep the words, keep the kind categorical and write categories = ["no", "yes"]'
    assert kept in drafted.remarks["x"]
    assert "true and false" not in drafted.remarks["y"]


def test_the_offered_kind_reads_all_values() -> None:
    table = visits().select(["readmitted"])
    assert Schema([Boolean("readmitted", missing=True)]).preflight(table).columns[0].outside == 0


def test_a_draft_of_some_of_the_rows_says_so(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    rows = 1_200_000
    pq.write_table(pa.table({"stay": np.arange(rows) % 40}), path, row_group_size=100_000)
    said = quiet_draft(path).remarks[""]
    read = int(re.search(r"Drafted from a sample of ([\d,]+) rows\.", said)[1].replace(",", ""))  # type: ignore[index]
    assert 500_000 <= read < rows
    pq.write_table(pa.table({"stay": np.arange(300) % 40}), path)
    assert "sample" not in quiet_draft(path).remarks[""]
