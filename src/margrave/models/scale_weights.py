"""Weights 1 / scale instead of 1 / scale², as AIM's paper has them in its estimates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margrave.transcript import Answer, Entry, Measurement, PublicReading, Transcript


def weighted_by_scale(transcript: Transcript) -> Transcript:
    """Return the transcript whose weights 1 / scale² are proportional to the weights 1 / scale of this one.

    A scale becomes the geometric mean of it and the smallest scale, which stays as it is.

    Args:
        transcript: Answers with noise, and public marginals.

    Returns:
        The same entries with other scales, for a fit alone.

    Privacy:
        None spent; post-processing of noisy answers.

    References:
        McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithm 4, the estimate.
    """
    noisy = [e for e in transcript if isinstance(e, Measurement | Answer)]
    scales = [e.scale for e in noisy] + [float(e.scales.min()) for e in transcript.readings]
    least = min((s for s in scales if s > 0), default=1.0)
    return Transcript(tuple(_mixed(e, least) for e in transcript))


def _mixed(entry: Entry, least: float) -> Entry:
    if isinstance(entry, Measurement | Answer):
        return replace(entry, scale=float(np.sqrt(entry.scale * least)))
    if isinstance(entry, PublicReading):
        return replace(entry, scales=np.sqrt(entry.scales * least))
    return entry
