"""JAM: AIM that reads public data where that is expected to help more than measuring."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import TOTAL
from margrave.mechanisms.common import (
    CELLS_PER_MB,
    FOR_TOTAL,
    Memory,
    Progress,
    Step,
    ask_total,
    check_size,
    expected_noise,
    one_way,
    parameter,
    release_of,
    silent,
    total_steps,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.library import Library, given
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Gaussian, MarginalGap, Private, Unit, size_is_public
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class JAM:
    """AIM's rounds, in which a marginal is read from public data where that is expected to be closer than measuring it.

    Weights, annealing, the model's growth and the sensitivity are AIM's. The score of r in round t is

        w_r · ( ||M_r(D) − M_r(p_{t−1})||_1 − min(noise_r, error_r) ),    noise_r = sqrt(2/pi) · scale_t · cells_r

    where ``error_r`` is what the public marginal is expected to be off by: by chance, and by the bias that all earlier
    measurements show on the columns they share with it (``Library``). If r is chosen and error_r is the smaller, r is
    read, at no further cost, and counts in the estimate as if it had noise of that size; chosen again, it is measured.
    JAM-PGM asks the rows which is closer, with twice the sensitivity; here nothing is asked that AIM does not ask.

    ``public``: the public table; marginals of columns that it lacks can only be measured. Other parameters are AIM's.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The public table is not protected.

    Source: McKenna et al. (2022), AIM; Fuentes et al. (2024), JAM-PGM, and the limits named in its Section 6.
    """

    public: Public | None = None
    workload: Workload | None = None
    max_model_mb: float = parameter(80.0, "Size of the model at most, in MB.", above=0)
    rounds: int | None = parameter(None, "Rounds the first budget is meant for; by default 16 per column.", above=0)
    alpha: Fraction = parameter(Fraction(9, 10), "Share of a round's budget that measures.")
    fit: Fit = field(default_factory=GraphicalFit)

    def __post_init__(self) -> None:
        if not 1e-6 <= self.alpha <= 1 - 1e-6:
            raise InputError(f"alpha is {float(self.alpha)}.", remedy="It is a share, between 0 and 1.")
        object.__setattr__(self, "alpha", Fraction(self.alpha).limit_denominator(10**6))
        if self.rounds is not None and self.rounds < 1:
            raise InputError("JAM needs at least one round.")

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The downward closure of the workload."""
        return dict.fromkeys([*workload_or_default(self.workload, domain).closure(), TOTAL.counted_in(domain)])

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, then rounds as AIM's; none is bound to measure."""
        left = rho if size_is_public(unit) else rho * (1 - FOR_TOTAL)
        rounds = self.rounds or 16 * len(domain)
        scale = Gaussian.scale_for(self.alpha * left / rounds, unit)
        cliques = workload_or_default(self.workload, domain).cliques
        return [
            *total_steps(domain, rho, unit),
            Step("chosen marginals", cliques, rounds, scale, adaptive=True, at_most=True),
        ]

    def config(self) -> dict[str, Any]:
        """The parameters, and what is known of the public table."""
        return {
            "name": "jam",
            "public": None if self.public is None else self.public.facts(),
            "workload": workload_config(self.workload),
            "max_model_mb": self.max_model_mb,
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            "fit": repr(self.fit),
        }

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure single columns, then choose, measure or read, and estimate until the budget is spent."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        workload = workload_or_default(self.workload, domain)
        closure = workload.closure()
        relevance = {r: workload.relevance(r) for r in closure}
        starts = [r for r in one_way(domain) if r in set(closure)]
        check_size(self.fit, domain, starts, self.max_model_mb)
        public = given(self.public, domain)
        private.prepare(self.reads(domain))
        ask_total(private)
        library = Library(public, closure, private.transcript.total())

        # the budget of one round; a fourfold budget is half the noise and twice the epsilon
        rho = private.remaining / (self.rounds or 16 * len(domain))
        first = Gaussian.scale_for(self.alpha * rho, private.unit)
        library.compare(private.measure(starts, Gaussian(rho=self.alpha * rho * len(starts))))
        read = [r for r in starts if r in library.publics]
        model, memory = self.fit(domain, private.transcript + library.readings(read, first), rng=rng), Memory()
        while private.remaining > 0:
            last = private.remaining <= 2 * rho
            rho = private.remaining if last else rho
            open_share = 1 - (private.remaining - rho) / private.rho
            candidates = self._candidates(domain, closure, (*private.transcript.cliques, *read), float(open_share))
            scale = Gaussian.scale_for(self.alpha * rho, private.unit)
            noise = {r: expected_noise(scale, domain.possible(r)) for r in candidates}
            estimates = model.answer(candidates, rng=rng, scale=scale)
            closer = {} if last else {r: p for r, p in library.closer_than(noise).items() if r not in read}
            score = MarginalGap(
                estimates,
                weights={r: relevance[r] for r in candidates},
                penalties={r: library.error(r) if r in closer else noise[r] for r in candidates},
            )
            chosen = private.select(candidates, score, rho=(1 - self.alpha) * rho)
            to_read = chosen in closer
            if to_read:
                read.append(chosen)
            else:
                library.compare(private.measure([chosen], Gaussian(rho=self.alpha * rho)))
                memory.note(estimates, private.transcript)
            model = self.fit(domain, private.transcript + library.readings(read, first), rng=rng, warm=model)
            learned = np.abs(model.project(chosen).values - estimates[chosen]).sum()
            if learned <= (library.error(chosen) if to_read else noise[chosen]):
                rho *= 2 if to_read else 4
            progress("measuring", float(1 - private.remaining / private.rho))
        readings = library.readings(read, first)
        model = self.fit(domain, private.transcript + readings, rng=rng)
        return release_of(private, model, self.config(), memory, readings)

    def _candidates(
        self, domain: Domain, closure: tuple[Clique, ...], known: tuple[Clique, ...], open_share: float
    ) -> list[Clique]:
        """Those that keep the model within the open share of its size, and those that do not enlarge it."""
        cliques = tuple(dict.fromkeys(known))
        limit = max(open_share * self.max_model_mb * CELLS_PER_MB, self.fit.cells(domain, cliques))
        sizes = self.fit.cells_with(domain, cliques, closure)
        return [r for r, size in zip(closure, sizes, strict=True) if size <= limit]
