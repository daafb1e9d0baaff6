"""The tables of the page on releases from a file alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.core.page import Page, markdown
from benchmarks.core.results import View
from benchmarks.core.store import Row

MANY_ROWS = 40_000
"""The least number of rows for which the distances of columns are stated apart."""


def page(view: View) -> Page:
    """Return the figures of releases, of columns alone, and of times."""
    return Page({
        "learning": _releases(view), "states": _states(view), "columns": _columns(view),
        "columns-of-tables": _columns_of_tables(view), "times": _times(view),
    })  # fmt: skip


def _runs(view: View, contender: str, *names: str) -> dict[tuple[Any, ...], list[Row]]:
    groups = view.groups("contender", *names)
    order = list(view.tasks)
    own = {key[1:]: rows for key, rows in groups.items() if key[0] == contender}
    at = names.index("task") if "task" in names else None
    return dict(
        sorted(own.items(), key=lambda kv: () if at is None else (order.index(kv[0][at]), *kv[0]))
    )


def _releases(view: View) -> str:
    """Return the means and deciles of all tables by epsilon."""
    body = []
    for (epsilon, task), rows in _runs(view, "draft", "epsilon", "task").items():
        # without columns of one value, which have no deviation to compare with
        found = [n for r in rows for n in r["numbers"] if n["error_sd"] < 1e6]
        reliable = [n for n in found if n["reliable"]]
        body.append((
            f"{epsilon:g}", view.title(task), f"{rows[0]['rows']:,}", len(rows), len(found),
            sum(r["unlearned"] for r in rows), _share(n["within"] for n in found),
            _share(n["within"] or not n["reliable"] for n in found), _share(n["reliable"] for n in found),
            _share(n["holds"] for n in found), _share(n["holds"] for n in reliable),
            f"{statistics.fmean(n['error_sd'] for n in found):.3f}" if found else "",
            f"{statistics.fmean(n['deciles'] for n in found):.3f}" if found else "",
            f"{statistics.fmean(r['cpu_s'] for r in rows):.0f}",
        ))  # fmt: skip
    head = (
        "ε", "table", "rows", "runs", "numbers", "not learned", "synthetic mean within tolerance", "or marked",
        "reliable", "intervals hold", "of reliable", "error, sd", "TV of deciles", "CPU, s",
    )  # fmt: skip
    return markdown(head, body)


def _states(view: View) -> str:
    """Return missing values, categories and group means of all tables by epsilon."""
    body = []
    for (epsilon, task), rows in _runs(view, "draft", "epsilon", "task").items():
        empty = [c["error"] for r in rows for c in r["cells"] if c["missing"] == 0]
        states = [s for r in rows for s in r["states"]]
        pairs = [g for r in rows for g in r.get("groups", ())]
        groups = sum(g["groups"] for g in pairs)
        parts = [sum(g[key] for g in pairs) for key in ("near", "marked", "neither", "hold")]
        body.append((
            f"{epsilon:g}", view.title(task), len(empty), _share(abs(e) <= 0.0005 for e in empty),
            sum(s["states"] for s in states), _ratio(sum(s["near"] for s in states), sum(s["states"] for s in states)),
            groups, *(_ratio(part, groups) for part in parts),
        ))  # fmt: skip
    head = (
        "ε", "table", "columns without missing values", "no missing made", "states", "within 2.5 deviations",
        "means of groups", "near", "marked", "neither", "intervals hold",
    )  # fmt: skip
    return markdown(head, body)


def _columns(view: View) -> str:
    """Return how often learned columns are nearer than the rivals', by epsilon and number of rows."""
    body = []
    sizes = (
        (f"{MANY_ROWS:,} and more", MANY_ROWS, 1 << 62),
        ("fewer", 0, MANY_ROWS),
        ("all", 0, 1 << 62),
    )
    for (epsilon,), rows in _runs(view, "columns", "epsilon").items():
        for words, least, most in sizes:
            own = _distances(r for r in rows if least <= r["rows"] < most)
            for bounds, end in (("wide", ""), ("learned", "_in_learned")):
                if own:
                    body.append((f"{epsilon:g}", words, bounds, *_compared(own, end)))
    head = (
        "ε", "rows", "bounds of rivals", "columns × runs", "nearer than PrivTree's", "than bisection's", "than both",
        "learned, sd", "PrivTree, sd", "bisection, sd",
    )  # fmt: skip
    return markdown(head, body)


def _columns_of_tables(view: View) -> str:
    """Return the distances by table, and the cost of learning."""
    body = []
    for (epsilon, task), rows in _runs(view, "columns", "epsilon", "task").items():
        own = _distances(rows)
        cost = statistics.median(r["seconds_per_million"] for r in rows)
        sizes = (f"{epsilon:g}", view.title(task), f"{rows[0]['rows']:,}", len(rows))
        wide = _compared(own, "") if own else [""] * 7
        inside = _compared(own, "_in_learned")[1:4] if own else [""] * 3
        body.append((*sizes, *wide, *inside, f"{cost:.2f}"))
    head = (
        "ε", "table", "rows", "runs", "columns × runs", "nearer than PrivTree's", "than bisection's", "than both",
        "learned, sd", "PrivTree, sd", "bisection, sd", "nearer than PrivTree's at learned bounds",
        "than bisection's", "than both", "CPU, s per million rows and column",
    )  # fmt: skip
    return markdown(head, body)


def _distances(rows: Iterable[Row]) -> list[Row]:
    return [d for r in rows for d in r["distances"] if "learned" in d]


def _compared(own: Sequence[Row], end: str) -> list[object]:
    """Return how many, the shares that are nearer than each rival and both, and the median of each way.

    Args:
        own: The distances of each column.
        end: The end of the rivals' names, which says whose bounds they have.
    """
    ways = ("learned", f"privtree{end}", f"bisection{end}")
    tree, halves = ([d["learned"] <= d[rival] for d in own] for rival in ways[1:])
    both = [a and b for a, b in zip(tree, halves, strict=True)]
    shares = [f"{statistics.fmean(flags):.2f}" for flags in (tree, halves, both)]
    return [len(own), *shares, *(f"{statistics.median(d[way] for d in own):.4f}" for way in ways)]


def _times(view: View) -> str:
    """Return the seconds of runs that learn, and of runs with what was learned."""
    body = []
    for (task,), rows in _runs(view, "given", "task").items():
        draft, given = ([r[key] for r in rows] for key in ("draft_cpu_s", "given_cpu_s"))
        body.append((
            view.title(task), f"{rows[0]['rows']:,}", len(rows), f"{statistics.median(draft):.1f}",
            f"{statistics.median(given):.1f}", f"{sum(draft) / sum(given):.2f}",
        ))  # fmt: skip
    head = ("table", "rows", "runs", "draft, CPU s", "learned schema, CPU s", "ratio")
    return markdown(head, body)


def _share(flags: Iterable[bool]) -> str:
    listed = list(flags)
    return f"{sum(listed) / len(listed):.2f}" if listed else ""


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else ""
