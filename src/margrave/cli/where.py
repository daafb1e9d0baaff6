"""Parse the conditions of ``--where``."""

from __future__ import annotations

from collections.abc import Iterable

from margrave.errors import InputError
from margrave.release.conditions import Condition, Value

#: Characters of one condition: a thousand values of sixty characters.
MAX_CHARACTERS = 60_000
#: Values that a condition lists.
MAX_VALUES = 1_000


def conditions(texts: Iterable[str]) -> dict[str, Condition]:
    """Return the columns that conditions name, each with what it is held to.

    Raises:
        InputError: A text is not a condition, or two name one column.

    >>> conditions(["age=30..40", "sex=F|M"]), conditions(["pay=1000.."])
    ({'age': ('30', '40'), 'sex': ['F', 'M']}, {'pay': ('1000', None)})
    """
    held: dict[str, Condition] = {}
    for text in texts:
        column, wanted = parse_where(text)
        if column in held:
            raise InputError(
                f"--where names column {column[:60]!r} twice.",
                remedy=f"Give it once: {column[:60]}=LOW..HIGH for a range, {column[:60]}=A|B for several values.",
            )
        held[column] = wanted
    return held


def parse_where(text: str) -> tuple[str, Condition]:
    """Return a column and what it is held to: a value, a list of values, or a range whose open end is None.

    >>> parse_where("age=30..40"), parse_where("age=..30")
    (('age', ('30', '40')), ('age', (None, '30')))
    """
    forms = (
        "Write COLUMN=VALUE, COLUMN=A|B, or a range: COLUMN=LOW..HIGH, COLUMN=LOW.., COLUMN=..HIGH."
    )
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"--where has {len(text):,} characters, and at most {MAX_CHARACTERS:,} are allowed.",
            remedy=forms,
        )
    column, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not column:
        raise InputError(f"--where {text[:60]!r} is not a condition.", remedy=forms)
    low, dots, high = (part.strip() for part in value.partition(".."))
    if dots:
        if not (low or high) or ".." in high or "|" in value:
            raise InputError(f"--where {text[:60]!r} is not a range.", remedy=forms)
        return column, (low or None, high or None)
    several: list[Value] = [*value.split("|")]
    if len(several) > MAX_VALUES:
        raise InputError(
            f"--where lists {len(several):,} values, and at most {MAX_VALUES:,} are allowed.",
            remedy=forms,
        )
    return column, several if len(several) > 1 else value
