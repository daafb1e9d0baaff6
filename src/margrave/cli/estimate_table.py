"""Estimates in a table that fits the terminal: names are folded, columns left out, and no number is ever cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from margrave.cli.output import escape
from margrave.inference import Estimate

COLUMNS = tuple(Estimate.columns)
GAP = 2


def show_estimates(out: Console, estimates: Sequence[Estimate], level: float) -> None:
    """Print one row for each estimate, and a legend of the columns."""
    # Characters of a name in a line, at least.
    min_name_width = 14
    names = [e.label for e in estimates]
    cells = [e.cells(level) for e in estimates]
    widths = {c: max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(COLUMNS)}
    longest = max(map(len, names))
    shown = fitting(widths, out.width - min(longest, min_name_width))
    room = max(out.width - _needed(widths, shown), min(longest, min_name_width))
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    table.add_column("", overflow="fold", width=min(longest, room))
    for column in shown:
        table.add_column(column, justify="right", no_wrap=True, width=widths[column])
    for name, row in zip(names, cells, strict=True):
        table.add_row(escape(name), *(row[COLUMNS.index(c)] for c in shown))
    needed = min(longest, room) + _needed(widths, shown) + GAP
    wide = Console(
        highlight=False, width=max(out.width, needed)
    )  # a narrow one would cut numbers off
    wide.print(table, crop=False)
    out.print(f"[dim]{_legend(shown)}[/]")


def fitting(widths: dict[str, int], room: int) -> list[str]:
    """Return the columns that there is room for."""
    # Columns that are left out if there is no room, the first one first.
    droppable = ("used", "fmi", "df", "bse")
    shown = list(COLUMNS)
    for column in droppable:
        if _needed(widths, shown) <= room:
            break
        shown.remove(column)
    return shown


def _needed(widths: dict[str, int], columns: Sequence[str]) -> int:
    return sum(GAP + widths[c] for c in columns)


def _legend(columns: Sequence[str]) -> str:
    plain = ("low", "high", "pvalues")  # the line below the table is on p-values
    named = (f"{c}: {Estimate.columns[c]}" for c in columns if c not in plain)
    legend = "; ".join(named)
    lacking = ", ".join(c for c in COLUMNS if c not in columns)
    parts = [legend, f"No room for {lacking}" if lacking else "", "All: --json."]
    return ". ".join(part for part in parts if part)
