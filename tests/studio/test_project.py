"""The folder of the studio: its settings, its lock, and the server."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("starlette")

from margrave.accounting import AddRemoveRow, Budget, Ledger
from margrave.errors import InputError, LedgerError
from margrave.studio import launch
from margrave.studio.findings import Findings
from margrave.studio.state import FolderLock, ProjectSettings
from tests.support import vfs
from tests.support.studio import CANARIES, STATED, Studio


def test_settings_survive_a_restart(studio: Studio, tmp_path: Path) -> None:
    studio.settle(**STATED)
    restarted = Studio(tmp_path)
    assert restarted.project.settings == studio.project.settings
    assert restarted.get("/").path == "/budget", "it goes on where it was"
    assert restarted.get("/budget").code == 200, "without reading the table anew"
    waiting = restarted.get("/unit")
    assert 'hx-get="/columns/wait?step=unit"' in waiting.text or "Whom does" in waiting.text
    restarted.wait(restarted.project.reading)
    headers = restarted.get("/columns/wait?step=unit").headers
    assert headers["hx-redirect"] == "/unit", "the page that waits is the page that is shown"
    assert restarted.get("/columns/wait").headers["hx-redirect"] == "/columns"
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


@pytest.mark.skipif(not vfs.available(), reason="SQLite's VFS cannot be wrapped")
def test_a_ledger_in_which_a_killed_run_was_writing_is_read_all_the_same(studio: Studio) -> None:
    """Whoever uses the studio has no terminal to take the unfinished line back in."""
    studio.project.folder.mkdir(exist_ok=True)
    ledger = Ledger(studio.project.ledger)
    ledger.init("visits", cap=Budget.approx(3.0, 1e-6), unit=AddRemoveRow())
    before = ledger.datasets()
    vfs.interrupt(ledger.path, "visits")
    with pytest.raises(LedgerError, match="interrupted"):
        ledger.datasets()
    assert studio.project.datasets() == before
    assert ledger.datasets() == before


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
    port = int(host.partition(":")[2])
    with pytest.raises(InputError, match=rf"Port {port} is in use by another program\. Name ano"):
        launch(folder="other", port=port, on_address=addresses.put)
    assert not (tmp_path / "other").exists()
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
    assert [path.name for path in (tmp_path / "studio").iterdir()] == ["studio.json"]


@pytest.mark.parametrize("port", [-1, 80, 65536, 99999])
def test_a_port_that_is_out_of_range_is_refused(tmp_path: Path, port: int) -> None:
    with pytest.raises(InputError, match=r"--port lies between 1024 and 65535\."):
        launch(folder=tmp_path / "studio", port=port, on_address=lambda _: None)
    assert not (tmp_path / "studio").exists()


def test_a_table_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for table in ("visits.csv", "2025*.csv", "duckdb:visits.db?table=visits"):
        with pytest.raises(InputError, match="There is no table"):
            launch(table, folder="studio", on_address=lambda _: None)
    assert not (tmp_path / "studio").exists()


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
