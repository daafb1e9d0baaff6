"""Sites: what a search changes in a record at a time, so that it stays possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import LinearQuery
from margrave.structural_zeros import MAX_JOINED, StructuralZeros, connected, joined
from margrave.types import AnyArray, Attribute, Clique, IntArray

#: Combinations of codes that are tried at once.
MAX_COMBINATIONS = 4096


@dataclass(frozen=True, eq=False)
class Block:
    """Some attributes that change together: to one of ``choices``, of shape (choices, attributes).

    ``straddling`` are the structural zeros that hold them to other attributes as well.
    """

    clique: Clique
    choices: IntArray
    straddling: tuple[StructuralZeros, ...] = ()

    def allowed(self, domain: Domain, rows: IntArray) -> NDArray[np.bool_] | None:
        """Return which choices leave each record possible; None if all do."""
        if not self.straddling:
            return None
        possible = np.ones((len(rows), len(self.choices)), dtype=np.bool_)
        for zeros in self.straddling:
            index = [
                self.choices[None, :, self.clique.index(a)]
                if a in self.clique
                else rows[:, None, domain.index(a)]
                for a in zeros.clique
            ]
            possible &= zeros.possible[tuple(np.broadcast_arrays(*index))]
        return possible


@dataclass(frozen=True, eq=False)
class Blocks:
    """The sites of a domain. ``free``: they are independent of each other, and reach every possible record.

    Attributes that structural zeros hold together are one site where they have few possible combinations. Where they
    have too many, each of them is a site, and those of each declaration: a search may then be caught among
    impossible records.
    """

    domain: Domain
    sites: tuple[Block, ...]
    free: bool

    @staticmethod
    def of(domain: Domain, most: int = MAX_COMBINATIONS) -> Blocks:
        """Return the sites of a domain, by its structural zeros; none has more than ``most``
        choices.
        """
        sites, held, free = [], set(), True
        for group in connected(domain.zeros):
            clique = domain.clique(a for z in group for a in z.clique)
            held |= set(clique)
            choices = _possible(domain, clique, group, most)
            if choices is None:
                free = False
                sites += _apart(domain, clique, group)
            else:
                sites.append(Block(clique, choices))
        sites += [Block((a,), np.arange(domain.size(a))[:, None]) for a in domain if a not in held]
        return Blocks(domain, tuple(sites), free)

    @staticmethod
    def listed(domain: Domain) -> Blocks:
        """Return independent blocks that reach every possible record.

        Raises:
            InputError: Constraints join too many combinations, or leave none.
        """
        blocks = Blocks.of(domain, MAX_JOINED)
        if not blocks.free:
            raise InputError(
                "The schema's constraints hold columns together in more combinations than a search"
                " of records can list.",
                remedy="Give those columns fewer codes, leave some constraints out, or use another fit.",
            )
        if not all(len(site.choices) for site in blocks.sites):
            raise InputError(
                "No record satisfies all constraints of the schema.",
                remedy="Leave some of them out.",
            )
        return blocks

    def columns(self, rows: AnyArray) -> dict[Attribute, AnyArray]:
        """Return the codes of records from their choices, of shape (records, blocks)."""
        return {
            a: site.choices[rows[:, t], i]
            for t, site in enumerate(self.sites)
            for i, a in enumerate(site.clique)
        }

    def uniform(self, rows: int, rng: np.random.Generator) -> IntArray:
        """Return possible records, each equally likely; the sites must be ``free``."""
        drawn = np.zeros((rows, len(self.domain)), dtype=np.int64)
        for site in self.sites:
            columns = [self.domain.index(a) for a in site.clique]
            drawn[:, columns] = site.choices[rng.integers(len(site.choices), size=rows)]
        return drawn

    def seed_from(self, rows: IntArray, query: LinearQuery, rng: np.random.Generator) -> IntArray:
        """Return possible records moved, site by site, to where the query counts them, as far as
        that is possible.
        """
        rows, codes = rows.copy(), dict(zip(query.clique, query.codes, strict=True))
        for site in self.sites:
            fits = np.ones(len(site.choices), dtype=np.bool_)
            for i, a in enumerate(site.clique):
                if a in codes:
                    allowed = np.zeros(self.domain.size(a), dtype=np.bool_)
                    allowed[list(codes[a])] = True
                    fits &= allowed[site.choices[:, i]]
            fitting = site.choices[fits]
            if 0 < len(fitting) < len(site.choices):
                columns = [self.domain.index(a) for a in site.clique]
                rows[:, columns] = fitting[rng.integers(len(fitting), size=len(rows))]
        return rows


def _possible(
    domain: Domain, clique: Clique, zeros: Sequence[StructuralZeros], most: int = MAX_COMBINATIONS
) -> IntArray | None:
    if math.prod(domain.shape(clique)) > MAX_JOINED:
        return None
    choices = np.argwhere(joined(zeros, clique, domain.size))
    return choices if len(choices) <= most else None


def _apart(domain: Domain, clique: Clique, zeros: Sequence[StructuralZeros]) -> list[Block]:
    cliques: dict[Clique, None] = dict.fromkeys((a,) for a in clique)
    cliques |= dict.fromkeys(domain.clique(z.clique) for z in zeros)
    sites = []
    for c in cliques:
        inside = [z for z in zeros if set(z.clique) <= set(c)]
        choices = _possible(domain, c, inside)
        straddling = tuple(z for z in zeros if z not in inside and not set(z.clique).isdisjoint(c))
        if choices is not None:
            sites.append(Block(c, choices, straddling))
    return sites
