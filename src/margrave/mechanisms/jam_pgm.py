"""JAM-PGM: joint adaptive measurements, private or public (Fuentes, Mullins, Xu, Sheldon, McKenna 2024)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

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
    parameter,
    release_of,
    silent,
    total_steps,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.library import given, scaled
from margrave.mechanisms.penalty import FULL, check_penalty, noise_of
from margrave.mechanisms.rounds import check_rounds, exact_alpha
from margrave.models import Fit, GraphicalFit
from margrave.models.entries import EntryKind
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, Improvement, Private, Unit, size_is_public
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.transcript import Entry, Measurement, PublicReading, Transcript
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class JAMPGM:
    """Round by round, measure a marginal with noise or read it from public data, whichever promises to help more.

    Candidates are the downward closure of the workload, once to be measured and once to be read; with n private and n'
    public records the scores in round t are

        to measure r:   ||M_r(D) − M_r(p)||_1 − sqrt(2/pi) · scale_t · cells_r
        to read r:      ||M_r(D) − M_r(p)||_1 − ||M_r(D) − (n/n') M_r(public)||_1

    A reading costs nothing but the choice, and what it leaves of a round's budget goes to the rounds that follow.

    ``public``: the public table; marginals of columns that it lacks can only be measured. ``workload``: None means all
    three-way marginals, which count alike whatever their weights. ``rounds``: None means four per column. ``alpha``:
    the share of a round that measures. ``equal_weights``: the paper's form, in which the estimate trusts all it knows
    alike; without, a measurement counts by its noise and a reading as if it had the noise of the round in which it was
    preferred to a measurement. ``penalty``: what is subtracted from the score of measuring, all of the noise as above,
    or, with ``"surviving"``, what is left of it in an estimate, as in ``AIM``. ``max_model_mb`` bounds the model; a
    share of it is open, as much as of the budget was spent before the round, as in the paper's experiments: where the
    number of records is public the first round chooses among single columns.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The public table is not protected.

    Source: Fuentes et al. (2024), Joint selection: adaptively incorporating public information for private synthetic
    data, Algorithm 2. Departures: evidence counts by its noise (the paper: alike, ``equal_weights=True``); a private
    number of records is asked first (the paper: public); if the last round reads, the budget left measures the same
    marginal too (the paper leaves it unspent). With ``equal_weights`` the transcript holds the real scales all the
    same: ``release.refit(...)`` and draws go by these, and differ from the release's own model.
    """

    public: Public | None = None
    workload: Workload | None = None
    rounds: int | None = parameter(None, "Rounds; by default four per column.", above=0)
    alpha: Fraction = parameter(Fraction(4, 5), "Share of a round's budget that measures.")
    equal_weights: bool = parameter(False, "Whether the estimate trusts all it knows alike, as the paper does.")
    penalty: str = parameter(FULL, 'Noise that counts against measuring: "full", as the paper, or "surviving".')
    max_model_mb: float = parameter(80.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))
        check_penalty(self.penalty)
        check_rounds(self.rounds, "JAM-PGM")

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The downward closure of the workload."""
        return dict.fromkeys([*workload_or_default(self.workload, domain).closure(), TOTAL.counted_in(domain)])

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, and the rounds: fewer, with less noise, where some read."""
        rounds = self.rounds or 4 * len(domain)
        left = rho if size_is_public(unit) else rho * (1 - FOR_TOTAL)
        scale = Gaussian.scale_for(self.alpha * left / rounds, unit)
        cliques = workload_or_default(self.workload, domain).cliques
        return [
            *total_steps(domain, rho, unit),
            Step("chosen marginals", cliques, rounds, scale, adaptive=True, at_most=True),
        ]

    def config(self) -> dict[str, Any]:
        """The parameters, and what is known of the public table."""
        return {
            "name": "jam-pgm",
            "public": None if self.public is None else self.public.facts(),
            "workload": workload_config(self.workload),
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            "equal_weights": self.equal_weights,
            "penalty": self.penalty,
            "max_model_mb": self.max_model_mb,
            **fit_config(self.fit),
        }

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        closure = workload_or_default(self.workload, domain).closure()
        alone = [r for r in closure if len(r) == 1]
        check_fit(self.fit, domain, alone, self.max_model_mb, adaptive=True, kinds={EntryKind.READING})

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure or read, estimate, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        closure = workload_or_default(self.workload, domain).closure()
        self.check(domain, private.unit)
        public = given(self.public, private.domain)
        private.prepare(self.reads(domain))
        ask_total(private)
        publics = scaled(public, domain, closure, private.transcript.total())
        rounds = self.rounds or 4 * len(domain)
        readings, memory = Transcript(), Memory()
        model = self.fit(domain, private.transcript, rng=rng)
        for t in range(rounds):
            rho = private.remaining / (rounds - t)
            scale = Gaussian.scale_for(self.alpha * rho, private.unit)
            open_share = float(1 - private.remaining / private.rho)
            candidates = self._candidates(domain, closure, private.transcript + readings, open_share)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            score = Improvement(
                estimates,
                publics={r: publics[r] for r in candidates if r in publics},
                weights=dict.fromkeys(candidates, 1.0),
                penalties=noise_of(self.penalty, estimates, scale, domain),
            )
            chosen = private.select(candidates, score, rho=(1 - self.alpha) * rho)
            to_read = private.transcript.selections[-1].public
            if to_read:
                values = publics[chosen]
                readings += Transcript((PublicReading(chosen, values, np.full(values.shape, scale), public.sha256),))
            if not to_read or t == rounds - 1:
                private.measure([chosen], Gaussian(rho=self.alpha * rho))
                memory.note(estimates, private.transcript)
            known = self._weighted(private.transcript + readings)
            model = self.fit(domain, known, rng=rng, warm=model)
            progress("measuring", (t + 1) / rounds)
        model = self.fit(domain, self._weighted(private.transcript + readings), rng=rng)
        return release_of(private, model, self.config(), memory, readings)

    def _weighted(self, transcript: Transcript) -> Transcript:
        """The transcript as the estimate is to trust it."""
        if not self.equal_weights:
            return transcript
        least = min(e.scale for e in transcript.evidence)
        return Transcript(tuple(_trusted(e, least) for e in transcript))

    def _candidates(
        self, domain: Domain, closure: Iterable[Clique], known: Transcript, open_share: float
    ) -> list[Clique]:
        """Those that keep the model within the open share of its size, and single columns."""
        cliques = tuple(dict.fromkeys(e.clique for e in known.evidence))
        limit = max(open_share * self.max_model_mb * CELLS_PER_MB, self.fit.cells(domain, cliques))
        of_closure = list(closure)
        sizes = self.fit.cells_with(domain, cliques, of_closure)
        return [r for r, size in zip(of_closure, sizes, strict=True) if size <= limit or len(r) == 1]


def _trusted(entry: Entry, scale: float) -> Entry:
    """A marginal as if it had noise of this scale, whatever it has."""
    match entry:
        case Measurement():
            return replace(entry, scale=scale)
        case PublicReading():
            return replace(entry, scales=np.full(entry.values.shape, scale))
        case _:
            return entry
