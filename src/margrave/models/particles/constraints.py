"""Constraints: penalties on statistics that find their targets in the noisy answers.

Source: Donhauser, Abad, Hulkund, Yang (2024), Section 4.4, Appendix B. Departures: ``docs/privpgd.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from margrave.errors import InputError
from margrave.marginal import HalfSpace, project_array
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.penalties import Penalty, on_lines
from margrave.models.particles.statistic import Statistic
from margrave.models.particles.targets import column_counts
from margrave.models.terms import Term, terms_of
from margrave.schema.domain import Domain
from margrave.transcript import Transcript
from margrave.typing import Attribute, Clique


class Constraint(ABC):
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
        """What must be asked for it; None where marginals tell it."""
        return None

    def needs(self, domain: Domain) -> Iterable[Clique]:
        """The marginals that tell it, each of which must be part of one that is measured, or asked about."""
        return [(a,) for a in self.attributes]

    @abstractmethod
    def told(self, embedding: Embedding, transcript: Transcript) -> Statistic:
        """The penalty with its target."""


@dataclass(frozen=True, kw_only=True)
class KeepShare(Constraint):
    """The share of the records beyond a threshold, as it is in the private table: those with

        Σ_a coefficient_a · z_a > threshold,    z_a = (2x + 1) / 2k for code x of k

    for instance 0.6 · age + 0.4 · cost > 0.7, where 0 is the low end of a column's range and 1 the high end. A record
    that misses one of the columns is not among them.

    What is asked of the rows is the smooth share, the mean of sigmoid(slope · (score − threshold)), and that of the
    particles is drawn to it. The paper's slope is 5; then records far from the threshold move as well, and the smooth
    share may come right while the share itself does not. A steeper one moves those near the threshold.
    ``slope=None`` asks for the share itself, and draws the particles' smooth one, of slope ``STEEP``, to it.

    **Privacy:** none is spent by it; see ``Constraint``.

    >>> kept = KeepShare(coefficients={"age": 0.6, "cost": 0.4}, threshold=0.7)
    >>> kept.question(Domain.of({"age": 9, "cost": 5})).words
    '0.6 age + 0.4 cost > 0.7, smoothly with slope 20'
    """

    coefficients: Mapping[Attribute, float]
    threshold: float
    weight: float = 10.0
    slope: float | None = 20.0

    hidden: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.coefficients:
            raise InputError("A share needs columns with coefficients.", remedy="Name at least one column.")

    def check(self, embedding: Embedding) -> None:
        """Its columns are on lines, and its question can be asked."""
        super().check(embedding)
        self.question(embedding.domain)

    def question(self, domain: Domain) -> HalfSpace:
        """The count of its records."""
        return HalfSpace.of(domain, self.coefficients, self.threshold, self.slope)

    def needs(self, domain: Domain) -> Iterable[Clique]:
        """The marginal of its columns."""
        return [domain.clique(self.attributes)]

    def told(self, embedding: Embedding, transcript: Transcript) -> Statistic:
        """The penalty with the noisy answer for its target."""
        return Statistic(
            coefficients=self.coefficients,
            target=share_of(self.question(embedding.domain), embedding.domain, transcript),
            weight=self.weight,
            threshold=self.threshold,
            slope=STEEP if self.slope is None else self.slope,
            hidden=self.hidden,
        )


@dataclass(frozen=True, kw_only=True)
class HideShare(KeepShare):
    """The share of the records beyond a threshold, far from what it is in the private table: see ``KeepShare``.

    Records alone do not tell it. The release file does: the noisy answer from which they are kept away is among its
    answers. Who must not learn the share may be given the rows, not the file.
    """

    weight: float = 1e-5

    hidden: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class HideMean(Constraint):
    """The mean of Σ_a coefficient_a · z_a, far from what the noisy marginals say: nothing more is asked for it.

    z_a is a place in the unit interval as in ``KeepShare``; what is missing lies in its middle. ``HideShare`` tells who
    may see what.
    """

    coefficients: Mapping[Attribute, float]
    weight: float = 1e-5

    def told(self, embedding: Embedding, transcript: Transcript) -> Statistic:
        """The penalty with the mean of the noisy marginals for its target."""
        whole = _whole(embedding.domain, transcript)
        means = {a: _mean(embedding, whole, a) for a in self.attributes}
        target = sum(c * means[a] for a, c in self.coefficients.items())
        return Statistic(coefficients=self.coefficients, target=target, weight=self.weight, hidden=True)


STEEP = 50.0
"""The slope of the particles' share where the share itself was asked for."""


def check_told(penalties: Iterable[Penalty | Constraint], domain: Domain, cliques: Iterable[Clique]) -> None:
    """Raise an InputError for a constraint that none of the marginals tells."""
    known = [set(c) for c in cliques]
    for penalty in penalties:
        if isinstance(penalty, Constraint):
            for clique in penalty.needs(domain):
                if not any(set(clique) <= c for c in known):
                    raise _untold(clique)


def with_targets(
    penalties: Iterable[Penalty | Constraint], embedding: Embedding, transcript: Transcript
) -> list[Penalty]:
    """The penalties, constraints with their targets; half-spaces that none of them is about are kept."""
    given, domain = list(penalties), embedding.domain
    about = {p.question(domain) for p in given if isinstance(p, Constraint)}
    asked = dict.fromkeys(a.query for a in transcript.answers if isinstance(a.query, HalfSpace))
    given += [
        KeepShare(coefficients=dict(zip(q.clique, q.coefficients, strict=True)), threshold=q.threshold, slope=q.slope)
        for q in asked
        if q not in about
    ]
    return [p.told(embedding, transcript) if isinstance(p, Constraint) else p for p in given]


def share_of(query: HalfSpace, domain: Domain, transcript: Transcript) -> float:
    """A share of the records, by the noisy answers to its query; without any, by the best marginal measured."""
    known = [(float(a.value), a.scale**2) for a in transcript.answers if a.query == query]
    if not known:
        known = sorted((_counted(query, t) for t in _whole(domain, transcript) if set(query.clique) <= set(t.clique)),
                       key=lambda pair: pair[1])[:1]  # fmt: skip
    if not known:
        raise _untold(query.clique)
    weight = sum(1.0 / variance for _, variance in known)
    share = sum(value / variance for value, variance in known) / weight / query.most / transcript.total()
    return min(max(share, 0.0), 1.0)


def _counted(query: HalfSpace, term: Term) -> tuple[float, float]:
    """The query's answer on a noisy marginal, and its variance."""
    values, variances = (project_array(v, term.clique, query.clique) for v in (term.values, term.scales**2))
    inside = tuple(slice(k) for k in query.lines)
    return float(query.count(values)), float((query.counted() ** 2 * variances[inside]).sum())


def _whole(domain: Domain, transcript: Transcript) -> list[Term]:
    """The marginals that were measured with every code."""
    return terms_of(domain, [m for m in transcript.measurements if m.query.is_identity])


def _mean(embedding: Embedding, whole: Sequence[Term], attribute: Attribute) -> float:
    """A column's mean place, by all noisy marginals that hold it."""
    if not any(attribute in term.clique for term in whole):
        raise _untold((attribute,))
    counts, places = column_counts(embedding.domain, whole, attribute), embedding.points[attribute][:, 0]
    return float(counts @ places / counts.sum() if counts.any() else places.mean())  # noise may leave no count above 0


def _untold(clique: Clique) -> InputError:
    return InputError(
        f"No answer tells the statistic of {', '.join(clique)} that a constraint is about.",
        remedy="Give it to PrivPGD(constraints=...), which asks for it, or measure a marginal of all its columns.",
    )
