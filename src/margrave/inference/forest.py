"""A forest plot as SVG text, and a page around it: no plotting library, no script, nothing from outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from margrave.content_policy import CONTENT_POLICY
from margrave.inference.estimate import MARK, Estimate
from margrave.inference.printed import table_of

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2630; --soft: #5d6672; --line: #e2dfd8; --bar: #9cc6cd; --accent: #17697a;
  --page: #faf9f6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #9aa4af; --line: #303841; --bar: #2f6873;
  --accent: #5fb8c6; --page: #14181d; } }
svg { font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
svg text { fill: var(--ink); } svg .s { fill: var(--soft); }
svg .e { text-anchor: end; } svg .m { text-anchor: middle; }
svg .a { stroke: var(--line); } svg .n { stroke: var(--soft); stroke-dasharray: 3 3; }
svg .w { stroke: var(--accent); stroke-width: 1.6; } svg .r { fill: var(--bar); } svg .d { fill: var(--accent); }
"""
_PAGE_STYLE = """
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.6 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 40px 24px 80px; }
svg { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .4em .8em; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; } th, p { color: var(--soft); font-weight: 500; }
"""


def forest(estimates: Sequence[Estimate], level: float, words: str) -> str:
    """Return a plot with one line for each estimate: a dot, its interval, and a bar as wide as the
    interval from the real records alone.
    """
    width = 860
    left = 240
    right = 230
    row = 26
    top = 46
    spans = [e.conf_int(level) for e in estimates]
    low, high = _range(spans)
    room = width - left - right
    height = top + row * len(estimates) + 34

    def x(value: float) -> float:
        return left + room * (min(max(value, low), high) - low) / (high - low)

    head = f"{words}; {MARK}: see the notes" if any(e.flagged for e in estimates) else words
    parts = [f'<text class="s" x="0" y="16">{escape(head)}</text>']
    foot = height - 28
    for tick in _ticks(low, high):
        parts.append(f'<path class="a" d="M{x(tick):.1f} {top - 10}V{foot}"/>')
        parts.append(f'<text class="s m" x="{x(tick):.1f}" y="{foot + 16}">{_number(tick)}</text>')
    if low < 0 < high:
        parts.append(f'<path class="n" d="M{x(0):.1f} {top - 10}V{foot}"/>')
    for i, (e, span) in enumerate(zip(estimates, spans, strict=True)):
        y = top + row * i + 8
        parts.append(f'<text class="e" x="{left - 14}" y="{y + 4}">{escape(_label(e))}</text>')
        parts += _line(e, level, span, x, y)
        parts.append(f'<text class="e s" x="{width}" y="{y + 4}">{_interval_text(e, level)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' aria-label="Estimates and intervals"><style>{_STYLE}</style>{"".join(parts)}</svg>'
    )


def _line(
    e: Estimate, level: float, span: tuple[float, float], x: Callable[[float], float], y: float
) -> list[str]:
    if not (e.has_interval or e.is_in_one_bin):
        return []
    found = []
    if math.isfinite(e.fmi_privacy):
        part = math.sqrt(1.0 - e.fmi_privacy) * e.half_width(level)
        start, end = x(max(e.estimate - part, span[0])), x(min(e.estimate + part, span[1]))
        found.append(
            f'<rect class="r" x="{start:.1f}" y="{y - 5}" width="{end - start:.1f}" height="10" rx="2">'
            "<title>as wide as the real records alone would have made it</title></rect>"
        )
    found.append(f'<path class="w" d="M{x(span[0]):.1f} {y}H{x(span[1]):.1f}"/>')
    found.append(f'<circle class="d" cx="{x(e.estimate):.1f}" cy="{y}" r="3.4"/>')
    return found


def page(estimates: Sequence[Estimate], level: float, words: str, notes: Sequence[str]) -> str:
    """Return the plot, the table and the notes as one page."""
    headings, found = table_of(estimates, level)
    heads = "".join(f"<th>{name}</th>" for name in headings)
    rows = "".join(
        f"<tr><td>{escape(e.label)}</td>{''.join(f'<td>{row[h]}</td>' for h in headings)}</tr>"
        for e, row in zip(estimates, found, strict=True)
    )
    texts = "".join(f"<p>{escape(n)}</p>" for n in notes)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{CONTENT_POLICY}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Analysis</title>\n'
        f"<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n{forest(estimates, level, words)}\n"
        "<p>Dot and line: the estimate and its interval for the population. Bar: how wide the same number of real"
        f" records would have made it; the rest is noise added for privacy.</p>\n<table><thead><tr><th></th>"
        f"{heads}</tr></thead><tbody>{rows}</tbody></table>\n{texts}\n"
        "</main>\n</body>\n</html>\n"
    )


def _interval_text(e: Estimate, level: float) -> str:
    if not (e.has_interval or e.is_in_one_bin):
        return "no interval: see the notes"
    low, high = e.ends_as_texts(level, _number)
    return f"{_number(e.estimate)} ({low} to {high})"


def _range(spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    ends = [v for span in spans for v in span if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    wide = (high - low) or abs(high) or 1.0
    low = min(low, 0.0) if -wide < -low < wide and low > 0 else low
    high = max(high, 0.0) if -wide < high < 0 else high
    pad = 0.04 * (high - low or wide)
    return low - pad, high + pad


def _ticks(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 4.0))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= 6.0)
    return [float(v) for v in np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value + 0.0:.4g}"


def _label(e: Estimate) -> str:
    """Return the name, cut if it is long, with the mark, which is never cut."""
    max_name_characters = 34
    room = max_name_characters - (len(MARK) + 1) * e.flagged
    name = e.name if len(e.name) <= room else e.name[: room - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return f"{name} {MARK}" if e.flagged else name
