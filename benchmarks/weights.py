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
from margrave.models import EntropyProjectionFit, Model, MultiplicativeWeightsFit
from margrave.schema import Domain
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript
from margrave.typing import Attribute

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


def measured(power: int) -> dict[str, Any]:
    """One round of everything at one size; kernels are compiled, or read, at a small one first."""
    for small in (3, power):
        rng, domain = np.random.default_rng(0), domain_of(small)
        before, total = peak(), PublicTotal(50_000)
        known = Transcript((total, *answers(domain, rng)))
        start, model = timed(lambda: EntropyProjectionFit()(domain, Transcript((total,)), rng=rng))
        result: dict[str, Any] = {"cells": domain.cells(), "seconds": {"uniform": start}}

        def note(what: str, work: Callable[[], Any]) -> None:
            result["seconds"][what], _ = timed(work)
            used = (peak() - before) / (8 * domain.cells())
            result.setdefault("peak over weights", {})[what] = round(used, 2)

        def one(clique: tuple[Attribute, ...], warm: Model = model) -> Model:
            values = np.full(domain.shape(clique), 50_000 // domain.cells(clique))
            grown = known + Transcript((Measurement(clique, values, 20.0, Fraction(1, 100)),))
            return EntropyProjectionFit()(domain, grown, rng=rng, warm=warm)

        triples = list(combinations(domain.attributes, 3))
        note(f"{len(triples)} triples", lambda: model.answer(triples))
        note("projection, 25 steps", lambda: EntropyProjectionFit()(domain, known, rng=rng, warm=model))
        note(
            "multiplicative weights, 10 passes over 100 answers",
            lambda: MultiplicativeWeightsFit(passes=10)(domain, known, rng=rng, warm=model),
        )
        note("projection with a whole triple", lambda: one(triples[0]))
        note("50,000 records", lambda: model.sample(rng=rng))
    return result


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(int(sys.argv[2]))))
    else:
        for power in sys.argv[1:]:
            subprocess.run([sys.executable, "-m", "benchmarks.weights", "--one", power], check=True)
