"""A griffe extension: doctests in docstrings become code blocks on the reference pages."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent)\S.*|\n(?P=indent) +\S.*)*", re.M)


def fenced(docstring: str) -> str:
    """Return the docstring with a fence around each doctest, up to the next empty line."""
    return DOCTEST.sub(lambda m: f"\n{m['indent']}```pycon\n{m[0]}\n{m['indent']}```", docstring)


class Doctests(griffe.Extension):
    """Fence the doctests of every object that is loaded."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
