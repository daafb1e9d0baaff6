"""How MWEM and PEP grow with the domain: time a round, and memory against the bytes of the histogram.

    python -m benchmarks.adaptive.scaling [--contender mwem pep] [--cells 1e5 1e6 1e7 1e8] [--rounds 10]

A table of 50,000 random records whose columns have ten codes each, all three-way marginals, epsilon = 1. Each run is a
fresh process; so is one that only imports and reads, whose memory is the base. What is stored is not run again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path

import measure
import numpy as np
from benchmarks.adaptive.contenders import CONTENDERS, found, run
from benchmarks.adaptive.tasks import SEED, Task, triples
from environments import HERE, REPOSITORY
from run import commit_of, last_words
from stored import Facts, append, read_lines

from margrave import Schema
from margrave.schema import Codes

RECORDS, CODES, KINDS = 50_000, 10, 30


def main() -> int:
    options = parse()
    if options.inside:
        inside(**json.loads(options.inside))
        return 0
    path = options.results / "scaling.jsonl"
    done = {(x["contender"], x["cells"], x["rounds"]) for x in read_lines(path)}
    for name in options.contender:
        found("margrave.mechanisms", CONTENDERS[name].mechanism)
    for cells in options.cells:
        for name in options.contender:
            if (name, cells, options.rounds) not in done:
                line = one(name, cells, options)
                append(path, line)
                shown = ("contender", "cells", "outcome", "base_mb", "peak_mb", "round_s", "round_cpu_s", "why")
                print({k: line[k] for k in shown if k in line}, flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.adaptive.scaling", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--contender", nargs="+", choices=list(CONTENDERS), default=["mwem", "pep"])
    parser.add_argument("--cells", nargs="+", type=float, default=[1e5, 1e6, 1e7, 1e8], help="powers of ten")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=3600.0)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "adaptive")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    return parser.parse_args()


def one(name: str, cells: float, options: argparse.Namespace) -> Facts:
    """One contender at one size, in a process of its own, beside one that stops before the first question."""
    commit, dirty = commit_of(REPOSITORY)
    with tempfile.TemporaryDirectory(prefix="margrave-bench-") as scratch:
        out, log = Path(scratch) / "out.json", Path(scratch) / "log.txt"
        usages = []
        for rounds in (0, options.rounds):
            told = json.dumps({"name": name, "cells": cells, "rounds": rounds, "out": str(out)})
            command = [sys.executable, "-m", "benchmarks.adaptive.scaling", "--inside", told]
            usages.append(measure.run(command, log, os.environ, options.timeout))
        base, usage = usages
        ended = not usage.timed_out and usage.status == 0
        said = json.loads(out.read_text()) if ended else {"why": last_words(log)}
    return {
        "contender": name, "cells": cells, "rounds": options.rounds, "histogram_mb": 8 * cells / 1e6,
        "outcome": "finished" if ended else "timed out" if usage.timed_out else "failed", "base_mb": base.peak_mb,
        "peak_mb": usage.peak_mb, "wall_s": usage.wall_s, "cpu_s": usage.cpu_s, **said,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": commit, "dirty": dirty,
        "machine": measure.machine(), "load": os.getloadavg()[0],
    }  # fmt: skip


def inside(name: str, cells: float, rounds: int, out: str) -> None:
    """The run itself, after a small one that compiles; with no rounds, all that comes before it."""
    run(table(3), name, {"rounds": 1}, 1.0, 0)
    task = table(round(math.log10(cells)))
    if rounds:
        start = time.perf_counter(), time.process_time()
        run(task, name, {"rounds": rounds}, 1.0, 0)
        took = time.perf_counter() - start[0], time.process_time() - start[1]
        Path(out).write_text(json.dumps({"round_s": took[0] / rounds, "round_cpu_s": took[1] / rounds}))


def table(columns: int) -> Task:
    """Records that are noisy copies of a few kinds, so that there is something to learn."""
    rng = np.random.default_rng(SEED)
    schema = Schema.coded({f"c{i}": CODES for i in range(columns)})
    kinds = rng.integers(0, CODES, (columns, KINDS))[:, rng.integers(0, KINDS, RECORDS)]
    values = np.where(rng.random(kinds.shape) < 0.3, rng.integers(0, CODES, kinds.shape), kinds)
    codes = Codes(schema.domain, values)
    return Task("scaling", f"{columns} columns", codes, triples(codes))


if __name__ == "__main__":
    sys.exit(main())
