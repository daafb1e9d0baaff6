"""How far records are from the private rows. None of it is private."""

from __future__ import annotations

import numpy as np
from benchmarks.transport.tasks import Task
from numpy.typing import NDArray

from margrave import MemoryTable
from margrave.evaluate import geometry_errors
from margrave.marginal.half_space import centres
from margrave.schema import Codes

METRICS = {
    "downstream": "downstream",
    "covariance_error": "covariance",
    "centred_covariance_error": "covariance, rows centred",
    "counting_error": "boxes",
    "thresholding_error": "half-spaces",
    "sliced_wasserstein": "SW1",
    "two_way_l1": "L1 of pairs",
}
"""Numerators, as in the paper's tables; the lines hold the relative errors too."""


def errors_of(task: Task, synthetic: Codes) -> dict[str, float]:
    """All of ``geometry_errors``, and the covariance error that the paper's tables seem to have."""
    real = MemoryTable(task.schema, task.private)
    found = geometry_errors(
        real, synthetic, target=task.target, test=task.test, regression=task.regression
    )
    return {**found.to_dict(), "centred_covariance_error": centred_covariance_error(task.private, synthetic)}


def centred_covariance_error(real: Codes, synthetic: Codes) -> float:
    """‖H (cov D − cov D') H‖, H = I − 11ᵀ/d: the covariances of rows that had their own mean over columns taken off.

    A direction in which all columns grow together counts for nothing.
    """
    d = len(real.domain)
    keep = np.eye(d) - 1 / d
    return float(np.linalg.norm(keep @ (covariance(real) - covariance(synthetic)) @ keep))


def covariance(codes: Codes) -> NDArray[np.float64]:
    """Of the centres of the codes in the unit interval."""
    places = [centres(k)[codes.column(a)] for a, k in zip(codes.domain, codes.domain.sizes, strict=True)]
    return np.atleast_2d(np.cov(np.array(places), bias=True))
