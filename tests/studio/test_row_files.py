"""The rows of a release in several formats: the same rows, made once, and a plain page if a format is refused."""

from __future__ import annotations

import asyncio
import csv
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

pytest.importorskip("starlette")

from margrave.data.writer import named_formats
from margrave.errors import DataError
from margrave.schema import ColumnSource, Schema
from margrave.studio import views, worker
from margrave.studio.job import JobFolder
from tests.support.studio import CANARIES, STATED, Studio, write_table
from tests.support.web import talk

duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")
pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
fastexcel = pytest.importorskip("fastexcel", reason="fastexcel is not installed")
pytest.importorskip("xlsxwriter", reason="XlsxWriter is not installed")

TITLE, LABEL = "Ward of the visit", "the ward in the north"


def run_with_labels(job: JobFolder) -> None:
    """Make a run whose schema has a title and a label."""
    schema = Schema.load(job.path / "schema.toml")
    described = replace(schema.source("ward"), title=TITLE, labels={"north": LABEL})
    labelled = replace(schema, sources={**schema.sources, "ward": described})
    labelled.save(job.path / "schema.toml", overwrite=True)
    worker.run(job)


@pytest.fixture
def released(tmp_path: Path) -> Studio:
    write_table(tmp_path / "visits.csv")
    studio = Studio(tmp_path, start=run_with_labels)
    studio.settle(**STATED)
    studio.to_confirm(mechanism="independent")
    assert "The release is made" in studio.run().text
    return studio


def csv_rows(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def texts(frame: Any) -> list[tuple[str, ...]]:
    """Return the rows of a frame of pandas as a CSV file has them."""
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False)
    return [tuple("" if v is None else str(_plain(v)) for v in row) for row in rows]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_every_format_holds_the_same_rows(released: Studio, tmp_path: Path) -> None:
    page, run = released.get("/run/1").text, tmp_path / "studio/run-1"
    for ending, name in named_formats().items():
        assert f'<a href="/run/1/rows{ending}">{name}</a>' in page
        answer = released.get(f"/run/1/rows{ending}")
        attached = f'attachment; filename="visits-synthetic-rows{ending}"'
        assert (answer.code, answer.headers["content-disposition"]) == (200, attached)
    rows = csv_rows(run / "rows.csv")
    assert len(rows) > 100
    assert texts(duckdb.read_parquet(str(run / "rows.parquet")).df()) == rows
    sheet = fastexcel.read_excel(run / "rows.xlsx").load_sheet("rows")
    assert texts(sheet.to_pandas()) == rows
    with pandas.io.stata.StataReader(run / "rows.dta") as stata:
        assert texts(stata.read()) == rows
        assert stata.variable_labels()["ward"] == TITLE
    spss, meta = pyreadstat.read_sav(str(run / "rows.sav"))
    assert texts(spss) == rows
    assert meta.column_names_to_labels["ward"] == TITLE
    assert meta.variable_value_labels["ward"]["north"] == LABEL


def test_two_tabs_make_one_file(
    released: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, all_ask, write = list[str](), Barrier(5), views.rows

    def slow(folder: str, name: str) -> dict[str, Any]:
        made.append(name)
        all_ask.wait(60.0)
        return write(folder, name)

    monkeypatch.setattr(views, "rows", slow)
    get = released.project.findings.get

    def counted(*order: Any, **key: str) -> Any:
        found = get(*order, **key)
        all_ask.wait(60.0)
        return found

    monkeypatch.setattr(released.project.findings, "get", counted)
    with ThreadPoolExecutor(4) as tabs:
        codes = list(tabs.map(lambda _: released.get("/run/1/rows.sav").code, range(4)))
    assert (codes, made) == ([200] * 4, ["rows.sav"])
    assert not list((tmp_path / "studio/run-1").glob(".rows*"))


def test_a_page_answers_while_a_file_is_made(
    released: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, write = Event(), views.rows

    def slow(folder: str, name: str) -> dict[str, Any]:
        assert shown.wait(60.0), "the event loop waits for the file"
        return write(folder, name)

    monkeypatch.setattr(views, "rows", slow)

    async def two_requests() -> list[int]:
        visitor = released.visitor
        file, page = (
            talk(visitor.app, visitor.scope("GET", path), [{"type": "http.request"}])
            for path in ("/run/1/rows.dta", "/ledger")
        )
        pending = asyncio.create_task(file)
        await asyncio.sleep(0)
        answered = await page
        shown.set()
        return [answered[0]["status"], (await pending)[0]["status"]]

    assert asyncio.run(two_requests()) == [200, 200]


def test_a_format_without_its_library_is_a_plain_page(
    released: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "xlsxwriter", None)
        page = released.get("/run/1/rows.xlsx")
    text = unescape(page.text)
    assert (page.code, "text/html" in page.headers["content-type"]) == (422, True)
    assert "The rows cannot be written for Excel" in text
    assert "Install it: pip install 'margrave[formats]'." in text
    assert '<a href="/run/1">Back to release 1</a>' in text
    assert not list((tmp_path / "studio/run-1").glob("*rows.xlsx*"))
    assert released.get("/run/1/rows.xlsx").code == 200, "it is made once the library is there"


def test_rows_that_a_format_cannot_hold_are_refused(
    released: Studio, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "studio/run-1"
    rows = pa.table({"pay in euro": [CANARIES[0]]})
    pyarrow.parquet.write_table(rows, run / "rows.parquet")
    page = released.get("/run/1/rows.dta")
    assert page.code == 422
    text = unescape(page.text)
    assert "A file of Stata cannot hold a column named 'pay in euro'." in text
    assert "Choose Parquet or CSV, and rename the column in the rows." in text
    (run / "rows.parquet").write_bytes(f"PAR1 {CANARIES[0]}".encode())
    page = released.get("/run/1/rows.sav")
    assert (page.code, "The rows cannot be written for SPSS" in page.text) == (422, True)
    said = capsys.readouterr()
    for text in (page.text, said.out, said.err):
        assert CANARIES[0] not in text
        assert "Traceback" not in text


def test_no_other_file_is_made(released: Studio, tmp_path: Path) -> None:
    for name in ("rows.feather", "rows.exe", "rows", "..%2Frows.sav", "order.dta"):
        assert released.get(f"/run/1/{name}").code == 404
    (tmp_path / "studio/run-1/outcome.json").unlink()
    assert released.get("/run/1/rows.sav").code == 404, "a run that goes on may draw anew"


def test_cards_show_the_labels_of_codes_that_are_taken_for_numbers(tmp_path: Path) -> None:
    labels = {1: "surgery", 2: "medicine", 3: "intensive care", 9: "not stated"}
    table = pandas.DataFrame({"ward": [1, 2, 3, 9] * 60, "stay": [*range(60)] * 4})
    table.to_stata(tmp_path / "visits.dta", write_index=False, value_labels={"ward": labels})
    studio = Studio(tmp_path)
    studio.read("visits.dta")
    page = studio.get("/columns").text
    assert studio.project.draft(studio.project.reading().found or {}).columns[0].kind == "integer"
    assert all(f"<li>{code} ({label})</li>" in page for code, label in labels.items())


def test_cards_show_the_labels_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a label <b>with</b> marks that is too long for one line of a telephone " * 2
    table = pandas.DataFrame({"sex": [1.0, 2.0] * 60, "age": [float(i) for i in range(120)]})
    pyreadstat.write_sav(
        table,
        str(tmp_path / "visits.sav"),
        column_labels={"sex": "Sex & gender"},
        variable_value_labels={"sex": {1.0: "female", 2.0: long.strip()}},
    )
    studio = Studio(tmp_path)
    studio.read("visits.sav")
    page = studio.get("/columns").text
    assert '<p class="soft">Sex &amp; gender</p>' in page
    assert "<li>1 (female)</li>" in page
    assert "2 (a label &lt;b&gt;with&lt;/b&gt; marks" in page
    assert "<b>with" not in page
    assert page.count('class="labels"') == 1, "a column without labels has no list"
    assert studio.post("/columns").path == "/unit"
    studio.post("/unit", protects="rows")
    assert studio.project.schema().source("sex") == ColumnSource(), "labels are not published"

    def fail(_: Path) -> None:
        raise DataError("formats.sas7bcat cannot be read.")

    monkeypatch.setattr(views, "read_labels", fail)
    studio.read("visits.sav")
    page = studio.get("/columns")
    assert (page.code, "Sex &amp; gender" in page.text) == (200, False)
