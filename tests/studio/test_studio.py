"""The steps of the studio, from a file to a release, without a browser."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

pytest.importorskip("starlette")

from margrave.accounting import Ledger
from margrave.errors import InputError
from margrave.learning_stage import budget_for
from margrave.release import Release
from margrave.schema import Categorical, Integer, Learn, Schema
from margrave.studio import launch, worker
from margrave.studio.findings import Findings
from margrave.studio.job import JobFolder
from margrave.studio.project import Project
from margrave.studio.server import application
from margrave.studio.state import FolderLock, ProjectSettings
from margrave.unit import AddRemovePerson
from tests.support.web import PORT, Answer, Visitor

CANARIES = ("Zanzibar-77", "314159265", "NHS-7719283")


def write_table(path: Path, rows: int = 400) -> None:
    rng = np.random.default_rng(3)
    stay = rng.integers(0, 9, rows)
    stay[0] = 314159265
    ward = rng.choice(["north", "south"], rows).astype(object)
    ward[1] = "Zanzibar-77"
    table = {
        "patient_id": [f"NHS-{7719283 + i // 2}" for i in range(rows)],
        "ward": ward,
        "stay": stay,
        "ill": stay % 2,
    }
    pyarrow.csv.write_csv(pa.table(table), path)


class Studio:
    """A studio without processes: the worker is called in this one."""

    def __init__(self, folder: Path, start: Callable[[JobFolder], Any] = worker.run) -> None:
        (folder / "studio").mkdir(exist_ok=True)
        self.project = Project(folder / "studio", folder, ask=worker.answer, start=start)
        guard = application(self.project, PORT, lambda: None)
        self.visitor = Visitor(guard)
        self.visitor.get(guard.address.partition(str(PORT))[2])

    def get(self, path: str) -> Answer:
        return self.visitor.get(path)

    def post(self, path: str, **form: str) -> Answer:
        return self.visitor.post(path, {k.replace("__", "."): v for k, v in form.items()})

    def wait(self, finding: Callable[[], Any]) -> Mapping[str, Any]:
        for _ in range(600):
            if not finding().is_open:
                break
            time.sleep(0.02)
        assert finding().error is None
        found: Mapping[str, Any] = finding().found
        return found

    def read(self) -> Mapping[str, Any]:
        self.post("/table", table="visits.csv")
        return self.wait(self.project.reading)

    def settle(self, **columns: str) -> None:
        """Go from the table to the budget."""
        self.read()
        self.post("/columns", **columns)
        self.post("/unit", protects="rows")
        self.post("/purposes")

    def to_confirm(self, **budget: str) -> Answer:
        form = {"epsilon": "9", "rows": "400", "delta": "1e-9", "cap_epsilon": "5", **budget}
        return self.post("/budget", **form)

    def run(self, number: int = 1) -> Answer:
        return self.post("/run", number=str(number), agreed="yes")


#: The columns of the table as their forms state them: the draft leaves out the person ID column.
STATED = {
    "0__way": "declare",
    "0__categories": "north, south",
    "0__other": "on",
    "1__way": "declare",
    "1__low": "0",
    "1__high": "9",
    "1__missing": "on",
    "2__way": "keep",
}


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    write_table(tmp_path / "visits.csv")
    return Studio(tmp_path)


def kept_files(folder: Path) -> str:
    """All that the studio keeps of itself, as text."""
    names = [p for p in folder.rglob("*") if p.is_file()]
    return "".join(p.read_bytes().decode("latin-1") for p in names)


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
    words = {"title": "Visits in May", "office": "Office of Visits", "data_set": "The visits"}
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
    assert studio.get("/confirm").path == "/budget"
    assert studio.run().path == "/budget"
    assert not studio.project.ledger.exists()


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
    studio.to_confirm()
    (counted,) = studio.wait(studio.project.check)["columns"]
    assert counted[:3] == ["age", int((age == -9).sum()), 0]


def test_settings_survive_a_restart(studio: Studio, tmp_path: Path) -> None:
    studio.settle(**STATED)
    restarted = Studio(tmp_path)
    assert restarted.project.settings == studio.project.settings
    assert restarted.get("/").path == "/budget", "it goes on where it was"
    assert restarted.get("/budget").code == 200, "without reading the table anew"
    kept = (tmp_path / "studio/studio.json").read_text()
    assert not [c for c in CANARIES if c in kept]


def test_settings_of_something_else_are_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"table": 3}', '{"answers": {"a": 1}, "purposes": []}'):
        (tmp_path / "studio.json").write_text(text)
        with pytest.raises(InputError, match="does not hold the settings"):
            ProjectSettings.load(tmp_path / "studio.json")
    whole = ProjectSettings(table="a.csv", purposes=("mean a",), epsilon=2.0)
    whole.save(tmp_path / "studio.json")
    assert ProjectSettings.load(tmp_path / "studio.json") == whole
    wrong = {**json.loads((tmp_path / "studio.json").read_text()), "reached": "nowhere"}
    (tmp_path / "studio.json").write_text(json.dumps(wrong))
    with pytest.raises(InputError):
        ProjectSettings.load(tmp_path / "studio.json")


def test_a_person_column_is_settled(studio: Studio) -> None:
    studio.read()
    studio.post("/columns", **STATED)
    assert "persons" in studio.get("/unit").text
    studio.post("/unit", protects="persons", person="patient_id", max_rows="2")
    schema = studio.project.schema()
    assert schema.person == "patient_id"
    assert "patient_id" not in schema.ignore
    assert studio.project.planned().unit == AddRemovePerson(2)


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
    for _ in range(200):
        if not studio.project.reading().is_open:
            break
        time.sleep(0.02)
    page = studio.get("/columns")
    assert (page.code, "damaged.parquet" in page.text) == (422, True)
    assert studio.post("/table", table=" ").code == 422


def test_open_columns_stay_open(studio: Studio) -> None:
    studio.settle()
    schema = studio.project.schema()
    assert [c.name for c in schema.columns if isinstance(c, Learn)] == ["ward", "stay"]
    assert "learned under the budget" in studio.to_confirm().text


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


def test_a_page_that_cannot_be_shown_says_why(studio: Studio) -> None:
    studio.settle(**STATED)
    studio.project.schema_file.write_text("nonsense")
    page = studio.get("/purposes")
    assert (page.code, "schema.toml" in page.text) == (422, True)


def test_a_reader_that_fails_is_an_answer(tmp_path: Path) -> None:
    def fail(verb: str, order: Mapping[str, Any]) -> Any:
        raise OSError("Canary-7719")

    finding = Findings(fail).get("read", {})
    for _ in range(200):
        if not finding.is_open:
            break
        time.sleep(0.01)
    assert finding.error is not None
    assert "OSError" in finding.error["message"]
    assert "Canary" not in finding.error["message"]


def test_the_server_serves_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    addresses: Queue[str] = Queue()
    thread = Thread(target=launch, kwargs={"folder": "studio", "on_address": addresses.put})
    thread.start()
    host, _, path = addresses.get(timeout=30).removeprefix("http://").partition("/")
    connection = HTTPConnection(host, timeout=30)
    connection.request("GET", f"/{path}")
    answer = connection.getresponse()
    cookie = str(answer.getheader("set-cookie")).partition(";")[0]
    assert (answer.status, answer.read()) == (303, b"")
    with pytest.raises(InputError, match="in use by another studio"):
        launch(folder="studio", on_address=addresses.put)
    with pytest.raises(InputError, match="cannot be used"):
        launch(folder="other", port=int(host.partition(":")[2]), on_address=addresses.put)
    connection.request("POST", "/stop", headers={"cookie": cookie, "origin": f"http://{host}"})
    assert b"has stopped" in connection.getresponse().read()
    connection.close()
    thread.join(30)
    assert not thread.is_alive()
    assert (tmp_path / "studio").stat().st_mode & 0o077 == 0


def test_a_folder_of_another_table_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studio").mkdir()
    ProjectSettings(table=str(tmp_path / "a.csv")).save(tmp_path / "studio/studio.json")
    with pytest.raises(InputError, match="holds the project of"):
        launch("b.csv", folder="studio", on_address=lambda _: None)


def test_without_its_libraries_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(InputError, match="margrave\\[studio\\]"):
        launch(on_address=lambda _: None)


def test_one_process_has_a_folder(tmp_path: Path) -> None:
    one, two = FolderLock(tmp_path / "lock"), FolderLock(tmp_path / "lock")
    assert not two.is_taken()
    assert one.take()
    assert two.is_taken()
    assert not two.take()
    one.release()
    assert two.take()
    two.release()


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
