"""The pairs of columns that the noisy answers are about, and those whose relation the noise hides."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from margrave.domain import Domain
from margrave.provenance import Provenance
from margrave.release.diagnostics import (
    counted_together,
    known_together,
    left_out,
    read_together,
    unmeasured_columns,
    without_others,
)
from margrave.release.small_cells import cell_sizes, hidden_pairs
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique


@dataclass(frozen=True)
class Coverage:
    """Coverage of the pairs of columns.

    Args:
        pairs: Number of pairs of columns.
        measured: Number of pairs that a measured marginal contains.
        in_part: Number of further pairs that only single counts, weighted sums, or choices, are about.
        alone: Columns that were asked for, and that are in no such pair.
        public: Whether a public table of other records is about some pair: the model started from
            it, or public marginals were read from it.
        constrained: Whether constraints of the schema join some of the columns ``alone``.
        public_only: Columns that were not asked for, and that only that public table has.
        hidden: Measured pairs whose average cell is smaller than its noise in all marginals with both columns.
    """

    pairs: int
    measured: int
    in_part: int
    alone: tuple[Attribute, ...]
    public: bool
    constrained: bool = False
    public_only: tuple[Attribute, ...] = ()
    hidden: tuple[Clique, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return plain data for the certificate."""
        return {
            **vars(self), "alone": list(self.alone), "public_only": list(self.public_only),
            "hidden": [list(pair) for pair in self.hidden],
        }  # fmt: skip


@dataclass(frozen=True)
class PairEvidence:
    """The pairs of columns that the answers are about.

    Args:
        measured: Pairs that a measured marginal contains.
        in_part: Further pairs that only single counts, weighted sums, or choices, are about.
        public: Pairs of a public table of other records.
    """

    measured: frozenset[Clique]
    in_part: frozenset[Clique]
    public: frozenset[Clique]

    def kinds(self) -> dict[Clique, str]:
        """Return "measured", "in part" or "public" by pair; other pairs are indirect."""
        found = dict.fromkeys(self.public, "public")
        return (
            found
            | dict.fromkeys(self.in_part, "in part")
            | dict.fromkeys(self.measured, "measured")
        )


def pair_evidence(domain: Domain, transcript: Transcript, provenance: Provenance) -> PairEvidence:
    """Return the pairs of columns that the answers are about, by the kind of answer."""
    measured = _pairs_of(known_together(domain, without_others(transcript, provenance)))
    in_part = _pairs_of(_asked_in_part(domain, transcript)) - measured
    started = domain.clique(a for a in provenance.started_from if a in domain)
    public = _pairs_of([started, *read_together(domain, transcript, provenance)])
    return PairEvidence(measured, in_part, public)


def _asked_in_part(domain: Domain, transcript: Transcript) -> list[Clique]:
    partly = [*counted_together(domain, transcript)]
    if not transcript.counts_something:
        partly += [domain.clique(c) for s in transcript.query_selections for c in s.queries.cliques]
    return partly


def coverage_of(domain: Domain, transcript: Transcript, provenance: Provenance) -> Coverage:
    """Return which pairs the answers are about; the model relates the others through other columns."""
    found = pair_evidence(domain, transcript, provenance)
    measured, in_part, public = found.measured, found.in_part, found.public
    related = {a for pair in (*measured, *in_part, *public) for a in pair}
    silent = unmeasured_columns(domain, transcript, provenance)
    alone = (
        tuple(a for a in domain if a not in related and a not in silent) if len(domain) > 1 else ()
    )
    constrained = any(
        a in zeros.clique for zeros in domain.zeros if len(zeros.clique) > 1 for a in alone
    )
    partly = _asked_in_part(domain, transcript)
    asked = left_out(domain, [*without_others(transcript, provenance).counted, *partly])
    public_only = tuple(a for a in asked if a not in silent)
    hidden = hidden_pairs(cell_sizes(domain, transcript)) & measured
    return Coverage(
        math.comb(len(domain), 2),
        len(measured),
        len(in_part),
        alone,
        bool(public),
        constrained,
        public_only,
        tuple(sorted(hidden, key=lambda pair: [domain.index(a) for a in pair])),
    )


def _pairs_of(cliques: Iterable[Clique]) -> frozenset[Clique]:
    return frozenset(pair for clique in cliques for pair in combinations(clique, 2))
