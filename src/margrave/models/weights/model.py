"""The model with one weight per place: per cell of the domain, or per public record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from margrave.errors import InputError, ReleaseError
from margrave.marginal import Marginal
from margrave.models.completing import Given, joined, nothing_like
from margrave.models.evidence import allowed_codes
from margrave.models.loading import floats_of, total_of
from margrave.models.protocol import Model, ModelState
from margrave.models.sampling import deal, draw
from margrave.models.weights.grid import Grid, Places
from margrave.models.weights.records import Records
from margrave.schema.domain import Codes, Domain, code_dtype
from margrave.typing import AnyArray, Attribute, Clique, FloatArray

LARGEST_MASS = 1e100
"""Weights sum to less, so that products of them with a number of records are finite."""
#: The smallest sum of weights in a file: shares of it are then not subnormal.
MIN_MASS = 1e-100


class WeightsModel:
    """``P(x) = weight_x / Σ weight``, for every cell x of the domain (a histogram), or every public record x.

    ``known`` is how many entries of a transcript the weights were made from. ``average`` is the mean of the weights of
    several rounds, each scaled to one, where a fit keeps it; ``averaged`` gives the model of it.
    """

    def __init__(
        self,
        kind: str,
        places: Places,
        total: float,
        *,
        known: int = 0,
        average: FloatArray | None = None,
        rounds: int = 0,
    ) -> None:
        self.kind, self.places = kind, places
        self._total = total
        self.known, self.average, self.rounds = known, average, rounds
        self._mass = float(places.weights.sum())
        if not 0.0 < self._mass < LARGEST_MASS:
            raise ReleaseError("The weights of this model leave no record possible.")

    @property
    def domain(self) -> Domain:
        """The attributes it covers."""
        return self.places.domain

    @property
    def total(self) -> float:
        """The number of records it stands for."""
        return self._total

    def project(self, clique: Clique) -> Marginal:
        """Expected counts of one marginal."""
        return Marginal(clique, self.answer([clique])[clique])

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Expected counts of many marginals, exact, from shared sums."""
        sums = self.places.marginals(cliques, limit)
        for values in sums.values():
            values *= self._total / self._mass
        return sums

    def sample(
        self, rows: int | None = None, *, rng: np.random.Generator, independent: bool = False
    ) -> Codes:
        """Synthetic records: each place gets its expected number, rounded down or up by one systematic draw.

        Neighbouring places are alike in their first columns, so those come out nearly as expected. ``independent``:
        each record drawn on its own instead. O(rows + places).
        """
        n = max(0, round(self._total)) if rows is None else rows
        if n < 0:
            raise InputError(f"{n} records cannot be drawn.", remedy="Ask for 0 or more.")
        within = draw if independent else deal
        places = within(np.zeros(n, dtype=np.int64), self.places.weights.reshape(1, -1), rng)
        return self.places.codes(places)

    def posterior(self) -> None:
        """None: it is one estimate."""
        return

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> WeightsModel:
        """The model given that each named attribute takes one of the codes listed, with the same total."""
        places = self.places.copy()
        for attribute, codes in evidence.items():
            places.spread((attribute,), allowed_codes(self.domain, attribute, codes))
        if not places.weights.any():
            raise ReleaseError("No record can satisfy all conditions at once.", remedy="Loosen one of them.")
        return WeightsModel(self.kind, places, self._total)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """The rows with the columns that they lack, from the places that have their codes; O(rows + places)."""
        given = Given.of(self.domain, rows)
        found = self.places.like(given, rng)
        if (found < 0).any():
            raise nothing_like(len(np.unique(given.which[found < 0])))
        places = self.places.codes(found)
        return joined(self.domain, rows, {a: places.column(a) for a in given.lacking})

    def state(self) -> ModelState:
        """The weights, and the records that they are of, unless they are all that there can be."""
        facts = {"total": self._total, "known": self.known, "rounds": self.rounds}
        arrays: dict[str, AnyArray] = {"weights": self.places.weights, **self.places.told}
        if self.average is not None:
            arrays["average"] = self.average
        return ModelState(self.kind, facts, arrays)


def empirical(records: Codes, total: float) -> WeightsModel:
    """The distribution of some records: each weighted by how often it stands there.

    >>> domain = Domain.of({"a": 3})
    >>> empirical(Codes.of(domain, {"a": np.array([2, 0, 2, 2])}), total=8.0).project(("a",)).values
    array([2., 0., 6.])
    """
    return WeightsModel("support", Records.distinct(records.domain, records.values), total)


def averaged(model: Model) -> Model:
    """The model of the average of the rounds' weights, where a fit has kept it; else the model itself."""
    state = model.state()
    if state.kind not in LOADERS or "average" not in state.arrays:
        return model
    facts = {**state.facts, "rounds": 0}
    kept = {name: values for name, values in state.arrays.items() if name != "average"}
    return LOADERS[state.kind](model.domain, facts, {**kept, "weights": state.arrays["average"]})


def load_histogram(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> WeightsModel:
    """The model that ``state`` described; a malformed state is a ReleaseError."""
    return _loaded("histogram", Grid(domain, _weights(arrays, "weights", domain.cells())), facts, arrays)


def load_support(domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> WeightsModel:
    """The model that ``state`` described; a malformed state is a ReleaseError."""
    values = arrays.get("records")
    if (
        values is None
        or values.ndim != 2
        or values.shape[0] != len(domain)
        or not values.shape[1]
        or values.dtype != code_dtype(domain.sizes)
        or (values.max(axis=1) >= np.array(domain.sizes)).any()
    ):
        raise ReleaseError("The release's model names no records of its domain.")
    return _loaded("support", Records(domain, values, _weights(arrays, "weights", values.shape[1])), facts, arrays)


def _loaded(
    kind: str, places: Places, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> WeightsModel:
    known, rounds = (_count_of(facts, name) for name in ("known", "rounds"))
    average = _weights(arrays, "average", places.weights.size) if "average" in arrays else None
    if places.domain.zeros:  # whatever the file says, what cannot occur does not
        places = places.copy()
        places.rule_out()
    return WeightsModel(kind, places, total_of(facts), known=known, average=average, rounds=rounds)


def _weights(arrays: Mapping[str, AnyArray], name: str, size: int) -> FloatArray:
    """Weights of so many places: none negative, and a finite positive sum."""
    weights = floats_of(arrays, name, (size,))
    if weights.min() < 0 or not MIN_MASS < float(weights.sum()) < LARGEST_MASS:
        raise ReleaseError("The release's model holds weights that are no distribution.")
    return weights


def _count_of(facts: Mapping[str, object], name: str) -> int:
    count = facts.get(name)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 1 << 53:
        raise ReleaseError("The release's model does not say what its weights were made from.")
    return count


LOADERS = {"histogram": load_histogram, "support": load_support}
"""The two kinds of this model, and how each is read."""
