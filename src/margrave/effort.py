"""How much memory and time a run takes, roughly: runs that were measured, scaled by public sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.mechanisms import Mechanism
from margrave.mechanisms.common import CELLS_PER_MB, Step
from margrave.models import (
    EntropyProjectionFit,
    GeneratorFit,
    GeneticFit,
    MaxEntropyFit,
    MultiplicativeWeightsFit,
    ParticleFit,
    RelaxedFit,
)
from margrave.privacy import Unit
from margrave.schema.domain import Domain
from margrave.typing import Clique

# Processor seconds, measured on two cores of a small server: orders of magnitude, not promises. What Numba compiles
# once, after an installation, is in none of them.
SECONDS = 5.0  # whatever is done: the libraries, reading, writing
SECONDS_PER_COUNT = 2.5e-9  # one row in one marginal
SECONDS_PER_NOISE = 15e-6  # one cell, by the exact sampler
SECONDS_PER_ROUND = 0.05  # choosing and measuring, whatever the model's size
SECONDS_PER_CELL = 4e-9  # one calibration
SECONDS_PER_CANDIDATE = 60e-6  # of a round: its score, and the room that there is for it
SECONDS_PER_QUERY = 130e-9  # the same where single queries are candidates
SHARE_AGAIN = 0.15  # of it, for each further choice by the same scores
SECONDS_PER_MARGINAL = 2.5e-3  # that a genetic search looks at
CALIBRATIONS = 40  # in a round
LAST_CALIBRATIONS = 450  # of the model released
USUAL_ROUNDS = 4  # per column, where the number is adaptive
JAX_SECONDS = 5.0  # importing and compiling it, and a first training
SECONDS_PER_TRAINING = 1.2  # a round's, compiled anew for what it has measured
SECONDS_PER_TRAINED = 0.03  # the same per column
SECONDS_PER_STEP = 3e-11  # one cell of what was measured, in one component
SECONDS_PER_ANSWER = 5e-10  # one cell of a candidate, in one component
SECONDS_PER_PARTICLE = 25e-9  # moved once towards one marginal
SECONDS_PER_TIED = 60e-9  # the same, where constraints keep particles from some places
SECONDS_PER_SOUGHT = 1e-8  # one code of one record that is looked for by one query

MB = 350.0  # the libraries, and code compiled
JAX_MB = 350.0  # more of both, for fits by gradients
BYTES_PER_VALUE = 22.0  # reading a column, encoding it, and its codes
BYTES_PER_QUERY = 120.0  # a candidate that is a single query: its number, its score, its chance
PER_PARTICLE = 3.0  # times what the particles themselves take
PER_WEIGHT = 3.0  # numbers a cell, where each has a weight


@dataclass(frozen=True)
class Effort:
    """What the estimates rest on: all of it public, but for ``rows``, a guess.

    A mechanism with ``turns(domain, rho, records, unit)`` says how many rounds it makes. One with ``seeks(domain,
    rounds)`` looks for records by the queries that it chose, and says how many codes are tried, or None; ``at_once`` of
    them are chosen in a round.
    """

    domain: Domain
    mechanism: Mechanism
    reads: Sequence[Clique]
    steps: Sequence[Step]
    rho: Fraction
    unit: Unit
    rows: int
    max_model_mb: float

    @property
    def fit(self) -> Any:
        """What it fits by; None where it holds none."""
        estimator = getattr(self.mechanism, "estimator", None)
        return getattr(self.mechanism, "fit", None) if estimator is None else estimator()

    @property
    def has_posterior(self) -> bool:
        """Whether the posterior of its model is sampled at the end."""
        return isinstance(self.fit, MaxEntropyFit)

    @property
    def cells(self) -> int:
        """How many counts are made behind the gate."""
        return sum(map(self.domain.cells, self.reads))

    @property
    def rounds(self) -> int:
        """How many rounds there are, of those that choose."""
        turns = getattr(self.mechanism, "turns", None)
        if turns is not None:
            return int(turns(self.domain, self.rho, max(self.rows, 1), self.unit))
        return min(sum(s.marginals for s in self._adaptive), USUAL_ROUNDS * len(self.domain))

    @property
    def memory_mb(self) -> float:
        """At the most that there is at a time."""
        table = self.rows * len(self.domain) * BYTES_PER_VALUE + self.cells * 8
        queries = self.cells * BYTES_PER_QUERY * self._single
        return MB + (table + queries) / 2**20 + self._model_mb

    @property
    def _model_mb(self) -> float:
        fit = self.fit
        if isinstance(fit, ParticleFit):
            return PER_PARTICLE * fit.cells(self.domain, self.reads) / CELLS_PER_MB
        if isinstance(fit, MultiplicativeWeightsFit | EntropyProjectionFit) and fit.public is None:
            return PER_WEIGHT * self.domain.cells() / CELLS_PER_MB
        counts = 64 * self.cells / 2**20
        model = min(self.max_model_mb, counts, self.domain.cells() / CELLS_PER_MB)
        return model + JAX_MB * isinstance(fit, GeneratorFit | RelaxedFit | MaxEntropyFit)

    @property
    def seconds(self) -> float | None:
        """An upper estimate, as if models filled the share of their size that is open; None where nothing tells."""
        seeks = getattr(self.mechanism, "seeks", None)
        sought = 0 if seeks is None else seeks(self.domain, self.rounds)
        if sought is None:
            return None
        noisy = sum(s.marginals * median_cells(self.domain, s) for s in self.steps)
        counting = self.rows * len(self.reads) * SECONDS_PER_COUNT + noisy * SECONDS_PER_NOISE
        return float(SECONDS + counting + self._choosing() + self._fitting() + sought * SECONDS_PER_SOUGHT)

    def _choosing(self) -> float:
        """Scores, and whether there is room."""
        if self._single:
            again = SHARE_AGAIN * (getattr(self.mechanism, "at_once", 1) - 1)
            return self.rounds * self.cells * SECONDS_PER_QUERY * (1 + again)
        among = max((len(s.cliques) for s in self._adaptive), default=0)
        fixed = [s for s in self.steps if not (s.adaptive or s.single) and s.marginals < len(s.cliques)]  # trees
        return SECONDS_PER_CANDIDATE * (self.rounds * among + sum(s.marginals * len(s.cliques) for s in fixed))

    def _fitting(self) -> float:
        """A model after each round, and the last one."""
        fit, rounds = self.fit, self.rounds
        if isinstance(fit, ParticleFit):
            epochs = fit.epochs + rounds / 2 * fit.warm_epochs  # of what is measured by then, half of all on average
            return fit.count(self.rows) * self._measured * epochs * self._per_particle
        if isinstance(fit, GeneticFit):
            return self._measured * max(1, rounds / 2) * SECONDS_PER_MARGINAL
        if isinstance(fit, GeneratorFit | RelaxedFit):
            trained = SECONDS_PER_TRAINING + len(self.domain) * SECONDS_PER_TRAINED
            of_round = rounds / 2 * self.cells / max(1, len(self.reads))
            each = fit.steps * of_round * SECONDS_PER_STEP + self.cells * SECONDS_PER_ANSWER
            return JAX_SECONDS + rounds * (trained + fit.components * each)
        if not self._adaptive:
            return 0.0
        largest = min(self.max_model_mb * CELLS_PER_MB, self.domain.cells())
        each = SECONDS_PER_ROUND + CALIBRATIONS * largest / 2 * SECONDS_PER_CELL
        return rounds * each + LAST_CALIBRATIONS * largest * SECONDS_PER_CELL

    @property
    def _per_particle(self) -> float:
        return SECONDS_PER_TIED if self.domain.zeros else SECONDS_PER_PARTICLE

    @property
    def _measured(self) -> int:
        return sum(s.marginals for s in self.steps)

    @property
    def _adaptive(self) -> list[Step]:
        return [s for s in self.steps if s.adaptive]

    @property
    def _single(self) -> bool:
        """Whether single queries are the candidates."""
        return hasattr(self.mechanism, "seeks") or any(s.single for s in self._adaptive)


def median_cells(domain: Domain, step: Step) -> float:
    """How many counts the median marginal has, or one."""
    return 1.0 if step.single else float(np.median([domain.cells(c) for c in step.cliques]))
