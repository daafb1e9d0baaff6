"""The models of independent runs together: their mean, and each run's own for intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.models.conditional import check_given, nothing_like
from margrave.models.decode import floats_of
from margrave.models.protocol import FittedAnswers, Model, ModelState
from margrave.types import AnyArray, Attribute, Clique, FloatArray

#: Builds the model of a kind from the facts and arrays of its state.
LoadKind = Callable[[Domain, str, Mapping[str, object], Mapping[str, AnyArray]], FittedAnswers]


class RepeatedModel(Model):
    """The mean of several models, each from a run of its own.

    Args:
        models: The models of the runs, of one domain.
        weights: The weight of each; by default they are equal.

    Raises:
        InputError: There are fewer than two models.
    """

    def __init__(self, models: Sequence[Model], weights: FloatArray | None = None) -> None:
        if not models or (weights is None and len(models) < 2):
            raise InputError("A mean of runs needs two models.", remedy="Give more runs.")
        self.models = tuple(models)
        given = np.ones(len(models)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.weights = given / given.sum()
        self._domain = models[0].domain
        self._total = float(self.weights @ [m.total for m in models])

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return the mean of the expected counts of the runs."""
        asked = list(cliques)
        answers = [m.answer(asked, rng=rng, scale=scale, limit=limit) for m in self.models]
        return {
            c: np.tensordot(self.weights, np.stack([a[c] for a in answers]), axes=1) for c in asked
        }

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records: each run's share of them, in random order."""
        n = round(self._total) if rows is None else rows
        if independent:
            counts = rng.multinomial(n, self.weights)
        else:
            reached = np.floor(n * np.cumsum(self.weights)[:-1] + rng.random())
            counts = np.diff(np.concatenate([[0], np.minimum(reached, n), [n]])).astype(np.int64)
        parts = [
            model.sample(int(k), rng=rng, independent=independent, columns=columns).values
            for model, k in zip(self.models, counts, strict=True)
            if k
        ]
        if not parts:
            return self.models[0].sample(0, rng=rng, independent=independent, columns=columns)
        values = np.concatenate(parts, axis=1)
        domain = self._domain if columns is None else self._domain.project(columns)
        return Codes(domain, np.ascontiguousarray(values[:, rng.permutation(n)]))

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> RepeatedModel:
        """Return the model given that each attribute takes one of the codes listed.

        The weight of a run is multiplied by its probability of the evidence (Bayes).
        """
        models, weights, fault = list[Model](), list[float](), None
        for model, weight in zip(self.models, self.weights, strict=True):
            try:
                for attribute, codes in evidence.items():
                    counts = model.project((attribute,)).values
                    allowed = model.condition({attribute: codes})
                    weight *= float(counts[list(codes)].sum() / max(counts.sum(), 1e-300))
                    model = allowed
            except (InputError, ReleaseError) as error:
                fault = error
                continue
            if weight > 0:
                models.append(model)
                weights.append(weight)
        if not models:
            raise fault or nothing_like(1)
        return RepeatedModel(models, np.array(weights))

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack, each from one run drawn for it.

        A run is drawn by its probability of the codes that the row has. If that marginal is too large, the runs
        are equally likely.
        """
        check_given(self._domain, rows)
        chances = self.weights[:, None] * self._chances(rows)
        reached = np.cumsum(chances, axis=0)
        impossible = ~(reached[-1] > 0)
        if impossible.any():
            raise nothing_like(len(np.unique(rows.values[:, impossible], axis=1).T))
        drawn = (rng.random(reached.shape[1]) * reached[-1] >= reached).sum(axis=0)
        values = np.zeros((len(self._domain), len(rows)), dtype=rows.values.dtype)
        for i, model in enumerate(self.models):
            own = np.flatnonzero(drawn == i)
            if len(own):
                given = Codes(rows.domain, np.ascontiguousarray(rows.values[:, own]))
                values[:, own] = model.complete(given, rng=rng).values
        return Codes(self._domain, values)

    def _chances(self, rows: Codes) -> FloatArray:
        most_cells = 1 << 24
        clique = tuple(a for a in self._domain if a in rows.domain)
        if not clique:
            return np.ones((len(self.models), len(rows)))
        place = tuple(rows.column(a).astype(np.int64) for a in clique)
        try:
            if self._domain.cells(clique) > most_cells:
                return np.ones((len(self.models), len(rows)))
            tables = [m.answer([clique], limit=most_cells)[clique] for m in self.models]
        except ModelTooLargeError:
            return np.ones((len(self.models), len(rows)))
        return np.stack([np.maximum(t[place] / max(t.sum(), 1e-300), 0.0) for t in tables])

    def posterior(self) -> IndependentRuns:
        """Return the runs, as draws."""
        return IndependentRuns(self.models)

    def state(self) -> ModelState:
        """Return the states of all runs."""
        states = [m.state() for m in self.models]
        facts = {"kinds": [s.kind for s in states], "facts": [dict(s.facts) for s in states]}
        arrays = {f"{i}_{n}": a for i, s in enumerate(states) for n, a in s.arrays.items()}
        return ModelState("repeated", facts, {"weights": self.weights, **arrays})


@dataclass(frozen=True, eq=False)
class IndependentRuns:
    """The models of independent runs: a ``Posterior`` with as many draws as there are runs.

    They are estimates, not draws of a posterior, and ``facts["runs"]`` says so: their intervals follow another rule
    (`margrave.inference.combine`).

    Attributes:
        models: The models of the runs.
    """

    models: tuple[Model, ...]

    @property
    def method(self) -> str:
        """The computation in a few words."""
        return f"{len(self.models)} independent runs of the mechanism"

    @property
    def facts(self) -> Mapping[str, Any]:
        """The computation as plain data."""
        return {"method": "independent runs", "good": True, "runs": len(self.models)}

    def draws(self, m: int, *, rng: np.random.Generator) -> Iterator[Model]:
        """Yield the models of ``m`` runs, each once.

        Raises:
            InputError: There are fewer runs.
        """
        if m > len(self.models):
            raise InputError(
                f"{m} tables are asked for, and each of the {len(self.models)} runs gives one.",
                remedy="Leave m (--m) out to take all, or draw by the bootstrap: method='bootstrap'"
                " (--method bootstrap).",
            )
        yield from self.models[:m]


def load_repeated(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray], load: LoadKind
) -> RepeatedModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    kinds, known = facts.get("kinds"), facts.get("facts")
    if not isinstance(kinds, list) or not isinstance(known, list) or len(kinds) != len(known):
        raise ReleaseError("The release's runs are malformed.")
    weights = floats_of(arrays, "weights", (len(kinds),))
    if not kinds or not (weights >= 0).all() or not weights.sum() > 0:
        raise ReleaseError("The release's runs are malformed.")
    models = []
    for i, (kind, own) in enumerate(zip(kinds, known, strict=True)):
        start = f"{i}_"
        if not isinstance(kind, str) or not isinstance(own, dict) or kind == "repeated":
            raise ReleaseError("The release's runs are malformed.")
        parts = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
        model = load(domain, kind, own, parts)
        if not isinstance(model, Model):
            raise ReleaseError("A run of the release has no distribution.")
        models.append(model)
    return RepeatedModel(models, weights)
