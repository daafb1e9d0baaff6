"""Which columns a release knows, and which together: what was counted or read of them at once, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from margrave.marginal import maximal
from margrave.schema import Domain
from margrave.transcript import Transcript
from margrave.typing import Attribute, Clique


def known_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """The columns of each marginal that was measured or read from public data, and those that follow.

    A column follows from others where the schema leaves one value possible for each of theirs: a state, from
    its city.
    """
    return maximal(with_followers(domain, e.clique) for e in transcript.evidence)


def counted_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """The columns of each single count, whose marginal is known in part."""
    return maximal(_asked(domain, transcript))


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


def left_out(domain: Domain, told: Iterable[Iterable[Attribute]]) -> tuple[Attribute, ...]:
    """The columns that are in none of these cliques, and do not follow from those that are."""
    known = with_followers(domain, domain.clique({a for c in told for a in c if a in domain}))
    return tuple(a for a in domain if a not in known)


def started_from(config: Mapping[str, Any]) -> Clique:
    """The columns of the public table that the fit began with, if it did; a release file may hold anything there."""
    if "public=Public(" not in str(config.get("fit")):
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
