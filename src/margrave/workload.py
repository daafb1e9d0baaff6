"""Workloads: the marginals the synthetic table should preserve, with weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from margrave._fields import is_number, is_whole
from margrave._io import read_input
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import closure
from margrave.types import Attribute, Clique


@dataclass(frozen=True, eq=False)
class Workload:
    """Cliques with their weights c_r.

    >>> domain = Domain.of({"a": 2, "b": 3, "c": 4})
    >>> workload = Workload.all_kway(domain, 2)
    >>> workload.cliques
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    >>> workload.relevance(("a",))  # two of three contain it
    2.0
    """

    weights: Mapping[Clique, float]
    #: The purposes that the marginals serve, in words (``margrave.purposes``).
    purposes: tuple[str, ...] = ()
    #: The marginals of purposes, which AIM measures first, as far as the model has room.
    first: tuple[Clique, ...] = ()

    def __iter__(self) -> Iterator[Clique]:
        return iter(self.weights)

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise InputError(
                "A workload holds its marginals with their weights.",
                remedy="Make one with Workload.of(schema.domain, [...]), or Workload.all_kway(schema.domain, 3).",
            )
        if not self.weights:
            raise InputError("The workload is empty.", remedy="Name at least one marginal.")
        for clique, weight in self.weights.items():
            _check_weight(clique, weight)
            if not 1e-100 <= weight <= 1e100:  # squares and products of weights are finite
                raise InputError(
                    f"The weight of {', '.join(clique)} is {weight}.",
                    remedy="Give a weight from 1e-100 to 1e100.",
                )
            if not clique:
                raise InputError("The workload names a marginal of no columns.")
            _check_distinct(clique)

    @staticmethod
    def of(
        domain: Domain, cliques: Mapping[Clique, float] | Iterable[Iterable[Attribute]]
    ) -> Workload:
        """Return a workload of some cliques, with weights (a mapping) or all of weight 1.

        A clique named twice adds its weights. Raises ``InputError`` for a column that the domain
        does not have, a column named twice in one clique, and weights that are not positive
        numbers.
        """
        if isinstance(cliques, Workload):
            return _on(domain, cliques)
        if isinstance(cliques, str) or not isinstance(cliques, Iterable):
            raise InputError(
                f"A workload cannot be made of a {type(cliques).__name__}.",
                remedy='Give a list of marginals, such as [("age", "sex")], or a mapping to their weights.',
            )
        pairs = cliques.items() if isinstance(cliques, Mapping) else ((c, 1.0) for c in cliques)
        weights: dict[Clique, float] = {}
        for attributes, weight in pairs:
            columns = _columns(attributes)
            clique = domain.clique(columns)
            _check_distinct(columns)
            _check_weight(clique, weight)
            weights[clique] = weights.get(clique, 0.0) + float(weight)
        return Workload(weights)

    @staticmethod
    def of_lines(domain: Domain, lines: Iterable[str]) -> Workload:
        """Return one marginal a line, with a weight or without; lines that are empty or begin with
        # are passed over.

        >>> domain = Domain.of({"a": 2, "b": 3, "c": 4})
        >>> dict(Workload.of_lines(domain, ["b, a = 2", "# and by itself", "c"]).weights)
        {('a', 'b'): 2.0, ('c',): 1.0}
        """
        return Workload.of(domain, _summed(_marginals_of_line(domain, line) for line in lines))

    @staticmethod
    def load(domain: Domain, path: str | Path) -> Workload:
        """Return the workload of a file: ``of_lines``.

        Raises:
            InputError: If the file cannot be read, or a line is not a marginal. The error names the line and quotes
                nothing, because a file that is named by mistake may be private.
        """
        try:
            text = read_input(path).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"The workload {path} cannot be read ({type(error).__name__}).",
                remedy="Name a file of text in UTF-8.",
            ) from None
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                found.append(_marginals_of_line(domain, line))
            except InputError:
                raise InputError(
                    f"Line {number} of the workload {path} is not a marginal: different columns of the schema, and a"
                    " weight above 0, if any.",
                    remedy='Write one a line, such as "age, ill = 3". The columns are:'
                    f" {', '.join(domain.attributes)}.",
                ) from None
        return Workload.of(domain, _summed(found))

    @staticmethod
    def all_kway(domain: Domain, k: int) -> Workload:
        """Return every marginal of k attributes (all of them, if there are fewer than k). An
        InputError if over a million.
        """
        _check_ways(k)
        _check_number(math.comb(len(domain), k), k, domain)
        return _all_combinations(domain.attributes, min(k, len(domain)))

    @staticmethod
    def around(domain: Domain, target: Attribute, k: int = 3) -> Workload:
        """Return every marginal of k attributes that involves the target. An InputError if over a
        million.
        """
        domain.index(target)
        _check_ways(k)
        others = [a for a in domain if a != target]
        _check_number(math.comb(len(others), k - 1), k, domain)
        return Workload.of(
            domain, ((target, *c) for c in combinations(others, min(k - 1, len(others))))
        )

    @staticmethod
    def skewed(domain: Domain, k: int = 3, count: int = 256, seed: int = 0) -> Workload:
        """Draw ``count`` cliques at random, some attributes far more often than others; a clique's weight is its count.

        Each attribute has a weight from a squared exponential distribution. A clique is drawn with probability
        proportional to the product of the weights of its attributes. Draws are independent, so that a clique repeats.
        The weights of the workload sum to ``count``.

        Args:
            domain: The columns.
            k: Number of attributes of a clique.
            count: Number of draws, 1 or more.
            seed: Seed of the draws, 0 or more. It is public.

        Returns:
            The cliques that were drawn, in the order of the domain, and how often each was.

        Raises:
            InputError: If ``k``, ``count`` or ``seed`` is not such a number, or there are over a million cliques.

        References:
            McKenna, Mullins, Sheldon, Miklau (2022), Section 6, the workload SKEWED (256 draws of three attributes).
        """
        if not is_whole(count, 1) or not is_whole(seed, 0):
            raise InputError(
                f"A skewed workload cannot have {count!r} draws by the seed {seed!r}.",
                remedy="Give whole numbers: a count of 1 or more, and a seed of 0 or more.",
            )
        rng = np.random.default_rng(seed)  # a public workload, not noise
        weight = dict(zip(domain, rng.exponential(size=len(domain)) ** 2, strict=True))
        cliques = list(Workload.all_kway(domain, k).weights)
        products = np.array([np.prod([weight[a] for a in c]) for c in cliques])
        drawn = rng.choice(len(cliques), size=count, p=products / products.sum())
        times = np.bincount(drawn, minlength=len(cliques))
        return Workload({c: float(t) for c, t in zip(cliques, times, strict=True) if t})

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques, without their weights."""
        return tuple(self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON: every marginal with its weight."""
        purposes = {"purposes": list(self.purposes)} if self.purposes else {}
        return {"marginals": [[list(c), float(w)] for c, w in self.weights.items()], **purposes}

    def within(self, domain: Domain) -> Workload:
        """Return the marginals of which the domain has all columns; of single columns, if it has none.

        >>> workload = Workload({("a", "b"): 2.0, ("b", "c"): 1.0})
        >>> dict(workload.within(Domain.of({"a": 2, "b": 2})).weights)
        {('a', 'b'): 2.0}
        """
        kept = {c: w for c, w in self.weights.items() if all(a in domain for a in c)}
        first = tuple(c for c in self.first if c in kept)
        return Workload(kept or {(a,): 1.0 for a in domain}, self.purposes, first)

    def closure(self) -> tuple[Clique, ...]:
        """Return every non-empty subset of every clique, smaller ones first."""
        return self._closure

    @cached_property
    def _closure(self) -> tuple[Clique, ...]:
        return closure(self.weights)

    def relevance(self, clique: Clique) -> float:
        """Return w_r = Σ_s c_s · |r ∩ s|: the weight of the workload that a marginal r touches."""
        return sum(self._touching.get(a, 0.0) for a in clique)

    @cached_property
    def _touching(self) -> dict[Attribute, float]:
        touching: dict[Attribute, float] = {}
        for clique, weight in self.weights.items():
            for a in clique:
                touching[a] = touching.get(a, 0.0) + weight
        return touching


@dataclass(frozen=True)
class AllKWay:
    """The workload of all marginals of ``ways`` columns, whatever the domain is.

    Args:
        ways: Number of columns of each marginal, 1 or more.

    Raises:
        InputError: ``ways`` is not such a number.
    """

    ways: int

    def __post_init__(self) -> None:
        _check_ways(self.ways)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {"ways": self.ways}


@lru_cache(maxsize=1)  # a plan and a run ask for the same one again and again
def _all_combinations(attributes: tuple[Attribute, ...], k: int) -> Workload:
    return Workload(dict.fromkeys(combinations(attributes, k), 1.0))


@lru_cache(maxsize=1)  # likewise: a workload is checked on a domain once
def _on(domain: Domain, workload: Workload) -> Workload:
    return replace(workload, weights=Workload.of(domain, workload.weights).weights)


def _columns(attributes: object) -> Clique:
    if isinstance(attributes, str) or not isinstance(attributes, Iterable):
        raise InputError(
            f"{attributes!r} is not a list of columns.", remedy=f"Give [{attributes!r}]."
        )
    return tuple(attributes)


def _check_weight(clique: Clique, weight: object) -> None:
    if not is_number(weight):
        raise InputError(
            f"The weight of {', '.join(clique)} is {weight!r}.",
            remedy="Weights are positive numbers.",
        )


def _check_distinct(clique: Clique) -> None:
    if len(set(clique)) < len(clique):
        twice = next(a for a in clique if clique.count(a) > 1)
        raise InputError(
            f"A marginal of the workload names column {twice!r} twice.",
            remedy="Name each column once.",
        )


def _check_ways(k: object) -> None:
    if not is_whole(k, 1):
        raise InputError(f"k-way marginals need k of at least 1, a whole number, not {k!r}.")


def _marginals_of_line(domain: Domain, line: str) -> dict[Clique, float]:
    names, _, weight = line.partition("=")
    if not names.strip() or names.lstrip().startswith("#"):
        return {}
    named = tuple(n.strip() for n in names.split(",") if n.strip())
    _check_distinct(named)
    clique = domain.clique(named)
    found = _weight(weight)
    _check_weight(clique, found)
    return {clique: found}


def _summed(marginals: Iterable[Mapping[Clique, float]]) -> dict[Clique, float]:
    weights: dict[Clique, float] = {}
    for clique, weight in (item for found in marginals for item in found.items()):
        weights[clique] = weights.get(clique, 0.0) + weight
    return weights


def _weight(text: str) -> float:
    try:
        return float(text) if text.strip() else 1.0
    except ValueError:
        raise InputError(
            f"The workload holds the weight {text.strip()!r}.", remedy="Weights are numbers."
        ) from None


def _check_number(count: int, k: int, domain: Domain) -> None:
    # Marginals of the largest workload.
    max_marginals = 1_000_000
    if count > max_marginals:
        raise InputError(
            f"{count:,} marginals of {k} out of {len(domain)} columns are too many to count.",
            remedy="Name a workload of those that matter, or of fewer columns each, or choose the mechanism forests,"
            " which has no workload.",
        )
