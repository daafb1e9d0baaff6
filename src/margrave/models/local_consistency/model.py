"""PseudoMarginals: tables of regions that agree wherever they overlap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np

from margrave.domain import Domain
from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.marginal import maximal, project_array
from margrave.marginal.axes import expand_axes
from margrave.models.decode import cliques_of, floats_of, total_of
from margrave.models.graphical import GraphicalModel
from margrave.models.graphical.elimination import sizes_with
from margrave.models.graphical.estimation import minimize
from margrave.models.graphical.fit import Problem
from margrave.models.local_consistency.regions import intersections
from margrave.models.protocol import FittedAnswers, ModelState
from margrave.models.terms import Term
from margrave.structural_zeros import joined
from margrave.types import AnyArray, Clique, FloatArray


class PseudoMarginals(FittedAnswers):
    """Shares of the cells of each region that agree. A joint distribution with all of them may not exist.

    A marginal inside a region is a sum of the region's table. Another begins as that of ``joint``, and is fitted to
    the regions' marginals on its columns.

    ``potentials`` and ``messages`` are those of the fit, for its next round. A release does not keep them.
    """

    #: Cells of a marginal inside no region up to which it is estimated.
    max_estimated_cells: ClassVar[int] = 1 << 22

    def __init__(
        self,
        domain: Domain,
        total: float,
        tables: Mapping[Clique, FloatArray],
        potentials: Mapping[Clique, FloatArray] | None = None,
        messages: Mapping[tuple[Clique, Clique], FloatArray] | None = None,
    ) -> None:
        self._domain, self._total, self.tables = domain, total, dict(tables)
        self.potentials, self.messages = dict(potentials or {}), dict(messages or {})

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return the estimates of many marginals. Inside a region they are sums of its table.

        Raises:
            ModelTooLargeError: If a marginal inside no region has too many cells, or spans too much of ``joint``.
        """
        wanted = list(dict.fromkeys(cliques))
        found = {c: self._inside(c) for c in wanted if self.around(c)}
        others = [c for c in wanted if c not in found]
        for c in others:
            self._check_size(c, limit)
        if others:
            joint = self.joint.answer(
                others, rng=rng, scale=scale / max(1.0, self._total), limit=limit
            )
            found |= {c: self._adjusted(c, joint[c]) for c in others}
        return {c: self._total * found[c] for c in wanted}

    def around(self, clique: Clique) -> list[Clique]:
        """Return the regions that contain a marginal."""
        return [r for r in self.tables if set(clique) <= set(r)]

    def _inside(self, clique: Clique) -> FloatArray:
        region = min(self.around(clique), key=self._domain.cells)
        return np.asarray(project_array(self.tables[region], region, clique))

    def _check_size(self, clique: Clique, limit: int | None) -> None:
        cells = self._domain.cells(clique)
        most = min(self.max_estimated_cells, math.inf if limit is None else limit)
        if cells > most:
            raise ModelTooLargeError(
                f"The marginal of {', '.join(clique)} lies in no region, and is too large to be estimated"
                f" from them: it has {cells:,} cells, above {most:,}.",
                remedy="Ask for fewer columns at once, or refit the release with a model, such as"
                " margrave.models.GraphicalFit() (margrave refit --fit graphical).",
            )

    @cached_property
    def joint(self) -> GraphicalModel:
        """A graphical model of as many regions as its size allows, those of the strongest dependence first."""
        # Largest junction tree, in cells.
        max_tree_cells = 1 << 17
        # Noise of a share at which the pull to independence is that of one log-potential.
        scale, gap = 1e-4, 1e-2
        plain = Domain(self._domain.attributes, self._domain.sizes)
        chosen: list[Clique] = []
        for r in sorted(maximal(self.tables), key=self._dependence, reverse=True):
            if sizes_with(plain, chosen, [r])[0] <= max_tree_cells:
                chosen.append(r)
        terms = [Term(r, self.tables[r], np.full(self.tables[r].shape, scale)) for r in chosen]
        problem = Problem(plain, terms, 1.0, 1.0 / scale)
        start = problem.start(None)
        solution = minimize(
            problem.objective, start, gap=gap * problem.measured, max_calibrations=80
        )
        return GraphicalModel(plain, 1.0, problem.potentials(solution.point), problem.program)

    def _dependence(self, region: Clique) -> float:
        """Return the relative entropy of a region's table to independent columns."""
        table = self.tables[region]
        columns = [project_array(table, region, (a,)) for a in region]
        independent = reduce(np.multiply.outer, columns, np.ones(()))
        here = table > 0.0
        return float((table[here] * np.log(table[here] / independent[here])).sum())

    def _adjusted(self, clique: Clique, shares: FloatArray) -> FloatArray:
        """Return the table nearest in relative entropy that has the regions' marginals on its columns."""
        # Passes of iterative proportional fitting: more matter only if no table has all marginals.
        passes = 10
        min_share = 1e-100
        zeros = [z for z in self._domain.zeros if set(z.clique) <= set(clique)]
        possible = joined(zeros, clique, self._domain.size)
        shares = np.where(possible, np.maximum(shares, min_share), 0.0)
        targets = {i: self._inside(i) for i in maximal(sorted(intersections(clique, self.tables)))}
        for _ in range(passes):
            for i, target in targets.items():
                now = project_array(shares, clique, i)
                ratio = np.divide(target, now, out=np.zeros_like(now), where=now > 0.0)
                shares = shares * expand_axes(ratio, i, clique)
        return np.asarray(shares / max(shares.sum(), min_share))

    def state(self) -> ModelState:
        """Return the regions' tables."""
        arrays: dict[str, AnyArray] = {f"table{i}": t for i, t in enumerate(self.tables.values())}
        facts = {"total": self._total, "cliques": [list(r) for r in self.tables]}
        return ModelState("pseudo-marginals", facts, arrays)


def load_pseudo_marginals(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> PseudoMarginals:
    """Return the pseudo-marginals that ``state`` described; a malformed state is a ReleaseError."""
    tables = {
        r: floats_of(arrays, f"table{i}", domain.shape(r))
        for i, r in enumerate(cliques_of(domain, facts))
    }
    if not all((t >= 0.0).all() and abs(t.sum() - 1.0) < 1e-6 for t in tables.values()):
        raise ReleaseError("The release's pseudo-marginals are not shares that sum to 1.")
    return PseudoMarginals(domain, total_of(facts), tables)
