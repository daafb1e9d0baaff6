"""The maximum-entropy model with its posterior: draws of the parameters, and the model at their center."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import ReleaseError
from margrave.marginal.simplex import shares_within
from margrave.models.decode import cliques_of, floats_of
from margrave.models.graphical import GraphicalModel
from margrave.models.max_entropy.canonical import Canonical
from margrave.models.merged_codes import MergedCodesModel
from margrave.models.protocol import Model, ModelState
from margrave.models.stored_posterior import StoredPosterior, posterior_facts
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class MergedCodes:
    """Codes that no measurement of several columns separates: ``groups`` of them, and counts that
    share each out.

    The counts come from one-way measurements with noise of ``scales``.
    """

    groups: Mapping[Attribute, IntArray]
    counts: Mapping[Attribute, FloatArray]
    scales: Mapping[Attribute, FloatArray]

    def shares(self, rng: np.random.Generator | None) -> dict[Attribute, FloatArray]:
        """Return each code's share of its group: as the counts say, or drawn from what they leave
        open.
        """
        # Added to every code's count within a group of merged codes before shares are drawn:
        # Jeffreys' prior.
        smallest_gamma = 0.5
        found = {}
        for a, groups in self.groups.items():
            counts = self.counts[a]
            if rng is not None:
                counts = np.maximum(counts + self.scales[a] * rng.standard_normal(len(counts)), 0.0)
                counts = rng.gamma(counts + smallest_gamma)
            found[a] = shares_within(counts, groups)
        return found


class MaxEntropyModel(Model):
    """p(x | θ) = exp(θᵀ a(x) − θ₀(θ)) with ``draws`` from the posterior of θ: one per row, and of
    the total.

    As a model it is the one at ``center``, the mode. ``facts`` holds the sampler's settings and
    diagnostics.
    """

    def __init__(
        self,
        domain: Domain,
        canonical: Canonical,
        center: FloatArray,
        total: float,
        draws: FloatArray,
        totals: FloatArray,
        merged: MergedCodes,
        facts: Mapping[str, Any],
    ) -> None:
        self._domain = domain
        self._total = float(total)
        self.canonical = canonical
        self.center = center
        self.draws = draws
        self.totals = totals
        self.merged = merged
        # a diagnostic that is not a number is left out; ``good`` is False then
        self.facts = {
            k: v for k, v in facts.items() if not isinstance(v, float) or math.isfinite(v)
        }
        self._at_center = self._at(center, self._total, None)

    def _at(
        self, theta: FloatArray, total: float, rng: np.random.Generator | None
    ) -> GraphicalModel | MergedCodesModel:
        coarse = self.canonical.domain
        potentials = self.canonical.potentials(theta)
        for zeros in coarse.zeros:
            table = potentials.get(zeros.clique, np.zeros(zeros.possible.shape))
            potentials[zeros.clique] = np.where(zeros.possible, table, -np.inf)
        model = GraphicalModel(coarse, total, potentials)
        if not self.merged.groups:
            return model
        return MergedCodesModel(self._domain, model, self.merged.groups, self.merged.shares(rng))

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return expected counts of many marginals at the center."""
        return self._at_center.answer(cliques, rng=rng, scale=scale, limit=limit)

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[Attribute] | None = None,
    ) -> Codes:
        """Return synthetic records of the model at the center."""
        return self._at_center.sample(rows, rng=rng, independent=independent, columns=columns)

    def condition(self, evidence: Mapping[Attribute, Sequence[int]]) -> Model:
        """Return the model at the center given that each attribute takes one of the codes listed."""
        return self._at_center.condition(evidence)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the rows with the columns that they lack, by the model at the center."""
        return self._at_center.complete(rows, rng=rng)

    def posterior(self) -> StoredPosterior:
        """Return the draws of θ that came with it."""
        return StoredPosterior(
            "maximum-entropy",
            self.facts,
            len(self.draws),
            lambda i, rng: self._at(self.draws[i], float(self.totals[i]), rng),
            "Refit with more draws, release.refit(MaxEntropyFit(max_draws=20000))",
        )

    def state(self) -> ModelState:
        """Return the center, the draws and what they rest on."""
        canonical = self.canonical
        facts = {
            "total": self._total,
            "cliques": [list(c) for c in canonical.cliques],
            "reference": dict(canonical.reference),
            "merged": list(self.merged.groups),
            "posterior": self.facts,
        }
        arrays: dict[str, AnyArray] = {
            "center": self.center,
            "draws": self.draws,
            "totals": self.totals,
        }
        for i, a in enumerate(self.merged.groups):
            arrays[f"groups{i}"] = self.merged.groups[a]
            arrays[f"counts{i}"], arrays[f"scales{i}"] = (
                self.merged.counts[a],
                self.merged.scales[a],
            )
        return ModelState("max-entropy", facts, arrays)


def load_max_entropy(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> MaxEntropyModel:
    """Return the model that ``state`` described; a malformed state is a ReleaseError."""
    # Parameters of the largest posterior that is read.
    max_stored_parameters = 20_000
    cliques, merged = cliques_of(domain, facts), _merged_of(domain, facts, arrays)
    sizes = {a: int(g.max()) + 1 for a, g in merged.groups.items()}
    coarse = Domain(
        domain.attributes, tuple(sizes.get(a, domain.size(a)) for a in domain), domain.zeros
    )
    if any(len(c) > 12 or coarse.cells(c) > 10 * max_stored_parameters for c in cliques):
        raise ReleaseError("The release's model has more parameters than any posterior.")
    canonical = Canonical(coarse, tuple(cliques), _reference_of(coarse, facts))
    if canonical.size > max_stored_parameters:
        raise ReleaseError("The release's model has more parameters than any posterior.")
    size = len(canonical.kept)
    drawn = arrays.get("draws")
    rows = len(drawn) if drawn is not None and drawn.ndim == 2 else 0
    center, draws = floats_of(arrays, "center", (size,)), floats_of(arrays, "draws", (rows, size))
    totals = floats_of(arrays, "totals", (rows,))
    total, posterior = facts.get("total"), posterior_facts(facts)
    finite = all(np.isfinite(x).all() for x in (center, draws, totals))
    if not rows or not finite or totals.min() <= 0 or totals.max() > 1e30:
        raise ReleaseError("The release's posterior is malformed.")
    if isinstance(total, bool) or not isinstance(total, int | float) or not 0 < total <= 1e30:
        raise ReleaseError("The release's model does not say how many records it stands for.")
    if max(np.abs(center).max(initial=0.0), np.abs(draws).max(initial=0.0)) > 1e6:
        raise ReleaseError("The release's posterior is malformed.")
    return MaxEntropyModel(
        domain, canonical, center, float(total), draws, totals, merged, posterior
    )


def _reference_of(domain: Domain, facts: Mapping[str, object]) -> dict[Attribute, int]:
    codes = facts.get("reference")
    if not isinstance(codes, dict) or set(codes) != set(domain):
        raise ReleaseError("The release's model does not name a reference code for every column.")
    for a, code in codes.items():
        if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code < domain.size(a):
            raise ReleaseError("The release's model names a reference code that its column lacks.")
    return {a: codes[a] for a in domain}


def _merged_of(
    domain: Domain, facts: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> MergedCodes:
    names = facts.get("merged")
    fixed = {a for z in domain.zeros for a in z.clique}
    if not isinstance(names, list) or len(set(map(str, names))) < len(names):
        raise ReleaseError("The release's model does not say which codes it merges.")
    groups, counts, scales = {}, {}, {}
    for i, a in enumerate(names):
        if not isinstance(a, str) or a not in domain or a in fixed:
            raise ReleaseError("The release's model merges codes of columns that it cannot.")
        size, own = domain.size(a), arrays.get(f"groups{i}")
        if (
            own is None
            or own.shape != (size,)
            or own.dtype != np.int64
            or own.min() < 0
            or own.max() >= size
        ):
            raise ReleaseError("The release's model does not fit its domain.")
        if not np.bincount(own).all():
            raise ReleaseError("The release's model has an empty group of codes.")
        groups[a] = own
        counts[a], scales[a] = (
            floats_of(arrays, f"counts{i}", (size,)),
            floats_of(arrays, f"scales{i}", (size,)),
        )
        if not (
            np.isfinite(counts[a]).all() and np.isfinite(scales[a]).all() and (scales[a] >= 0).all()
        ):
            raise ReleaseError("The release's model is malformed.")
    return MergedCodes(groups, counts, scales)
