"""Fits in rounds: a fit that passes everything on to another, and one round at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

import numpy as np

from margrave.domain import Domain
from margrave.models import Answerer, Cost, Fit, FitLoad, FittedAnswers, Needs
from margrave.models.progress import ShareProgress, no_progress
from margrave.public_table import PublicTable
from margrave.transcript import Transcript
from margrave.types import Clique, FloatArray


class WrappedFit(Fit):
    """A fit that does what another does. Subclasses watch it, or stand in its way."""

    def __init__(self, fit: Any) -> None:
        self.fit = fit
        self.entries = fit.entries  # type: ignore[misc]
        self.samples_posterior = fit.samples_posterior  # type: ignore[misc]
        self.public, self.penalties = fit.public, fit.penalties

    def init(self, domain: Domain, *, rng: np.random.Generator) -> Any:
        return self.fit.init(domain, rng=rng)

    def update(
        self, state: Any, transcript: Transcript, *, rng: np.random.Generator, done: float = 0.0
    ) -> Any:
        return self.fit.update(state, transcript, rng=rng, done=done)

    def model(self, state: Any) -> Answerer:
        found: Answerer = self.fit.model(state)
        return found

    def finish(
        self,
        state: Any,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> FittedAnswers:
        found: FittedAnswers = self.fit.finish(state, transcript, rng=rng, progress=progress)
        return found

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        return int(self.fit.cells(domain, cliques))

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        found: FloatArray = self.fit.sizes_with(domain, cliques, candidates)
        return found

    def check(self, domain: Domain, needs: Needs) -> None:
        self.fit.check(domain, needs)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        found: Cost = self.fit.cost(domain, load)
        return found

    def started_from(self, public: PublicTable | None) -> Fit:
        other = copy(self)
        other.fit = self.fit.started_from(public)
        return other

    def __getattr__(self, name: str) -> Any:
        if "fit" not in self.__dict__:  # of a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self.__dict__["fit"], name)  # what one kind of fit has besides


def first_round(fit: Any, domain: Domain, transcript: Transcript, seed: Any = 0) -> Any:
    """The state after a first round."""
    rng = np.random.default_rng(seed)
    return fit.update(fit.init(domain, rng=rng), transcript, rng=rng)


def next_round(fit: Any, state: Any, transcript: Transcript, seed: Any = 0, done: float = 0) -> Any:
    """The state after another round."""
    return fit.update(state, transcript, rng=np.random.default_rng(seed), done=done)
