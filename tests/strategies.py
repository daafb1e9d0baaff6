"""Small random domains, cliques and potentials, and what they mean by plain enumeration of every record."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from margrave.marginal import IDENTITY, Query
from margrave.schema.domain import Domain
from margrave.transcript import Measurement
from margrave.typing import Clique, FloatArray


def seeded(examples: int) -> settings:
    """The same examples every time, however slow the machine is."""
    return settings(max_examples=examples, derandomize=True, deadline=None, database=None)


@dataclass(frozen=True, eq=False)
class Toy:
    """A graphical model as an argument, with the full table it stands for."""

    domain: Domain
    potentials: dict[Clique, FloatArray]

    @property
    def log_joint(self) -> FloatArray:
        """The sum of all potentials, one axis per attribute."""
        return spread_sum(self.domain, self.potentials)

    @property
    def log_partition(self) -> float:
        """log Σ exp of the joint, by enumeration; −inf if no record is possible."""
        return log_sum(self.log_joint)

    @property
    def possible(self) -> bool:
        """Whether any record is."""
        return bool(np.isfinite(self.log_joint).any())

    def joint(self, total: float) -> FloatArray:
        """Expected counts of every cell of the domain."""
        return total * np.exp(self.log_joint - self.log_partition)

    def marginal(self, clique: Clique, total: float) -> FloatArray:
        """Expected counts of one clique, axes in the clique's order."""
        return marginal_of(self.domain, self.joint(total), clique)


def log_sum(values: FloatArray) -> float:
    """log Σ exp(values)."""
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum())) if np.isfinite(top) else -np.inf


def letters(domain: Domain, clique: Iterable[str]) -> str:
    """The clique's axes as einsum writes them."""
    return "".join(string.ascii_letters[domain.index(a)] for a in clique)


def marginal_of(domain: Domain, joint: FloatArray, clique: Clique) -> FloatArray:
    """A full table summed down to a clique."""
    return np.einsum(f"{letters(domain, domain)}->{letters(domain, clique)}", joint)


def spread_sum(domain: Domain, potentials: Mapping[Clique, FloatArray]) -> FloatArray:
    """Arrays on cliques added up over the whole domain."""
    joint = np.zeros(domain.sizes)
    for clique, theta in potentials.items():
        shape = [domain.size(a) if a in clique else 1 for a in domain]
        joint = joint + np.transpose(theta, np.argsort([domain.index(a) for a in clique])).reshape(shape)
    return joint


def domain_of(sizes: Sequence[int]) -> Domain:
    """Columns c0, c1, … of the sizes given."""
    return Domain.of({f"c{i}": s for i, s in enumerate(sizes)})


def random_potentials(
    domain: Domain, cliques: Iterable[Clique], rng: np.random.Generator, *, spread: float = 2.0, impossible: float = 0.0
) -> dict[Clique, FloatArray]:
    """Normal potentials, each cell −inf with some probability, but never all of a clique's."""
    potentials = {}
    for clique in cliques:
        theta = rng.normal(scale=spread, size=domain.shape(clique))
        forbidden = rng.random(theta.shape) < impossible
        forbidden.flat[rng.integers(theta.size)] = False
        potentials[clique] = np.where(forbidden, -np.inf, theta)
    return potentials


@st.composite
def domains(draw: st.DrawFn, most: int = 6, largest: int = 4) -> Domain:
    """One to ``most`` columns of one to ``largest`` codes."""
    return domain_of(draw(st.lists(st.integers(1, largest), min_size=1, max_size=most)))


@st.composite
def clique_lists(draw: st.DrawFn, domain: Domain, most: int = 6, widest: int = 3) -> list[Clique]:
    """None to ``most`` distinct cliques of at most ``widest`` attributes."""
    every = [c for k in range(1, min(widest, len(domain)) + 1) for c in combinations(domain.attributes, k)]
    return draw(st.lists(st.sampled_from(every), max_size=most, unique=True))


@st.composite
def toys(draw: st.DrawFn, zeros: bool = True) -> Toy:
    """Any small model: disconnected, one column, one code, no factor at all; with impossible cells if asked for."""
    domain = draw(domains())
    cliques = draw(clique_lists(domain))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    impossible = draw(st.sampled_from([0.0, 0.0, 0.2, 0.5])) if zeros else 0.0
    return Toy(domain, random_potentials(domain, cliques, rng, impossible=impossible))


@st.composite
def graphs(draw: st.DrawFn, most: int = 12) -> tuple[Domain, list[Clique]]:
    """A domain of up to a dozen columns with up to a dozen small cliques."""
    domain = domain_of(draw(st.lists(st.integers(1, 9), min_size=1, max_size=most)))
    names = st.sampled_from(domain.attributes)
    sets = draw(st.lists(st.sets(names, min_size=1, max_size=4), max_size=most))
    return domain, list(dict.fromkeys(domain.clique(s) for s in sets))


def measurement(
    clique: Clique, values: FloatArray | Sequence[float], scale: float, query: Query = IDENTITY
) -> Measurement:
    """A measurement as the gate would have written it (values rounded to integers)."""
    return Measurement(clique, np.rint(values).astype(np.int64), scale, Fraction(1), query)
