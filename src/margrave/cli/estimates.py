"""Estimates in a table that fits the terminal: names are folded, columns left out, and no number is ever cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from margrave.cli.output import escape
from margrave.inference import Estimate
from margrave.ratios import percent

COLUMNS = ("estimate", "s.e.", "low", "high", "df", "p", "privacy", "used")
LEFT_OUT = ("used", "privacy", "df", "s.e.")
"""The columns that make room, the first first."""
NAME = 12
"""How many characters of a name stand in a line, at the least."""
GAP = 2


def show_estimates(out: Console, estimates: Sequence[Estimate], level: float) -> None:
    """One row an estimate, and what the columns are."""
    names = [e.marked for e in estimates]
    cells = [cells_of(e, level) for e in estimates]
    widths = {c: max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(COLUMNS)}
    longest = max(map(len, names))
    shown = fitting(widths, out.width - min(longest, NAME))
    room = max(out.width - _needed(widths, shown), min(longest, NAME))
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    table.add_column("", overflow="fold", width=min(longest, room))
    for column in shown:
        table.add_column(column, justify="right", no_wrap=True, width=widths[column])
    for name, row in zip(names, cells, strict=True):
        table.add_row(escape(name), *(row[COLUMNS.index(c)] for c in shown))
    needed = min(longest, room) + _needed(widths, shown) + GAP
    wide = Console(highlight=False, width=max(out.width, needed))  # a narrow one would cut numbers off
    wide.print(table, crop=False)
    out.print(f"[dim]{_told(shown)}[/]")


def fitting(widths: dict[str, int], room: int) -> list[str]:
    """The columns that there is room for: those that are left out first go first."""
    shown = list(COLUMNS)
    for column in LEFT_OUT:
        if _needed(widths, shown) <= room:
            break
        shown.remove(column)
    return shown


def cells_of(e: Estimate, level: float) -> list[str]:
    """Its numbers, in the order of the columns; a dash where there is none."""
    numbers = (e.estimate, e.standard_error, *e.interval(level))
    share = percent(e.privacy_share, ".0f").replace(" ", "")
    shown = [*(f"{v:.4g}" for v in numbers), f"{e.df:.3g}", f"{e.p_value():.2g}", share]
    used = str(e.used) if e.used == e.data_sets else f"{e.used}/{e.data_sets}"
    return ["-" if text in ("nan", "unknown") else text for text in shown] + [used]


def _needed(widths: dict[str, int], shown: Sequence[str]) -> int:
    return sum(GAP + widths[c] for c in shown)


def _told(shown: Sequence[str]) -> str:
    words = {"df": "degrees of freedom", "privacy": "share of the variance due to it", "used": "data sets"}
    told = "; ".join(f"{column}: {text}" for column, text in words.items() if column in shown)
    lacking = [c for c in COLUMNS if c not in shown]
    return f"{told + '. ' if told else ''}{'No room for ' + ', '.join(lacking) + '. ' if lacking else ''}All: --json."
