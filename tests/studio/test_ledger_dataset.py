"""The data set of the ledger that the studio charges, which files of the same persons share."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from margrave.accounting import AddRemoveRow, Budget, Ledger, ReplaceRow
from margrave.errors import InputError
from margrave.unit import Unit
from tests.support.studio import STATED, Studio, fingerprint_of, write_table

FIRST, NEXT = "people_2025.csv", "people_2026.csv"


@pytest.fixture
def two_years(tmp_path: Path) -> Studio:
    """Return a studio beside the files of two years, whose runs do not start."""
    for name in (FIRST, NEXT):
        write_table(tmp_path / name, rows=100)
    return Studio(tmp_path, start=lambda job: None)


def to_protection(studio: Studio, table: str) -> None:
    studio.post("/table", table=table)
    studio.wait(studio.project.reading)
    assert studio.post("/columns", **STATED).path == "/unit"


def charge(studio: Studio, dataset: str, unit: Unit | None = None) -> None:
    """Set a cap in the ledger of the studio, and reserve a run of it."""
    ledger, unit = Ledger(studio.project.ledger), unit or AddRemoveRow()
    cap = Budget.approx(3.0, 1e-8)
    ledger.init(dataset, unit=unit, cap=cap)
    ledger.begin(dataset, unit, rho=cap.rho / 2, journal=None)


def test_the_first_data_set_has_the_name_of_the_file(two_years: Studio) -> None:
    to_protection(two_years, FIRST)
    page = two_years.get("/unit").text
    assert '<label for="new_dataset">Name of the data set</label>' in page
    assert f'name="new_dataset" type="text" value="{FIRST}"' in page
    assert 'name="ledger_dataset"' not in page, "there is none to choose"
    assert two_years.post("/unit", protects="rows", new_dataset=FIRST).path == "/purposes"
    assert two_years.project.settings.ledger_dataset == FIRST
    assert two_years.project.settings.dataset == "", "the words on the report are others"


def test_another_name_is_charged_shown_and_kept(two_years: Studio, tmp_path: Path) -> None:
    to_protection(two_years, FIRST)
    two_years.post("/unit", protects="rows", new_dataset=" people ")
    two_years.post("/purposes")
    assert "Cap of epsilon for all releases of people together" in two_years.get("/budget").text
    confirm = two_years.to_confirm().text
    assert "<dt>Data set that this run is charged to</dt><dd>people<br>" in confirm
    assert "This run sets its cap." in confirm
    assert "Left for all releases of people<" in confirm
    assert "Also published: the name of the data set in the ledger (people)" in confirm
    restarted = Studio(tmp_path, start=lambda job: None)
    assert restarted.project.settings.ledger_dataset == "people"
    restarted.run()
    assert [d.dataset for d in Ledger(restarted.project.ledger).datasets()] == ["people"]
    assert restarted.project.job(1).order.ledger_dataset == "people"
    page = restarted.get("/ledger").text
    assert "on people_2025.csv, charged to people" in page


@pytest.mark.parametrize("name", ["", "  ", "a\tb", "a" * 301])
def test_a_name_that_the_ledger_does_not_take_is_refused(two_years: Studio, name: str) -> None:
    to_protection(two_years, FIRST)
    page = two_years.post("/unit", protects="rows", new_dataset=name)
    assert (page.code, "The name of the data set is not usable." in page.text) == (422, True)
    assert two_years.get("/purposes").path == "/unit"


def test_next_years_file_has_no_limit_of_its_own_unless_it_is_chosen(two_years: Studio) -> None:
    charge(two_years, FIRST)
    to_protection(two_years, NEXT)
    page = two_years.get("/unit").text
    assert f'value="{FIRST}" required>' in page
    assert 'value="" required>' in page, "neither is chosen for the custodian"
    refused = two_years.post("/unit", protects="rows", new_dataset=NEXT)
    assert (refused.code, "No data set of the ledger is chosen" in refused.text) == (422, True)
    assert two_years.get("/purposes").path == "/unit"
    with pytest.raises(InputError, match="No data set of the ledger is chosen"):
        two_years.project.begin(1, "")


def test_next_years_file_shares_the_limit(two_years: Studio) -> None:
    charge(two_years, FIRST)
    to_protection(two_years, NEXT)
    assert two_years.post("/unit", protects="rows", ledger_dataset=FIRST).path == "/purposes"
    two_years.post("/purposes")
    budget = two_years.get("/budget").text
    assert f"The cap of {FIRST} is epsilon 3 for all its releases together" in budget
    assert 'name="cap_epsilon"' not in budget, "the first run set it"
    confirm = two_years.to_confirm(epsilon="6").text
    assert f"charged to</dt><dd>{FIRST}<br>" in confirm
    assert "Its cap is shared with 1 earlier run." in confirm
    assert f"The next run on {NEXT} is charged to <b>{FIRST}</b>." in two_years.get("/ledger").text
    two_years.run()
    (dataset,) = Ledger(two_years.project.ledger).datasets()
    assert dataset.dataset == FIRST
    assert dataset.cap.epsilon == 3.0
    too_much = two_years.to_confirm(epsilon="9")
    assert (too_much.code, "leaves too little" in too_much.text) == (422, True)
    assert "a larger cap" not in too_much.text, "the first run set it"


def test_other_persons_are_a_new_data_set(two_years: Studio) -> None:
    charge(two_years, FIRST)
    to_protection(two_years, NEXT)
    form = {"protects": "rows", "ledger_dataset": ""}
    for alike in (FIRST, FIRST.upper()):
        page = two_years.post("/unit", **form, new_dataset=alike)
        assert page.code == 422
        assert f"The ledger has the data set '{FIRST}' already." in unescape(page.text)
        assert f'value="{alike}" maxlength' in page.text, "what was written is not lost"
    assert two_years.post("/unit", **form, new_dataset="others").path == "/purposes"
    assert 'value="" required checked>' in two_years.get("/unit").text, "the choice is kept"
    assert two_years.project.settings.other_datasets == (FIRST,)
    two_years.post("/purposes")
    assert "This run sets its cap." in two_years.to_confirm().text
    two_years.run()
    names = [d.dataset for d in Ledger(two_years.project.ledger).datasets()]
    assert names == [FIRST, "others"]


def test_a_data_set_that_the_custodian_has_not_seen_reopens_the_choice(two_years: Studio) -> None:
    to_protection(two_years, NEXT)
    two_years.post("/unit", protects="rows", new_dataset=NEXT)
    two_years.post("/purposes")
    assert two_years.to_confirm().path == "/confirm"
    charge(two_years, FIRST)
    for page in (two_years.get("/confirm"), two_years.run()):
        assert (page.code, "No data set of the ledger is chosen" in page.text) == (422, True)
    assert two_years.project.latest() == 0
    assert 'value="" required>' in two_years.get("/unit").text


def test_a_data_set_is_new_beside_those_of_the_page_alone(two_years: Studio) -> None:
    charge(two_years, FIRST)
    to_protection(two_years, NEXT)
    opened = fingerprint_of(two_years.get("/unit"))
    charge(two_years, "patients")
    form = {"protects": "rows", "ledger_dataset": "", "new_dataset": "others"}
    page = two_years.post("/unit", **form, fingerprint=opened)
    assert (page.code, "have changed since this form was opened" in page.text) == (422, True)
    assert two_years.project.settings.other_datasets == ()


def test_a_data_set_that_is_not_in_the_ledger_cannot_be_chosen(two_years: Studio) -> None:
    charge(two_years, FIRST)
    to_protection(two_years, NEXT)
    page = two_years.post("/unit", protects="rows", ledger_dataset="nobody")
    assert (page.code, "The ledger has no data set" in page.text) == (422, True)


def test_a_data_set_with_another_unit_is_refused(two_years: Studio) -> None:
    charge(two_years, FIRST, ReplaceRow())
    to_protection(two_years, NEXT)
    page = two_years.post("/unit", protects="rows", ledger_dataset=FIRST)
    words = f"The data set '{FIRST}' is for releases that protect as follows: replace one row."
    assert (page.code, words in unescape(page.text)) == (422, True)
    assert two_years.get("/purposes").path == "/unit"
    shared = {"protects": "rows", "count": "public", "ledger_dataset": FIRST}
    assert two_years.post("/unit", **shared).path == "/purposes"


def test_a_limit_without_delta_for_categories_refuses_to_learn_them(two_years: Studio) -> None:
    charge(two_years, FIRST)
    to_protection(two_years, NEXT)
    two_years.post("/columns")
    two_years.post("/unit", protects="rows", ledger_dataset=FIRST)
    two_years.post("/purposes")
    page = two_years.to_confirm(epsilon="6")
    words = f"The cap of '{FIRST}' leaves too little delta to learn categories."
    assert (page.code, words in unescape(page.text)) == (422, True)
    assert two_years.get("/confirm").path == "/budget"


def test_each_table_keeps_its_data_set(two_years: Studio) -> None:
    to_protection(two_years, FIRST)
    two_years.post("/unit", protects="rows", new_dataset="people")
    to_protection(two_years, NEXT)
    assert two_years.project.settings.ledger_dataset == ""
    to_protection(two_years, FIRST)
    assert two_years.project.settings.ledger_dataset == "people"


def test_an_output_has_the_name_of_the_table_that_it_was_made_from(two_years: Studio) -> None:
    to_protection(two_years, FIRST)
    two_years.post("/unit", protects="rows", new_dataset="people")
    two_years.post("/purposes")
    two_years.to_confirm()
    two_years.run()
    (two_years.project.job(1).path / "rows.csv").write_text("ward\n")
    two_years.post("/table", table=NEXT)
    headers = two_years.get("/run/1/rows.csv").headers
    assert "people_2025-synthetic-rows.csv" in headers["content-disposition"]
