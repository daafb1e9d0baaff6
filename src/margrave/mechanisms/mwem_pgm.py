"""MWEM+PGM: the multiplicative-weights mechanism's loop around a graphical model (McKenna et al. 2019)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.mechanisms.common import (
    CELLS_PER_MB,
    LARGEST_MODEL_MB,
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
from margrave.mechanisms.rounds import check_rounds
from margrave.models import Fit, GraphicalFit
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, MarginalGap, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class MWEMPGM:
    """T rounds: choose the workload marginal that is worst approximated, measure it whole, estimate again.

    The score of r is c_r (||M_r(D) − M_r(p_{t−1})||_1 − cells_r), with the workload's weight c_r and its possible
    cells; half of each round's budget chooses and half measures.

    ``workload``: None means all three-way marginals. ``rounds``: None means one per column. ``start``: first measure
    all one-way marginals with one round's budget (False is the paper's form: a uniform start). ``max_model_mb``: only
    marginals that keep the model within it are candidates (None is the paper's form: no limit but what can be
    estimated at all, ``LARGEST_MODEL_MB``).

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: McKenna, Mullins, Sheldon, Miklau (2022), Algorithm 1; Hardt, Ligett, McSherry (2012).
    """

    workload: Workload | None = None
    rounds: int | None = parameter(None, "Rounds; by default one per column.", above=0)
    start: bool = parameter(True, "Whether every column is measured first.")
    max_model_mb: float | None = parameter(80.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    def __post_init__(self) -> None:
        check_parameters(self)
        check_rounds(self.rounds, "MWEM+PGM")

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The workload, and one-way marginals: for the start, and for when nothing else fits."""
        cliques = workload_or_default(self.workload, domain).cliques
        return list(dict.fromkeys([*one_way(domain), *cliques])) if self._reads_columns else cliques

    @property
    def _reads_columns(self) -> bool:
        """Whether one-way marginals may be asked for; in the paper's form some marginal of the workload always fits."""
        return self.start or self.max_model_mb is not None

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Equal shares for the columns and for each round, half of which chooses."""
        rounds = self.rounds or len(domain)
        share = rho / (rounds + self.start)
        cliques = workload_or_default(self.workload, domain).cliques
        scale = Gaussian.scale_for(share / 2, unit)
        chosen = Step("chosen marginals", cliques, rounds, scale, adaptive=True)
        columns = Step.of("every column", one_way(domain), share / len(domain), unit)
        return [columns, chosen] if self.start else [chosen]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "mwem-pgm",
            "workload": workload_config(self.workload),
            "rounds": self.rounds,
            "start": self.start,
            "max_model_mb": self.max_model_mb,
            **fit_config(self.fit),
        }

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        workload = workload_or_default(self.workload, domain).cliques
        least = one_way(domain) if self._reads_columns else [min(workload, key=domain.cells)]
        check_fit(self.fit, domain, least, self.max_model_mb, adaptive=True)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure, estimate, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        asked = workload_or_default(self.workload, domain)
        workload = asked.cliques
        self.check(domain, private.unit)
        private.prepare(self.reads(domain))
        rounds = self.rounds or len(domain)
        rho = private.rho / (rounds + self.start)
        if self.start:
            private.measure(one_way(domain), Gaussian(rho=rho))
        model, memory = self.fit(domain, private.transcript, rng=rng), Memory()
        for t in range(rounds):
            candidates = self._candidates(domain, workload, private.transcript.cliques)
            scale = Gaussian.scale_for(rho / 2, private.unit)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            score = MarginalGap(
                estimates,
                weights={r: asked.weights.get(r, 1.0) for r in candidates},
                penalties={r: float(domain.possible(r)) for r in candidates},
            )
            chosen = private.select(candidates, score, rho=rho / 2)
            private.measure([chosen], Gaussian(rho=rho / 2))
            memory.note(estimates, private.transcript)
            model = self.fit(domain, private.transcript, rng=rng, warm=model)
            progress("measuring", (t + 1) / rounds)
        model = self.fit(domain, private.transcript, rng=rng)
        return release_of(private, model, self.config(), memory)

    def _candidates(
        self, domain: Domain, workload: tuple[Clique, ...], measured: tuple[Clique, ...]
    ) -> list[Clique]:
        """The workload's marginals that keep the model within its size; one-way marginals if none does."""
        largest = LARGEST_MODEL_MB if self.max_model_mb is None else self.max_model_mb
        limit = max(largest * CELLS_PER_MB, self.fit.cells(domain, measured))
        sizes = self.fit.cells_with(domain, measured, workload)
        return [r for r, size in zip(workload, sizes, strict=True) if size <= limit] or one_way(domain)
