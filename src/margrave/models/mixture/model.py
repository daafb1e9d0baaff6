"""A mixture of product distributions: within a component the columns are independent, and components differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Codes, Domain
from margrave.errors import InputError, ReleaseError
from margrave.models.conditional import Given, joined, nothing_like
from margrave.models.decode import total_of
from margrave.models.evidence import allowed_codes
from margrave.models.mixture.marginals import answers_of
from margrave.models.protocol import Model, ModelState
from margrave.models.sampling import deal, draw, spread_order
from margrave.types import AnyArray, Attribute, Clique, FloatArray

Floats = NDArray[np.float32]

#: Weights of components that are computed at a time for combinations of known codes.
CELLS_PER_BATCH = 1 << 22


class MixtureModel(Model):
    """P(x) = Σ_b weight_b Π_a P_b(x_a): a component b is drawn, then every attribute on its own.

    ``probabilities`` has one row per component and one column per code, the attributes' blocks side by side in the
    domain's order. A block's rows are scaled to sum to 1; one without any mass is uniform. ``weights`` are scaled too;
    without them all components weigh the same.

    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> model = MixtureModel(domain, 100.0, np.array([[1, 0, 1, 0], [0, 1, 0.5, 0.5]]))
    >>> model.project(("a", "b")).values.tolist()
    [[50.0, 0.0], [25.0, 25.0]]
    """

    def __init__(
        self, domain: Domain, total: float, probabilities: AnyArray, weights: AnyArray | None = None
    ) -> None:
        components = len(probabilities)
        self._domain = domain
        self._total = float(total)
        self._given = (
            np.ones(components) if weights is None else np.asarray(weights, dtype=np.float64)
        )
        self.weights: FloatArray = self._given / self._given.sum()
        self.probabilities: Floats = np.ascontiguousarray(probabilities, dtype=np.float32)
        table = self.probabilities.T.astype(np.float64)  # one row per code
        for rows in blocks_of(domain).values():
            sums = table[rows].sum(axis=0)
            table[rows] = np.where(sums > 0, table[rows], 1.0) / np.where(
                sums > 0, sums, rows.stop - rows.start
            )
        self.table: FloatArray = table

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return expected counts of many marginals at once: exact, and no table in between is
        larger than the answers.
        """
        shares = answers_of(self.table, self.weights, blocks_of(self._domain), cliques)
        return {c: np.asarray(values * self._total) for c, values in shares.items()}

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records: components by their weights, then codes by the component's
        probabilities.

        Both are dealt out by randomized rounding; ``independent``: each record drawn on its own instead.
        """
        n = max(0, round(self._total)) if rows is None else rows
        if n < 0:
            raise InputError(f"{n} records cannot be drawn.", remedy="Ask for 0 or more.")
        alone = np.zeros(n, dtype=np.int64)
        chosen = (
            draw(alone, self.weights[None], rng)
            if independent
            else deal(alone, self.weights[None], rng)
        )
        component = chosen.astype(np.int64)
        blocks = blocks_of(self._domain)
        domain = self._domain if columns is None else self._domain.project(columns)
        drawn: dict[Attribute, AnyArray] = {}
        for attribute in domain:
            table = np.ascontiguousarray(self.table[blocks[attribute]].T)
            if independent:
                drawn[attribute] = draw(component, table, rng)
            else:
                order = spread_order(self._domain, drawn, n, rng)
                drawn[attribute] = deal(component, table, rng, order)
        return Codes.of(domain, drawn)

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> MixtureModel:
        """Return the model given that each attribute takes one of the codes listed, with the same
        total.

        A component's weight is multiplied by its probability of the evidence (Bayes).
        """
        table, weights = self.table.copy(), self.weights.copy()
        for attribute, codes in evidence.items():
            block = blocks_of(self._domain)[attribute]
            table[block] *= allowed_codes(self._domain, attribute, codes)[:, None]
            weights *= table[block].sum(axis=0)
        if not weights.sum() > 0:
            raise InputError(
                "The model holds no records with these codes.",
                remedy="Allow more codes of some column.",
            )
        for block in blocks_of(
            self._domain
        ).values():  # in 64 bits: rounding to 32 may lose small shares
            sums = table[block].sum(axis=0)
            table[block] = np.divide(
                table[block], sums, out=np.zeros_like(table[block]), where=sums > 0
            )
        return MixtureModel(self._domain, self._total, table.T, weights)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack: a component by Bayes' rule, then codes
        of its own.

        O(combinations · components · columns).
        """
        given = Given.of(self._domain, rows)
        batch = max(1, CELLS_PER_BATCH // len(self.weights))
        component = np.zeros(len(rows), dtype=np.int64)
        with np.errstate(divide="ignore"):
            weights, table = np.log(self.weights), np.log(self.table)
        impossible = 0
        for start in range(0, len(given), batch):
            codes = given.codes.take(np.arange(start, min(start + batch, len(given))))
            scores = np.tile(weights, (len(codes), 1))
            for attribute in codes.domain:
                block = blocks_of(self._domain)[attribute]
                scores += table[block][codes.column(attribute)]
            highest = scores.max(axis=1, keepdims=True)
            impossible += int((highest == -np.inf).sum())
            mine = np.flatnonzero((given.which >= start) & (given.which < start + batch))
            posterior = np.exp(scores - np.where(highest > -np.inf, highest, 0.0))
            component[mine] = deal(given.which[mine] - start, posterior, rng)
        if impossible:
            raise nothing_like(impossible)
        drawn: dict[Attribute, AnyArray] = {}
        for attribute in given.lacking:
            table = np.ascontiguousarray(self.table[blocks_of(self._domain)[attribute]].T)
            known = {a: rows.column(a) for a in rows.domain} | drawn
            drawn[attribute] = deal(
                component, table, rng, spread_order(self._domain, known, len(rows), rng)
            )
        return joined(self._domain, rows, drawn)

    def state(self) -> ModelState:
        """Return the probabilities and the weights: what made them is left behind."""
        arrays: dict[str, AnyArray] = {"probabilities": self.probabilities, "weights": self._given}
        return ModelState("mixture", {"total": self._total}, arrays)


def blocks_of(domain: Domain) -> dict[Attribute, slice]:
    """Return the range of each attribute's codes among all codes side by side."""
    starts = np.cumsum([0, *domain.sizes]).tolist()
    return {
        a: slice(start, stop) for a, start, stop in zip(domain, starts, starts[1:], strict=False)
    }


def load_mixture(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> MixtureModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    table, weights = arrays.get("probabilities"), arrays.get("weights")
    if table is None or weights is None or table.dtype != np.float32 or weights.dtype != np.float64:
        raise ReleaseError("The release's model lacks its probabilities or weights.")
    if weights.ndim != 1 or not len(weights) or table.shape != (len(weights), sum(domain.sizes)):
        raise ReleaseError("The release's model does not fit its domain.")
    if domain.zeros:
        raise ReleaseError("The release's model cannot keep its schema's constraints.")
    if not ((table >= 0) & (table <= 1.001)).all():  # blocks that do not sum to one are scaled
        raise ReleaseError("The release's model holds numbers that are not probabilities.")
    if not ((weights >= 0) & (weights <= 1)).all() or not weights.any():
        raise ReleaseError("The release's model holds numbers that are not weights.")
    return MixtureModel(domain, total_of(facts), table, weights)


def numbers_of(domain: Domain) -> tuple[Attribute, ...]:
    """Return the columns with an order and three codes or more, without the state for missing.

    Example:
        >>> numbers_of(Domain(("age", "job", "sex"), (9, 5, 2), unordered=frozenset(["job"])))
        ('age',)
    """
    min_codes = 3
    return tuple(
        a
        for a in domain
        if a not in domain.unordered and domain.size(a) - (a in domain.missing) >= min_codes
    )
