"""MaxEntropyFit: from noisy marginals to the posterior of the maximum-entropy model (NAPSU-MQ's inference)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar, Literal

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError
from margrave.marginal import maximal
from margrave.models.cost import Cost, FitLoad, calibration_cost
from margrave.models.entries import EntryKind, check_kinds
from margrave.models.graphical import GraphicalFit
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.state import GraphicalState
from margrave.models.max_entropy.canonical import Canonical
from margrave.models.max_entropy.model import MergedCodes
from margrave.models.max_entropy.sufficient import of_canonical_queries
from margrave.models.precision_means import column_mean
from margrave.models.progress import ShareProgress, no_progress
from margrave.models.protocol import Answerer, Fit, Model, Needs
from margrave.models.terms import Term, common_groups, compress, terms_of
from margrave.transcript import PublicTotal, Transcript
from margrave.types import Attribute, Clique, FloatArray

#: Cells of the junction tree's cliques up to which a step is fast enough.
MAX_TABLE_CELLS = 100_000


@dataclass(frozen=True, kw_only=True)
class MaxEntropyFit(Fit):
    """The posterior of θ in p(x | θ) ∝ exp(θᵀ a(x)), a(x) the canonical queries of the measured
    marginals:

    p(θ | ŝ) ∝ N(θ; 0, prior² I) · N(ŝ; N μ(θ), N Σ(θ) + K)

    ``sampler``: "nuts" samples the posterior; "laplace" uses the normal distribution around its
    mode, which is fast, and wrong if the noise hides whether cells are empty. ``chains`` run after
    ``warmup`` iterations until every parameter's R̂ is at most ``r_hat`` and its effective sample
    size at least ``effective``, or each has made ``max_draws``. A posterior that has not converged
    is kept, but gives no data sets unless ``accept``. ``prior``: the paper's is 10, which makes
    small cells that the noise hides nearly always empty, and the sampler slow on long plateaus.
    ``reference``: "common" takes each column's most frequent code by the noisy answers as its
    reference, "first" the code 0, as the paper does; the prior then differs slightly. ``queries``:
    "all" uses every measured cell, "canonical" one for each canonical query, as the paper measures
    (``of_canonical_queries``). Between a mechanism's rounds the estimate is ``GraphicalFit``'s.

    Raises:
        InputError: An optional library is missing, or the marginals are too many for a posterior.
            ``takes`` and ``tractable`` check this before anything is measured.

    Privacy:
        None spent.

    References:
        Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference with differentially
        private synthetic data, Section 4 and Appendix C.
    """

    #: Parameters up to which sampling takes minutes: each step inverts a matrix of their size.
    _max_parameters: ClassVar[int] = 400

    entries: ClassVar[frozenset[EntryKind]] = frozenset({EntryKind.MERGED})
    samples_posterior: ClassVar[bool] = True

    sampler: Literal["nuts", "laplace"] = "nuts"
    chains: int = 4
    warmup: int = 200
    max_draws: int = 6000
    r_hat: float = 1.01
    effective: float = 400.0
    diverged: float = 0.01
    prior: float = 4.0
    reference: Literal["common", "first"] = "common"
    queries: Literal["all", "canonical"] = "all"
    accept: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.sampler not in {"nuts", "laplace"} or self.reference not in {"common", "first"}:
            raise InputError(
                "The sampler is 'nuts' or 'laplace', the reference 'common' or 'first'.",
                remedy="Use one of them.",
            )
        if self.chains < 2 or self.warmup < 60 or self.max_draws < 100 or not self.prior > 0:
            raise InputError(
                "The sampler needs at least 2 chains, a warm-up of 60, 100 draws, and a prior above 0.",
                remedy="Raise the one that is below.",
            )

    def init(self, domain: Domain, *, rng: np.random.Generator) -> GraphicalState:
        """Return the state before any answer: that of a graphical model."""
        return GraphicalFit().init(domain, rng=rng)

    def update(
        self,
        state: GraphicalState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        done: float = 0.0,
    ) -> GraphicalState:
        """Return the next estimate of a graphical model."""
        return GraphicalFit().update(state, transcript, rng=rng)

    def model(self, state: GraphicalState) -> Answerer:
        """Return the last estimate."""
        return GraphicalFit().model(state)

    def finish(
        self,
        state: GraphicalState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> Model:
        """Return the posterior of the transcript; of no answers, a graphical model."""
        domain = state.domain
        if not transcript.counts_something:
            return GraphicalFit().finish(state, transcript, rng=rng)
        self.ready()
        canonical, terms, merged = self._problem(domain, transcript)
        self._refuse_large(canonical.domain, canonical.cliques)
        public = [float(e.total) for e in transcript if isinstance(e, PublicTotal)]
        if self.queries == "canonical":
            terms = of_canonical_queries(canonical, terms, public_total=bool(public))
        from margrave.models.max_entropy.sampling import (
            sample_posterior,  # the optional libraries, when needed
        )

        return sample_posterior(
            self, domain, canonical, terms, merged, public[0] if public else None, rng, progress
        )

    def ready(self) -> None:
        """Raise ``InputError`` if an optional library is missing. Call it before anything is spent."""
        if missing := self.missing():
            raise InputError(
                f"The maximum-entropy posterior needs {', '.join(missing)}.",
                remedy="Install them: pip install 'margrave[inference]'.",
            )

    def missing(self) -> tuple[str, ...]:
        """Return the optional libraries that are not installed."""
        needed = ("jax", "blackjax", "scipy", "threadpoolctl")
        return tuple(name for name in needed if find_spec(name) is None)

    def tractable(self, domain: Domain, cliques: Collection[Clique]) -> bool:
        """Return True if these marginals identify their queries and a posterior can be sampled in
        minutes.
        """
        tops = maximal(cliques)
        if self.room(domain, tops) < 0:
            return False
        tree = JunctionTree.of(domain, [*tops, *(z.clique for z in domain.zeros)])
        if tree.table_cells() > MAX_TABLE_CELLS:
            return False
        canonical = Canonical(domain, tops, dict.fromkeys(domain, 0))
        return all(canonical.identifies(c) for c in tops)

    def takes(self, domain: Domain, transcript: Transcript) -> bool:
        """Return True if the posterior of these answers is ``tractable``; merged codes count as
        groups.
        """
        try:
            canonical, terms, _ = self._problem(domain, transcript)
        except InputError:  # they merge a column's codes in different ways
            return False
        return bool(terms) and self.tractable(canonical.domain, canonical.cliques)

    def room(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return how many more parameters a posterior can have beside those of these marginals;
        below 0 if too many.
        """
        tops = maximal(cliques)
        if any(len(c) > 12 or domain.cells(c) > MAX_TABLE_CELLS for c in tops):
            return -1
        return self._max_parameters - Canonical(domain, tops, dict.fromkeys(domain, 0)).size

    def _refuse_large(self, domain: Domain, cliques: Collection[Clique]) -> None:
        if not self.tractable(domain, cliques):
            these = (
                "This marginal is" if len(cliques) == 1 else f"These {len(cliques)} marginals are"
            )
            raise InputError(
                f"{these} too large for a posterior of all parameters"
                f" (at most {self._max_parameters:,}, and {MAX_TABLE_CELLS:,} cells of the junction tree).",
                remedy="Nothing need be measured again: fit another model, GraphicalFit() or ParticleFit()"
                " (--fit graphical or --fit particles), whose intervals come from the bootstrap:"
                " method='bootstrap' (margrave analyze --method bootstrap).",
            )

    def _problem(
        self, domain: Domain, transcript: Transcript
    ) -> tuple[Canonical, list[Term], MergedCodes]:
        check_kinds(self, transcript)
        measurements = transcript.measurements
        groups = common_groups(domain, measurements)
        merged = MergedCodes({}, {}, {})
        if groups:
            alone = [
                m
                for m in measurements
                if m.query.is_identity and len(m.clique) == 1 and m.clique[0] in groups
            ]
            single = {t.clique[0]: t for t in terms_of(domain, alone)}
            counts = {
                a: single[a].values if a in single else np.ones(domain.size(a)) for a in groups
            }
            scales = {
                a: single[a].scales if a in single else np.zeros(domain.size(a)) for a in groups
            }
            merged = MergedCodes(groups, counts, scales)
            domain, measurements = compress(domain, measurements, groups)[:2]  # type: ignore[assignment]
        terms = terms_of(domain, measurements)
        return (
            Canonical(domain, maximal([t.clique for t in terms]), self._references(domain, terms)),
            terms,
            merged,
        )

    def _references(self, domain: Domain, terms: Sequence[Term]) -> dict[Attribute, int]:
        if self.reference == "first":
            return dict.fromkeys(domain, 0)
        noisy = [(t.clique, t.values, t.scales) for t in terms]
        counts = {a: column_mean(a, [n for n in noisy if a in n[0]])[0] for a in domain}
        return {a: int(np.argmax(c)) if len(c) else 0 for a, c in counts.items()}

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise if an optional library is missing, or the posterior of what is measured is not ``tractable``."""
        self.ready()
        if not needs.adaptive and not self.tractable(domain, needs.cliques):
            many = len(needs.cliques) > 1
            widest = max(domain, key=domain.size)
            raise ModelTooLargeError(
                f"The {f'{len(needs.cliques)} marginals have' if many else 'marginal has'} too many cells for a"
                f" posterior of all {'their' if many else 'its'} parameters; column {widest!r} has the most codes,"
                f" {domain.size(widest):,}.",
                remedy="Ask for fewer or smaller marginals, give the column fewer bins, or use another mechanism or"
                " fit, whose release draws by the bootstrap.",
            )
        super().check(domain, needs)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the cost of the estimates, of compiling the sampler, and of chains that mix in as many draws as their
        warm-up has.
        """
        jax_seconds, jax_mb = 45.0, 950.0
        if self.sampler == "laplace":
            return calibration_cost(domain, load) + Cost(jax_seconds / 2, jax_mb)
        seconds_per_product = (
            1e-8  # of a draw: each of its ten steps inverts a matrix of the parameters
        )
        parameters = self._max_parameters - max(self.room(domain, load.candidates), 0)
        draws = 2 * self.warmup * self.chains
        sampling = draws * parameters**3 * seconds_per_product
        return calibration_cost(domain, load) + Cost(jax_seconds + sampling, jax_mb)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the cells of the junction tree, as of any graphical model."""
        return GraphicalFit().cells(domain, cliques)

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` with each candidate added in turn."""
        return GraphicalFit().sizes_with(domain, cliques, candidates)
