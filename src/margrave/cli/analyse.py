"""``margrave analyse``: estimates with intervals for the population, from data sets that a release draws."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import click
from click.core import ParameterSource
from rich.markup import escape

from margrave.cli.estimates import show_estimates
from margrave.cli.options import Command, echo_json, json_option, overwrite_option
from margrave.cli.output import check_outputs, console, progress_bar
from margrave.cli.sample import parse_where
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
from margrave.inference.analysis import check_plot
from margrave.inference.estimate import MARK
from margrave.inference.groups import Grouped
from margrave.inference.sources import MANY, Source
from margrave.release import Release
from margrave.release.draws import METHODS


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


@click.group("analyse")
def analyse_command() -> None:
    """Analyse the population behind a release: intervals that account for sampling and for the noise of privacy."""


def shared(command: Command) -> Command:
    """The release, and the options of every analysis."""
    for option in (
        json_option,
        click.option(
            "--drop-unstable",
            is_flag=True,
            help="Leave out data sets in which an estimate blew up, instead of giving no interval.",
        ),
        click.option(
            "--no-correct", is_flag=True, help="Leave the bias that refits show, in half of the time."
        ),
        click.option(
            "--where",
            multiple=True,
            metavar="COLUMN=VALUE",
            help="Of records like this alone: VALUE, several as A|B, or a range LOW..HIGH. May be repeated.",
        ),
        click.option(
            "--method",
            type=click.Choice(METHODS),
            default="auto",
            show_default=True,
            help="How to draw the data sets.",
        ),
        click.option("--seed", type=int, default=None, help="Makes the data sets repeatable."),
        click.option(
            "--rows", "-n", type=int, default=None, help="Records in each; by default as many as estimated."
        ),
        click.option(
            "--level", type=float, default=0.95, show_default=True, help="How often an interval holds the truth."
        ),
        click.option("--m", type=int, default=MANY, show_default=True, help="How many data sets to draw."),
    ):
        command = option(command)
    return click.argument("release_path", metavar="RELEASE")(command)


def plotted(command: Command) -> Command:
    """The options of a single analysis."""
    plot_option = click.option("--plot", default=None, metavar="FILE", help="A forest plot: .html or .svg.")
    return overwrite_option(plot_option(command))


by_option = click.option("--by", default=None, metavar="COLUMN", help="One estimate for each value of this column.")
robust_option = click.option("--robust", is_flag=True, help="Variances that hold with unequal spread (HC1).")
missing_option = click.option("--missing", is_flag=True, help="Of records that lack a value, instead of VALUE.")
value_argument = click.argument("value", metavar="[VALUE]", required=False)


def compared(command: Command) -> Command:
    """Tests and contrasts of the estimates."""
    test_option = click.option(
        "--test",
        "tests",
        multiple=True,
        metavar="NAME",
        help="Test that this is 0: an estimate, or a term such as C(ward); given several times, all together.",
    )
    contrast_option = click.option(
        "--contrast", "contrasts", nargs=2, multiple=True, metavar="A B", help="Estimate A less estimate B."
    )
    return test_option(contrast_option(command))


@analyse_command.command("mean")
@shared
@plotted
@compared
@by_option
@click.argument("column", metavar="COLUMN")
def mean_command(**options: Any) -> None:
    """The mean of COLUMN."""
    run_one("mean", options)


@analyse_command.command("proportion")
@shared
@plotted
@compared
@by_option
@missing_option
@click.argument("column", metavar="COLUMN")
@value_argument
def proportion_command(**options: Any) -> None:
    """The share of records whose COLUMN is VALUE, among those that have a value."""
    run_one("proportion", options)


@analyse_command.command("quantile")
@shared
@plotted
@compared
@by_option
@click.argument("column", metavar="COLUMN")
@click.argument("p", metavar="P", type=float)
def quantile_command(**options: Any) -> None:
    """The P-quantile of COLUMN: 0.5 is the median."""
    run_one("quantile", options)


@analyse_command.command("total")
@shared
@plotted
@compared
@by_option
@click.argument("column", metavar="COLUMN")
def total_command(**options: Any) -> None:
    """The total of COLUMN over all records."""
    run_one("total", options)


@analyse_command.command("count")
@shared
@plotted
@compared
@by_option
@missing_option
@click.argument("column", metavar="COLUMN")
@value_argument
def count_command(**options: Any) -> None:
    """How many records have VALUE in COLUMN."""
    run_one("count", options)


@analyse_command.command("correlation")
@shared
@plotted
@click.argument("x", metavar="COLUMN")
@click.argument("y", metavar="COLUMN")
def correlation_command(**options: Any) -> None:
    """The correlation of two columns of numbers."""
    run_one("correlation", options)


@analyse_command.command("ols")
@shared
@plotted
@compared
@click.argument("formula", metavar="FORMULA")
@robust_option
def ols_command(**options: Any) -> None:
    """Linear regression by FORMULA, such as "hours ~ age + C(sex)"."""
    run_one("ols", options)


@analyse_command.command("logistic")
@shared
@plotted
@compared
@click.argument("formula", metavar="FORMULA")
@click.option("--success", default=None, metavar="VALUE", help="The value of the outcome that counts as 1.")
@robust_option
def logistic_command(**options: Any) -> None:
    """Logistic regression by FORMULA, such as "smokes ~ age + C(sex)" or "age > 65 ~ C(sex)"."""
    run_one("logistic", options)


@analyse_command.command("several")
@shared
@click.argument("analyses", metavar="ANALYSIS...", nargs=-1, required=True)
def several_command(
    release_path: str, analyses: tuple[str, ...], where: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Several analyses of the same data sets, each in quotes: "mean stay --by ward" "ols 'stay ~ age'".

    The data sets are drawn once, which often takes most of the time. --where outside of the quotes is for all of them.
    """
    asked = [read(text, release_path, where) for text in analyses]
    answered = answers(release_path, asked, quiet=as_json, **options)
    if as_json:
        echo_json({"analyses": [{"analysis": a.asked.title, **a.to_dict()} for a in answered]})
        return
    for i, a in enumerate(answered):
        console().print(f"{chr(10) if i else ''}[bold]{escape(a.asked.title)}[/]")
        show(a)


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
    "overwrite",
)  # fmt: skip


BESIDES = ("tests", "contrasts", "where")
"""Those of them that are no parameters of a fit."""


def asked_of(name: str, own: Mapping[str, Any], title: str = "") -> Asked:
    """The analysis of a command, by the options that are its own."""
    fit = MADE[name](**{k: v for k, v in own.items() if k not in BESIDES})
    held = dict(parse_where(text) for text in own.get("where", ()))
    if held:
        fit = replace(fit, model=replace(fit.model, where=held)) if isinstance(fit, By) else replace(fit, where=held)
    return Asked(fit, tuple(own.get("tests", ())), tuple(own.get("contrasts", ())), title)


def read(text: str, release_path: str, where: tuple[str, ...] = ()) -> Asked:
    """An analysis as it is written for ``several``: a command without the release and the options of all.

    ``where`` holds columns of all of them, unless they hold these to something else.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{text!r} cannot be read ({error}).", remedy="Close its quotes.") from None
    if not words or words[0] not in MADE:
        raise InputError(f"{text!r} is no analysis.", remedy=f"It begins with one of {', '.join(MADE)}.")
    command = analyse_command.commands[words[0]]
    try:
        context = command.make_context(words[0], [release_path, *words[1:]])
    except click.UsageError as error:
        raise InputError(f"{text!r} is no analysis: {error.format_message()}", remedy="Mend it.") from None
    for name in SHARED[1:]:
        if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT):
            raise InputError(
                f"{text!r} has --{name.replace('_', '-')}, which is for all analyses or for one alone.",
                remedy="Give it outside of the quotes, or analyse by itself.",
            )
    own = {k: v for k, v in context.params.items() if k not in SHARED}
    return asked_of(words[0], {**own, "where": (*where, *own["where"])}, text)


def run_one(name: str, options: dict[str, Any]) -> None:
    """Analyse, show, and write what was asked for. Nothing is spent."""
    asked = asked_of(name, {k: options.pop(k) for k in list(options) if k not in SHARED})
    release_path, plot, overwrite, as_json = (options.pop(k) for k in ("release_path", "plot", "overwrite", "as_json"))
    if plot is not None:
        check_plot(plot)
    check_outputs({"--plot": plot}, overwrite=overwrite, inputs={"RELEASE": release_path})
    (answered,) = answers(release_path, [asked], quiet=as_json, **options)
    if plot is not None:
        answered.found.plot(plot, overwrite=overwrite)
    if as_json:
        echo_json({**answered.to_dict(), "plot": plot})
        return
    show(answered)
    if plot is not None:
        click.echo(f"Plot: {plot}")


def answers(
    release_path: str, asked: Sequence[Asked], *, quiet: bool, no_correct: bool, drop_unstable: bool, **options: Any
) -> list[Answered]:
    """All of it, from data sets that are drawn once."""
    release = cast(Source, Release.load(release_path))
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
