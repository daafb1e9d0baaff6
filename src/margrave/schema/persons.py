"""Identifiers of persons: one form for each, and texts that stand for nobody."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.parsing import MARKS, ODD

#: Texts that files and programs write where a person is not known, in lower case.
PLACEHOLDERS = MARKS | {
    "none", "nil", "unknown", "unk", "missing", "undefined", "blank", "empty", "void", "tbd",
    "#n/a", "#na", "n.a.", "n.a", "(null)", "<null>", "\\n", "#null!", "#value!", "#ref!", "#name?", "#num!", "#div/0!",
    "not available", "not known", "not applicable", "not recorded", "no id", "anonymous", "anon",
    "unbekannt", "keine angabe", "k.a.", "k. a.", "inconnu", "desconocido", "sconosciuto", "onbekend",
}  # fmt: skip


def normalized(written: str) -> str:
    """Return an identifier in its one form: composed characters, no invisible ones, no blanks around it.

    >>> normalized(" P\\u200b1 "), normalized("Jose\\u0301") == normalized("Jos\\u00e9"), normalized("P1\\x00\\ufe0f")
    ('P1', True, 'P1')
    """
    if written.isascii() and written.isprintable():
        return written.strip()
    blanks = "\t\n\x0b\x0c\r\x85"  # control characters that are seen
    visible = "".join(c for c in written if c in blanks or not _is_invisible(c))
    return unicodedata.normalize("NFC", visible).strip()


def _is_invisible(character: str) -> bool:
    # letters and marks that Unicode lists as ignorable by default, beside control and format characters
    ignorable = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0000" <= character <= "\U000e0fff"
    return unicodedata.category(character) in ("Cc", "Cf") or character in ignorable or selector


def is_placeholder(name: str) -> bool:
    """Return whether an identifier stands for a person who is not known.

    >>> [n for n in ("unknown", "#N/A", "-", "0", "-1", "999", "P0", "Noone") if is_placeholder(n)]
    ['unknown', '#N/A', '-', '0', '-1']
    """
    # Zero and negative numbers, and texts without a letter or digit. Runs of nines are numbers
    # that registers reach.
    numbers_of_nobody = re.compile(r"[-+]?0+([.,]0*)?|-\d+([.,]\d*)?|[\W_]+")
    return name.lower() in PLACEHOLDERS or numbers_of_nobody.fullmatch(name) is not None


def person_name(written: str | None, accepted: Collection[str] = ()) -> str | None:
    """Return the identifier of a person; None if it names nobody. ``accepted`` placeholders are identifiers."""
    # A long whole number that became a float: several numbers became one. "4E17" is a code.
    rounded = re.compile(r"\d{16,}\.0|\d(\.\d+)?[eE]\+\d+")
    if written is None or written == ODD:
        return None
    name = normalized(written)
    if not name or rounded.fullmatch(name) or (name not in accepted and is_placeholder(name)):
        return None
    return name


def check_accepted(identifiers: Any, person: str | None) -> tuple[str, ...]:
    """Return the placeholders that a schema accepts as identifiers; ``SchemaError`` for anything else.

    An identifier that is accepted anyway is refused: a schema is published.
    """
    if (
        isinstance(identifiers, str)
        or not isinstance(identifiers, Sequence)
        or not all(isinstance(v, str) for v in identifiers)
    ):
        raise SchemaError(
            "person_accepts is not a list of texts.", remedy='Write person_accepts = ["0"].'
        )
    if identifiers and person is None:
        raise SchemaError(
            "person_accepts is identifiers, and the schema names no column of persons.",
            remedy='Write person = "..." beside it, or leave person_accepts out.',
        )
    names = tuple(map(normalized, identifiers))
    for position, name in enumerate(names, 1):
        if not is_placeholder(name):
            raise SchemaError(
                f"Text {position} of person_accepts is not taken for a placeholder.",
                remedy="List only texts that name nobody otherwise, such as 0 or unknown: the schema is published.",
            )
    return names
