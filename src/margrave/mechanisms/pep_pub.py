"""PEP^Pub: private entropy projection on public records (Liu, Vietri, Wu 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms.common import option
from margrave.mechanisms.pep import PEP
from margrave.models import EntropyProjectionFit, Fit
from margrave.public_table import PublicTable


@dataclass(frozen=True, kw_only=True)
class PEPPub(PEP):
    """PEP on the support of a public table: the weights nearest to it that explain the answers.

    Round t finds weights near the public shares ``P`` and near every answer: D_t(x) ∝ P(x) exp(Σ_i
    lambda_i q_i(x)).

    Records that the public table lacks get no weight, so its support bounds how close the release
    can come: see ``margrave.evaluation.best_mixture_error``. It takes domains of any size. Other
    parameters are PEP's.

    Args:
        public: The public table, which must have all columns. The certificate states its hash.
        shrink: Believe answers beside the public table's shares as far as the answers so far bear
            those out, and meet them half-way where they contradict each other, in
            ``max_iterations`` sweeps over all of them at most. Without, as in the paper, the
            weights differ by ``gamma`` at most from every answer, after ``max_iterations`` steps at
            most.
        anneal: Halve the rounds that are left after one that improved the model by less than its
            noise. The paper has neither of these two (``as_published`` is its form), and at a small
            budget ended further from the truth than the public table that it began with.
        max_model_mb: None, unlike for PEP: the records are in memory already.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit. The public records are not
        protected.

    References:
        Liu, Vietri, Wu (2021), Algorithms 1 and 2 and Appendix F.2.
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

    name = "pep-pub"
    use = "a public table: reweights its records as PEP does"
    warm_public = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shrink and self.gamma != 1.0:
            raise InputError(
                "gamma has no say where answers are shrunk.",
                remedy="Say shrink=False, or leave it out.",
            )

    def estimator(self) -> Fit:
        """Return the entropy projection, or the fit in its place, on the public records."""
        projection = EntropyProjectionFit(
            gamma=self.gamma, max_iterations=self.max_iterations, shrink=self.shrink
        )
        return (self.fit or projection).started_from(self.public)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. A plan may still lack the public table."""
        if self.public is not None:
            self.public.needs(domain, "PEP^Pub")
            super().check(domain, unit)
