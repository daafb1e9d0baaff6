"""The graphical model: a product of exponentiated potentials, calibrated on its junction tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.marginal import Marginal, covers, project_array
from margrave.marginal.counting import count_cliques
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.propagation import Program
from margrave.models.loading import cliques_of, floats_of, total_of
from margrave.models.protocol import ModelState
from margrave.models.sampling import deal
from margrave.schema.domain import Codes, Domain
from margrave.typing import AnyArray, Attribute, Clique, FloatArray

EXACT_CELLS = 60_000_000
"""Up to how many cells of intermediate tables ``answer`` computes exactly."""

PROJECT_CELLS = 400_000_000
"""The largest intermediate table ``project`` will build (3.2 GB)."""


class GraphicalModel:
    """p(x) ∝ Π_r exp(theta_r(x_r)), scaled to ``total`` records.

    ``potentials`` has one array per clique, axes in the clique's order; −inf marks impossible cells.
    """

    def __init__(self, domain: Domain, total: float, potentials: Mapping[Clique, FloatArray]) -> None:
        self._domain = domain
        self._total = float(total)
        self.potentials = dict(potentials)
        cliques = list(self.potentials)
        self.tree = JunctionTree.of(domain, cliques)
        self._program = Program(self.tree, cliques)
        self._buffer = self._program.buffer()
        shift = 0.0
        for i, (clique, theta) in enumerate(self.potentials.items()):
            axes = self._program.factor_axes[i]
            largest = float(theta.max())
            if not np.isfinite(largest):
                raise ReleaseError(f"No record can satisfy what is asked of {', '.join(clique)}.")
            start, size = self._program.starts[i], self._program.sizes[i]
            ordered = np.transpose(theta, [clique.index(a) for a in axes])
            self._buffer[start : start + size] = np.exp(ordered - largest).ravel()
            shift += largest
        log_mass, self._mass = self._program.calibrate(self._buffer, self._total)
        if self._mass == 0.0:
            raise ReleaseError("No record can satisfy all conditions at once.", remedy="Loosen one of them.")
        self.log_partition = log_mass + shift

    @property
    def domain(self) -> Domain:
        """The attributes it covers."""
        return self._domain

    @property
    def total(self) -> float:
        """The number of records it stands for."""
        return self._total

    def _node_marginals(self, node: int, cliques: Sequence[Clique]) -> list[FloatArray]:
        return self._program.node_marginals(node, cliques, self._buffer, self._total, self._mass)

    def project(self, clique: Clique) -> Marginal:
        """Expected counts of one marginal, exact: from a node, or by summing out what joins its attributes."""
        return Marginal(clique, self._exact([clique], PROJECT_CELLS)[clique])

    def answer(
        self, cliques: Iterable[Clique], *, rng: np.random.Generator | None = None, scale: float = 0.0
    ) -> dict[Clique, FloatArray]:
        """Expected counts of many marginals.

        Exact where the intermediate tables are small together or no ``rng`` is given; else counted in records that
        the model deals out. A count c is then off by about sqrt(c · total / records) or less; records are so many that
        a marginal of 1,000 cells is off by a fifth of what noise of ``scale`` does to it, but 50,000 to 600,000.
        """
        wanted = list(dict.fromkeys(cliques))
        if rng is None:
            return self._exact(wanted, PROJECT_CELLS)
        if self.tree.cells() <= EXACT_CELLS // 4 and _Plan(self, wanted, EXACT_CELLS).fits:
            return self._exact(wanted, EXACT_CELLS)
        return self._counted(wanted, rng, scale)

    def _counted(
        self, cliques: Sequence[Clique], rng: np.random.Generator, scale: float
    ) -> dict[Clique, FloatArray]:
        rows = int(np.clip((self._total / max(scale, 1e-9)) ** 2 / 40, 50_000, 600_000))
        counts = count_cliques(self.sample(rows, rng=rng), cliques)
        return {c: counts[c].astype(np.float64) * (self._total / rows) for c in cliques}

    def _exact(self, cliques: Sequence[Clique], limit: int) -> dict[Clique, FloatArray]:
        plan = _Plan(self, cliques, limit)
        if not plan.fits:
            raise ModelTooLargeError(
                "These marginals span so much of the model that answering them exactly takes too much memory.",
                remedy="Ask for fewer columns at once, or count them in sampled records.",
            )
        return plan.run(cliques)

    def sample(self, rows: int | None = None, *, rng: np.random.Generator) -> Codes:
        """Synthetic records by randomised rounding, column after column; O(rows · columns + cells)."""
        n = max(0, round(self._total)) if rows is None else rows
        columns: dict[Attribute, AnyArray] = {}
        for attribute, table, parents in self._conditionals():
            groups = np.zeros(n, dtype=np.int64)
            for parent in parents:
                groups *= self._domain.size(parent)
                groups += columns[parent]
            columns[attribute] = deal(groups, table, rng)
        return Codes.of(self._domain, columns)

    def _conditionals(self) -> Iterable[tuple[Attribute, FloatArray, Clique]]:
        """Each attribute in the tree's order: its weights, one row per combination of its parents, and the parents."""
        for attribute, parents, table in zip(
            self.tree.order, self.tree.parents, self._families(), strict=True
        ):
            size = self._domain.size(attribute)
            yield attribute, table.reshape(-1, size), parents

    def _families(self) -> Iterable[FloatArray]:
        """The marginal of each attribute after its parents, one node's together."""
        families = [(*p, a) for a, p in zip(self.tree.order, self.tree.parents, strict=True)]
        homes = [self.tree.node_of(f) for f in families]
        ready: dict[int, FloatArray] = {}
        for i, home in enumerate(homes):
            if i not in ready:
                assert home is not None
                # a node's families are wanted one after the other; large ones are not kept longer than needed
                group = [j for j in range(i, len(families)) if homes[j] == home]
                tables = self._node_marginals(home, [families[j] for j in group])
                ready.update(zip(group, tables, strict=True))
            yield ready.pop(i)

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> GraphicalModel:
        """The model given that each attribute takes one of the codes listed, with the same total."""
        weights = {}
        for attribute, codes in evidence.items():
            allowed = np.zeros(self._domain.size(attribute))
            allowed[list(codes)] = 1.0
            weights[attribute] = allowed
        return self.reweighted(weights)

    def reweighted(self, weights: Mapping[Attribute, FloatArray]) -> GraphicalModel:
        """The model with each code of an attribute made likelier by a factor (0 forbids it), with the same total."""
        potentials = dict(self.potentials)
        with np.errstate(divide="ignore"):
            for attribute, weight in weights.items():
                one: Clique = (attribute,)
                potentials[one] = potentials.get(one, 0.0) + np.log(weight)
        return GraphicalModel(self._domain, self._total, potentials)

    def state(self) -> ModelState:
        """The potentials."""
        facts = {"total": self._total, "cliques": [list(c) for c in self.potentials]}
        return ModelState(
            "graphical", facts, {f"potential{i}": t for i, t in enumerate(self.potentials.values())}
        )


class _Plan:
    """Which tables to build, largest sharing first, to answer cliques that may lie in no node.

    With attributes in sampling order and v the last attribute of U outside a node, P(U) is the sum over v's parents
    outside U of P((U without v) with v's parents) · P(v | parents). The same recursion answers the larger table, until
    a node holds it. Tables are shared between cliques.
    """

    def __init__(self, model: GraphicalModel, cliques: Sequence[Clique], limit: int) -> None:
        self.model = model
        self.tree = model.tree
        self.limit = limit
        self.cells = 0
        self.fits = True
        self.position = {a: i for i, a in enumerate(self.tree.order)}
        self.parents = dict(zip(self.tree.order, self.tree.parents, strict=True))
        self.steps: dict[Clique, tuple[Clique, Attribute] | None] = {}
        for clique in sorted(cliques, key=len, reverse=True):
            if not self._add(clique):
                self.fits = False
                break

    def _add(self, clique: Clique) -> bool:
        """Plan one table and what it needs; False when that is too much."""
        if clique in self.steps:
            return True
        domain = self.model.domain
        if covers(self.tree.cliques, clique) or len(clique) == 1:
            self.steps[clique] = None
            self.cells += domain.cells(clique)
            return self.cells <= self.limit
        last = max(clique, key=self.position.__getitem__)
        source = domain.clique((set(clique) - {last}) | set(self.parents[last]))
        # the cost of the product, not only of the result
        self.cells += domain.cells((set(clique) - {last}) | set(self.parents[last]) | {last})
        if self.cells > self.limit or not self._add(source):
            return False
        self.steps[clique] = (source, last)
        return True

    def run(self, wanted: Sequence[Clique]) -> dict[Clique, FloatArray]:
        """All tables of the plan, then those asked for."""
        ready: dict[Clique, FloatArray] = {}
        by_node: dict[int, list[Clique]] = {}
        conditionals = {step[1] for step in self.steps.values() if step is not None}
        families = {v: (*self.parents[v], v) for v in conditionals}
        for clique in (*(c for c, step in self.steps.items() if step is None), *families.values()):
            node = self.tree.node_of(clique)
            assert node is not None
            by_node.setdefault(node, []).append(clique)
        for node, cliques in by_node.items():
            largest = [c for c in dict.fromkeys(cliques) if not any(set(c) < set(d) for d in cliques)]
            tables = dict(zip(largest, self.model._node_marginals(node, largest), strict=True))
            for clique in cliques:
                home = clique if clique in tables else next(c for c in largest if set(clique) <= set(c))
                ready[clique] = project_array(tables[home], home, clique)
        given = {v: _normalised(ready[f]) for v, f in families.items()}
        for clique, step in self.steps.items():  # a source was planned before what is made from it
            if step is not None:
                ready[clique] = self._extend(clique, *step, ready[step[0]], given[step[1]])
        return {c: ready[c] for c in wanted}

    def _extend(
        self, clique: Clique, source: Clique, last: Attribute, table: FloatArray, given: FloatArray
    ) -> FloatArray:
        """Σ over parents outside the clique of table(source) · given(parents, last), as one (batched) product."""
        parents = self.parents[last]
        kept = [p for p in parents if p in clique]
        summed = [p for p in parents if p not in clique]
        others = [a for a in source if a not in parents]
        domain = self.model.domain
        left = np.transpose(table, [source.index(a) for a in (*kept, *others, *summed)])
        right = np.transpose(given, [*(parents.index(p) for p in (*kept, *summed)), len(parents)])
        batch, rows, inner = domain.cells(kept), domain.cells(others), domain.cells(summed)
        product = left.reshape(batch, rows, inner) @ right.reshape(batch, inner, domain.size(last))
        axes = (*kept, *others, last)
        return np.ascontiguousarray(
            np.transpose(product.reshape(domain.shape(axes)), [axes.index(a) for a in clique])
        )


def _normalised(table: FloatArray) -> FloatArray:
    """Each row (the last axis) scaled to sum to one; rows of zeros stay."""
    sums = table.sum(axis=-1, keepdims=True)
    given: FloatArray = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
    return given


def load_graphical(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> GraphicalModel:
    """The model that ``state`` described; a malformed state is a ReleaseError."""
    potentials = {
        clique: floats_of(arrays, f"potential{i}", domain.shape(clique))
        for i, clique in enumerate(cliques_of(domain, facts))
    }
    return GraphicalModel(domain, total_of(facts), potentials)
