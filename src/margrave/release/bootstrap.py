"""The parametric bootstrap of a transcript: refits of simulated answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import HalfSpace
from margrave.marginal.counting import count_cliques
from margrave.models import FAMILIES, Fit, FittedAnswers, GraphicalFit, Model
from margrave.models.no_model import one_line
from margrave.models.specs import fit_of_spec
from margrave.provenance import FitSpec, Provenance
from margrave.release.diagnostics import without_others
from margrave.transcript import Answer, Entry, Measurement, PublicReading, Transcript
from margrave.types import Clique, IntArray

#: The largest graphical model that stands for another kind: refits of a larger one would take hours.
LARGEST_CELLS = 20_000_000


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Refits of answers that the model would have given: a ``Posterior``.

    For every measurement of scale sigma_r and query q_r, with n the estimated row count:

        D* = n independent records of the model p,
        y*_r = q_r(M_r(D*)) + N(0, sigma_r²),    p* = fit(y*)

    y*_r is rounded to integers, as answers are. An estimated row count is estimated again. The
    spread of p* around p stands for that of p around the population: D* for the sampling of the
    real records, the normal numbers for the noise of privacy. In small cells counts cannot be
    negative, which biases the fit. The mean of p* is then off p to the side to which p is off the
    population (``Draws.released``).

    Args:
        model: The model p.
        transcript: The answers to simulate.
        fit: The fit of each simulated transcript.
        source: The origin of the model, in words.

    Privacy:
        None spent. Its normal numbers protect nothing.

    References:
        Efron and Tibshirani (1993), An Introduction to the Bootstrap, Chapters 6 and 10. Ferrando,
        Wang, Sheldon (2022), Parametric bootstrap for differentially private confidence intervals.
    """

    model: Model
    transcript: Transcript
    fit: Fit
    source: str = "the model"

    @staticmethod
    def of(
        model: FittedAnswers,
        transcript: Transcript,
        provenance: Provenance,
        *,
        rng: np.random.Generator,
    ) -> Bootstrap:
        """Return the bootstrap of a release's model.

        A graphical model of the same answers takes its place if its own kind is not refitted.
        Public marginals of other records are left out.

        Raises:
            InputError: The release has no distribution, its fit cannot be rebuilt, or the graphical
                model would be too large.
        """
        kind, asked = model.state().kind, without_others(transcript, provenance)
        if refitted_by(kind) == "graphical":
            fit, known = GraphicalFit(), _without_half_spaces(asked)
            _refuse_large(fit, model.domain, known)
            center = fit(model.domain, known, rng=rng).distribution()
            less = "" if len(known) == len(asked) else ", but for half-spaces"
            return Bootstrap(center, known, fit, f"a graphical model of its answers{less}")
        fit = fit_of(kind, provenance.model_fit)
        if len(asked) == len(transcript):
            return Bootstrap(model.distribution(), transcript, fit)
        center = fit(model.domain, asked, rng=rng).distribution()
        return Bootstrap(
            center, asked, fit, "a graphical model of what was measured, without what was read"
        )

    @property
    def method(self) -> str:
        """The computation in a few words."""
        return f"the model is fitted again to noisy answers drawn from {self.source}"

    @property
    def facts(self) -> Mapping[str, Any]:
        """The computation as plain data."""
        return {"method": "bootstrap", "good": True}

    def draws(self, m: int, *, rng: np.random.Generator) -> Iterator[Model]:
        """Yield ``m`` refits. Each has a random stream of its own, whatever ``m`` is."""
        for stream in rng.spawn(m):
            yield self.fit(self.model.domain, self.simulated(stream), rng=stream).distribution()

    def simulated(self, rng: np.random.Generator) -> Transcript:
        """Return the transcript of as many records of the model, for the same questions."""
        n, domain = max(1, round(self.model.total)), self.model.domain
        known = (e.clique for e in self.transcript.evidence)
        asked = [
            *dict.fromkeys(known),
            *(a.query.counting_clique(domain) for a in self.transcript.answers),
        ]
        counts = count_cliques(self.model.sample(n, rng=rng, independent=True), asked)
        return Transcript(tuple(_answered(e, domain, counts, rng) for e in self.transcript))


def _without_half_spaces(transcript: Transcript) -> Transcript:
    """Return the answers that a graphical model can be fitted to."""
    return Transcript(
        tuple(
            e for e in transcript if not (isinstance(e, Answer) and isinstance(e.query, HalfSpace))
        )
    )


def _refuse_large(fit: GraphicalFit, domain: Domain, transcript: Transcript) -> None:
    """Raise ``InputError`` if a graphical model of the answers is too large for many refits."""
    known = {e.clique for e in transcript.evidence} | {
        a.query.clique for a in transcript.answers if a.query.clique
    }
    cells = fit.cells(domain, sorted(known))
    if cells > LARGEST_CELLS:
        raise InputError(
            f"There are no draws of this release: they would be refits of a graphical model of {cells:,} cells.",
            remedy="Measure fewer or smaller marginals, or use a mechanism that bounds its model, such as AIM.",
        )


def _answered(
    entry: Entry, domain: Domain, counts: Mapping[Clique, IntArray], rng: np.random.Generator
) -> Entry:
    if isinstance(entry, Answer):
        truth = entry.query.count(counts[entry.query.counting_clique(domain)])
        return replace(entry, value=round(truth + rng.normal(0.0, entry.scale)))
    if isinstance(entry, PublicReading):
        return replace(
            entry, values=entry.query.apply(entry.clique, counts[entry.clique].astype(np.float64))
        )
    if not isinstance(entry, Measurement):
        return entry
    noise = rng.normal(0.0, entry.scale, entry.values.shape)
    values = entry.query.apply(entry.clique, counts[entry.clique]) + noise
    return replace(entry, values=np.rint(values).astype(np.int64))


def refitted_by(kind: str) -> str:
    """Return what the bootstrap refits for a kind of model: "itself" or a "graphical" model of the same answers.

    That is a graphical model for a kind that is not known.

    Raises:
        InputError: If models of the kind have no distribution.
    """
    by = FAMILIES[kind].bootstrap if kind in FAMILIES else "graphical"
    if by is None:
        raise InputError(
            f"There is no distribution behind this release to draw from: its model is of the kind {kind!r}.",
            remedy="Refit it first, at no further cost to privacy: release.refit('graphical').draws(...),"
            " or margrave refit --fit graphical.",
        )
    return by


def fit_of(kind: str, spec: FitSpec | None) -> GraphicalFit:
    """Return the fit that made a release's model, by the model's kind and the fit's spec.

    Raises:
        InputError: The kind of model is not refitted, or its fit cannot be rebuilt.
    """
    if refitted_by(kind) == "graphical":
        return GraphicalFit()
    with suppress(InputError):
        fit = None if spec is None else fit_of_spec(spec)
        if type(fit) is GraphicalFit:
            return fit
    words = "the release does not name it" if spec is None else one_line(spec.words)
    raise InputError(
        f"The bootstrap refits the model of this release, and its fit cannot be rebuilt: {words}.",
        remedy="Refit it first, at no further cost to privacy: release.refit('graphical').draws(...),"
        " or margrave refit --fit graphical.",
    )
