"""The long versions of the proofs, and the page that says what they found.

``python -m tests.support.trust`` runs everything at full length (most of a day: each loader alone is fuzzed for an
hour) and
writes docs/trust-results.json and docs/trust-results.md. ``--minutes 8`` (or TRUST_MINUTES=8) shares out so many; the
page says how much of each was run. ``--only audit`` runs one part and keeps what is known of the others, ``--only fuzz
--loaders csv`` one loader, and keeps the others. ``--jobs 2`` runs mechanisms, units and loaders in two
processes at a time.

Results are kept only for committed source. A run on uncommitted changes is refused; ``--allow-dirty`` runs it and keeps
nothing. ``--page`` runs nothing: it counts again how many lines of privacy-relevant source changed since each part was
run, and writes the page.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

import margrave
from margrave.accounting import Unit
from margrave.mechanisms import MECHANISMS, GaussianMechanism
from margrave.schema import Schema
from margrave.testing.loss import BUDGETS, ratios
from tests.mechanisms.test_replay import cases_of, drawn
from tests.support import mutants
from tests.support.audit import Bound, audit_loss, audit_noise, quick
from tests.support.conformance import CASES, OWN_COLUMNS, Estimated, hurried, remembering
from tests.support.faults import COPIES, DENIALS, KILLS
from tests.support.freshness import UNKNOWN, commit_of, freshness, head, uncommitted
from tests.support.fuzz import LOADERS
from tests.support.scale import measured
from tests.support.tiny_table import UNITS
from tests.trust.test_audit import Scaled

T, R = TypeVar("T"), TypeVar("R")

ROOT = Path(__file__).parents[2]
DATA, PAGE = ROOT / "docs" / "trust-results.json", ROOT / "docs" / "trust-results.md"
WRITTEN = tuple(str(path.relative_to(ROOT)) for path in (DATA, PAGE))
SECONDS_A_MUTANT = 8.0
FAULTS = (*KILLS, *DENIALS, *COPIES)
POINTS, SECONDS_A_POINT = 5800, 0.25
"""Of all kinds of fault together, about."""

UNEVEN = 2.0
"""How much more than its share ten times the rows may cost: caches are left behind."""

RECORDINGS, NEIGHBOURS = 500, 20
"""Of the replay at full length: 10,000 pairs for each mechanism and unit. A recording costs as much as many replays."""

HOUR = 60.0
"""Minutes that each loader is fuzzed for, at full length."""

NAMED = ("schema", "csv", "release")
"""Loaders that the bar names. Parquet comes through CSV's engine, and a posterior is part of a release file."""


@dataclass(frozen=True)
class Result:
    """One bar: what is asked, what was reached and run, whether that is enough, and details for the page.

    ``changed`` lines of privacy-relevant source, counted at the commit ``as_of``, differ from what was run.
    """

    part: str
    bar: str
    figure: str
    met: bool
    command: str
    seconds: float
    date: str
    version: str
    details: list[list[str]] = field(default_factory=list)
    whole: bool | None = None
    changed: int | None = None
    as_of: str = UNKNOWN

    @property
    def versions(self) -> list[str]:
        """The versions that it was run at: one, or one of each row where rows were run apart."""
        apart = bool(self.details) and self.details[0][-1] == "version"
        return [row[-1] for row in self.details[1:]] if apart else [self.version]

    @property
    def stale(self) -> bool:
        """Whether privacy-relevant source changed since it was run, or that is not known."""
        return self.changed != 0

    @property
    def since(self) -> str:
        """The lines changed since, for the page."""
        if any(commit is not None and commit.edited for commit in map(commit_of, self.versions)):
            return "not known (run on edited files): **stale**"
        if self.changed is None:
            return "not known: **stale**"
        return f"{self.changed:,}: **stale**" if self.changed else "0"

    @property
    def shortened(self) -> bool:
        """Whether less was run than the bar asks for."""
        return "--minutes" in self.command if self.whole is None else not self.whole


class Found(NamedTuple):
    """The figure in words, whether the bar is met as far as was run, and rows of a table (the first is its head).

    ``whole``: whether all that the bar asks for was run; None where the command tells.
    """

    figure: str
    met: bool
    details: list[list[str]]
    whole: bool | None = None


class Ask(NamedTuple):
    """How long a part may take, math.inf for its full length; in how many processes; and which loaders are fuzzed."""

    seconds: float = math.inf
    jobs: int = 1
    loaders: tuple[str, ...] = tuple(LOADERS)


def spread(work: Callable[[T], R], tasks: Iterable[T], jobs: int) -> Iterator[R]:
    """The results in order, from so many processes at a time."""
    if jobs == 1:
        yield from map(work, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, tasks)


def pytest_counts(*arguments: str) -> tuple[int, bool, str]:
    """How many tests passed, whether all that ran did, and the last line."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-300:]
    passed = re.search(r"(\d+) passed", last)
    return int(passed[1]) if passed else 0, done.returncode == 0, last


# The parts.


def replay(ask: Ask) -> Found:
    """Loss replay on random neighbors, for each mechanism and unit until its share of the time or the pairs are up."""
    combinations = [(name, unit) for name in MECHANISMS for unit in UNITS]
    seconds = ask.seconds * ask.jobs / len(combinations)
    outcomes = list(spread(partial(_replayed, seconds=seconds), combinations, ask.jobs))
    fewest, worst = min(pairs for pairs, _ in outcomes), max(ratio for _, ratio in outcomes)
    many = f"{fewest:,} pairs or more for each of {len(combinations)} combinations"
    return Found(f"{many}; largest ratio {worst:.12g}", worst <= 1, [])


def _replayed(combination: tuple[str, Unit], seconds: float) -> tuple[int, float]:
    """How many pairs of one mechanism and unit, and the largest ratio of loss to charge."""
    (name, unit), pairs, worst, start = combination, 0, 0.0, time.monotonic()
    cases = cases_of(name, unit)
    for i in range(RECORDINGS):
        if i and time.monotonic() - start > seconds:
            break
        mechanism, one, others = drawn(
            cases[i % len(cases)], unit, np.random.default_rng([i, 77]), NEIGHBOURS
        )
        budget, pairs_of = BUDGETS[i % len(BUDGETS)], [(one, others)]
        found = ratios(remembering(hurried(mechanism)), unit, pairs_of, budget, seed=i)
        worst = max(worst, *(float(ratio) for _, ratio in found))
        pairs += len(others)
    return pairs, worst


def interference(_: Ask) -> Found:
    """Non-interference replay, of mechanisms and from the command line, with its planted leaks."""
    files = [
        "tests/testing/test_mechanisms.py::test_every_byte_follows_from_the_answers",
        "tests/mechanisms/test_noninterference.py",
        "tests/boundary/test_interference.py",
    ]
    passed, good, last = pytest_counts(*files, "-m", "")
    told = "0 differing bytes" if good else last
    configurations = len(BUDGETS) * (len(CASES) * len(UNITS) + len(OWN_COLUMNS))
    return Found(f"{configurations} configurations × 3 tables, {passed} tests: {told}", good, [])


def _planted(chosen: Sequence[mutants.Mutant]) -> list[mutants.Outcome]:
    return list(mutants.run(chosen))


def planted(ask: Ask) -> Found:
    """Privacy mutants: all, or as many as there is time for, spread over the list."""
    chosen = mutants.mutants()
    affordable = (
        max(5, int((ask.seconds - 30) / SECONDS_A_MUTANT))
        if math.isfinite(ask.seconds)
        else len(chosen)
    )
    step = max(1, math.ceil(len(chosen) / (affordable * ask.jobs)))
    parts = [chosen[::step][i :: ask.jobs] for i in range(ask.jobs)]
    found = {o.mutant.name: o for part in spread(_planted, parts, ask.jobs) for o in part}
    outcomes = [found[m.name] for m in chosen if m.name in found]
    killed = [o for o in outcomes if o.killer]
    rows = [["hazard", "planted bug", "file", "killed by"]]
    for o in outcomes:
        killer = f"`{o.killer.removeprefix('tests/')}`" if o.killer else "**nothing**"
        rows.append([str(o.mutant.hazard), o.mutant.name, o.mutant.file, killer])
    figure = f"{len(killed)} of {len(outcomes)} killed (of {len(chosen)} in the list)"
    return Found(figure, len(killed) == len(outcomes), rows)


def audits(ask: Ask) -> Found:
    """Audits of every mechanism, and of planted noise too small."""
    whole = sum(_toy(20).values()) * 3 / 1000  # two worlds, with noise alone and with everything
    affordable = ask.seconds * ask.jobs / 1.3 / whole
    runs = 5000 if affordable >= 5000 else int(max(50, affordable))
    rows = [["mechanism", "runs a world", "mu", "epsilon by transcript", "epsilon by output"]]
    good = True
    for name, bounds in zip(
        MECHANISMS, spread(partial(_audited, runs=runs), MECHANISMS, ask.jobs), strict=True
    ):
        good = good and all(b.kept for b in bounds)
        rows.append([name, f"{runs:,}", *map(_words, bounds)])
    planted_runs = max(3000, runs)
    wrong = audit_noise(GaussianMechanism, planted_runs, Scaled(1 / 1.14))
    told = f"{_words(wrong)}: {'missed' if wrong.kept else 'caught'}"
    rows.append(["gaussian, noise too small by 1.14 (planted)", f"{planted_runs:,}", told, "", ""])
    figure = f"{runs:,} runs a world: {'no' if good else 'AN'} alarm on sound code; planted noise 1.14 times too small"
    return Found(f"{figure} {'NOT ' if wrong.kept else ''}caught", good and not wrong.kept, rows)


def _audited(name: str, runs: int) -> tuple[Bound, Bound, Bound]:
    """What was learnt of a mechanism from noise, transcript and output."""
    make = partial(quick, name)
    return (audit_noise(make, runs), *audit_loss(make, runs))


def _words(bound: Bound) -> str:
    return f"at least {bound.learnt:.2f} of {bound.promised:.2f}"


def toy(_: Ask) -> Found:
    """How long the whole call takes on four rows of three binary columns."""
    rows = [["mechanism", "median ms", "with"]]
    rows += [[name, f"{ms:.1f}", set_apart(quick(name))] for name, ms in _toy(60).items()]
    slowest = max(float(ms) for _, ms, _ in rows[1:])
    return Found(
        f"at most {slowest:.1f} ms of processor time (median of 60 calls)", slowest <= 20, rows
    )


def _toy(calls: int) -> dict[str, float]:
    """Median milliseconds of processor time a call, by mechanism.

    The mechanisms take turns, so that a slow minute of the machine is shared by all.
    """
    schema = Schema.coded({"a": 2, "b": 2, "c": 2})
    table = pa.table({"a": [0, 1, 1, 0], "b": [0, 1, 1, 1], "c": [0, 0, 1, 1]})
    found: dict[str, list[float]] = {name: [] for name in MECHANISMS}
    for seed in range(calls + 5):
        for name in MECHANISMS:
            start = time.process_time()
            margrave.synthesize(
                table, schema, epsilon=7.0, delta=1e-5, mechanism=quick(name), seed=seed
            )
            found[name].append(1000 * (time.process_time() - start))
    return {name: statistics.median(times[5:]) for name, times in found.items()}


def set_apart(mechanism: Any) -> str:
    """Which parameters differ from a mechanism's defaults, its public table left out."""
    parts = []
    for f in fields(mechanism):
        value = getattr(mechanism, f.name)
        usual = (
            f.default
            if f.default is not MISSING
            else f.default_factory()
            if callable(f.default_factory)
            else None
        )
        if f.name == "public" or value == usual:
            continue
        if isinstance(value, Estimated):
            parts.append("an estimate in place of the posterior")
        elif f.name in ("fit", "mechanism"):
            parts.append(f"{type(value).__name__}({set_apart(value)})")
        else:
            parts.append(f"{f.name}={value!r}")
    return ", ".join(parts) if parts or not hasattr(mechanism, "run") else "its defaults"


FUZZED = [
    "loader",
    "processor minutes",
    "files",
    "refused",
    "slowest (s)",
    "seeds",
    "harm",
    "version",
]


def fuzzing(ask: Ask) -> Found:
    """Damaged files of every kind, each loader in a process of its own, for an hour of processor time each.

    Rows of loaders that are not asked for are kept, and runs of one loader in one version add up.
    """
    before = known().get("fuzz")
    rows = (
        {row[0]: row for row in before.details[1:]}
        if before and before.details[:1] == [FUZZED]
        else {}
    )
    each = min(60 * HOUR, ask.seconds * ask.jobs / len(ask.loaders))
    facts = spread(partial(_fuzzed, seconds=each), ask.loaders, ask.jobs)
    for name, new in zip(ask.loaders, facts, strict=True):
        rows[name] = added(rows.get(name), row_of(name, new, version()))
    return fuzzed([rows[name] for name in LOADERS if name in rows])


def _fuzzed(name: str, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.fuzz", name, "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    died = f"the process died: {done.stderr.strip()[-500:]}"
    facts: dict[str, Any] = (
        json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else {"harm": died}
    )
    return facts


def row_of(name: str, facts: dict[str, Any], version: str) -> list[str]:
    """What one run of a loader's fuzzer said, as a row."""
    files, refused = facts.get("read", 0) + facts.get("refused", 0), facts.get("refused", 0)
    numbers = (
        f"{facts.get('seconds', 0) / 60:.1f}",
        f"{files:,}",
        f"{refused:,}",
        f"{facts.get('slowest', 0):.3f}",
    )
    harm = facts["harm"].strip().splitlines()[-1][:200] if facts["harm"] else "none"
    return [name, *numbers, str(facts.get("seed")), harm, version]


def added(old: list[str] | None, new: list[str]) -> list[str]:
    """Two runs of one loader as one row: the new one alone where the version is another, or either did harm."""
    if old is None or old[-1] != new[-1] or old[-2] != "none" or new[-2] != "none":
        return new
    minutes = f"{float(old[1]) + float(new[1]):.1f}"
    files, refused = (f"{_whole(old[i]) + _whole(new[i]):,}" for i in (2, 3))
    slowest = f"{max(float(old[4]), float(new[4])):.3f}"
    return [new[0], minutes, files, refused, slowest, f"{old[5]}, {new[5]}", *new[-2:]]


def fuzzed(rows: Sequence[list[str]]) -> Found:
    """What the rows of all loaders known come to."""
    good = all(row[-2] == "none" for row in rows)
    minutes, files = {row[0]: float(row[1]) for row in rows}, sum(_whole(row[2]) for row in rows)
    spent = ", ".join(f"{name} {minutes[name]:.0f}" for name in minutes)
    whole = all(minutes.get(name, 0.0) >= HOUR for name in NAMED)
    figure = f"{files:,} files; processor minutes: {spent}; {'none' if good else 'HARM'} found"
    return Found(figure, good, [FUZZED, *rows], whole)


def _whole(number: str) -> int:
    return int(number.replace(",", ""))


def samplers(ask: Ask) -> Found:
    """Both samplers against the exact law, and workers that repeat nothing."""
    long = not math.isfinite(ask.seconds)
    passed, good, last = pytest_counts("tests/privacy/test_noise.py", *(["-m", ""] if long else []))
    draws = (
        "1e5 draws, 64 + 64 workers" if long else "1e4 draws of OpenDP's and 5e4 of ours, 4 workers"
    )
    return Found(f"12 scales, {draws}: {f'{passed} tests passed' if good else last}", good, [])


def canaries(_: Ask) -> Found:
    """Canaries, order, threads, boundaries, failures."""
    files = [
        "tests/trust/test_canary.py",
        "tests/trust/test_noise.py",
        "tests/house/test_hazards.py",
    ]
    passed, good, last = pytest_counts(*files, "-m", "")
    return Found(f"20 canaries: {f'0 hits; {passed} tests passed' if good else last}", good, [])


def faulty(ask: Ask) -> Found:
    """Runs that are killed, cut off from power, copied, or denied disk or memory, at every point or a few."""
    every = (
        1
        if not math.isfinite(ask.seconds)
        else max(1, math.ceil(POINTS * SECONDS_A_POINT / ask.seconds))
    )
    rows, good, points = [["fault", "points", "found"]], True, 0
    for kind, facts in zip(
        FAULTS, spread(partial(_played, every=every), FAULTS, ask.jobs), strict=True
    ):
        good, points = good and not facts["failed"], points + facts["points"]
        rows.append([kind, str(facts["points"]), "; ".join(facts["failed"])[:300] or "nothing"])
    tests = "tests/cli/test_ledger.py::test_killed_and_interrupted_from_outside"
    shared = "tests/accounting/test_ledger_file.py::test_two_processes_share_one_cap"
    passed, ended, last = pytest_counts(tests, shared, "-m", "")
    rows.append(["kill -9 and Ctrl-C from outside; 2 processes × 100 runs on one cap", "", last])
    told = "0 under-debits, 0 damaged files, 0 repeated answers" if good else "HARM"
    figure = f"{points} points, a second fault while resuming each: {told}; {passed} tests from outside passed"
    return Found(figure, good and ended, rows, every == 1 and points >= 200)


def _played(kind: str, every: int) -> dict[str, Any]:
    """What came of one kind of fault."""
    command = [sys.executable, "-m", "tests.support.faults", kind, "--every", str(every)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    died = {"points": 0, "failed": [f"it died: {done.stderr.strip()[-300:]}"]}
    facts: dict[str, Any] = json.loads(done.stdout) if done.stdout else died
    return facts


def scaling(ask: Ask) -> Found:
    """Time and memory of a whole call, from 1e4 rows to 1e7, or 1e6 where there is no time.

    Up to 1e6 rows, where starting takes most of the time, they are those of the median time of five calls.
    """
    sizes = [10**k for k in range(4, 8 if ask.seconds > 150 else 7)]
    runs = [[measured(rows) for _ in range(5 if rows <= 10**6 else 1)] for rows in sizes]
    found = [sorted(calls, key=lambda f: f["cpu_s"])[len(calls) // 2] for calls in runs]
    rows = [
        [
            "rows",
            "table (MB)",
            "processor s",
            "memory (MB)",
            "named by the dry run (MB)",
            "3 × table + least (MB)",
        ]
    ]
    least, longest = found[0], found[-1]
    good = True
    for f in found:
        bound = least["peak_mb"] + 3 * f["data_mb"]
        good = good and f["peak_mb"] <= min(bound, f["planned_mb"])
        figures = (f["data_mb"], f["cpu_s"], f["peak_mb"], f["planned_mb"], bound)
        rows.append([f"{f['rows']:,}", *(f"{x:,.1f}" for x in figures)])
    seconds = [(f["cpu_s"] - least["cpu_s"]) / (f["rows"] - least["rows"]) for f in found[-2:]]
    figure = (
        f"10 times the rows cost {10 * seconds[1] / seconds[0]:.1f} times the time beyond that of {least['rows']:,};"
        f" {longest['rows']:,} rows take {longest['peak_mb']:,.0f} MB,"
        f" {longest['peak_mb'] / longest['data_mb']:.1f} times the table"
    )
    return Found(figure, good and seconds[1] <= UNEVEN * seconds[0], rows, len(sizes) == 4)


@dataclass(frozen=True)
class Part:
    """A part: its bar, its share of the time where that is limited, and what runs it."""

    bar: str
    share: float
    run: Callable[[Ask], Found]


PARTS: dict[str, Part] = {
    "replay": Part("loss ÷ charge ≤ 1 for every mechanism × 4 units × 10,000 pairs", 0.14, replay),
    "interference": Part(
        "every mechanism × 20 configurations × 3 tables: 0 differing bytes", 0.06, interference
    ),
    "mutants": Part("at least 30 planted bugs, all killed", 0.4, planted),
    "audit": Part(
        "at mu = 2, 5,000 runs a world: no alarm on sound code, noise 1.14 times too small is caught",
        0.16,
        audits,
    ),
    "toy": Part("a whole call on a toy table takes at most 20 ms", 0.02, toy),
    "fuzz": Part(
        "one hour of damaged files for each loader (schema, CSV, release): no crash, no hang, no value shown",
        0.14,
        fuzzing,
    ),
    "faults": Part(
        "200 kills, full disks and lacks of memory: 0 under-debits, 0 torn files, 0 repeated measurements",
        0.05,
        faulty,
    ),
    "scale": Part(
        "1e4 to 1e7 rows: a row takes at most twice the time, memory ≤ 3 × data + the model, and named before",
        0.05,
        scaling,
    ),
    "samplers": Part(
        "χ² at 12 scales, 1e5 draws, 1e-6 each; 64 + 64 workers repeat nothing", 0.05, samplers
    ),
    "canaries": Part("20 canaries in the rows: 0 in any file, word or live object", 0.03, canaries),
}


# The page.


def version() -> str:
    """Return margrave's version and the commit it is run on, with a sign if files were changed since."""
    edited = "" if uncommitted(ROOT, WRITTEN) == [] else "+"
    return f"{margrave.__version__} ({head(ROOT)}{edited})"


def page(results: list[Result]) -> str:
    """The results as Markdown."""
    lines = [
        "# What was run, and what it found",
        "",
        "Written by `make trust` from `trust-results.json`. *Reached* says how much was run; a run that `--minutes`",
        "shortened has met its bar *as far as was run*. [The table of hazards](hazards.md) has the threats behind the",
        "bars, and [the promise](promise.md) has the limits.",
        "",
        "*Lines since* counts the lines of the source that the part is about, and of its own tests, that were added or",
        "removed since it was run, without docstrings and comments. A part is **stale** if there are any: it is then a",
        "result about other source. Replay, audits and samplers are about what is between coded rows and noisy",
        "answers, the others also about what reads tables and what is made of the answers.",
        f"As of commit {', '.join(sorted({r.as_of for r in results}))}.",
        "",
        "| bar | reached | met | run with | took | date | version | lines since |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        run = [f"`{r.command}`", f"{r.seconds / 60:.1f} min", r.date, r.version, r.since]
        met = ("as far as was run" if r.shortened else "yes") if r.met else "**no**"
        lines.append(_row([r.bar, r.figure, met, *run]))
    for result in results:
        if result.details:
            heading, *rows = result.details
            lines += ["", f"## {result.part.capitalize()}", ""]
            lines += [_row(heading), _row(["---"] * len(heading)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(c.replace('|', '&#124;') for c in cells)} |"


def known() -> dict[str, Result]:
    """The results so far, by part."""
    if not DATA.exists():
        return {}
    return {
        entry["part"]: Result(**entry) for entry in json.loads(DATA.read_text(encoding="utf-8"))
    }


def kept(results: dict[str, Result]) -> None:
    """Write the data and the page, with the lines changed since each part was run."""
    ordered = [counted(results[name]) for name in PARTS if name in results]
    DATA.write_text(
        json.dumps([asdict(r) for r in ordered], indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )
    PAGE.write_text(page(ordered), encoding="utf-8")


def counted(result: Result) -> Result:
    """The result, with the lines changed since it was run."""
    changed, as_of = freshness(ROOT, result.part, result.versions)
    return replace(result, changed=changed, as_of=as_of)


def refusal() -> str:
    """Return why results of this working tree cannot be kept; empty if they can."""
    files = uncommitted(ROOT, WRITTEN)
    if files == []:
        return ""
    what = (
        "is not a git repository"
        if files is None
        else f"has uncommitted changes ({', '.join(files[:3])}"
    )
    more = f" and {len(files) - 3} more" if files is not None and len(files) > 3 else ""
    return (
        f"The working tree {what}{more}{'' if files is None else ')'}, so no commit names the source that would be"
        " proven. Commit or stash the changes, or run with --allow-dirty, which keeps no results."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts asked for, one after the other, and keep what each found as soon as it is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=float(os.environ.get("TRUST_MINUTES") or math.inf)
    )
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="processes at a time, in replay, audit, fuzz and mutants",
    )
    parser.add_argument(
        "--loaders", nargs="*", choices=LOADERS, default=list(LOADERS), help="those to fuzz"
    )
    parser.add_argument(
        "--allow-dirty", action="store_true", help="run on uncommitted changes, and keep nothing"
    )
    parser.add_argument(
        "--page", action="store_true", help="run nothing: count changed lines again, write the page"
    )
    options = parser.parse_args(arguments)
    if options.page:
        kept(known())
        return 0
    if not options.allow_dirty and (why := refusal()):
        print(why, file=sys.stderr)
        return 2
    results, missed, begun = known(), 0, version()
    for result in found(options.only, options.minutes, options.jobs, tuple(options.loaders)):
        results[result.part] = result
        missed += not result.met
        print(
            f"{result.part}: {result.figure}{'' if result.met else '  NOT MET'} ({result.seconds:.0f} s)",
            flush=True,
        )
        if options.allow_dirty:
            continue
        if version() != begun:
            print(
                f"The source changed while {result.part} ran: its result is not kept.",
                file=sys.stderr,
            )
            return 2
        kept(results)
    return 1 if missed else 0


def found(
    parts: list[str], minutes: float, jobs: int, loaders: tuple[str, ...]
) -> Iterator[Result]:
    """The results of these parts, in so many minutes altogether."""
    limited = math.isfinite(minutes)
    shares = sum(PARTS[p].share for p in parts)
    chosen = [] if parts == list(PARTS) else ["--only", *parts]
    some = [] if loaders == tuple(LOADERS) else ["--loaders", *loaders]
    asked = [f"--minutes {minutes:g}"] * limited + [f"--jobs {jobs}"] * (jobs > 1) + chosen + some
    for name in parts:
        begin = time.monotonic()
        seconds = 60 * minutes * PARTS[name].share / shares if limited else math.inf
        figure, met, details, whole = PARTS[name].run(Ask(seconds, jobs, loaders))
        yield Result(
            part=name,
            bar=PARTS[name].bar,
            figure=figure,
            met=met,
            command=" ".join(["python -m tests.support.trust", *asked]),
            seconds=round(time.monotonic() - begin, 1),
            date=datetime.now(UTC).date().isoformat(),
            version=version(),
            details=details,
            whole=whole,
        )


if __name__ == "__main__":
    sys.exit(main())
