"""The way up: a release calls a few functions of higher layers by the name of their part.

Imports point down, and no function that is called from here gives a release anything to keep.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal


def part(name: Literal["report", "evaluation"]) -> Any:
    """Return a part of the package that stands above releases."""
    return import_module(f"margrave.{name}")
