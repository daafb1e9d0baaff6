"""What the page shows of each column and pair: the model beside the noisy answers it came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.release import Bound, Price, Release
from margrave.transcript import Transcript
from margrave.typing import Attribute, Clique, FloatArray

MAX_PAIRS = 6
DIAGNOSTICS = {
    "chains": "chains",
    "draws": "draws of each chain",
    "r_hat": "R-hat, the largest of all parameters: 1 where chains agree",
    "effective": "effective sample size, the smallest",
    "diverged": "share of trajectories that diverged",
}
"""What a posterior tells of itself, in words."""
LEVEL = 0.95
TELLING = 1e-3
"""Bits in common below which a pair's chart would show rounding and no relation."""
_MAX_RANKED = 400


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


@dataclass(frozen=True, eq=False)
class PairView:
    """Two columns' joint counts by the model, and how much one tells about the other (bits)."""

    names: Clique
    labels: tuple[list[str], list[str]]
    counts: FloatArray
    information: float


def column_views(release: Release) -> list[ColumnView]:
    """One view per column, in the schema's order."""
    views = []
    for column in release.schema.columns:
        measured, error = noisy_counts(release, column.name)
        model = _project(release, (column.name,))
        views.append(ColumnView(column.name, list(column.labels()), model, measured, error))
    return views


def noisy_counts(release: Release, attribute: Attribute) -> tuple[FloatArray | None, float]:
    """A column's counts by all measurements together, and the half-width of each count's interval."""
    try:
        found = release.intervals([attribute], level=LEVEL)
    except ReleaseError:
        return None, 0.0
    return found.estimate, found.half_width


def bound_views(release: Release) -> list[Bound]:
    """The bounds of the workload's marginals: supported first, tightest first; none without a model."""
    found = () if release.no_model else release.bounds(level=LEVEL)
    return sorted(found, key=lambda b: (b.share is None, not b.supported, b.share or 0.0))


def price_view(release: Release) -> Price | None:
    """What the bounds of the workload say together; None for answers without a distribution."""
    try:
        return release.price(level=LEVEL)
    except (ReleaseError, ModelTooLargeError):
        return None


def pair_views(release: Release) -> list[PairView]:
    """The measured pairs that say most: ranked by the model's mutual information, a function of noisy answers.

    Those in which one column says less than ``TELLING`` of the other are left out.
    """
    views = [
        v for pair in _measured_pairs(release.transcript) if (v := _pair_view(release, pair)) is not None
    ]
    return sorted((v for v in views if v.information >= TELLING), key=lambda v: -v.information)[:MAX_PAIRS]


@dataclass(frozen=True)
class PosteriorView:
    """How a model's posterior was drawn from, its diagnostics, and why its draws are not to be used, if so."""

    method: str
    diagnostics: list[tuple[str, str]]
    warning: str


def posterior_view(release: Release) -> PosteriorView | None:
    """Of a model with a posterior of its own."""
    found = release.model.posterior()
    if found is None:
        return None
    numbers = [(words, f"{found.facts[key]:,.4g}") for key, words in DIAGNOSTICS.items() if key in found.facts]
    return PosteriorView(found.method, numbers, str(found.facts.get("why", "")))


def _measured_pairs(transcript: Transcript) -> list[Clique]:
    pairs: dict[Clique, None] = dict.fromkeys(p for c in transcript.cliques for p in combinations(c, 2))
    return list(pairs)[:_MAX_RANKED]


def _pair_view(release: Release, pair: Clique) -> PairView | None:
    counts = _project(release, pair)
    if counts is None:
        return None
    labels = {c.name: list(c.labels()) for c in release.schema.columns if c.name in pair}
    return PairView(pair, (labels[pair[0]], labels[pair[1]]), counts, mutual_information(counts))


def mutual_information(counts: FloatArray) -> float:
    """``sum p_ij log2(p_ij / (p_i p_j))`` of a table of counts.

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
    rows, columns = (np.broadcast_to(p.sum(axis=axis, keepdims=True), p.shape)[some] for axis in (1, 0))
    found = float((p[some] * (np.log2(p[some]) - np.log2(rows) - np.log2(columns))).sum())
    return max(0.0, found)


def _project(release: Release, clique: Iterable[Attribute]) -> FloatArray | None:
    """The model's counts, or None where the release holds noisy answers without a model of them."""
    try:
        return np.asarray(release.marginal(clique).values, dtype=np.float64)
    except ReleaseError:
        return None
