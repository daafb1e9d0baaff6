"""Hostile text in schemas and releases: it stays text in a page, and does not steer a terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import run
from margrave.cli.terminal import STEERING_IN_LINES, visible
from margrave.data import read_table
from margrave.inference import Mean, analyze
from margrave.mechanisms import Independent
from margrave.privacy import SeededRandomness, protect
from margrave.provenance import FitSpec, Provenance, PublicFacts
from margrave.release import Release
from margrave.report.page import render
from margrave.schema import Categorical, Integer, Schema

STEERS = (
    "\x1b[2J", "\x1b]0;owned\x07", "\x9b31m", "\r", "\x08" * 5, "\x7f", "\u202egnp", "\u2066", "\u061c", "\u2028",
    "\x00", "\n",
)  # fmt: skip
MARKUP = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg/onload=alert(1)>", "' autofocus onfocus='x",
    "</title></style><script>", "javascript:alert(1)", "<a href=//x>", "&lt;b&gt;", "<!--", "]]>", "[bold red]", "[/]",
)  # fmt: skip
MARKUP_TEXTS = st.lists(st.sampled_from([*MARKUP, "a", " ", "é"]), min_size=1, max_size=3).map(
    "".join
)


def released(name: str, label: str, said: str) -> Release:
    """A release whose names, labels and facts hold the texts."""
    schema = Schema((Categorical(name, [label, "other"]), Integer("n", 0, 3)))
    rows = pa.table({name: [label, "other"] * 20, "n": [0, 1, 2, 3] * 10})
    with protect(
        read_table(rows, schema),
        unit=AddRemoveRow(),
        budget=Budget.approx(9.0, 1e-9),
        randomness=SeededRandomness(1),
    ) as private:
        made = Independent().run(private, rng=np.random.default_rng(0))
    public = PublicFacts(3, (said,), said, said, notes=(said,))
    debits = tuple(replace(d, what=f"measure {said}") for d in made.account.debits)
    return replace(
        made,
        account=replace(made.account, sampler=said, debits=debits),
        provenance=Provenance(said, {said: said}, fit=FitSpec(said), public=public),
        versions={**made.versions, "margrave": said},
    )


class Outline(HTMLParser):
    """The tags and names of attributes of a page, without its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[Any] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.tags.append("!")


PLAIN = Outline(render(released("name", "label", "said")))


@settings(max_examples=25, deadline=None)
@given(MARKUP_TEXTS, MARKUP_TEXTS, MARKUP_TEXTS)
def test_no_text_becomes_a_tag_of_a_report(name: str, label: str, said: str) -> None:
    page = render(released(f"c{name}", f"l{label}", said))
    outline = Outline(page)
    assert outline.tags == PLAIN.tags
    assert outline.attributes == PLAIN.attributes


def test_every_page_forbids_what_it_does_not_need() -> None:
    report = render(released("name", "label", "said"))
    found = analyze(
        [pa.table({"x": [1.0, 2.0, i]}) for i in (3.0, 4.0, 5.0)], Mean("x"), n=3
    ).html()
    for page in (report, found):
        head = page.partition("<title>")[0]
        (policy,) = re.findall(
            r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', head
        )
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        outline = Outline(page)
        assert not {"script", "link", "iframe", "object", "base", "form"} & set(outline.tags)
        assert not [
            a
            for a in outline.attributes
            if a.startswith("on") or a in ("src", "href", "srcset", "action")
        ]


@given(st.text())
def test_nothing_steers_that_was_made_visible(text: str) -> None:
    assert not STEERING_IN_LINES.search(visible(text))
    assert visible(visible(text)) == visible(text)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) != 70
    said = capsys.readouterr()
    return said.out + said.err


@pytest.mark.parametrize("steers", STEERS, ids=[repr(s) for s in STEERS])
def test_no_text_of_a_release_steers_a_terminal(
    steers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    release = released("name", f"x{steers}y", f"x{steers}y")
    release.save("r.margrave")
    release.schema.save("s.toml")
    pyarrow.csv.write_csv(pa.table({"name": ["other", "what"], "n": [1, 2]}), "t.csv")
    for words in (
        ["certificate", "r.margrave"], ["certificate", "r.margrave", "--json"], ["bounds", "r.margrave"],
        ["bounds", "r.margrave", "--json"], ["evaluate", "t.csv", "r.margrave", "-s", "s.toml"],
        ["evaluate", "t.csv", "r.margrave", "-s", "s.toml", "--json"], ["schema", "check", "t.csv", "-s", "s.toml"],
        ["plan", "-s", "s.toml", "--epsilon", "1", "--delta", "1e-9"],
        ["report", f"x{steers}.margrave", "-o", "r.html"],
        ["sample", "r.margrave", "-n", "2", "-o", "o.csv", "--where", f"name=x{steers}y"], [f"x{steers}y"],
        ["sample", "r.margrave", "-n", "2", "-o", "p.csv", "--where", f"x{steers}y=1"], ["plan", f"--x{steers}"],
        ["ledger", "init", "l.jsonl", "--dataset", f"x{steers}y", "--epsilon", "1", "--unit", "replace-row"],
    ):  # fmt: skip
        if steers == "\x00" and any("\x00" in w for w in words if "margrave" in w):
            continue  # an operating system passes no such argument
        said = shown(capsys, *words)
        assert not STEERING_IN_LINES.search(said), words
        if words == ["certificate", "r.margrave"]:
            assert visible(f"x{steers}y") in said.replace("\n", ""), (
                "a line of the release's own begins no new line"
            )


def test_no_line_of_a_command_is_printed_past_the_one_place() -> None:
    for path in sorted((Path(margrave.__file__).parent / "cli").glob("*.py")):
        text = path.read_text()
        assert path.name == "terminal.py" or not re.search(r"click\.(s?echo|secho)\(", text), (
            path.name
        )
        assert path.name == "output.py" or "rich.markup" not in text, path.name
