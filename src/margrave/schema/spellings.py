"""Spellings: texts that are one category although they are written differently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from margrave.schema import validators

#: The rule of spelling: "case"; each other spelling with its category; or both.
Same = str | Mapping[str, str] | tuple[str, Mapping[str, str]] | None


def folded(text: str) -> str:
    """Return a text in lower case, with one blank for many and none at its ends.

    >>> folded("  New   YORK ")
    'new york'
    """
    return " ".join(text.casefold().split())


def folds(same: Same) -> bool:
    """Return True if texts that differ in case or blanks alone are one by the rule."""
    return same == "case" or isinstance(same, tuple)


def spellings(same: Same) -> Mapping[str, str]:
    """Return the other spellings that the rule lists, each with its category."""
    listed = same[1] if isinstance(same, tuple) else same
    return listed if isinstance(listed, Mapping) else {}


def comparable(same: Same) -> Callable[[str], str]:
    """Return the function that gives the form of a text in which the rule compares it.

    >>> comparable("case")(" New  York"), comparable(None)(" M ")
    ('new york', 'M')
    """
    return folded if folds(same) else str.strip


def checked(name: str, same: Any) -> Same:
    """Return a rule of spelling. Raises ``SchemaError`` for one that is not known."""
    if same is None or same == {}:
        return None
    if same == "case":
        return "case"
    both = isinstance(same, list | tuple) and len(same) == 2 and same[0] == "case"
    listed = same[1] if both else same
    if not isinstance(listed, Mapping) or not all(
        isinstance(text, str) and text.strip() for pair in listed.items() for text in pair
    ):
        raise validators.column_error(
            name,
            "same is not a rule of spelling.",
            'Write same = "case", each spelling with its category, same = {"Bale" = "Basel"}, or both:'
            ' same = ["case", {"Bale" = "Basel"}].',
        )
    rule = {text.strip(): category.strip() for text, category in listed.items()}
    made: Same = ("case", rule) if both and rule else "case" if both else rule
    short = comparable(made)
    categories = set(map(short, rule.values()))
    twice = [
        t for t, c in rule.items() if short(t) in categories and (not both or short(t) != short(c))
    ]
    if twice:
        raise validators.column_error(
            name,
            f"same makes {twice[0]!r} another category, and another text {twice[0]!r}.",
            "Give every spelling its last category.",
        )
    if len({(short(t), short(c)) for t, c in rule.items()}) > len({short(t) for t in rule}):
        raise validators.column_error(
            name,
            "same gives two categories to spellings that differ in case or blanks alone.",
            "Keep one of them.",
        )
    return made


def speller(same: Same) -> Callable[[str], str]:
    """Return the function that gives a text's category by the rule, without blanks around it.

    >>> speller({"M": "male"})(" M "), speller("case")("New  York"), speller(None)(" M ")
    ('male', 'new york', 'M')
    >>> speller(("case", {"N.Y.": "New York"}))("n.y. ")
    'new york'
    """
    short = comparable(same)
    rule = {short(text): short(category) for text, category in spellings(same).items()}
    return lambda text: rule.get(short(text), short(text))


def spellings_of(same: Same, categories: Collection[str]) -> Same:
    """Return the rule without the spellings of other categories.

    >>> spellings_of(("case", {"M": "Male", "F": "Female"}), ["male"])
    ('case', {'M': 'Male'})
    """
    short = comparable(same)
    known = set(map(short, categories))
    rule = {
        text: category for text, category in spellings(same).items() if short(category) in known
    }
    if folds(same):
        return ("case", rule) if rule else "case"
    return rule or None
