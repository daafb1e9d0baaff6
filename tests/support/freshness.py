"""How far the source has moved since a proof was run: the commit of a run, and the lines changed since then.

Everything here asks git about the repository at ``root``. A folder without git, and a commit that git does not have,
count as unknown; what is unknown is stale.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

MEASURING = tuple(
    f"src/margrave/{name}"
    for name in (
        "privacy", "accounting", "mechanisms", "models", "marginal", "transcript", "domain.py", "unit.py",
        "structural_zeros.py", "workload.py", "account.py", "provenance.py", "public_table.py", "data/table.py",
        "error_sanitizer.py", "errors.py", "types.py",
    )
)  # fmt: skip
"""Source between the coded rows of a table and noisy answers: what is asked, drawn, charged and fitted."""

SOURCE = (
    *MEASURING,
    *(
        f"src/margrave/{name}"
        for name in (
            "data", "profiling", "schema", "release", "bounds", "api.py", "run.py", "unfinished.py", "frames.py",
            "row_checks.py", "learning", "learning_stage.py", "resuming.py", "custodian.py", "plugins.py", "_io.py",
            "_fields.py",
        )
    ),
)  # fmt: skip
"""Also what reads rows from tables, and what is made of the answers."""

TABLES = ("tests/support/conformance.py", "tests/support/tiny_table.py", "src/margrave/testing")
OUTPUTS = ("src/margrave/cli", "src/margrave/report")

RELEVANT: dict[str, tuple[str, ...]] = {
    "replay": (*MEASURING, *TABLES, "tests/mechanisms/test_replay.py"),
    "interference": (
        *SOURCE, *OUTPUTS, *TABLES, "tests/testing/test_mechanisms.py", "tests/mechanisms/test_noninterference.py",
        "tests/support/command_line.py", "tests/boundary/test_interference.py",
    ),
    "mutants": (*SOURCE, *OUTPUTS, "src/margrave/inference", "src/margrave/evaluation", "tests"),
    "audit": (*MEASURING, *TABLES, "tests/support/audit.py", "tests/trust/test_audit.py"),
    "toy": (*SOURCE, *TABLES),
    "fuzz": (*SOURCE, "tests/support/fuzz.py", "tests/trust/test_fuzz.py"),
    "faults": (
        *SOURCE, *OUTPUTS, "tests/support/faults.py", "tests/support/vfs.py", "tests/cli/test_ledger.py",
        "tests/accounting/test_ledger_file.py",
    ),
    "scale": (*SOURCE, "src/margrave/planning.py", "src/margrave/cost.py", "tests/support/scale.py"),
    "samplers": (*MEASURING, "tests/privacy/test_noise.py"),
    "canaries": (
        *SOURCE, *OUTPUTS, *TABLES, "tests/support/alive.py", "tests/trust/test_canary.py",
        "tests/trust/test_noise.py", "tests/house/test_hazards.py",
    ),
}  # fmt: skip
"""Files and folders that each part is about: source, and the tests that the part runs.

Replay, audit and samplers run on coded rows and look at what the gate answers and charges. Files of tables, and what is
made of the answers, are the matter of the other parts.
"""

RUN_AT = re.compile(r"\((?P<commit>[0-9a-f]{7,40})(?P<edited>\+?)\)")
"""The commit in a version such as ``0.1.0 (c2a5e72)``; ``+`` marks files that were edited after it."""

UNKNOWN = "no commit known"


class Commit(NamedTuple):
    """A commit, and whether files had been edited after it."""

    name: str
    edited: bool


class Freshness(NamedTuple):
    """The lines of relevant source that changed since a run, None if unknown, and the commit they were counted at."""

    changed: int | None
    as_of: str


def git(root: Path, *arguments: str) -> str | None:
    """Return what git prints, or None if it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def head(root: Path) -> str:
    """Return the full name of the current commit, or ``UNKNOWN``."""
    return (git(root, "rev-parse", "--verify", "HEAD") or UNKNOWN).strip()


def uncommitted(root: Path, written: Iterable[str] = ()) -> list[str] | None:
    """Return the files that differ from the commit or are untracked, or None without git.

    Args:
        root: The repository.
        written: Files that a run itself writes; they do not count.
    """
    excluded = [f":(exclude){path}" for path in written]
    status = git(root, "status", "--porcelain", "--untracked-files=all", "--", ".", *excluded)
    return None if status is None else [line[3:] for line in status.splitlines()]


def commit_of(version: str) -> Commit | None:
    """Return the commit of a version.

    >>> commit_of("0.1.0 (7886e33+)")
    Commit(name='7886e33', edited=True)
    """
    found = RUN_AT.search(version)
    return None if found is None else Commit(found["commit"], bool(found["edited"]))


def lines_since(root: Path, commit: str, paths: Sequence[str]) -> int | None:
    """Count lines added and removed under ``paths`` from ``commit`` to the current commit; None if git lacks it.

    Docstrings and comments of Python files do not count: they do not run.
    """
    told = git(root, "diff", "--numstat", "--no-renames", "-z", commit, "HEAD", "--", *paths)
    if told is None:
        return None
    found = 0
    for entry in told.split("\0")[:-1]:
        added, removed, path = entry.split("\t")
        if added == "-":  # a binary file
            found += 1
            continue
        old, new = (_code(git(root, "show", f"{c}:{path}")) for c in (commit, "HEAD"))
        if path.endswith(".py") and old is not None and new is not None:
            blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
            found += sum(i2 - i1 + j2 - j1 for kind, i1, i2, j1, j2 in blocks if kind != "equal")
        else:
            found += int(added) + int(removed)
    return found


def _code(text: str | None) -> list[str] | None:
    """Return the lines of a Python file without docstrings and lines of comments; None if it is none.

    A file that is not there has no lines.
    """
    if text is None:
        return []
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (SyntaxError, tokenize.TokenError):
        return None
    words = {
        line
        for node in nodes
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    words |= {
        t.start[0]
        for t in tokens
        if t.type == tokenize.COMMENT and t.line[: t.start[1]].strip() == ""
    }
    return [line for i, line in enumerate(text.splitlines(), 1) if i not in words]


def freshness(root: Path, part: str, versions: Iterable[str]) -> Freshness:
    """Count the lines changed since the oldest of the versions that a part was run at."""
    changed: list[int | None] = []
    for version in versions:
        commit = commit_of(version)
        changed.append(
            None
            if commit is None or commit.edited
            else lines_since(root, commit.name, RELEVANT[part])
        )
    known = [n for n in changed if n is not None]
    return Freshness(max(known) if known and len(known) == len(changed) else None, head(root))
