"""The measured marginals of a transcript as probability measures on embedded cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from margrave.domain import Domain
from margrave.marginal.axes import multiply_along
from margrave.marginal.consistency import SignedMeasure, agreeing
from margrave.marginal.counting import THREADS
from margrave.marginal.simplex import shares_within
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.projection import PUBLISHED, QUICK, STEPS, projected, quantized
from margrave.models.precision_means import PrecisionMeans, column_mean
from margrave.models.terms import Evidence, Term, terms_of
from margrave.structural_zeros import joined
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Target:
    """A probability measure that the particles are fitted to on some coordinates.

    ``points`` has a row for each coordinate and a column for each point; ``weight`` multiplies its
    loss.
    """

    clique: Clique
    coordinates: IntArray
    points: FloatArray
    shares: FloatArray
    weight: float


def targets_of(
    embedding: Embedding,
    transcript: Transcript,
    rng: np.random.Generator,
    *,
    weighted: bool,
    directions: int,
    consistent: bool = True,
    steps: int = STEPS,
    recipe: str = QUICK,
    particles: int = 0,
) -> list[Target]:
    """Return a target for every marginal that was measured, or read from public data.

    ``weighted``: a target's weight is the inverse variance of its cells' noise, that of the most exact one being 1;
    without, all weigh the same. ``consistent``: marginals are made to agree on columns first (``agreeing``).
    ``directions``, ``steps`` and ``recipe`` are those of ``projected``. With the ``PUBLISHED`` one, shares are
    projected as they are, whatever their sum, and a target is the distribution of so many ``particles``.
    """
    # Share of the mass below which cells are dropped.
    min_mass_share = 1e-9
    # Cells below which a thread takes longer to start than the projections.
    max_serial_cells = 100
    published = recipe == PUBLISHED
    signed = signed_of(embedding.domain, transcript, shifted=consistent or not published)
    agreed = agreeing(embedding.domain, signed) if consistent else signed
    found = [s for s in agreed if len(embedding.coordinates(s.clique))]
    least = min((s.scale for s in found), default=1.0)
    streams = rng.spawn(len(found))

    def target(signed: SignedMeasure, own: np.random.Generator) -> Target:
        points = embedding.cells(signed.clique, signed.cells)
        shares = projected(
            points, signed.shares, own, directions=directions, steps=steps, recipe=recipe
        )
        if published:
            shares = quantized(shares, particles)
        kept = shares >= min(min_mass_share, float(shares.max()))
        weight = (least / signed.scale) ** 2 if weighted else 1.0
        coordinates = embedding.coordinates(signed.clique)
        return Target(
            signed.clique, coordinates, points[:, kept], shares[kept] / shares[kept].sum(), weight
        )

    if sum(len(s.cells) for s in found) < max_serial_cells:
        return list(map(target, found, streams))
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(target, found, streams))


def signed_of(
    domain: Domain, transcript: Transcript, *, shifted: bool = True
) -> list[SignedMeasure]:
    """Return the marginals of a transcript, each once: repeats are averaged with weights 1 /
    variance.

    Groups of merged codes are shared among their codes as the measurements of that column imply, or
    equally. Impossible cells are dropped, and the rest is ``shifted`` by one amount to sum to the
    number of records.
    """
    total = transcript.total()
    whole = terms_of(domain, [m for m in transcript.evidence if m.query.is_identity])
    terms = [
        *whole,
        *_spread(domain, whole, [m for m in transcript.evidence if not m.query.is_identity]),
    ]
    return [_signed(domain, term, total, shifted) for term in terms]


def _signed(domain: Domain, term: Term, total: float, shifted: bool) -> SignedMeasure:
    inside = [z for z in domain.zeros if set(z.clique) <= set(term.clique)]
    possible = joined(inside, term.clique, domain.size).reshape(-1)
    cells = np.flatnonzero(possible)
    shares = term.values.reshape(-1)[cells] / total
    if shifted:
        shares = shares + (1.0 - shares.sum()) / len(shares)
    return SignedMeasure(term.clique, cells, shares, term.scale)


def _spread(domain: Domain, whole: Sequence[Term], merged: Iterable[Evidence]) -> list[Term]:
    alike = PrecisionMeans[tuple[Clique, bytes]]()
    firsts: dict[tuple[Clique, bytes], Evidence] = {}
    for m in merged:
        key = (m.clique, m.query.key)
        alike.add(key, m.scale**-2.0 * m.values, m.scale**-2.0)
        firsts.setdefault(key, m)
    found = []
    for key, mean, precision in alike:
        first = firsts[key]
        values = first.query.spread(first.clique, mean)
        shares = {
            a: shares_within(column_counts(domain, whole, a), groups)
            for a, groups in first.query.groups.items()
        }
        values = multiply_along(values, first.clique, shares)
        scale = float(precision**-0.5)
        found.append(Term(first.clique, values, np.full(values.shape, scale)))
    return found


def column_counts(domain: Domain, whole: Sequence[Term], attribute: Attribute) -> FloatArray:
    """Return one column's counts by its measurements, none negative; zero if there is no
    measurement.
    """
    holding = [(t.clique, t.values, t.scales) for t in whole if attribute in t.clique]
    if not holding:
        return np.zeros(domain.size(attribute))
    return np.maximum(column_mean(attribute, holding)[0], 0.0)
