"""The model with one weight per place: per cell of the domain, or per public record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from margrave.domain import Codes, Domain, code_dtype
from margrave.errors import InputError, ReleaseError
from margrave.models.conditional import Given, joined, nothing_like
from margrave.models.decode import floats_of, total_of
from margrave.models.evidence import allowed_codes
from margrave.models.protocol import Model, ModelState
from margrave.models.sampling import deal, draw
from margrave.models.weights.grid_support import GridSupport, Support
from margrave.models.weights.record_support import RecordSupport
from margrave.types import AnyArray, Attribute, Clique, FloatArray

#: Bound on the sum of weights: products with a number of records stay finite.
LARGEST_MASS = 1e100


class WeightsModel(Model):
    """``P(x) = weight_x / Σ weight``, for every cell x of the domain (a histogram), or every public record x."""

    def __init__(
        self,
        places: Support,
        total: float,
    ) -> None:
        self.places = places
        self._total = total
        self._mass = float(places.weights.sum())
        if not 0.0 < self._mass < LARGEST_MASS:
            raise ReleaseError("The weights of this model leave no record possible.")

    @property
    def domain(self) -> Domain:
        """The attributes it covers."""
        return self.places.domain

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return expected counts of many marginals, exact, from shared sums."""
        sums = self.places.marginals(cliques, limit)
        for values in sums.values():
            values *= self._total / self._mass
        return sums

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records: each place gets its expected number, rounded down or up by one
        systematic draw.

        Neighboring places are alike in their first columns, so those come out nearly as expected. ``independent``:
        each record drawn on its own instead. O(rows + places).
        """
        n = max(0, round(self._total)) if rows is None else rows
        if n < 0:
            raise InputError(f"{n} records cannot be drawn.", remedy="Ask for 0 or more.")
        within = draw if independent else deal
        places = within(np.zeros(n, dtype=np.int64), self.places.weights.reshape(1, -1), rng)
        codes = self.places.codes(places)
        return codes if columns is None else codes.select(columns)

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> WeightsModel:
        """Return the model given that each named attribute takes one of the codes listed, with the
        same total.
        """
        places = self.places.copy()
        for attribute, codes in evidence.items():
            places.rescale((attribute,), allowed_codes(self.domain, attribute, codes))
        if not places.weights.any():
            raise ReleaseError(
                "No record can satisfy all conditions at once.", remedy="Loosen one of them."
            )
        return WeightsModel(places, self._total)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack, from the places that have their codes;
        O(rows + places).
        """
        given = Given.of(self.domain, rows)
        found = self.places.match(given, rng)
        if (found < 0).any():
            raise nothing_like(len(np.unique(given.which[found < 0])))
        places = self.places.codes(found)
        return joined(self.domain, rows, {a: places.column(a) for a in given.lacking})

    def state(self) -> ModelState:
        """Return the weights, and the records that they are of, unless they are all that there can
        be.
        """
        arrays: dict[str, AnyArray] = {"weights": self.places.weights, **self.places.arrays}
        return ModelState(self.places.kind, {"total": self._total}, arrays)


def empirical(records: Codes, total: float) -> WeightsModel:
    """Return the distribution of some records: each weighted by how often it stands there.

    >>> domain = Domain.of({"a": 3})
    >>> empirical(Codes.of(domain, {"a": np.array([2, 0, 2, 2])}), total=8.0).project(("a",)).values
    array([2., 0., 6.])
    """
    return WeightsModel(RecordSupport.distinct(records.domain, records.values), total)


def load_histogram(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> WeightsModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    return _loaded(GridSupport(domain, _weights(arrays, domain.cells())), facts)


def load_support(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> WeightsModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
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
    return _loaded(RecordSupport(domain, values, _weights(arrays, values.shape[1])), facts)


def _loaded(places: Support, facts: Mapping[str, object]) -> WeightsModel:
    if places.domain.zeros:  # whatever the file says, what cannot occur does not
        places = places.copy()
        places.apply_zeros()
    return WeightsModel(places, total_of(facts))


def _weights(arrays: Mapping[str, AnyArray], size: int) -> FloatArray:
    # The smallest sum of weights in a file: shares of it are then not subnormal.
    min_mass = 1e-100
    weights = floats_of(arrays, "weights", (size,))
    if weights.min() < 0 or not min_mass < float(weights.sum()) < LARGEST_MASS:
        raise ReleaseError("The release's model holds weights that are not a distribution.")
    return weights
