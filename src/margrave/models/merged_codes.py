"""A model of merged codes with each code's share of its group: of rare codes together, or without empty ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import ReleaseError
from margrave.marginal import Marginal
from margrave.marginal.axes import multiply_along
from margrave.models.conditional import check_given, joined, nothing_like
from margrave.models.decode import floats_of
from margrave.models.evidence import allowed_codes
from margrave.models.protocol import Model, ModelState
from margrave.models.sampling import deal, draw
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray

#: ``deal``, or ``draw``.
Within = Callable[[IntArray, FloatArray, np.random.Generator], AnyArray]


class Reweightable(Protocol):
    """The interface of the model of merged codes."""

    @property
    def domain(self) -> Domain: ...
    @property
    def total(self) -> float: ...
    def project(self, clique: Clique) -> Marginal: ...
    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]: ...
    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes: ...
    def exact(
        self, cliques: Sequence[Clique], limit: int | None = None, in_all: float = np.inf
    ) -> dict[Clique, FloatArray]: ...
    def reweighted(self, weights: Mapping[Attribute, FloatArray]) -> Reweightable: ...
    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes: ...
    def state(self) -> ModelState: ...


class MergedCodesModel(Model):
    """p(x) = p_coarse(groups of x) · Π_a share_a(x_a): a code within its group is independent of
    everything else.

    It is the maximum-entropy model if no measurement of several columns separates the codes of a
    group.
    """

    def __init__(
        self,
        domain: Domain,
        coarse: Reweightable,
        groups: Mapping[Attribute, IntArray],
        shares: Mapping[Attribute, FloatArray],
    ) -> None:
        self._domain = domain
        self.coarse = coarse
        self.groups = dict(groups)
        self.shares = dict(shares)
        self._only = {
            a: only for a in groups if (only := _one_each(groups[a], shares[a])) is not None
        }
        self._sizes = dict(zip(domain.attributes, domain.sizes, strict=True))
        self._places: dict[tuple[Attribute, int], IntArray] = {}

    @property
    def total(self) -> float:
        """The number of records it stands for."""
        return self.coarse.total

    def _spread(self, clique: Clique, values: FloatArray) -> FloatArray:
        shared = {a: self.shares[a] for a in clique if a in self.shares and a not in self._only}
        for axis, attribute in enumerate(clique):
            if attribute in shared:
                values = np.take(values, self.groups[attribute], axis=axis)
        values = multiply_along(values, clique, shared) if shared else values
        if not any(a in self._only for a in clique):
            return np.ascontiguousarray(values)
        all_codes = np.zeros([self._sizes[a] for a in clique])
        all_codes[tuple(self._along(a, len(clique) - i) for i, a in enumerate(clique))] = values
        return all_codes

    def _along(self, attribute: Attribute, axes: int) -> IntArray:
        """Return the codes of an attribute that have a share, along the first of some axes."""
        found = self._places.get((attribute, axes))
        if found is None:
            codes = self._only.get(attribute, np.arange(self._sizes[attribute]))
            found = self._places[attribute, axes] = codes.reshape(-1, *[1] * (axes - 1))
        return found

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return expected counts of many marginals, as the coarse model answers them."""
        answers = self.coarse.answer(cliques, rng=rng, scale=scale, limit=limit)
        return {c: self._spread(c, v) for c, v in answers.items()}

    def exact(
        self, cliques: Sequence[Clique], limit: int | None = None, in_all: float = np.inf
    ) -> dict[Clique, FloatArray]:
        """Return exact expected counts of the marginals that the coarse model can compute."""
        answers = self.coarse.exact(cliques, limit, in_all)
        return {c: self._spread(c, v) for c, v in answers.items()}

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records: groups from the coarse model, then codes within them by their
        shares.
        """
        coarse = self.coarse.sample(rows, rng=rng, independent=independent, columns=columns)
        within = draw if independent else deal
        found = {a: self._within(a, coarse.column(a), within, rng) for a in coarse.domain}
        return Codes.of(self._domain.project(found), found)

    def _within(
        self, attribute: Attribute, column: AnyArray, within: Within, rng: np.random.Generator
    ) -> AnyArray:
        if attribute not in self.groups:
            return column
        groups = self.groups[attribute]
        table = np.zeros((int(groups.max()) + 1, len(groups)))
        table[groups, np.arange(len(groups))] = self.shares[attribute]
        return within(column.astype(np.int64), table, rng)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack: by the groups of their codes, then codes
        within groups.
        """
        check_given(self._domain, rows)
        for a in rows.domain:
            if a in self.groups:
                impossible = self.shares[a][rows.column(a)] <= 0
                if impossible.any():
                    raise nothing_like(len(np.unique(rows.column(a)[impossible])))
        values = rows.values.copy()
        for i, a in enumerate(rows.domain):
            values[i] = self.groups[a][values[i]] if a in self.groups else values[i]
        known = Domain(
            rows.domain.attributes, tuple(self.coarse.domain.size(a) for a in rows.domain)
        )
        coarse = self.coarse.complete(Codes(known, values), rng=rng)
        lacking = [a for a in self._domain if a not in rows.domain]
        return joined(
            self._domain, rows, {a: self._within(a, coarse.column(a), deal, rng) for a in lacking}
        )

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> MergedCodesModel:
        """Return the model given that each attribute takes one of the codes listed."""
        weights, shares = {}, dict(self.shares)
        for attribute, codes in evidence.items():
            allowed = allowed_codes(self._domain, attribute, codes)
            if attribute in self.groups:
                groups = self.groups[attribute]
                kept = self.shares[attribute] * allowed
                allowed = np.bincount(groups, weights=kept).astype(np.float64)
                shares[attribute] = np.divide(
                    kept, allowed[groups], out=np.zeros_like(kept), where=kept > 0
                )
            weights[attribute] = allowed
        return MergedCodesModel(self._domain, self.coarse.reweighted(weights), self.groups, shares)

    def state(self) -> ModelState:
        """Return the coarse model's state with the groups and shares."""
        inner = self.coarse.state()
        facts = {
            "coarse": inner.kind,
            "coarse_facts": dict(inner.facts),
            "merged": list(self.groups),
        }
        arrays = {f"coarse_{name}": values for name, values in inner.arrays.items()}
        for i, attribute in enumerate(self.groups):
            arrays[f"groups{i}"] = self.groups[attribute]
            arrays[f"shares{i}"] = self.shares[attribute]
        return ModelState("expanded", facts, arrays)


def _one_each(groups: IntArray, shares: FloatArray) -> IntArray | None:
    """Return the one code with a share of each group, if every group has one, in their order."""
    codes = np.flatnonzero(shares)
    alone = np.array_equal(groups[codes], np.arange(int(groups.max()) + 1))
    return codes if alone and (shares[codes] == 1.0).all() else None


def load_merged_codes(
    domain: Domain,
    facts: Mapping[str, object],
    arrays: Mapping[str, AnyArray],
    load_coarse: Callable[[Domain, Mapping[str, object], Mapping[str, AnyArray]], Reweightable],
) -> MergedCodesModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    merged, inner = facts.get("merged"), facts.get("coarse_facts")
    if (
        not isinstance(merged, list)
        or not isinstance(inner, dict)
        or facts.get("coarse") != "graphical"
    ):
        raise ReleaseError("The release's model is malformed.")
    mergeable = set(domain) - {a for z in domain.zeros for a in z.clique}
    if not all(isinstance(a, str) and a in mergeable for a in merged) or len(set(merged)) < len(
        merged
    ):
        raise ReleaseError("The release's model merges codes of columns that it cannot.")
    groups, shares, sizes = {}, {}, dict(zip(domain.attributes, domain.sizes, strict=True))
    for i, attribute in enumerate(merged):
        size = domain.size(attribute)
        own, share = arrays.get(f"groups{i}"), floats_of(arrays, f"shares{i}", (size,))
        if (
            own is None
            or own.shape != (size,)
            or own.dtype != np.int64
            or own.min() < 0
            or own.max() >= size
        ):
            raise ReleaseError("The release's model does not fit its domain.")
        sums = np.bincount(own, weights=share)
        # a group that evidence rules out has no shares left
        if (
            not np.bincount(own).all()
            or share.min() < 0
            or not ((abs(sums - 1) < 1e-6) | (sums == 0)).all()
        ):
            raise ReleaseError("The release's model does not share its groups among their codes.")
        groups[attribute], shares[attribute] = own, share
        sizes[attribute] = int(own.max()) + 1
    coarse = Domain(domain.attributes, tuple(sizes[a] for a in domain), domain.zeros)
    prefix = "coarse_"
    model = load_coarse(
        coarse, inner, {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
    )
    return MergedCodesModel(domain, model, groups, shares)
