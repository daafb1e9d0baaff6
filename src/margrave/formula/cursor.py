"""The cursor of the parser: the tokens of a formula, the current one, and errors at its place."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from margrave.errors import InputError
from margrave.formula.nodes import Node
from margrave.formula.r_spellings import remedy_of
from margrave.formula.tokens import (
    EXAMPLE,
    NAME,
    NUMBER,
    SIGN,
    Token,
    refusal,
    tokens_of,
)

#: Parentheses, calls and signs inside of one another.
MAX_DEPTH = 30

Rule = Callable[[], Node]


class Cursor:
    """The tokens of a formula and the current one."""

    def __init__(self, text: str) -> None:
        self._tokens, self._at, self._depth = tokens_of(text), 0, 0
        self._text = text

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _is(self, *texts: str) -> bool:
        kind = NAME if texts[0].isalpha() else SIGN
        return self._token.kind == kind and self._token.text in texts

    def _accept(self, *texts: str) -> str | None:
        if not self._is(*texts):
            return None
        self._at += 1
        return self._tokens[self._at - 1].text

    def _expect(self, text: str, expected: str = "") -> None:
        if self._accept(text) is None:
            raise self._wrong(expected or f"'{text}'")

    def _end(self) -> None:
        if self._at < len(self._tokens) - 1:
            raise self._wrong("an operator or the end")

    def _wrong(
        self, expected: str, token: Token | None = None, remedy: str = EXAMPLE
    ) -> InputError:
        token = self._token if token is None else token
        found = repr(token.text[:20]) if token.text else "the end"
        return refusal(token.place, expected, found, remedy_of(self._text, token.place) or remedy)

    @contextmanager
    def _deeper(self) -> Any:
        if self._depth >= MAX_DEPTH:
            raise self._wrong(
                f"an expression at most {MAX_DEPTH} deep", remedy="Take parentheses and signs out."
            )
        self._depth += 1
        yield
        self._depth -= 1

    def _number(self) -> float:
        sign = -1.0 if self._accept("-") else 1.0
        token = self._token
        if token.kind != NUMBER:
            raise self._wrong("a number")
        value = float(token.text)
        if not math.isfinite(value):
            raise self._wrong("a number below 1e308", remedy="Write a smaller one.")
        self._at += 1
        return sign * value

    def _numbers(self) -> tuple[float, ...]:
        start, closing = self._token, "]" if self._accept("[", "(") == "[" else ")"
        found = [self._number()]
        while self._accept(","):
            found.append(self._number())
        self._expect(closing)
        if any(a >= b for a, b in pairwise(found)):
            raise self._wrong("numbers in increasing order", start, "Sort them, each once.")
        return tuple(found)

    def _shallow(self, rule: Rule) -> Node:
        """Apply a rule; report running out of stack, which a deep caller does before ``MAX_DEPTH``."""
        try:
            return rule()
        except RecursionError:
            raise self._wrong(
                "an expression that is less deep", remedy="Take parentheses and signs out."
            ) from None
