"""Estimates as lines of text that fit a terminal: names and numbers are whole, and columns are left out."""

from __future__ import annotations

from collections.abc import Sequence

from margrave.inference.estimate import FOOTNOTE, Estimate
from margrave.ratios import percent


def table_of(estimates: Sequence[Estimate], level: float) -> tuple[list[str], list[dict[str, str]]]:
    """Return the headings of a table, and a row of cells by heading for each estimate.

    P-values are left out if the value 0 is not a hypothesis, as for means; beside a contrast of these they are empty.
    """
    rows = [dict(zip(Estimate.headings, e.cells(level), strict=True)) for e in estimates]
    tested = any(e.tests_zero for e in estimates)
    return [h for h in Estimate.headings if tested or h != "p-value"], rows


def lines_of(estimates: Sequence[Estimate], level: float, width: int) -> list[str]:
    """Return a line of headings and one for each estimate.

    A name that is too long has a line of its own. Numbers of data sets are shown if some were left out.

    Args:
        estimates: The estimates.
        level: Level of the intervals.
        width: Characters in a line. Longer names, and the least columns, may be longer.
    """
    gap, min_name_width = 2, 4
    # If a line is too long, these columns are dropped, in this order.
    droppable = ["data sets", "privacy", "std error", "p-value"]
    shown, rows = table_of(estimates, level)
    droppable = [c for c in droppable if c in shown]
    if all(e.used == e.data_sets for e in estimates):
        shown.remove(droppable.pop(0))
    sizes = {c: gap + max(len(c), *(len(row[c]) for row in rows)) for c in shown}
    names = [e.label for e in estimates]
    lacking = []
    while droppable and min_name_width + sum(sizes[c] for c in shown) > width:
        lacking.append(droppable.pop(0))
        shown.remove(lacking[-1])
    room = max(width - sum(sizes[c] for c in shown), min_name_width)
    room = min(room, max(map(len, names)))
    lines = ["".join([" " * room, *(c.rjust(sizes[c]) for c in shown)])]
    for name, row in zip(names, rows, strict=True):
        numbers = "".join(row[c].rjust(sizes[c]) for c in shown)
        lines += [f"{name:{room}}{numbers}"] if len(name) <= room else [name, " " * room + numbers]
    return [*lines, f"No room for: {', '.join(lacking)}."] if lacking else lines


def footnotes(estimates: Sequence[Estimate], level: float) -> tuple[str, ...]:
    """Return the lines that explain the headings and marks of printed estimates."""
    marks = [FOOTNOTE] if any(e.flagged for e in estimates) else []
    return (legend(estimates, level), *marks)


def legend(estimates: Sequence[Estimate], level: float) -> str:
    """Return one line that explains the headings."""
    headings, rows = table_of(estimates, level)
    parts = [f"low, high: the {percent(level, 'g')} interval"]
    if "p-value" in headings:
        parts.append("p-value: of the hypothesis that the value is 0")
    parts.append("privacy: the share of the variance that privacy adds")
    if any(row[h] == "-" for row in rows for h in headings):
        parts.append("-: not known")
    if any(e.used < e.data_sets for e in estimates):
        parts.append("data sets: those that gave the estimate")
    return f"{'; '.join(parts)}."
