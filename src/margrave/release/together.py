"""Which columns a release knows, and which together: what was counted or read of them at once, and what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from margrave.marginal import maximal
from margrave.models.specs import starts_from_public
from margrave.schema import Domain
from margrave.transcript import PublicReading, Transcript
from margrave.typing import AnyArray, Attribute, Clique


def known_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """The columns of each marginal that was measured or read from public data, and those that follow.

    A column follows from others where the schema leaves one value possible for each of theirs: a state, from
    its city.
    """
    return maximal(with_followers(domain, e.clique) for e in transcript.evidence)


def read_together(domain: Domain, transcript: Transcript, config: Mapping[str, Any]) -> tuple[Clique, ...]:
    """The columns of each marginal that was read from other, public records, and those that follow."""
    read = () if of_same_records(config) else transcript.readings
    return maximal(with_followers(domain, r.clique) for r in read)


def without_others(transcript: Transcript, config: Mapping[str, Any]) -> Transcript:
    """What is known of the private records themselves: without what was read of other, public ones."""
    if of_same_records(config) or not transcript.readings:
        return transcript
    return Transcript(tuple(e for e in transcript if not isinstance(e, PublicReading)))


def of_same_records(config: Mapping[str, Any]) -> bool:
    """Whether what is public are columns of the private records; a release file may hold anything there."""
    facts = config.get("public")
    return isinstance(facts, Mapping) and facts.get("same_records") is True


def counted_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """The columns of each single count, whose marginal is known in part."""
    return maximal(_asked(domain, transcript))


def merged_together(domain: Domain, transcript: Transcript) -> dict[Attribute, tuple[tuple[int, ...], ...]]:
    """By column, the sets of codes that share one count in every marginal of several columns.

    Their own counts tell how common each is, and nothing how one differs from another in other columns.
    """
    queries: dict[Attribute, list[AnyArray]] = {}
    for e in transcript.evidence:
        for a in e.clique if len(e.clique) > 1 else ():
            queries.setdefault(a, []).append(e.query.groups.get(a, np.arange(domain.size(a))))
    return {a: sets for a, groups in queries.items() if (sets := _alike(np.stack(groups)))}


def _alike(groups: AnyArray) -> tuple[tuple[int, ...], ...]:
    """The sets of two and more codes that are in one group for all (queries × codes)."""
    kinds = np.unique(groups, axis=1, return_inverse=True)[1].ravel()
    sets = (tuple(np.flatnonzero(kinds == k).tolist()) for k in range(int(kinds.max()) + 1))
    return tuple(s for s in sets if len(s) > 1)


def unasked(domain: Domain, transcript: Transcript, config: Mapping[str, Any]) -> tuple[Attribute, ...]:
    """The columns that nothing tells of: what a model says of them is not of the table.

    Not among them are those of a marginal, a single count, a reading of public data or a public table that the model
    started from, and those that follow from these by the schema. Where nothing was counted at all, choices alone made
    the model, and tell of every column of the queries that could be chosen.
    """
    told = [*transcript.counted, started_from(config)]
    if not transcript.counts_something:
        told += [c for s in transcript.query_selections for c in s.queries.cliques]
    return left_out(domain, told)


@dataclass(frozen=True)
class Together:
    """How many of the ``pairs`` of columns were measured together, and how many more only ``in_part``.

    In part: single counts tell of them, or choices alone. ``alone`` are the columns that are in neither with any other,
    though something was asked of them. ``public``: a public table of other records tells of some pair, as the model
    started from it or read marginals from it. ``ruled``: constraints of the schema join some of those alone.
    ``borrowed`` are the columns of which nothing was asked, and only that public table tells.
    """

    pairs: int
    measured: int
    in_part: int
    alone: tuple[Attribute, ...]
    public: bool
    ruled: bool = False
    borrowed: tuple[Attribute, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Plain data for the certificate."""
        return {**vars(self), "alone": list(self.alone), "borrowed": list(self.borrowed)}


def together_of(domain: Domain, transcript: Transcript, config: Mapping[str, Any]) -> Together:
    """Which relations the answers tell of directly; of the others a model knows what passes through other columns."""
    measured = _pairs_of(known_together(domain, without_others(transcript, config)))
    partly = [*counted_together(domain, transcript)]
    if not transcript.counts_something:
        partly += [domain.clique(c) for s in transcript.query_selections for c in s.queries.cliques]
    in_part = _pairs_of(partly) - measured
    started = domain.clique(a for a in started_from(config) if a in domain)
    public = _pairs_of([started, *read_together(domain, transcript, config)])
    related = {a for pair in (*measured, *in_part, *public) for a in pair}
    silent = unasked(domain, transcript, config)
    alone = tuple(a for a in domain if a not in related and a not in silent) if len(domain) > 1 else ()
    ruled = any(a in zeros.clique for zeros in domain.zeros if len(zeros.clique) > 1 for a in alone)
    asked = left_out(domain, [*without_others(transcript, config).counted, *partly])
    borrowed = tuple(a for a in asked if a not in silent)
    return Together(math.comb(len(domain), 2), len(measured), len(in_part), alone, bool(public), ruled, borrowed)


def _pairs_of(cliques: Iterable[Clique]) -> set[Clique]:
    return {pair for clique in cliques for pair in combinations(clique, 2)}


def left_out(domain: Domain, told: Iterable[Iterable[Attribute]]) -> tuple[Attribute, ...]:
    """The columns that are in none of these cliques, and do not follow from those that are."""
    known = with_followers(domain, domain.clique({a for c in told for a in c if a in domain}))
    return tuple(a for a in domain if a not in known)


def started_from(config: Mapping[str, Any]) -> Clique:
    """The columns of the public table that the fit began with, if it did; a release file may hold anything there."""
    if not starts_from_public(config.get("fit")):
        return ()
    facts = config.get("refit_public" if "refit" in config else "public")
    columns = facts.get("columns") if isinstance(facts, Mapping) else None
    return tuple(c for c in columns if isinstance(c, str)) if isinstance(columns, list) else ()


def with_followers(domain: Domain, clique: Clique) -> Clique:
    """The clique with the columns that follow from its own, by structural zeros."""
    known, size = set(clique), -1
    while len(known) > size:
        size = len(known)
        for zeros in domain.zeros:
            for axis, column in enumerate(zeros.clique):
                if set(zeros.clique) - known == {column} and (zeros.possible.sum(axis=axis) <= 1).all():
                    known.add(column)
    return domain.clique(known)


def _asked(domain: Domain, transcript: Transcript) -> Iterable[Clique]:
    return (domain.clique(a.query.clique) for a in transcript.answers if a.query.clique)
