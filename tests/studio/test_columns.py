"""The first steps of the studio: the table, its columns, the unit of privacy."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

pytest.importorskip("starlette")

from margrave.schema import Integer, Learn, Schema
from margrave.unit import AddRemovePerson
from tests.support.studio import STATED, Studio, fingerprint_of, write_table

#: A budget page that is left as it is.
BUDGET = {"epsilon": "9", "rows": "400", "delta": "1e-9", "cap_epsilon": "5"}


def test_codes_that_mean_missing_and_bin_edges_are_fields_of_a_card(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    age = np.where(rng.random(600) < 0.1, -9, rng.integers(18, 90, 600))
    answers = rng.integers(1, 6, 600)
    pyarrow.csv.write_csv(pa.table({"age": age, "answer": answers}), tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    studio.read()
    page = unescape(studio.get("/columns").text)
    assert "-9 lies far from all else" in page
    assert "list it under the codes that mean missing" in page
    for words in ("= true", 'kind = "', "learn =", "draft anew"):
        assert words not in page, words
    form = {"0__way": "declare"}
    first = studio.post("/columns/save?column=0", **form).text
    assert "Now write its lowest and its highest value." in first
    assert "wrong" not in first
    wrong = studio.post("/columns", **form)
    assert (wrong.code, "Column &#39;age&#39;" in wrong.text) == (422, True)
    form |= {"0__low": "0", "0__high": "110", "0__missing_codes": "-9, 999", "0__edges": "18, 65"}
    assert "Kept" in studio.post("/columns/save?column=0", **form).text
    assert studio.post("/columns", **form).path == "/unit"
    assert "-9, 999" in studio.get("/columns").text
    studio.post("/unit", protects="rows")
    schema = Schema.load(studio.project.schema_file)
    (stated, _) = schema.columns
    assert isinstance(stated, Integer)
    assert (stated.edges, stated.missing) == ((18, 65), True)
    assert schema.sources["age"].missing_codes == ("-9", "999")
    studio.post("/purposes")
    assert "0 to 110, bin edges 18, 65, (missing) for -9, 999" in studio.to_confirm().text
    (counted,) = studio.wait(studio.project.check)["columns"]
    assert counted[:3] == ["age", int((age == -9).sum()), 0]


def test_a_column_to_learn_has_codes_that_mean_missing_too(tmp_path: Path) -> None:
    costs = pa.table({"cost": [*range(100, 700), *[99999] * 40]})
    pyarrow.csv.write_csv(costs, tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    studio.read()
    form = {"0__way": "learn", "0__missing_codes": "99999"}
    assert "Kept" in studio.post("/columns/save?column=0", **form).text
    assert studio.post("/columns", **form).path == "/unit"
    studio.post("/unit", protects="rows")
    schema = Schema.load(studio.project.schema_file)
    assert (schema.to_learn[0].name, schema.source("cost").missing_codes) == ("cost", ("99999",))


def test_a_time_since_another_names_the_button_that_undoes_it(tmp_path: Path) -> None:
    days = [f"2018-03-{1 + i % 28:02d}" for i in range(600)]
    stay = pa.table({"admitted": days, "discharged": days})
    pyarrow.csv.write_csv(stay, tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    studio.read()
    page = unescape(studio.get("/columns").text)
    assert "By its name it follows 'admitted'" in page
    assert "does it not follow? Then choose “A date or time of its own”." in page
    assert "list it under the codes that mean missing" not in page


def test_an_order_of_two_dates_is_a_tick(tmp_path: Path) -> None:
    seen = [f"2018-03-{1 + i % 20:02d}" for i in range(600)]
    paid = [f"2018-03-{3 + i % 20 + i % 5:02d}" for i in range(600)]
    pyarrow.csv.write_csv(pa.table({"seen": seen, "paid": paid}), tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    assert [q[0] for q in studio.read()["questions"]] == ["elapsed"]
    page = unescape(studio.get("/columns").text)
    assert '<input type="checkbox" name="relation.0" value="yes"> That is always true' in page
    kept = tmp_path / "studio/studio.json"
    studio.post("/columns", relation__0="")
    assert "elapsed" not in kept.read_text(), (
        "that the rows raise the question is a fact about them"
    )
    assert studio.post("/columns", relation__0="yes").path == "/unit"
    assert "elapsed|seen|paid" in kept.read_text()


def test_a_column_that_may_identify_persons_is_asked_about_first(tmp_path: Path) -> None:
    holders = [54_321 + 7 * (i % 300) for i in range(700)]
    pyarrow.csv.write_csv(
        pa.table({"holder": holders, "ill": [0, 1] * 350}), tmp_path / "visits.csv"
    )
    studio = Studio(tmp_path)
    studio.read()
    page = unescape(studio.get("/columns").text)
    asked = page.index("Does 'holder' say whose row it is?")
    assert asked < page.index('<div class="cards">')
    assert "[schema]" not in page
    assert "Is this a header?" not in page


def test_a_person_column_is_settled(studio: Studio) -> None:
    studio.read()
    studio.post("/columns", **STATED)
    page = studio.get("/unit").text
    noted = page.index("<b>NOT PRIVATE</b>, about patient_id: 200 persons, with 2 rows at most.")
    assert noted > page.index("</fieldset>\n<p class="), "it is seen before persons are chosen"
    studio.post("/unit", protects="persons", person="patient_id", max_rows="2")
    schema = studio.project.schema()
    assert schema.person == "patient_id"
    assert "patient_id" not in schema.ignore
    assert studio.project.planned().unit == AddRemovePerson(2)
    studio.post("/purposes")
    assert "is protected less" not in studio.to_confirm().text


def test_open_columns_stay_open(studio: Studio) -> None:
    studio.settle()
    schema = studio.project.schema()
    assert [c.name for c in schema.columns if isinstance(c, Learn)] == ["ward", "stay"]
    page = studio.to_confirm().text
    assert "learned under the budget" in page
    assert "9e-10 of it is for the noise of all answers, and 1e-10 for naming a category" in page


def test_answers_are_kept_for_each_table(studio: Studio, tmp_path: Path) -> None:
    studio.settle(**STATED)
    before = studio.project.settings
    page = studio.post("/table", table="nowhere.csv")
    assert (page.code, "There is no file" in page.text) == (422, True)
    assert studio.project.settings == before, "a path that does not exist changes nothing"
    write_table(tmp_path / "other.csv")
    studio.post("/table", table="other.csv")
    assert not studio.project.settings.answers
    restarted = Studio(tmp_path)
    restarted.read()
    assert restarted.project.settings.answers == before.answers
    assert restarted.project.settings.protects == before.protects
    assert restarted.project.settings.reached == "columns"
    assert [Path(name).name for name in restarted.project.settings.others] == ["other.csv"]


def test_a_table_that_cannot_be_read_is_reported(studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and no more")
    studio.post("/table", table="damaged.parquet")
    studio.end(studio.project.reading)
    page = studio.get("/columns")
    assert (page.code, "damaged.parquet" in page.text) == (422, True)
    assert studio.post("/table", table=" ").code == 422


def test_every_histogram_has_its_column(tmp_path: Path) -> None:
    rows = 60
    table = {
        "same": [5.5] * 30 + [None] * 30,
        "far": [1.0] * 59 + [1e9],
        "when": [f"2020-01-{1 + i % 28:02d}" for i in range(rows)],
        "time": [f"2020-01-01 10:00:{i:02d}" for i in range(rows)],
        "yes": ["yes", "no"] * 30,
        "many": [f"c{i % 20}" for i in range(rows)],
        "whole": list(range(-30, 30)),
        "<b>": ["x", "y"] * 30,
    }
    pyarrow.csv.write_csv(pa.table(table), tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    found = studio.read()
    for name, shown in found["histograms"].items():
        assert sum(shown["counts"]) + shown["missing"] == rows, name
        assert len(shown["labels"]) == len(shown["counts"]) <= (24 if ".hour" in name else 12), name
    page = studio.get("/columns").text
    assert "<b>" not in re.sub(r"<b>(NOT PRIVATE|Look)", "", page)
    assert "&lt;b&gt;" in page


def test_hours_and_weekdays_have_cards_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    seconds = rng.integers(0, 300 * 86400, 400) + 1_700_000_000
    seen = pa.array(seconds, pa.timestamp("s"))
    ward = rng.choice(["north", "south"], 400)
    pyarrow.csv.write_csv(pa.table({"seen": seen, "ward": ward}), tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    found = studio.read()
    assert set(found["histograms"]) == {"seen", "seen.hour", "seen.weekday", "ward"}
    page = studio.get("/columns").text
    assert "seen.weekday" in page
    assert "seen.hour" in page
    names = list(found["histograms"])
    out = {f"{names.index('seen.hour')}__way": "out"}
    assert studio.post("/columns", **out).path == "/unit"
    unit = studio.get("/unit").text
    assert "seen" in unit
    assert "seen.weekday" not in unit, "a part is no column of persons"
    assert studio.post("/unit", protects="rows").path == "/purposes"
    schema = Schema.load(studio.project.schema_file)
    assert {c.name for c in schema.columns} == {"seen", "seen.weekday", "ward"}


def test_a_form_of_another_table_is_refused(studio: Studio, tmp_path: Path) -> None:
    other = pa.table({"town": ["a", "b"] * 60, "pay": list(range(1000, 1120))})
    pyarrow.csv.write_csv(other, tmp_path / "pay.csv")
    studio.read()
    form: dict[str, str] = {}
    steps = {"/columns": STATED, "/unit": {"protects": "rows"}, "/purposes": {}, "/budget": BUDGET}
    for path, answers in steps.items():
        form[path] = fingerprint_of(studio.get(path))
        assert studio.post(path, **answers, fingerprint=form[path]).code == 200
    studio.post("/table", table="pay.csv")
    studio.wait(studio.project.reading)
    studio.project.change(reached="confirm")
    before = studio.project.settings
    for path, answers in steps.items():
        for fingerprint in (form[path], ""):
            page = studio.post(path, **answers, fingerprint=fingerprint)
            assert page.code == 422
            assert "have changed since this form was opened" in page.text
    for part, path in (("/columns/save?column=0", "/columns"), ("/budget/plan", "/budget")):
        page = studio.post(part, **steps[path], fingerprint=form[path])
        assert "have changed since this form was opened" in page.text
    assert studio.project.settings == before


def test_a_form_of_columns_that_are_read_again_is_refused(studio: Studio, tmp_path: Path) -> None:
    studio.read()
    opened = fingerprint_of(studio.get("/columns"))
    pyarrow.csv.write_csv(pa.table({"pay": [i % 40 for i in range(120)]}), tmp_path / "visits.csv")
    studio.read()
    page = studio.post("/columns", **STATED, fingerprint=opened)
    assert (page.code, studio.project.settings.answers) == (422, {})


def test_a_purpose_of_a_column_that_is_left_out_is_marked_and_kept(studio: Studio) -> None:
    studio.settle(**STATED)
    studio.post("/purposes", add="yes", text="mean stay by ward")
    studio.post("/columns", **{**STATED, "0__way": "out"})
    page = studio.post("/unit", protects="rows")
    assert "There is no column 'ward'." in unescape(page.text)
    page = studio.post("/purposes")
    assert (page.code, "Remove the purpose" in page.text) == (422, True)
    assert "'mean stay by ward' does not fit the columns" in unescape(page.text)
    assert studio.get("/budget").path == "/purposes"
    studio.post("/columns", **STATED)
    assert "There is no column" not in studio.post("/unit", protects="rows").text
    assert studio.post("/purposes").path == "/budget"
    assert studio.project.settings.purposes == ("mean stay by ward",)


def test_a_regression_is_chosen_for_columns_of_any_name(tmp_path: Path) -> None:
    table = {"pay in euro": [i % 40 for i in range(120)], "<b>": [3, 5, 8, 9] * 30}
    pyarrow.csv.write_csv(pa.table(table), tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    studio.settle()
    form = {"add": "yes", "kind": "ols", "outcome": "pay in euro"}
    page = studio.post("/purposes", **form, by="")
    assert (page.code, "needs a second column" in page.text) == (422, True)
    assert studio.post("/purposes", **form, by="<b>").code == 200
    assert studio.project.settings.purposes == ("ols Q('pay in euro') ~ Q('<b>')",)


def test_a_folder_that_cannot_be_shown_whole(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    page = studio.post("/table", table="empty")
    assert "There is no file in the folder" in page.text
    listed = list(tmp_path.iterdir())
    damaged = tmp_path / "st\udce4dte.csv"
    monkeypatch.setattr(Path, "iterdir", lambda _: iter([*listed, damaged]))
    page = studio.get("/table")
    assert (page.code, "visits.csv" in page.text, "dte.csv" in page.text) == (200, True, False)

    def deny(_: Path) -> Any:
        raise PermissionError

    monkeypatch.setattr(studio.project, "latest", lambda: 0)
    monkeypatch.setattr(Path, "iterdir", deny)
    page = studio.get("/table?at=empty")
    assert (page.code, "cannot be listed" in page.text) == (422, True)


def test_words_of_other_programs_are_not_on_a_page(studio: Studio, tmp_path: Path) -> None:
    studio.read()
    studio.post("/columns", **STATED)
    assert "unit=" not in unescape(studio.get("/unit").text)
    (tmp_path / "same.csv").write_text("a,b\n" + "1,x\n" * 50)
    studio.post("/table", table="same.csv")
    studio.end(studio.project.reading)
    page = studio.get("/columns")
    assert (page.code, "Choose another table." in page.text) == (422, True)
    assert "schema by hand" not in page.text


def test_the_number_of_rows_of_a_person_matters_for_persons_alone(studio: Studio) -> None:
    studio.read()
    studio.post("/columns", **STATED)
    persons = {"protects": "persons", "person": "patient_id"}
    for text in ("", "2.7", "many", "0"):
        page = studio.post("/unit", **persons, max_rows=text)
        assert (page.code, "The number of rows per person" in page.text) == (422, True)
    assert studio.post("/unit", protects="rows", max_rows="").path == "/purposes"
