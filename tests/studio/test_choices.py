"""More choices of the studio: units that replace, policies of columns, mechanisms and public tables."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from margrave.errors import InputError, MargraveError
from margrave.mechanisms import AIMPub
from margrave.release import Release
from margrave.schema import Categorical, Integer
from margrave.studio.choices import MechanismChoice, mechanism_lines
from margrave.studio.memory import Memory
from margrave.studio.state import ProjectSettings
from margrave.unit import AddRemoveRow, ReplacePerson, ReplaceRow
from tests.support.studio import CANARIES, STATED, Studio, kept_files, write_table

#: A budget page that is left as it is.
BUDGET = {"epsilon": "9", "rows": "400", "delta": "1e-9", "cap_epsilon": "5"}
#: All columns stated, so that a public table can be read.
PUBLIC = {
    "mechanism": "aim-pub",
    "public": "survey.csv",
    "attestation": "The survey of 2018, which anyone may download.",
    "public_columns": "ward, stay",
}


def test_the_safe_choices_are_the_usual_ones(studio: Studio) -> None:
    settings = ProjectSettings()
    assert (settings.unit, settings.choice) == (AddRemoveRow(), MechanismChoice())
    studio.settle(**STATED)
    for path in ("/columns", "/unit", "/budget"):
        page = studio.get(path).text
        assert "More choices" in page
        assert "<details open>" not in page, f"{path}: they are folded away"
    assert studio.project.settings.unit == AddRemoveRow()


def test_units_that_replace_are_kept(studio: Studio) -> None:
    studio.settle(**STATED)
    studio.post("/unit", protects="rows", count="public")
    studio.post("/purposes")
    assert studio.project.planned().unit == ReplaceRow()
    assert "the exact number of rows" in studio.to_confirm().text
    studio.post("/unit", protects="persons", person="patient_id", max_rows="2", count="public")
    assert studio.project.planned().unit == ReplacePerson(2)
    assert "<details open>" in studio.get("/unit").text, "what was chosen is seen"
    studio.post("/unit", protects="rows")
    assert studio.project.planned().unit == AddRemoveRow()


@pytest.mark.parametrize("outside", ["", "missing", "refuse"])
def test_a_policy_for_values_outside(studio: Studio, outside: str) -> None:
    form = {**STATED, "0__outside": outside, "1__outside": outside}
    del form["1__missing"]
    studio.settle(**form)
    ward, stay, _ = studio.project.schema().columns
    assert isinstance(ward, Categorical)
    assert isinstance(stay, Integer)
    assert ward.outside == (outside or "other")
    assert stay.outside == (outside or "clip")
    assert stay.missing == (outside == "missing"), "counting as missing needs such a state"
    assert studio.to_confirm().code == 200
    assert "the run stops" in studio.get("/confirm").text or outside != "refuse"


def test_an_unknown_policy_is_refused(studio: Studio) -> None:
    studio.read()
    page = studio.post("/columns", **{**STATED, "1__outside": "forgive"})
    assert (page.code, "outside names no policy" in page.text) == (422, True)


def test_every_mechanism_has_a_plan_or_a_reason(studio: Studio) -> None:
    studio.settle(**STATED)
    page = studio.get("/budget").text
    for line in mechanism_lines():
        assert f'value="{line["name"]}"' in page
        assert line["use"]
    for name in ("mst", "gaussian", "aim-pub"):
        plan = studio.post("/budget/plan", **BUDGET, mechanism=name)
        assert 'class="alert"' not in plan.text, name
        assert studio.project.settings.choice.name == name
    assert "needs a public table" in plan.text
    page = studio.post("/budget", **BUDGET, mechanism="aim-pub")
    assert (page.code, "needs a public table" in page.text) == (422, True)
    page = studio.post("/budget", **BUDGET, mechanism="nonsense")
    assert (page.code, "is not a mechanism" in unescape(page.text)) == (422, True)
    assert studio.get("/confirm").path == "/budget"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attestation": ""}, "without a word on why it is public"),
        ({"public": "nowhere.csv"}, "nowhere.csv"),
        ({"public": "visits.csv"}, "are the same file"),
        ({"public_columns": "age"}, "age"),
        ({"same_records": "on", "public_columns": "ward"}, "this unit of privacy protects"),
    ],
)
def test_a_public_table_that_cannot_be_used_is_refused(
    studio: Studio, tmp_path: Path, change: dict[str, str], words: str
) -> None:
    write_table(tmp_path / "survey.csv", rows=200)
    studio.settle(**STATED)
    page = studio.post("/budget", **BUDGET, **{**PUBLIC, **change})
    assert page.code == 422
    assert words in unescape(page.text)
    assert "--" not in page.text.partition("<main")[2].partition("</div>")[0]
    assert studio.get("/confirm").path == "/budget"


def test_a_public_table_needs_stated_columns(studio: Studio, tmp_path: Path) -> None:
    write_table(tmp_path / "survey.csv", rows=200)
    studio.settle()
    page = studio.post("/budget", **BUDGET, **PUBLIC)
    assert (page.code, "State all columns" in page.text) == (422, True)


def test_a_run_with_a_public_table_and_a_public_number_of_rows(
    studio: Studio, tmp_path: Path
) -> None:
    write_table(tmp_path / "survey.csv", rows=200)
    studio.settle(**{**STATED, "1__outside": "missing"})
    studio.post("/unit", protects="rows", count="public")
    studio.post("/purposes")
    plan = studio.post("/budget/plan", **BUDGET, **PUBLIC)
    assert "200 records, columns ward, stay" in plan.text
    run = studio.project.planned()
    assert studio.project.planned() is run, "the public table is read once"
    assert isinstance(run.mechanism, AIMPub)
    confirm = studio.post("/budget", **BUDGET, **PUBLIC)
    assert "The survey of 2018" in confirm.text
    assert "replace one row" in confirm.text
    result = studio.run()
    assert "The release is made" in result.text, result.text
    release = Release.load(tmp_path / "studio/run-1/release.margrave")
    facts = json.dumps(release.certificate())
    assert "The survey of 2018" in facts
    assert release.certificate()["unit"] == "replace one row"
    kept = kept_files(tmp_path / "studio")
    assert not [c for c in CANARIES if c in kept]
    outcome = tmp_path / "studio/run-1/outcome.json"
    facts = json.loads(outcome.read_text())
    assert facts["rows_left_out"] == "", "the unit limits nobody's rows"
    outcome.write_text(json.dumps(facts | {"rows_left_out": "Further rows were left out."}))
    assert "<p>Further rows were left out.</p>" in studio.get("/run/1").text
    page = studio.post("/unit", protects="rows", ledger_dataset="visits.csv")
    assert (page.code, "releases that protect as follows: replace one row" in page.text) == (
        422,
        True,
    )


@pytest.mark.slow
def test_a_mechanism_without_rows_ends_with_its_answers(studio: Studio, tmp_path: Path) -> None:
    studio.settle(**STATED)
    assert "no synthetic rows" in studio.post("/budget/plan", **BUDGET, mechanism="gaussian").text
    studio.post("/budget", **BUDGET, mechanism="gaussian")
    page = studio.run()
    assert "noisy answers and no synthetic rows" in page.text, page.text
    assert "rows.csv" not in page.text
    assert studio.get("/run/1/rows.csv").code == 404
    assert studio.get("/run/1/report.html").code == 200


def test_a_step_that_changes_nothing_computes_nothing() -> None:
    memory, made = Memory(), list[int]()

    def make() -> int:
        made.append(1)
        return len(made)

    assert [memory.get("plan", key, make) for key in (1, 1, 2, 2, 1)] == [1, 1, 2, 2, 3]

    def fail() -> int:
        raise InputError("No.", remedy="Yes.")

    with pytest.raises(MargraveError):
        memory.get("plan", 9, fail)
    assert memory.get("plan", 1, make) == 3, "an error is not kept"
