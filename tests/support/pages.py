"""The pages of the documentation, and the code blocks in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "extending"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
#: All pages as they are written: a notebook is a script, from which its page is made.
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "notebooks"),
        *NOTEBOOKS,
    ]
)
PROSE = [p for p in PAGES if p.stem not in ("CHANGELOG", "trust-results")]


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language, such as "python", or "" for none."""
    fenced = re.findall(
        r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return [text for kind, text in fenced if kind == language]
