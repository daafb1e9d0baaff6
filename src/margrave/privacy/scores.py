"""Scores of private selections: integers on a public grid, with their sensitivity to one count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import IDENTITY, LinearMap, QueryFamily
from margrave.types import Clique, FloatArray, IntArray

_GRID_BITS = 10
#: Scores are multiples of 1 / this, in records.
PER_RECORD = 1 << _GRID_BITS
# Exactness of the float64 arithmetic on the grid: |x − m| · 2^10 must stay below 2^53 in every sum.
MAX_EXACT_TOTAL = 2.0**41


class GridScores(NamedTuple):
    """Scores as integers: candidate r scores ``values[r] · grid``. The grid is public."""

    values: tuple[int, ...]
    grid: Fraction


class Score(Protocol):
    """The score that a private selection maximizes. Called inside the gate, on true counts."""

    @property
    def lipschitz(self) -> float:
        """The most any score changes when the counts of a marginal change by 1 in L1; the unit does the rest."""
        ...

    def check(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        """Raise ``InputError`` for anything wrong with the public parts, before anything is spent."""
        ...

    def terms(self, candidates: Sequence[Clique]) -> dict[str, FloatArray]:
        """Return the public parts, one number per candidate, for the transcript.

        "weight", "penalty" and "margin" are read for error bounds: a score of another formula than the library's
        has other names for its own (``terms_of``).
        """
        ...

    def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
        """Return those that can be read from public data instead of measured: each is a candidate
        once more.
        """
        ...

    def __call__(
        self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        """Return the scores, given the true counts of every candidate: to measure each, then to
        read each ``readable``.
        """
        ...


def lipschitz_of(score: Score) -> Fraction:
    """Return the exact bound that a score states. Raise ``InputError`` if it is not a bound."""
    try:
        lipschitz = Fraction(score.lipschitz)
    except (TypeError, ValueError, OverflowError):  # no number, NaN, infinity
        lipschitz = Fraction(0)
    if not 0 < lipschitz <= 1e300:
        raise InputError(
            "The score does not say how far a count can move it.",
            remedy="Its lipschitz is positive.",
        )
    return lipschitz


@dataclass(frozen=True, eq=False)
class MarginalGap:
    """``w_r (‖query(M_r(D)) − estimate_r‖₁ − penalty_r)``: how badly an estimate misses a marginal, less a penalty.

    Weights count as the binary fractions that they are, and so do penalties; estimates are rounded to multiples of
    2^-10 (half to even). From there on the arithmetic is exact, so a score does not depend on the order of rows,
    cells or threads. Give the weights of the candidates only: ``lipschitz`` is the largest of all given.

    **Privacy:** none spent by itself; ``select`` spends. ``lipschitz = max_r w_r``, because rounding the estimate
    does not depend on the counts, ``|‖x − m‖₁ − ‖x' − m‖₁| ≤ ‖x − x'‖₁``, and groups of cells move no further.
    Source: McKenna, Mullins, Sheldon, Miklau 2022 (AIM), equation 1.
    """

    estimates: Mapping[Clique, FloatArray]
    weights: Mapping[Clique, float]
    penalties: Mapping[Clique, float]
    query: LinearMap = IDENTITY

    name: ClassVar[str] = "marginal gap"

    @classmethod
    def plain(
        cls, estimates: Mapping[Clique, FloatArray], query: LinearMap = IDENTITY
    ) -> MarginalGap:
        """Return the score with weights of 1 and without penalties: ``‖query(M_r(D)) − estimate_r‖₁``."""
        none = dict.fromkeys(estimates, 0.0)
        return cls(estimates, dict.fromkeys(estimates, 1.0), none, query)

    @property
    def lipschitz(self) -> float:
        """The largest weight."""
        return max(self.weights.values())

    def check(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        """Raise ``InputError`` unless every candidate has an estimate of its shape, a positive
        weight, a finite penalty.
        """
        self.query.check(domain)
        if not self.query.is_partition:
            raise InputError(
                "The score compares a linear map that counts a record in many answers.",
                remedy="Compare cells, or groups of them.",
            )
        answers = domain if self.query.is_identity else self.query.domain(domain)
        for clique in candidates:
            name = ", ".join(clique)
            if (
                clique not in self.estimates
                or clique not in self.weights
                or clique not in self.penalties
            ):
                raise InputError(
                    f"The score lacks an estimate, a weight or a penalty for ({name})."
                )
            if not 0 < self.weights[clique] < math.inf or not math.isfinite(self.penalties[clique]):
                raise InputError(
                    f"The weight or the penalty of ({name}) is not a positive or finite number."
                )
            if self.estimates[clique].shape != answers.shape(clique):
                raise InputError(f"The estimate of ({name}) does not have the shape of the answer.")
        totals = _l1_norms([self.estimates[c] for c in candidates])
        for clique, total in zip(candidates, totals, strict=True):
            if not total < MAX_EXACT_TOTAL:
                raise InputError(
                    f"The estimate of ({', '.join(clique)}) is not finite, or above {MAX_EXACT_TOTAL:g} records."
                )

    def terms(self, candidates: Sequence[Clique]) -> dict[str, FloatArray]:
        """Return weights and penalties."""
        return {
            "weight": np.array([self.weights[c] for c in candidates], dtype=np.float64),
            "penalty": np.array([self.penalties[c] for c in candidates], dtype=np.float64),
        }

    def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
        """Return no candidates: all are measured."""
        return ()

    def __call__(
        self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        """Return the scores of the candidates, exactly."""
        return self.scores(candidates, self.gaps(candidates, counts))

    def gaps(self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]) -> list[int]:
        """Return the L1 distances alone, in units of 2^-10."""
        return grid_gaps(
            [self.query.apply(c, counts[c]) for c in candidates],
            [self.estimates[c] for c in candidates],
        )

    def scores(self, candidates: Sequence[Clique], gaps: Sequence[int]) -> GridScores:
        """Return the scores of candidates whose distances are known."""
        weights, per_weight = _common([self.weights[c] for c in candidates])
        penalties, per_penalty = _common([self.penalties[c] for c in candidates])
        per_gap = max(1 << _GRID_BITS, per_penalty)  # both powers of two
        finer, coarser = per_gap >> _GRID_BITS, per_gap // per_penalty
        values = tuple(
            w * (gap * finer - penalty * coarser)
            for w, gap, penalty in zip(weights, gaps, penalties, strict=True)
        )
        return GridScores(values, Fraction(1, per_weight * per_gap))


@dataclass(frozen=True, eq=False)
class Improvement:
    """The improvement of an estimate by a marginal that is measured or read from public data.

        to measure r:   w_r (‖M_r(D) − estimate_r‖₁ − penalty_r)
        to read r:      w_r (‖M_r(D) − estimate_r‖₁ − ‖M_r(D) − public_r‖₁)

    The penalty is the expected error of a measurement. ``publics`` are public marginals in records
    of the private table; a marginal without one can only be measured. The arithmetic is exact, as
    ``MarginalGap``'s.

    Privacy:
        None spent by itself. ``lipschitz = 2 max_r w_r`` if something can be read, because both
        distances change. With L1 sensitivity 2 under replacement this is the paper's 4.

    References:
        Fuentes et al. 2024 (JAM-PGM), equation 4.
    """

    estimates: Mapping[Clique, FloatArray]
    publics: Mapping[Clique, FloatArray]
    weights: Mapping[Clique, float]
    penalties: Mapping[Clique, float]

    @property
    def lipschitz(self) -> float:
        """The largest weight; twice that of a marginal that can be read."""
        return max(w * (2.0 if r in self.publics else 1.0) for r, w in self.weights.items())

    @property
    def _measured(self) -> MarginalGap:
        return MarginalGap(self.estimates, self.weights, self.penalties)

    def _read(self, candidates: Sequence[Clique]) -> MarginalGap:
        return MarginalGap(
            self.publics, self.weights, dict.fromkeys(self.readable(candidates), 0.0)
        )

    def check(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        """Raise ``InputError`` as ``MarginalGap`` does, for the estimates and for the public
        marginals.
        """
        self._measured.check(domain, candidates)
        self._read(candidates).check(domain, self.readable(candidates))

    def terms(self, candidates: Sequence[Clique]) -> dict[str, FloatArray]:
        """Return weights and penalties."""
        return self._measured.terms(candidates)

    def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
        """Return those of which there is a public marginal."""
        return tuple(r for r in candidates if r in self.publics)

    def __call__(
        self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        """Return the scores of the candidates, exactly: to measure each, then to read each that is
        readable.
        """
        readable, measured = self.readable(candidates), self._measured
        gaps = dict(zip(candidates, measured.gaps(candidates, counts), strict=True))
        parts = [measured.scores(candidates, list(gaps.values()))]
        if readable:
            public = self._read(candidates)
            own = zip(readable, public.gaps(readable, counts), strict=True)
            parts.append(public.scores(readable, [gaps[r] - gap for r, gap in own]))
        grid = min(part.grid for part in parts)  # powers of two: the finest holds all
        finer = [int(part.grid / grid) for part in parts]
        values = tuple(v * f for part, f in zip(parts, finer, strict=True) for v in part.values)
        return GridScores(values, grid)


@dataclass(frozen=True, eq=False)
class QueryGap:
    """``|q(D) − estimate_q|`` for linear queries q, in records: the error of an estimate.

    ``estimates[r]`` has the shape of clique r's queries. ``signed``: every query is a candidate
    twice, with scores ``q(D) − estimate_q`` (sign 1) and its negative (sign -1): a query and its
    complement. ``without``: numbers of queries that are not candidates, such as those already
    selected. Estimates are rounded to multiples of 2^-10; from there on the arithmetic is exact.

    Privacy:
        None spent by itself; ``select`` spends. The sensitivity of a score is that of its count.

    References:
        Liu, Vietri, Wu 2021, Appendix B.1; for signed scores Gaboardi et al. 2014 (DualQuery).
    """

    estimates: Mapping[Clique, FloatArray]
    signed: bool = False
    without: frozenset[int] = frozenset()

    def check(self, queries: QueryFamily) -> None:
        """Raise ``InputError`` unless every clique has an estimate of its queries' shape, and a
        query is a candidate.
        """
        for clique in queries.cliques:
            name = ", ".join(clique)
            if clique not in self.estimates or self.estimates[clique].shape != queries.shape(
                clique
            ):
                raise InputError(
                    f"The score lacks an estimate for ({name}), or it has another shape."
                )
            if not np.abs(self.estimates[clique]).max(initial=0.0) < MAX_EXACT_TOTAL:
                raise InputError(
                    f"The estimate of ({name}) is not finite, or above {MAX_EXACT_TOTAL:g} records."
                )
        if not all(0 <= number < len(queries) for number in self.without) or len(
            self.without
        ) == len(queries):
            raise InputError("``without`` names queries that are not candidates, or all of them.")

    def candidates(self, queries: QueryFamily) -> IntArray:
        """Return the numbers of the queries that may be chosen."""
        return np.delete(np.arange(len(queries)), sorted(self.without))

    def __call__(
        self, queries: QueryFamily, counts: Mapping[Clique, IntArray]
    ) -> tuple[IntArray, Fraction]:
        """Return the scores of the candidates on a public grid: first all of sign 1, then, if
        signed, all of sign -1.
        """
        gaps = [
            on_grid_of(queries.answer(r, counts[r]))
            - np.rint(self.estimates[r] * float(1 << _GRID_BITS))
            for r in queries.cliques
        ]
        below = np.concatenate([g.reshape(-1) for g in gaps])[self.candidates(queries)].astype(
            np.int64
        )
        scores = np.concatenate([below, -below]) if self.signed else np.abs(below)
        return scores, Fraction(1, 1 << _GRID_BITS)


def check_total(rows: int) -> None:
    """Raise ``InputError`` if the counts of a table of so many rows are too large for an exact score."""
    if rows >= MAX_EXACT_TOTAL:
        raise InputError(
            "The table has too many rows for an exact score.",
            remedy="Name a mechanism without private selection, such as independent.",
        )


def on_grid_of(counts: IntArray) -> FloatArray:
    """Return counts in units of 2^-10, as floats that hold them exactly."""
    check_total(int(counts.max(initial=0)))
    return np.asarray(counts * float(1 << _GRID_BITS), dtype=np.float64)


def grid_gaps(counts: Sequence[IntArray], estimates: Sequence[FloatArray]) -> list[int]:
    """Return ``Σ |2^10 x − round(2^10 m)|`` for each pair: the L1 distance in units of 2^-10,
    exactly.

    Floats hold the integers here without loss: counts and estimates sum to less than 2^41 each, so every term and
    every partial sum, in whatever order, stays below 2^53. Small marginals are taken many at a time.
    """
    flat, model = [x.reshape(-1) for x in counts], [m.reshape(-1) for m in estimates]
    gaps, rows = [0] * len(flat), [0] * len(flat)
    for pieces, starts in _batches([x.size for x in flat]):
        cells = np.concatenate([flat[i][low:high] for i, low, high in pieces])
        gap = np.concatenate([model[i][low:high] for i, low, high in pieces]) * float(
            1 << _GRID_BITS
        )
        np.rint(gap, out=gap)
        gap -= cells * float(1 << _GRID_BITS)
        np.abs(gap, out=gap)
        sums, totals = np.add.reduceat(gap, starts), np.add.reduceat(cells, starts)
        for (i, _, _), part, total in zip(pieces, sums.tolist(), totals.tolist(), strict=True):
            gaps[i] += int(part)
            rows[i] += total
    check_total(max(rows, default=0))
    return gaps


def _l1_norms(estimates: Sequence[FloatArray]) -> list[float]:
    model = [m.reshape(-1) for m in estimates]
    norms = [0.0] * len(model)
    for pieces, starts in _batches([m.size for m in model]):
        cells = np.abs(np.concatenate([model[i][low:high] for i, low, high in pieces]))
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(cells, starts)
        for (i, _, _), part in zip(pieces, sums.tolist(), strict=True):
            norms[i] += part
    return norms


Pieces = list[tuple[int, int, int]]


def _batches(sizes: Sequence[int]) -> Iterator[tuple[Pieces, list[int]]]:
    """Yield runs of cells (array, first, last + 1) of limited size together, with the position
    where each begins.
    """
    chunk = 1 << 14  # cells at a time: the temporaries stay in the processor's cache
    pieces: Pieces = []
    starts, together = list[int](), 0
    for i, size in enumerate(sizes):
        for low in range(0, size, chunk):
            high = min(size, low + chunk)
            if together + high - low > chunk:
                yield pieces, starts
                pieces, starts, together = [], [], 0
            pieces.append((i, low, high))
            starts.append(together)
            together += high - low
    if pieces:
        yield pieces, starts


def on_grid(estimate: FloatArray) -> FloatArray:
    """Return the estimate as ``MarginalGap`` compares it: rounded to multiples of 2^-10, half to
    even.
    """
    return np.asarray(
        np.rint(estimate * float(1 << _GRID_BITS)) / float(1 << _GRID_BITS), dtype=np.float64
    )


def _common(values: Sequence[float]) -> tuple[list[int], int]:
    """Return floats over their common denominator, a power of two: ``values[i] = numerators[i] /
    denominator``.
    """
    ratios = [float(v).as_integer_ratio() for v in values]
    denominator = max(d for _, d in ratios)
    return [n * (denominator // d) for n, d in ratios], denominator
