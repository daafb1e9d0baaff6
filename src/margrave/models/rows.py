"""Rows: a distribution on a few records, each with its weight. What averages of single records make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from margrave.errors import InputError, ReleaseError
from margrave.marginal import Marginal
from margrave.models.evidence import allowed_codes
from margrave.models.loading import total_of
from margrave.models.protocol import ModelState
from margrave.schema.domain import Codes, Domain, code_dtype
from margrave.schema.zeros import violating
from margrave.typing import AnyArray, Attribute, Clique, FloatArray


class RowsModel:
    """p(x) = Σ_i weights[i] · [x = records[i]], scaled to ``total`` records; the weights sum to 1."""

    def __init__(self, records: Codes, weights: FloatArray, total: float) -> None:
        self.records = records
        self.weights = weights
        self._total = total

    @staticmethod
    def of(records: Codes, total: float) -> RowsModel:
        """Every record of the same weight; equal ones are one with the sum of theirs."""
        distinct, counts = np.unique(records.values, axis=1, return_counts=True)
        return RowsModel(Codes(records.domain, distinct), counts / len(records), total)

    @property
    def domain(self) -> Domain:
        """The attributes it covers."""
        return self.records.domain

    @property
    def total(self) -> float:
        """The number of records it stands for."""
        return self._total

    def project(self, clique: Clique) -> Marginal:
        """Expected counts of one marginal, exact."""
        return Marginal(clique, self._counts(clique))

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Expected counts of many marginals, exact."""
        return {c: self._counts(c) for c in cliques}

    def _counts(self, clique: Clique) -> FloatArray:
        shape = self.domain.shape(clique)
        cells = np.ravel_multi_index(tuple(self.records.column(a).astype(np.int64) for a in clique), shape)
        counted = np.bincount(cells, weights=self.weights * self._total, minlength=self.domain.cells(clique))
        return np.asarray(counted.reshape(shape), dtype=np.float64)

    def sample(
        self, rows: int | None = None, *, rng: np.random.Generator, independent: bool = False
    ) -> Codes:
        """Synthetic records: each of the model's as often as its weight says, rounded at random without bias.

        Of one number for all that is rounded: records that are alike, in the order of their codes, take turns.
        ``independent``: each drawn on its own.
        """
        n = max(0, round(self._total)) if rows is None else rows
        if n < 0:
            raise InputError(f"{n} records cannot be drawn.", remedy="Ask for 0 or more.")
        if independent:
            return self.records.take(rng.choice(len(self.weights), size=n, p=self.weights))
        reached = np.cumsum(self.weights)
        places = (np.arange(n) + rng.random()) / max(n, 1) * reached[-1]
        return self.records.take(np.minimum(np.searchsorted(reached, places, side="right"), len(reached) - 1))

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> RowsModel:
        """The model given that each named attribute takes one of the codes listed, with the same total."""
        weights = self.weights.copy()
        for attribute, codes in evidence.items():
            weights *= allowed_codes(self.domain, attribute, codes)[self.records.column(attribute)]
        kept = np.flatnonzero(weights)
        if not kept.size:
            raise ReleaseError("No record of the model satisfies all conditions at once.", remedy="Loosen one of them.")
        return RowsModel(self.records.take(kept), weights[kept] / weights[kept].sum(), self._total)

    def posterior(self) -> None:
        """None: it is one estimate."""
        return

    def state(self) -> ModelState:
        """The records and their weights."""
        arrays: dict[str, AnyArray] = {"records": self.records.values, "weights": self.weights}
        return ModelState("rows", {"total": self._total}, arrays)


def load_rows(domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> RowsModel:
    """The model that ``state`` described; a malformed state is a ReleaseError."""
    records, weights = arrays.get("records"), arrays.get("weights")
    if records is None or weights is None or records.dtype != code_dtype(domain.sizes) or records.ndim != 2:
        raise ReleaseError("The release's model has no records with weights.")
    if records.shape[0] != len(domain) or not records.shape[1] or weights.shape != records.shape[1:]:
        raise ReleaseError("The release's model does not fit its domain.")
    if (records.max(axis=1) >= np.array(domain.sizes)).any():
        raise ReleaseError("The release's model has records outside its domain.")
    if weights.dtype != np.float64 or not (weights > 0).all() or not abs(float(weights.sum()) - 1.0) < 1e-9:
        raise ReleaseError("The weights of the release's model are not positive, or do not sum to 1.")
    codes = Codes(domain, records)
    if violating(domain.zeros, codes.column, len(codes)).any():
        raise ReleaseError("The release's model has records that its constraints rule out.")
    return RowsModel(codes, weights, total_of(facts))
