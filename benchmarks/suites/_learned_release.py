"""Figures of one release from a file alone: numbers, states and means by group, each with its mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.core import library as lib
from benchmarks.core.store import Row
from benchmarks.suites._learned_columns import floats
from benchmarks.suites._rival_columns import Floats

MIN_SHARE = 0.02
"""The smallest group whose means are compared, as a share of the rows."""


def figures(raw: pa.Table, release: lib.Release, drawn: pa.Table, learned: list[lib.Learn]) -> Row:
    """Return the figures of a release.

    Args:
        raw: The private rows.
        release: The release.
        drawn: As many synthetic rows.
        learned: The columns that the release had to learn.
    """
    kept = [c for c in learned if c.name in drawn.column_names]
    numbers = [c.name for c in kept if c.of in ("integer", "real")]
    stated = release.numbers(details=True).to_pylist()
    means = {n["column"]: n for n in stated if n["statistic"] == "mean"}
    codes = {c.name: _codes(release, raw, c.name) for c in kept}
    unbiased = lib.Unbiased(release.schema.domain, release.transcript)
    return {
        "rows": len(raw),
        "unlearned": sum(c.is_number for c in learned) - sum(c.is_number for c in kept),
        "numbers": [
            {"column": n, **_mean_and_deciles(raw[n], drawn[n], means[n])} for n in numbers
        ],
        "cells": [{"column": c.name, **_missing(raw, drawn, c.name)} for c in kept],
        "states": [
            {"column": c.name, **_states(release, unbiased, stated, codes[c.name], c)} for c in kept
        ],
        "groups": list(_groups(raw, release, unbiased, drawn, codes, kept)),
    }  # fmt: skip


def _codes(release: lib.Release, table: pa.Table, name: str) -> Any:
    return release.schema.column(name).encode(table[name].combine_chunks()).codes


def _mean_and_deciles(real: Any, drawn: Any, stated: dict[str, Any]) -> Row:
    """Compare one column: its mean, its deciles, and what the release says of the mean."""
    values, own = floats(real), floats(drawn)
    mean, sd = float(values.mean()), float(values.std())
    tolerance = 0.05 * (sd if abs(mean) > 3 * sd else max(sd, abs(mean)))
    edges = np.unique(np.quantile(values, np.linspace(0.1, 0.9, 9)))
    shares = [
        np.bincount(np.searchsorted(edges, v, "right"), minlength=len(edges) + 1) / len(v)
        for v in (values, own)
    ]
    return {
        "within": bool(abs(own.mean() - mean) <= tolerance),
        "reliable": bool(stated["reliable"]),
        "holds": bool(stated["low"] <= mean <= stated["high"]),
        "error_sd": float(abs(own.mean() - mean) / max(sd, 1e-300)),
        "deciles": float(np.abs(shares[0] - shares[1]).sum() / 2),
    }


def _missing(raw: pa.Table, drawn: pa.Table, name: str) -> Row:
    true = raw[name].null_count / len(raw)
    return {"missing": true, "error": drawn[name].null_count / len(drawn) - true}


def _states(
    release: lib.Release, unbiased: lib.Unbiased, stated: list[Row], codes: Any, column: lib.Learn
) -> Row:
    """Return how many shares of categories, or of missing values, are within 2.5 deviations of their noise."""
    most_deviations = 2.5
    shares = [
        n["synthetic"]
        for n in stated
        if n["column"] == column.name and n["statistic"].startswith(("share of", "missing"))
    ]
    estimate = unbiased.estimate((column.name,))
    if estimate is None or None in shares:
        return {"states": 0, "near": 0}
    true = np.bincount(codes, minlength=release.schema.column(column.name).size) / len(codes)
    errors = np.abs(np.array(shares) - true[len(true) - len(shares) :]) * len(codes)
    return {"states": len(shares), "near": int((errors <= most_deviations * estimate.spread).sum())}


def _groups(
    raw: pa.Table, release: lib.Release, unbiased: lib.Unbiased, drawn: pa.Table, codes: dict[str, Any],
    kept: list[lib.Learn],
) -> Iterator[Row]:  # fmt: skip
    """Yield for each pair of categories and a number how many groups' means are near, marked, or neither."""
    for number in (c.name for c in kept if c.of in ("integer", "real")):
        values, own = _aligned(raw[number]), _aligned(drawn[number])
        deviation = float(np.nanstd(values))
        for by in (c.name for c in kept if not c.is_number):
            groups = [(codes[by], values), (_codes(release, drawn, by), own)]
            labels = len(release.schema.column(by).labels())
            sizes = np.bincount(codes[by], minlength=labels)
            real, made = (_means(of, v, labels) for of, v in groups)
            halves, estimates = _half_widths(release, unbiased, number, by)
            tolerance = np.maximum(0.1 * np.abs(real), 0.1 * deviation)
            large = (sizes >= MIN_SHARE * len(raw)) & np.isfinite(real)
            large[-1] = False  # missing
            near = np.abs(made - real) <= tolerance
            marked = ~(halves <= np.maximum(0.1 * np.abs(estimates), 0.1 * deviation))
            yield {
                "number": number, "by": by, "groups": int(large.sum()), "near": int((large & near).sum()),
                "marked": int((large & marked).sum()), "neither": int((large & ~near & ~marked).sum()),
                "hold": int((large & ~(np.abs(estimates - real) > halves)).sum()),
            }  # fmt: skip


def _aligned(column: pa.ChunkedArray) -> Floats:
    """Return all values of a column, NaN where it is missing."""
    found = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def _means(groups: Any, values: Floats, size: int) -> Floats:
    seen = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        sums = np.bincount(groups[seen], values[seen], minlength=size)
        return np.asarray(sums / np.bincount(groups[seen], minlength=size))


def _half_widths(
    release: lib.Release, unbiased: lib.Unbiased, number: str, by: str
) -> tuple[Floats, Floats]:
    """Return half the width of each group's own interval, and its mean by the noisy counts.

    The interval is that of the noisy counts of both columns together, without an end where they were not measured.
    As in the interval of a column, the mean of each bin lies anywhere in it.
    """
    z = 1.96
    clique, column = release.schema.domain.clique((number, by)), release.schema.column(number)
    labels = len(release.schema.column(by).labels())
    estimate = unbiased.estimate(clique) if unbiased.supports(clique) else None
    if estimate is None:
        return np.full(labels, np.inf), np.zeros(labels)
    cells: Any = column.cells
    least, greatest = cells.extremes
    counts = estimate.values if clique[0] == number else estimate.values.T
    halves, means = np.full(labels, np.inf), np.zeros(labels)
    for group in range(labels):
        own = counts[: cells.count, group]
        size = float(own.sum())
        if size <= 0:
            continue
        means[group] = float(own @ cells.means) / size
        weights = np.zeros_like(counts)
        weights[: cells.count, group] = cells.means - means[group]
        noise = estimate.deviation(weights if clique[0] == number else weights.T)
        bins = np.sqrt(((np.maximum(own, 0) * (greatest - least)) ** 2).sum() / 12)
        halves[group] = z * (noise + bins) / size
    return halves, means
