"""Checks of another fit to the noisy answers of a release, and the answers that it uses."""

from __future__ import annotations

import warnings
from dataclasses import replace

from margrave.domain import Domain
from margrave.errors import ModelTooLargeError, RefitWarning, ReleaseError
from margrave.models import Fit
from margrave.models.entries import EntryKind
from margrave.transcript import Entry, Measurement, Transcript


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


def usable_by(fit: Fit, transcript: Transcript) -> Transcript:
    """Return the answers without weighted sums that a fit cannot use, if the marginals of these were measured too.

    The answers that are left are a function of the transcript, so that nothing is spent.

    Warns:
        RefitWarning: Sums are left out, or the model will have no distribution to draw rows from.
    """
    name = type(fit).__name__
    if not fit.gives_records:
        warnings.warn(
            f"{name} estimates marginals and has no distribution: sample, draws and analyze will refuse its release."
            " To draw rows, refit by GraphicalFit() or ParticleFit().",
            RefitWarning,
            stacklevel=4,
        )
    if EntryKind.WEIGHTED_MAP in fit.entries:
        return transcript
    own = [set(m.clique) for m in transcript.measurements if m.query.is_partition]

    def is_beside(entry: Entry) -> bool:
        """Return True for weighted sums of a marginal that was measured itself."""
        if not isinstance(entry, Measurement) or entry.query.is_partition or entry.query.is_counts:
            return False
        return any(clique.issuperset(entry.clique) for clique in own)

    kept = tuple(e for e in transcript.entries if not is_beside(e))
    if len(kept) == len(transcript.entries):
        return transcript
    warnings.warn(
        f"{name} does not use weighted sums, of which {len(transcript.entries) - len(kept):,} are left out. It is"
        " fitted to the marginals that were measured beside them. GraphicalFit() uses both.",
        RefitWarning,
        stacklevel=4,
    )
    return replace(transcript, entries=kept)
