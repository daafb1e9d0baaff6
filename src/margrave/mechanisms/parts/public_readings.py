"""The public marginals that an estimate uses, and the room that they take in its model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.public_prior import PublicPrior, pairs_of
from margrave.public_table import PublicTable
from margrave.transcript import Transcript
from margrave.types import Clique, Generator


@dataclass
class PublicReadings:
    """Public marginals that are read, and which of them keep their room.

    Two of them never hold the same pair of columns, unless they are exact.

    Args:
        prior: The public marginals and their scales.
        capacity: The room of the model.
        cliques: The marginals that are read.
        strong: Those of them that bring the estimate closer by far.
    """

    #: The share of the model's size that readings may take: the rest is for what is measured. They keep
    #: it until so much of the budget is spent.
    _read_share: ClassVar[float] = 0.1

    prior: PublicPrior
    capacity: Capacity
    cliques: list[Clique] = field(default_factory=list)
    strong: set[Clique] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        public: PublicTable,
        capacity: Capacity,
        cliques: Iterable[Clique],
        transcript: Transcript,
        noise: float,
    ) -> PublicReadings:
        """Return no readings yet of a public table, raked to columns measured with this noise."""
        prior = PublicPrior(public, capacity.domain, cliques, transcript.total(), noise)
        prior.recalibrate(transcript)
        return cls(prior, capacity)

    @property
    def evidence(self) -> Transcript:
        """The readings as entries."""
        return self.prior.as_evidence(self.cliques)

    def choose(
        self, measured: Transcript, relevance: Mapping[Clique, float], rng: Generator
    ) -> Any:
        """Read the marginals expected to bring the estimate closest to the truth, a few at a time.

        Returns:
            The state of the fit with all of them.
        """
        # A reading that is expected to bring the estimate closer by so many records, as a share
        # of all, keeps its room in the model to the end: columns that nearly follow from each
        # other. Where such a one was dropped and what had been measured by then left no room to
        # measure it, errors were half as large again.
        strong_gain_share = 0.35
        fit, domain = self.capacity.fit, self.capacity.domain
        self.cliques = [r for r in relevance if len(r) == 1 and r in self.prior.counts]
        start = fit.init(domain, rng=rng)
        state = fit.update(start, measured + self.evidence, rng=rng)
        while len(self.cliques) < 4 * len(domain):
            known = list(dict.fromkeys((*measured.cliques, *self.cliques)))
            fitting = self.capacity.up_to(self._limit, self._unread(relevance), known)
            estimates = fit.model(state).answer(fitting, rng=rng, scale=self.prior.each)
            closer = {r: self.prior.expected_gain(r, estimates[r]) for r in fitting}
            new = self._best({r: relevance[r] * closer[r] for r in fitting}, known)
            if not new:
                break
            self.cliques += new
            self.strong |= {r for r in new if closer[r] >= strong_gain_share * measured.total()}
            state = fit.update(state, measured + self.evidence, rng=rng)
        return state

    def keeping(self, spent: float) -> list[Clique]:
        """Return those that keep their room: all for a while, then the exact and the strong ones."""
        early = self.prior.exact or spent <= self._read_share
        return [r for r in self.cliques if early or r in self.strong]

    def candidates(
        self,
        askable: Sequence[Clique],
        measured: Collection[Clique],
        share: float,
        keep: Collection[Clique],
    ) -> list[Clique]:
        """Return AIM's candidates: those within a share of the model's size, or that do not enlarge it.

        Readings that are not to ``keep`` their room take none from what could be measured.
        """
        fitting = set(self.capacity.within(askable, list(dict.fromkeys((*measured, *keep))), share))
        known = list(dict.fromkeys((*measured, *self.cliques)))
        others = [r for r in askable if r not in fitting]
        fitting.update(self.capacity.within(others, known, 0.0))
        return [r for r in askable if r in fitting]

    def revise(self, transcript: Transcript, share: float, keep: Sequence[Clique]) -> Transcript:
        """Take a new measurement into account, drop what it replaces, and return the readings."""
        self.prior.recalibrate(transcript)
        read = self.prior.informative(self.cliques)
        self.cliques = self.that_fit(transcript.cliques, read, share, self.prior.informative(keep))
        return self.evidence

    def that_fit(
        self,
        measured: Collection[Clique],
        read: Sequence[Clique],
        share: float,
        keep: Sequence[Clique],
    ) -> list[Clique]:
        """Return those to keep, and as many of the others as the model has room for."""
        # From then on the model with readings may take so much of its size, and more only for
        # what is measured and for strong readings. More would be rounds of twice the time, for
        # nothing that shows in errors.
        fill_share = 0.2
        if len(keep) == len(read):
            return list(read)
        fit, domain = self.capacity.fit, self.capacity.domain
        limit, kept = self.capacity.cells(min(share, fill_share)), list(keep)
        for r in read:
            if r not in keep and (len(r) == 1 or fit.cells(domain, (*measured, *kept, r)) <= limit):
                kept.append(r)
        return kept

    @property
    def _limit(self) -> float:
        return self.capacity.cells(self._read_share)

    def _unread(self, relevance: Mapping[Clique, float]) -> list[Clique]:
        """Return public marginals that could be read: a pair is read twice only if it is exact."""
        counts, read = self.prior.counts, set(self.cliques)
        taken = set() if self.prior.exact else pairs_of(self.cliques)
        left = (r for r in relevance if len(r) > 1 and r in counts and r not in read)
        return [r for r in left if not pairs_of([r]) & taken]

    def _best(self, gains: Mapping[Clique, float], known: Sequence[Clique]) -> list[Clique]:
        """Return the marginals of the largest gains without a common pair, as far as they fit."""
        fit, domain = self.capacity.fit, self.capacity.domain
        new: list[Clique] = []
        for r in sorted((r for r in gains if gains[r] > 0), key=lambda r: -gains[r]):
            few = len(new) < max(4, len(domain) // 3)
            if few and not pairs_of([r]) & pairs_of(new):
                new += [r] if fit.cells(domain, (*known, *new, r)) <= self._limit else []
        return new
