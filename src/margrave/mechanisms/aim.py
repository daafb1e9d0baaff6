"""AIM: an adaptive and iterative mechanism (McKenna, Mullins, Sheldon, Miklau 2022)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.mechanisms.common import (
    CELLS_PER_MB,
    Memory,
    Progress,
    Step,
    check_fit,
    one_way,
    parameter,
    release_of,
    silent,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.penalty import SURVIVING, check_penalty, noise_of
from margrave.mechanisms.rounds import check_rounds, exact_alpha
from margrave.models import Fit, GraphicalFit
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, MarginalGap, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class AIM:
    """Round by round, measure the marginal whose error matters most to the workload and can be helped most.

    Candidates are the downward closure of the workload; the score of r in round t is

        w_r · ( ||M_r(D) − M_r(p_{t−1})||_1 − noise_r ),    w_r = Σ_s c_s |r ∩ s|

    and the budget of a round is quadrupled (noise halved) when a round taught less than its noise. That is what is left
    of the noise when answers have been made counts (``surviving_noise``), or, in the paper and with
    ``penalty="full"``, all of it, sqrt(2/pi) · scale_t · cells_r, which shuns large marginals that are mostly empty.

    ``workload``: None means all three-way marginals. ``max_model_mb`` bounds the model, at 8 bytes a cell; a share of
    it is open at any time, as much as of the budget is spent. ``rounds``: how many the first budget is meant for (16
    per column; it is one more than there are columns at least, since these are measured first). ``alpha``: the share of
    a round's budget that goes to measuring. ``fit``: any estimator.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithms 2-4. Departures: only the noise that survives
    counts, measurements are weighted by 1 / scale² in estimation (the paper: 1 / scale), the fit pulls gently towards
    independence (``GraphicalFit(steps=16)`` hardly does), the last estimate starts from nothing (it is what a refit of
    the transcript gives), and for large models scores come from records of the model.
    """

    workload: Workload | None = None
    max_model_mb: float = parameter(80.0, "Size of the model at most, in MB.", above=0)
    rounds: int | None = parameter(None, "Rounds the first budget is meant for; by default 16 per column.", above=0)
    alpha: Fraction = parameter(Fraction(9, 10), "Share of a round's budget that measures.")
    penalty: str = parameter(SURVIVING, 'Noise that counts against a marginal: "surviving" or "full", as the paper.')
    fit: Fit = field(default_factory=GraphicalFit)

    def __post_init__(self) -> None:
        check_parameters(self)
        check_penalty(self.penalty)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))
        check_rounds(self.rounds, "AIM")

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The downward closure of the workload."""
        return workload_or_default(self.workload, domain).closure()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The first budget of a round for every column; rounds cost as much, or more where the noise is halved."""
        workload = workload_or_default(self.workload, domain)
        starts, rounds = self._first(domain, workload)
        share = self.alpha * rho / rounds
        columns = Step.of("every column", starts, share, unit)
        left = rounds - len(starts)
        return [
            columns,
            Step("chosen marginals", workload.cliques, left, columns.scale, adaptive=True, at_most=True),
        ]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "aim",
            "workload": workload_config(self.workload),
            "max_model_mb": self.max_model_mb,
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            "penalty": self.penalty,
            **fit_config(self.fit),
        }

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        starts, _ = self._first(domain, workload_or_default(self.workload, domain))
        check_fit(self.fit, domain, starts, self.max_model_mb, adaptive=True)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure all one-way marginals, then choose, measure and estimate until the budget is spent."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        workload = workload_or_default(self.workload, domain)
        closure = workload.closure()
        relevance = {r: workload.relevance(r) for r in closure}
        starts, rounds = self._first(domain, workload)
        self.check(domain, private.unit)
        private.prepare(closure)

        # the budget of one round; a fourfold budget is half the noise and twice the epsilon
        rho = private.rho / rounds
        private.measure(starts, Gaussian(rho=self.alpha * rho * len(starts)))
        model, memory = self.fit(domain, private.transcript, rng=rng), Memory()
        while private.remaining > 0:
            if private.remaining <= 2 * rho:
                rho = private.remaining
            open_share = 1 - (private.remaining - rho) / private.rho
            candidates = self._candidates(domain, closure, private.transcript.cliques, float(open_share))
            scale = Gaussian.scale_for(self.alpha * rho, private.unit)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            noise = noise_of(self.penalty, estimates, scale, domain)
            score = MarginalGap(estimates, weights={r: relevance[r] for r in candidates}, penalties=noise)
            chosen = private.select(candidates, score, rho=(1 - self.alpha) * rho)
            private.measure([chosen], Gaussian(rho=self.alpha * rho))
            memory.note(estimates, private.transcript)
            model = self.fit(domain, private.transcript, rng=rng, warm=model)
            learned = np.abs(model.project(chosen).values - estimates[chosen]).sum()
            if learned <= noise[chosen]:
                rho *= 4
            progress("measuring", float(1 - private.remaining / private.rho))
        model = self.fit(domain, private.transcript, rng=rng)
        return release_of(private, model, self.config(), memory)

    def _first(self, domain: Domain, workload: Workload) -> tuple[list[Clique], int]:
        """The columns of the workload, measured first, and how many such measurements the budget is meant for."""
        closure = set(workload.closure())
        starts = [r for r in one_way(domain) if r in closure]
        return starts, max(self.rounds or 16 * len(domain), len(starts) + 1)

    def _candidates(
        self, domain: Domain, closure: tuple[Clique, ...], measured: tuple[Clique, ...], open_share: float
    ) -> list[Clique]:
        """C_t: those that keep the model within the open share of its size, and those that do not enlarge it."""
        limit = max(open_share * self.max_model_mb * CELLS_PER_MB, self.fit.cells(domain, measured))
        sizes = self.fit.cells_with(domain, measured, closure)
        return [r for r, size in zip(closure, sizes, strict=True) if size <= limit]
