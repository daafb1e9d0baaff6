"""The error sanitizer: of an exception raised near rows only its kind and the line of code leave.

A traceback holds frames, and frames hold rows: tools that show the locals of a traceback would show them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

from margrave._other_names import in_our_words
from margrave.errors import DataError, InputError, MargraveError, did_you_mean

P = ParamSpec("P")
T = TypeVar("T")


class InternalError(Exception):
    """A fault of margrave near rows. Its text is the type and the line of code of the exception that it replaces."""


class Failure(NamedTuple):
    """The publishable part of an exception raised near rows: its kind, and margrave's own words."""

    kind: type[BaseException]
    words: str


def run_sanitized(work: Callable[[], T]) -> T | Failure:
    """Run work that sees rows or counts. An exception ends here, with the frames that its traceback holds."""
    try:
        return work()
    except BaseException as error:
        return failure_of(error)


def failure_of(error: BaseException) -> Failure:
    """Return what may be known of an exception: margrave's own text, and of any other only its type and line."""
    if isinstance(error, MargraveError):
        return Failure(
            type(error), str(error)
        )  # by its contract the message holds nothing read from rows
    return Failure(type(error), f"{type(error).__name__}{_where(error)}")


def _where(error: BaseException) -> str:
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return (
        ""
        if step is None
        else f" in {os.path.basename(step.tb_frame.f_code.co_filename)}, line {step.tb_lineno}"
    )


def raise_sanitized(
    failure: Failure, kind: type[MargraveError], what: str, remedy: str
) -> NoReturn:
    """Raise a new error of that kind; an interrupt stays one."""
    if issubclass(failure.kind, KeyboardInterrupt | SystemExit):
        raise failure.kind
    raise kind(f"{what} ({failure.words}).", remedy=remedy)


def hide_rows(read: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that reads rows: no frame and no argument of it can be reached from what it raises.

    ``MARGRAVE_TRACEBACK=1`` lets exceptions through as they are.
    """

    @wraps(read)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if os.environ.get("MARGRAVE_TRACEBACK") == "1":
            return read(*args, **kwargs)
        try:
            return read(*args, **kwargs)
        except BaseException as error:
            failure = _wrong_call(read, args, kwargs, error) or _without_frames(error)
        del args, kwargs  # this function's own frame is in the traceback
        raise failure

    return call


def _without_frames(error: BaseException) -> BaseException:
    if isinstance(error, MargraveError | InternalError | Warning):
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)
    if isinstance(error, MemoryError):
        return DataError(
            "The table needs more memory than there is.", remedy="Give the machine more memory."
        )
    if not isinstance(error, Exception):  # an interrupt stays one
        return type(error)()
    return InternalError(f"margrave failed while it read the table ({failure_of(error).words}).")


def _wrong_call(
    called: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: BaseException
) -> InputError | None:
    """Return the error of a call whose arguments are not those of the function; None for another exception.

    Its words hold names of arguments alone.
    """
    step = error.__traceback__
    if not isinstance(error, TypeError) or step is None or step.tb_next is not None:
        return None  # raised within the function
    verb, parameters = called.__name__, signature(called).parameters
    names = [n for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    placed = [n for n in names if parameters[n].kind is not Parameter.KEYWORD_ONLY]
    needed = [n for n in names if parameters[n].default is Parameter.empty and n != "self"]
    lacking = [n for n in needed if n not in kwargs and n not in placed[: len(args)]]
    written = {"attributes": '["age", "sex"]', "values": '{"sex": "F", "age": (30, 40)}'}
    form = ", ".join(written.get(n, n) if n in placed else f"{n}=..." for n in needed)
    known = ", ".join(n for n in names if n != "self")
    give = f"Give {verb}({form})." if form or not known else f"Its arguments are: {known}."
    if all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        for name in (n for n in kwargs if n not in names):
            hint = _other_name(name, names) or give
            return InputError(f"{verb}() has no argument {name!r}.", remedy=hint)
    if len(args) > len(placed):
        first = ", ".join(n for n in placed if n != "self")
        only = f"only {first}" if first else "no argument"
        return InputError(f"{verb}() takes {only} without a name.", remedy=give)
    if lacking:
        meanings = {"real": "real, the table of the real rows"}
        what = ", ".join(meanings.get(n, n) for n in lacking)
        return InputError(f"{verb}() needs {what}.", remedy=give)
    return InputError(f"An argument of {verb}() is given twice.", remedy=give)


def _other_name(name: str, names: Sequence[str]) -> str:
    """Return a question that proposes the argument meant by a name of other libraries, or a misspelt one."""
    ours = in_our_words("argument", name)
    if name == "by":
        return (
            'Groups are By(Mean("stay"), "ward") in analyze, and plot("stay", "ward") in a chart.'
        )
    if "where" in (name, ours) and not {"where", "values"} & {*names}:
        return 'Give it to an analysis: analyze(release, Mean("stay", where={"ward": "b"})).'
    if name == "model" and "mechanism" in names:
        return "Did you mean 'mechanism'?"
    if name == "workload" and "mechanism" in names:
        return "Did you mean mechanism=AIM(workload=...)?"
    return did_you_mean(ours if ours in names else name, names).strip()


class _Call:
    """The arguments of a call, which do not show where a traceback shows the locals of its frames."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs


def short_errors(verb: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function for users: margrave's own errors leave it without the frames below it.

    ``MARGRAVE_TRACEBACK=1`` lets all frames through.
    """

    @wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        given = _Call(args, kwargs)
        del args, kwargs
        try:
            return verb(*given.args, **given.kwargs)
        except MargraveError as error:
            if os.environ.get("MARGRAVE_TRACEBACK") == "1":
                raise
            if isinstance(error.__cause__, MargraveError):  # which says the same
                error.__cause__ = None
            error.__suppress_context__ = True
            failure = error.with_traceback(None)
        except TypeError as error:
            wrong = _wrong_call(verb, given.args, given.kwargs, error)
            if wrong is None:
                raise
            failure = wrong
        raise failure

    return call


class HiddenFrame:
    """A data frame that does not show its rows where a traceback shows the locals of its frames."""

    __slots__ = ("frame",)

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __repr__(self) -> str:
        return f"<a {type(self.frame).__name__}>"


def hide_table(table: Any) -> Any:
    """Return a path, or what does not show its rows, as it is, and a data frame hidden."""
    return table if isinstance(table, str | os.PathLike | HiddenFrame) else HiddenFrame(table)


def reveal_table(table: Any) -> Any:
    """Return the data frame that was hidden; anything else as it is."""
    return table.frame if isinstance(table, HiddenFrame) else table
