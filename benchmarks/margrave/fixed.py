"""The fixed noisy marginals as margrave's transcript: what its estimation and sampling scripts share."""

from __future__ import annotations

from fractions import Fraction

from job import Job

from margrave import Domain, Transcript
from margrave.transcript import Measurement


def transcript_of(job: Job, domain: Domain) -> Transcript:
    """Each marginal with its noise scale. What it would have cost is nothing to an estimator."""
    cliques, noisy = job.measurements()
    return Transcript(
        tuple(
            Measurement(domain.clique(clique), values, job["sigma"], Fraction(0))
            for clique, values in zip(cliques, noisy, strict=True)
        )
    )
