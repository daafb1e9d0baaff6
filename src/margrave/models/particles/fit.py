"""ParticleFit: from noisy marginals to records, by moving particles."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave.errors import InputError
from margrave.models.entries import ALL, EntryKind
from margrave.models.particles.constraints import Constraint, check_told, with_targets
from margrave.models.particles.descent import Descent, Schedule
from margrave.models.particles.embedding import Embedding, check_nominal
from margrave.models.particles.penalties import Penalty, Prepared, check_penalty
from margrave.models.particles.possible import check_zeros, possible
from margrave.models.particles.projection import ENTRIES, FEWEST, STEPS
from margrave.models.particles.targets import targets_of
from margrave.models.protocol import Model
from margrave.models.weights.model import WeightsModel, empirical
from margrave.parameters import check_parameters
from margrave.schema.domain import Domain
from margrave.transcript import Transcript
from margrave.typing import AnyArray, Clique, FloatArray

FEW, MANY = 10_000, 100_000
"""The number of particles where none is given: as many as there are records, but no fewer and no more."""

QUICKLY = 1000
"""Steps of a projection between rounds."""

SPREAD = 0.5
"""How far particles of a model begin from their codes' points, as a share of the distance to the next code."""


@dataclass(frozen=True, kw_only=True)
class ParticleFit:
    """Records whose marginals are near the measured ones in sliced Wasserstein distance: particles, moved by gradients.

        0. agree:   the noisy marginals nearest to those measured that say the same of every column
        1. project: for every marginal S, the distribution target_S that is nearest to the noisy shares in SW1
        2. move:    minimise Σ_S weight_S · SW2²(particles_S, target_S) + Σ_R weight_R · R(particles)
        3. finish:  every particle becomes the record of the nearest codes that can occur

    Codes are points in the unit cube (``Embedding``), so that a near miss costs little where columns are ordered. The
    model is the distribution of the records (``empirical``).

    ``particles``: None means the estimated number of records, from 10,000 to 100,000. ``epochs``: each sees every
    marginal once, ``batch`` of them a step, along ``lines`` fresh random lines (None: as many as it has coordinates,
    up to 64). ``optimiser``: "transport" moves the particles of a marginal ``rate`` of the way to where they have the
    target's distribution along its lines; "adam" is the paper's (``Descent``). ``kept``: the share of the particles
    that a step moves. The rate falls 20 times by the factor ``decay``, after equal numbers of epochs (every 50 of
    1000): with fewer epochs it falls as far, sooner. ``directions``: along which step 1 sees a marginal, fewer where
    it has more than 20,000 cells. ``nominal``: columns of names are embedded "ordered", as in the paper, or
    "equidistant", which takes far longer to settle where there are more than ten names. ``weighted``: marginals weigh
    as the inverse variance of their noise; False: all the same, as in the paper. ``consistent``: noisy marginals are
    first made to say the same of every column, by least squares; False: as they are, as in the paper. ``penalties``:
    what else the records should be like; ``margrave.models.particles`` has ready ones, of which ``KeepShare``,
    ``HideShare`` and ``HideMean`` look up their targets among the answers. Answers on half-spaces serve as these
    targets alone; one that no penalty is about is kept, as by ``KeepShare``. ``warm_epochs``: those of an estimate
    between rounds, which goes on from the model of the round before.

    The paper's descent is ``ParticleFit.of_paper()``: 1000 epochs of batches of 5 with 10 lines, by Adam. The
    defaults come within a tenth of its errors in a tenth of its time. Time grows with marginals · epochs · lines ·
    particles, about 4 ns of one core each; memory: ``cells``.

    **Privacy:** none is spent; post-processing of noisy answers. Errors: an InputError for answers of sets of codes
    and for constraints that tie too many codes together (``cells`` says the latter before anything is spent).

    Source: Donhauser, Abad, Hulkund, Yang (2024), Privacy-preserving data release leveraging optimal transport and
    particle gradient descent, Section 3, Algorithm 3. Departures: ``docs/privpgd.md``.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.CELL, EntryKind.SET}

    particles: int | None = None
    epochs: int = 200
    optimiser: str = "transport"
    batch: int = 1
    lines: int | None = None
    kept: float = 0.5
    rate: float = 1.0
    decay: float = 0.9
    directions: int = 200
    nominal: str = "ordered"
    weighted: bool = True
    consistent: bool = True
    penalties: tuple[Penalty | Constraint, ...] = ()
    warm_epochs: int = 50

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.particles is not None and self.particles < 1:
            raise InputError(f"There cannot be {self.particles} particles.", remedy="Ask for 1 or more.")
        if min(self.directions, self.warm_epochs) < 1:
            raise InputError("Particles need at least 1 direction, and 1 epoch between rounds.")
        check_nominal(self.nominal)
        self._schedule(between=False)
        object.__setattr__(self, "penalties", tuple(self.penalties))

    @staticmethod
    def of_paper(**changed: Any) -> ParticleFit:
        """With the descent of the paper, but for what is given."""
        paper: dict[str, Any] = {
            "particles": MANY, "epochs": 1000, "optimiser": "adam", "batch": 5, "lines": 10,
            "kept": 0.2, "rate": 0.1, "decay": 0.75, "weighted": False, "consistent": False,
        }  # fmt: skip
        return ParticleFit(**{**paper, **changed})

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> WeightsModel:
        """The records that the transcript teaches; with ``warm``, that model's records after some epochs more."""
        self.check(domain)
        embedding, total = Embedding.of(domain, self.nominal), transcript.total()
        targets = targets_of(
            embedding, transcript, rng, weighted=self.weighted, directions=self.directions, consistent=self.consistent,
            steps=STEPS if warm is None else QUICKLY,
        )  # fmt: skip
        ready = [Prepared(p, embedding) for p in with_targets(self.penalties, embedding, transcript)]
        particles = self._start(embedding, total, rng, warm)
        Descent(particles, targets, ready, self._schedule(between=warm is not None)).run(rng)
        return empirical(possible(embedding, particles), total)

    def check(self, domain: Domain) -> None:
        """Raise what would keep it from fitting this domain, before anything is spent."""
        check_zeros(domain)
        embedding = Embedding.of(domain, self.nominal)
        for penalty in self.penalties:
            check_penalty(penalty, embedding)

    def count(self, records: float) -> int:
        """How many particles there are, for so many records."""
        return self.particles or min(MANY, max(FEW, round(records)))

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The memory that fitting takes, at most.

        Every coordinate of a particle, for Adam with two moments, its share of a gradient, and the record that it
        becomes; as much again is set aside for targets and their projection, more where marginals are large. An
        InputError where none of the marginals tells the statistic of a constraint: its target would be missing.
        """
        self.check(domain)
        check_told(self.penalties, domain, cliques)
        return self._cells(self._base(domain), self._needed(domain, cliques))

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """``cells`` with each candidate added in turn: the same for all but large ones."""
        known, base, needed = set(cliques), self._base(domain), self._needed(domain, cliques)
        more = (needed if c in known else needed + self._needed(domain, [c]) for c in candidates)
        return np.array([self._cells(base, m) for m in more], dtype=np.float64)

    def _cells(self, base: int, needed: int) -> int:
        return base + max(base, needed)

    def _base(self, domain: Domain) -> int:
        """For every coordinate up to three numbers of four bytes, a share of one more; for every column a code."""
        dimensions, numbers = Embedding.of(domain, self.nominal).dimensions, 3 if self.optimiser == "adam" else 1
        return math.ceil((self.particles or MANY) * (0.5 * dimensions * (numbers + self.kept) + 0.5 * len(domain) + 1))

    def _needed(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The atoms of every marginal, and the lines on which one is projected."""
        embedding = Embedding.of(domain, self.nominal)
        sizes = {c: (domain.possible(c), len(embedding.coordinates(c))) for c in set(cliques)}
        lines = max((1.5 * min(self.directions, max(FEWEST, ENTRIES // n)) * n for n, _ in sizes.values()), default=0)
        return sum(n * (d + 2) for n, d in sizes.values()) + 2 * math.ceil(lines)

    def _schedule(self, *, between: bool) -> Schedule:
        epochs = min(self.warm_epochs, self.epochs) if between else self.epochs
        return Schedule(self.optimiser, epochs, self.batch, self.lines, self.kept, self.rate, self.decay)

    def _start(
        self, embedding: Embedding, total: float, rng: np.random.Generator, warm: Model | None
    ) -> AnyArray:
        """Anywhere in the cube; with a model, at its records, each a little aside, so that no two are at one point."""
        count = self.count(total)
        if warm is None:
            return rng.random((embedding.dimensions, count), dtype=np.float32)
        domain = embedding.domain
        found = embedding.embed(warm.sample(count, rng=rng)).astype(np.float32)
        steps = np.concatenate([np.full(embedding.points[a].shape[1], SPREAD / domain.size(a)) for a in domain])
        aside = rng.random(found.shape, dtype=np.float32) - np.float32(0.5)
        return found + aside * steps[:, None].astype(np.float32)
