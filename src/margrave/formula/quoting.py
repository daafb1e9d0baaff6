"""Names of columns that a formula must quote, since they read as an expression."""

from __future__ import annotations

import re
from collections.abc import Iterable


def quoting_hint(name: str, columns: Iterable[str]) -> str:
    """Return how to write a column if a formula read only the first part of its name; "" if it read no such part.

    >>> quoting_hint("hours", ["age", "hours-per-week"])
    'Write `hours-per-week` in backticks. '
    """
    parts = (c for c in columns if re.match(rf"{re.escape(name)}\W", c))
    return next((f"Write `{c}` in backticks. " for c in parts), "")
