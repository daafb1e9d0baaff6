"""PMW^Pub: multiplicative weights on public records (Liu, Vietri, Steinke, Ullman, Wu 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import option
from margrave.mechanisms.mwem import MWEM
from margrave.models import Fit, MultiplicativeWeightsFit
from margrave.public_table import PublicTable


@dataclass(frozen=True, kw_only=True)
class PMWPub(MWEM):
    """MWEM on the support of a public table: one weight for each of its distinct records.

    Records that the public table lacks get no weight, so its support bounds how close the release
    can come: see ``margrave.evaluation.best_mixture_error``. It takes domains of any size. Other
    parameters are MWEM's.

    Args:
        public: The public table, which must have all columns. The certificate states its hash.
        shrink: Draw answers towards the public table's shares first, as far as the answers so far
            bear those out.
        anneal: Halve the rounds that are left after one that improved the model by less than its
            noise. The paper has neither of these two (``as_published`` is its form), and at a small
            budget ended further from the truth than the public table that it began with.
        max_model_mb: None, unlike for MWEM: the records are in memory already.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit. The public records are not
        protected.

    References:
        Liu, Vietri, Steinke, Ullman, Wu (2021), Leveraging Public Data for Practical Private Query
        Release.
    """

    anneal: bool = option(
        True,
        "If a round improves the model by less than its noise, use fewer rounds with more budget each.",
    )
    shrink: bool = option(
        True,
        "Shrink answers towards the public table by their noise.",
        of_fit=True,
    )
    max_model_mb: float | None = option(None, "Size of the model at most, in MB.", above=0)
    public: PublicTable | None = None

    name = "pmw-pub"
    use = "a public table: reweights its records as MWEM does"
    warm_public = True

    def estimator(self) -> Fit:
        """Return the multiplicative weights, or the fit in their place, on the public records."""
        weights = MultiplicativeWeightsFit(
            passes=self.passes, average=self.average, shrink=self.shrink, at_once=self.at_once
        )
        return (self.fit or weights).started_from(self.public)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. A plan may still lack the public table."""
        if self.public is not None:
            self.public.needs(domain, "PMW^Pub")
            super().check(domain, unit)
