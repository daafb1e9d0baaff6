"""MaxEntropyFit: from noisy marginals to the posterior of the maximum-entropy model (NAPSU-MQ's inference)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar, Literal

import numpy as np

from margrave.errors import InputError
from margrave.marginal import maximal
from margrave.models.entries import EntryKind
from margrave.models.graphical import GraphicalFit
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.max_entropy.canonical import Canonical
from margrave.models.max_entropy.model import Merged
from margrave.models.max_entropy.told import Told, silent
from margrave.models.protocol import Model
from margrave.models.terms import Term, common_groups, compress, terms_of
from margrave.parameters import check_parameters
from margrave.schema.domain import Domain
from margrave.transcript import PublicTotal, Transcript
from margrave.typing import Attribute, Clique, FloatArray

LARGEST = 400
"""Parameters beyond which the sampler takes hours: each step inverts a matrix of their size."""
LARGEST_TABLES = 100_000
"""Cells of the junction tree's cliques beyond which each step takes too long."""
UNKNOWN = "The posterior is of whole marginals that were measured, not of single queries or public readings."
INSTEAD = "Fit with GraphicalFit() (margrave refit --fit graphical), and draw by the bootstrap."
NEEDED = ("jax", "blackjax", "scipy", "threadpoolctl")


@dataclass(frozen=True, kw_only=True)
class MaxEntropyFit:
    """The posterior of θ in p(x | θ) ∝ exp(θᵀ a(x)), a(x) the canonical queries of the measured marginals:

    p(θ | ŝ) ∝ N(θ; 0, prior² I) · N(ŝ; N μ(θ), N Σ(θ) + K)

    ``sampler``: "nuts" walks the posterior; "laplace" takes the normal distribution around its mode, which is quick,
    and wrong where the noise hides whether cells are empty. ``chains`` walk after ``warmup`` iterations until every
    parameter's R̂ is at most ``r_hat`` and its effective sample size at least ``effective``, or they have made
    ``max_draws`` each; a posterior that has not come that far is kept, but refuses to give data sets unless ``accept``.
    ``prior``: the paper's is 10, which leaves small cells that the noise hides empty nearly always, and makes the
    sampler walk long plateaus. ``reference``: "common" takes each column's commonest code by the noisy answers as its
    reference, "first" the code 0, as the paper does; the prior then says something slightly different.

    As an estimator between a mechanism's rounds (``warm``) it gives ``GraphicalFit``'s estimate.

    **Privacy:** none is spent. Errors: an InputError where an optional library is missing, or the marginals are too
    many for a posterior (``takes`` tells beforehand, ``tractable`` before anything is measured).

    Source: Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference with differentially private
    synthetic data, Section 4 and Appendix C.
    """

    entries: ClassVar[frozenset[EntryKind]] = frozenset({EntryKind.MERGED})

    sampler: Literal["nuts", "laplace"] = "nuts"
    chains: int = 4
    warmup: int = 200
    max_draws: int = 6000
    r_hat: float = 1.01
    effective: float = 400.0
    diverged: float = 0.01
    prior: float = 4.0
    reference: Literal["common", "first"] = "common"
    accept: bool = False

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.sampler not in {"nuts", "laplace"} or self.reference not in {"common", "first"}:
            raise InputError(
                "The sampler is 'nuts' or 'laplace', the reference 'common' or 'first'.", remedy="Use one of them."
            )
        if self.chains < 2 or self.warmup < 60 or self.max_draws < 100 or not self.prior > 0:
            raise InputError(
                "The sampler needs at least 2 chains, a warm-up of 60, 100 draws, and a prior above 0.",
                remedy="Raise the one that is below.",
            )

    def __call__(
        self,
        domain: Domain,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        warm: Model | None = None,
        told: Told = silent,
    ) -> Model:
        """The posterior of the transcript; with ``warm``, or of no answers, a quick estimate.

        ``told`` is told the share of the search that is done.
        """
        if warm is not None or not transcript.counts_something:
            return GraphicalFit()(domain, transcript, rng=rng, warm=warm)
        self.ready()
        canonical, terms, merged = self._problem(domain, transcript)
        self._refuse_large(canonical.domain, canonical.cliques)
        public = [float(e.total) for e in transcript if isinstance(e, PublicTotal)]
        from margrave.models.max_entropy.sampling import (
            sample_posterior,  # the optional libraries, when needed
        )

        return sample_posterior(self, domain, canonical, terms, merged, public[0] if public else None, rng, told)

    def ready(self) -> None:
        """An InputError where a library of the extra is missing: to be asked before anything is spent."""
        if missing := self.missing():
            raise InputError(
                f"The maximum-entropy posterior needs {', '.join(missing)}.",
                remedy="Install them: pip install 'margrave[inference]'.",
            )

    def missing(self) -> tuple[str, ...]:
        """The optional libraries that are not installed."""
        return tuple(name for name in NEEDED if find_spec(name) is None)

    def tractable(self, domain: Domain, cliques: Collection[Clique]) -> bool:
        """Whether a posterior of these marginals can be sampled in minutes, and its queries told apart."""
        tops = maximal(cliques)
        if self.room(domain, tops) < 0:
            return False
        tree = JunctionTree.of(domain, [*tops, *(z.clique for z in domain.zeros)])
        if tree.table_cells() > LARGEST_TABLES:
            return False
        canonical = Canonical(domain, tops, dict.fromkeys(domain, 0))
        return all(canonical.tells(c) for c in tops)

    def takes(self, domain: Domain, transcript: Transcript) -> bool:
        """Whether the posterior of these answers is ``tractable``: of the groups of codes, where codes are merged."""
        try:
            canonical, terms, _ = self._problem(domain, transcript)
        except InputError:  # they merge a column's codes in different ways
            return False
        return bool(terms) and self.tractable(canonical.domain, canonical.cliques)

    def parameters(self, domain: Domain, transcript: Transcript) -> int:
        """How many parameters the posterior of these answers has."""
        canonical = self._problem(domain, transcript)[0]
        return canonical.size

    def room(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """How many parameters more than those of these marginals a posterior can have; below 0: they are too many."""
        tops = maximal(cliques)
        if any(len(c) > 12 or domain.cells(c) > LARGEST_TABLES for c in tops):
            return -1
        return LARGEST - Canonical(domain, tops, dict.fromkeys(domain, 0)).size

    def _refuse_large(self, domain: Domain, cliques: Collection[Clique]) -> None:
        if not self.tractable(domain, cliques):
            these = "This marginal is" if len(cliques) == 1 else f"These {len(cliques)} marginals are"
            raise InputError(
                f"{these} too large for a posterior of all parameters"
                f" (at most {LARGEST:,}, and {LARGEST_TABLES:,} cells of the junction tree).",
                remedy='Measure fewer or smaller ones, or draw by the bootstrap: draws(method="bootstrap").',
            )

    def _problem(self, domain: Domain, transcript: Transcript) -> tuple[Canonical, list[Term], Merged]:
        """The canonical queries of what was measured, merged codes compressed."""
        if transcript.readings or any(a.query.clique for a in transcript.answers):
            raise InputError(UNKNOWN, remedy=INSTEAD)
        measurements = transcript.measurements
        groups = common_groups(domain, measurements)
        merged = Merged({}, {}, {})
        if groups:
            alone = [m for m in measurements if m.query.is_identity and len(m.clique) == 1 and m.clique[0] in groups]
            single = {t.clique[0]: t for t in terms_of(domain, alone)}
            counts = {a: single[a].values if a in single else np.ones(domain.size(a)) for a in groups}
            scales = {a: single[a].scales if a in single else np.zeros(domain.size(a)) for a in groups}
            merged = Merged(groups, counts, scales)
            domain, measurements = compress(domain, measurements, groups)[:2]  # type: ignore[assignment]
        terms = terms_of(domain, measurements)
        return Canonical(domain, maximal([t.clique for t in terms]), self._references(domain, terms)), terms, merged

    def _references(self, domain: Domain, terms: Sequence[Term]) -> dict[Attribute, int]:
        """Each column's reference code."""
        if self.reference == "first":
            return dict.fromkeys(domain, 0)
        counts = {a: np.zeros(domain.size(a)) for a in domain}
        weights = dict.fromkeys(domain, 0.0)
        for term in terms:
            for axis, a in enumerate(term.clique):
                others = tuple(i for i in range(len(term.clique)) if i != axis)
                weight = 1.0 / float((term.scales**2).sum(axis=others).mean())
                counts[a] += weight * term.values.sum(axis=others)
                weights[a] += weight
        return {a: int(np.argmax(counts[a])) for a in domain}

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The cells of the junction tree, as of any graphical model."""
        return GraphicalFit().cells(domain, cliques)

    def cells_with(self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]) -> FloatArray:
        """``cells`` with each candidate added in turn."""
        return GraphicalFit().cells_with(domain, cliques, candidates)
