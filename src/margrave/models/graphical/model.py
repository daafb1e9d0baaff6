"""The graphical model: a product of exponentiated potentials, calibrated on its junction tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.marginal.counting import count_cliques
from margrave.models.decode import cliques_of, floats_of, total_of
from margrave.models.evidence import allowed_codes
from margrave.models.graphical.conditional_sampling import complete
from margrave.models.graphical.drawing_order import Step, all_steps, steps_to
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.logspace import (
    MAX_CELLS,
    conditionals,
    log_calibrate,
    needs_log_space,
)
from margrave.models.graphical.propagation import Calibration
from margrave.models.graphical.rebalance import rebalance
from margrave.models.graphical.variable_elimination import VariableElimination
from margrave.models.protocol import Model, ModelState
from margrave.models.sampling import ancestral
from margrave.structural_zeros import violating
from margrave.types import AnyArray, Attribute, Clique, FloatArray

#: Cells of the tables of a model that is read from a file: 2 GiB.
MAX_TABLE_CELLS = 1 << 28
#: Cells of intermediate tables up to which ``answer`` is exact.
EXACT_CELLS = 60_000_000


#: Cells of the largest intermediate table that ``project`` builds (3.2 GB).
PROJECT_CELLS = 400_000_000


class GraphicalModel(Model):
    """p(x) ∝ Π_r exp(theta_r(x_r)), scaled to ``total`` records.

    ``potentials`` has one array per clique, axes in the clique's order; −inf marks impossible cells. ``program`` is
    that of a tree for these cliques, if there is one already.
    """

    def __init__(
        self,
        domain: Domain,
        total: float,
        potentials: Mapping[Clique, FloatArray],
        program: Calibration | None = None,
    ) -> None:
        # Root mass below which cells lose digits.
        small_mass = 1e-100
        self._domain = domain
        self._total = float(total)
        self.potentials = dict(potentials)
        self.tree = (
            JunctionTree.of(domain, list(self.potentials)) if program is None else program.tree
        )
        self.log_partition, self._mass = 0.0, 0.0
        self._prepare(self.potentials, program)
        self._first_program = self._program
        if self._mass < small_mass or needs_log_space(self.potentials.values()):
            # factors that cancel have outgrown floats: add them up before they are exponentiated
            if self.tree.table_cells() <= MAX_CELLS:
                self.log_partition, tables = log_calibrate(self.tree, self.potentials)
                if self.log_partition > -np.inf:
                    self._prepare(conditionals(self.tree, tables))
            elif self._mass < small_mass:
                self._prepare(rebalance(self.potentials))
        if self._mass < small_mass:
            raise ReleaseError(
                "No record can satisfy all conditions at once.", remedy="Loosen one of them."
            )

    def _prepare(
        self, potentials: Mapping[Clique, FloatArray], program: Calibration | None = None
    ) -> None:
        """Lay the potentials out and calibrate them."""
        self._program = Calibration(self.tree, list(potentials)) if program is None else program
        self._buffer = self._program.buffer()
        self.log_partition, self._mass = self._calibrate(potentials)

    def _calibrate(self, potentials: Mapping[Clique, FloatArray]) -> tuple[float, float]:
        """Fill the buffer from potentials; the log partition function, and the mass at the root."""
        shift = 0.0
        for i, (clique, theta) in enumerate(potentials.items()):
            axes = self._program.factor_axes[i]
            largest = float(theta.max())
            if not np.isfinite(largest):
                raise ReleaseError(f"No record can satisfy what is asked of {', '.join(clique)}.")
            start, size = self._program.starts[i], self._program.sizes[i]
            ordered = np.transpose(theta, [clique.index(a) for a in axes])
            self._buffer[start : start + size] = np.exp(ordered - largest).ravel()
            shift += largest
        log_mass, mass = self._program.calibrate(self._buffer, self._total)
        return log_mass + shift, mass

    def tilted(self, attribute: Attribute, factors: FloatArray) -> GraphicalModel:
        """Return the model with the probabilities of each code of a column times a positive factor.

        Args:
            attribute: A column of some potential.
            factors: One number per code.
        """
        clique = min(
            (c for c in self.potentials if attribute in c), key=lambda c: self.potentials[c].size
        )
        shape = [len(factors) if a == attribute else 1 for a in clique]
        changed = self.potentials[clique] + np.log(factors).reshape(shape)
        return GraphicalModel(
            self._domain, self._total, {**self.potentials, clique: changed}, self._first_program
        )

    def node_marginals(self, node: int, cliques: Sequence[Clique]) -> list[FloatArray]:
        """Return the expected counts of marginals that lie in one node of the junction tree."""
        return self._program.node_marginals(node, cliques, self._buffer, self._total, self._mass)

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return expected counts of many marginals.

        Exact where the intermediate tables are small together or no ``rng`` is given; else counted in records that
        the model deals out. A count c is then off by about sqrt(c · total / records) or less, a fifth of it with many
        records, since they are spread; they are so many that a marginal of 1,000 cells is off by about a tenth of what
        noise of ``scale`` does to it, or less, but 50,000 to 600,000.
        """
        wanted = list(dict.fromkeys(cliques))
        if rng is None:
            return self._exact(wanted, limit)
        if self.tree.table_cells() <= EXACT_CELLS // 4:
            plan = VariableElimination(self, wanted, EXACT_CELLS)
            if plan.fits:
                return plan.run(wanted)
        return self._counted(wanted, rng, scale)

    def exact(
        self, cliques: Sequence[Clique], limit: int | None = None, in_all: float = np.inf
    ) -> dict[Clique, FloatArray]:
        """Exact expected counts of those marginals whose intermediate tables fit, as many at a time as fit together.

        Those whose own tables are smallest come first: a few take most of the time.
        """
        limit = PROJECT_CELLS if limit is None else limit
        place = {a: i for i, a in enumerate(self.tree.order)}
        costs: dict[Clique, int] = {}
        for c in sorted(
            dict.fromkeys(cliques),
            key=lambda c: (sorted((place[a] for a in c), reverse=True), len(c)),
        ):
            alone = VariableElimination(self, [], limit)
            if alone.add(c):
                costs[c] = alone.cells
        left = sorted(costs, key=lambda c: costs[c])
        found: dict[Clique, FloatArray] = {}
        while left:
            plan = VariableElimination(self, [], int(min(limit, in_all)))
            together = [c for c in left if plan.add(c)]
            if not together:
                break
            found |= plan.run(together)
            in_all -= plan.cells
            left = [c for c in left if c not in found]
        return found

    def _counted(
        self, cliques: Sequence[Clique], rng: np.random.Generator, scale: float
    ) -> dict[Clique, FloatArray]:
        rows = int(np.clip((self._total / max(scale, 1e-9)) ** 2 / 400, 50_000, 600_000))
        counts = count_cliques(self.sample(rows, rng=rng), cliques)
        return {c: counts[c].astype(np.float64) * (self._total / rows) for c in cliques}

    def _exact(
        self, cliques: Sequence[Clique], limit: int | None = None
    ) -> dict[Clique, FloatArray]:
        plan = VariableElimination(self, cliques, PROJECT_CELLS if limit is None else limit)
        if not plan.fits:
            raise ModelTooLargeError(
                "These marginals span so much of the model that answering them exactly takes too much memory.",
                remedy="Ask for fewer columns at once, or count them in sampled records.",
            )
        return plan.run(cliques)

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records by randomized rounding, column after column; O(rows · columns +
        cells).

        ``independent``: each record drawn on its own instead. ``columns``: only these and what the cliques on the way
        from one to the other share are drawn, which takes that many columns and the cells of these cliques.
        """
        n = max(0, round(self._total)) if rows is None else rows
        wanted = self._domain.clique(self._domain if columns is None else columns)
        steps = all_steps(self.tree) if columns is None else steps_to(self.tree, wanted)
        tables = self._conditionals(steps)
        codes = ancestral(self._domain, tables, n, rng=rng, independent=independent)
        # a combination of parents that has lost its mass to rounding leaves any code to be dealt
        wrong = violating(codes.domain.zeros, codes.column, n)
        if wrong.any():
            right = np.flatnonzero(~wrong)
            if not right.size:
                raise ReleaseError(
                    "No record drawn keeps the constraints.", remedy="Draw more records."
                )
            picked = np.arange(n)
            picked[wrong] = rng.choice(right, int(wrong.sum()))
            codes = codes.take(picked)
        return codes.select(wanted) if len(wanted) < len(steps) else codes

    def _conditionals(
        self, steps: Sequence[Step]
    ) -> Iterable[tuple[Attribute, FloatArray, Clique]]:
        ready: dict[int, FloatArray] = {}
        for i, step in enumerate(steps):
            if i not in ready:
                # a node's families are wanted one after the other; large ones are not kept longer than needed
                group = [j for j in range(i, len(steps)) if steps[j].node == step.node]
                families = [(*steps[j].parents, steps[j].attribute) for j in group]
                ready.update(zip(group, self.node_marginals(step.node, families), strict=True))
            yield (
                step.attribute,
                ready.pop(i).reshape(-1, self._domain.size(step.attribute)),
                step.parents,
            )

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> GraphicalModel:
        """Return the model given that each attribute takes one of the codes listed, with the same
        total.
        """
        weights = {}
        for attribute, codes in evidence.items():
            weights[attribute] = allowed_codes(self._domain, attribute, codes)
        return self.reweighted(weights)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack; combinations · (cells of what is left of
        the tree) steps.
        """
        return complete(self._domain, self.potentials, rows, rng)

    def reweighted(self, weights: Mapping[Attribute, FloatArray]) -> GraphicalModel:
        """Return the model with each code of an attribute made likelier by a factor (0 forbids it),
        with the same total.
        """
        potentials = dict(self.potentials)
        with np.errstate(divide="ignore"):
            for attribute, weight in weights.items():
                one: Clique = (attribute,)
                potentials[one] = potentials.get(one, 0.0) + np.log(weight)
        return GraphicalModel(self._domain, self._total, potentials)

    def state(self) -> ModelState:
        """Return the potentials."""
        facts = {"total": self._total, "cliques": [list(c) for c in self.potentials]}
        return ModelState(
            "graphical", facts, {f"potential{i}": t for i, t in enumerate(self.potentials.values())}
        )


def load_graphical(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> GraphicalModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    potentials = {
        clique: floats_of(arrays, f"potential{i}", domain.shape(clique))
        for i, clique in enumerate(cliques_of(domain, facts))
    }
    for zeros in domain.zeros:  # whatever the file says, what cannot occur does not
        theta = potentials.get(zeros.clique, np.zeros(zeros.possible.shape))
        potentials[zeros.clique] = np.where(zeros.possible, theta, -np.inf)
    cells = JunctionTree.of(domain, list(potentials)).table_cells() if potentials else 0
    if cells > MAX_TABLE_CELLS:  # a small file can name cliques whose tables fill any memory
        raise ReleaseError(
            f"The release's model has tables of {cells:,} cells, and at most {MAX_TABLE_CELLS:,} are read."
        )
    return GraphicalModel(domain, total_of(facts), potentials)
