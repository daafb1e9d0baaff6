"""MST: measure a maximum spanning tree of two-way marginals (McKenna, Miklau, Sheldon 2021)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from margrave.marginal import IDENTITY, Query
from margrave.mechanisms.common import (
    CELLS_PER_MB,
    Progress,
    Step,
    check_fit,
    one_way,
    parameter,
    release_of,
    silent,
)
from margrave.models import Fit, GraphicalFit
from margrave.models.entries import EntryKind
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, MarginalGap, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.transcript import Measurement
from margrave.typing import Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class MST:
    """One-way marginals, a spanning tree of the most dependent pairs, and that tree's two-way marginals.

    A third of the budget each. The tree is grown edge by edge: of the pairs that join two parts, one is chosen by the
    exponential mechanism on ||M_ab(D) − M_ab(independent)||_1. Pairs that would take the model beyond ``max_model_mb``
    are not chosen.

    ``rare``: a code is rare if the noisy count of its column is below so many noise scales. The rare codes of a column
    are merged in the pairs if there are two or more of them. Only the one-way marginal tells them apart. Columns of
    structural zeros keep their codes. ``rare=0`` merges nothing, negative counts included.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: McKenna, Miklau, Sheldon (2021), Winning the NIST contest, Section 4, with ``rare=3``.
    """

    rare: float = parameter(3.0, "Merge codes counted below so many noise scales; 0 merges none.", least=0)
    max_model_mb: float = parameter(1000.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    def __post_init__(self) -> None:
        check_parameters(self)

    def reads(self, domain: Domain) -> Collection[Clique]:
        """All one-way and two-way marginals."""
        return [*one_way(domain), *combinations(domain.attributes, 2)]

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """A third for the columns and one for the tree's pairs; the choices take theirs."""
        d = len(domain)
        third = rho / 3 if d > 1 else rho
        columns = Step.of("every column", one_way(domain), third / d, unit)
        if d == 1:
            return [columns]
        pairs = list(combinations(domain.attributes, 2))
        return [columns, Step("the tree's pairs", pairs, d - 1, Gaussian.scale_for(third / (d - 1), unit))]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {"name": "mst", "rare": self.rare, "max_model_mb": self.max_model_mb, **fit_config(self.fit)}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        kinds = {EntryKind.MERGED} if self.rare > 0 else set()
        check_fit(self.fit, domain, one_way(domain), self.max_model_mb, adaptive=True, kinds=kinds)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure one-way marginals, choose the tree, measure its edges, fit."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        self.check(domain, private.unit)
        private.prepare(self.reads(domain))
        third = private.rho / 3 if len(domain) > 1 else private.rho
        singles = private.measure(one_way(domain), Gaussian(rho=third))
        if len(domain) > 1:
            merged = Query(self._merged(domain, singles.measurements))
            independent = self.fit(domain, singles, rng=rng)
            pairs = list(combinations(domain.attributes, 2))
            estimates = independent.answer(pairs)
            score_parts: dict[Clique, FloatArray] = {r: merged.apply(r, estimates[r]) for r in pairs}
            coarse = Domain(domain.attributes, merged.domain(domain).sizes, domain.zeros)
            fitting = partial(self._fitting, coarse)
            tree = spanning_tree(private, score_parts, third, query=merged, fitting=fitting, progress=progress)
            if tree:
                private.measure(tree, Gaussian(rho=private.remaining), query=merged)
            else:
                private.measure(one_way(domain), Gaussian(rho=private.remaining))
        progress("fitting", 1.0)
        return release_of(private, self.fit(domain, private.transcript, rng=rng), self.config())

    def _fitting(self, coarse: Domain, tree: Sequence[Clique], pairs: Sequence[Clique]) -> list[Clique]:
        """The pairs that the model has room for beside those chosen."""
        sizes = self.fit.cells_with(coarse, [*one_way(coarse), *tree], pairs)
        return [r for r, size in zip(pairs, sizes, strict=True) if size <= self.max_model_mb * CELLS_PER_MB]

    def _merged(self, domain: Domain, singles: tuple[Measurement, ...]) -> dict[Attribute, IntArray]:
        """Return the groups of each column with two or more rare codes: the rare ones are the last group."""
        fixed = {a for z in domain.zeros for a in z.clique}
        groups: dict[Attribute, IntArray] = {}
        if self.rare == 0.0:  # a noisy count can be negative
            return groups
        for m in singles:
            (attribute,) = m.clique
            rare = m.values < self.rare * m.scale
            if rare.sum() >= 2 and attribute not in fixed:
                common = len(rare) - int(rare.sum())
                groups[attribute] = np.where(rare, common, np.cumsum(~rare) - 1).astype(np.int64)
        return groups


Fitting = Callable[[Sequence[Clique], Sequence[Clique]], list[Clique]]
"""Pairs chosen and pairs that might be -> those of the latter that a model has room for."""


def spanning_tree(
    private: Private,
    estimates: Mapping[Clique, FloatArray],
    rho: Fraction,
    *,
    given: Collection[Clique] = (),
    query: Query = IDENTITY,
    fitting: Fitting | None = None,
    progress: Progress = silent,
) -> list[Clique]:
    """Pairs that join what ``given`` cliques leave apart into one tree, each chosen privately by its gap.

    Edge by edge: of the pairs that join two parts, one by the exponential mechanism on ||M_ab(D) − estimate_ab||_1.
    ``fitting`` tells those that there is room for, given the tree so far; where there are none, it has fewer edges.

    **Privacy:** rho at most, in equal shares of the edges.
    """
    part = parts(private.domain, given)
    joined = parts(private.domain, [*given, *estimates])
    edges, tree = len(set(part.values())) - len(set(joined.values())), list[Clique]()
    for _ in range(edges):
        joining = [r for r in estimates if part[r[0]] != part[r[1]]]
        if fitting is not None:
            joining = fitting(tree, joining)
        if not joining:
            break
        score = MarginalGap(
            {r: estimates[r] for r in joining},
            weights=dict.fromkeys(joining, 1.0),
            penalties=dict.fromkeys(joining, 0.0),
            query=query,
        )
        chosen = private.select(joining, score, rho=rho / edges)
        tree.append(chosen)
        part = parts(private.domain, [*given, *tree])
        progress("choosing pairs", len(tree) / edges)
    return tree


def parts(domain: Domain, cliques: Collection[Clique]) -> dict[Attribute, Attribute]:
    """Which part of the graph of these cliques each attribute is in; a part is named after one of its attributes."""
    part = {a: a for a in domain}
    for clique in cliques:
        gone = {part[a] for a in clique}
        part.update({a: part[clique[0]] for a, p in part.items() if p in gone})
    return part
