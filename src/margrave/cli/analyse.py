"""``margrave analyse``: estimates with intervals for the population, from data sets that a release draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import click
from rich.markup import escape
from rich.table import Table

from margrave.cli.options import Command, echo_json, json_option, overwrite_option
from margrave.cli.output import check_outputs, console, progress_bar
from margrave.cli.sample import parse_where
from margrave.inference import OLS, Analysis, Estimate, Logistic, Mean, Proportion, Quantile, analyse
from margrave.inference.analysis import check_plot
from margrave.inference.estimate import MARK
from margrave.inference.sources import MANY, Source
from margrave.release import Release
from margrave.release.draws import METHODS


@click.group("analyse")
def analyse_command() -> None:
    """Analyse the population behind a release: intervals that account for sampling and for the noise of privacy."""


def shared(command: Command) -> Command:
    """The options of every analysis."""
    for option in (
        json_option,
        overwrite_option,
        click.option("--plot", default=None, metavar="FILE", help="A forest plot: .html or .svg."),
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


@analyse_command.command("mean")
@shared
@click.argument("column", metavar="COLUMN")
def mean_command(column: str, **options: Any) -> None:
    """The mean of COLUMN."""
    run(Mean(column), **options)


@analyse_command.command("proportion")
@shared
@click.argument("column", metavar="COLUMN")
@click.argument("value", metavar="VALUE")
def proportion_command(column: str, value: str, **options: Any) -> None:
    """The share of records whose COLUMN is VALUE, among those that have a value."""
    run(Proportion(column, value), **options)


@analyse_command.command("quantile")
@shared
@click.argument("column", metavar="COLUMN")
@click.argument("p", metavar="P", type=float)
def quantile_command(column: str, p: float, **options: Any) -> None:
    """The P-quantile of COLUMN: 0.5 is the median."""
    run(Quantile(column, p), **options)


robust_option = click.option("--robust", is_flag=True, help="Variances that hold with unequal spread (HC1).")


@analyse_command.command("ols")
@shared
@click.argument("formula", metavar="FORMULA")
@robust_option
def ols_command(formula: str, robust: bool, **options: Any) -> None:
    """Linear regression by FORMULA, such as "hours ~ age + C(sex)"."""
    run(OLS(formula, robust=robust), **options)


@analyse_command.command("logistic")
@shared
@click.argument("formula", metavar="FORMULA")
@click.option("--success", default=None, metavar="VALUE", help="The value of the outcome that counts as 1.")
@robust_option
def logistic_command(formula: str, success: str | None, robust: bool, **options: Any) -> None:
    """Logistic regression by FORMULA, such as "smokes ~ age + C(sex)" or "age > 65 ~ C(sex)"."""
    run(Logistic(formula, success=success, robust=robust), **options)


def run(
    fit: Mean | Proportion | Quantile | OLS | Logistic,
    *,
    release_path: str,
    m: int,
    level: float,
    rows: int | None,
    seed: int | None,
    method: str,
    where: tuple[str, ...],
    no_correct: bool,
    drop_unstable: bool,
    plot: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Analyse, show, and write what was asked for. Nothing is spent."""
    if plot is not None:
        check_plot(plot)
    check_outputs({"--plot": plot}, overwrite=overwrite, inputs={"RELEASE": release_path})
    release = cast(Source, Release.load(release_path))
    with progress_bar(quiet=as_json) as progress:
        found = analyse(
            release,
            replace(fit, where=dict(parse_where(text) for text in where) or None),
            m,
            level=level,
            rows=rows,
            seed=seed,
            method=method,
            correct=not no_correct,
            remedy="drop" if drop_unstable else "report",
            progress=progress,
        )
    if plot is not None:
        found.plot(plot, overwrite=overwrite)
    if as_json:
        echo_json({**found.to_dict(), "plot": plot})
    else:
        show_analysis(found)
        if plot is not None:
            click.echo(f"Plot: {plot}")


def show_analysis(found: Analysis) -> None:
    """The estimates, for a terminal."""
    out = console()
    out.print(escape(found.words()))
    out.print(f"[dim]Data sets: {escape(found.method)}.[/]")
    table = Table(box=None, pad_edge=False)
    table.add_column("", overflow="fold", min_width=12)
    for name in ("estimate", "s.e.", "low", "high", "p", "privacy", "used"):
        table.add_column(name, justify="right", no_wrap=True)
    for e in found:
        table.add_row(escape(e.marked), *cells_of(e, found.level))
    out.print(table)
    for line in found.footnotes:
        out.print(escape(line))
    out.print("[dim]privacy: share of the variance due to it; used: data sets. All with df: --json.[/]")
    for note in found.notes:
        out.print(f"[{'bold' if note.startswith(MARK) else 'dim'}]Note: {escape(note)}[/]")


def cells_of(e: Estimate, level: float) -> list[str]:
    """Its numbers, in the order of the columns; a dash where there is none."""
    numbers = (e.estimate, e.standard_error, *e.interval(level))
    shown = [*(f"{v:.4g}" for v in numbers), f"{e.p_value():.2g}", f"{100 * e.privacy_share:.0f}%"]
    used = str(e.used) if e.used == e.data_sets else f"{e.used}/{e.data_sets}"
    return ["-" if text.startswith("nan") else text for text in shown] + [used]
