"""Alarms about a table: likely mistakes, each of which its custodian answers once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from margrave.errors import SchemaError
from margrave.schema.toml_text import quoted, string


@dataclass(frozen=True)
class Alarm:
    """A likely mistake in a table or its schema. It depends on the rows: for the custodian alone.

    Args:
        key: Its name in the schema's list ``accepted``.
        words: What was seen, and what may be wrong.

    >>> print(Alarm("header", "Is this a header?"))
    Is this a header? If this is as it should be, add "header" to accepted in [schema] (in Python: Schema.accepted).
    """

    key: str
    words: str

    #: Names of alarms about the table.
    of_table: ClassVar[tuple[str, ...]] = ("header", "identifiers", "rows of one person")
    #: Names of alarms about a column, which stand before its name: "values: age".
    of_column: ClassVar[tuple[str, ...]] = ("values", "read", "person", "codes")

    def __str__(self) -> str:
        return f"{self.words} If this is as it should be, {how_to_accept([self.key])}."


def how_to_accept(keys: Sequence[str]) -> str:
    """Return the instruction that accepts alarms of these keys."""
    return (
        f"add {', '.join(map(string, keys))} to accepted in [schema] (in Python: Schema.accepted)"
    )


def check_accepted_alarms(accepted: Any, columns: Collection[str]) -> tuple[str, ...]:
    """Return the list of accepted alarms. Raise ``SchemaError`` for one that cannot be raised."""
    listed = isinstance(accepted, Sequence) and not isinstance(accepted, str)
    for key in accepted if listed else [None]:
        about, _, name = key.partition(": ") if isinstance(key, str) else ("", "", "")
        if key not in Alarm.of_table and not (about in Alarm.of_column and name in columns):
            raise SchemaError(
                "accepted is not a list of alarms."
                if not isinstance(key, str)
                else f"accepted lists {quoted(key)}, which is not an alarm.",
                remedy=f"Alarms are {', '.join(Alarm.of_table)}; and, with the name of a column,"
                f" {', '.join(f'{k}: NAME' for k in Alarm.of_column)}.",
            )
    return tuple(dict.fromkeys(accepted))
