"""Sentences for the custodian alone: lines of the command line, and warnings in Python."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from margrave.errors import CustodianWarning

#: Beginning of a text that depends on the rows.
NOT_PRIVATE = "NOT PRIVATE, for the custodian alone:"


def tell(sentence: str, callback: Callable[[str], None] | None) -> None:
    """Give a sentence to a callback. If the callback fails, its error is dropped: a release must not be lost to it."""
    with suppress(Exception):
        if callback is not None:
            callback(sentence)


def warn_custodian(sentence: str) -> None:
    """Warn of a fact about the rows, at the line of the caller's code that led to it."""
    warn(f"{NOT_PRIVATE} {sentence}")


def warn_of_draft(public: str, questions: Sequence[str]) -> None:
    """Warn once of a draft: what it takes as public, its questions, and how to answer them in Python."""
    if not questions:
        warn(public)
        return
    answers = (
        "print(draft.to_toml()) shows each question above its column, with the values that it is about; draft is what"
        " draft_schema returned. Answer them by draft.declare(...) and draft.drop(...), or in the file that"
        ' draft.save("FILE.toml") writes. Keys are arguments: draft.declare(Integer("COLUMN", low=0, high=110)) states'
        ' bounds, and draft.declare(missing_codes={"COLUMN": ["CODE"]}) a code for missing.'
        " A schema that answers them makes a better release."
    )
    warn("\n".join([public, NOT_PRIVATE, *(f"- {q}" for q in questions), answers]))


def warn(text: str) -> None:
    """Warn of a text, at the line of the caller's code that led to it."""
    package, level, frame = str(Path(__file__).parent), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, CustodianWarning, stacklevel=level)
