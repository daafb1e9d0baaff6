"""The tables of the papers' forms in ``docs/papers.md``, and of fits in ``docs/mechanisms.md``, made from the code.

``python -m tests.support.papers`` writes them anew; ``mechanisms/test_papers.py`` compares, and runs every form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from margrave.mechanisms import MECHANISMS, Mechanism
from margrave.mechanisms.parts.public import takes_public
from margrave.mechanisms.published import PUBLISHED_FORMS, PublishedForm
from margrave.models import FITS
from margrave.models.entries import EntryKind

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "papers.md"
KINDS = {
    "merged codes": EntryKind.MERGED,
    "cells": EntryKind.CELL,
    "sets": EntryKind.SET,
    "count maps": EntryKind.COUNT_MAP,
    "weighted maps": EntryKind.WEIGHTED_MAP,
    "half-spaces": EntryKind.HALF_SPACE,
    "public": EntryKind.READING,
}


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def words(value: Any) -> str:
    """Return a value as Python; of an object the fields that differ from their defaults."""
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value).replace("'", '"')
    changed = (f for f in fields(value) if f.init and getattr(value, f.name) != _default(f))
    given = ", ".join(f"{f.name}={words(getattr(value, f.name))}" for f in changed)
    return f"{type(value).__name__}({given})"


def named(form: PublishedForm, forms: Sequence[PublishedForm]) -> str:
    """Return the text that picks a form: nothing for the first, the shortest part of another's own."""
    if form is forms[0]:
        return ""
    parts = [form.paper.split(",")[0], *re.findall(r"\([^)]*\)", form.paper), form.paper]
    return next(p for p in parts if sum(p in other.paper for other in forms) == 1)


def call(kind: type[Mechanism], method: str, paper: str, needs: Sequence[str]) -> str:
    """Return a call as Python; a parameter that is needed has a variable of its name."""
    given = [*([words(paper)] if paper else []), *(f"{name}={name}" for name in needs)]
    return f"{kind.__name__}{method}({', '.join(given)})"


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield each form: mechanism, paper, call, the call written out, remaining differences."""
    for name, kind in MECHANISMS.items():
        forms = PUBLISHED_FORMS.get(name, ())
        for form in forms:
            paper = named(form, forms)
            made = f"`{call(kind, '.as_published', paper, form.needs)}`"
            yield f"`{name}`", form.paper, made, written_out(kind, paper, form), form.departures
        if not forms:
            own = call(kind, "", "", ["public"] if takes_public(kind) else [])
            yield f"`{name}`", "margrave's own", f"none: `{own}`", "", ""


def written_out(kind: type[Mechanism], paper: str, form: PublishedForm) -> str:
    """Return the constructor's call that makes a form."""
    own = words(kind.as_published(paper)).removeprefix(f"{kind.__name__}(").removesuffix(")")
    given = [*([own] if own else []), *(f"{name}={name}" for name in form.needs)]
    return f"`{kind.__name__}({', '.join(given)})`"


def table() -> str:
    """Return the table of all forms."""
    lines = [
        "| mechanism | paper | call | written out | remaining differences |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(cells) + " |" for cells in rows()),
    ]
    return "\n".join(lines) + "\n"


def fits() -> str:
    """Return the table of the kinds of answers that each fit takes."""
    lines = [f"| fit (`--fit`) | gives | {' | '.join(KINDS)} |", "|---" * (2 + len(KINDS)) + "|"]
    for name, fit in FITS.items():
        gives = "rows" if fit.gives_records else "answers"
        takes = " | ".join("yes" if kind in fit.entries else "" for kind in KINDS.values())
        lines.append(f"| `{fit.__name__}` (`{name}`) | {gives} | {takes} |")
    return "\n".join(lines) + "\n"


TABLES = {PAGE: ("forms", table), DOCS / "mechanisms.md": ("fits", fits)}


def page(path: Path) -> str:
    """Return a page with the table of today."""
    name, made = TABLES[path]
    begin, end = f"<!-- {name}: python -m tests.support.papers -->\n", f"<!-- end of {name} -->\n"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}{made()}{end}{after}"


if __name__ == "__main__":
    for path in TABLES:
        path.write_text(page(path), encoding="utf-8")
