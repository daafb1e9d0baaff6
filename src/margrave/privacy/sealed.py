"""What is raised near rows ends here: only the kind of a failure and the line of code leave."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from margrave.errors import MargraveError

T = TypeVar("T")


class Failure(NamedTuple):
    """What may be known of an exception raised near rows: its kind, and margrave's own words."""

    kind: type[BaseException]
    words: str


def sealed(work: Callable[[], T]) -> T | Failure:
    """Run work that sees rows or counts. An exception ends here, with the frames that its traceback holds."""
    try:
        return work()
    except BaseException as error:
        return failure_of(error)


def failure_of(error: BaseException) -> Failure:
    """Return what may be known of an exception: margrave's own text, and of any other only its type and line."""
    if isinstance(error, MargraveError):
        return Failure(type(error), str(error))  # by its contract the message holds nothing read from rows
    return Failure(type(error), f"{type(error).__name__}{_where(error)}")


def _where(error: BaseException) -> str:
    """The line of code that failed: a name and a number, which hold nothing of the rows."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return (
        ""
        if step is None
        else f" in {os.path.basename(step.tb_frame.f_code.co_filename)}, line {step.tb_lineno}"
    )


def fail(failure: Failure, kind: type[MargraveError], what: str, remedy: str) -> NoReturn:
    """Raise a new error of that kind; an interrupt stays one."""
    if issubclass(failure.kind, KeyboardInterrupt | SystemExit):
        raise failure.kind
    raise kind(f"{what} ({failure.words}).", remedy=remedy)
