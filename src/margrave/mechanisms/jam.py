"""JAM: AIM that starts from what public data can tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from margrave.marginal import TOTAL
from margrave.mechanisms.common import (
    CELLS_PER_MB,
    FOR_TOTAL,
    Memory,
    Progress,
    Step,
    ask_total,
    check_fit,
    one_way,
    parameter,
    release_of,
    silent,
    total_steps,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.library import Library, given, not_public, pairs_of, still_private
from margrave.mechanisms.rounds import check_rounds, exact_alpha
from margrave.models import Fit, GraphicalFit, Model, surviving_noise
from margrave.models.entries import EntryKind
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, MarginalGap, Private, Unit, size_is_public
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.transcript import Transcript
from margrave.typing import Clique
from margrave.workload import Workload

READ_SHARE = 0.1
"""Readings may take so much of the model's size: the rest is for what is measured. They keep it until so much of the
budget is spent."""

FILL = 0.2
"""From then on the model with readings may be so large, and larger only for what is measured and what tells most. More
would be rounds of twice the time, for nothing that shows in errors."""

STRONG = 0.35
"""A reading that is expected to bring the estimate closer by so many records, as a share of all, keeps its room in the
model to the end: columns that nearly follow from each other. Where such a one was dropped and what had been measured
by then left no room to measure it, errors were half as large again."""

ROUNDS, AMPLE = 6, 16
"""Measurements a column that the budget is meant for at first. With AIM's 16 the first ones are coarse, and take the
model's room: on tables of many codes little of it is left for what is measured later, and better. Where the whole
domain fits into the model there is nothing to be saved, and it is AIM's."""

LOOKED_BACK = 100_000_000
"""The most cells that are computed to see how far estimates were off, at the end. Readings join many marginals, so that
a few of these would take most of a run; AIM's models need a third of it on such tables, and have no limit."""


@dataclass(frozen=True, kw_only=True)
class JAM:
    """AIM, started from all that public data is expected to tell, and never bound to it.

    1. Every column is measured, as in AIM, for a sixth of the budget at most with the default ``rounds``.
    2. Public marginals are raked to the columns, and get a scale for each cell, by chance and by the bias that is seen
       (``Library``). Those expected to bring the estimate closest to the truth are read, w_r · gain_r, a few at a time,
       until none is; two of them never hold the same pair of columns. Nothing is asked of the rows.
    3. AIM's rounds follow: what the estimate misses most is measured, in a model of at most sqrt(share of the budget
       that is spent) · ``max_model_mb``. A reading counts in the estimate by its scales, which are taken anew with
       every measurement, so that what is measured well overrules it, and no longer once all of its pairs of columns
       have been measured.

    JAM-PGM asks the rows in every round whether to measure or to read, with twice the sensitivity, and reads marginals
    as the public table has them.

    ``public``: the public table; marginals of columns that it lacks can only be measured. Where it holds columns of the
    private records themselves (``same_records``), their marginals are known, and only others are asked for. Other
    parameters are AIM's.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The public table is not protected.

    Source: McKenna et al. (2022), AIM; Fuentes et al. (2024), JAM-PGM, and the limits named in its Section 6.
    """

    public: Public | None = None
    workload: Workload | None = None
    max_model_mb: float = parameter(80.0, "Size of the model at most, in MB.", above=0)
    rounds: int | None = parameter(
        None,
        "Rounds the first budget is meant for; by default 6 per column, 16 where the whole domain fits into the model.",
        above=0,
    )
    alpha: Fraction = parameter(Fraction(9, 10), "Share of a round's budget that measures.")
    fit: Fit = field(default_factory=GraphicalFit)

    own_columns: ClassVar[bool] = True
    """Whether columns of the private records may be public: known, and not asked for."""

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))
        check_rounds(self.rounds, "JAM")

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The downward closure of the workload."""
        return dict.fromkeys([*workload_or_default(self.workload, domain).closure(), TOTAL.counted_in(domain)])

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, every column that is not public, then rounds as AIM's."""
        left = rho if size_is_public(unit) else rho * (1 - FOR_TOTAL)
        rounds = self._first_budget(domain)
        scale = Gaussian.scale_for(self.alpha * left / rounds, unit)
        workload = workload_or_default(self.workload, domain)
        public = set(self.public.domain) if self.public is not None and self.public.same_records else set()
        starts = [r for r in one_way(domain) if r in set(workload.closure()) and not public.issuperset(r)]
        return [
            *total_steps(domain, rho, unit),
            *([Step("every column", starts, len(starts), scale)] if starts else []),
            Step("chosen marginals", workload.cliques, rounds - len(starts), scale, adaptive=True, at_most=True),
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
            **fit_config(self.fit),
        }

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        closure = workload_or_default(self.workload, domain).closure()
        alone = [r for r in closure if len(r) == 1]
        check_fit(self.fit, domain, alone, self.max_model_mb, adaptive=True, kinds={EntryKind.READING})
        if self.public is not None:
            still_private(self.public, closure, unit)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure single columns, read what public data can tell, then AIM's rounds until the budget is spent."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        workload = workload_or_default(self.workload, domain)
        closure = workload.closure()
        relevance = {r: workload.relevance(r) for r in closure}
        self.check(domain, private.unit)
        public = given(self.public, private.domain, own_columns=self.own_columns)
        askable = not_public(public, closure, private)
        starts = [r for r in one_way(domain) if r in set(askable)]
        private.prepare(self.reads(domain))
        ask_total(private)

        # the budget of one round; a fourfold budget is half the noise and twice the epsilon
        rho = private.remaining / self._first_budget(domain)
        first = Gaussian.scale_for(self.alpha * rho, private.unit)
        private.measure(starts, Gaussian(rho=self.alpha * rho * len(starts)))
        library = Library(public, domain, closure, private.transcript.total(), first)
        library.learn(private.transcript)
        read, strong, model = self._read(domain, library, private.transcript, relevance, rng)
        memory = Memory(LOOKED_BACK)
        while private.remaining > 0:
            if private.remaining <= 2 * rho:
                rho = private.remaining
            spent = float(1 - (private.remaining - rho) / private.rho)
            # AIM opens as much of the model as of the budget is spent. Rounds here are fewer and dearer, and most of it
            # would go to what is small instead of what is missed most
            open_share = sqrt(spent)
            measured = private.transcript.cliques
            # what is known exactly or tells most keeps its room, and so do others for a while
            keep = [r for r in read if library.exact or spent <= READ_SHARE or r in strong]
            candidates = self._candidates(domain, askable, measured, read, open_share, keep)
            scale = Gaussian.scale_for(self.alpha * rho, private.unit)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            noise = surviving_noise(estimates, scale, domain)
            weights = {r: relevance[r] for r in candidates}
            score = MarginalGap(estimates, weights=weights, penalties=noise)
            chosen = private.select(candidates, score, rho=(1 - self.alpha) * rho)
            private.measure([chosen], Gaussian(rho=self.alpha * rho))
            memory.note(estimates, private.transcript)
            library.learn(private.transcript)
            keep, read = library.still_open(keep), library.still_open(read)
            read = self._that_fit(domain, private.transcript.cliques, read, open_share, keep)
            model = self.fit(domain, private.transcript + library.readings(read), rng=rng, warm=model)
            learned = np.abs(model.project(chosen).values - estimates[chosen]).sum()
            if learned <= noise[chosen]:
                rho *= 4
            progress("measuring", float(1 - private.remaining / private.rho))
        readings = library.readings(read)
        model = self.fit(domain, private.transcript + readings, rng=rng)
        return release_of(private, model, self.config(), memory, readings)

    def _first_budget(self, domain: Domain) -> int:
        """How many measurements the budget is meant for, before annealing: more than there are columns."""
        each = AMPLE if domain.cells() <= self.max_model_mb * CELLS_PER_MB else ROUNDS
        return max(self.rounds or each * len(domain), len(domain) + 1)

    def _read(
        self,
        domain: Domain,
        library: Library,
        measured: Transcript,
        relevance: Mapping[Clique, float],
        rng: np.random.Generator,
    ) -> tuple[list[Clique], set[Clique], Model]:
        """What to read: the marginals expected to bring the estimate closest to the truth, a few at a time.

        Beside it, which of them do so by far.
        """
        read: list[Clique] = [r for r in relevance if len(r) == 1 and r in library.counts]
        strong: set[Clique] = set()
        model = self.fit(domain, measured + library.readings(read), rng=rng)
        limit = READ_SHARE * self.max_model_mb * CELLS_PER_MB
        while len(read) < 4 * len(domain):
            known = tuple(dict.fromkeys((*measured.cliques, *read)))
            taken = set() if library.exact else pairs_of(read)
            left = [r for r in relevance if len(r) > 1 and r in library.counts and r not in read]
            left = [r for r in left if not pairs_of([r]) & taken]
            sizes = self.fit.cells_with(domain, known, left)
            fitting = [r for r, size in zip(left, sizes, strict=True) if size <= limit]
            estimates = model.answer(fitting, rng=rng, scale=library.each)
            closer = {r: library.gain(r, estimates[r]) for r in fitting}
            gains = {r: relevance[r] * closer[r] for r in fitting}
            new: list[Clique] = []
            for r in sorted((r for r in fitting if gains[r] > 0), key=lambda r: -gains[r]):
                if len(new) < max(4, len(domain) // 3) and not pairs_of([r]) & pairs_of(new):
                    new += [r] if self.fit.cells(domain, (*known, *new, r)) <= limit else []
            if not new:
                break
            read += new
            strong |= {r for r in new if closer[r] >= STRONG * measured.total()}
            model = self.fit(domain, measured + library.readings(read), rng=rng, warm=model)
        return read, strong, model

    def _candidates(
        self,
        domain: Domain,
        closure: tuple[Clique, ...],
        measured: tuple[Clique, ...],
        read: list[Clique],
        open_share: float,
        keep: list[Clique],
    ) -> list[Clique]:
        """AIM's: those that keep the model within the open share of its size, and those that do not enlarge it.

        Readings that are not to ``keep`` their room take none from what could be measured.
        """
        known = tuple(dict.fromkeys((*measured, *read)))
        cliques = tuple(dict.fromkeys((*measured, *keep)))
        limit = max(open_share * self.max_model_mb * CELLS_PER_MB, self.fit.cells(domain, cliques))
        sizes = self.fit.cells_with(domain, cliques, closure)
        fitting = {r for r, size in zip(closure, sizes, strict=True) if size <= limit}
        others = [r for r in closure if r not in fitting]
        same, most = self.fit.cells_with(domain, known, others), self.fit.cells(domain, known)
        fitting.update(r for r, size in zip(others, same, strict=True) if size <= most)
        return [r for r in closure if r in fitting]

    def _that_fit(
        self,
        domain: Domain,
        measured: tuple[Clique, ...],
        read: list[Clique],
        open_share: float,
        keep: list[Clique],
    ) -> list[Clique]:
        """Those to keep, and of the others those that the model has room for, the most telling first."""
        if len(keep) == len(read):
            return read
        limit = min(open_share, FILL) * self.max_model_mb * CELLS_PER_MB
        kept = list(keep)
        for r in read:
            if r not in keep and (len(r) == 1 or self.fit.cells(domain, (*measured, *kept, r)) <= limit):
                kept.append(r)
        return kept
