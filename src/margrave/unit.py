"""The unit of privacy: the difference between two neighboring tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from margrave.errors import InputError, did_you_mean

NAMES = ("add-remove-row", "replace-row", "add-remove-person:K", "replace-person:K")


@dataclass(frozen=True)
class AddRemoveRow:
    """Neighbors differ by one row more or less. The number of rows is private."""

    def __str__(self) -> str:
        return "add or remove one row"


@dataclass(frozen=True)
class ReplaceRow:
    """Neighbors differ in the values of one row. The number of rows is public."""

    def __str__(self) -> str:
        return "replace one row"


@dataclass(frozen=True)
class AddRemovePerson:
    """Neighbors differ by one person, with at most ``max_rows`` rows, more or less."""

    max_rows: int

    def __post_init__(self) -> None:
        _check_max_rows(self.max_rows)

    def __str__(self) -> str:
        return f"add or remove one person of at most {_rows(self.max_rows)}"


@dataclass(frozen=True)
class ReplacePerson:
    """Neighbors differ in the rows of one person, who has at most ``max_rows`` in either.

    The number of persons is public, the number of rows is not.
    """

    max_rows: int

    def __post_init__(self) -> None:
        _check_max_rows(self.max_rows)

    def __str__(self) -> str:
        return f"replace one person of at most {_rows(self.max_rows)}"


Unit = AddRemoveRow | ReplaceRow | AddRemovePerson | ReplacePerson


def size_is_public(unit: Unit) -> bool:
    """Return True if neighbors always have the same number of rows, so that it can be published."""
    return isinstance(unit, ReplaceRow)


def replaces_rows(unit: Unit) -> bool:
    """Return whether rows, or persons, take each other's place between neighbors."""
    return isinstance(unit, ReplaceRow | ReplacePerson)


def rows_per_person(unit: Unit) -> int | None:
    """Return the most rows of one person that stay in the table; None if the unit is a row."""
    return unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else None


def parse_unit(text: str) -> Unit:
    """Return the unit with this name.

    Args:
        text: "add-remove-row", "replace-row", or "add-remove-person:K" or "replace-person:K", where
            K is a whole number from 1 to 1,000,000: the most rows of one person.

    Raises:
        InputError: The text is not the name of a unit.

    Example:
        >>> parse_unit("add-remove-person:5")
        AddRemovePerson(max_rows=5)
    """
    name, colon, rows = text.strip().lower().partition(":")
    if not colon and name == "add-remove-row":
        return AddRemoveRow()
    if not colon and name == "replace-row":
        return ReplaceRow()
    if name in ("add-remove-person", "replace-person") and re.fullmatch(r"[0-9]{1,18}", rows):
        return (
            AddRemovePerson(int(rows)) if name == "add-remove-person" else ReplacePerson(int(rows))
        )
    raise InputError(
        f"{text[:60]!r} is not a unit of privacy.",
        remedy=f"{did_you_mean(name, NAMES)}Write one of: {', '.join(NAMES)}. {rows_words()}",
    )


def rows_words() -> str:
    """Return what K is in a unit of persons, and how to choose it."""
    return (
        "K is a whole number: the most rows of one person that count. Take it from public knowledge and not from the"
        " rows, since it is published: five, if a person has about one row a year for five years. Further rows of a"
        " person are left out at random."
    )


def unit_of(unit: Unit | str) -> Unit:
    """Return a unit, given as it is or by its name.

    Raises:
        InputError: It is neither; a subclass of a unit is not one.

    Example:
        >>> unit_of("replace-row"), unit_of(AddRemovePerson(5))
        (ReplaceRow(), AddRemovePerson(max_rows=5))
    """
    found = parse_unit(unit) if isinstance(unit, str) else unit
    if type(found) not in (AddRemoveRow, ReplaceRow, AddRemovePerson, ReplacePerson):
        raise unknown_unit(found)
    return found


def unit_name(unit: Unit) -> str:
    """Return the name of a unit: the text that ``parse_unit`` reads.

    Example:
        >>> unit_name(ReplacePerson(max_rows=5))
        'replace-person:5'
    """
    match unit:
        case AddRemoveRow():
            return "add-remove-row"
        case ReplaceRow():
            return "replace-row"
        case AddRemovePerson(max_rows=k):
            return f"add-remove-person:{k}"
        case ReplacePerson(max_rows=k):
            return f"replace-person:{k}"


def unknown_unit(unit: object) -> InputError:
    """Return the error for a value that is not a unit of privacy."""
    return InputError(
        f"The unit of privacy is {unit!r}.",
        remedy="It is AddRemoveRow(), ReplaceRow(), AddRemovePerson(K) or ReplacePerson(K), or its"
        f" name: {', '.join(NAMES)}.",
    )


def _check_max_rows(max_rows: int) -> None:
    # The largest number of rows of a person that a unit may have.
    max_rows_per_person = 1_000_000
    if type(max_rows) is not int or not 1 <= max_rows <= max_rows_per_person:
        raise InputError(
            f"K in add-remove-person:K or replace-person:K (in Python max_rows) is {max_rows!r}.",
            remedy="Give the most rows one person may contribute: a whole number from 1 to"
            f" {max_rows_per_person:,}.",
        )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
