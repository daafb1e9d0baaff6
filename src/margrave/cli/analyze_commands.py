"""Analyses of the command line: built from the options of their commands, run together, and printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from shlex import quote
from typing import Any, cast

from margrave.cli.output import console, escape
from margrave.cli.where import conditions
from margrave.errors import InputError
from margrave.formula import spelled
from margrave.inference import (
    OLS,
    Analysis,
    By,
    Correlation,
    Count,
    Estimand,
    Estimate,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    Total,
    WaldTest,
    analyze_several,
)
from margrave.inference.datasets import Source
from margrave.inference.estimate import Caveat
from margrave.inference.names import check_names
from margrave.inference.printed import footnotes, lines_of
from margrave.progress import reporting
from margrave.release import Release
from margrave.release.numbers import two_groups
from margrave.schema import Schema


@dataclass(frozen=True)
class AnalysisRequest:
    """An analysis to run, names to test together, and pairs to subtract.

    Attributes:
        fit: The estimand.
        tests: Estimates or terms whose joint hypothesis of 0 is tested.
        contrasts: Pairs of estimates, the first less the second.
        title: The words that asked for it.
    """

    fit: Estimand
    tests: tuple[str, ...] = ()
    contrasts: tuple[tuple[str, str], ...] = ()
    title: str = ""


@dataclass(frozen=True)
class AnalysisAnswer:
    """An analysis with its test and contrasts.

    Attributes:
        request: The words that asked for it.
        found: The estimates.
        test: The test of its names; None if there are none, or it is not possible.
        contrasts: The differences of its pairs.
        fault: The error of a test or contrast that is not possible. The estimates are shown all the same.
    """

    request: AnalysisRequest
    found: Analysis
    test: WaldTest | None
    contrasts: tuple[Estimate, ...]
    fault: InputError | None = None

    @staticmethod
    def of(request: AnalysisRequest, found: Analysis) -> AnalysisAnswer:
        """Return an analysis with the test and contrasts of its request."""
        try:
            test = found.test(request.tests) if request.tests else None
            contrasts = tuple(found.contrast({a: 1, b: -1}) for a, b in request.contrasts)
        except InputError as error:
            return AnalysisAnswer(request, found, None, (), error)
        return AnalysisAnswer(request, found, test, contrasts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with test and contrasts if there are any."""
        plain = self.found.to_dict()
        if self.test is not None:
            plain["test"] = self.test.to_dict()
        if self.contrasts:
            plain["contrasts"] = [e.to_dict(self.found.level) for e in self.contrasts]
        return plain


def _by(model: Any, column: str | None) -> Estimand:
    return model if column is None else By(model, column)


def _value(name: str, column: str, value: str | None, missing: bool) -> str | None:
    if (value is None) != missing:
        raise InputError(
            "Give either a VALUE or --missing.",
            remedy=f"Write: margrave analyze {name} RELEASE {column} VALUE, or --missing in place of VALUE.",
        )
    return value


#: Estimands, from the options of each command.
ESTIMANDS: Mapping[str, Callable[..., Any]] = {
    "mean": lambda column, by: _by(Mean(column), by),
    "proportion": lambda column, value, missing, by: _by(
        Proportion(column, _value("proportion", column, value, missing)), by
    ),
    "quantile": lambda column, p, by: _by(Quantile(column, p), by),
    "total": lambda column, by: _by(Total(column), by),
    "count": lambda column, value, missing, by: _by(
        Count(column, _value("count", column, value, missing)), by
    ),
    "correlation": Correlation,
    "ols": OLS,
    "logistic": Logistic,
}

SHARED = (
    "release_path", "m", "level", "rows", "seed", "method", "no_bias_correct", "drop_unstable", "as_json", "plot",
    "overwrite", "max_release_mb",
)  # fmt: skip


def request_of(
    name: str, own: Mapping[str, Any], title: str = "", where: Sequence[str] = ()
) -> AnalysisRequest:
    """Return the analysis of a command with its options; its own conditions override ``where``."""
    for a, b in own.get("contrasts", ()):
        if spelled(a) == spelled(b):
            raise InputError(
                f"--contrast subtracts {a!r} from itself, which is 0.",
                remedy="Name two different estimates.",
            )
    # Options of single commands that are not parameters of an estimand.
    besides = ("tests", "contrasts", "where")
    fit: Any = ESTIMANDS[name](**{k: v for k, v in own.items() if k not in besides})
    combined = conditions(where) | conditions(own.get("where", ()))
    if combined:
        fit = (
            replace(fit, model=replace(fit.model, where=combined))
            if isinstance(fit, By)
            else replace(fit, where=combined)
        )
    return AnalysisRequest(fit, tuple(own.get("tests", ())), tuple(own.get("contrasts", ())), title)


def answers(
    release_path: str,
    requests: Sequence[AnalysisRequest],
    *,
    quiet: bool,
    no_bias_correct: bool,
    drop_unstable: bool,
    max_release_mb: float,
    **options: Any,
) -> list[AnalysisAnswer]:
    """Return all analyses, of data sets that are drawn once.

    Raises:
        InputError: A test or contrast names something that is not an estimate. No data set is drawn.
    """
    release = cast(Source, Release.load(release_path, max_mb=max_release_mb))
    for r in requests:
        _check_columns(release.schema, r.fit)
        check_names(release.schema, r.fit, r.tests, [*chain.from_iterable(r.contrasts)])
    with reporting(not quiet) as progress:
        found = analyze_several(
            release,
            [r.fit for r in requests],
            bias_correct=not no_bias_correct,
            on_unstable="drop" if drop_unstable else "report",
            progress=progress,
            **options,
        )
    return [AnalysisAnswer.of(r, f) for r, f in zip(requests, found, strict=True)]


def _check_columns(schema: Schema, fit: Any) -> None:
    """Raise ``InputError`` for several columns of groups, and for a category in place of a column."""
    quantity, by = (fit.model, fit.column) if isinstance(fit, By) else (fit, None)
    names = [getattr(quantity, name, None) for name in ("column", "x", "y")]
    for name in [n for n in (*names, by) if isinstance(n, str) and n not in schema.domain]:
        groups = [part.strip() for part in name.split(",")]
        if name == by and len(groups) > 1 and all(g in schema.domain for g in groups):
            raise InputError(
                f"--by names {len(groups)} columns, and takes one.",
                remedy=f"Give one column. For groups of two columns, analyze one value of {groups[1]!r} at a time:"
                f" {two_groups(groups, schema)}.",
            )
        lists = (c for c in schema.columns if name in getattr(c, "categories", ()))
        if (found := next(lists, None)) is not None:
            raise InputError(
                f"There is no column {name!r}: it is a value of {found.name!r}.",
                remedy=f"For its share write: margrave analyze proportion RELEASE {found.name} {quote(name)}. For an"
                f" analysis of these records alone, name a column and add --where {quote(f'{found.name}={name}')}.",
            )


def first_fault(answered: Sequence[AnalysisAnswer]) -> InputError | None:
    """Return the first error of a test or contrast, or None."""
    return next((answer.fault for answer in answered if answer.fault is not None), None)


def show(answer: AnalysisAnswer) -> None:
    """Print one analysis: estimates, contrasts, the test and the notes."""
    show_data_sets(answer)
    show_numbers(answer)
    _show_footnotes([answer])
    for caveat in answer.found.caveats:
        _show_note(str(caveat), decisive=caveat.decisive)


def show_several(answered: Sequence[AnalysisAnswer]) -> None:
    """Print analyses of the same data sets, each with its own notes, and notes of several of them once, below all."""
    titles: dict[str, list[str]] = {}
    for a in answered:
        for text in dict.fromkeys(t for c in a.found.caveats for t in _general(c)):
            titles.setdefault(text, []).append(a.request.title)
    shared = {text: own for text, own in titles.items() if len(own) > 1}
    out = console()
    show_data_sets(answered[0])
    for a in answered:
        out.print(f"\n[bold]{escape(a.request.title)}[/]")
        show_numbers(a)
        for caveat in a.found.caveats:
            rest = replace(caveat, general="") if caveat.general in shared else caveat
            if caveat.decisive or str(rest) not in shared:
                _show_note(str(rest), decisive=caveat.decisive)
    out.print("\n[bold]Notes on all analyses[/]")
    _show_footnotes(answered)
    for text in (t for t, own in shared.items() if len(own) == len(answered)):
        _show_note(text)
    for text, own in ((t, own) for t, own in shared.items() if len(own) < len(answered)):
        _show_note(text, f" on {'; '.join(own)}")


def _general(caveat: Caveat) -> list[str]:
    """Return the sentences of a caveat that notes of other analyses may repeat: decisive ones stay with their table."""
    own = [] if caveat.decisive else [str(replace(caveat, general=""))]
    return [*own, *filter(None, [caveat.general])]


def show_data_sets(answer: AnalysisAnswer) -> None:
    """Print what the numbers were made from."""
    out = console()
    out.print(escape(answer.found.words()))
    out.print(f"[dim]Data sets: {escape(answer.found.method)}.[/]")


def show_numbers(answer: AnalysisAnswer) -> None:
    """Print estimates, contrasts and the test."""
    found, out = answer.found, console()
    for line in lines_of([*found, *answer.contrasts], found.level, out.width):
        out.print(escape(line), soft_wrap=True)  # no number and no name is cut
    if answer.test is not None:
        out.print(escape(f"Test of {', '.join(answer.test.names)}: {answer.test}"))


def _show_footnotes(answered: Sequence[AnalysisAnswer]) -> None:
    shown = [e for a in answered for e in (*a.found, *a.contrasts)]
    for line in footnotes(shown, answered[0].found.level):
        console().print(f"[dim]{escape(line)}[/]")


def _show_note(text: str, about: str = "", *, decisive: bool = False) -> None:
    console().print(f"[{'bold' if decisive else 'dim'}]Note{escape(about)}: {escape(text)}[/]")
