"""The parametric bootstrap of a transcript: models that other chance would have led to."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal.counting import count_cliques
from margrave.models import Fit, GraphicalFit, Model
from margrave.transcript import Entry, Measurement, Transcript
from margrave.typing import Clique, FloatArray

REFITTED = frozenset({"graphical", "expanded"})
"""The kinds of models that a graphical fit makes."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Refits of the noisy answers, each with as much chance added as is in them already: a ``Posterior``.

    For every measurement y_r, of scale sigma_r and query q_r, with n the estimated number of records:

        D* = n independent records of the model p
        y*_r = y_r + q_r(M_r(D*) − n M_r(p)) + N(0, sigma_r²)
        p* = fit(y*)

    The spread of p* stands for that of the estimate around the population: M_r(D*) − n M_r(p) for the sampling of the
    real records, the normal numbers for the noise of privacy. y*_r is rounded to integers, as answers are. The number
    of records is estimated anew where it was estimated. Answers are perturbed, not simulated from the model: the
    model's own bias, from counts that may not be negative, is then not added twice (``docs/draws.md``).

    **Privacy:** none spent; post-processing of the transcript. Its normal numbers protect nothing.

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap; Ferrando, Wang, Sheldon (2022), Parametric
    bootstrap for differentially private confidence intervals, who simulate from the estimate.
    """

    model: Model
    transcript: Transcript
    fit: Fit

    @property
    def method(self) -> str:
        """How it is computed, in a few words."""
        return "refits of the noisy answers with sampling and noise added once more"

    def draws(self, m: int, *, rng: np.random.Generator) -> Iterator[Model]:
        """``m`` refits, each with a random stream of its own: the first ones are the same whatever ``m`` is."""
        expected = self.model.answer(self.transcript.cliques)
        for stream in rng.spawn(m):
            yield self.fit(self.model.domain, self.simulated(expected, stream), rng=stream)

    def simulated(self, expected: Mapping[Clique, FloatArray], rng: np.random.Generator) -> Transcript:
        """The transcript with fresh chance on every answer; ``expected`` are the model's counts of what is measured."""
        n = max(1, round(self.model.total))
        counts = count_cliques(self.model.sample(n, rng=rng, independent=True), expected)
        scale = n / self.model.total if self.model.total > 0 else 1.0
        moved = {c: counts[c] - scale * expected[c] for c in expected}
        return Transcript(tuple(_perturbed(e, moved, rng) for e in self.transcript))


def _perturbed(entry: Entry, moved: Mapping[Clique, FloatArray], rng: np.random.Generator) -> Entry:
    if not isinstance(entry, Measurement):
        return entry
    noise = rng.normal(0.0, entry.scale, entry.values.shape)
    values = entry.values + entry.query.apply(entry.clique, moved[entry.clique]) + noise
    return replace(entry, values=np.rint(values).astype(np.int64))


def fit_of(kind: str, config: Mapping[str, Any]) -> GraphicalFit:
    """The fit that made a release's model, by the model's kind and what the release says of its parameters.

    An InputError for a kind of model that is not refitted: of answers alone, say.
    """
    if kind not in REFITTED:
        raise InputError(
            f"There is no distribution behind this release to draw from: its model is of the kind {kind!r}.",
            remedy="Refit it first, at no further cost to privacy: release.refit(margrave.GraphicalFit()).draws(...).",
        )
    return _stated(config.get("fit")) or GraphicalFit()


def _stated(text: object) -> GraphicalFit | None:
    """The graphical fit whose ``repr`` a text is; a release file may hold anything, and nothing of it is run."""
    if not isinstance(text, str) or len(text) > 200:
        return None
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "GraphicalFit":
            return GraphicalFit(**{str(k.arg): ast.literal_eval(k.value) for k in call.keywords})
    except (SyntaxError, ValueError, TypeError, InputError):
        pass
    return None
