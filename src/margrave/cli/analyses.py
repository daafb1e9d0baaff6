"""Analyses as the command line asks for them: made from the options of their commands, run together, and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from margrave.cli.estimates import show_estimates
from margrave.cli.output import console, escape, progress_bar
from margrave.cli.where import conditions
from margrave.errors import InputError
from margrave.inference import (
    OLS,
    Analysis,
    By,
    Correlation,
    Count,
    Estimate,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    Total,
    WaldTest,
    analyse_several,
)
from margrave.inference.estimate import MARK
from margrave.inference.groups import Grouped
from margrave.inference.sources import Source
from margrave.release import Release


@dataclass(frozen=True)
class Asked:
    """An analysis, and what is told besides: names to be tested together, and pairs, the first less the second."""

    fit: Mean | Proportion | Quantile | Total | Count | Correlation | OLS | Logistic | By
    tests: tuple[str, ...] = ()
    contrasts: tuple[tuple[str, str], ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Answered:
    """What came of it."""

    asked: Asked
    found: Analysis
    test: WaldTest | None
    contrasts: tuple[Estimate, ...]

    @staticmethod
    def of(asked: Asked, found: Analysis) -> Answered:
        """The tests and contrasts of an analysis."""
        test = found.test(asked.tests) if asked.tests else None
        return Answered(asked, found, test, tuple(found.contrast({a: 1, b: -1}) for a, b in asked.contrasts))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; tests and contrasts where they were asked for."""
        told = self.found.to_dict()
        if self.test is not None:
            told["test"] = self.test.to_dict()
        if self.contrasts:
            told["contrasts"] = [e.to_dict(self.found.level) for e in self.contrasts]
        return told


def _by(model: Grouped, column: str | None) -> Grouped | By:
    return model if column is None else By(model, column)


def _value(value: str | None, missing: bool) -> str | None:
    if (value is None) != missing:
        raise InputError("Give either a VALUE or --missing.", remedy="Such as: proportion visits.margrave smokes true.")
    return value


MADE: Mapping[str, Callable[..., Any]] = {
    "mean": lambda column, by: _by(Mean(column), by),
    "proportion": lambda column, value, missing, by: _by(Proportion(column, _value(value, missing)), by),
    "quantile": lambda column, p, by: _by(Quantile(column, p), by),
    "total": lambda column, by: _by(Total(column), by),
    "count": lambda column, value, missing, by: _by(Count(column, _value(value, missing)), by),
    "correlation": Correlation,
    "ols": OLS,
    "logistic": Logistic,
}
"""The fits, from the options of each command that are its own."""

SHARED = (
    "release_path", "m", "level", "rows", "seed", "method", "no_correct", "drop_unstable", "as_json", "plot",
    "overwrite", "max_release_mb",
)  # fmt: skip


BESIDES = ("tests", "contrasts", "where")
"""Options of single commands that are no parameters of a fit."""


def asked_of(name: str, own: Mapping[str, Any], title: str = "", where: Sequence[str] = ()) -> Asked:
    """The analysis of a command, by its own options. ``where`` holds for all analyses; its own goes before it."""
    fit = MADE[name](**{k: v for k, v in own.items() if k not in BESIDES})
    held = conditions(where) | conditions(own.get("where", ()))
    if held:
        fit = replace(fit, model=replace(fit.model, where=held)) if isinstance(fit, By) else replace(fit, where=held)
    return Asked(fit, tuple(own.get("tests", ())), tuple(own.get("contrasts", ())), title)


def answers(
    release_path: str,
    asked: Sequence[Asked],
    *,
    quiet: bool,
    no_correct: bool,
    drop_unstable: bool,
    max_release_mb: float,
    **options: Any,
) -> list[Answered]:
    """All of it, from data sets that are drawn once."""
    release = cast(Source, Release.load(release_path, max_mb=max_release_mb))
    with progress_bar(quiet=quiet) as progress:
        found = analyse_several(
            release,
            [a.fit for a in asked],
            correct=not no_correct,
            remedy="drop" if drop_unstable else "report",
            progress=progress,
            **options,
        )
    return [Answered.of(a, f) for a, f in zip(asked, found, strict=True)]


def show(answered: Answered) -> None:
    """The estimates, tests and contrasts, and what is told of them, for a terminal."""
    found, out = answered.found, console()
    out.print(escape(found.words()))
    out.print(f"[dim]Data sets: {escape(found.method)}.[/]")
    show_estimates(out, [*found, *answered.contrasts], found.level)
    if answered.test is not None:
        out.print(escape(f"Test of {', '.join(answered.test.names)}: {answered.test}"))
    for line in found.footnotes:
        out.print(escape(line))
    for note in found.notes:
        out.print(f"[{'bold' if note.startswith(MARK) else 'dim'}]Note: {escape(note)}[/]")
