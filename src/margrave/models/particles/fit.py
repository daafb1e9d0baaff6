"""ParticleFit: from noisy marginals to records, by moving particles."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.models.cost import CELLS_PER_MB, Cost, FitLoad
from margrave.models.empty_codes import WithoutEmpty
from margrave.models.entries import ALL, EntryKind, check_kinds
from margrave.models.particles.constraints import ConstraintPenalty, check_targets, with_targets
from margrave.models.particles.descent import Descent, Schedule
from margrave.models.particles.embedding import Embedding, check_nominal
from margrave.models.particles.feasible import check_zeros, possible
from margrave.models.particles.penalties import Penalty, Prepared, check_penalty
from margrave.models.particles.projection import ENTRIES, MIN_DIRECTIONS, STEPS
from margrave.models.particles.targets import targets_of
from margrave.models.protocol import Needs, SimpleFit
from margrave.models.weights.model import WeightsModel, empirical
from margrave.transcript import Transcript
from margrave.types import AnyArray, Clique, FloatArray

#: Default number of particles: the number of records, clipped to this range.
FEW, MANY = 10_000, 100_000


@dataclass(frozen=True, kw_only=True)
class ParticleFit(SimpleFit):
    """Records whose marginals are near the measured ones in sliced Wasserstein distance: particles, moved by gradients.

        0. agree:   the noisy marginals nearest to those measured that say the same of every column
        1. project: for every marginal S, the distribution target_S that is nearest to the noisy shares in SW1
        2. move:    minimize Σ_S weight_S · SW2²(particles_S, target_S) + Σ_R weight_R · R(particles)
        3. finish:  every particle becomes the record of the nearest codes that can occur

    Codes are points in the unit cube (``Embedding``), so that a near miss costs little where columns are ordered. The
    model is the distribution of the records (``empirical``).

    ``particles``: None means the estimated number of records, from 10,000 to 100,000. ``epochs``: each sees every
    marginal once, ``batch`` of them a step, along ``n_projections`` fresh random lines (None: as many as it has
    coordinates, up to 64). ``optimizer``: "transport" moves the particles of a marginal ``rate`` of the way to where
    they have the target's distribution along its lines; "adam" is the paper's (``Descent``). ``update_fraction``: the
    share of the particles that a step moves. The rate falls 20 times by the factor ``decay``, after equal numbers of
    epochs (every 50 of 1000): with fewer epochs it falls as far, sooner. ``n_directions``: along which step 1 sees a
    marginal, fewer where it has more than 20,000 cells. ``embedding``: columns of names are embedded "ordered", as in
    the paper, or "equidistant", which takes far longer to settle where there are more than ten names. ``weighted``:
    marginals weigh as the inverse variance of their noise; False: all the same, as in the paper. ``make_consistent``:
    noisy marginals are first made to say the same of every column, by least squares; False: as they are, as in the
    paper. ``projection``: step 1 by a "quick" recipe, or by the "published" one with targets of as many particles.
    ``penalties``: what else the records should be like; ``margrave.models.particles`` has ready ones, of which
    ``KeepShare``, ``HideShare`` and ``HideMean`` look up their targets among the answers. Answers on half-spaces
    serve as these targets alone; one that no penalty is about is kept, as by ``KeepShare``. ``warm_epochs``: those of
    a round, which goes on from the records of the round before. ``empty_below``: as in ``GraphicalFit``.

    The paper's form is ``ParticleFit.of_paper()``: 1000 epochs of batches of 5 with 10 lines, by Adam. The
    defaults come within a tenth of its errors in a tenth of its time. Time grows with marginals · epochs · lines ·
    particles, about 4 ns of one core each; memory: ``cells``.

    **Privacy:** none is spent; post-processing of noisy answers. Errors: an InputError for answers of sets of codes
    and for constraints that tie too many codes together (``cells`` says the latter before anything is spent).

    Source: Donhauser, Abad, Hulkund, Yang (2024), Privacy-preserving data release leveraging optimal transport and
    particle gradient descent, Section 3, Algorithm 3. Departures: ``docs/privpgd.md``.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {
        EntryKind.CELL,
        EntryKind.SET,
        EntryKind.COUNT_MAP,
        EntryKind.WEIGHTED_MAP,
    }
    finishes_anew: ClassVar[bool] = False

    particles: int | None = None
    epochs: int = 200
    optimizer: str = "transport"
    batch: int = 1
    n_projections: int | None = None
    update_fraction: float = 0.5
    rate: float = 1.0
    decay: float = 0.9
    n_directions: int = 200
    embedding: str = "ordered"
    weighted: bool = True
    make_consistent: bool = True
    projection: Literal["quick", "published"] = "quick"
    penalties: tuple[Penalty | ConstraintPenalty, ...] = ()
    warm_epochs: int = 50
    empty_below: float = WithoutEmpty.below

    def __post_init__(self) -> None:
        check_fields(self)
        if self.particles is not None and self.particles < 1:
            raise InputError(
                f"There cannot be {self.particles} particles.", remedy="Ask for 1 or more."
            )
        if min(self.n_directions, self.warm_epochs) < 1:
            raise InputError("Particles need at least 1 direction, and 1 epoch between rounds.")
        check_nominal(self.embedding)
        self._schedule(between=False)
        object.__setattr__(self, "penalties", tuple(self.penalties))

    @staticmethod
    def of_paper(**changed: Any) -> ParticleFit:
        """Return the fit with the paper's projection and descent, with some parameters changed."""
        paper: dict[str, Any] = {
            "particles": MANY, "epochs": 1000, "optimizer": "adam", "batch": 5, "n_projections": 10,
            "update_fraction": 0.2, "rate": 0.1, "decay": 0.75, "weighted": False, "make_consistent": False,
            "projection": "published",
            "empty_below": 0.0,
        }  # fmt: skip
        return ParticleFit(**{**paper, **changed})

    def estimate(
        self,
        domain: Domain,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        warm: WeightsModel | None = None,
    ) -> WeightsModel:
        """Return records fitted to the transcript; from ``warm``, its records after some more
        epochs.
        """
        # Steps of a projection between rounds.
        steps = 1000
        self._check_domain(domain)
        check_kinds(self, transcript)
        embedding, total = Embedding.of(domain, self.embedding), transcript.total()
        targets = targets_of(
            embedding,
            transcript,
            rng,
            weighted=self.weighted,
            directions=self.n_directions,
            consistent=self.make_consistent,
            steps=STEPS if warm is None else steps,
            recipe=self.projection,
            particles=self.count(total),
        )
        ready = [
            Prepared(p, embedding) for p in with_targets(self.penalties, embedding, transcript)
        ]
        particles = self._start(embedding, total, rng, warm)
        Descent(particles, targets, ready, self._schedule(between=warm is not None)).run(rng)
        return empirical(possible(embedding, particles), total)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise ``InputError`` if constraints join too many codes, or marginals do not determine a
        penalty's target.
        """
        self._check_domain(domain)
        check_targets(self.penalties, domain, needs.cliques)
        super().check(domain, needs)

    def _check_domain(self, domain: Domain) -> None:
        check_zeros(domain)
        embedding = Embedding.of(domain, self.embedding)
        for penalty in self.penalties:
            check_penalty(penalty, embedding)

    def count(self, records: float) -> int:
        """Return the number of particles for a number of records."""
        return self.particles or min(MANY, max(FEW, round(records)))

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the memory that fitting takes, at most.

        Every coordinate of a particle, for Adam with two moments, its share of a gradient, and the record that it
        becomes; as much again is set aside for targets and their projection, more where marginals are large.
        """
        check_zeros(domain)
        return self._cells(self._base(domain), self._needed(domain, cliques))

    def sizes_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """Return ``cells`` with each candidate added in turn: the same for all but large ones."""
        known, base, needed = set(cliques), self._base(domain), self._needed(domain, cliques)
        more = (needed if c in known else needed + self._needed(domain, [c]) for c in candidates)
        return np.array([self._cells(base, m) for m in more], dtype=np.float64)

    def _cells(self, base: int, needed: int) -> int:
        return base + max(base, needed)

    def _base(self, domain: Domain) -> int:
        dimensions, numbers = (
            Embedding.of(domain, self.embedding).dimensions,
            3 if self.optimizer == "adam" else 1,
        )
        return math.ceil(
            (self.particles or MANY)
            * (0.5 * dimensions * (numbers + self.update_fraction) + 0.5 * len(domain) + 1)
        )

    def _needed(self, domain: Domain, cliques: Collection[Clique]) -> int:
        embedding = Embedding.of(domain, self.embedding)
        sizes = {c: (domain.possible(c), len(embedding.coordinates(c))) for c in set(cliques)}
        lines = max(
            (
                1.5 * min(self.n_directions, max(MIN_DIRECTIONS, ENTRIES // n)) * n
                for n, _ in sizes.values()
            ),
            default=0,
        )
        return sum(n * (d + 2) for n, d in sizes.values()) + 2 * math.ceil(lines)

    def with_penalties(self, penalties: Sequence[Penalty | ConstraintPenalty]) -> ParticleFit:
        """Return the fit with more penalties."""
        return replace(self, penalties=(*self.penalties, *penalties))

    def on_learned(self, domain: Domain) -> ParticleFit:
        """Return the fit without penalties on columns that the domain lacks."""
        kept = tuple(p for p in self.penalties if set(domain).issuperset(p.attributes))
        return replace(self, penalties=kept)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of moving every particle towards every marginal, in every epoch."""
        seconds_per_move = 25e-9  # of one particle towards one marginal
        seconds_per_constrained_move = 60e-9
        working_copies = 3.0  # the memory of a fit, in particles
        # a round moves them towards what is measured by then: half of all on average
        epochs = self.epochs + load.rounds / 2 * self.warm_epochs
        move = seconds_per_constrained_move if domain.zeros else seconds_per_move
        seconds = self.count(load.rows) * load.measured * epochs * move
        mb = working_copies * self.cells(domain, load.candidates) / CELLS_PER_MB
        return Cost(seconds, mb)

    def _schedule(self, *, between: bool) -> Schedule:
        epochs = min(self.warm_epochs, self.epochs) if between else self.epochs
        return Schedule(
            self.optimizer,
            epochs,
            self.batch,
            self.n_projections,
            self.update_fraction,
            self.rate,
            self.decay,
        )

    def _start(
        self,
        embedding: Embedding,
        total: float,
        rng: np.random.Generator,
        warm: WeightsModel | None,
    ) -> AnyArray:
        """Return uniform points; with a model, points near its records, all different."""
        # Initial distance of a model's particles from their codes' points, as a share of that to
        # the next code.
        spread = 0.5
        count = self.count(total)
        if warm is None:
            return rng.random((embedding.dimensions, count), dtype=np.float32)
        domain = embedding.domain
        found = embedding.embed(warm.sample(count, rng=rng)).astype(np.float32)
        steps = np.concatenate(
            [np.full(embedding.points[a].shape[1], spread / domain.size(a)) for a in domain]
        )
        aside = rng.random(found.shape, dtype=np.float32) - np.float32(0.5)
        return found + aside * steps[:, None].astype(np.float32)
