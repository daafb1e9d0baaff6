"""Columns learned alone, without a mechanism: how far their values are from the real ones, and what that costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.core import library as lib
from benchmarks.core.process import clock
from benchmarks.core.store import Row
from benchmarks.suites._rival_columns import Bounds, Floats, bisection, privtree


def floats(column: pa.ChunkedArray) -> Floats:
    """Return the finite values of a column; one zero if there are none."""
    values = np.asarray(pc.cast(column.drop_null(), pa.float64()))
    return values[np.isfinite(values)] if len(values) else np.zeros(1)


def measured(raw: pa.Table, schema: lib.Schema, epsilon: float, delta: float, seed: int) -> Row:
    """Return the distances of every number by learning and by the rivals at one budget, and the seconds of learning."""
    budget, unit = lib.budget_for(schema, epsilon, delta), lib.AddRemoveRow()
    table = lib.read_table(raw, schema)
    with lib.protect(table, unit=unit, budget=budget) as private:
        start = clock()[1]
        learning = lib.learn_schema(
            schema,
            lambda name: lib.GateColumn(name, private.measure_column),
            private.discover,
            private.rho * lib.LearningShares.learning,
            Fraction(budget.threshold_delta),
        )
        seconds = clock()[1] - start
        share = float(
            lib.column_share(private.rho * lib.LearningShares.learning, len(schema.to_learn))
        )
    kinds = {c.name: c.of for c in schema.to_learn}
    rng = np.random.default_rng([seed, len(raw)])
    return {
        "rows": len(raw),
        "distances": [
            {"column": name} | _distances(floats(raw[name]), number, share, kinds[name] == "integer", rng)
            for name, number in learning.numbers.items()
            if kinds[name] in ("integer", "real")
        ],
        "learning_cpu_s": seconds,
        "seconds_per_million": seconds / len(schema.to_learn) / len(raw) * 1e6,
    }  # fmt: skip


def _distances(
    values: Floats, number: lib.LearnedNumber, rho: float, whole: bool, rng: np.random.Generator
) -> Row:
    """Return the mean distance of sorted drawn values from the sorted real ones, in standard deviations."""
    deviation = float(values.std())
    if deviation == 0:
        return {}
    n, drawn = len(values), {"learned": values_of(number, len(values), rng)}
    low, high = number.line.points(number.tree.edges[[0, -1]]).tolist()
    wide, own = Bounds.wide(values, whole=whole), Bounds(low, high, whole)
    for words, bounds in (("", wide), ("_in_learned", own)):
        inside = bounds.clipped(values)
        drawn["privtree" + words] = privtree(inside, bounds, rho, rng).draw(n, rng)
        drawn["bisection" + words] = bisection(inside, bounds, rho, rng).draw(n, rng)
    ordered = np.sort(values)
    return {way: float(np.abs(np.sort(v) - ordered).mean()) / deviation for way, v in drawn.items()}


def values_of(number: lib.LearnedNumber, n: int, rng: np.random.Generator) -> Floats:
    """Return values drawn by the fine estimate of a learned number."""
    column: Any = number.declared(0.0)
    places = column.cells.locate(number.line.points(number.tree.edges[:-1]))
    masses = np.bincount(places, number.masses, minlength=column.cells.count)
    total = masses.sum()
    shares = masses / total if total > 0 else np.full(len(masses), 1 / len(masses))
    return np.asarray(column.cells.draw(rng.choice(len(masses), n, p=shares), rng))
