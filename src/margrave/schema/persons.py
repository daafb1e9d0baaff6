"""Identifiers of persons: one form for each, and texts that stand for nobody."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.values import MARKS, ODD

#: Texts that files and programs write where a person is not known, in lower case.
PLACEHOLDERS = MARKS | {
    "none", "nil", "unknown", "unk", "missing", "undefined", "blank", "empty", "void", "tbd",
    "#n/a", "#na", "n.a.", "n.a", "(null)", "<null>", "\\n", "#null!", "#value!", "#ref!", "#name?", "#num!", "#div/0!",
    "not available", "not known", "not applicable", "not recorded", "no id", "anonymous", "anon",
    "unbekannt", "keine angabe", "k.a.", "k. a.", "inconnu", "desconocido", "sconosciuto", "onbekend",
}  # fmt: skip
#: Zero and negative numbers, and texts without a letter or digit. Runs of nines are numbers that registers reach.
NUMBERS_OF_NOBODY = re.compile(r"[-+]?0+([.,]0*)?|-\d+([.,]\d*)?|[\W_]+")
#: A long whole number that became a float: several numbers became one. "4E17" is a code.
ROUNDED = re.compile(r"\d{16,}\.0|\d(\.\d+)?[eE]\+\d+")


def normalized(written: str) -> str:
    """Return an identifier in its one form: composed characters, no invisible ones, no blanks around it.

    >>> normalized(" P\\u200b1 "), normalized("Jose\\u0301") == normalized("Jos\\u00e9")
    ('P1', True)
    """
    if written.isascii():
        return written.strip()
    visible = "".join(c for c in written if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", visible).strip()


def is_placeholder(name: str) -> bool:
    """Return whether an identifier stands for a person who is not known.

    >>> [n for n in ("unknown", "#N/A", "-", "0", "-1", "999", "P0", "Noone") if is_placeholder(n)]
    ['unknown', '#N/A', '-', '0', '-1']
    """
    return name.lower() in PLACEHOLDERS or NUMBERS_OF_NOBODY.fullmatch(name) is not None


def person_name(written: str | None, accepted: Collection[str] = ()) -> str | None:
    """Return the identifier of a person; None if it names nobody. ``accepted`` placeholders are identifiers."""
    if written is None or written == ODD:
        return None
    name = normalized(written)
    if not name or ROUNDED.fullmatch(name) or (name not in accepted and is_placeholder(name)):
        return None
    return name


def check_accepted(given: Any, person: str | None) -> tuple[str, ...]:
    """Return the placeholders that a schema accepts as identifiers; ``SchemaError`` for anything else.

    An identifier that is accepted anyway is refused: a schema is published.
    """
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(v, str) for v in given):
        raise SchemaError("person_accepts is not a list of texts.", remedy='Write person_accepts = ["0"].')
    if given and person is None:
        raise SchemaError(
            "person_accepts is given, and the schema names no column of persons.",
            remedy='Write person = "..." beside it, or leave person_accepts out.',
        )
    names = tuple(map(normalized, given))
    for position, name in enumerate(names, 1):
        if not is_placeholder(name):
            raise SchemaError(
                f"Text {position} of person_accepts is not taken for a placeholder.",
                remedy="List only texts that name nobody otherwise, such as 0 or unknown: the schema is published.",
            )
    return names
