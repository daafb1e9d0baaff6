"""Codes that their columns' noisy counts say are empty, and a fit's problem without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Domain
from margrave.marginal import LinearMap
from margrave.models.precision_means import PrecisionMeans
from margrave.transcript import Measurement, Transcript
from margrave.types import Attribute, FloatArray, IntArray

#: One truth value per code.
Mask = NDArray[np.bool_]


def kept_codes(counts: FloatArray, *, cells: int, missing: bool, likely: float) -> Mask:
    """Return which codes of a column are not empty by their noisy counts.

    The first ``cells`` codes are in an order. A code of 1.5 · ``likely`` or more is kept, with its neighbors of
    ``likely`` or more. The other codes form runs. A run at an end of the order loses its longest outer part that
    noise explains. The runs between kept codes are all dropped, or all kept. A code without an order is kept if
    its count is ``likely`` or more; the others are all dropped, or all kept, and a missing state is judged by itself.

    Noise explains k codes if their sum is below ``likely`` · (3 + sqrt(k)) / 4 and this bound is a small share of the
    rows. So no more than that share is lost.

    Args:
        counts: The noisy counts, in noise scales.
        cells: The number of codes in an order.
        missing: Whether the last code is a missing state.
        likely: The threshold, in noise scales. 0 keeps all.

    Returns:
        True for the codes to keep; True for all if none has evidence.

    Privacy:
        None spent: noisy counts are public.

    Example:
        >>> kept_codes(np.array([900.0, 2.5, 0.8, -0.4, 1.1, 0.9]), cells=5, missing=True, likely=2.0).tolist()
        [True, True, False, False, False, False]
    """
    kept = counts >= likely
    kept[:cells] = _sure_cells(counts[:cells], likely)
    if likely <= 0.0 or not kept.any():
        return np.ones(len(counts), dtype=np.bool_)
    runs = [np.arange(*run) for run in _runs(~kept[:cells])]
    inside = [run for run in runs if run[0] > 0 and run[-1] < cells - 1]
    between = np.concatenate([*inside, np.zeros(0, dtype=np.int64)])
    alone = cells + np.flatnonzero(~kept[cells:])
    noise = _Noise(counts, likely)
    kept[:] = True
    for run in runs:
        if run[0] == 0 or run[-1] == cells - 1:
            kept[noise.outer(run)] = False
    kept[between] = not noise.explains(between, noise.in_order)
    state = alone == len(counts) - 1 if missing else np.zeros(len(alone), dtype=np.bool_)
    for codes in (alone[~state], alone[state]):
        kept[codes] = not noise.explains(codes, noise.alone)
    return kept


def _sure_cells(counts: FloatArray, likely: float) -> Mask:
    kept = counts >= 1.5 * likely
    for start, stop in _runs(counts >= likely):
        kept[start:stop] = kept[start:stop].any()
    return np.asarray(kept | ~kept.any())


@dataclass(frozen=True, eq=False)
class _Noise:
    """The test of counts of a column against noise alone."""

    counts: FloatArray
    likely: float
    #: The largest share of the rows that dropped codes may hold: of an order, whose columns may have many of
    #: them; and of others.
    in_order: ClassVar[float] = 0.015
    alone: ClassVar[float] = 0.04

    def explains(self, codes: IntArray, max_share: float) -> bool:
        """Return whether the counts of codes may be noise, and are a small share of the rows if they are not."""
        most = self.likely * (3.0 + np.sqrt(len(codes))) / 4.0
        return bool(self.counts[codes].sum() < most <= max_share * self.counts.sum())

    def outer(self, run: IntArray) -> IntArray:
        """Return the part of a run at an end of the order that noise explains."""
        while len(run) and not self.explains(run, self.in_order):
            run = run[1:] if run[0] > 0 else run[:-1]
        return run


def _runs(mask: Mask) -> Iterator[tuple[int, int]]:
    """Yield where runs of True start and stop."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    yield from zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True)


def non_empty(
    domain: Domain, transcript: Transcript, likely: float, *, all_marginals: bool = False
) -> dict[Attribute, Mask]:
    """Return the codes to keep of each column that has empty ones.

    They follow from measurements of the column alone, between rounds; at the end from every marginal that has it.
    Weighted sums of cells do not count here. Columns with structural zeros keep all, and so do those of public
    marginals and of single answers; and columns of no such measurement.
    """
    if likely <= 0.0:
        return {}
    whole = {a for z in domain.zeros for a in z.clique}
    whole.update(a for e in transcript.answers for a in e.query.clique)
    whole.update(a for e in transcript.readings for a in e.clique)
    counts_of_cells = [m for m in transcript.measurements if m.query.is_partition]
    known = [m for m in counts_of_cells if all_marginals or len(m.clique) == 1]
    columns = dict.fromkeys(a for m in known for a in m.clique if a not in m.query.groups)
    found = {}
    for a in (a for a in columns if a not in whole):
        means = PrecisionMeans[Attribute]()
        for m in known:
            if a in m.clique and a not in m.query.groups:
                precision = m.values.shape[m.clique.index(a)] / (m.values.size * m.scale**2)
                others = tuple(i for i, b in enumerate(m.clique) if b != a)
                means.add(a, m.values.sum(axis=others) * precision, np.asarray(precision))
        ((_, mean, precision),) = means
        missing = a in domain.missing
        cells = 0 if a in domain.unordered else domain.size(a) - missing
        counts = mean * np.sqrt(precision)
        kept = kept_codes(counts, cells=cells, missing=missing, likely=likely)
        if not kept.all():
            found[a] = kept
    return found


@dataclass(frozen=True, eq=False)
class WithoutEmpty:
    """A domain without empty codes, and transcripts restated on it.

    Attributes:
        kept: Which codes are kept, of the columns that have empty ones.
    """

    kept: Mapping[Attribute, Mask] = field(default_factory=dict)

    #: The default threshold of fits, in noise scales.
    below: ClassVar[float] = 2.0

    def domain(self, domain: Domain) -> Domain:
        """Return the domain of the codes that are kept."""
        if not self.kept:
            return domain
        sizes = (int(self.kept[a].sum()) if a in self.kept else domain.size(a) for a in domain)
        return Domain(domain.attributes, tuple(sizes), domain.zeros)

    def evidence(self, transcript: Transcript) -> Transcript:
        """Return the transcript with every measurement on the codes that are kept."""
        if not self.kept:
            return transcript
        return Transcript(
            tuple(self._restated(e) if isinstance(e, Measurement) else e for e in transcript)
        )

    def _restated(self, m: Measurement) -> Measurement:
        values, groups, matrices = m.values, dict(m.query.groups), dict(m.query.matrices)
        for axis, a in enumerate(m.clique):
            if a not in self.kept:
                continue
            left = np.flatnonzero(self.kept[a])
            if a in matrices:
                matrices[a] = matrices[a][:, left]
                continue
            if a in groups:
                left, groups[a] = np.unique(groups[a][left], return_inverse=True)
            values = np.take(values, left, axis=axis)
        return replace(m, values=values, query=LinearMap(groups, matrices))

    def groups(
        self, merged: Mapping[Attribute, IntArray], shares: Mapping[Attribute, FloatArray]
    ) -> tuple[dict[Attribute, IntArray], dict[Attribute, FloatArray]]:
        """Return groups and shares of all codes, from those of the codes that are kept.

        An empty code has no share of the first group.
        """
        groups, all_shares = dict(merged), dict(shares)
        for a, kept in self.kept.items():
            size = int(kept.sum())
            groups[a], all_shares[a] = np.zeros(len(kept), dtype=np.int64), np.zeros(len(kept))
            groups[a][kept] = merged.get(a, np.arange(size))
            all_shares[a][kept] = shares.get(a, np.ones(size))
        return groups, all_shares
