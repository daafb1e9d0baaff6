"""Every error margrave raises on purpose. Each says what is wrong, where, and what to do about it.

No message holds a value read from the rows: messages are built from the schema, the arguments and noisy answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class MargraveError(Exception):
    """The root of margrave's errors: a sentence on what is wrong, and a remedy.

    ``exit_code`` is what the command line ends with.
    """

    exit_code = 1

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message if remedy is None else f"{message} {remedy}")
        self.message = message
        self.remedy = remedy


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a question that proposes the known name most like a misspelt one; "" if none is like it.

    >>> did_you_mean("Agee", ["age", "sex"]), did_you_mean("x", ["age"])
    ("Did you mean 'age'? ", '')
    """
    folded = {k.lower(): k for k in reversed([*known])}
    found = get_close_matches(str(name).strip().lower(), folded, 1, 0.6)
    return f"Did you mean {folded[found[0]]!r}? " if found else ""


class InputError(MargraveError, ValueError):
    """An argument or option is wrong: an unknown name, a budget outside its range, an output that exists."""

    exit_code = 2


def other_column(name: object, known: Sequence[str], ignored: Collection[str] = ()) -> str:
    """Return the remedy for a name that is not a column of a schema, which may ignore one of that name.

    >>> other_column("zip", ["age", "sex"], ["zip"]).partition(":")[0]
    "'zip' stands under ignore in the schema"
    """
    if name in ignored:
        return (
            f"{name!r} stands under ignore in the schema: to use it, take it out of ignore, declare it in a [[column]],"
            f" and synthesize with that schema. The columns are: {', '.join(known)}."
        )
    return f"{did_you_mean(name, known)}The columns are: {', '.join(known)}."


class SchemaError(MargraveError, ValueError):
    """The schema is missing, malformed, a draft, or does not fit what is asked of it."""

    exit_code = 3


class DataError(MargraveError, ValueError):
    """The table cannot be read, or its columns are not those of the schema."""

    exit_code = 4


class BudgetError(MargraveError):
    """The privacy budget does not cover what was asked. Nothing was answered and nothing was spent."""

    exit_code = 5


class ModelTooLargeError(MargraveError):
    """No model of this domain fits the size allowed."""

    exit_code = 6


class ReleaseError(MargraveError):
    """A release cannot be read, or cannot do what was asked of it."""

    exit_code = 7


class LedgerError(MargraveError):
    """A ledger file or a journal cannot be read or written, is damaged, is in use, or is of another run."""

    exit_code = 8


class PolicyError(MargraveError):
    """The policy file forbids what was asked. Nothing was answered and nothing was spent."""

    exit_code = 9


class PersonWarning(UserWarning):
    """Person IDs may name nobody, or several may name one person.

    The text holds true counts: do not publish it.
    """


class CustodianWarning(UserWarning):
    """Questions of a draft, and notes on a run, for the custodian alone.

    The text may depend on the rows: do not publish it.
    """


class BinWarning(UserWarning):
    """A condition cuts a bin, within which a release knows nothing and draws values evenly."""


class RefitWarning(UserWarning):
    """Another fit leaves some noisy answers out, or its model has no distribution to draw rows from."""


class UnfinishedError(MargraveError):
    """A run failed after it had spent budget. ``release`` has every noisy answer and what was spent, but no model."""

    exit_code = 10

    def __init__(self, message: str, *, release: Any, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.release = release


class UnlearnableError(MargraveError):
    """A column cannot be learned: its values do not show above the noise. Its share is spent.

    ``columns`` names all such columns.
    """

    exit_code = 11

    def __init__(
        self, message: str, *, columns: Sequence[str] = (), remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.columns = tuple(columns)
