"""Tokens of a formula."""

from __future__ import annotations

import re
from dataclasses import dataclass

from margrave.errors import InputError
from margrave.formula.r_spellings import remedy_of

#: Characters of a formula.
MAX_CHARACTERS = 1_000

EXAMPLE = 'Write one such as "income ~ age + C(sex)".'

NUMBER, NAME, TEXT, QUOTED, SIGN, END = "number", "name", "text", "quoted column", "sign", "end"


@dataclass(frozen=True)
class Token:
    """A token, with its value and the place of its first character, counted from 0."""

    kind: str
    text: str
    place: int


def tokens_of(formula: object) -> list[Token]:
    """Return the tokens of a formula, an end among them.

    Raises:
        InputError: The formula is not a text, is too long or holds a character that formulas do not have.
    """
    if not isinstance(formula, str):
        raise InputError(
            f"A formula is a text, and {type(formula).__name__} was given.", remedy=EXAMPLE
        )
    if len(formula) > MAX_CHARACTERS:
        raise InputError(
            f"The formula has {len(formula):,} characters, and at most {MAX_CHARACTERS:,} are allowed.",
            remedy="Write a shorter one.",
        )
    found, place = [], 0
    while place < len(formula):
        if formula[place] in " \t\r\n":
            place += 1
            continue
        token, place = _next(formula, place)
        found.append(token)
    return [*found, Token(END, "", len(formula))]


def _next(formula: str, place: int) -> tuple[Token, int]:
    number = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])")
    name = re.compile(r"[^\W\d]\w*")
    sign = re.compile(r"\*\*|==|!=|<=|>=|[-+*/:~&|<>=()\[\],.]")
    literal = re.compile(r"'(?:[^'\\]|\\['\"\\])*'|\"(?:[^\"\\]|\\['\"\\])*\"")
    quoted = re.compile(r"`[^`]+`")
    escaped = re.compile(r"\\(.)")
    for kind, pattern in (
        (NUMBER, number),
        (NAME, name),
        (TEXT, literal),
        (QUOTED, quoted),
        (SIGN, sign),
    ):
        match = pattern.match(formula, place)
        if match is not None:
            text = match[0]
            if kind in (TEXT, QUOTED):
                text = escaped.sub(r"\1", text[1:-1]) if kind == TEXT else text[1:-1]
                if not text.isprintable():
                    break
            return Token(kind, text, place), match.end()
    raise refusal(
        place, "a column, a number or an operator", _found(formula, place), _remedy(formula, place)
    )


def _found(formula: str, place: int) -> str:
    return repr(formula[place : place + 12])


def _remedy(formula: str, place: int) -> str:
    if remedy := remedy_of(formula, place):
        return remedy
    if formula[place] in "'\"`":
        return "Close its quotes, and put printable characters alone between them."
    return "Remove it, or put a column's name into Q('...')."


def refusal(place: int, expected: str, found: str, remedy: str = EXAMPLE) -> InputError:
    """Return the error of a formula that cannot be read at a place."""
    return InputError(
        f"The formula cannot be read at character {place + 1}: {expected} was expected, and {found} was found.",
        remedy=remedy,
    )
