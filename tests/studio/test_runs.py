"""The last steps of the studio: the budget, the run and what becomes of it."""

from __future__ import annotations

import json
import re
import shutil
import time
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

pytest.importorskip("starlette")

from margrave.accounting import Ledger
from margrave.errors import DataError, InputError, LedgerError, UnfinishedError
from margrave.learning_stage import budget_for
from margrave.release import Release
from margrave.schema import Categorical, Integer, Schema
from margrave.studio import worker
from margrave.studio.job import JobFolder
from tests.support.studio import CANARIES, STATED, Studio, fingerprint_of, kept_files


def test_every_step_from_a_file_to_a_release(
    studio: Studio, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = studio.read()
    page = unescape(studio.get("/columns").text)
    assert found["rows"] == 400
    assert "NOT PRIVATE" in page
    assert "Zanzibar-77" in page, "the custodian sees the histogram"
    assert (
        "patient_id" in unescape(studio.get("/unit").text) or studio.get("/unit").path == "/columns"
    )
    assert studio.get("/confirm").path == "/columns", "no step before the one that it rests on"

    assert "'patient_id' seems to say whose row it is. The next page asks." in page
    assert "Is that wrong?" not in page
    assert "Lowest" in page
    assert (
        studio.post("/columns/save?column=1", **{**STATED, "1__low": "many"}).text.count(
            "is not a value of this kind"
        )
        == 1
    )
    wrong = studio.post("/columns", **{**STATED, "1__low": "many"})
    assert (wrong.code, "is not a value of this kind" in wrong.text) == (422, True)
    assert studio.post("/columns", **STATED).path == "/unit"
    assert studio.post("/unit", protects="persons", person="").code == 422
    assert studio.post("/unit", protects="rows", person="patient_id").path == "/purposes"
    schema = Schema.load(studio.project.schema_file)
    ward, stay, ill = schema.columns
    assert isinstance(ward, Categorical)
    assert isinstance(stay, Integer)
    assert isinstance(ill, Integer)
    assert (stay.low, stay.high, ward.other) == (0, 9, True)
    assert schema.person is None
    assert "patient_id" in schema.ignore

    assert studio.post("/purposes", add="yes", text="mean nothing").code == 422
    assert (
        "mean stay by ward"
        in studio.post("/purposes", add="yes", kind="mean", outcome="stay", by="ward").text
    )
    assert studio.post("/purposes", add="yes", kind="", outcome="ward").code == 422
    assert studio.post("/purposes", kind="median", outcome="ward").code == 422
    filled = {"kind": "total", "outcome": "stay", "by": ""}
    assert studio.post("/purposes", **filled).path == "/budget", "a filled purpose is added"
    assert studio.project.settings.purposes == ("mean stay by ward", "total stay")
    assert studio.post("/purposes", remove="1").path == "/purposes"
    assert studio.post("/purposes", kind="", outcome="ward", by="", text="").path == "/budget"
    plan = studio.post("/budget/plan", epsilon="6", rows="400", delta="1e-9", cap_epsilon="5")
    assert "The plan at epsilon 1" in plan.text
    assert "mean stay by ward" in plan.text
    assert "about 400 rows: none of " in plan.text
    assert "No row of your table was used" in plan.text
    assert (
        "alert"
        in studio.post("/budget/plan", epsilon="6", rows="x", delta="1e-9", cap_epsilon="5").text
    )
    confirm = studio.to_confirm()
    assert confirm.path == "/confirm"
    for words in (
        "north, south, other",
        "0 to 9",
        "add or remove one row",
        "A person with several rows is protected less",
        "epsilon 3",
        "AIM",
        "mean stay by ward",
    ):
        assert words in confirm.text, words
    check = studio.wait(studio.project.check)
    assert check["rows"] == 400
    assert "NOT PRIVATE" in studio.get("/confirm/check").text
    assert "The box is not ticked" in studio.post("/run", number="1").text
    assert not studio.project.ledger.exists(), "nothing is spent before the box is ticked"

    agreement = confirm.text.index("may be published.")
    assert agreement < confirm.text.index('id="check"'), "what is not private is not agreed to"
    words = {"title": "Visits in May", "office": "Office of Visits", "dataset": "The visits"}
    form = {"number": "1", "agreed": "yes", **words}
    assert studio.post("/run", **{**form, "title": "a" * 201}).code == 422
    result = studio.post("/run", **form)
    assert "The release is made" in result.text, result.text
    again = studio.run()
    assert again.path == "/run/1", "a second press finds the same run"
    (dataset,) = Ledger(studio.project.ledger).datasets()
    (spent,) = dataset.runs
    assert spent.closed
    assert spent.debited <= budget_for(schema, 3.0, 1e-9).rho
    release = Release.load(tmp_path / "studio/run-1/release.margrave")
    assert [p.purpose for p in release.purposes] == ["mean stay by ward"]
    assert '"dataset": "visits.csv"' in json.dumps(release.certificate()), "the page says so"
    assert studio.get("/run/1/rows.csv").text.startswith('"ward","stay","ill"')
    report = studio.get("/run/1/report.html")
    assert all(word in report.text for word in words.values())
    assert "script" not in report.headers["content-security-policy"]
    assert "unsafe-inline" in report.headers["content-security-policy"]
    for name in ("journal", "order.json", "..%2Fstudio.json", "lock"):
        assert studio.get(f"/run/1/{name}").code == 404
    assert spent.run in studio.get("/ledger").text

    studio.post("/run/1/compare")
    studio.wait(lambda: studio.project.comparison(studio.project.job(1)))
    assert "NOT PRIVATE" in studio.post("/run/1/compare").text
    private = studio.get("/run/1/private.html")
    assert "NOT PRIVATE" in private.text
    assert "script" not in private.headers["content-security-policy"]
    kept, said = kept_files(tmp_path / "studio"), capsys.readouterr()
    for canary in CANARIES:
        assert canary not in kept + said.out + said.err, canary


@pytest.mark.slow
def test_a_list_of_combinations_goes_all_the_way(tmp_path: Path) -> None:
    rows = 600
    towns = [f"t{i % 6}" for i in range(rows)]
    table = {"town": towns, "state": [f"s{i % 6 // 2}" for i in range(rows)]}
    pyarrow.csv.write_csv(pa.table(table), tmp_path / "visits.csv")
    studio = Studio(tmp_path)
    found = studio.read()
    ((kind, columns, _),) = found["questions"]
    assert (kind, columns) == ("depends", ["town", "state"])
    listed = "\n".join(f"t{i},s{i // 2}" for i in range(6))
    (tmp_path / "studio/towns.csv").write_text(f"town,state\n{listed}\n")
    stated = {
        "0__way": "declare",
        "0__categories": ",".join(f"t{i}" for i in range(6)),
        "1__way": "declare",
        "1__categories": "s0,s1,s2",
    }
    assert studio.post("/columns", **stated, relation__0="nowhere.csv").code == 422
    assert studio.post("/columns", **stated, relation__0="towns.csv").path == "/unit"
    studio.post("/unit", protects="rows")
    studio.post("/purposes")
    assert "1 relation that you stated" in studio.to_confirm().text
    page = studio.run()
    assert "The release is made" in page.text, page.text
    drawn = pyarrow.csv.read_csv(tmp_path / "studio/run-1/rows.csv").to_pylist()
    assert {(r["town"], r["state"]) for r in drawn} <= {(f"t{i}", f"s{i // 2}") for i in range(6)}


def test_a_run_that_dies_goes_on_and_pays_once(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(self: Any, stage: str, done: float) -> None:
        if len(Ledger(studio.project.ledger).datasets()[0].runs[0].debits) >= 3:
            raise Killed

    def start(job: JobFolder) -> None:
        with pytest.raises(Killed):
            worker.run(job)

    studio.project.start = start
    studio.settle(**STATED)
    studio.to_confirm()
    with monkeypatch.context() as patch:
        patch.setattr(worker._Reports, "__call__", die)
        page = studio.run()
    assert "ended before it was done" in page.text
    assert "The answers so far are lost then" in page.text
    assert "keep its answers" not in page.text
    (before,) = Ledger(studio.project.ledger).datasets()[0].runs
    assert not before.closed
    assert len(before.debits) >= 3

    restarted = Studio(tmp_path)
    assert "ended before it was done" in restarted.get("/").text, "a new studio finds the run"
    page = restarted.post("/run/1/resume", unlearnable="stop")
    assert "The release is made" in page.text
    (after,) = Ledger(restarted.project.ledger).datasets()[0].runs
    assert after.closed
    assert after.debits[: len(before.debits)] == before.debits
    assert after.answers[: len(before.answers)] == before.answers
    assert after.debited <= after.reserved == before.reserved
    assert restarted.post("/run/1/resume").path == "/run/1", "a run that is done stays as it is"
    assert len(Ledger(restarted.project.ledger).datasets()[0].runs) == 1


def test_a_run_that_does_not_fit_is_refused_before_anything_is_spent(studio: Studio) -> None:
    studio.project.start = lambda job: pytest.fail("it began")
    studio.settle(**STATED)
    page = studio.to_confirm(cap_epsilon="2")
    assert (page.code, "leaves too little" in page.text) == (422, True)
    assert "at most 2. Choose a smaller epsilon, or a larger cap under More choices." in (
        page.text.replace("</b>", "")
    )
    assert studio.get("/confirm").path == "/budget"
    assert studio.run().path == "/budget"
    assert not studio.project.ledger.exists()


def test_a_number_of_rows_that_the_noise_hides_is_not_taken_for_theirs(
    studio: Studio, tmp_path: Path
) -> None:
    studio.settle(**STATED)
    studio.to_confirm()
    assert "The noise hides how many rows" not in studio.run().text
    ages = pa.table({"age": [i % 30 for i in range(60)]})
    pyarrow.csv.write_csv(ages, tmp_path / "ages.csv")
    studio.post("/table", table="ages.csv")
    studio.wait(studio.project.reading)
    studio.post("/columns", **{"0__way": "declare", "0__low": "0", "0__high": "110"})
    studio.post("/unit", protects="rows", ledger_dataset="", new_dataset="ages")
    studio.post("/purposes")
    studio.to_confirm(epsilon="0", rows="60")
    page = studio.run(2).text
    assert "The noise hides how many rows the table has, so 1,000 were drawn." in page
    assert "<span>column</span>" in page


def test_a_page_of_earlier_answers_begins_no_run(studio: Studio) -> None:
    orders = []
    studio.project.start = lambda job: orders.append(job.order)
    studio.settle(**STATED)
    first = studio.to_confirm(epsilon="3")
    assert "Spend epsilon 0.3 and run" in first.text
    second = studio.to_confirm(epsilon="9")
    form = {"number": "1", "agreed": "yes", "title": "Visits"}
    assert studio.post("/run", **form, fingerprint="").code == 422
    page = studio.post("/run", **form, fingerprint=fingerprint_of(first))
    assert (page.code, "The answers have changed since the page was opened" in page.text) == (
        422,
        True,
    )
    assert "Nothing was spent." in page.text
    assert "Spend epsilon 3 and run" in page.text
    assert (orders, studio.project.ledger.exists()) == ([], False)
    assert fingerprint_of(page) == fingerprint_of(second)
    assert studio.post("/run", **form, fingerprint=fingerprint_of(page)).path == "/run/1"
    assert [order.epsilon for order in orders] == [3.0]
    again = studio.post("/run", **form, fingerprint=fingerprint_of(first))
    assert (again.path, len(orders)) == ("/run/1", 1), "another tab finds the run that began"


def test_a_ledger_that_is_gone_begins_no_new_limit(studio: Studio) -> None:
    studio.settle(**STATED)
    studio.to_confirm()
    assert "The release is made" in studio.run().text
    ledger = studio.project.ledger
    content = ledger.read_bytes()
    ledger.unlink()
    for page in (studio.get("/confirm"), studio.run(2), studio.post("/unit", protects="rows")):
        assert page.code == 422
        assert "which run 1 was charged to" in page.text
    assert (studio.project.latest(), ledger.exists()) == (1, False)
    page = studio.get("/ledger")
    assert (page.code, "which run 1 was charged to" in page.text) == (422, True)
    assert "Nothing was spent yet." not in page.text
    ledger.write_bytes(b"nonsense" * 100)
    page = studio.get("/ledger").text
    assert "Restore the last sound copy of the file." in page
    assert "Name another file" not in page
    ledger.write_bytes(content)
    assert studio.post("/unit", protects="rows", ledger_dataset="visits.csv").path == "/purposes"


def test_a_folder_without_the_order_of_a_run_is_named(studio: Studio) -> None:
    studio.settle(**STATED)
    (studio.project.folder / "run-1").mkdir()
    for path in ("/run/1", "/ledger"):
        page = studio.get(path)
        assert (page.code, "does not hold the order of a run" in page.text) == (422, True)


def test_the_folder_of_an_old_run_may_be_taken_away(studio: Studio) -> None:
    studio.settle(**STATED)
    for number in (1, 2):
        studio.to_confirm(epsilon="3")
        assert "The release is made" in studio.run(number).text
    shutil.rmtree(studio.project.folder / "run-1")
    page = studio.get("/ledger")
    assert (page.code, "Run 2" in page.text, "Run 1" in page.text) == (200, True, False)
    assert studio.get("/confirm").code == 200


def test_the_check_is_of_the_file_as_it_is(studio: Studio, tmp_path: Path) -> None:
    studio.settle(**{**STATED, "1__outside": "refuse"})
    studio.to_confirm()
    assert not studio.wait(studio.project.check)["passed"]
    page = studio.get("/confirm/check").text
    assert "or choose what becomes of values outside." in page
    assert "outside = " not in page
    table = tmp_path / "visits.csv"
    table.write_text(table.read_text().replace("314159265", "7"))
    assert studio.wait(studio.project.check)["passed"]
    assert "The table passes." in studio.get("/confirm/check").text


@pytest.mark.parametrize(
    "wrong",
    [
        {"cap_epsilon": "2,5"},
        {"delta": "1,5e-9"},
        {"delta": "0"},
        {"rows": "10.000"},
        {"rows": "1,0"},
        {"rows": "about 400"},
        {"epsilon": "1.5"},
    ],
)
def test_a_number_that_can_be_misread_is_refused(studio: Studio, wrong: dict[str, str]) -> None:
    studio.settle(**STATED)
    before = studio.project.settings
    page = studio.to_confirm(**wrong)
    assert (page.code, "Write a " in page.text) == (422, True)
    assert studio.project.settings == before
    assert studio.to_confirm(rows="10,000").path == "/confirm"
    assert studio.project.settings.rows == 10_000
    assert studio.to_confirm(rows="1 234 567").path == "/confirm"
    assert studio.project.settings.rows == 1_234_567


def test_less_is_left_after_a_run_than_before_it(studio: Studio) -> None:
    studio.settle(**STATED)
    page = studio.to_confirm(epsilon="6", cap_epsilon="3").text
    before, after = map(float, re.findall(r"rho [^<]*: about epsilon ([\d.]+)", page))
    assert after < before
    assert "at the cap's delta of 1e-08" in page or "at the cap&#39;s delta of 1e-08" in page


def test_a_delta_of_one_in_the_rows_is_refused(studio: Studio) -> None:
    studio.settle(**STATED)
    for page in (
        studio.to_confirm(rows="100000", delta="1e-5"),
        studio.post("/budget/plan", epsilon="6", rows="100000", delta="1e-5", cap_epsilon="5"),
    ):
        assert "at least 1 in 100,000 rows" in page.text
        assert "or less is advised" in page.text
        assert page.text.count('role="alert"') == 1
        assert "--allow" not in page.text
    assert studio.get("/confirm").path == "/budget"
    assert studio.to_confirm(rows="100000", delta="1e-8").path == "/confirm"


def test_a_failed_run_says_why(studio: Studio, tmp_path: Path) -> None:
    studio.settle(
        **{**STATED, "0__categories": "east, west", "0__other": ""} | {"0__way": "declare"}
    )
    form = {k: v for k, v in STATED.items() if k != "0__other"}
    studio.settle(**{**form, "0__categories": "east, west"})
    studio.to_confirm()
    page = studio.run()
    assert "alert" in page.text
    assert "Continue this run" in page.text
    kept = kept_files(tmp_path / "studio")
    assert not [c for c in CANARIES if c in kept]


def test_what_the_rows_say_of_a_refusal_is_on_the_page_and_in_no_file(
    studio: Studio, tmp_path: Path
) -> None:
    studio.settle(**{**STATED, "1__outside": "refuse"})
    studio.to_confirm()
    page = studio.run()
    assert "The run failed (DataError)." in page.text
    assert "The table is read again to show why." in page.text
    finding = studio.project.refusal(studio.project.job(1))
    for _ in range(600):
        if not finding.is_open:
            break
        time.sleep(0.02)
    page = studio.get("/run/1/refusal")
    assert "NOT PRIVATE" in page.text
    assert "outside the schema" in page.text
    kept = kept_files(tmp_path / "studio")
    assert '"message": "The run failed (DataError)."' in kept
    assert "outside the schema" not in kept
    assert "outside the schema" not in Studio(tmp_path).get("/run/1").text, "it is read anew"
    assert not Ledger(studio.project.ledger).datasets()[0].charged
    page = studio.get("/run/1")
    assert "<b>Nothing was spent.</b>" in page.text
    assert "and keep its answers" not in page.text
    page = studio.post("/run/1/close")
    assert "This run is closed. Nothing was spent." in page.text


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (DataError("37 rows."), True),
        (UnfinishedError("37 rows.", release=None), False),
        (LedgerError("It is in use."), False),
        (InputError("37 rows."), True),
        (ValueError("37 rows."), True),
    ],
)
def test_a_file_keeps_no_words_that_the_rows_decide(error: Exception, refused: bool) -> None:
    kept = worker.kept_words(error)
    assert kept["refused"] == refused
    assert (str(error) in kept["message"]) != refused
    after = UnfinishedError("37 rows.", release=None)
    after.__cause__ = DataError("37 rows.")
    assert worker.kept_words(after)["message"] == "The run failed (DataError)."


def test_columns_that_the_noise_hides_are_dropped_or_the_run_is_closed(
    studio: Studio, tmp_path: Path
) -> None:
    studio.settle(**{k: v for k, v in STATED.items() if not k.startswith("0")})
    studio.to_confirm(epsilon="0", rows="400")
    page = studio.run()
    assert "The noise hides where the values of 'ward' lie" in unescape(page.text)
    for words in ("--", "Python", "refit", "Continue this run"):
        assert words not in page.text.partition("<main")[2], words
    assert "Continue without this column" in page.text
    assert "Close this run, and keep its answers" in page.text
    page = studio.post("/run/1/resume", unlearnable="drop")
    assert "Left out, because the noise hides their values: ward" in page.text, page.text

    studio.get("/columns")
    studio.run(2)
    assert "This run is closed" in studio.post("/run/2/close").text
    ledger = Ledger(studio.project.ledger)
    (dropped, closed) = ledger.datasets()[0].runs
    assert dropped.closed
    assert closed.closed
    assert 0 < closed.charged == closed.debited < closed.reserved
    assert studio.get("/run/2/answers.margrave").code == 200
    assert "This run is closed" in studio.post("/run/2/close").text, "once"
    assert "This run is closed" in studio.post("/run/2/resume", unlearnable="drop").text
    assert studio.get("/columns").path == "/columns"
