"""Which pairs of Adult are measured besides those the regression needs: the maximum spanning tree, and private choices.

    python -m benchmarks.napsu.pairs [--runs 20] [--data DIR]

A pair's weight is ||M_ab − M_a M_bᵀ / n||₁, as MST scores it, here from the real table and at no cost, as in the paper.
Then: what the ten pairs say of the coefficients if they had no noise at all, against those of the real table; and how
often NAPSU-MQ itself, at ε = 0.5, joins the columns by the same pairs when they are not given.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
from benchmarks.napsu.contenders import Asked
from benchmarks.napsu.regression import logistic
from benchmarks.napsu.tasks import ADULT_PAIRS, Task, adult
from run import default_data

from margrave import NAPSUMQ, Budget, GraphicalFit, MemoryTable, ReplaceRow, Workload, protect
from margrave.transcript import Measurement, PublicTotal, Transcript
from margrave.typing import Clique

GIVEN = ADULT_PAIRS[:5]
EPSILON = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.napsu.pairs", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    options = parser.parse_args()
    task = adult(options.data)
    best = spanning(task)
    print("maximum spanning tree:", *(" + ".join(pair) for pair in best), sep="\n  ")
    assert {frozenset(p) for p in best} == {frozenset(p) for p in ADULT_PAIRS[5:]}
    told(task)
    same = [len(chosen(task) & {frozenset(p) for p in best}) for _ in range(options.runs)]
    print(f"private choices, epsilon {EPSILON}: the same {len(best)} in {same.count(len(best))} of {len(same)} runs")
    return 0


def spanning(task: Task) -> list[Clique]:
    """Kruskal's choice of the heaviest pairs that close no circle with those given."""
    domain, table = task.schema.domain, MemoryTable(task.schema, task.codes(0.0, 0))
    pairs = list(combinations(domain.attributes, 2))
    counts = table.count([*pairs, *((a,) for a in domain)])
    alone = {a: counts[(a,)] / task.n for a in domain}
    weight = {
        (a, b): float(np.abs(counts[a, b] - task.n * np.outer(alone[a], alone[b])).sum()) for a, b in pairs
    }
    parts = {a: a for a in domain}
    chosen = []
    for a, b in [*GIVEN, *sorted(pairs, key=lambda p: -weight[p])]:
        if parts[a] != parts[b]:
            old = parts[b]
            parts = {c: parts[a] if p == old else p for c, p in parts.items()}
            chosen += [(a, b)] if (a, b) not in GIVEN else []
    return chosen


def told(task: Task) -> None:
    """The coefficients of the maximum-entropy distribution with the real pairs, beside the real ones."""
    domain, table = task.schema.domain, MemoryTable(task.schema, task.codes(0.0, 0))
    counts = table.count(ADULT_PAIRS)
    exact = [Measurement(c, v, 0.01, Fraction(0)) for c, v in counts.items()]
    model = GraphicalFit()(domain, Transcript((PublicTotal(task.n), *exact)), rng=np.random.default_rng(0))
    cells = model.project((*task.regressors, task.outcome)).values.reshape(len(task.design), 2)
    pairs = logistic(task.names, task.design, cells.sum(axis=1), cells[:, 1])
    real = task.real(0.0, 0)
    print("coefficient: by the pairs, real, difference in standard errors of the real one")
    for name, p, r, v in zip(task.names, pairs.estimates, real.estimates, real.variances, strict=True):
        print(f"  {name}: {p:.4f}, {r:.4f}, {(p - r) / np.sqrt(v):+.2f}")


def chosen(task: Task) -> set[frozenset[str]]:
    """The pairs of one private run."""
    table = MemoryTable(task.schema, task.codes(EPSILON, 0))
    workload = Workload.of(task.schema.domain, dict.fromkeys(GIVEN, 1.0))
    with protect(table, unit=ReplaceRow(), budget=Budget.approx(EPSILON, task.delta)) as private:
        release = NAPSUMQ(workload=workload, fit=Asked()).run(private)
    return {frozenset(s.chosen) for s in release.transcript.selections}


if __name__ == "__main__":
    sys.exit(main())
