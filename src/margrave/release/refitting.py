"""Checks and cost of another fit to the noisy answers of a release, and the answers that it uses."""

from __future__ import annotations

import warnings
from dataclasses import replace

from margrave.domain import Domain
from margrave.errors import ModelTooLargeError, RefitWarning, ReleaseError
from margrave.models import CELLS_PER_MB, Cost, Fit, FitLoad, FittedAnswers
from margrave.models.cost import process_cost
from margrave.models.entries import EntryKind, check_kinds
from margrave.transcript import Entry, Measurement, Transcript


def check_refit(
    fit: Fit, model: FittedAnswers, transcript: Transcript, max_model_mb: float
) -> None:
    """Raise unless there are noisy counts that the fit uses, and their model is at most ``max_model_mb`` large.

    Args:
        fit: The fit.
        model: The model that the release has, or the place of one.
        transcript: The noisy answers.
        max_model_mb: The largest model to fit, in MB.
    """
    transcript = usable_by(fit, transcript)
    if not transcript.counts_something and model.absent:
        raise ReleaseError(
            f"This release holds no noisy counts to fit a model to: {model.absent}.",
            remedy=model.remedy,
        )
    if not transcript.counts_something:
        raise ReleaseError(
            "This release holds no noisy counts to fit another model to: its mechanism only selected queries.",
            remedy="Use the model that it has.",
        )
    check_kinds(fit, transcript)
    cells = _model_cells(fit, model.domain, transcript)
    if not cells <= max_model_mb * CELLS_PER_MB:  # nan too
        raise ModelTooLargeError(
            f"A model by {type(fit).__name__} of all that was counted has {cells:,} cells, above"
            f" {max_model_mb:g} MB.",
            remedy="Fit one that does not grow with the marginals, ParticleFit() or GeneticFit(), or raise"
            " max_model_mb.",
        )


def refit_cost(fit: Fit, domain: Domain, transcript: Transcript) -> Cost:
    """Return about what a process takes that fits the transcript, by the cost of the fit in plans."""
    transcript = usable_by(fit, transcript)
    left, counted = fit.distinguished(domain, transcript, last=True), transcript.counted
    load = FitLoad(
        candidates=counted,
        cells=sum(map(left.cells, counted)),
        measured=len(counted),
        rounds=0,
        rows=max(round(transcript.total()), 0),
        max_model_mb=0.0,
        model_cells=_model_cells(fit, domain, transcript),
    )
    return process_cost() + fit.cost(left, load)


def _model_cells(fit: Fit, domain: Domain, transcript: Transcript) -> int:
    return fit.cells(fit.distinguished(domain, transcript, last=True), transcript.counted)


def usable_by(fit: Fit, transcript: Transcript) -> Transcript:
    """Return the answers without weighted sums that a fit cannot use, if the marginals of these were measured too.

    The answers that are left are a function of the transcript, so that nothing is spent.
    """
    if EntryKind.WEIGHTED_MAP in fit.entries:
        return transcript
    own = [set(m.clique) for m in transcript.measurements if m.query.is_partition]

    def is_beside(entry: Entry) -> bool:
        """Return True for weighted sums of a marginal that was measured itself."""
        if not isinstance(entry, Measurement) or entry.query.is_partition or entry.query.is_counts:
            return False
        return any(clique.issuperset(entry.clique) for clique in own)

    kept = tuple(e for e in transcript.entries if not is_beside(e))
    return transcript if len(kept) == len(transcript.entries) else replace(transcript, entries=kept)


def warn_of_refit(fit: Fit, left_out: int) -> None:
    """Warn of what a refit lacks.

    Args:
        fit: The fit.
        left_out: Number of weighted sums that it cannot use.

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
    if left_out:
        warnings.warn(
            f"{name} does not use weighted sums, which serve the means, totals, correlations and least-squares"
            f" regressions of the purposes: {left_out:,} are left out. It is fitted to the marginals that were measured"
            " beside them. GraphicalFit() uses both.",
            RefitWarning,
            stacklevel=4,
        )
