"""From a transcript to the terms of a fit: repeated measurements merged, merged codes compressed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import LinearMap, LinearQuery, SingleQuery
from margrave.marginal.simplex import shares_within
from margrave.models.precision_means import PrecisionMeans, column_mean
from margrave.transcript import Answer, Entry, Measurement, PublicReading, Transcript
from margrave.types import Attribute, Clique, FloatArray, IntArray

#: A marginal from a measurement or public data, with the scale of its error.
Evidence = Measurement | PublicReading


@dataclass(frozen=True, eq=False)
class Term:
    """Values of one marginal, and the standard deviation of each cell's noise.

    An unknown cell has scale infinity, and the value of a public marginal, or 0.
    """

    clique: Clique
    values: FloatArray
    scales: FloatArray

    @property
    def scale(self) -> float:
        """One number for ``scales``: that of the mean precision."""
        return float(1.0 / np.sqrt((self.scales**-2.0).mean()))


def sets_of(query: SingleQuery) -> LinearQuery:
    """Return a query of sets of codes; an InputError for one that is not."""
    if isinstance(query, LinearQuery):
        return query
    raise InputError(
        f"This fit takes no half-space such as {query.describe}.",
        remedy="Fit a transcript with half-spaces with ParticleFit() (margrave refit --fit particles), which has a"
        " penalty for them.",
    )


def single_cells(transcript: Transcript) -> list[Answer]:
    """Return the single queries that were answered, but for the number of records; an InputError
    unless they are cells.
    """
    answers = [a for a in transcript.answers if a.query.clique]
    for answer in answers:
        if not sets_of(answer.query).is_cell:
            raise InputError(
                f"This fit takes whole marginals and single cells, not an answer on {answer.query.describe}.",
                remedy="Fit ranges and other sets of codes with EntropyProjectionFit() or GeneratorFit() (margrave"
                " refit --fit histogram, or generator).",
            )
    return answers


def refuse_maps(evidence: Iterable[Evidence]) -> None:
    """Raise an InputError for a measurement through a linear map with matrices."""
    for m in evidence:
        if not m.query.is_partition:
            raise InputError(
                f"This fit takes cells and groups of codes, not a linear map of {', '.join(m.clique)}.",
                remedy="Fit the transcript with GraphicalFit() (margrave refit --fit graphical).",
            )


def unfolded(domain: Domain, entry: Entry) -> list[Entry]:
    """Return the answers of a map with weights 0 and 1 as counts of sets of codes; other entries as they are.

    Answers that count no code are left out: they are noise alone.
    """
    if not isinstance(entry, Measurement) or entry.query.is_partition:
        return [entry]
    if not entry.query.is_counts:
        raise InputError(
            f"This fit takes counts, not the weighted sums that were measured of {', '.join(entry.clique)}.",
            remedy="Fit the transcript with GraphicalFit() (margrave refit --fit graphical).",
        )
    sets = [
        [tuple(np.flatnonzero(row).tolist()) for row in entry.query.rows(a, domain.size(a))]
        for a in entry.clique
    ]
    rho = entry.rho / max(1, entry.values.size)
    found: list[Entry] = []
    for at, value in np.ndenumerate(entry.values):
        codes = tuple(sets[i][row] for i, row in enumerate(at))
        if all(codes):
            found.append(Answer(LinearQuery(entry.clique, codes), int(value), entry.scale, rho))
    return found


def common_groups(
    domain: Domain, measurements: Iterable[Evidence], answers: Iterable[Answer] = ()
) -> dict[Attribute, IntArray]:
    """Return the groups of codes that the measurements merge, per attribute that has any.

    All measurements must merge an attribute's codes alike, but for those of that attribute alone with every code, and
    none of an attribute with structural zeros, or with answers of single cells, may; else it is an InputError.
    """
    groups: dict[Attribute, IntArray] = {}
    whole: set[Attribute] = {a for z in domain.zeros for a in z.clique}
    whole.update(a for answer in answers for a in answer.query.clique)
    for m in measurements:
        if not m.query.is_partition:
            whole.update(m.clique)
            continue
        for a in m.clique:
            own = m.query.groups.get(a)
            if own is None:
                whole.update((a,) if len(m.clique) > 1 else ())
            elif not np.array_equal(groups.setdefault(a, own), own):
                whole.add(a)
    for a in groups:
        if a in whole:
            raise InputError(
                f"The measurements of column {a!r} merge its codes in different ways.",
                remedy="Fit a transcript in which they are merged alike, or not at all.",
            )
    return groups


def compress(
    domain: Domain, measurements: Sequence[Evidence], groups: Mapping[Attribute, IntArray]
) -> tuple[Domain, list[Evidence], dict[Attribute, FloatArray]]:
    """Return the problem on groups of codes: its domain, its measurements, and each code's share of
    its group.

    A group's noisy count is the sum of its codes' noisy counts, with the variance that follows: a one-way measurement
    keeps one scale per cell (``terms_of``). Shares come from the one-way measurements, clipped at zero; without any,
    they are equal.
    """
    coarse = LinearMap(groups)
    shares = {a: np.ones(domain.size(a)) for a in groups}
    for a in groups:
        own = [m for m in measurements if m.clique == (a,) and m.query.is_identity]
        if own:
            shares[a] = column_mean(a, [(m.clique, m.values, scales_of(m)) for m in own])[0]
        shares[a] = shares_within(shares[a], groups[a])
    reduced = [_coarsened(m, groups) for m in measurements]
    sub = coarse.domain(domain)
    return Domain(sub.attributes, sub.sizes, domain.zeros), reduced, shares


def _coarsened(m: Evidence, groups: Mapping[Attribute, IntArray]) -> Evidence:
    """Return a measurement restated on groups: as it is if it was of groups, else summed over them.

    ``query`` of the result maps the measurement's own cells to groups, so that ``terms_of`` knows how many were summed.
    """
    left = {}
    for a in m.clique:
        if a in groups:
            merged = a in m.query.groups
            left[a] = np.arange(int(groups[a].max()) + 1) if merged else groups[a]
    return replace(m, query=LinearMap(left))


def terms_of(
    domain: Domain, measurements: Iterable[Evidence], answers: Iterable[Answer] = ()
) -> list[Term]:
    """Return one term per clique: measurements on the domain's codes, repeats averaged with weights
    1 / variance.
    """
    measurements = list(measurements)
    refuse_maps(measurements)
    means = PrecisionMeans[Clique]()
    guesses: dict[Clique, FloatArray] = {}
    for m in measurements:
        values = m.query.apply(m.clique, m.values.astype(np.float64))
        precision = 1.0 / m.query.apply(m.clique, scales_of(m) ** 2)
        if isinstance(m, PublicReading):
            guesses[m.clique] = values
        means.add(m.clique, precision * values, precision)
    for answer in answers:
        clique, cell = answer.query.clique, tuple(codes[0] for codes in sets_of(answer.query).codes)
        means.add_cell(clique, domain.shape(clique), cell, answer.value, answer.scale)
    return [_term(c, mean, precision, guesses.get(c)) for c, mean, precision in means]


def scales_of(m: Evidence) -> FloatArray:
    """Return the scale of each cell's error; infinite if a public marginal does not cover the cell."""
    return m.scales if isinstance(m, PublicReading) else np.full(m.values.shape, m.scale)


def _term(
    clique: Clique, mean: FloatArray, precision: FloatArray, guess: FloatArray | None
) -> Term:
    known = precision > 0.0
    values = mean if guess is None else np.where(known, mean, guess)
    scales = np.divide(1.0, np.sqrt(precision), out=np.full_like(precision, np.inf), where=known)
    return Term(clique, values, scales)
