"""Diagnostics of a release: columns measured together, and answers that the model contradicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from margrave.bounds.weighted_sums import gives_sums_alone
from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.marginal import maximal
from margrave.models import FittedAnswers
from margrave.models.empty_codes import WithoutEmpty, non_empty
from margrave.models.protocol import Answerer
from margrave.provenance import Provenance
from margrave.schema import Schema
from margrave.schema.column import abbreviate
from margrave.transcript import PublicReading, Transcript
from margrave.types import AnyArray, Attribute, Clique


def known_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """Return the columns of each marginal that was measured or is public, with those that follow.

    A column follows from others if the schema leaves one value possible for each of theirs, as a
    state follows from its city. Weighted sums, as of a number in each cell of another column, do not determine a
    marginal: `counted_together` has their columns.
    """
    return maximal(
        with_followers(domain, e.clique)
        for e in transcript.evidence
        if isinstance(e, PublicReading) or not gives_sums_alone(e)
    )


def read_together(
    domain: Domain, transcript: Transcript, provenance: Provenance
) -> tuple[Clique, ...]:
    """Return the columns of each public marginal of other records, with those that follow."""
    read = () if provenance.same_records else transcript.readings
    return maximal(with_followers(domain, r.clique) for r in read)


def without_others(transcript: Transcript, provenance: Provenance) -> Transcript:
    """Return the transcript without public marginals of other records."""
    if provenance.same_records or not transcript.readings:
        return transcript
    return Transcript(tuple(e for e in transcript if not isinstance(e, PublicReading)))


def counted_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """Return the columns of each single count and each weighted sum, whose marginal is known in part."""
    return maximal([*_asked(domain, transcript), *summed_together(domain, transcript)])


def summed_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """Return the columns of each weighted sum, with those that follow."""
    sums = filter(gives_sums_alone, transcript.measurements)
    return maximal(with_followers(domain, m.clique) for m in sums)


def merged_together(
    domain: Domain, transcript: Transcript
) -> dict[Attribute, tuple[tuple[int, ...], ...]]:
    """Return by column the sets of codes that share one count in every marginal of several columns.

    Nothing is known of how codes of one set differ in other columns.
    """
    queries: dict[Attribute, list[AnyArray]] = {}
    for e in transcript.evidence:
        for a in e.clique if len(e.clique) > 1 else ():
            queries.setdefault(a, []).append(e.query.classes(a, domain.size(a)))
    return {a: sets for a, groups in queries.items() if (sets := _alike(np.stack(groups)))}


def merged_words(schema: Schema, merged: Mapping[Attribute, tuple[tuple[int, ...], ...]]) -> str:
    """Return in words which codes share one count, by column, each set in braces.

    >>> from margrave.schema import Real
    >>> merged_words(Schema([Real("cost", 0, 30, bins=3)]), {"cost": ((1, 2),)})
    'cost {[10, 20), [20, 30]}'
    """
    words = []
    for a in sorted(merged, key=schema.domain.index):
        labels = schema.column(a).labels()
        sets = (f"{{{abbreviate([labels[c] for c in codes])}}}" for codes in merged[a])
        words.append(f"{a} {', '.join(sets)}")
    return "; ".join(words)


def empty_codes(
    domain: Domain, transcript: Transcript, model: FittedAnswers
) -> dict[Attribute, tuple[int, ...]]:
    """Return the codes without mass in the model whose noisy counts noise alone explains, by column."""
    kept = non_empty(domain, transcript, WithoutEmpty.below, all_marginals=True)
    try:
        answers = model.distribution().answer([(a,) for a in kept]) if kept else {}
    except ReleaseError:
        return {}
    found = {a: np.flatnonzero(~kept[a] & (answers[(a,)] == 0.0)) for a in kept}
    return {a: tuple(codes.tolist()) for a, codes in found.items() if len(codes)}


def empty_words(schema: Schema, transcript: Transcript, model: FittedAnswers) -> str:
    """Return a sentence that lists the ``empty_codes`` of a model; no text if there are none."""
    empty = {a: (codes,) for a, codes in empty_codes(schema.domain, transcript, model).items()}
    if not empty:
        return ""
    return (
        "No synthetic row has these values. Noise alone could explain their noisy counts:"
        f" {merged_words(schema, empty)}."
    )


def _alike(groups: AnyArray) -> tuple[tuple[int, ...], ...]:
    """Return the sets of two and more codes that are in one group for all (queries × codes)."""
    kinds = np.unique(groups, axis=1, return_inverse=True)[1].ravel()
    sets = (tuple(np.flatnonzero(kinds == k).tolist()) for k in range(int(kinds.max()) + 1))
    return tuple(s for s in sets if len(s) > 1)


def unmeasured_columns(
    domain: Domain, transcript: Transcript, provenance: Provenance
) -> tuple[Attribute, ...]:
    """Return the columns of which the model's distribution does not come from data.

    Those of a marginal, a single count, a public marginal or a public table that the model started
    from are not among them, nor those that follow from these by the schema. If nothing was counted,
    choices alone made the model; then the columns of all queries that could be chosen count too.
    """
    covered = [*transcript.counted, provenance.started_from]
    if not transcript.counts_something:
        covered += [c for s in transcript.query_selections for c in s.queries.cliques]
    return left_out(domain, covered)


def left_out(domain: Domain, cliques: Iterable[Iterable[Attribute]]) -> tuple[Attribute, ...]:
    """Return the columns that are in none of these cliques, and do not follow from those that are."""
    named = set(chain.from_iterable(cliques))
    known = with_followers(domain, domain.clique(named.intersection(domain.attributes)))
    return tuple(a for a in domain if a not in known)


def with_followers(domain: Domain, clique: Clique) -> Clique:
    """Return the clique with the columns that follow from its own, by structural zeros."""
    known, size = set(clique), -1
    while len(known) > size:
        size = len(known)
        for zeros in domain.zeros:
            for axis, column in enumerate(zeros.clique):
                if (
                    set(zeros.clique) - known == {column}
                    and (zeros.possible.sum(axis=axis) <= 1).all()
                ):
                    known.add(column)
    return domain.clique(known)


def _asked(domain: Domain, transcript: Transcript) -> Iterable[Clique]:
    return (domain.clique(a.query.clique) for a in transcript.answers if a.query.clique)


#: Smaller shares of the records are not reported: a model between noisy answers is a little off all.
MIN_MISFIT_SHARE = 0.05


@dataclass(frozen=True)
class Misfit:
    """A measured marginal of which the model has at least a ``share`` of the records in the wrong cells."""

    clique: Clique
    share: float


def find_misfits(model: Answerer, transcript: Transcript) -> tuple[Misfit, ...]:
    """Return the marginals measured whole that the model contradicts, the worst first.

    With y = M(D) + noise of scale σ in each of k cells, and p the model, ``‖M(D) − M(p)‖₁ ≥ ‖y −
    M(p)‖₁ − ‖noise‖₁``, where ``‖noise‖₁`` is about σ (k √(2/π) ± NOISE_MARGIN_SDS √(k (1 − 2/π))).
    Half of that distance are records in wrong cells.

    Privacy:
        None spent.
    """
    # Standard deviations of the noise's L1 norm that are subtracted; for a single cell 4.4 of its
    # own.
    noise_margin_sds = 6.0
    total = max(transcript.total(), 1.0)
    found: dict[Clique, float] = {}
    whole = [m for m in transcript.measurements if m.query.is_identity]
    expected = model.answer(list(dict.fromkeys(m.clique for m in whole)))
    for m in whole:
        off = float(np.abs(m.values - expected[m.clique]).sum())
        cells = m.values.size
        noise = m.scale * (
            cells * math.sqrt(2 / math.pi) + noise_margin_sds * math.sqrt(cells * (1 - 2 / math.pi))
        )
        found[m.clique] = max(found.get(m.clique, 0.0), min(1.0, (off - noise) / 2 / total))
    worst = sorted(found.items(), key=lambda pair: -pair[1])
    return tuple(Misfit(r, share) for r, share in worst if share > MIN_MISFIT_SHARE)
