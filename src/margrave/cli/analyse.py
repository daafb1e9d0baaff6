"""``margrave analyse``: estimates with intervals for the population, from data sets that a release draws."""

from __future__ import annotations

import shlex
from typing import Any

import click
from click.core import ParameterSource

from margrave.cli.analyses import MADE, SHARED, Asked, answers, asked_of, show
from margrave.cli.options import Command, echo_json, json_option, overwrite_option, release_size_option
from margrave.cli.output import check_outputs, console, escape
from margrave.cli.terminal import echo
from margrave.errors import InputError
from margrave.inference.analysis import check_plot
from margrave.inference.sources import MANY
from margrave.release.draws import METHODS


@click.group("analyse")
def analyse_command() -> None:
    """Analyse the population behind a release: intervals that account for sampling and for the noise of privacy."""


def shared(command: Command) -> Command:
    """The release, and the options of every analysis."""
    for option in (
        json_option,
        release_size_option,
        click.option(
            "--drop-unstable",
            is_flag=True,
            help="Leave out data sets in which an estimate blew up, instead of giving no interval.",
        ),
        click.option(
            "--no-correct",
            is_flag=True,
            help="Leave the bias that refits show in the estimates. Marks stay, and no interval contains the bias.",
        ),
        click.option(
            "--where",
            multiple=True,
            metavar="COLUMN=VALUE",
            help="Of records like this alone: VALUE, several as A|B, or a range LOW..HIGH, LOW.. or ..HIGH."
            " May be repeated.",
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
    return asked_of(words[0], own, text, where)


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
        echo(f"Plot: {plot}")
