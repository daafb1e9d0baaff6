"""The source keeps the rules of language that a program can check."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support import language

TREES = {p: ast.parse(p.read_text(encoding="utf-8")) for p in language.PACKAGE.rglob("*.py")}


@pytest.mark.parametrize(
    "source",
    [
        'def f() -> int:\n    """What the count is."""\n',
        'def f() -> int:\n    """The count of rows."""\n',
        'def f() -> int:\n    """``n`` rows."""\n',
        'def f() -> int:\n    """Return the count. What is left is noise."""\n',
        'raise InputError(f"{name!r} is no column of the table.")\n',
        'raise InputError("These are none of the categories.")\n',
        "x = 1  # the noise tells nothing of it\n",
        '"""A model that public records teach."""\n',
        '"""Of the others the noisy answers rule out a few."""\n',
        '"""Analyse neighbouring tables."""\n',
        '"""One private choice among marginals."""\n',
        "MOST = 1000\n",
        "CELLS_TOGETHER: int = 1000\n",
        "def f(told: str) -> None: ...\n",
        "class Wide:\n    def asked(self) -> None: ...\n",
    ],
)
def test_a_sentence_or_name_against_the_rules_is_refused(source: str) -> None:
    assert language.check(source, "here.py")


@pytest.mark.parametrize(
    "source",
    [
        'def f() -> int:\n    """Return the number of rows."""\n',
        '@property\ndef f() -> int:\n    """The number of rows."""\n',
        'raise InputError("There is no column of this name.")\n',
        "MAX_ROWS = 1000\nT = TypeVar('T')\n",
        "x = 1  # the model contradicts the measurement\n",
    ],
)
def test_plain_sentences_and_names_pass(source: str) -> None:
    assert not language.check(source, "here.py")


def test_module_constants_stay_few() -> None:
    """Numbers belong into fields and arguments; texts and tables are counted too."""
    named = [
        (node.value, name)
        for tree in TREES.values()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for line, name in language.constants(tree)
        if line == node.lineno
    ]
    numbers = [name for value, name in named if value is not None and is_number(value)]
    assert len(numbers) <= 130, len(numbers)
    assert len(named) <= 260, len(named)


def is_number(value: ast.expr) -> bool:
    """Return True for an expression of literal numbers."""
    return not any(
        isinstance(node, ast.Name | ast.Tuple | ast.Dict | ast.Set | ast.List | ast.JoinedStr)
        or (isinstance(node, ast.Constant) and not isinstance(node.value, int | float))
        for node in ast.walk(value)
    )


def test_nobody_is_told() -> None:
    word = re.compile(r"\btold\b")
    lines = [line for p in TREES for line in p.read_text(encoding="utf-8").splitlines()]
    assert sum(bool(word.search(line)) for line in lines) <= 10


def test_files_stay_short() -> None:
    lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in TREES}
    assert not {p.name: n for p, n in lines.items() if n > 450}
