"""From a transcript to the terms of a fit: repeated measurements merged, merged codes compressed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave.errors import InputError
from margrave.marginal import LinearQuery, Query, SingleQuery
from margrave.schema.domain import Domain
from margrave.transcript import Answer, Measurement, PublicReading, Transcript
from margrave.typing import Attribute, Clique, FloatArray, IntArray

Evidence = Measurement | PublicReading
"""A marginal as far as it is known, with the scale of what it may be off by."""


@dataclass(frozen=True, eq=False)
class Term:
    """What is known of one marginal: values and the standard deviation of each cell's noise.

    A cell of which nothing is known has scale infinity, and the value that a public reading gives it, or 0.
    """

    clique: Clique
    values: FloatArray
    scales: FloatArray

    @property
    def scale(self) -> float:
        """One number for ``scales``: that of the mean precision."""
        return float(1.0 / np.sqrt((self.scales**-2.0).mean()))


def sets_of(query: SingleQuery) -> LinearQuery:
    """A query of sets of codes; an InputError for one that is not."""
    if isinstance(query, LinearQuery):
        return query
    raise InputError(
        f"This fit takes no half-space such as {query.words}.",
        remedy="Fit a transcript with half-spaces with ParticleFit() (margrave refit --fit particles), which has a"
        " penalty for them.",
    )


def single_cells(transcript: Transcript) -> list[Answer]:
    """The single queries that were answered, but for the number of records; an InputError unless they are cells."""
    answers = [a for a in transcript.answers if a.query.clique]
    for answer in answers:
        if not sets_of(answer.query).is_cell:
            raise InputError(
                f"This fit takes whole marginals and single cells, not an answer such as that on {answer.query.words}.",
                remedy="Fit ranges and other sets of codes with EntropyProjectionFit() or GeneratorFit() (margrave"
                " refit --fit histogram, or generator).",
            )
    return answers


def common_groups(
    domain: Domain, measurements: Iterable[Evidence], answers: Iterable[Answer] = ()
) -> dict[Attribute, IntArray]:
    """The groups of codes that the measurements merge, per attribute that has any.

    All measurements must merge an attribute's codes alike, but for those of that attribute alone with every code, and
    none of an attribute with structural zeros, or with answers of single cells, may; else it is an InputError.
    """
    groups: dict[Attribute, IntArray] = {}
    whole: set[Attribute] = {a for z in domain.zeros for a in z.clique}
    whole.update(a for answer in answers for a in answer.query.clique)
    for m in measurements:
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
    """The problem on groups of codes: its domain, its measurements, and each code's share of its group.

    A group's noisy count is the sum of its codes' noisy counts, with the variance that follows: a one-way measurement
    keeps one scale per cell (``terms_of``). Shares come from the one-way measurements, clipped at zero; without any,
    they are equal.
    """
    coarse = Query(groups)
    shares = {a: np.ones(domain.size(a)) for a in groups}
    for a in groups:
        own = [m for m in measurements if m.clique == (a,) and m.query.is_identity]
        if own:
            weight = np.array([m.scale**-2 for m in own])
            mean = sum(w * m.values for w, m in zip(weight, own, strict=True)) / weight.sum()
            shares[a] = _shares(np.asarray(mean, dtype=np.float64), groups[a])
        else:
            shares[a] = _shares(shares[a], groups[a])
    reduced = [_coarsened(m, groups) for m in measurements]
    sub = coarse.domain(domain)
    return Domain(sub.attributes, sub.sizes, domain.zeros), reduced, shares


def _shares(counts: FloatArray, groups: IntArray) -> FloatArray:
    """Counts scaled to sum to one in each group; a group without positive counts is shared equally."""
    positive = np.maximum(counts, 0.0)
    sums = np.bincount(groups, weights=positive)
    members = np.bincount(groups)
    return np.where(sums[groups] > 0, positive / np.where(sums > 0, sums, 1.0)[groups], 1.0 / members[groups])


def _coarsened(m: Evidence, groups: Mapping[Attribute, IntArray]) -> Evidence:
    """A measurement restated on groups: as it is if it was of groups, else summed over them.

    ``query`` of the result maps the measurement's own cells to groups, so that ``terms_of`` knows how many were summed.
    """
    left = {}
    for a in m.clique:
        if a in groups:
            merged = a in m.query.groups
            left[a] = np.arange(int(groups[a].max()) + 1) if merged else groups[a]
    return replace(m, query=Query(left))


def terms_of(domain: Domain, measurements: Iterable[Evidence], answers: Iterable[Answer] = ()) -> list[Term]:
    """One term per clique: measurements summed to the domain's codes, repeats averaged with weights 1 / variance.

    ``answers`` of single cells are measurements of these cells alone.
    """
    sums: dict[Clique, tuple[FloatArray, FloatArray]] = {}
    guesses: dict[Clique, FloatArray] = {}
    for m in measurements:
        values = m.query.apply(m.clique, m.values.astype(np.float64))
        precision = 1.0 / m.query.apply(m.clique, scales_of(m) ** 2)
        if isinstance(m, PublicReading):
            guesses[m.clique] = values
        weighted, total = sums.get(m.clique, (np.zeros(1), np.zeros(1)))
        sums[m.clique] = (weighted + precision * values, total + precision)
    for answer in answers:
        clique, cell = answer.query.clique, tuple(codes[0] for codes in sets_of(answer.query).codes)
        if clique not in sums:
            sums[clique] = (np.zeros(domain.shape(clique)), np.zeros(domain.shape(clique)))
        weighted, total = sums[clique]
        weighted[cell] += answer.value / answer.scale**2
        total[cell] += 1.0 / answer.scale**2
    return [
        _term(clique, weighted, precision, guesses.get(clique)) for clique, (weighted, precision) in sums.items()
    ]


def scales_of(m: Evidence) -> FloatArray:
    """What each cell of a marginal may be off by; infinite where a reading tells nothing."""
    return m.scales if isinstance(m, PublicReading) else np.full(m.values.shape, m.scale)


def _term(clique: Clique, weighted: FloatArray, precision: FloatArray, guess: FloatArray | None) -> Term:
    known = precision > 0.0
    start = np.zeros_like(weighted) if guess is None else guess.copy()
    values = np.divide(weighted, precision, out=start, where=known)
    scales = np.divide(1.0, np.sqrt(precision), out=np.full_like(precision, np.inf), where=known)
    return Term(clique, values, scales)
