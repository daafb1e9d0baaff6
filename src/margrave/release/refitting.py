"""Checks of another fit to the noisy answers of a release."""

from __future__ import annotations

from margrave.domain import Domain
from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.models import Fit
from margrave.transcript import Transcript


def check_refit(fit: Fit, domain: Domain, transcript: Transcript, max_model_mb: float) -> None:
    """Raise unless there are noisy answers, and the model of them is at most ``max_model_mb`` large."""
    if not transcript.counts_something:
        raise ReleaseError(
            "This release holds no noisy answers to fit another model to: its mechanism only selected queries.",
            remedy="Use the model that it has.",
        )
    left = fit.distinguished(domain, transcript, last=True)
    cells = fit.cells(left, transcript.counted)
    if cells * 8 > max_model_mb * 2**20:
        raise ModelTooLargeError(
            f"A model by {type(fit).__name__} of all that was counted has {cells:,} cells, above"
            f" {max_model_mb:g} MB.",
            remedy="Fit one that does not grow with the marginals, ParticleFit() or GeneticFit() (--fit particles),"
            " or raise max_model_mb.",
        )
