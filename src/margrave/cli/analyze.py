"""``margrave analyze``: estimates with intervals for the population, from data sets that a release draws."""

from __future__ import annotations

import shlex
from typing import Any

import click
from click.core import ParameterSource

from margrave.cli.analyze_commands import (
    ESTIMANDS,
    SHARED,
    AnalysisRequest,
    answers,
    first_fault,
    request_of,
    show,
    show_several,
)
from margrave.cli.options import (
    Command,
    echo_json,
    json_option,
    overwrite_option,
    release_size_option,
)
from margrave.cli.output import check_outputs
from margrave.cli.terminal import echo, facts_of
from margrave.cli.usage import Commands, refuse_repeats, usage_words
from margrave.errors import InputError, did_you_mean
from margrave.inference.names import other_words
from margrave.inference.results import check_plot
from margrave.release.draws import METHODS


class Analyses(Commands):
    """The group of analyses, which knows other words for them."""

    def other_form(self, word: str) -> str:
        """Return the command, with its arguments, that another word stands for; "" for none."""
        forms = other_words(word)
        return "" if forms is None else forms[1]


@click.group("analyze", cls=Analyses)
def analyze_command() -> None:
    """Analyze the population behind a release: intervals that account for sampling and for the noise of privacy."""


def shared(command: Command) -> Command:
    """Add the release and the options of every analysis."""
    for option in (
        json_option,
        release_size_option,
        click.option(
            "--drop-unstable",
            is_flag=True,
            help="Leave out data sets in which an estimate blew up, instead of giving no interval.",
        ),
        click.option(
            "--no-bias-correct",
            is_flag=True,
            help="Leave the bias that refits show in the estimates. Marks stay, and no interval includes the bias.",
        ),
        click.option(
            "--where",
            multiple=True,
            metavar="COLUMN=VALUE",
            help="Analyze only records with VALUE, one of A|B, or in a range LOW..HIGH, LOW.. or ..HIGH. May be"
            " repeated.",
        ),
        click.option(
            "--method",
            type=click.Choice(METHODS),
            default="auto",
            show_default=True,
            help="The method that draws the data sets: a posterior, or refits of simulated answers. auto takes the"
            " posterior that the release has, and otherwise refits. posterior fits one in a minute or more.",
        ),
        click.option("--seed", type=int, default=None, help="Makes the data sets repeatable."),
        click.option(
            "--rows",
            "-n",
            type=int,
            default=None,
            help="Records in each; by default the estimated number of real ones.",
        ),
        click.option(
            "--level",
            type=float,
            default=0.95,
            show_default=True,
            help="Probability that an interval holds the truth.",
        ),
        click.option(
            "--m",
            type=int,
            default=None,
            show_default="100; all runs of repeated",
            help="Number of data sets to draw.",
        ),
    ):
        command = option(command)
    return click.argument("release_path", metavar="RELEASE")(command)


def plotted(command: Command) -> Command:
    """Add the options of a single analysis."""
    plot_option = click.option(
        "--plot", default=None, metavar="FILE", help="A forest plot: .html or .svg."
    )
    return overwrite_option(plot_option(command))


by_option = click.option(
    "--by", default=None, metavar="COLUMN", help="One estimate for each value of this column."
)
robust_option = click.option(
    "--robust", is_flag=True, help="Variances that hold with unequal spread (HC1)."
)
missing_option = click.option(
    "--missing", is_flag=True, help="Of records that lack a value, instead of VALUE."
)
value_argument = click.argument("value", metavar="[VALUE]", required=False)


def compared(command: Command) -> Command:
    """Add tests and contrasts of the estimates."""
    test_option = click.option(
        "--test",
        "tests",
        multiple=True,
        metavar="NAME",
        help="Test that this is 0: an estimate, or a term such as C(ward); given several times, all together.",
    )
    contrast_option = click.option(
        "--contrast",
        "contrasts",
        nargs=2,
        multiple=True,
        metavar="A B",
        help="Estimate A less estimate B.",
    )
    return test_option(contrast_option(command))


@analyze_command.command("mean")
@shared
@plotted
@compared
@by_option
@click.argument("column", metavar="COLUMN")
def mean_command(**options: Any) -> int:
    """Estimate the mean of COLUMN."""
    return run_one("mean", options)


@analyze_command.command("proportion")
@shared
@plotted
@compared
@by_option
@missing_option
@click.argument("column", metavar="COLUMN")
@value_argument
def proportion_command(**options: Any) -> int:
    """Estimate the share of records whose COLUMN is VALUE, among those that have a value."""
    return run_one("proportion", options)


@analyze_command.command("quantile")
@shared
@plotted
@compared
@by_option
@click.argument("column", metavar="COLUMN")
@click.argument("p", metavar="P", type=float)
def quantile_command(**options: Any) -> int:
    """Estimate the P-quantile of COLUMN: 0.5 is the median."""
    return run_one("quantile", options)


@analyze_command.command("total")
@shared
@plotted
@compared
@by_option
@click.argument("column", metavar="COLUMN")
def total_command(**options: Any) -> int:
    """Estimate the total of COLUMN over all records."""
    return run_one("total", options)


@analyze_command.command("count")
@shared
@plotted
@compared
@by_option
@missing_option
@click.argument("column", metavar="COLUMN")
@value_argument
def count_command(**options: Any) -> int:
    """Estimate the number of records with VALUE in COLUMN."""
    return run_one("count", options)


@analyze_command.command("correlation")
@shared
@plotted
@click.argument("x", metavar="COLUMN")
@click.argument("y", metavar="COLUMN")
def correlation_command(**options: Any) -> int:
    """Estimate the correlation of two columns of numbers."""
    return run_one("correlation", options)


@analyze_command.command("ols")
@shared
@plotted
@compared
@click.argument("formula", metavar="FORMULA")
@robust_option
def ols_command(**options: Any) -> int:
    """Fit a linear regression by FORMULA, such as "hours ~ age + C(sex)"."""
    return run_one("ols", options)


@analyze_command.command("logistic")
@shared
@plotted
@compared
@click.argument("formula", metavar="FORMULA")
@click.option(
    "--success", default=None, metavar="VALUE", help="The value of the outcome that counts as 1."
)
@robust_option
def logistic_command(**options: Any) -> int:
    """Fit a logistic regression by FORMULA, such as "smokes ~ age + C(sex)" or "age > 65 ~ C(sex)"."""
    return run_one("logistic", options)


@analyze_command.command("several")
@shared
@click.argument("analyses", metavar="ANALYSIS...", nargs=-1, required=True)
def several_command(
    release_path: str,
    analyses: tuple[str, ...],
    where: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Run several analyses of the same data sets, each in quotes: "mean stay --by ward" "ols 'stay
    ~ age'".
    """
    requests = [read(text, release_path, where) for text in analyses]
    answered = answers(release_path, requests, quiet=as_json, **options)
    fault = first_fault(answered)
    if as_json:
        found = [{"analysis": a.request.title, **a.to_dict()} for a in answered]
        echo_json({"analyses": found, **facts_of(fault)})
        return 0 if fault is None else fault.exit_code
    show_several(answered)
    if fault is not None:
        raise fault
    return 0


def read(text: str, release_path: str, where: tuple[str, ...] = ()) -> AnalysisRequest:
    """Parse an analysis for ``several``: a command without the release and the options of all.

    ``where`` are conditions of all analyses, which their own override.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"{text!r} cannot be read ({error}).", remedy="Close its quotes."
        ) from None
    if not words or words[0] not in ESTIMANDS:
        first, forms = text.partition(" ")[0], other_words(text.partition(" ")[0])
        form = "" if forms is None else f"Write {forms[1].replace('RELEASE ', '')!r}. "
        raise InputError(
            f"{text!r} is not an analysis.",
            remedy=f"{form or did_you_mean(first, ESTIMANDS)}It begins with one of {', '.join(ESTIMANDS)}.",
        )
    command = analyze_command.commands[words[0]]
    refuse_repeats(command, None, words[1:])
    try:
        context = command.make_context(
            words[0], [release_path, *words[1:]], help_option_names=["-h", "--help"]
        )
    except click.UsageError as error:
        wrong, remedy = usage_words(error)
        raise InputError(
            f"{text!r} is not an analysis: {wrong}",
            remedy=f"{(remedy or 'Correct it.').replace(' RELEASE', '')} Put each analysis in quotes.",
        ) from None
    flags = {p.name: max(p.opts, key=len) for p in command.params}
    for name in SHARED[1:]:
        if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT):
            raise InputError(
                f"{text!r} has {flags[name]}, which is for all analyses or for one alone.",
                remedy="Give it outside of the quotes, or analyze by itself.",
            )
    own = {k: v for k, v in context.params.items() if k not in SHARED}
    return request_of(words[0], own, text, where)


def run_one(name: str, options: dict[str, Any]) -> int:
    """Run one analysis, print it, write its plot, and return the exit code. Nothing is spent."""
    request = request_of(name, {k: options.pop(k) for k in list(options) if k not in SHARED})
    release_path, plot, overwrite, as_json = (
        options.pop(k) for k in ("release_path", "plot", "overwrite", "as_json")
    )
    if plot is not None:
        check_plot(plot)
    check_outputs({"--plot": plot}, overwrite=overwrite, inputs={"RELEASE": release_path})
    (answer,) = answers(release_path, [request], quiet=as_json, **options)
    if plot is not None:
        answer.found.plot(plot, overwrite=overwrite)
    if as_json:
        echo_json({**answer.to_dict(), "plot": plot, **facts_of(answer.fault)})
        return 0 if answer.fault is None else answer.fault.exit_code
    show(answer)
    if plot is not None:
        echo(f"Plot: {plot}")
    if answer.fault is not None:
        raise answer.fault
    return 0
