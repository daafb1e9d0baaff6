"""Constraints: penalties on statistics that find their targets in the noisy answers.

Source: Donhauser, Abad, Hulkund, Yang (2024), Section 4.4, Appendix B. Departures: ``docs/privpgd.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import HalfSpace, project_array
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.moment_penalty import Statistic
from margrave.models.particles.penalties import Penalty, on_lines
from margrave.models.particles.targets import column_counts
from margrave.models.terms import Term, terms_of
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique


class ConstraintPenalty(ABC):
    """A penalty that finds its target in the noisy answers: ``PrivPGD(constraints=...)`` asks what it needs.

    **Privacy:** none is spent here; the target is a function of answers that were paid for.
    """

    weight: float
    coefficients: Mapping[Attribute, float]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns with a coefficient."""
        return tuple(self.coefficients)

    def check(self, embedding: Embedding) -> None:
        """Raise an InputError where the columns are not what it needs."""
        on_lines(embedding, self.attributes)

    def question(self, domain: Domain) -> HalfSpace | None:
        """Return the query that must be measured for it; None if marginals determine the target."""
        return None

    def needs(self, domain: Domain) -> Iterable[Clique]:
        """Return the marginals that determine its target. Each must be part of a measured or
        queried one.
        """
        return [(a,) for a in self.attributes]

    @abstractmethod
    def with_target(self, embedding: Embedding, transcript: Transcript) -> Statistic:
        """Return the penalty with its target."""


@dataclass(frozen=True, kw_only=True)
class KeepShare(ConstraintPenalty):
    """The share of the records beyond a threshold, kept as in the private table. A record counts if

        Σ_a coefficient_a · z_a > threshold,    z_a = (2x + 1) / 2k for code x of k

    for instance 0.6 · age + 0.4 · cost > 0.7, where 0 is the low end of a column's range and 1 the
    high end. A record with a missing value in one of the columns does not count.

    The rows are asked for the smooth share, the mean of sigmoid(slope · (score − threshold)), and
    the particles' smooth share is fitted to it. The paper's slope is 5. Records far from the
    threshold then move too, and the smooth share may be right while the share is not. A steeper one
    moves records near the threshold. ``slope=None`` asks for the share itself and fits a smooth one
    of a steep slope.

    Privacy:
        None spent by it; see ``ConstraintPenalty``.

    >>> kept = KeepShare(coefficients={"age": 0.6, "cost": 0.4}, threshold=0.7)
    >>> kept.question(Domain.of({"age": 9, "cost": 5})).describe
    '0.6 age + 0.4 cost > 0.7, smoothly with slope 20'
    """

    coefficients: Mapping[Attribute, float]
    threshold: float
    weight: float = 10.0
    slope: float | None = 20.0

    hidden: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.coefficients:
            raise InputError(
                "A share needs columns with coefficients.", remedy="Name at least one column."
            )

    def check(self, embedding: Embedding) -> None:
        """Raise ``InputError`` unless its columns are numeric and its query can be measured."""
        super().check(embedding)
        self.question(embedding.domain)

    def question(self, domain: Domain) -> HalfSpace:
        """Return the count of its records."""
        return HalfSpace.of(domain, self.coefficients, self.threshold, self.slope)

    def needs(self, domain: Domain) -> Iterable[Clique]:
        """Return the marginal of its columns."""
        return [domain.clique(self.attributes)]

    def with_target(self, embedding: Embedding, transcript: Transcript) -> Statistic:
        """Return the penalty with the noisy answer for its target."""
        # Slope of the particles' share if the share itself was measured.
        particle_slope = 50.0
        return Statistic(
            coefficients=self.coefficients,
            target=share_of(self.question(embedding.domain), embedding.domain, transcript),
            weight=self.weight,
            threshold=self.threshold,
            slope=particle_slope if self.slope is None else self.slope,
            hidden=self.hidden,
        )


@dataclass(frozen=True, kw_only=True)
class HideShare(KeepShare):
    """The share of the records beyond a threshold, kept away from its private value: see
    ``KeepShare``.

    The records alone do not reveal it. The release file does: the noisy answer is in its
    transcript. Who must not know the share may get the rows, not the file.
    """

    weight: float = 1e-5

    hidden: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class HideMean(ConstraintPenalty):
    """The mean of Σ_a coefficient_a · z_a, kept away from its noisy value. It needs no further
    query.

    z_a is a position in the unit interval as in ``KeepShare``; missing values lie in its middle.
    See ``HideShare`` for who may see what.
    """

    coefficients: Mapping[Attribute, float]
    weight: float = 1e-5

    def with_target(self, embedding: Embedding, transcript: Transcript) -> Statistic:
        """Return the penalty with the mean of the noisy marginals for its target."""
        whole = _whole(embedding.domain, transcript)
        means = {a: _mean(embedding, whole, a) for a in self.attributes}
        target = sum(c * means[a] for a, c in self.coefficients.items())
        return Statistic(
            coefficients=self.coefficients, target=target, weight=self.weight, hidden=True
        )


def check_targets(
    penalties: Iterable[Penalty | ConstraintPenalty], domain: Domain, cliques: Iterable[Clique]
) -> None:
    """Raise ``InputError`` for a constraint whose target none of the marginals determines."""
    known = [set(c) for c in cliques]
    for penalty in penalties:
        if isinstance(penalty, ConstraintPenalty):
            for clique in penalty.needs(domain):
                if not any(set(clique) <= c for c in known):
                    raise _untold(clique)


def with_targets(
    penalties: Iterable[Penalty | ConstraintPenalty], embedding: Embedding, transcript: Transcript
) -> list[Penalty]:
    """Return the penalties, constraints with their targets. Half-spaces of no constraint remain."""
    given, domain = list(penalties), embedding.domain
    about = {p.question(domain) for p in given if isinstance(p, ConstraintPenalty)}
    asked = dict.fromkeys(a.query for a in transcript.answers if isinstance(a.query, HalfSpace))
    given += [
        KeepShare(
            coefficients=dict(zip(q.clique, q.coefficients, strict=True)),
            threshold=q.threshold,
            slope=q.slope,
        )
        for q in asked
        if q not in about
    ]
    return [
        p.with_target(embedding, transcript) if isinstance(p, ConstraintPenalty) else p
        for p in given
    ]


def share_of(query: HalfSpace, domain: Domain, transcript: Transcript) -> float:
    """Return a share of the records by the noisy answers to its query, else by the best measured
    marginal.
    """
    known = [(float(a.value), a.scale**2) for a in transcript.answers if a.query == query]
    if not known:
        known = sorted((_counted(query, t) for t in _whole(domain, transcript) if set(query.clique) <= set(t.clique)),
                       key=lambda pair: pair[1])[:1]  # fmt: skip
    if not known:
        raise _untold(query.clique)
    weight = sum(1.0 / variance for _, variance in known)
    share = (
        sum(value / variance for value, variance in known)
        / weight
        / query.max_contribution
        / transcript.total()
    )
    return min(max(share, 0.0), 1.0)


def _counted(query: HalfSpace, term: Term) -> tuple[float, float]:
    values, variances = (
        project_array(v, term.clique, query.clique) for v in (term.values, term.scales**2)
    )
    inside = tuple(slice(k) for k in query.lines)
    return float(query.count(values)), float((query.counted() ** 2 * variances[inside]).sum())


def _whole(domain: Domain, transcript: Transcript) -> list[Term]:
    return terms_of(domain, [m for m in transcript.measurements if m.query.is_identity])


def _mean(embedding: Embedding, whole: Sequence[Term], attribute: Attribute) -> float:
    if not any(attribute in term.clique for term in whole):
        raise _untold((attribute,))
    counts, places = (
        column_counts(embedding.domain, whole, attribute),
        embedding.points[attribute][:, 0],
    )
    return float(
        counts @ places / counts.sum() if counts.any() else places.mean()
    )  # noise may leave no count above 0


def _untold(clique: Clique) -> InputError:
    return InputError(
        f"No answer determines the statistic of {', '.join(clique)} that a constraint is about.",
        remedy="Give it to PrivPGD(constraints=...), which asks for it, or measure a marginal of all its columns.",
    )
