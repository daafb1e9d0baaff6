"""The data of the report's charts: columns and pairs by the model and by the noisy answers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from margrave.bounds import Bound, EquivalentSample
from margrave.bounds.gls import Unbiased
from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.release import ColumnNumber, Release
from margrave.release.numbers import headlines
from margrave.report.axes import Axis
from margrave.schema import Schema
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique, FloatArray

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ColumnView:
    """A column's codes: labels, the model's counts, and the noisy counts with their intervals, where measured.

    ``error`` is the half-width of each interval, which holds the real count with probability ``LEVEL``.
    """

    name: Attribute
    labels: list[str]
    model: FloatArray | None
    measured: FloatArray | None
    error: float
    axis: Axis = field(kw_only=True)

    @property
    def has_one_value(self) -> bool:
        """True if the model has less than one row with another code than its largest."""
        return self.model is not None and float(self.model.sum() - self.model.max()) < 1.0


@dataclass(frozen=True, eq=False)
class PairView:
    """Two columns' joint counts by the model, and their mutual information (bits) less what chance alone gives."""

    names: Clique
    axes: tuple[Axis, Axis]
    counts: FloatArray
    information: float


@dataclass(frozen=True, eq=False)
class OverlayView:
    """A column's shares in two tables, by code."""

    name: Attribute
    axis: Axis
    real: FloatArray
    synthetic: FloatArray


def has_rows(release: Release) -> bool:
    """Return True if synthetic rows can be drawn from the release."""
    try:
        release.model.distribution()
    except ReleaseError:
        return False
    return True


def column_views(release: Release) -> list[ColumnView]:
    """Return one view per column, in the schema's order; none of a column that a failed run did not learn."""
    schema = release.schema
    return [column_view(release, c.name) for c in schema.columns if c not in schema.to_learn]


def column_view(release: Release, name: Attribute) -> ColumnView:
    """Return the view of one column."""
    measured, error = noisy_counts(release, name)
    axis = axis_of(release.schema, name)
    return ColumnView(
        name, list(axis.labels), _project(release, (name,)), measured, error, axis=axis
    )


def axis_of(schema: Schema, name: Attribute) -> Axis:
    """Return the axis of a column of a schema, with its labels."""
    return Axis.of(schema.column(name), schema.source(name))


def noisy_counts(release: Release, attribute: Attribute) -> tuple[FloatArray | None, float]:
    """Return a column's counts by all measurements together, and the half-width of each count's
    interval.
    """
    try:
        found = release.intervals([attribute], level=LEVEL)
    except ReleaseError:
        return None, 0.0
    return found.estimate, found.half_width


def bound_views(release: Release) -> list[Bound]:
    """Return the bounds of the workload's marginals: supported first, tightest first; none without
    a model.
    """
    found = () if release.no_model else release.bounds(level=LEVEL)
    return sorted(found, key=lambda b: (b.share is None, not b.supported, b.share or 0.0))


def price_view(release: Release) -> EquivalentSample | None:
    """Return the equivalent sample size by the workload's bounds; None for answers without a
    distribution.
    """
    try:
        return release.equivalent_sample_size(level=LEVEL)
    except (ReleaseError, ModelTooLargeError):
        return None


def doubtful_categories(numbers: Sequence[ColumnNumber]) -> list[Attribute]:
    """Return the columns whose main number is the share of a category and not reliable."""
    return [n.column for n in headlines(numbers) if n.is_of_category and not n.reliable]


def pair_views(release: Release, doubtful: Collection[Attribute] = ()) -> list[PairView]:
    """Return the measured pairs with the largest mutual information by the model, less what chance alone gives.

    Pairs whose relation the noise hides are left out, and those with a doubtful column.
    """
    max_pairs = 6
    # Mutual information (bits) below which a pair's chart would show rounding only.
    min_information = 1e-3
    unbiased, hidden = Unbiased(release.schema.domain, release.transcript), release.coverage.hidden
    views = [
        replace(v, information=max(v.information - chance_information(unbiased, v), 0.0))
        for pair in _measured_pairs(release.transcript)
        if pair not in hidden
        and not set(doubtful).intersection(pair)
        and (v := pair_view(release, pair)) is not None
    ]
    return sorted(
        (v for v in views if v.information >= min_information), key=lambda v: -v.information
    )[:max_pairs]


@dataclass(frozen=True)
class PosteriorView:
    """The sampler of a model's posterior, its diagnostics, and the reason not to use its draws, if
    any.
    """

    method: str
    diagnostics: list[tuple[str, str]]
    warning: str


def posterior_view(release: Release) -> PosteriorView | None:
    """Return the view of a model's posterior; None if it has none."""
    # Diagnostics of a posterior in words.
    diagnostics = {
        "chains": "chains",
        "draws": "draws of each chain",
        "r_hat": "R-hat, the largest of all parameters: 1 where chains agree",
        "effective": "effective sample size, the smallest",
        "diverged": "share of trajectories that diverged",
    }
    found = release.model.posterior()
    if found is None:
        return None
    numbers = [
        (words, f"{found.facts[key]:,.4g}")
        for key, words in diagnostics.items()
        if key in found.facts
    ]
    return PosteriorView(found.method, numbers, str(found.facts.get("why", "")))


def _measured_pairs(transcript: Transcript) -> list[Clique]:
    max_ranked = 400
    pairs: dict[Clique, None] = dict.fromkeys(
        p for c in transcript.cliques for p in combinations(c, 2)
    )
    return list(pairs)[:max_ranked]


def pair_view(release: Release, pair: Clique) -> PairView | None:
    """Return the view of a pair; None without a model of it."""
    counts = _project(release, pair)
    if counts is None:
        return None
    one, other = (axis_of(release.schema, name) for name in pair)
    return PairView(pair, (one, other), counts, mutual_information(counts))


def chance_information(unbiased: Unbiased, view: PairView) -> float:
    """Return the mean mutual information (bits) of two unrelated columns, by noise and by sampling.

    It is ``D (1 + C s² / n) / (2 n log 2)`` for n records in C cells of equal expected counts, with D = (rows - 1)
    (columns - 1). ``s`` is the noise scale of the interaction by all measurements together.
    """
    estimate = unbiased.estimate(view.names) if unbiased.supports(view.names) else None
    n, (rows, columns) = float(view.counts.sum()), view.counts.shape
    if n <= 0:
        return 0.0
    variance = 0.0 if estimate is None else estimate.eigenvalues[view.names]
    freedom = (rows - 1) * (columns - 1)
    return float(freedom * (1.0 + rows * columns * variance / n) / (2.0 * math.log(2.0) * n))


def mutual_information(counts: FloatArray) -> float:
    """Return ``sum p_ij log2(p_ij / (p_i p_j))`` of a table of counts.

    >>> round(mutual_information(np.array([[1.0, 0.0], [0.0, 1.0]])), 6)
    1.0
    """
    counts = np.maximum(counts, 0.0)  # noisy answers without a model behind them may be negative
    total = float(counts.sum())
    if total <= 0:
        return 0.0
    p = counts / total
    some = p > 0
    # the logarithms apart: the product of two small shares may round to 0 where the cell's own share does not
    rows, columns = (
        np.broadcast_to(p.sum(axis=axis, keepdims=True), p.shape)[some] for axis in (1, 0)
    )
    found = float((p[some] * (np.log2(p[some]) - np.log2(rows) - np.log2(columns))).sum())
    return max(0.0, found)


def _project(release: Release, clique: Iterable[Attribute]) -> FloatArray | None:
    try:
        return np.asarray(release.marginal(clique).values, dtype=np.float64)
    except ReleaseError:
        return None
