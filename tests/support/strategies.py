"""Small random domains, cliques and potentials, and what they mean by plain enumeration of every record."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from margrave.domain import Domain
from margrave.marginal import IDENTITY, LinearMap
from margrave.transcript import Measurement
from margrave.types import Clique, FloatArray


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
        joint = joint + np.transpose(theta, np.argsort([domain.index(a) for a in clique])).reshape(
            shape
        )
    return joint


def domain_of(sizes: Sequence[int]) -> Domain:
    """Columns c0, c1, … of the sizes given."""
    return Domain.of({f"c{i}": s for i, s in enumerate(sizes)})


def random_potentials(
    domain: Domain,
    cliques: Iterable[Clique],
    rng: np.random.Generator,
    *,
    spread: float = 2.0,
    impossible: float = 0.0,
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
def generators(draw: st.DrawFn) -> np.random.Generator:
    """A seeded generator. Structures are drawn from it: every example is another one, where hypothesis on its own
    would spend most of a small number of examples on models of one column.
    """
    return np.random.default_rng(draw(st.integers(0, 2**32)))


def some_domain(rng: np.random.Generator, most: int, largest: int) -> Domain:
    """One to ``most`` columns of one to ``largest`` codes."""
    return domain_of(rng.integers(1, largest + 1, size=rng.integers(1, most + 1)).tolist())


def some_cliques(
    domain: Domain, rng: np.random.Generator, most: int, widest: int = 3
) -> list[Clique]:
    """None to ``most`` distinct cliques of at most ``widest`` attributes, as many narrow ones as wide."""
    found: dict[Clique, None] = {}
    for _ in range(rng.integers(0, most + 1)):
        width = rng.integers(1, min(widest, len(domain)) + 1)
        found[domain.clique(rng.choice(domain.attributes, size=width, replace=False).tolist())] = (
            None
        )
    return list(found)


@st.composite
def domains(draw: st.DrawFn, most: int = 6, largest: int = 4) -> Domain:
    """One to ``most`` columns of one to ``largest`` codes."""
    return some_domain(draw(generators()), most, largest)


@st.composite
def clique_lists(draw: st.DrawFn, domain: Domain, most: int = 6, widest: int = 3) -> list[Clique]:
    """None to ``most`` distinct cliques of at most ``widest`` attributes."""
    return some_cliques(domain, draw(generators()), most, widest)


@st.composite
def toys(draw: st.DrawFn) -> Toy:
    """Any small model: disconnected, one column, one code, no factor at all; half of them with impossible cells."""
    rng = draw(generators())
    domain = some_domain(rng, 6, 4)
    cliques = some_cliques(domain, rng, 6)
    impossible = rng.choice([0.0, 0.0, 0.2, 0.5])
    return Toy(domain, random_potentials(domain, cliques, rng, impossible=impossible))


@st.composite
def graphs(draw: st.DrawFn, most: int = 12) -> tuple[Domain, list[Clique]]:
    """A domain of up to a dozen columns with up to a dozen small cliques."""
    rng = draw(generators())
    domain = some_domain(rng, most, 9)
    return domain, some_cliques(domain, rng, most, 4)


def measurement(
    clique: Clique, values: FloatArray | Sequence[float], scale: float, query: LinearMap = IDENTITY
) -> Measurement:
    """A measurement as the gate would have written it (values rounded to integers)."""
    return Measurement(clique, np.rint(values).astype(np.int64), scale, Fraction(1), query)
