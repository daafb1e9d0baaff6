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


def tell_of_draft(
    public: str,
    questions: Sequence[str],
    *,
    accepted: bool = False,
    on_custodian: Callable[[str], None] | None = None,
) -> None:
    """Give what a draft takes as public, and its questions, to a callback or else in one warning.

    Args:
        public: What the draft takes as public.
        questions: Its questions; without any, nothing is said on answers.
        accepted: Whether a fit took the draft as it is, so that the caller does not have it.
        on_custodian: The callback; None warns.
    """
    origin = "margrave.draft_schema(table) returns" if accepted else "draft_schema returned"
    next_step = " Give draft to a synthesizer as its schema, and leave out accept_draft." * accepted
    answers = (
        "print(draft.to_toml()) shows each question above its column, with the values that it is about; draft is what"
        f" {origin}. Answer them by draft.declare(...) and draft.drop(...), or in the file that"
        ' draft.save("FILE.toml") writes. Keys are arguments: draft.declare(Integer("COLUMN", low=0, high=110)) states'
        ' bounds, and draft.declare(missing_codes={"COLUMN": ["CODE"]}) a code for missing.'
        f"{next_step} A schema that answers them makes a better release."
    )
    if on_custodian is None:
        asked = [NOT_PRIVATE, *(f"- {q}" for q in questions), answers] if questions else []
        warn("\n".join([public, *asked]))
        return
    for sentence in (public, *questions):
        on_custodian(sentence)
    if questions:
        on_custodian(answers)


def warn(text: str) -> None:
    """Warn of a text, at the line of the caller's code that led to it."""
    package, level, frame = str(Path(__file__).parent), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, CustodianWarning, stacklevel=level)
