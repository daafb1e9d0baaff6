"""What a transcript says of marginals, as probability measures on embedded cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from margrave.errors import InputError
from margrave.marginal import TOTAL, HalfSpace, project_array
from margrave.marginal.counting import THREADS
from margrave.models.particles.agreement import Signed, agreeing
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.projection import STEPS, projected
from margrave.models.terms import Evidence, Term, terms_of
from margrave.schema.domain import Domain
from margrave.schema.zeros import joined
from margrave.transcript import Transcript
from margrave.typing import Attribute, Clique, FloatArray, IntArray

NOTHING = 1e-9
"""Cells with less of the mass are left out."""


SMALL = 100
"""Below so many cells in all, a thread takes longer to start than the projections do."""


@dataclass(frozen=True, eq=False)
class Target:
    """A probability measure that the particles are to have on some coordinates.

    ``points`` has a row for each coordinate and a column for each atom; ``weight`` is what its loss is multiplied by.
    """

    clique: Clique
    coordinates: IntArray
    points: FloatArray
    shares: FloatArray
    weight: float


def refuse_queries(transcript: Transcript) -> None:
    """Raise an InputError for an answer that is of no whole marginal, but for the number of records and half-spaces."""
    for answer in transcript.answers:
        if answer.query != TOTAL and not isinstance(answer.query, HalfSpace):
            raise InputError(
                f"Particles are fitted to whole marginals, not to an answer such as that on {answer.query.words}.",
                remedy="Fit single queries with GraphicalFit() or EntropyProjectionFit() (margrave refit --fit"
                " graphical, or histogram).",
            )


def targets_of(
    embedding: Embedding,
    transcript: Transcript,
    rng: np.random.Generator,
    *,
    weighted: bool,
    directions: int,
    consistent: bool = True,
    steps: int = STEPS,
) -> list[Target]:
    """A target for every marginal that was measured, or read from public data.

    ``weighted``: a target's weight is the inverse variance of its cells' noise, that of the most exact one being 1;
    without, all weigh the same. ``consistent``: marginals are made to agree on columns first (``agreeing``).
    ``directions`` and ``steps`` are those of ``projected``.
    """
    refuse_queries(transcript)
    signed = signed_of(embedding.domain, transcript)
    agreed = agreeing(embedding.domain, signed) if consistent else signed
    found = [s for s in agreed if len(embedding.coordinates(s.clique))]
    least = min((s.scale for s in found), default=1.0)
    streams = rng.spawn(len(found))

    def target(signed: Signed, own: np.random.Generator) -> Target:
        points = embedding.cells(signed.clique, signed.cells)
        shares = projected(points, signed.shares, own, directions=directions, steps=steps)
        kept = shares >= min(NOTHING, float(shares.max()))
        weight = (least / signed.scale) ** 2 if weighted else 1.0
        coordinates = embedding.coordinates(signed.clique)
        return Target(signed.clique, coordinates, points[:, kept], shares[kept] / shares[kept].sum(), weight)

    if sum(len(s.cells) for s in found) < SMALL:
        return list(map(target, found, streams))
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(target, found, streams))


def signed_of(domain: Domain, transcript: Transcript) -> list[Signed]:
    """The marginals of a transcript, each measured once: repeats are averaged with weights 1 / variance.

    A measurement of merged codes is one of groups; what a group has is shared among its codes as the measurements of
    that column say, or equally. What is impossible is left out, and the rest raised or lowered by one amount, so that
    it sums to the number of records.
    """
    total = transcript.total()
    whole = terms_of(domain, [m for m in transcript.evidence if m.query.is_identity])
    terms = [*whole, *_spread(domain, whole, [m for m in transcript.evidence if not m.query.is_identity])]
    return [_signed(domain, term, total) for term in terms]


def _signed(domain: Domain, term: Term, total: float) -> Signed:
    inside = [z for z in domain.zeros if set(z.clique) <= set(term.clique)]
    possible = joined(inside, term.clique, domain.size).reshape(-1)
    cells = np.flatnonzero(possible)
    shares = term.values.reshape(-1)[cells] / total
    shares = shares + (1.0 - shares.sum()) / len(shares)
    return Signed(term.clique, cells, shares, term.scale)


def _spread(domain: Domain, whole: Sequence[Term], merged: Iterable[Evidence]) -> list[Term]:
    """Measurements of groups as such of codes, those that merge alike averaged first."""
    alike: dict[tuple[object, ...], list[Evidence]] = {}
    for m in merged:
        key = (m.clique, *((a, groups.tobytes()) for a, groups in sorted(m.query.groups.items())))
        alike.setdefault(key, []).append(m)
    found = []
    for group in alike.values():
        first = group[0]
        precision = np.array([m.scale**-2 for m in group])
        values = sum(p * m.values for p, m in zip(precision, group, strict=True)) / precision.sum()
        values = first.query.spread(first.clique, np.asarray(values, dtype=np.float64))
        for axis, attribute in enumerate(first.clique):
            if attribute in first.query.groups:
                within = _within(column_counts(domain, whole, attribute), first.query.groups[attribute])
                values = values * within.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
        scale = float(precision.sum() ** -0.5)
        found.append(Term(first.clique, values, np.full(values.shape, scale)))
    return found


def column_counts(domain: Domain, whole: Sequence[Term], attribute: Attribute) -> FloatArray:
    """What the measurements say of one column, none negative; zero where none speaks of it."""
    sums, weights = np.zeros(domain.size(attribute)), 0.0
    for term in whole:
        if attribute in term.clique:
            variance = float(project_array(term.scales**2, term.clique, (attribute,)).max())
            sums += project_array(term.values, term.clique, (attribute,)) / variance
            weights += 1.0 / variance
    return np.maximum(sums / max(weights, 1e-300), 0.0)


def _within(counts: FloatArray, groups: IntArray) -> FloatArray:
    """Each code's share of its group; equal where the group has none."""
    sums, members = np.bincount(groups, weights=counts), np.bincount(groups)
    return np.where(sums[groups] > 0, counts / np.where(sums > 0, sums, 1.0)[groups], 1.0 / members[groups])
