"""The studio in a browser: keys alone, two widths, a second tab, a reload, a killed server, a run that continues."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from margrave.accounting import Ledger
from tests.support.browser import axe_script, chromium, slowdown
from tests.support.studio import CANARIES, write_table

pytestmark = [pytest.mark.slow, pytest.mark.browser]


class Server:
    """``margrave studio`` as a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-u", "-m", "margrave", "studio", "--no-browser"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdout=subprocess.PIPE, stderr=log
            )
        assert self.process.stdout is not None
        found = re.search(rb"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.address = found[0].decode()

    @property
    def origin(self) -> str:
        return self.address.partition("/?")[0]

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "margrave-studio" / "studio.ledger")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    write_table(tmp_path / "visits.csv", rows=4000)
    made = Server(tmp_path)
    yield made
    made.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


class Keys:
    """A page that is driven by keys alone, and looked over at each step."""

    def __init__(self, page: Any) -> None:
        self.page, self.seconds = page, dict[str, float]()
        self.faults: list[str] = []
        page.on("console", self._heard)
        page.on("request", self._asked_for)

    def _heard(self, message: Any) -> None:
        if message.type == "error" and "htmx:" not in message.text:
            self.faults.append(message.text)

    def _asked_for(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.faults.append(f"a request to {request.url}")

    def tab_to(self, selector: str) -> None:
        """Press Tab until the element has the focus."""
        for _ in range(150):
            if self.page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    def press(self, selector: str, key: str = "Enter") -> None:
        self.tab_to(selector)
        self.page.keyboard.press(key)

    def write(self, selector: str, text: str) -> None:
        self.tab_to(selector)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def choose(self, selector: str, name: str) -> None:
        """Type the name of an option. A slow machine takes letters that come late for another name."""
        self.tab_to(selector)
        for _ in range(10):
            self.page.keyboard.type(name)
            if self.page.input_value(selector) == name:
                return
            self.page.wait_for_timeout(1500)
        raise AssertionError(f"typing does not choose {name}")

    def arrive(self, title: str, name: str = "", seconds: float = 120.0) -> None:
        """Wait for a page, and look it over."""
        began = time.monotonic()
        self.page.wait_for_selector(f"h1:has-text('{title}')", timeout=1000 * seconds * slowdown())
        self.seconds[title] = time.monotonic() - began
        self.look()

    def look(self) -> None:
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(wide) <= 0, f"{self.page.title()} is wider than the screen"
        self.page.evaluate(axe_script())
        found = self.page.evaluate("async () => (await axe.run()).violations")
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        where = [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in serious]
        assert where == [], self.page.title()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_whole_way_by_keys(browser: Any, server: Server, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, accept_downloads=True
    )
    context.set_default_timeout(30_000 * slowdown())
    page = context.new_page()
    keys = Keys(page)
    began = time.monotonic()
    page.goto(server.address)
    assert time.monotonic() - began < 5.0 * slowdown()
    keys.arrive("Which table?")
    keys.write("#path", "visits.csv")
    keys.page.keyboard.press("Enter")
    keys.arrive("What is public")

    # the categories of the first column are stated, the second is learned
    keys.tab_to("[name='0.way']")
    page.keyboard.press("ArrowDown")
    assert page.is_checked("[name='0.way'][value=declare]")
    keys.write("[name='0.categories']", "north, south")
    keys.press("[name='0.other']", "Space")
    keys.press("fieldset.column:has([name='0.way']) summary")
    keys.tab_to("[name='0.outside']")
    page.keyboard.press("ArrowDown")
    assert page.input_value("[name='0.outside']") == "other"
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)  # requests are sent one after the other
    page.wait_for_selector("#status-0:has-text('Kept')")
    page.reload()
    keys.arrive("What is public")
    assert page.input_value("[name='0.categories']") == "north, south", "a reload loses nothing"
    assert page.is_checked("[name='0.other']")
    assert page.input_value("[name='0.outside']") == "other"
    assert page.is_visible("[name='0.outside']"), "what was chosen is not folded away"
    keys.press("main button.primary")

    keys.arrive("Whom does")
    keys.tab_to("[name=protects]")
    page.keyboard.press("ArrowUp")
    assert page.is_checked("[value=rows]")
    keys.press("main summary")
    keys.tab_to("[name=count]")
    page.keyboard.press("ArrowDown")
    assert page.is_checked("[name=count][value=public]")
    assert page.input_value("#new_dataset") == "visits.csv"
    keys.write("#new_dataset", "visits")
    keys.look()
    keys.press("main button.primary")
    keys.arrive("What is the release for?")
    keys.write("[name=text]", "mean stay by ward")
    keys.press("[name=add]")
    page.wait_for_selector("ul.purposes")
    keys.press("form[action='/purposes'] .primary")
    keys.arrive("How much privacy")
    keys.tab_to("#epsilon")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("h2:has-text('epsilon 1.5')")
    assert page.get_attribute("#epsilon", "aria-valuetext") == "epsilon 1.5"
    keys.press("main summary")
    assert not page.is_visible("#public")
    keys.choose("#mechanism", "aim-pub")
    page.wait_for_selector("p:has-text('needs a public table')")
    assert page.is_visible("#public")
    keys.look()
    page.wait_for_timeout(1500)  # letters within a second belong to one name
    keys.choose("#mechanism", "mwem-pgm")
    page.wait_for_selector("dd:has-text('mwem-pgm')")
    page.keyboard.press("Home")
    page.wait_for_selector("dd:text-is('aim')")
    assert not page.is_visible("#public")
    keys.press("main button.primary")
    keys.arrive("This will be published")
    assert "replace one row" in page.inner_text("main")
    page.wait_for_selector("#check .private", timeout=60_000 * slowdown())
    keys.look()

    second = context.new_page()
    second.goto(f"{server.origin}/confirm")
    second.check("[name=agreed]")
    keys.press("[name=agreed]", "Space")
    keys.press("main button.primary")
    keys.arrive("Run 1")
    second.click("button.primary")
    second.wait_for_selector("h1:has-text('Run 1'), h1:has-text('The release')")
    assert len(server.ledger.datasets()[0].runs) <= 1, "two tabs begin one run"
    page.reload()
    page.wait_for_selector("h1:has-text('Run 1'), h1:has-text('The release')")

    server.kill()  # the run continues without it
    server.start()
    page.goto(server.address)
    keys.arrive("The release is made", seconds=240)
    (run,) = server.ledger.datasets()[0].runs
    assert run.closed
    with page.expect_download() as download:
        keys.press("a[href$='rows.csv']")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith('"ward","stay"')
    keys.press("#compare button")
    page.wait_for_selector("#compare .private", timeout=120_000 * slowdown())
    keys.look()
    page.goto(f"{server.origin}/ledger")
    keys.arrive("The ledger")
    assert run.run in page.inner_text("main")
    assert server.ledger.datasets()[0].dataset == "visits"
    page.goto(f"{server.origin}/columns")
    keys.arrive("What is public")
    page.goto(f"{server.origin}/unit")
    keys.arrive("Whom does")
    keys.tab_to("[name=ledger_dataset]")
    assert page.is_checked("[name=ledger_dataset][value=visits]")
    assert not page.is_visible("#new_dataset")
    page.keyboard.press("ArrowDown")
    assert page.is_checked("[name=ledger_dataset][value='']")
    keys.write("#new_dataset", "other visits")
    keys.look()
    with context.expect_page() as opened:
        page.goto(f"{server.origin}/run/1")
        keys.press("a[href$='report.html']")
    opened.value.wait_for_load_state()
    assert "Content Security Policy" not in " ".join(keys.faults)
    refused = [f for f in keys.faults if "ERR_CONNECTION" not in f]
    assert refused == []
    kept = [p for p in server.folder.rglob("*") if p.is_file() and p.name != "visits.csv"]
    said = "".join(p.read_bytes().decode("latin-1") for p in kept)
    assert [c for c in CANARIES if c in said] == []
    assert "token" not in (server.folder / "server.log").read_text()
    context.close()


def test_a_killed_run_continues_and_pays_once(browser: Any, server: Server) -> None:
    page = browser.new_context().new_page()
    page.set_default_timeout(30_000 * slowdown())
    page.goto(server.address)
    page.fill("#path", "visits.csv")
    page.click("text=Read it")
    for title in ("What is public", "Whom does", "What is the release for?", "How much privacy"):
        page.wait_for_selector(f"h1:has-text('{title}')", timeout=60_000 * slowdown())
        if title == "Whom does":
            page.check("[value=rows]")
        page.click("main button.primary")
    page.wait_for_selector("h1:has-text('This will')")
    page.check("[name=agreed]")
    page.click("main button.primary")
    page.wait_for_selector("h1:has-text('Run 1')")
    for _ in range(1200):
        known = server.ledger.datasets()[0].runs
        if known and known[0].debits:
            break
        time.sleep(0.05)
    job = server.folder / "margrave-studio" / "run-1"
    server.kill()
    for pid in _processes_at(job):
        os.kill(pid, signal.SIGKILL)
    server.ledger.recover()  # the run may have been writing to it
    (before,) = server.ledger.datasets()[0].runs
    assert not before.closed
    server.start()
    page.goto(server.address)
    page.wait_for_selector("p:has-text('ended before it was done')")
    page.click("text=Continue this run")
    page.wait_for_selector("h1:has-text('The release is made')", timeout=240_000 * slowdown())
    (after,) = server.ledger.datasets()[0].runs
    assert after.closed
    assert after.answers[: len(before.answers)] == before.answers
    assert after.debited <= after.reserved


def _processes_at(job: Path) -> list[int]:
    """Return the processes whose command names this run's folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(job).encode() in words:
            found.append(int(entry.name))
    return found
