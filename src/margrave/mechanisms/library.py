"""What public records say of private marginals, once their columns are set right, and how far to believe it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import project_array
from margrave.marginal.counting import count_cliques
from margrave.models import FITS, EntropyProjectionFit, Fit, MultiplicativeWeightsFit
from margrave.privacy import Private, Unit, size_is_public
from margrave.public import Public
from margrave.schema.domain import Domain
from margrave.schema.zeros import StructuralZeros, joined, projected, violating
from margrave.transcript import Measurement, PublicReading, Transcript
from margrave.typing import Attribute, Clique, FloatArray

PSEUDO = 10.0
"""Records, spread as if columns were independent, that stand beside the public ones: cells nobody is in get some."""

EXTRA = 0.25
"""Added to the records of a cell before its chance variance is taken: an empty cell is not certain either."""

DOUBT = 3.0
"""As seldom as so many standard deviations is what must speak against a public column before it is believed less.

So many where its measurement is far worse than it is by chance: what measures better needs no benefit of the doubt."""

INHERITED = 0.25
"""The share of a column's relative bias that its relations with other columns are taken to have before any is seen."""

FAR = 10.0
"""Cells in which a public record stands for so many times more than elsewhere say nothing."""

UNBIASED = 0.05
"""A relative bias below is none: larger cells are believed then."""

FLOOR = 100.0
"""No cell is believed so many times more than a first measurement: estimates from scales far apart take very long."""

MEAN_OF_NORMAL = float(np.sqrt(2 / np.pi))


class Library:
    """Public marginals, raked to what is known of single columns, with a scale for every cell.

    A public table may hold more women than the private one: then all of its marginals are off, although men and women
    differ in both as they should. Columns are cheap to measure, so they are set right first. For a marginal r with n'_x
    public records in cell x, u is proportional to n'_x + PSEUDO · prod_a q_a(x_a), scaled until its sums over each
    column a are n · q_a (iterative proportional fitting), where q_a combines the column's measurements and its public
    counts by their precision. With f_x = u_x / (n'_x + PSEUDO · prod_a q_a(x_a)), what a public record stands for,

        scale_x² = f_x² (n'_x + PSEUDO · prod_a q_a(x_a) + EXTRA) + bias_r² u_x²

    Chance is the first term. The second is what measurements of two columns and more show against the raked public
    marginals beyond their noise and chance, relative to u; the largest on two columns of r counts. Before there is one,
    it is a share of the relative bias of r's columns. A cell says nothing (its scale is infinite) where f_x is above
    ``FAR`` · n / n', or its scale above the noise of the first measurements (half of it, where bias is seen).

    Where the public records are the private ones, their counts are the marginals, with a scale of half a record.

    Cells that the constraints call impossible hold none of the public records, and say nothing.

    No scale is below what half a public record stands for, or below 1 / ``FLOOR`` of the first measurements' noise. Two
    readings never hold the same pair of columns: they are counts of the same records, and would count twice.
    """

    def __init__(
        self, public: Public, domain: Domain, cliques: Iterable[Clique], total: float, noise: float
    ) -> None:
        self.source, self.exact = public.sha256, public.same_records
        self._domain, self._total, self._noise = domain, total, noise
        often = 1 if self.exact else public.repeats  # repeats are no records: each counts once
        self.each = total * often / len(public.codes)  # what a public record stands for
        self.counts = {r: counts / often for r, counts in counted(public, domain, cliques).items()}
        self._zeros = zeros_of(public, domain)
        self._margins: dict[Attribute, FloatArray] = {}
        self._columns: dict[Attribute, tuple[FloatArray, FloatArray, float]] = {}
        self._raked: dict[Clique, tuple[FloatArray, FloatArray]] = {}
        self._believed: dict[Clique, tuple[FloatArray, FloatArray]] = {}
        self._compared: list[tuple[Clique, float]] = []
        self._measured: set[Clique] = set()

    def learn(self, transcript: Transcript) -> None:
        """Set the columns right, and hold what was measured against what is public."""
        self._raked, self._believed, self._compared = {}, {}, []
        self._measured = pairs_of(transcript.cliques)
        for a in self._domain:
            self._margins[a] = self._margin(a, transcript.measurements)
        for m in transcript.measurements:
            if len(m.clique) > 1 and m.clique in self.counts and not self.exact:
                self._compared.append((m.clique, self._against(m)))

    def reading(self, clique: Clique) -> tuple[FloatArray, FloatArray]:
        """What is believed of a marginal, and how far: a value and a scale for each cell."""
        if self.exact:
            return self.counts[clique], np.full(self.counts[clique].shape, 0.5)
        if clique not in self._believed:
            self._believed[clique] = self._believe(clique)
        return self._believed[clique]

    def _believe(self, clique: Clique) -> tuple[FloatArray, FloatArray]:
        """Values and scales of a marginal whose records are not the private ones."""
        if len(clique) == 1:
            values, scales, _ = self._columns[clique[0]]
            return values, scales
        values, scales = self._rake(clique)
        bias = self._bias(clique)
        least = max(self.each / 2, self._noise / FLOOR)
        scales = np.maximum(np.sqrt(scales**2 + (bias * values) ** 2), least)
        worst = self._noise if bias < UNBIASED else self._noise / 2
        return values, np.where(scales > worst, np.inf, scales)

    def readings(self, cliques: Iterable[Clique]) -> Transcript:
        """The readings of these marginals, but of those of which nothing is known."""
        found = [(r, *self.reading(r)) for r in cliques]
        return Transcript(
            tuple(PublicReading(r, u, scales, self.source) for r, u, scales in found if np.isfinite(scales).any())
        )

    def still_open(self, cliques: Iterable[Clique]) -> list[Clique]:
        """Those of which measurements do not hold every pair of columns already: the others would only take room."""
        return [r for r in cliques if len(r) == 1 or self.exact or not pairs_of([r]) <= self._measured]

    def gain(self, clique: Clique, estimate: FloatArray) -> float:
        """How much closer to the truth a reading is expected to bring an estimate of it, in L1, if above 0.

        With chance of scale s in a cell, |u − estimate| is expected to be above sqrt(2) s exactly where u is closer to
        the truth than the estimate is, and so that much is subtracted.
        """
        values, scales = self.reading(clique)
        told = np.isfinite(scales)
        values, scales, estimate = values[told], scales[told], estimate[told]
        chance = np.minimum(MEAN_OF_NORMAL * scales, values + estimate)
        return float((np.abs(values - estimate) - np.sqrt(2) * chance).sum())

    def _margin(self, a: Attribute, measurements: Iterable[Measurement]) -> FloatArray:
        """What is known of a column: measurements and public counts weighted by precision, summing to the total."""
        if self.exact and (a,) in self.counts:
            return self.counts[(a,)]
        measured, precision = np.zeros(self._domain.size(a)), 0.0
        for m in measurements:
            if a in m.clique:
                values = project_array(m.values.astype(np.float64), m.clique, (a,))
                of_one = values.size / (m.scale**2 * m.values.size)
                measured += of_one * values
                precision += of_one
        weights = np.full(measured.shape, precision)
        if (a,) in self.counts:
            mean = measured / precision if precision else None
            public, scales, _ = self._columns[a] = self._column(a, mean, 1 / precision if precision else 0.0)
            measured = measured + public / scales**2
            weights += scales**-2
        margin: FloatArray = np.divide(measured, weights, out=np.ones_like(measured), where=weights > 0)
        margin = np.maximum(margin, 1e-9 * self._total)
        margin *= self._total / margin.sum()
        return margin

    def _column(
        self, a: Attribute, measured: FloatArray | None, variance: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """A public column scaled up, its scales, and its relative bias: what speaks against it, beyond doubt.

        Of a column that is off, no cell is believed further than it is off itself: a bias relative to the whole column
        is next to nothing in its small cells. Nor is one further off than the comparison says beyond doubt: a
        measurement of great noise that is barely too far away would otherwise count for all.

        Σ (difference)² is nearly a multiple of a chi-square of k = (Σ v)² / Σ v² degrees, v the expected squares, and
        its cube root nearly normal (Satterthwaite; Wilson and Hilferty): the tail is long where codes are few.
        """
        counts = self.counts[(a,)]
        values = counts * self.each
        chance = (counts * (1 - counts / max(1.0, counts.sum())) + 0.5) * self.each**2  # of shares, not of numbers
        if measured is None:
            return values, np.sqrt(chance), 0.0
        expected = variance + chance
        usual, degrees = expected.sum(), expected.sum() ** 2 / (expected**2).sum()
        likely = usual * (1 - 2 / (9 * degrees) + DOUBT * np.sqrt(2 / (9 * degrees))) ** 3
        doubt = variance / (variance + float(chance.mean()))
        apart = np.abs(values - measured)
        found = (apart**2).sum()
        off = max(0.0, found - usual - doubt * (likely - usual))
        bias = float(np.sqrt(off / (values**2).sum()))
        wrong = np.maximum(bias * values, apart * np.sqrt(off / max(1.0, found)))
        return values, np.sqrt(chance + wrong**2), bias

    def _rake(self, clique: Clique) -> tuple[FloatArray, FloatArray]:
        """Public counts fitted to the columns, and their chance."""
        if clique not in self._raked:
            spread: FloatArray = np.ones(())
            for a in clique:
                spread = np.multiply.outer(spread, self._margins[a] / self._total)
            possible = joined([z for z in self._zeros if set(z.clique) <= set(clique)], clique, self._domain.size)
            records = self.counts[clique] + PSEUDO * spread * possible
            values = records * self.each
            for _ in range(6):
                for i, a in enumerate(clique):
                    others = tuple(j for j in range(values.ndim) if j != i)
                    sums = values.sum(axis=others)
                    factors: FloatArray = np.divide(self._margins[a], sums, out=np.ones_like(sums), where=sums > 0)
                    values *= factors.reshape([-1 if j == i else 1 for j in range(values.ndim)])
            each = np.divide(values, records, out=np.full(values.shape, np.inf), where=possible)
            scales = each * np.sqrt(records + EXTRA)
            self._raked[clique] = values, np.where(each > FAR * self.each, np.inf, scales)
        return self._raked[clique]

    def _against(self, m: Measurement) -> float:
        """The square of the relative bias that a measurement shows; cells count by how exactly they are known."""
        values, scales = self._rake(m.clique)
        told = np.isfinite(scales) & (self.counts[m.clique] > 0)
        values, expected = values[told], m.scale**2 + scales[told] ** 2
        weights = (values / (expected + (0.1 * values) ** 2)) ** 2  # 1 / variance of the square of a ratio, nearly
        off = float((weights * ((m.values[told] - values) ** 2 - expected)).sum())
        return off / float((weights * values**2).sum()) if values.any() else 0.0

    def _bias(self, clique: Clique) -> float:
        """The relative bias to expect of the relations among some columns."""
        of_columns = INHERITED * max(self._columns[a][2] for a in clique)
        near = [square for s, square in self._compared if len(set(s) & set(clique)) > 1]
        if near:
            seen = max(near)
        else:
            seen = float(np.mean([square for _, square in self._compared])) if self._compared else 0.0
        return max(of_columns, float(np.sqrt(max(0.0, seen))))


def pairs_of(cliques: Iterable[Clique]) -> set[Clique]:
    """All pairs of columns that some cliques hold."""
    return {pair for r in cliques for pair in combinations(r, 2)}


def given(public: Public | None, domain: Domain, *, own_columns: bool = False) -> Public:
    """The public table, if there is one that fits the domain.

    ``own_columns``: the mechanism knows what to do with columns of the private records themselves. To others they would
    be a sample of somebody else's, and what is known would be paid for and blurred.
    """
    if public is None:
        raise InputError(
            "This mechanism needs a public table.",
            remedy="Give one: public=margrave.read_public(file, schema, attestation=...), or --public FILE"
            " --attestation TEXT.",
        )
    if public.same_records and not own_columns:
        raise InputError(
            "The public table holds columns of the private records themselves, which this mechanism makes no use of.",
            remedy="Choose JAM (--mechanism jam), which asks nothing of them.",
        )
    public.check(domain)
    check_possible(public, domain)
    return public


def starting_from(fit: Fit, public: Public | None) -> Fit:
    """The fit, on the records of a public table; one of somebody else's knows by itself what it starts from."""
    if isinstance(fit, MultiplicativeWeightsFit | EntropyProjectionFit):
        return replace(fit, public=public)
    if isinstance(fit, tuple(FITS.values())):
        raise InputError(
            f"{type(fit).__name__} holds no weights of public records.",
            remedy="Give this mechanism a MultiplicativeWeightsFit or an EntropyProjectionFit, or no fit.",
        )
    return fit


def not_public(public: Public, cliques: Iterable[Clique], private: Private) -> tuple[Clique, ...]:
    """The marginals that are not known already: all, unless the public records are the private ones."""
    found = still_private(public, cliques, private.unit)
    if public.same_records and len(public.codes) != private.transcript.total():
        raise InputError(
            f"The public columns have {len(public.codes)} records, and the private table has another number of them.",
            remedy="Give the columns of the same records, or leave same_records (--same-records) out.",
        )
    return found


def still_private(public: Public, cliques: Iterable[Clique], unit: Unit) -> tuple[Clique, ...]:
    """The same as far as it can be told without the gate: whether the numbers of records agree, that alone tells."""
    if not public.same_records:
        return tuple(cliques)
    if not size_is_public(unit):
        raise InputError(
            "Columns of the private records are public, and so is their number, which this unit of privacy protects.",
            remedy="Choose a unit that replaces: ReplaceRow(), or --unit replace-row. Columns of persons cannot be.",
        )
    found = tuple(r for r in cliques if any(a not in public.domain for a in r))
    if not found:
        raise InputError(
            "Every column that the workload names is public: there is nothing to measure.",
            remedy="Name the private columns in the workload, or publish the table itself.",
        )
    return found


def zeros_of(public: Public, domain: Domain) -> Sequence[StructuralZeros]:
    """What the domain's constraints say of the public columns. Records that are the private ones are as they are."""
    return () if public.same_records else projected(domain.zeros, public.domain.attributes, domain.size) or ()


def check_possible(public: Public, domain: Domain) -> None:
    """Raise ``InputError`` where the constraints call every public record impossible."""
    if violating(zeros_of(public, domain), public.codes.column, len(public.codes)).all():
        raise InputError(
            "Every record of the public table has a combination that the schema declares impossible.",
            remedy="Give another public table, or mend the schema's constraints.",
        )


def counted(public: Public, domain: Domain, cliques: Iterable[Clique]) -> dict[Clique, FloatArray]:
    """The public records in each cell of those cliques whose columns are public; none in one that is impossible.

    A survey may call children married that the private table cannot. Read as they stand, its marginals of age and
    marital status would say that there are no others, and so no children. Of age alone it is right about them.
    """
    ordered = {r: public.domain.clique(r) for r in cliques if all(a in public.domain for a in r)}
    counts: Mapping[Clique, Any] = count_cliques(public.codes, ordered.values())
    found = {
        r: np.asarray(np.transpose(counts[c], [c.index(a) for a in r]), dtype=np.float64)
        for r, c in ordered.items()
    }
    zeros = zeros_of(public, domain)
    for r in found if zeros else ():
        found[r] *= joined([z for z in zeros if set(z.clique) <= set(r)], r, domain.size)
    return found


def scaled(
    public: Public, domain: Domain, cliques: Iterable[Clique], total: float
) -> dict[Clique, FloatArray]:
    """The public marginals of the cliques whose columns are public, scaled to so many records."""
    found = counted(public, domain, cliques)
    return {r: values * (total / values.sum()) for r, values in found.items() if values.any()}
