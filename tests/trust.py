"""The long versions of the proofs, and the page that says what they found.

``python tests/trust.py`` runs everything at full length (most of a day: each loader alone is fuzzed for an hour) and
writes docs/trust-results.json and docs/trust-results.md. ``--minutes 8`` (or TRUST_MINUTES=8) shares out so many; the
page says how much of each was run. ``--only audit`` runs one part and keeps what is known of the others.
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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import margrave
import mutants
from audit import TOY, Bound, audit_loss, audit_noise
from conformance import plain
from fuzz import LOADERS
from margrave.mechanisms import MECHANISMS, GaussianMechanism
from margrave.schema import Schema
from test_mechanisms_noninterference import CONFIGURATIONS
from test_mechanisms_replay import BUDGETS, NEIGHBOURS, cases_of, drawn, ratios
from test_trust_audit import Scaled
from tiny_table import UNITS

ROOT = Path(__file__).parents[1]
DATA, PAGE = ROOT / "docs" / "trust-results.json", ROOT / "docs" / "trust-results.md"
SECONDS_A_MUTANT = 8.0


@dataclass(frozen=True)
class Result:
    """One bar: what is asked, what was reached and run, whether that is enough, and details for the page."""

    part: str
    bar: str
    figure: str
    met: bool
    command: str
    seconds: float
    date: str
    version: str
    details: list[list[str]] = field(default_factory=list)


Found = tuple[str, bool, list[list[str]]]
"""The figure in words, whether the bar is met as far as was run, and rows of a table (the first is its head)."""


def pytest_counts(*arguments: str) -> tuple[int, bool, str]:
    """How many tests passed, whether all that ran did, and the last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--tb=short", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-300:]
    passed = re.search(r"(\d+) passed", last)
    return int(passed[1]) if passed else 0, done.returncode == 0, last


# The parts. Each is given seconds, math.inf for its full length.


def replay(seconds: float) -> Found:
    """Loss replay on random neighbours, over all mechanisms and units in turn until the time or the pairs are up."""
    combinations = [(name, unit) for name in MECHANISMS for unit in UNITS]
    pairs, worst, start = 0, 0.0, time.monotonic()
    recordings = 0
    while recordings < 10_000 // NEIGHBOURS and (not recordings or time.monotonic() - start < seconds):
        for name, unit in combinations:
            rng = np.random.default_rng([recordings, 77])
            cases = cases_of(name, unit)
            mechanism, one, others = drawn(cases[recordings % len(cases)], unit, rng)
            found = ratios(mechanism, unit, [(one, others)], BUDGETS[recordings % 3], seed=recordings)
            worst = max(worst, *(float(ratio) for _, ratio in found))
            pairs += len(others)
        recordings += 1
    each = pairs // len(combinations)
    return f"{each:,} pairs for each of {len(combinations)} combinations; largest ratio {worst:.12g}", worst <= 1, []


def interference(_: float) -> Found:
    """Non-interference replay, with its planted leaks."""
    passed, good, last = pytest_counts("tests/test_mechanisms_noninterference.py")
    told = "0 differing bytes" if good else last
    return f"{len(CONFIGURATIONS)} configurations × 3 tables, {passed} tests: {told}", good, []


def planted(seconds: float) -> Found:
    """Privacy mutants: all, or as many as there is time for, spread over the list."""
    chosen = mutants.mutants()
    affordable = max(5, int((seconds - 30) / SECONDS_A_MUTANT)) if math.isfinite(seconds) else len(chosen)
    step = max(1, math.ceil(len(chosen) / affordable))
    outcomes = list(mutants.run(chosen[::step]))
    killed = [o for o in outcomes if o.killer]
    rows = [["hazard", "planted bug", "file", "killed by"]]
    for o in outcomes:
        killer = f"`{o.killer.removeprefix('tests/')}`" if o.killer else "**nothing**"
        rows.append([str(o.mutant.hazard), o.mutant.name, o.mutant.file, killer])
    return (
        f"{len(killed)} of {len(outcomes)} killed (of {len(chosen)} in the list)",
        len(killed) == len(outcomes),
        rows,
    )


def audits(seconds: float) -> Found:
    """Audits of every mechanism, and of planted noise too small."""
    milliseconds = {name: _toy(name, 20) for name in MECHANISMS}
    whole = sum(milliseconds.values()) * 3.2 / 1000  # two worlds of noise alone, and two with a replay
    runs = 5000 if not math.isfinite(seconds) else int(min(5000, max(50, seconds / 1.3 / whole)))
    rows = [["mechanism", "runs a world", "mu", "epsilon by transcript", "epsilon by output"]]
    good = True
    for name in MECHANISMS:
        make = partial(plain, name, TOY)
        noise, (transcript, output) = audit_noise(make, runs), audit_loss(make, runs)
        good = good and noise.kept and transcript.kept and output.kept
        rows.append([name, f"{runs:,}", *(_words(b) for b in (noise, transcript, output))])
    planted_runs = max(3000, runs)
    wrong = audit_noise(GaussianMechanism, planted_runs, Scaled(1 / 1.14))
    told = f"{_words(wrong)}: {'missed' if wrong.kept else 'caught'}"
    rows.append(["gaussian, noise too small by 1.14 (planted)", f"{planted_runs:,}", told, "", ""])
    figure = f"{runs:,} runs a world: {'no' if good else 'AN'} alarm on sound code; planted noise 1.14 times too small"
    return f"{figure} {'NOT ' if wrong.kept else ''}caught", good and not wrong.kept, rows


def _words(bound: Bound) -> str:
    return f"at least {bound.learnt:.2f} of {bound.promised:.2f}"


def toy(_: float) -> Found:
    """How long the whole call takes on four rows of three binary columns."""
    rows = [["mechanism", "median ms"]] + [[name, f"{_toy(name, 60):.1f}"] for name in MECHANISMS]
    slowest = max(float(ms) for _, ms in rows[1:])
    return f"at most {slowest:.1f} ms of processor time (median of 60 calls)", slowest <= 20, rows


def _toy(name: str, calls: int) -> float:
    schema = Schema.coded({"a": 2, "b": 2, "c": 2})
    table = pa.table({"a": [0, 1, 1, 0], "b": [0, 1, 1, 1], "c": [0, 0, 1, 1]})
    found = []
    for seed in range(calls + 5):
        start = time.process_time()
        margrave.synthesize(table, schema, epsilon=7.0, delta=1e-2, mechanism=plain(name, schema.domain), seed=seed)
        found.append(1000 * (time.process_time() - start))
    return statistics.median(found[5:])


def fuzzing(seconds: float) -> Found:
    """Damaged files of every kind, each loader in a process of its own, for an hour each."""
    each = min(3600.0, seconds / len(LOADERS))
    rows, good = [["loader", "files", "refused", "slowest (s)", "seed", "harm"]], True
    for name in LOADERS:
        command = [sys.executable, "tests/fuzz.py", name, "--seconds", str(each)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        facts = json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else {"harm": "the process died"}
        good = good and not facts["harm"]
        files = facts.get("read", 0) + facts.get("refused", 0)
        told = (f"{files:,}", f"{facts.get('refused', 0):,}", str(facts.get("slowest")), str(facts.get("seed")))
        rows.append([name, *told, facts["harm"].strip().splitlines()[-1][:200] if facts["harm"] else "none"])
    return f"{each / 60:.1f} minutes for each of {len(LOADERS)} loaders: {'none' if good else 'HARM'} found", good, rows


def samplers(seconds: float) -> Found:
    """Both samplers against the exact law, and workers that repeat nothing."""
    long = not math.isfinite(seconds)
    passed, good, last = pytest_counts("tests/test_privacy_noise.py", *(["-m", ""] if long else []))
    draws = "1e5 draws, 64 + 64 workers" if long else "1e4 draws of OpenDP's and 5e4 of ours, 4 workers"
    return f"12 scales, {draws}: {f'{passed} tests passed' if good else last}", good, []


def canaries(_: float) -> Found:
    """Canaries, order, threads, boundaries, failures."""
    files = ["tests/test_trust_canary.py", "tests/test_trust_noise.py", "tests/test_house_hazards.py"]
    passed, good, last = pytest_counts(*files)
    return f"20 canaries: {f'0 hits; {passed} tests passed' if good else last}", good, []


@dataclass(frozen=True)
class Part:
    """A part: its bar, its share of the time where that is limited, and what runs it."""

    bar: str
    share: float
    run: Callable[[float], Found]


PARTS: dict[str, Part] = {
    "replay": Part("loss ÷ charge ≤ 1 for every mechanism × 4 units × 10,000 pairs", 0.14, replay),
    "interference": Part("every mechanism × 20 configurations × 3 tables: 0 differing bytes", 0.06, interference),
    "mutants": Part("at least 30 planted bugs, all killed", 0.4, planted),
    "audit": Part(
        "at mu = 2, 5,000 runs a world: no alarm on sound code, noise 1.14 times too small is caught", 0.16, audits
    ),
    "toy": Part("a whole call on a toy table takes at most 20 ms", 0.02, toy),
    "fuzz": Part("every loader one hour: no crash, no leaked value, no hang", 0.14, fuzzing),
    "samplers": Part("χ² at 12 scales, 1e5 draws, 1e-6 each; 64 + 64 workers repeat nothing", 0.05, samplers),
    "canaries": Part("20 canaries in the rows: 0 in any file, word or live object", 0.03, canaries),
}


# The page.


def version() -> str:
    """margrave's version and the commit it was run on, with a sign where files had been changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"{margrave.__version__} ({done.stdout.strip() or 'no commit known'})"


def page(results: list[Result]) -> str:
    """The results as Markdown."""
    lines = [
        "# What was run, and what it found",
        "",
        "Written by `make trust` from `trust-results.json`; not edited by hand. *Reached* says how much was run; a run",
        "shortened by `--minutes` meets its bar only as far as that goes. The threats behind the bars are in",
        "[the table of hazards](hazards.md), the limits in [the promise](promise.md).",
        "",
        "| bar | reached | met | run with | took | date | version |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        run = [f"`{r.command}`", f"{r.seconds / 60:.1f} min", r.date, r.version]
        shortened = "--minutes" in r.command
        met = ("as far as was run" if shortened else "yes") if r.met else "**no**"
        lines.append(_row([r.bar, r.figure, met, *run]))
    for result in results:
        if result.details:
            head, *rows = result.details
            lines += ["", f"## {result.part.capitalize()}", "", _row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(c.replace('|', '&#124;') for c in cells)} |"


def known() -> dict[str, Result]:
    """The results so far, by part."""
    if not DATA.exists():
        return {}
    return {entry["part"]: Result(**entry) for entry in json.loads(DATA.read_text(encoding="utf-8"))}


def kept(results: dict[str, Result]) -> None:
    """Write the data and the page."""
    ordered = [results[name] for name in PARTS if name in results]
    DATA.write_text(json.dumps([asdict(r) for r in ordered], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(ordered), encoding="utf-8")


def main() -> int:
    """Run the parts asked for, one after the other, and keep what each found as soon as it is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("TRUST_MINUTES") or math.inf))
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    results, missed = known(), 0
    for result in found(options.only, options.minutes):
        results[result.part] = result
        missed += not result.met
        print(f"{result.part}: {result.figure}{'' if result.met else '  NOT MET'} ({result.seconds:.0f} s)", flush=True)
        kept(results)
    return 1 if missed else 0


def found(parts: list[str], minutes: float) -> Iterator[Result]:
    """The results of these parts, in so many minutes altogether."""
    limited = math.isfinite(minutes)
    shares = sum(PARTS[p].share for p in parts)
    for name in parts:
        begin = time.monotonic()
        seconds = 60 * minutes * PARTS[name].share / shares if limited else math.inf
        figure, met, details = PARTS[name].run(seconds)
        chosen = [] if parts == list(PARTS) else ["--only", *parts]
        asked = ["python tests/trust.py", *[f"--minutes {minutes:g}"] * limited, *chosen]
        yield Result(
            part=name,
            bar=PARTS[name].bar,
            figure=figure,
            met=met,
            command=" ".join(asked),
            seconds=round(time.monotonic() - begin, 1),
            date=datetime.now(UTC).date().isoformat(),
            version=version(),
            details=details,
        )


if __name__ == "__main__":
    sys.exit(main())
