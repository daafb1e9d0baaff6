"""Pages agree with the library: links, names, commands, navigation and words."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import types
from pathlib import Path
from typing import Any

import pytest

import margrave
from margrave.cli.main import cli
from tests.support.language import IDIOMS
from tests.support.pages import GUIDES, PAGES, PROSE, ROOT, blocks


def test_every_mechanism_is_in_the_guide() -> None:
    text = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    listed = {
        name: cls
        for names, classes in rows
        for name, cls in zip(re.findall(r"`(.+?)`", names), re.findall(r"`(.+?)`", classes))
    }
    assert listed == {name: kind.__name__ for name, kind in margrave.mechanisms.MECHANISMS.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        written = page.parent / target
        if written.parent.resolve() == ROOT / "docs" / "notebooks":
            written = written.with_suffix(".py")
        assert written.exists() or target.startswith("https://"), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    """Every `margrave ...` line names a command, and options, that are there."""
    text = "\n".join(blocks(page, "")).replace("\\\n", " ")
    for line in re.findall(r"^(?:\$ )?margrave (.+)$", text, re.MULTILINE):
        words = line.split("#")[0].split()
        command: Any = cli
        with cli.make_context("margrave", [], resilient_parsing=True) as context:
            while hasattr(command, "get_command") and words and not words[0].startswith("-"):
                command = command.get_command(context, words.pop(0))
                assert command is not None, line
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {
            "--help",
            "-h",
            "--version",
        }
        assert [w for w in words if w.startswith("-") and w not in known] == [], line


def test_files_named_in_the_guide_exist() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in GUIDES.glob("*.md"))
    named = set(re.findall(r"`((?:src|tests)/[\w/]+\.py)`", text))
    new = {"src/margrave/mechanisms/star.py", "tests/mechanisms/test_star.py"}
    assert {n for n in named - new if not (ROOT / n).exists()} == set()
    assert new <= named


def test_every_public_name_is_in_the_reference() -> None:
    """Each name of the package and of its parts, by itself or with its whole module."""
    pages = (ROOT / "docs" / "reference").glob("*.md")
    paths = [p for page in pages for p in re.findall(r"^::: ([\w.]+)", page.read_text(), re.M)]
    assert len(paths) == len(set(paths))
    documented = [(path.rpartition(".")[2], pkgutil.resolve_name(path)) for path in paths]
    modules = {thing.__name__ for _, thing in documented if isinstance(thing, types.ModuleType)}
    parts = [margrave, *(importlib.import_module(f"margrave.{p}") for p in margrave._PARTS)]
    missing = [
        f"{part.__name__}.{name}"
        for part in parts
        for name in getattr(part, "__all__", ())
        for thing in [getattr(part, name)]
        if not any(name == n and thing is t for n, t in documented)
        and getattr(thing, "__module__", None) not in modules
    ]
    assert missing == []
    assert {p.__name__ for p in parts if not hasattr(p, "__all__")} <= modules


def test_every_public_name_is_documented() -> None:
    """Public classes with their methods and properties, and public functions."""
    parts = [margrave, *(importlib.import_module(f"margrave.{p}") for p in margrave._PARTS)]
    things = {
        (name, thing)
        for part in parts
        for name in getattr(part, "__all__", ())
        if isinstance(thing := getattr(part, name), type | types.FunctionType)
        and thing.__module__.startswith("margrave")
    }
    assert len(things) > 200
    assert [name for name, thing in things if undocumented(thing)] == []
    assert undocumented(type("Own", (), {"method": lambda self: None, "__doc__": "A class."}))


def undocumented(thing: Any) -> list[str]:
    """Return the names in a public class or function that have no docstring."""
    members = vars(thing) if isinstance(thing, type) else {}
    named = {n: getattr(m, "__func__", m) for n, m in members.items() if n[0] != "_"}
    kinds = (types.FunctionType, property, functools.cached_property)
    found = [n for n, m in named.items() if isinstance(m, kinds) and not inspect.getdoc(m)]
    own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    generated = (own or "").startswith(f"{thing.__name__}(")  # by dataclass
    return found + ([thing.__name__] if not own or generated else [])


def test_the_list_of_names_at_the_top_is_complete() -> None:
    page = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[`(\w+)`\]\[margrave\.", page, re.M)
    listed += re.findall(r"^::: margrave\.(\w+)$", page, re.M)
    names = [n for n in margrave.__all__ if not n.startswith("_")]
    assert sorted(listed) == sorted(names)


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE)
    docs = ROOT / "docs"
    pages = [p.relative_to(docs).with_suffix(".md") for p in PAGES if p.is_relative_to(docs)]
    assert sorted(listed) == sorted(p.as_posix() for p in pages)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_loads_nothing_from_another_host(page: Path) -> None:
    """Nor has it a diagram of Mermaid, for which the theme loads a script from another host."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"```mermaid|<script|src=.https?:|!\[[^\]]*\]\(https?:", text) == []


@pytest.mark.parametrize("page", PROSE, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_names_of_a_page_exist(page: Path) -> None:
    """Every dotted name below `margrave`, except names of files such as `visits.margrave.journal`."""
    text = re.sub(r"```toml.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    paths = set(re.findall(r"(?<![.\w/-])margrave(?:\.[A-Za-z_]\w*)+(?!\.?\w)", text))
    assert [path for path in sorted(paths) if not is_name(path)] == []


def is_name(path: str) -> bool:
    try:
        pkgutil.resolve_name(path)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.parametrize("page", PROSE, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    sentences = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=[-|#*])", text)]
    found = [m[0] for s in sentences for idiom in IDIOMS for m in re.finditer(idiom, s)]
    others = (
        r"\b(?:knows? of|known of|whose row|but for|one's own|go(?:es)? on with|price of privacy)\b"
    )
    assert found + re.findall(others, text, re.IGNORECASE) == []


def test_the_stations_of_the_tour_exist() -> None:
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    stations = re.findall(r"^\| (\d+)\. .+ \| `([\w/]+)\.py` \| `([\w.]+)` \|$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in stations] == list(range(1, 11))
    for _, file, function in stations:
        thing: Any = importlib.import_module("margrave." + file.replace("/", "."))
        for name in function.split("."):
            thing = getattr(thing, name)
        assert thing.__module__ == "margrave." + file.replace("/", "."), function
    for file in re.findall(r"`([\w/]+\.py)`", text):
        assert (ROOT / "src" / "margrave" / file).exists(), file
