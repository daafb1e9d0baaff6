"""Explicit weights: time and memory of one round against the number of cells.

``python -m benchmarks.weights 5 6 7 8`` tries 10^5 to 10^8 cells, each in a process of its own, and prints one line of
JSON for each: seconds of processor time for what a round does, and the peak of memory over the weights' own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from margrave.marginal import LinearQuery
from margrave.models import EntropyProjectionFit, MultiplicativeWeightsFit
from margrave.schema import Domain
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript

ANSWERS = 100
"""Single cells of three-way marginals that were measured before."""


def domain_of(power: int) -> Domain:
    """Columns of ten codes, of five and of two: 10^power cells in all."""
    sizes = [10] * (power - 2) + [5, 5, 2, 2]
    return Domain.of({f"c{i}": s for i, s in enumerate(sizes)})


def answers(domain: Domain, rng: np.random.Generator) -> list[Answer]:
    """Single cells of triples of columns, all different."""
    found: dict[LinearQuery, Answer] = {}
    triples = list(combinations(domain.attributes, 3))
    while len(found) < ANSWERS:
        clique = triples[rng.integers(len(triples))]
        query = LinearQuery(clique, tuple((int(rng.integers(s)),) for s in domain.shape(clique)))
        count = round(50_000 / domain.cells(clique) * 2.0 * rng.random())
        found[query] = Answer(query, count, 20.0, Fraction(1, 100))
    return list(found.values())


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time, and what came of it."""
    start = time.process_time()
    done = work()
    return round(time.process_time() - start, 3), done


def peak() -> float:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def one_round(power: int) -> dict[str, Any]:
    """What a round does at one size."""
    rng, domain, before = np.random.default_rng(0), domain_of(power), peak()
    total = PublicTotal(50_000)
    known = Transcript((total, *answers(domain, rng)))
    triples = list(combinations(domain.attributes, 3))
    values = np.full(domain.shape(triples[0]), 50_000 // domain.cells(triples[0]))
    grown = known + Transcript((Measurement(triples[0], values, 20.0, Fraction(1, 100)),))
    project, multiply = EntropyProjectionFit(), MultiplicativeWeightsFit(passes=10)
    start, model = timed(lambda: project(domain, Transcript((total,)), rng=rng))
    seconds, most = {"the start": start}, {"the start": (peak() - before) / (8 * domain.cells())}
    for what, work in {
        f"{len(triples)} triples": lambda: model.answer(triples),
        "projection, 25 steps": lambda: project(domain, known, rng=rng, warm=model),
        "multiplicative weights, 10 passes": lambda: multiply(domain, known, rng=rng, warm=model),
        "projection with a whole triple": lambda: project(domain, grown, rng=rng, warm=model),
        "50,000 records": lambda: model.sample(rng=rng),
    }.items():
        seconds[what] = timed(work)[0]
        most[what] = round((peak() - before) / (8 * domain.cells()), 2)
    return {"cells": domain.cells(), "seconds": seconds, "memory over weights": most}


def measured(power: int) -> dict[str, Any]:
    """One round; kernels are compiled, or read, in a small one before."""
    one_round(3)
    return one_round(power)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(int(sys.argv[2]))))
    else:
        for power in sys.argv[1:]:
            subprocess.run([sys.executable, "-m", "benchmarks.weights", "--one", power], check=True)
