"""PMW^Pub: multiplicative weights on public records (Liu, Vietri, Steinke, Ullman, Wu 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave.mechanisms.common import Progress, parameter
from margrave.mechanisms.library import given, starting_from
from margrave.mechanisms.mwem import MWEM
from margrave.models import Fit, MultiplicativeWeightsFit
from margrave.privacy import Private, Unit
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain


@dataclass(frozen=True, kw_only=True)
class PMWPub(MWEM):
    """MWEM on the support of a public table: one weight for each of its distinct records, at first their shares there.

    Records that the public table lacks get no weight, so its support bounds how close the release can come: see
    ``margrave.evaluate.best_mixture_error``. It takes domains of any size.

    ``public``: the public table, which must have all columns. It is told in the certificate, by its hash.
    ``shrink``: answers are drawn towards the public table's shares first, as far as the answers so far bear those out;
    ``anneal``: a round that taught less than its noise halves the number of those left. Without these two it is the
    paper's form, which at a small budget ended further from the truth than the public table that it began with.
    ``max_model_mb``: None, unlike for MWEM: the records are in memory already. Everything else is as in ``MWEM``.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The public records are not protected.

    Source: Liu, Vietri, Steinke, Ullman, Wu (2021), Leveraging Public Data for Practical Private Query Release.
    """

    anneal: bool = parameter(True, "Whether rounds that teach less than their noise make way for fewer, dearer ones.")
    shrink: bool = parameter(True, "Whether answers are believed beside the public table only beyond their noise.")
    max_model_mb: float | None = parameter(None, "Size of the model at most, in MB.", above=0)
    public: Public | None = None

    name: ClassVar[str] = "pmw-pub"
    informed: ClassVar[bool] = True

    def estimator(self) -> Fit:
        """The multiplicative weights of these parameters, or what was given in their place, on the public records."""
        usual = MultiplicativeWeightsFit(
            passes=self.passes, average=self.average, shrink=self.shrink, at_once=self.at_once
        )
        return starting_from(self.fit or usual, self.public)

    def config(self) -> dict[str, Any]:
        """The parameters, and what is known of the public records."""
        public = None if self.public is None else self.public.facts()
        shrink = {"shrink": self.shrink} if self.fit is None else {}
        return {**super().config(), **shrink, "public": public}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, as far as it can be told: nothing, without the public table."""
        if self.public is not None:
            self.public.needs(domain, "PMW^Pub")
            super().check(domain, unit)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Weigh the public records as MWEM does the cells of the domain."""
        given(self.public, private.domain)
        return super().run(private, rng=rng, progress=progress)
