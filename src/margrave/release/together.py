"""Which columns a release knows together: what was counted or read of them at once, and what follows."""

from __future__ import annotations

from collections.abc import Iterable

from margrave.marginal import maximal
from margrave.schema import Domain
from margrave.transcript import Transcript
from margrave.typing import Clique


def known_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """The columns of each marginal that was measured or read from public data, and those that follow.

    A column follows from others where the schema leaves one value possible for each of theirs: a state, from
    its city.
    """
    return maximal(with_followers(domain, e.clique) for e in transcript.evidence)


def counted_together(domain: Domain, transcript: Transcript) -> tuple[Clique, ...]:
    """The columns of each single count, whose marginal is known in part."""
    return maximal(_asked(domain, transcript))


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
