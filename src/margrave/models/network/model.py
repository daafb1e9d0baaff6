"""The Bayesian network: a conditional distribution of each column given columns before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.marginal.counting import count_cliques
from margrave.models.decode import floats_of, total_of
from margrave.models.graphical import GraphicalModel, JunctionTree
from margrave.models.graphical.conditional_sampling import complete
from margrave.models.protocol import Model, ModelState
from margrave.models.sampling import ancestral
from margrave.types import AnyArray, Attribute, Clique, FloatArray


@dataclass(frozen=True, eq=False)
class ConditionalTable:
    """A column with its parents, and its distribution given each combination of their codes.

    Attributes:
        column: The column.
        parents: Columns before it in the network, in the order of the domain.
        table: One axis for each parent, and the last one for the column. It sums to 1 along the last.
    """

    column: Attribute
    parents: Clique
    table: FloatArray


class NetworkModel(Model):
    """``p(x) = Π p(x_i | parents_i)``, scaled to ``total`` records. Columns have the order of the conditionals."""

    #: Cells of the junction tree up to which answers are exact: 1 GiB.
    max_tree_cells: ClassVar[int] = 1 << 27

    #: Records that answers are counted in where they are not exact.
    rows_for_answers: ClassVar[int] = 200_000

    def __init__(
        self, domain: Domain, total: float, conditionals: Sequence[ConditionalTable]
    ) -> None:
        self._domain = domain
        self._total = float(total)
        self.conditionals = tuple(conditionals)

    @cached_property
    def potentials(self) -> Mapping[Clique, FloatArray]:
        """The logarithms of the conditional distributions, by clique."""
        with np.errstate(divide="ignore"):
            found = {}
            for c in self.conditionals:
                axes = (*c.parents, c.column)
                clique = self._domain.clique(axes)
                found[clique] = np.log(c.table.transpose([axes.index(a) for a in clique]))
        return found

    @cached_property
    def _exact(self) -> GraphicalModel | None:
        tree = JunctionTree.of(self._domain, list(self.potentials))
        if tree.table_cells() > self.max_tree_cells:
            return None
        return GraphicalModel(self._domain, self._total, self.potentials)

    def graphical(self) -> GraphicalModel:
        """Return the same distribution as a graphical model, for exact answers.

        Raises:
            ModelTooLargeError: If its junction tree is too large.
        """
        if self._exact is None:
            raise ModelTooLargeError(
                "The columns of this network depend on each other in so many ways that an exact answer takes too much"
                " memory.",
                remedy="Count in sampled records, or fit a network with fewer parents.",
            )
        return self._exact

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return expected counts of many marginals: exact if the junction tree is small or no ``rng`` is given.

        Otherwise they are counted in ``rows_for_answers`` records that the network draws.
        """
        wanted = list(dict.fromkeys(cliques))
        if rng is None or self._exact is not None:
            return self.graphical().answer(wanted, rng=rng, scale=scale, limit=limit)
        counts = count_cliques(self.sample(self.rows_for_answers, rng=rng), wanted)
        return {
            c: counts[c].astype(np.float64) * (self._total / self.rows_for_answers) for c in wanted
        }

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records, column after column given its parents.

        ``columns``: only these and the columns that they depend on are drawn.
        """
        drawn = set(self._domain if columns is None else self._domain.clique(columns))
        wanted = frozenset(drawn)
        for conditional in reversed(self.conditionals):  # parents come before their children
            if conditional.column in drawn:
                drawn.update(conditional.parents)
        tables = [
            (f.column, f.table.reshape(-1, self._domain.size(f.column)), f.parents)
            for f in self.conditionals
            if f.column in drawn
        ]
        n = max(0, round(self._total)) if rows is None else rows
        codes = ancestral(self._domain, tables, n, rng=rng, independent=independent)
        return codes.select(wanted) if wanted < drawn else codes

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> GraphicalModel:
        """Return the graphical model given that each attribute takes one of the codes listed."""
        return self.graphical().condition(evidence)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack, drawn given their codes."""
        return complete(self._domain, self.potentials, rows, rng)

    def state(self) -> ModelState:
        """Return the order, the parents and the tables."""
        facts = {
            "total": self._total,
            "order": [f.column for f in self.conditionals],
            "parents": [list(f.parents) for f in self.conditionals],
        }
        arrays = {f"table{i}": f.table for i, f in enumerate(self.conditionals)}
        return ModelState("network", facts, arrays)


def load_network(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> NetworkModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    # The largest distance from 1 of a sum of probabilities.
    tolerance = 1e-6
    order, parents = facts.get("order"), facts.get("parents")
    if not isinstance(order, list) or not isinstance(parents, list) or domain.zeros:
        raise ReleaseError("The release's network has no order of columns, or constraints.")
    if sorted(map(str, order)) != sorted(domain) or len(parents) != len(order):
        raise ReleaseError("The release's network does not order the columns of its schema.")
    conditionals = []
    for i, (column, named) in enumerate(zip(order, parents, strict=True)):
        before = order[:i]
        if not isinstance(named, list) or not all(a in before for a in named):
            raise ReleaseError(
                "A column of the release's network has parents that are not before it."
            )
        clique = domain.clique(named) if named else ()
        if clique != tuple(named):
            raise ReleaseError("The release's network does not keep its schema's order of columns.")
        table = floats_of(arrays, f"table{i}", domain.shape((*clique, column)))
        if not ((table >= 0.0).all() and (abs(table.sum(axis=-1) - 1.0) <= tolerance).all()):
            raise ReleaseError("The release's network holds numbers that are not probabilities.")
        conditionals.append(ConditionalTable(column, clique, table))
    return NetworkModel(domain, total_of(facts), conditionals)
