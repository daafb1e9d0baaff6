"""The parametric bootstrap of a transcript: models that other chance would have led to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import HalfSpace
from margrave.marginal.counting import count_cliques
from margrave.models import Fit, GraphicalFit, Model
from margrave.models.absent import one_line
from margrave.models.specs import fit_of_spec, spec_words
from margrave.release.together import without_others
from margrave.schema.domain import Domain
from margrave.transcript import Answer, Entry, Measurement, PublicReading, Transcript
from margrave.typing import Clique, IntArray

REFITTED = frozenset({"graphical", "expanded"})
"""The kinds of models that a graphical fit makes."""
WITH_POSTERIOR = frozenset({"max-entropy"})
"""The kinds that carry draws of their own: a fit to each simulated transcript would take minutes."""
OTHERS = frozenset({"histogram", "support", "mixture"})
"""The kinds of which a hundred refits would take hours: a graphical model of the same answers stands for them."""
LARGEST_CELLS = 20_000_000
"""Cells of such a graphical model beyond which its refits would take hours too."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Refits of answers that the model would have given: a ``Posterior``.

    For every measurement of scale sigma_r and query q_r, with n the estimated number of records:

        D* = n independent records of the model p,    y*_r = q_r(M_r(D*)) + N(0, sigma_r²),    p* = fit(y*)

    y*_r is rounded to integers, as answers are, and the number of records is estimated anew where it was estimated.
    The spread of p* around p stands for that of p around the population: D* for the sampling of the real records, the
    normal numbers for the noise of privacy. Where cells are small, counts that may not be negative make the fit biased;
    then the mean of p* is off p to the side to which p is off the population (``Draws.released``).

    **Privacy:** none spent; post-processing of the transcript. Its normal numbers protect nothing.

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, Chapters 6 and 10; for noisy answers,
    Ferrando, Wang, Sheldon (2022), Parametric bootstrap for differentially private confidence intervals.
    """

    model: Model
    transcript: Transcript
    fit: Fit
    source: str = "the model"

    @staticmethod
    def of(
        model: Model, transcript: Transcript, config: Mapping[str, Any], *, rng: np.random.Generator
    ) -> Bootstrap:
        """Of a release's model; of a graphical model of the same answers where its own kind is not refitted.

        Of its own answers alone where others were read from public data.
        """
        kind, asked = model.state().kind, without_others(transcript, config)
        if kind in WITH_POSTERIOR | OTHERS:
            fit, known = GraphicalFit(), _without_half_spaces(asked)
            _refuse_large(fit, model.domain, known)
            center = fit(model.domain, known, rng=rng)
            less = "" if len(known) == len(asked) else ", but for half-spaces"
            return Bootstrap(center, known, fit, f"a graphical model of its answers{less}")
        fit = fit_of(kind, config)
        if len(asked) == len(transcript):
            return Bootstrap(model, transcript, fit)
        center = fit(model.domain, asked, rng=rng)
        return Bootstrap(center, asked, fit, "a graphical model of what was measured, without what was read")

    @property
    def method(self) -> str:
        """How it is computed, in a few words."""
        return f"refits of answers simulated from {self.source}"

    @property
    def facts(self) -> Mapping[str, Any]:
        """How it is computed, as plain data."""
        return {"method": "bootstrap", "good": True}

    def draws(self, m: int, *, rng: np.random.Generator) -> Iterator[Model]:
        """``m`` refits, each with a random stream of its own: the first ones are the same whatever ``m`` is."""
        for stream in rng.spawn(m):
            yield self.fit(self.model.domain, self.simulated(stream), rng=stream)

    def simulated(self, rng: np.random.Generator) -> Transcript:
        """The transcript that as many records of the model would have led to, had the same been asked."""
        n, domain = max(1, round(self.model.total)), self.model.domain
        known = (e.clique for e in self.transcript.evidence)
        asked = [*dict.fromkeys(known), *(a.query.counted_in(domain) for a in self.transcript.answers)]
        counts = count_cliques(self.model.sample(n, rng=rng, independent=True), asked)
        return Transcript(tuple(_answered(e, domain, counts, rng) for e in self.transcript))


def _without_half_spaces(transcript: Transcript) -> Transcript:
    """What a graphical model can be fitted to: half-spaces are asked for records alone."""
    return Transcript(
        tuple(e for e in transcript if not (isinstance(e, Answer) and isinstance(e.query, HalfSpace)))
    )


def _refuse_large(fit: GraphicalFit, domain: Domain, transcript: Transcript) -> None:
    """An InputError where a graphical model of the answers would be too large to be refitted many times."""
    known = {e.clique for e in transcript.evidence} | {a.query.clique for a in transcript.answers if a.query.clique}
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
        truth = entry.query.count(counts[entry.query.counted_in(domain)])
        return replace(entry, value=round(truth + rng.normal(0.0, entry.scale)))
    if isinstance(entry, PublicReading):
        return replace(entry, values=entry.query.apply(entry.clique, counts[entry.clique].astype(np.float64)))
    if not isinstance(entry, Measurement):
        return entry
    noise = rng.normal(0.0, entry.scale, entry.values.shape)
    values = entry.query.apply(entry.clique, counts[entry.clique]) + noise
    return replace(entry, values=np.rint(values).astype(np.int64))


def check_kind(kind: str) -> None:
    """Raise an ``InputError`` for a kind of model that is not refitted: of answers alone, say."""
    if kind not in REFITTED | OTHERS:
        raise InputError(
            f"There is no distribution behind this release to draw from: its model is of the kind {kind!r}.",
            remedy="Refit it first, at no further cost to privacy: release.refit(margrave.GraphicalFit()).draws(...),"
            " or margrave refit --fit graphical.",
        )


def fit_of(kind: str, config: Mapping[str, Any]) -> GraphicalFit:
    """Return the fit that made a release's model, by the model's kind and what the release says of the fit.

    Raises:
        InputError: The kind of model is not refitted, or its fit cannot be rebuilt.
    """
    check_kind(kind)
    if kind in OTHERS:
        return GraphicalFit()
    with suppress(InputError):
        fit = fit_of_spec(config.get("fit"))
        if isinstance(fit, GraphicalFit):
            return fit
    words = one_line(spec_words(config.get("fit")))
    raise InputError(
        f"The bootstrap refits the model of this release, and its fit cannot be rebuilt: {words}.",
        remedy="Refit it first, at no further cost to privacy: release.refit(margrave.GraphicalFit()).draws(...),"
        " or margrave refit --fit graphical.",
    )
