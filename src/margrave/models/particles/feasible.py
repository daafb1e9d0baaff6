"""Records that cannot occur, moved to the nearest that can."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.models.particles.embedding import AT_ONCE, Embedding
from margrave.structural_zeros import MAX_JOINED, connected, joined
from margrave.types import AnyArray, Clique, FloatArray, IntArray


def check_zeros(domain: Domain) -> None:
    """Raise an InputError where what constraints rule out together takes too large a table to look through."""
    for clique in tied(domain):
        if domain.cells(clique) > MAX_JOINED:
            raise InputError(
                f"Constraints tie the columns {', '.join(clique)} together, which have {domain.cells(clique):,}"
                f" combinations: too many to move particles among (at most {MAX_JOINED:,}).",
                remedy="Give these columns fewer bins, leave a constraint out, or use AIM with its graphical model.",
            )


def possible(embedding: Embedding, particles: AnyArray) -> Codes:
    """Return the record of the nearest codes to each particle, of those that can occur.

    The columns that constraints tie together change together, to the possible combination nearest in their
    coordinates.
    """
    codes, domain = embedding.nearest(particles), embedding.domain
    values = codes.values.copy()
    for clique in tied(domain):
        own = particles[embedding.coordinates(clique)]
        wrong, allowed = Nearest(embedding, clique).codes(own)
        values[np.ix_(np.array([domain.index(a) for a in clique]), wrong)] = allowed
    return Codes(domain, values)


class Nearest:
    """The possible combinations of a clique's codes, and which is nearest to a particle."""

    def __init__(self, embedding: Embedding, clique: Clique) -> None:
        domain = embedding.domain
        inside = [z for z in domain.zeros if set(z.clique) <= set(clique)]
        self.clique = clique
        self.embedding = Embedding(domain.project(clique), {a: embedding.points[a] for a in clique})
        self.possible = joined(inside, clique, domain.size)
        self.cells = np.flatnonzero(self.possible)
        self.points = embedding.cells(clique, self.cells)

    def __call__(self, particles: AnyArray) -> tuple[IntArray, FloatArray]:
        """Return the particles whose nearest codes are impossible, and the points that they should
        be at.
        """
        wrong, nearest = self._nearest(particles)
        return wrong, self.points[:, nearest]

    def codes(self, particles: AnyArray) -> tuple[IntArray, IntArray]:
        """Return the same with codes: one row an attribute."""
        wrong, nearest = self._nearest(particles)
        return wrong, np.array(np.unravel_index(self.cells[nearest], self.possible.shape))

    def _nearest(self, particles: AnyArray) -> tuple[IntArray, IntArray]:
        codes = self.embedding.nearest(particles)
        wrong = np.flatnonzero(~self.possible[tuple(codes.values)])
        found, step = np.empty(len(wrong), dtype=np.int64), max(1, AT_ONCE // len(self.cells))
        squares = (self.points**2).sum(axis=0)
        for i in range(0, len(wrong), step):
            some = particles[:, wrong[i : i + step]].astype(np.float64)
            found[i : i + step] = (squares - 2.0 * some.T @ self.points).argmin(axis=1)
        return wrong, found


def tied(domain: Domain) -> Iterator[Clique]:
    """Yield the columns that constraints tie together."""
    for zeros in connected(domain.zeros):
        yield domain.clique(a for z in zeros for a in z.clique)
