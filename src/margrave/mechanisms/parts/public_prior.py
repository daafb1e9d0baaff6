"""Public marginals as estimates of private ones, with a scale for every cell."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from margrave.domain import Domain
from margrave.marginal.simplex import rake
from margrave.mechanisms.parts.public import counted, zeros_of
from margrave.models.precision_means import PrecisionMeans, column_mean
from margrave.models.terms import scales_of
from margrave.public_table import PublicTable
from margrave.structural_zeros import joined
from margrave.transcript import Measurement, PublicReading, Transcript
from margrave.types import Attribute, Clique, FloatArray

#: Down-weight a public column only if it disagrees with the measurement by more than this many
#: standard deviations. The full number applies if the measurement is much less precise than the
#: sampling error.
DOUBT_DEVIATIONS = 3.0


class PublicPrior:
    """Public marginals, raked to what is known of single columns, with a scale for every cell.

    A public table may hold more women than the private one: then all of its marginals are off,
    although men and women differ in both as they should. Columns are cheap to measure, so they are
    set right first. For a marginal r with n'_x public records in cell x, u is proportional to n'_x
    + PSEUDO_ROWS · prod_a q_a(x_a), scaled until its sums over each column a are n · q_a (iterative
    proportional fitting), where q_a combines the column's measurements and its public counts by
    their precision. With f_x = u_x / (n'_x + PSEUDO_ROWS · prod_a q_a(x_a)), what a public record stands
    for,

        scale_x² = f_x² (n'_x + PSEUDO_ROWS · prod_a q_a(x_a) + EXTRA_ROWS) + bias_r² u_x²

    Chance is the first term. The second is what measurements of two columns and more show against
    the raked public marginals beyond their noise and chance, relative to u; the largest on two
    columns of r counts. Before there is one, it is a share of the relative bias of r's columns. A
    cell says nothing (its scale is infinite) where f_x is above ``MAX_WEIGHT_RATIO`` · n / n', or its scale
    above the noise of the first measurements (half of it, where bias is seen).

    Where the public records are the private ones, their counts are the marginals, with a scale of
    half a record.

    Cells that the constraints call impossible hold none of the public records, and say nothing.

    No scale is below what half a public record stands for, or below 1 / ``MAX_PRECISION_RATIO`` of the first
    measurements' noise. Two readings never hold the same pair of columns: they are counts of the
    same records, and would count twice.
    """

    def __init__(
        self,
        public: PublicTable,
        domain: Domain,
        cliques: Iterable[Clique],
        total: float,
        noise: float,
    ) -> None:
        self.source, self.exact = public.sha256, public.same_records
        self._domain, self._total, self._noise = domain, total, noise
        often = 1 if self.exact else public.repeats  # repeats are not records: each counts once
        self.each = total * often / len(public.codes)  # what a public record stands for
        self.counts = {r: counts / often for r, counts in counted(public, domain, cliques).items()}
        self._zeros = zeros_of(public, domain)
        self._margins: dict[Attribute, FloatArray] = {}
        self._columns: dict[Attribute, tuple[FloatArray, FloatArray, float]] = {}
        self._raked: dict[Clique, tuple[FloatArray, FloatArray]] = {}
        self._believed: dict[Clique, tuple[FloatArray, FloatArray]] = {}
        self._compared: list[tuple[Clique, float]] = []
        self._measured: set[Clique] = set()

    def recalibrate(self, transcript: Transcript) -> None:
        """Rake the columns to their measurements, and compare measured marginals with public ones."""
        self._raked, self._believed, self._compared = {}, {}, []
        self._measured = pairs_of(transcript.cliques)
        for a in self._domain:
            self._margins[a] = self._margin(a, transcript.measurements)
        for m in transcript.measurements:
            if len(m.clique) > 1 and m.clique in self.counts and not self.exact:
                self._compared.append((m.clique, self._against(m)))

    def marginal(self, clique: Clique) -> tuple[FloatArray, FloatArray]:
        """Return a value and a scale for each cell of a marginal."""
        if self.exact:
            return self.counts[clique], np.full(self.counts[clique].shape, 0.5)
        if clique not in self._believed:
            self._believed[clique] = self._believe(clique)
        return self._believed[clique]

    def _believe(self, clique: Clique) -> tuple[FloatArray, FloatArray]:
        """Return values and scales of a marginal whose records are not the private ones."""
        # Relative bias below which a column counts as unbiased, and larger cells get full weight.
        bias_tolerance = 0.05
        # Bound on a cell's weight relative to a first measurement: very different scales make
        # fits slow.
        max_weight = 100.0
        if len(clique) == 1:
            values, scales, _ = self._columns[clique[0]]
            return values, scales
        values, scales = self._rake(clique)
        bias = self._bias(clique)
        least = max(self.each / 2, self._noise / max_weight)
        scales = np.maximum(np.sqrt(scales**2 + (bias * values) ** 2), least)
        worst = self._noise if bias < bias_tolerance else self._noise / 2
        return values, np.where(scales > worst, np.inf, scales)

    def as_evidence(self, cliques: Iterable[Clique]) -> Transcript:
        """Return the readings of these marginals, without those of no finite scale."""
        found = [(r, *self.marginal(r)) for r in cliques]
        return Transcript(
            tuple(
                PublicReading(r, u, scales, self.source)
                for r, u, scales in found
                if np.isfinite(scales).any()
            )
        )

    def informative(self, cliques: Iterable[Clique]) -> list[Clique]:
        """Return the cliques with a pair of columns that no measurement holds."""
        return [
            r for r in cliques if len(r) == 1 or self.exact or not pairs_of([r]) <= self._measured
        ]

    def expected_gain(self, clique: Clique, estimate: FloatArray) -> float:
        """Return how much closer to the truth a reading is expected to bring an estimate, in L1.

        With chance of scale s in a cell, |u − estimate| is expected to be above sqrt(2) s exactly
        where u is closer to the truth than the estimate is, and so that much is subtracted.
        """
        mean_of_normal = float(np.sqrt(2 / np.pi))
        values, scales = self.marginal(clique)
        told = np.isfinite(scales)
        values, scales, estimate = values[told], scales[told], estimate[told]
        chance = np.minimum(mean_of_normal * scales, values + estimate)
        return float((np.abs(values - estimate) - np.sqrt(2) * chance).sum())

    def _margin(self, a: Attribute, measurements: Iterable[Measurement]) -> FloatArray:
        """Return a column's counts: measured and public ones weighted by precision."""
        if self.exact and (a,) in self.counts:
            return self.counts[(a,)]
        holding = [(m.clique, m.values, scales_of(m)) for m in measurements if a in m.clique]
        known = PrecisionMeans[Attribute]()
        measured: FloatArray | None = None
        variance = 0.0
        if holding:
            measured, precision = column_mean(a, holding)
            variance = 1 / float(precision[0])
            known.add(a, measured * precision, precision)
        if (a,) in self.counts:
            public, scales, _ = self._columns[a] = self._column(a, measured, variance)
            known.add(a, public / scales**2, scales**-2)
        margin = next((mean for _, mean, _ in known), np.ones(self._domain.size(a)))
        margin = np.maximum(margin, 1e-9 * self._total)
        margin *= self._total / margin.sum()
        return margin

    def _column(
        self, a: Attribute, measured: FloatArray | None, variance: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return a public column scaled up, its scales, and its relative bias beyond doubt.

        In a biased column no cell gets more weight than the bias of the whole column allows, since
        a relative bias is small in its small cells. The bias is at most what the comparison shows
        beyond doubt: otherwise a very noisy measurement slightly outside its interval would count
        in full.

        Σ (difference)² is nearly a multiple of a chi-square of k = (Σ v)² / Σ v² degrees, v the
        expected squares, and its cube root nearly normal (Satterthwaite; Wilson and Hilferty): the
        tail is long for few codes.
        """
        counts = self.counts[(a,)]
        values = counts * self.each
        chance = (
            counts * (1 - counts / max(1.0, counts.sum())) + 0.5
        ) * self.each**2  # of shares, not of numbers
        if measured is None:
            return values, np.sqrt(chance), 0.0
        expected = variance + chance
        usual, degrees = expected.sum(), expected.sum() ** 2 / (expected**2).sum()
        likely = (
            usual * (1 - 2 / (9 * degrees) + DOUBT_DEVIATIONS * np.sqrt(2 / (9 * degrees))) ** 3
        )
        doubt = variance / (variance + float(chance.mean()))
        apart = np.abs(values - measured)
        found = (apart**2).sum()
        off = max(0.0, found - usual - doubt * (likely - usual))
        bias = float(np.sqrt(off / (values**2).sum()))
        wrong = np.maximum(bias * values, apart * np.sqrt(off / max(1.0, found)))
        return values, np.sqrt(chance + wrong**2), bias

    def _rake(self, clique: Clique) -> tuple[FloatArray, FloatArray]:
        """Return public counts fitted to the columns, and their chance scales."""
        # Pseudo-records with independent columns, added to the public ones.
        pseudo_records = 10.0
        # Added to the records of a cell before its sampling variance: an empty cell is uncertain
        # too.
        extra_records = 0.25
        # Ratio of weights to the mean above which cells carry no information.
        max_weight_ratio = 10.0
        if clique not in self._raked:
            spread: FloatArray = np.ones(())
            for a in clique:
                spread = np.multiply.outer(spread, self._margins[a] / self._total)
            possible = joined(
                [z for z in self._zeros if set(z.clique) <= set(clique)], clique, self._domain.size
            )
            records = self.counts[clique] + pseudo_records * spread * possible
            values = rake(records * self.each, clique, self._margins, sweeps=6)
            each = np.divide(values, records, out=np.full(values.shape, np.inf), where=possible)
            scales = each * np.sqrt(records + extra_records)
            self._raked[clique] = (
                values,
                np.where(each > max_weight_ratio * self.each, np.inf, scales),
            )
        return self._raked[clique]

    def _against(self, m: Measurement) -> float:
        """Return the square of the relative bias that a measurement shows."""
        values, scales = self._rake(m.clique)
        finite = np.isfinite(scales) & (self.counts[m.clique] > 0)
        values, expected = values[finite], m.scale**2 + scales[finite] ** 2
        weights = (
            values / (expected + (0.1 * values) ** 2)
        ) ** 2  # 1 / variance of the square of a ratio, nearly
        off = float((weights * ((m.values[finite] - values) ** 2 - expected)).sum())
        return off / float((weights * values**2).sum()) if values.any() else 0.0

    def _bias(self, clique: Clique) -> float:
        """Return the relative bias to expect of the relations among some columns."""
        # Share of a column's relative bias assumed for its relations with other columns at first.
        inherited_share = 0.25
        of_columns = inherited_share * max(self._columns[a][2] for a in clique)
        near = [square for s, square in self._compared if len(set(s) & set(clique)) > 1]
        if near:
            seen = max(near)
        else:
            seen = (
                float(np.mean([square for _, square in self._compared])) if self._compared else 0.0
            )
        return max(of_columns, float(np.sqrt(max(0.0, seen))))


def pairs_of(cliques: Iterable[Clique]) -> set[Clique]:
    """Return all pairs of columns in some cliques."""
    return {pair for r in cliques for pair in combinations(r, 2)}
