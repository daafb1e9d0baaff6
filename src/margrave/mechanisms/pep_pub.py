"""PEP^Pub: private entropy projection on public records (Liu, Vietri, Wu 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave.errors import InputError
from margrave.mechanisms.common import Progress, parameter
from margrave.mechanisms.library import given, starting_from
from margrave.mechanisms.pep import PEP
from margrave.models import EntropyProjectionFit, Fit
from margrave.privacy import Private, Unit
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain


@dataclass(frozen=True, kw_only=True)
class PEPPub(PEP):
    """PEP on the support of a public table: of the weights on its records that explain the answers, those nearest it.

    Round t finds weights near the public shares ``P`` and near every answer: D_t(x) ∝ P(x) exp(Σ_i lambda_i q_i(x)).

    Records that the public table lacks get no weight, so its support bounds how close the release can come: see
    ``margrave.evaluate.best_mixture_error``. It takes domains of any size.

    ``public``: the public table, which must have all columns. It is told in the certificate, by its hash.
    ``shrink``: answers are believed beside the public table's shares as far as the answers so far bear those out, and
    met half-way where they contradict each other, in ``max_iterations`` sweeps over all of them at most; without, as in
    the paper, the weights differ by ``gamma`` at most from every answer, after ``max_iterations`` steps at most.
    ``anneal``: a round that taught less than its noise halves the number of those left. Without these two it is the
    paper's form, which at a small budget ended further from the truth than the public table that it began with.
    ``max_model_mb``: None, unlike for PEP: the records are in memory already. Everything else is as in ``PEP``.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The public records are not protected.

    Source: Liu, Vietri, Wu (2021), Algorithms 1 and 2 and Appendix F.2.
    """

    anneal: bool = parameter(True, "Whether rounds that teach less than their noise make way for fewer, dearer ones.")
    shrink: bool = parameter(True, "Whether answers are believed beside the public table only beyond their noise.")
    max_model_mb: float | None = parameter(None, "Size of the model at most, in MB.", above=0)
    public: Public | None = None

    name: ClassVar[str] = "pep-pub"
    informed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shrink and self.gamma != 1.0:
            raise InputError("gamma has no say where answers are shrunk.", remedy="Say shrink=False, or leave it out.")

    def estimator(self) -> Fit:
        """The entropy projection of these parameters, or what was given in their place, on the public records."""
        usual = EntropyProjectionFit(gamma=self.gamma, max_iterations=self.max_iterations, shrink=self.shrink)
        return starting_from(self.fit or usual, self.public)

    def config(self) -> dict[str, Any]:
        """The parameters, and what is known of the public records."""
        public = None if self.public is None else self.public.facts()
        shrink = {"shrink": self.shrink} if self.fit is None else {}
        return {**super().config(), **shrink, "public": public}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, as far as it can be told: nothing, without the public table."""
        if self.public is not None:
            self.public.needs(domain, "PEP^Pub")
            super().check(domain, unit)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Weigh the public records as PEP does the cells of the domain."""
        given(self.public, private.domain)
        return super().run(private, rng=rng, progress=progress)
