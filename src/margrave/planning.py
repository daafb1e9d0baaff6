"""Plan a run from public inputs alone: no table is read and nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from margrave._card import Card, Facts, counted
from margrave._fields import is_whole
from margrave.accounting import Budget, Unit
from margrave.accounting.budget import epsilon_for, rho_for
from margrave.accounting.strength import check_strength
from margrave.attack_risk import AttackRisk, attack_risk
from margrave.cost import RunCost, median_cells
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.hidden_columns import HiddenColumn, hidden_columns, hidden_words
from margrave.learning.shares import LearningShares, column_share, least_tree_share
from margrave.marginal import TOTAL
from margrave.mechanisms import Mechanism
from margrave.mechanisms.common import PlannedMeasurement
from margrave.mechanisms.parts.budget import total_steps
from margrave.mechanisms.parts.checks import check_run
from margrave.mechanisms.parts.penalty import expected_noise
from margrave.mechanisms.parts.public import lacks_public
from margrave.privacy import Gaussian
from margrave.provenance import Provenance
from margrave.purpose_widths import PurposeWidth, widths_of
from margrave.purposes import first_of, open_ended, purposes_of
from margrave.ratios import percent
from margrave.release.diagnostics import left_out
from margrave.schema import Learn, Schema
from margrave.schema.learn import likely_domain
from margrave.types import Attribute, Clique
from margrave.unit import unit_of
from margrave.verdict_forecast import VerdictForecast, forecast_verdicts
from margrave.wide_bins import WideBins, wide_bins, wide_bins_words
from margrave.workload import Workload


@dataclass(frozen=True)
class Noise:
    """Some marginals measured with the same noise.

    Args:
        what: The marginals in words.
        marginals: Their number.
        scale: The standard deviation of the noise in each cell.
        error: The expected L1 error of the median marginal by noise alone, in records:
            ``sqrt(2/pi) scale cells``.
        at_most: There may be fewer marginals, with less noise.
        least: The error of the smallest pair, or column, that may be selected.
        chosen: The mechanism selects the marginals from the data, and need not take typical ones.
        expected: The number of marginals for the plan's number of records, if it depends on that.
        for_purposes: They are those of purposes, whose half-widths the plan states in place of a verdict.
    """

    what: str
    marginals: int
    scale: float
    error: float
    at_most: bool
    least: float = 0.0
    chosen: bool = False
    expected: int | None = None
    for_purposes: bool = False

    @property
    def expected_error(self) -> float:
        """The error for the expected number of marginals: noise grows with the root of their
        number.
        """
        return self.error * self._fewer

    @property
    def _fewer(self) -> float:
        return 1.0 if self.expected is None else math.sqrt(self.expected / self.marginals)

    def is_mostly_noise(self, rows: int) -> bool:
        """Return whether the noise in a cell exceeds the mean count of a cell."""
        return self.expected_error > rows

    def words(self, rows: int) -> str:
        """Return the noise and the error of a typical marginal of so many rows as text."""
        share = percent(self.expected_error / max(rows, 1), ".3g")
        return f"{'at most ' * self.at_most}{self.marginals:,}, noise {self.scale:,.4g} a cell, error {share}"

    def verdict(self, rows: int) -> str | None:
        """Return a warning if the noise in a cell exceeds the mean count of a cell, else None."""
        more = "fewer codes or more budget"
        if self.for_purposes or not self.is_mostly_noise(rows):
            return None
        if self.chosen and self.least * self._fewer <= rows:
            return (
                f"{self.what}: typical ones are too noisy with {rows:,} rows, so smaller are taken;"
                f" larger ones need {more}."
            )
        return f"{self.what}: too noisy to be of use with {rows:,} rows: {more}."


@dataclass(frozen=True, repr=False)
class Plan(Card):
    """The plan of a run.

    ``workload``: its number of marginals; None if the mechanism has none. ``unasked``: columns that
    no question covers. ``seconds``: about the processor time; None if unknown.
    ``lacks_public``: a run needs a public table that is not given yet. ``posterior``: the model's
    posterior is sampled at the end, which takes longer if its chains mix slowly. ``models``: False if the
    release has answers alone. ``threshold_delta``: the part of delta for thresholds.
    ``published_form``: the paper whose form the mechanism has; None for another form. ``hidden``: columns whose
    codes the noise will mostly hide at this number of rows. ``wide_bins``: columns whose bins may be too wide for a
    reliable mean. ``verdicts``: how many columns are likely to be reliable; None without planned measurements, or
    a schema. ``open_ended``: a sentence for each purpose whose mean values beyond a learned bound may change.

    **Privacy:** a function of public inputs.
    """

    mechanism: str
    unit: str
    epsilon: float
    delta: float
    rho: Fraction
    columns: int
    cells: int
    largest: Clique
    largest_cells: int
    workload: int | None
    counted: int
    counted_cells: int
    unasked: tuple[Attribute, ...]
    noise: tuple[Noise, ...]
    max_model_mb: float | None
    rows: int
    memory_mb: float
    seconds: float | None
    posterior: bool
    models: bool = True
    lacks_public: bool = False
    threshold_delta: float = 0.0
    purposes: tuple[PurposeWidth, ...] = ()
    published_form: str | None = None
    hidden: tuple[HiddenColumn, ...] = ()
    wide_bins: tuple[WideBins, ...] = ()
    open_ended: tuple[str, ...] = ()
    verdicts: VerdictForecast | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        plain = {k: v for k, v in vars(self).items() if k != "threshold_delta" or v}
        return {
            **plain,
            "rho": {"exact": str(self.rho), "decimal": float(self.rho)},
            "cells": str(self.cells),
            "largest": list(self.largest),
            "unasked": list(self.unasked),
            "noise": [vars(n) for n in self.noise],
            "hidden": [vars(h) for h in self.hidden],
            "wide_bins": [vars(w) for w in self.wide_bins],
            "purposes": [p.to_dict() for p in self.purposes],
            "verdicts": None if self.verdicts is None else self.verdicts.to_dict(),
            "risk": self.risk.to_dict(),
        }

    def _facts(self) -> Facts:
        line = (
            f"{self.mechanism}, epsilon={self.epsilon:g}, delta={self.delta:g}, {counted(self.columns, 'column')},"
            f" {counted(self.rows, 'row')}"
        )
        time = "unknown" if self.seconds is None else f"{self.seconds:,.0f} s of processor time"
        facts = [
            ("protected", self.unit),
            ("budget", f"rho {float(self.rho):.6g}"),
            ("domain", f"{self.cells:.3g} cells"),
            ("memory, about", f"{self.memory_mb:,.0f} MB"),
            ("time, about", time),
            *((n.what, n.words(self.rows)) for n in self.noise),
            *((p.purpose, p.words) for p in self.purposes),
        ]
        unasked = f"No question is about {', '.join(self.unasked)}." if self.unasked else ""
        verdicts = [] if self.verdicts is None else [self.verdicts.words_beside(self.wide_bins)]
        verdicts += [v for n in self.noise if (v := n.verdict(self.rows)) is not None]
        verdicts += [
            *self.column_words,
            *self.open_ended,
        ]
        return Facts(
            line, facts, [*verdicts, *([unasked] if unasked else []), self.risk.sentence()]
        )

    @property
    def column_words(self) -> tuple[str, ...]:
        """Sentences on columns that noise will hide and on bins that are too wide, with one remedy for each column."""
        hidden = {h.column for h in self.hidden}
        wide = [w for w in self.wide_bins if w.column not in hidden]
        return (
            *hidden_words(self.hidden, {w.column for w in self.wide_bins}),
            *wide_bins_words(wide),
        )

    @property
    def risk(self) -> AttackRisk:
        """The risk that the budget leaves."""
        return attack_risk(self.rho, threshold_delta=self.threshold_delta)

    @property
    def error(self) -> float:
        """The expected L1 error of a typical marginal by noise alone, in records.

        It is that of the marginals that the mechanism selects, or of the noisiest that it measures.
        """
        return max((n for n in self.noise), key=lambda n: (n.chosen, n.error)).expected_error


def plan_of(
    domain: Domain,
    mechanism: Mechanism,
    *,
    budget: Budget,
    unit: Unit | str,
    workload: Workload | None = None,
    rows: int = 100_000,
    schema: Schema | None = None,
) -> Plan:
    """Return the noise, the expected errors, the memory and the time of a run.

    ``rows`` is a guess, used for memory, time, widths and verdicts. ``schema`` has the units of
    columns, and those that a run learns first; the domain has the codes that these have at most. Raises what a run
    would raise before it reads a row, but a public table may still be missing.

    **Privacy:** none spent: no row is read.
    """
    # Counts are 64-bit integers.
    max_rows = 2**63 - 1
    if not isinstance(domain, Domain):
        raise InputError(
            f"The domain is of type {type(domain).__name__}.", remedy="Give schema.domain."
        )
    if not is_whole(rows, 0) or rows > max_rows:
        raise InputError(
            "rows is not a number of rows.", remedy=f"Give a whole number from 0 to {max_rows}."
        )
    learned = () if schema is None else schema.to_learn
    check_strength(budget, allow_large_delta=True)  # the run asks for it to be accepted
    unit = unit_of(unit)
    check_run(likely_domain(domain, learned), mechanism, unit, ahead=True)
    reads = list(dict.fromkeys(mechanism.reads(domain)))
    provenance = Provenance.of(mechanism.config())
    if workload is None:
        workload = provenance.workload_on(domain)
    rho = budget.rho * (1 - LearningShares.learning) if learned else budget.rho
    steps = mechanism.steps(domain, rho, unit)
    for_total = {s.what for s in total_steps(domain, rho, unit)}
    largest = max(reads, key=domain.cells)
    max_model_mb = provenance.parameters.get("max_model_mb")
    cost = RunCost(
        domain=domain,
        mechanism=mechanism,
        reads=reads,
        steps=steps,
        rho=rho,
        unit=unit,
        rows=rows,
        max_model_mb=max_model_mb or 0.0,
    )
    seconds, memory_mb = cost.total()
    likely = likely_domain(domain, learned)
    scale = max(
        ((s.adaptive, s.scale / s.weight) for s in steps if not s.sums), default=(False, 0.0)
    )[1]
    purposes = provenance.workload.purposes if isinstance(provenance.workload, Workload) else ()
    typical = _typical(domain, learned, rows, scale)
    own_steps = [s for s in steps if s.what not in for_total]

    def epsilon_of(rho: float) -> float | None:
        return epsilon_for(Fraction(rho), budget.conversion_delta)

    expected = mechanism.expected(domain, rho, max(rows, 1), unit)
    return Plan(
        mechanism=provenance.mechanism,
        unit=str(unit),
        epsilon=budget.epsilon,
        delta=budget.delta,
        rho=budget.rho,
        columns=len(domain),
        cells=domain.cells(),
        largest=largest,
        largest_cells=domain.cells(largest),
        workload=None if workload is None else len(workload.cliques),
        counted=len(reads),
        counted_cells=cost.cells,
        unasked=_unasked(domain, reads, own_steps, provenance),
        noise=(
            *_learning_noise(learned, budget.rho, unit),
            *_noise(likely, steps, reads, expected, first_of(purposes_of(purposes, domain))),
        ),
        max_model_mb=max_model_mb,
        rows=rows,
        memory_mb=memory_mb,
        seconds=seconds,
        posterior=cost.samples_posterior,
        models=mechanism.gives_records,
        lacks_public=lacks_public(mechanism),
        threshold_delta=budget.threshold_delta,
        open_ended=open_ended(purposes_of(purposes, domain), learned),
        purposes=widths_of(
            purposes_of(purposes if steps else (), domain),
            typical,
            rows=rows,
            learned={c.name for c in learned if c.is_number},
            columns=() if schema is None else schema.columns,
            scale_of=lambda clique: _scale_of(clique, typical, steps, workload),
            sum_scale_of=lambda clique: _sum_scale_of(clique, steps),
            rho=budget.rho,
            epsilon_of=epsilon_of,
        ),
        published_form=provenance.parameters.get("published_form"),
        hidden=hidden_columns(typical, own_steps, rows, {c.name for c in learned}),
        wide_bins=() if schema is None else wide_bins(schema.columns),
        verdicts=None
        if schema is None
        else forecast_verdicts(
            schema,
            likely,
            lambda rows, times_noise: _typical(domain, learned, rows, scale * times_noise),
            own_steps,
            rows=rows,
            epsilon=budget.epsilon,
            rho=budget.rho,
            threshold_delta=budget.threshold_delta,
            unit=unit,
            rho_of=lambda epsilon: Fraction(rho_for(epsilon, budget.conversion_delta)),
        ),
    )


def _typical(domain: Domain, learned: Sequence[Learn], rows: int, scale: float) -> Domain:
    """Return the domain with two categories for each column to learn, and bins of four noise scales."""
    few, bins = 2, max(4, min(Learn.max_bins, int(rows / (4.0 * scale)) if scale else 4))
    sizes = {c.name: bins if c.is_number else few for c in learned}
    counts = tuple(sizes.get(a, domain.size(a)) for a in domain)
    categories = {c.name for c in learned if not c.is_number}
    return Domain(domain.attributes, counts, unordered=domain.unordered | categories)


def _scale_of(
    clique: Clique,
    domain: Domain,
    steps: Sequence[PlannedMeasurement],
    workload: Workload | None,
) -> float:
    """Return the noise scale of a marginal of a purpose by all its measurements together.

    Rounds spend on the purposes what they weigh. Among these, precisions are in proportion to
    (w · cells)^(2/3), which minimizes the weighted error Σ w · cells · scale.
    """
    share = 0.0
    if workload is not None and clique in workload.first:
        weights = {c: workload.weights[c] for c in workload.first}
        parts = {c: (w * domain.cells(c)) ** (2 / 3) for c, w in weights.items()}
        share = sum(weights.values()) / sum(workload.weights.values())
        share *= parts[clique] / sum(parts.values())
    precision = sum(
        (s.marginals * share if s.adaptive else float(clique in s.cliques))
        * (s.weight / s.scale) ** 2
        for s in steps
        if not s.sums
    )
    largest = max((s.scale / s.weight for s in steps if not s.sums), default=0.0)
    return 1.0 / math.sqrt(precision) if precision else largest


def _sum_scale_of(clique: Clique, steps: Sequence[PlannedMeasurement]) -> float:
    """Return the noise scale of a marginal's sums, in the largest weight of a row; infinity if none are measured."""
    return min(
        (s.scale / s.weight for s in steps if s.sums and clique in s.cliques), default=math.inf
    )


def _learning_noise(learned: Sequence[Learn], rho: Fraction, unit: Unit) -> tuple[Noise, ...]:
    """Return the noise of a column's tree at most, measured on all levels."""
    if not learned:
        return ()
    levels = 5
    share = column_share(rho * LearningShares.learning, len(learned))
    share *= min(map(least_tree_share, learned))
    scale = Gaussian.scale_for(share / levels, unit)
    what = f"{counted(len(learned), 'column')} to learn, {levels} levels of counts each"
    cells = learned[0].max_bins
    return (
        Noise(what, len(learned) * levels, scale, expected_noise(scale, 1) * cells, at_most=False),
    )


def _unasked(
    domain: Domain,
    reads: Collection[Clique],
    steps: Sequence[PlannedMeasurement],
    provenance: Provenance,
) -> tuple[Attribute, ...]:
    """Return the columns of no marginal that may be asked for.

    A column read only to count all records does not qualify: a step or the workload must name it
    too.
    """
    total = TOTAL.counting_clique(domain)
    asked_for = [r for r in reads if r != total]
    asked_for += [c for s in steps for c in s.cliques]
    asked_for += provenance.workload_on(domain) or []
    return left_out(domain, [*asked_for, provenance.started_from])


def _noise(
    domain: Domain,
    steps: Sequence[PlannedMeasurement],
    reads: Collection[Clique],
    expected: int | None,
    of_purposes: Collection[Clique],
) -> tuple[Noise, ...]:
    max_listed = 6
    if len(steps) > max_listed:
        ordered = sorted(steps, key=lambda s: s.scale / s.weight)
        named = {
            "least noisy": ordered[0],
            "middle": ordered[len(ordered) // 2],
            "noisiest": ordered[-1],
        }
        steps = [replace(s, what=f"{words}: {s.what}") for words, s in named.items()]
    fewest = float(domain.cells_each([r for r in reads if len(r) > 1] or list(reads)).min())
    return tuple(
        Noise(
            s.what,
            s.marginals,
            s.scale / s.weight,
            each * median_cells(domain, s),
            s.at_most,
            each * fewest,
            s.adaptive,
            expected if s.adaptive and s.at_most else None,
            not s.adaptive and set(s.cliques) <= set(of_purposes),
        )
        for s in steps
        for each in [expected_noise(s.scale / s.weight, 1)]
    )
