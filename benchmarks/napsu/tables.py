"""The tables of docs/napsu.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

import numpy as np
from benchmarks.napsu.charts import LABELS
from benchmarks.napsu.experiment import (
    ABLATION,
    ADULT,
    LEVELS,
    MAIN,
    ByEpsilon,
    Experiment,
    averaged,
    relative_width,
)
from benchmarks.napsu.summary import Cell, Facts, by_the_paper, seconds, spans
from benchmarks.napsu.tasks import EPSILONS


def toy_tables(small: Experiment) -> dict[str, str]:
    """Coverage, widths, the rules, and what the runs took."""
    rows = small.of("real", *MAIN, *ABLATION[1:])

    def coverage(cell: Cell, epsilon: float) -> str:
        return " · ".join(f"{100 * c:.0f}" for c in small.covered(cell, epsilon).mean(axis=0))

    def width(cell: Cell, epsilon: float) -> str:
        return " · ".join(f"{w:.2f}" for w in np.nanmedian(small.widths(cell, epsilon), axis=0))

    paper = {n: {e: by_the_paper(c) for e, c in by.items()} for n, by in small.of("laplace", "bootstrap").items()}
    return {
        "toy-coverage": table(rows, coverage),
        "toy-widths": table(small.of(*MAIN, "exact"), width),
        "toy-rules": table(paper, coverage, end=", by the paper's rules"),
        "toy-runs": runs(small, "real", *MAIN, "exact"),
    }


def adult_tables(large: Experiment) -> dict[str, str]:
    """Coverage, calibration, widths, and what the runs took."""
    rows = large.of(*ADULT)

    def coverage(cell: Cell, epsilon: float) -> str:
        middle, low, high = averaged(large.covered(cell, epsilon))
        return f"{100 * middle:.0f} ({100 * low:.0f} to {100 * high:.0f})"

    def off(cell: Cell, epsilon: float) -> str:
        gaps = {level: large.covered(cell, epsilon, level).mean() - level for level in LEVELS}
        upper = [gap for level, gap in gaps.items() if level >= 0.5]
        all_of, of_upper = (100 * float(np.mean(list(g))) for g in (gaps.values(), upper))
        return f"{all_of:+.0f}, at most {100 * max(gaps.values(), key=abs):+.0f}; {of_upper:+.0f}"

    def width(cell: Cell, epsilon: float) -> str:
        middle, low, high = relative_width(large, cell, epsilon)
        return f"{middle:.2f} ({low:.2f} to {high:.2f})"

    def each(cell: Cell, epsilon: float) -> str:
        return " · ".join(f"{100 * c:.0f}" for c in large.covered(cell, epsilon).mean(axis=0))

    def used(cell: Cell, epsilon: float) -> str:
        told = [[0 if e is None else e["used"] / x["data_sets"] for e in x["estimates"]] for x in finished(cell)]
        return " · ".join(f"{100 * u:.0f}" for u in np.mean(told, axis=0)) if told else ""

    several = {n: by for n, by in rows.items() if n != "naive"}
    paper = {n: {e: by_the_paper(c) for e, c in by.items()} for n, by in several.items()}
    return {
        "adult-coverage": table(rows, coverage),
        "adult-each": table(rows, each),
        "adult-used": table(several, used),
        "adult-calibration": table(rows, off),
        "adult-widths": table(rows, width),
        "adult-rules": table(paper, coverage, end=", by the paper's rules"),
        "adult-runs": runs(large, *ADULT),
        "adult-nuts": chains(large, "nuts"),
        "adult-nuts-full": chains(large, "nuts-full"),
    }


def table(rows: Mapping[str, ByEpsilon], text: Callable[[Cell, float], str], *, end: str = "") -> str:
    """A line a contender, a column an epsilon."""
    out = ["| | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |", "| --- |" + " --- |" * len(EPSILONS)]
    for name, by in rows.items():
        told = [text(by[e], e) if e in by else "" for e in EPSILONS]
        out.append(f"| {LABELS[name]}{end} | " + " | ".join(told) + " |")
    return "\n".join(out)


def runs(found: Experiment, *names: str) -> str:
    """How often there was no interval, how many fits were left out, and processor seconds."""
    out = [
        "| | ε | repeats | refused | coefficients without an interval | regressions left out | CPU, s | wall, s |",
        "| --- |" + " --- |" * 7,
    ]
    for name, by in ((n, found.stored[n]) for n in names if n in found.stored):
        for epsilon, cell in by.items():
            refused = sum(x["outcome"] != "finished" for x in cell.lines)
            used = spans(cell)
            per = [x["data_sets"] for x in cell.lines if "data_sets" in x]
            dropped = f"{100 * (1 - sum(used) / (len(used) * per[0])):.2f} %" if used else ""
            took = [f"{statistics.median(seconds(cell, kind)):.2g}" for kind in ("cpu", "wall")]
            told = (LABELS[name], f"{epsilon:g}", len(cell.lines), refused, cell.none, dropped, *took)
            out.append("| " + " | ".join(map(str, told)) + " |")
    return "\n".join(out)


def finished(cell: Cell) -> list[Facts]:
    """The lines of runs that gave intervals."""
    return [x for x in cell.lines if x["outcome"] == "finished"]


def chains(large: Experiment, name: str) -> str:
    """What NUTS said of itself, and how long its fit took: medians, and the worst run."""
    out = ["| ε | runs | not mixed | R̂ | effective | diverged | draws a chain | CPU, s |", "|" + " --- |" * 8]
    for epsilon, cell in large.stored.get(name, {}).items():
        told = [{**x["posterior"], "cpu": x["fit_cpu_s"]} for x in finished(cell)]
        bad = sum(p["r_hat"] > 1.01 or p["effective"] < 400 or p["diverged"] > 0.01 for p in told)
        worst = {"r_hat": max, "effective": min, "diverged": max, "draws": max, "cpu": max}
        texts = [
            f"{statistics.median(p[k] for p in told):.4g} (worst {f(p[k] for p in told):.4g})"
            for k, f in worst.items()
        ]
        out.append(f"| {epsilon:g} | {len(told)} | {bad} | " + " | ".join(texts) + " |")
    return "\n".join(out) if len(out) > 2 else "Not run yet."
