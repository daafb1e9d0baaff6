"""``margrave bounds``: how far a release can be from the real table, by its noisy answers alone."""

from __future__ import annotations

import click
from rich.table import Table

from margrave._card import counted
from margrave.bounds import Bound
from margrave.cli.options import echo_json, json_option, release_size_option
from margrave.cli.output import console, escape
from margrave.errors import InputError
from margrave.release import Release


@click.command("bounds")
@click.argument("release_path", metavar="RELEASE")
@click.option(
    "--columns", metavar="A,B", help="One marginal only (default: all of the workload and below)."
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="The probability that a bound holds.",
)
@click.option(
    "--joint", is_flag=True, help="All bounds hold together with that probability, not each alone."
)
@click.option(
    "--rows", type=int, default=40, show_default=True, help="Number of marginals to show at most."
)
@release_size_option
@json_option
def bounds_command(
    release_path: str,
    columns: str | None,
    level: float,
    joint: bool,
    rows: int,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Bound how far the marginals of RELEASE can be from the real ones. Nothing is spent."""
    if rows < 0:
        raise InputError("--rows is negative.", remedy="Ask for 0 or more.")
    release = Release.load(release_path, max_mb=max_release_mb)
    named = (
        None if columns is None else [[name.strip() for name in columns.split(",") if name.strip()]]
    )
    found = release.bounds(named, level=level, joint=joint)
    if as_json:
        echo_json([b.to_dict() for b in found])
    else:
        show_bounds(found, rows, release.account.left_out)


def show_bounds(found: tuple[Bound, ...], rows: int, left_out: str) -> None:
    """Print the bounds that are below 2, tightest first; for a single marginal any bound.

    ``left_out``: the columns that the bounds do not cover, in words.
    """
    out = console()
    ordered = (
        sorted((b for b in found if b.tells), key=lambda b: b.share or 0.0)
        if len(found) > 1
        else list(found)
    )
    words = "all together" if any(b.joint for b in found) else "each on its own"
    level = found[0].level if found else 0.0
    table = Table(
        title=f"Bounds on the L1 distance to the real marginals, {100 * level:g} % ({words})",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for name in ("marginal", "records", "of all", "how"):
        table.add_column(name, justify="right" if name in ("records", "of all") else "left")
    for b in ordered[:rows]:
        table.add_row(escape(", ".join(b.clique)), *b.words, b.how)
    out.print(table)
    if len(ordered) > rows:
        out.print(
            f"And {counted(len(ordered) - rows, 'looser one')}: ask for more with --rows, or for all with --json."
        )
    if unbounded := len(found) - len(ordered):
        they, them = ("it was", "it") if unbounded == 1 else ("they were", "them")
        out.print(
            f"No useful bound exists for {unbounded:,} of {counted(len(found), 'marginal')}: {they} not measured, and"
            f" the selections bound {them} too weakly."
        )
    out.print(
        "[dim]of all: the summed differences of counts over the records, from 0 (equal) to 2 (no overlap).[/]"
    )
    if left_out:
        out.print(f"[dim]{escape(left_out)}[/]")
