"""The record that is worth most, by mixed-integer programming: exact, or with the bound that a search came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np

from margrave.errors import InputError
from margrave.models.best_response.objective import Objective
from margrave.structural_zeros import StructuralZeros
from margrave.types import Attribute, FloatArray, IntArray

Row = Mapping[int, float]


def need_solver() -> None:
    """Raise ``InputError`` if SciPy is not installed. Call it before anything is spent."""
    if find_spec("scipy") is None:
        raise InputError(
            "Finding the best record by mixed-integer programming needs scipy.",
            remedy="Install it: pip install 'margrave[inference]'; or take nodes=0: coordinate ascent alone.",
        )


def solve(
    objective: Objective, *, nodes: int, gap: float = 0.0, above: float | None = None
) -> tuple[IntArray | None, float]:
    """Return a record worth more than ``above``, if one was found, and an upper bound on the worth
    of any.
    """
    # SciPy's status if no record satisfies all constraints.
    infeasible = 2
    from scipy.optimize import Bounds, LinearConstraint, milp  # an optional library, when needed

    program = MilpModel(objective)
    matrix, low, high = program.constraints(above)
    result = milp(
        -program.gains,
        integrality=program.whole,
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, low, high),
        options={"node_limit": max(1, nodes), "mip_rel_gap": gap},
    )
    if result.status == infeasible:
        return None, -np.inf if above is None else above
    bound = -result.mip_dual_bound if result.mip_dual_bound is not None else np.inf
    return (None if result.x is None else program.row(result.x)), max(
        bound, -np.inf if above is None else above
    )


@dataclass(eq=False)
class MilpModel:
    """The problem as a mixed-integer program.

    Each attribute takes one of its codes, a 0/1 variable each; y_j stands for q_j(x). Codes that no
    query, constraint or bonus separates share a variable. A query of one attribute needs no y_j.
    With b(a, S) the sum of attribute a's variables over a set of codes, the program needs only

        y_j ≤ b(a, S_ja) for every attribute a of a query of weight above 0,
        y_j ≥ Σ_a b(a, S_ja) − (k − 1) for a query of k attributes and weight below 0.

    A record lies in at most one cell of a marginal. So for cells of weight above 0 the sum of y_j
    over all cells with code v of attribute a is at most b(a, {v}): fewer rows, and a much better
    bound.
    """

    objective: Objective
    starts: dict[Attribute, int] = field(default_factory=dict)
    codes: dict[Attribute, IntArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        domain, at = self.objective.domain, 0
        held = {a for z in domain.zeros for a in z.clique}
        for a in domain.clique([*self.objective.attributes, *held]):
            self.codes[a] = np.arange(domain.size(a)) if a in held else self._distinct(a)
            self.starts[a] = at
            at += len(self.codes[a])
        self._first_query = at
        queries = self.objective.queries
        self._joint = [j for j, q in enumerate(queries) if len(q.clique) > 1]
        self.whole = np.repeat([1, 0], [at, len(self._joint)])
        self.gains = np.concatenate([np.zeros(at), self.objective.weights[self._joint]])
        for a, numbers in self.objective.bonus.items():
            self.gains[self.starts[a] + np.arange(len(self.codes[a]))] += numbers[0][self.codes[a]]
        for j, query in enumerate(queries):
            if len(query.clique) == 1:
                self.gains[self._variables(query.clique[0], j)] += self.objective.weights[j]

    def _distinct(self, a: Attribute) -> IntArray:
        size = self.objective.domain.size(a)
        bonus = self.objective.bonus[a][0] if a in self.objective.bonus else np.zeros(size)
        order = np.argsort(-bonus, kind="stable")
        kinds = {self.objective.allows[a][:, code].tobytes(): int(code) for code in reversed(order)}
        return np.array(sorted(kinds.values()), dtype=np.int64)

    def _variables(self, a: Attribute, j: int) -> IntArray:
        return self.starts[a] + np.flatnonzero(self.objective.allows[a][j, self.codes[a]])

    def constraints(self, above: float | None) -> tuple[object, FloatArray, FloatArray]:
        """Return a sparse matrix with the least and the most that each of its rows may come to."""
        from scipy.sparse import csr_array

        rows = list(self._rows())
        if above is not None:
            rows.append((dict(enumerate(self.gains.tolist())), above, np.inf))
        entries = [(i, k, value) for i, (row, _, _) in enumerate(rows) for k, value in row.items()]
        at, where, values = (np.array(part) for part in zip(*entries, strict=True))
        low, high = (np.array([row[k] for row in rows], dtype=np.float64) for k in (1, 2))
        return csr_array((values, (at, where)), shape=(len(rows), len(self.gains))), low, high

    def _rows(self) -> Iterator[tuple[Row, float, float]]:
        for a, codes in self.codes.items():
            yield {self.starts[a] + i: 1.0 for i in range(len(codes))}, 1.0, 1.0
        for zeros in self.objective.domain.zeros:
            yield from self._impossible(zeros)
        shared: dict[tuple[object, Attribute, int], dict[int, float]] = {}
        for y, j in enumerate(self._joint, self._first_query):
            query = self.objective.queries[j]
            parts = {a: self._variables(a, j) for a in query.clique}
            if self.objective.weights[j] < 0:
                together = {int(k): 1.0 for variables in parts.values() for k in variables}
                yield {**together, y: -1.0}, -np.inf, len(parts) - 1.0
                continue
            for a, variables in parts.items():
                if query.is_cell:
                    shared.setdefault((query.clique, a, int(variables[0])), {})[y] = 1.0
                else:
                    yield {**{int(k): -1.0 for k in variables}, y: 1.0}, -np.inf, 0.0
        for (_, _, variable), members in shared.items():
            yield {**members, variable: -1.0}, -np.inf, 0.0

    def _impossible(self, zeros: StructuralZeros) -> Iterator[tuple[Row, float, float]]:
        sizes = zeros.possible.shape
        last = int(np.argmax(sizes))
        others = [a for i, a in enumerate(zeros.clique) if i != last]
        start = self.starts[zeros.clique[last]]
        table = np.moveaxis(zeros.possible, last, -1)
        for place in np.argwhere(~table.all(axis=-1)):
            row = {self.starts[a] + int(code): 1.0 for a, code in zip(others, place, strict=True)}
            row |= {start + int(code): -1.0 for code in np.flatnonzero(table[tuple(place)])}
            yield row, -np.inf, len(others) - 1.0

    def row(self, solution: FloatArray) -> IntArray:
        """Return the record of a solution."""
        domain = self.objective.domain
        record = np.zeros(len(domain), dtype=np.int64)
        for a, codes in self.codes.items():
            chosen = solution[self.starts[a] : self.starts[a] + len(codes)]
            record[domain.index(a)] = codes[int(np.argmax(chosen))]
        return record
