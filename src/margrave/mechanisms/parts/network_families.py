"""Families of a Bayesian network, a column with its parents: those that may be counted, and the useful ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import takewhile
from math import comb

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.marginal import maximal
from margrave.mechanisms.common import one_way
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.penalty import useful_cells
from margrave.privacy import Gaussian
from margrave.types import Attribute, Clique, Generator


def most_parents(domain: Domain, max_parents: int) -> int:
    """Return the largest number of parents with which there are at most 50,000 families.

    Pairs are always allowed.
    """
    max_families = 50_000
    d = len(domain)
    fitting = takewhile(
        lambda k: sum(comb(d, r) for r in range(2, k + 2)) <= max_families,
        range(2, min(max_parents, d - 1) + 1),
    )
    return max(fitting, default=min(1, d - 1))


def all_families(domain: Domain, max_parents: int, cells: float) -> list[Clique]:
    """Return every family of a column and one parent or more that has at most ``cells`` cells."""
    k = most_parents(domain, max_parents)
    return [r for r in _within(domain, domain.attributes, k + 1, cells) if len(r) > 1]


def binary_parents(columns: int, theta: float, rho: Fraction, records: float, unit: Unit) -> int:
    """Return the paper's k, the number of parents in a network of binary columns.

    It is the largest for which ``columns - k`` marginals of 2^(k + 1) cells are theta-useful if
    ``rho`` measures all of them: those of the first k columns are sums of the next.

    References:
        Zhang et al. (2017), PrivBayes, theta-usefulness of binary tables, with Gaussian noise.
    """
    scales = {k: Gaussian.scale_for(rho / (columns - k), unit) for k in range(1, columns)}
    useful = (k for k in scales if useful_cells(records, scales[k], theta) >= 2.0 ** (k + 1))
    return max(useful, default=0)


def family_cells(
    domain: Domain, theta: float, rho: Fraction, records: float, unit: Unit, *, nested: bool
) -> float:
    """Return the cells of a family at most, if ``rho`` measures all families of a network.

    With ``nested``, families inside others are not measured. A network of binary columns then has
    the paper's number of parents (`binary_parents`).
    """
    if nested and set(domain.sizes) == {2}:
        k = binary_parents(len(domain), theta, rho, records, unit)
        return 2.0 ** (k + 1)
    return useful_cells(records, Gaussian.scale_for(rho / len(domain), unit), theta)


@dataclass
class GrowingNetwork:
    """A Bayesian network to which columns are added one after the other.

    Args:
        domain: The columns, with all of their codes.
        capacity: The room of the model, on the codes that it distinguishes.
        max_parents: The most parents of a column.
        cells: The most cells of a family.
        placed: The columns so far.
        families: The families so far.
    """

    domain: Domain
    capacity: Capacity
    max_parents: int
    cells: float
    placed: list[Attribute] = field(default_factory=list)
    families: list[Clique] = field(default_factory=list)

    def candidates(self) -> dict[Clique, Clique]:
        """Return the maximal families that the model has room for, each with its column.

        If none of them fits into the model, it returns those with fewer parents.
        """
        measured = [*one_way(self.domain), *self.families]
        for k in range(most_parents(self.domain, self.max_parents), 0, -1):
            families = maximal_families(self.domain, self.placed, k, self.cells)
            if fitting := self.capacity.within(list(families), measured):
                return {r: families[r] for r in fitting}
        return {}

    def add(self, family: Clique) -> None:
        """Add a column with its parents, which are placed already."""
        self.families.append(family)
        self.placed += [a for a in family if a not in self.placed]

    def add_alone(self, rng: Generator) -> None:
        """Add a column without parents, drawn uniformly."""
        waiting = [a for a in self.domain if a not in self.placed]
        self.placed.append(waiting[int(rng.integers(len(waiting)))])

    def rest(self, *, measured: bool) -> list[Clique]:
        """Return what is left to measure: columns in no family, and all families unless they are ``measured``.

        If nothing is left, it returns as many families as there were columns without parents.
        """
        inside = {a for family in self.families for a in family}
        alone: list[Clique] = [(a,) for a in self.domain if a not in inside]
        if not measured:
            return [*maximal(self.families), *alone]
        return alone or self.families[: len(self.domain) - 1 - len(self.families)]


def maximal_families(
    domain: Domain, placed: Sequence[Attribute], max_parents: int, cells: float
) -> dict[Clique, Clique]:
    """Return the families of columns that are not ``placed``, with parents that are: each with its column.

    The parents are maximal: at least one, at most ``max_parents``, and with one more the family would have more
    than ``cells`` cells.
    """
    found: dict[Clique, Clique] = {}
    for column in domain:
        size = domain.size(column)
        if column in placed:
            continue
        for parents in _within(domain, placed, max_parents, cells / size):
            family = size * domain.cells(parents)
            more = any(family * domain.size(a) <= cells for a in placed if a not in parents)
            if len(parents) == max_parents or not more:
                found[domain.clique((column, *parents))] = (column,)
    return found


def _within(
    domain: Domain, columns: Sequence[Attribute], most: int, cells: float
) -> Iterator[Clique]:
    """Yield every set of 1 to ``most`` of these columns that has at most ``cells`` cells."""
    for i, a in enumerate(columns):
        if most >= 1 and domain.size(a) <= cells:
            yield (a,)
            rest = _within(domain, columns[i + 1 :], most - 1, cells / domain.size(a))
            yield from ((a, *others) for others in rest)
