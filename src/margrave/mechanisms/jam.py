"""JAM: AIM that may read public data where that helps more than measuring, made so that it does no harm."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import TOTAL, project_array
from margrave.mechanisms.common import (
    CELLS_PER_MB,
    Memory,
    Progress,
    Step,
    check_size,
    expected_noise,
    one_way,
    parameter,
    release_of,
    silent,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.jam_pgm import FOR_TOTAL, ask_total, given, scaled, total_steps
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Gaussian, Improvement, Private, Unit, size_is_public
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.transcript import Measurement, PublicReading, Transcript
from margrave.typing import Clique, FloatArray
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class JAM:
    """AIM's rounds, in which a marginal may be read from public data instead of measured.

    Scores, weights, annealing and the model's growth are AIM's; to read r scores as in JAM-PGM:

        w_r · ( ||M_r(D) − M_r(p_{t−1})||_1 − ||M_r(D) − (n/n') M_r(public)||_1 ),    w_r = Σ_s c_s |r ∩ s|

    Two things keep public data from doing harm. A reading counts in the estimate as if it had the noise of the round in
    which it was preferred to a measurement, so that the more exact measurements of later rounds overrule it. And a
    marginal is offered for reading only while chance alone leaves n' public records closer to the truth than that
    noise; once none is offered, choices are as sharp as AIM's, and so is everything else.

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
        """Read single columns, then choose, measure or read, and estimate until the budget is spent."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        public = given(self.public, domain)
        workload = workload_or_default(self.workload, domain)
        closure = workload.closure()
        relevance = {r: workload.relevance(r) for r in closure}
        starts = [r for r in one_way(domain) if r in set(closure)]
        check_size(self.fit, domain, starts, self.max_model_mb)
        private.prepare(self.reads(domain))
        ask_total(private)
        total = private.transcript.total()
        publics = scaled(public, closure, total)
        chance = {r: sampling_error(p, total, len(public.codes)) for r, p in publics.items()}

        # the budget of one round; a fourfold budget is half the noise and twice the epsilon
        rho = private.remaining / (self.rounds or 16 * len(domain))
        scale = Gaussian.scale_for(self.alpha * rho, private.unit)
        private.measure(starts, Gaussian(rho=self.alpha * rho * len(starts)))
        readings = self._read(public, {r: publics[r] for r in starts if r in publics})
        memory = Memory()
        model = self.fit(domain, private.transcript + trusted(readings, private.transcript), rng=rng)
        while private.remaining > 0:
            if private.remaining <= 2 * rho:
                rho = private.remaining
            open_share = 1 - (private.remaining - rho) / private.rho
            candidates = self._candidates(domain, closure, private.transcript + readings, float(open_share))
            scale = Gaussian.scale_for(self.alpha * rho, private.unit)
            noise = {r: expected_noise(scale, domain.possible(r)) for r in candidates}
            estimates = model.answer(candidates, rng=rng, scale=scale)
            last = rho == private.remaining
            score = Improvement(
                estimates,
                publics={r: publics[r] for r in candidates if not last and chance.get(r, np.inf) < noise[r]},
                weights={r: relevance[r] for r in candidates},
                penalties=noise,
            )
            chosen = private.select(candidates, score, rho=(1 - self.alpha) * rho)
            if private.transcript.selections[-1].public:
                readings += self._read(public, {chosen: publics[chosen]})
            else:
                private.measure([chosen], Gaussian(rho=self.alpha * rho))
                memory.note(estimates, private.transcript)
            model = self.fit(domain, private.transcript + trusted(readings, private.transcript), rng=rng, warm=model)
            learned = np.abs(model.project(chosen).values - estimates[chosen]).sum()
            read = private.transcript.selections[-1].public
            if learned <= (chance if read else noise)[chosen]:
                rho *= 2 if read else 4
            progress("measuring", float(1 - private.remaining / private.rho))
        model = self.fit(domain, private.transcript + trusted(readings, private.transcript), rng=rng)
        return release_of(private, model, self.config(), memory, trusted(readings, private.transcript))

    def _read(self, public: Public, publics: Mapping[Clique, FloatArray]) -> Transcript:
        """Readings, trusted as far as chance allows."""
        records = len(public.codes)
        return Transcript(
            tuple(PublicReading(r, p, chance_scale(p, records), public.sha256) for r, p in publics.items())
        )

    def _candidates(
        self, domain: Domain, closure: tuple[Clique, ...], known: Transcript, open_share: float
    ) -> list[Clique]:
        """Those that keep the model within the open share of its size, and those that do not enlarge it."""
        cliques = tuple(dict.fromkeys(e.clique for e in known.evidence))
        limit = max(open_share * self.max_model_mb * CELLS_PER_MB, self.fit.cells(domain, cliques))
        sizes = self.fit.cells_with(domain, cliques, closure)
        return [r for r, size in zip(closure, sizes, strict=True) if size <= limit]


def chance_scale(expected: FloatArray, records: int) -> float:
    """Root mean square over the cells of a marginal scaled up from so many records: total · sqrt(mean p (1 − p) / n').

    Shares are smoothed by half a record a cell, so that no cell seems certain.
    """
    total = float(expected.sum())
    shares = (expected / total * records + 0.5) / (records + 0.5 * expected.size)
    return total * float(np.sqrt((shares * (1 - shares)).mean() / records))


def trusted(readings: Transcript, known: Transcript) -> Transcript:
    """The readings with the scale that what was measured suggests: scale² = chance² + bias².

    A measurement y of the same columns, of more or of fewer, is compared with the public marginal p on the columns
    that both have: the mean square of y − p beyond the noise of y and the chance of p is the square of a bias,
    taken relative to p's root mean square. A reading's bias is the largest that any measurement shows.
    """
    measured = [m for m in known.measurements if m.query.is_identity]
    return Transcript(tuple(_trusted(r, measured) for r in readings.readings))


def _trusted(reading: PublicReading, measured: Sequence[Measurement]) -> PublicReading:
    values, worst = reading.values, 0.0
    for m in measured:
        both = tuple(a for a in reading.clique if a in m.clique)
        if both:
            public = project_array(values, reading.clique, both)
            private = project_array(m.values, m.clique, both)
            noise = m.scale**2 * m.values.size / private.size
            chance = reading.scale**2 * values.size / public.size
            off = float(((private - public) ** 2).mean()) - noise - chance
            worst = max(worst, off / float((public**2).mean()))
    bias = worst * float((values**2).mean())
    return replace(reading, scale=float(np.sqrt(reading.scale**2 + bias)))


def sampling_error(expected: FloatArray, total: float, records: int) -> float:
    """E‖·‖₁ of a marginal scaled up from so many records, from chance alone: Σ_x sqrt(2/pi) sd_x.

    sd_x = total · sqrt(p_x (1 − p_x) / records), with p_x as the public table has it.
    """
    shares = expected / expected.sum()
    return float(np.sqrt(2 / np.pi) * total * np.sqrt(shares * (1 - shares) / records).sum())
