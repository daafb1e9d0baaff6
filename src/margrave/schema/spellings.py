"""Spellings: texts that are one category although they are written differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from margrave.schema import validators

#: The rule of spelling: "case", or each other spelling with its category.
Same = str | Mapping[str, str] | None


def folded(text: str) -> str:
    """Return a text in lower case, with one blank for many and none at its ends.

    >>> folded("  New   YORK ")
    'new york'
    """
    return " ".join(text.casefold().split())


def checked(name: str, same: Any) -> Same:
    """Return a rule of spelling. Raises ``SchemaError`` for one that is not known."""
    if same is None or same == {}:
        return None
    if same == "case":
        return "case"
    if not isinstance(same, Mapping) or not all(
        isinstance(text, str) and text.strip() for pair in same.items() for text in pair
    ):
        raise validators.column_error(
            name,
            "same is not a rule of spelling.",
            'Write same = "case", or each spelling with its category: same = {"Bale" = "Basel"}.',
        )
    rule = {text.strip(): category.strip() for text, category in same.items()}
    if twice := sorted(set(rule) & set(rule.values())):
        raise validators.column_error(
            name,
            f"same makes {twice[0]!r} another category, and another text {twice[0]!r}.",
            "Give every spelling its last category.",
        )
    return rule


def speller(same: Same) -> Callable[[str], str]:
    """Return the function that gives a text's category by the rule, without blanks around it.

    >>> speller({"M": "male"})(" M "), speller("case")("New  York"), speller(None)(" M ")
    ('male', 'new york', 'M')
    """
    if same is None:
        return str.strip
    if isinstance(same, str):
        return folded
    rule = same
    return lambda text: rule.get(text.strip(), text.strip())
