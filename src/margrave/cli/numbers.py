"""``margrave numbers``: means, totals, quantiles and shares of a release, with intervals and marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
import pyarrow as pa
from rich.table import Table

from margrave._card import counted, listed
from margrave.cli.options import echo_json, json_option, release_size_option
from margrave.cli.output import console, escape
from margrave.errors import InputError, ReleaseError
from margrave.purpose_words import check_separated
from margrave.ratios import figure, percent
from margrave.release import ColumnNumber, Release
from margrave.release.beyond_bounds import (
    beyond_bounds_words,
    bounds_of_another_run_words,
    learned_bounds_words,
)
from margrave.release.diagnostics import known_together
from margrave.release.hidden_spread import hidden_spread_words, hidden_spreads
from margrave.release.number import TOLERANCE
from margrave.release.numbers import (
    category_words,
    clipping_words,
    numbers_of,
    open_ends_words,
    rare_groups,
)
from margrave.schema import Categorical, Date, Schema, Timestamp
from margrave.schema.constraint_values import NUMERIC_KINDS


@click.command("numbers")
@click.argument("release_path", metavar="RELEASE")
@click.option("--columns", metavar="A,B", help="These columns only (default: all).")
@click.option(
    "--by",
    metavar="COLUMN",
    help="Numbers of each value of this column apart. Values that may have no rows are left out: their noisy count is"
    " below 3 of its standard deviations.",
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="The probability with which each interval holds.",
)
@click.option(
    "--rows", type=int, default=200, show_default=True, help="Number of numbers to show at most."
)
@release_size_option
@json_option
def numbers_command(
    release_path: str,
    columns: str | None,
    by: str | None,
    level: float,
    rows: int,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Show means, totals, quantiles and shares of RELEASE with intervals. Nothing is spent."""
    if rows < 0:
        raise InputError("--rows is negative.", remedy="Ask for 0 or more.")
    release = Release.load(release_path, max_mb=max_release_mb)
    names = None if columns is None else [n.strip() for n in columns.split(",") if n.strip()]
    if names is not None and not set(names) - {by}:
        other = "" if by is None else f" besides {by!r}, whose values are the groups"
        raise InputError(
            f"--columns names no column{other}.",
            remedy="Name at least one, or leave --columns out.",
        )
    for name in names or ():
        if name not in release.schema.domain:
            check_separated(name, release.schema.domain, ", ")
    wanted = (
        release.schema.domain.attributes if names is None else release.schema.domain.clique(names)
    )
    chosen = numbers_of(release.schema, release.transcript, release.model, level, wanted, by)
    if as_json:
        echo_json([n.to_dict() for n in chosen])
        return
    if not chosen and release.no_model:
        raise ReleaseError(
            f"This release has no numbers: {release.no_model}.", remedy=release.model.remedy
        )
    measured = {n.column for n in chosen if n.low is not None}
    apart = [name for name in wanted if name != by and name not in measured] if by else []
    chosen = tuple(n for n in chosen if n.column not in apart)
    rare = [] if by is None else rare_groups(release.schema, release.transcript, by)
    left_out = {n.group for n in chosen if n.group in rare}
    chosen = tuple(n for n in chosen if n.group not in left_out)
    if chosen or not (apart or left_out):
        show_numbers(f"Numbers with {percent(level, 'g')} intervals", chosen[:rows])
    if left_out:
        console().print(escape(_left_out_words([g for g in rare if g in left_out], by or "")))
    if by is not None and apart:
        for sentence in _not_together(release, apart, by):
            console().print(escape(sentence))
    if marked := [n for n in chosen[:rows] if not n.reliable]:
        console().print(marked_words(marked, chosen[:rows]))
    shown = [release.schema.column(name) for name in wanted if name not in apart]
    for sentence in (
        *clipping_words(release.schema, release.transcript, chosen[:rows]),
        *beyond_bounds_words(release.schema, chosen, level, by),
        *bounds_of_another_run_words(release.schema, [c.name for c in shown]),
        *open_ends_words(chosen[:rows]),
    ):
        console().print(escape(sentence))
    if release.account.left_out:
        console().print(escape(release.account.left_out))
    if len(chosen) > rows:
        console().print(f"And {len(chosen) - rows:,} more: --rows, --columns or --json shows them.")


def _left_out_words(groups: Sequence[str], by: str) -> str:
    some = listed([group.removeprefix(f"{by} = ") for group in groups], 12)
    return (
        f"{counted(len(groups), 'group')} left out, which may have no rows: the noisy count is below 3 of its standard"
        f" deviations. {by}: {some}. --json has them."
    )


def _not_together(release: Release, names: Sequence[str], by: str) -> Iterator[str]:
    pairs = known_together(release.schema.domain, release.transcript)
    merged = [n for n in names if any({n, by} <= set(pair) for pair in pairs)]
    if merged:
        yield (
            f"Measured together with {by} in merged codes, whose groups have no intervals here: {listed(merged, 12)}."
            f" An estimate is: margrave analyze mean RELEASE COLUMN --by {by}."
        )
    if apart := [n for n in names if n not in merged]:
        yield (
            f"Not measured together with {by}: {listed(apart, 12)}. Name the purpose when the next release is made:"
            f' --for "{_purpose(release.schema, apart, by)}".'
        )


def _purpose(schema: Schema, names: Sequence[str], by: str) -> str:
    """Return a purpose for one of some columns by groups: means are of numbers, and dates are counted."""
    kinds = {name: schema.column(name) for name in names}
    dates = [name for name, column in kinds.items() if isinstance(column, Date | Timestamp)]
    name = next((n for n in names if n not in dates), "")
    if not name:
        return f"count by {names[0]}, {by}"
    return f"{'mean' if isinstance(kinds[name], NUMERIC_KINDS) else 'share'} {name} by {by}"


def show_headlines(release: Release, found: Sequence[ColumnNumber]) -> None:
    """Print the main numbers of a release, how many are not reliable, and why."""
    level, max_rows = 0.95, 40
    marked = [n for n in found if not n.reliable]
    ordered = found if len(found) <= max_rows else [*marked, *(n for n in found if n.reliable)]
    show_numbers(
        f"Means and most common categories with {percent(level, 'g')} intervals", ordered[:max_rows]
    )
    out = console()
    for sentence in (
        *clipping_words(release.schema, release.transcript, ordered[:max_rows]),
        *learned_bounds_words(release.schema),
        *bounds_of_another_run_words(release.schema, release.schema.domain.attributes),
        *_category_words(release),
    ):
        out.print(escape(sentence))
    if len(found) > max_rows:
        out.print(f"And {counted(len(found) - max_rows, 'more column')}.")
    if release.account.left_out:
        out.print(escape(release.account.left_out))
    if marked:
        out.print(marked_words(marked, found))
    for n in marked:
        if sentence := _other_mean(n, release):
            out.print(escape(sentence))
    for column in hidden_spreads(release.schema, release.transcript):
        out.print(escape(f"{hidden_spread_words(release.schema, release.transcript, column)}"))


def marked_words(marked: Sequence[ColumnNumber], found: Sequence[ColumnNumber]) -> str:
    """Return how many numbers are not reliable, and the rule."""
    shares = ("share", "missing")
    small = any(n.low == 0.0 and n.statistic.startswith(shares) for n in marked)
    rare = (
        f" A share whose interval reaches 0 % is small, but not known to {percent(TOLERANCE, 'g')}."
        if small
        else ""
    )
    return (
        f"{len(marked):,} of {len(found):,} are not reliable. A reliable number is off by at most"
        f" {percent(TOLERANCE, 'g')} or {TOLERANCE:g} standard deviations of its column, whichever is more. For dates"
        " and for values far from zero, such as years or shares above 90 %, only the standard deviations count, except"
        f" in totals. Noise, wide bins, clipping, or synthetic rows that differ can exceed that.{rare}"
    )


def _category_words(release: Release) -> list[str]:
    """Return what was learned about categories, and where other leads."""
    schema, transcript = release.schema, release.transcript
    wanted = [c.name for c in schema.columns if isinstance(c, Categorical) and c.other]
    if not wanted:
        return []
    return category_words(
        schema, transcript, numbers_of(schema, transcript, release.model, 0.95, wanted)
    )


def _other_mean(n: ColumnNumber, release: Release) -> str:
    """Return the mean of the synthetic rows, if it differs by more than a quarter of the interval."""
    dates = pa.types.is_temporal(release.schema.column(n.column).type)
    if n.statistic != "mean" or dates or n.estimate is None or n.synthetic is None:
        return ""
    assert n.low is not None
    assert n.high is not None
    if abs(n.synthetic - n.estimate) <= (n.high - n.low) / 4:
        return ""
    value = figure(n.synthetic)
    return f"{n.column}: the mean of the synthetic rows is {value}, and that of the noisy answers {n.text}."


def show_numbers(title: str, numbers: Sequence[ColumnNumber]) -> None:
    """Print one line per number, with a mark if it is not reliable."""
    console().print(f"[bold]{escape(title)}[/]")
    table = Table(box=None, pad_edge=False)
    grouped = any(n.group for n in numbers)
    groups = ("group",) if grouped else ()
    for heading in ("column", "statistic", *groups):
        table.add_column(heading, overflow="fold", min_width=len(heading))
    for heading, cells in (("estimate and interval", [n.words for n in numbers]), ("", [])):
        whole = max(map(len, cells), default=0)  # a number stays with its unit, and is not cut
        table.add_column(heading, no_wrap=True, min_width=whole)
    for n in numbers:
        mark = "" if n.reliable else "[bold]not reliable[/]"
        of = (n.group,) if grouped else ()
        table.add_row(*map(escape, (n.column, n.statistic, *of, n.words)), mark)
    console().print(table, crop=False)
