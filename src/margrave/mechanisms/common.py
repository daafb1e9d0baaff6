"""What mechanisms share: the protocol, sensible defaults, and the assembly of a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np

from margrave.errors import InputError, ModelTooLargeError
from margrave.marginal import TOTAL, Queries, closure
from margrave.models import FITS
from margrave.models.entries import EntryKind, not_taken
from margrave.models.protocol import Fit, Model
from margrave.models.weights import averaged
from margrave.privacy import Gaussian, Private, Unit, size_is_public
from margrave.privacy.scores import on_grid
from margrave.release import Release
from margrave.release.reference import exact_answers
from margrave.schema.domain import Domain
from margrave.transcript import Hindsight, Transcript
from margrave.typing import Clique, FloatArray
from margrave.workload import Workload

T = TypeVar("T")

Progress = Callable[[str, float], None]
"""Told a stage and the fraction done, both functions of public values."""

LOOKED_BACK = 15_000_000
"""The most cells that are computed at a time to see how far estimates were off, when a mechanism has ended."""

FOR_TOTAL = Fraction(1, 50)
"""The share of the budget that the number of records costs, where it is not public and no marginal tells it."""

CELLS_PER_MB = 2**20 // 8
"""Model sizes count 8 bytes a cell, as in the papers."""

OTHERWISE = {
    EntryKind.MERGED: "rare=0 (--rare 0)",
    EntryKind.CELL: 'granularity="marginal" (--granularity marginal)',
    EntryKind.SET: 'granularity="marginal" and a workload instead of queries',
}
"""How a mechanism is told not to measure a kind, where it can be told."""

LARGEST_MODEL_MB = 65_536.0
"""The largest model where no other limit is given: estimating one of 8.6 billion cells takes hours, beyond it days."""


@dataclass(frozen=True)
class Step:
    """Some marginals that will be measured with the same noise: ``marginals`` of ``cliques``.

    ``adaptive``: an estimate follows each, to choose the next. ``at_most``: there may be fewer, with less noise.
    ``single``: they are single counts from these marginals.
    """

    what: str
    cliques: Sequence[Clique]
    marginals: int
    scale: float
    adaptive: bool = False
    at_most: bool = False
    single: bool = False

    @classmethod
    def of(cls, what: str, cliques: Sequence[Clique], rho_each: Fraction, unit: Unit) -> Step:
        """All of these cliques, each for its share of the budget."""
        return cls(what, cliques, len(cliques), Gaussian.scale_for(rho_each, unit))


class Mechanism(Protocol):
    """A frozen keyword-only dataclass with a plain ``run`` that reads like its paper's pseudo-code.

    One with ``check(domain, unit)`` is asked before the table is read, and by a dry run: it raises what would keep a
    run from its end, as far as public inputs tell it. A public table that is not there yet is no matter of ``check``.
    """

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Every marginal it may ask for, so that one scan of the table serves all."""
        ...

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """How ``run`` will spend rho on measurements, in its order: what a dry run shows; tests compare the two."""
        ...

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Ask the gate, fit, and return the release. ``rng`` touches post-processing only."""
        ...

    def config(self) -> dict[str, Any]:
        """Its name and parameters, as plain data for the certificate."""
        ...


def parameter(default: T, words: str, *, above: float | None = None, least: float | None = None) -> T:
    """A field of a mechanism that the command line offers as an option: what its help says, and a number's bound.

    A number is above ``above``, or at least ``least``. Its type is ``int``, ``float``, ``Fraction``, ``str`` or
    ``bool``, or one of them or None.
    """
    return field(default=default, metadata={"words": words, "above": above, "least": least})


def silent(stage: str, fraction: float) -> None:
    """Progress that nobody listens to."""


def one_way(domain: Domain) -> list[Clique]:
    """Each attribute on its own."""
    return [(a,) for a in domain]


def workload_or_default(workload: Workload | None, domain: Domain, ways: int = 3) -> Workload:
    """The workload given, its columns checked and in the domain's order; or all marginals of three columns, or two."""
    return Workload.all_kway(domain, ways) if workload is None else Workload.of(domain, workload.weights)


def split(rho: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Shares of rho in proportion to the weights, that sum to rho exactly."""
    scale = 2.0**40 / max(weights)
    parts = [max(1, round(w * scale)) for w in weights]
    return [rho * Fraction(p, sum(parts)) for p in parts]


def total_steps(domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
    """Asking for the number of records, where it is private."""
    if size_is_public(unit):
        return []
    scale = Gaussian.scale_for(rho * FOR_TOTAL, unit, TOTAL)
    return [Step("the number of records", [TOTAL.counted_in(domain)], 1, scale, single=True)]


def ask_total(private: Private) -> None:
    """Ask for the number of records, where it is private."""
    if not size_is_public(private.unit):
        private.measure_queries([TOTAL], Gaussian(rho=private.rho * FOR_TOTAL))


def check_fit(
    fit: Fit,
    domain: Domain,
    cliques: Collection[Clique],
    max_model_mb: float | None = None,
    *,
    adaptive: bool = False,
    kinds: Collection[EntryKind] = (),
) -> None:
    """Refuse, before anything is spent, a fit that cannot serve, and a model too large whatever is chosen.

    ``cliques`` are those that it has at least; without a size, ``LARGEST_MODEL_MB`` is the limit. ``adaptive``: it is
    to estimate what was not measured, and one that cannot has ``serves``. ``kinds``: what else than whole marginals the
    run may give it; a fit that cannot use some kind says in ``entries`` which ones it uses.
    """
    _check_kinds(fit, kinds)
    limit = LARGEST_MODEL_MB if max_model_mb is None else max_model_mb
    cells = fit.cells(domain, cliques)
    if not cells <= limit * CELLS_PER_MB:
        widest = max({a for c in cliques for a in c}, key=lambda a: (domain.size(a), -domain.index(a)))
        constrained = " and its constraints" if domain.zeros else ""
        other = "name a smaller workload" if max_model_mb is None else "raise max_model_mb"
        raise ModelTooLargeError(
            f"The smallest model of this domain{constrained} has {cells:,} cells, above {limit:g} MB;"
            f" column {widest!r} has the most codes, {domain.size(widest):,}.",
            remedy=f"Give it fewer bins or categories, leave it out, or {other}.",
        )
    serves = getattr(fit, "serves", None)
    if serves is not None:
        serves(domain, adaptive=adaptive)


def _check_kinds(fit: Fit, kinds: Collection[EntryKind]) -> None:
    """Refuse a fit that cannot use what the run may measure."""
    lacking = not_taken(fit, kinds)
    if lacking:
        others = [kind.__name__ for kind in FITS.values() if not not_taken(kind, kinds)]
        names = f", such as {others[0]}()" if others else ""
        ways = [OTHERWISE[kind] for kind in lacking if kind in OTHERWISE]
        raise InputError(
            f"{type(fit).__name__} cannot be fitted to {' or '.join(lacking)}, which this run may measure.",
            remedy=f"Give it another fit{names}{''.join(f', or say {way}' for way in ways)}.",
        )


def workload_config(workload: Workload | None, queries: Queries | None = None, *, ways: int = 3) -> Any:
    """A workload as plain data; ``workload_of`` reads it. Linear queries, where given, stand in its place."""
    if queries is not None:
        return [[list(c), 1.0] for c in queries.cliques]
    if workload is None:
        return f"all {ways}-way"
    return [[list(c), w] for c, w in workload.weights.items()]


class Memory:
    """The estimates that choices were scored with, kept until it is known how far they were off: for error bounds.

    Of each candidate only the latest is kept. ``in_all``: the most cells that are computed to see it, the cheapest
    marginals first. **Privacy:** none spent; all of it follows from noisy answers.
    """

    def __init__(self, in_all: float = math.inf) -> None:
        self._in_all = in_all
        self._latest: dict[Clique, tuple[int, FloatArray]] = {}
        self._surprise: dict[int, float] = {}

    def note(self, estimates: Mapping[Clique, FloatArray], transcript: Transcript) -> None:
        """Remember the last choice, made with these estimates, once its marginal has been measured whole."""
        selection, answer = transcript.selections[-1], transcript.measurements[-1]
        number = len(transcript.selections) - 1
        self._latest |= {r: (number, estimates[r]) for r in selection.candidates}
        self._surprise[number] = float(np.abs(on_grid(estimates[selection.chosen]) - answer.values).sum())

    def against(self, model: Model, transcript: Transcript) -> tuple[Hindsight, ...]:
        """What became of the estimates, for candidates that no measurement contains."""
        supported = set(closure(transcript.cliques))
        left = {r: kept for r, kept in self._latest.items() if r not in supported}
        drift = [np.full(len(s.candidates), np.nan) for s in transcript.selections]
        for r, expected in exact_answers(model, list(left), LOOKED_BACK, self._in_all).items():
            t, estimate = left[r]
            place = transcript.selections[t].candidates.index(r)
            drift[t][place] = np.abs(on_grid(estimate) - expected).sum()
        return tuple(
            Hindsight(t, self._surprise[t], distances)
            for t, distances in enumerate(drift)
            if not np.isnan(distances).all()
        )


def release_of(
    private: Private,
    model: Model,
    config: dict[str, Any],
    memory: Memory | None = None,
    readings: Transcript | None = None,
) -> Release:
    """What the custodian gets: the model, the transcript and the books, and what error bounds need besides.

    ``readings`` of public data follow the gate's own entries. Of a fit that keeps an average over rounds it is the
    average that is released.
    """
    model = averaged(model)
    hindsight = () if memory is None else memory.against(model, private.transcript)
    known = private.transcript + (readings or Transcript())
    return Release(private.schema, model, known, private.account(), config, hindsight=hindsight)
