"""What a run would do and cost, from public inputs alone: no table is read and nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from margrave.effort import Effort, median_cells
from margrave.errors import InputError
from margrave.marginal import TOTAL
from margrave.mechanisms import Mechanism
from margrave.mechanisms.checks import check_run, lacks_public
from margrave.mechanisms.common import Step, total_steps
from margrave.mechanisms.penalty import expected_noise
from margrave.parameters import is_whole
from margrave.privacy import Budget, Unit
from margrave.privacy.strength import check_strength
from margrave.privacy.unit import unit_of
from margrave.release.bounds import workload_of
from margrave.release.together import left_out, started_from
from margrave.schema.domain import Domain
from margrave.typing import Attribute, Clique
from margrave.workload import Workload

#: Counts are 64-bit integers.
MAX_ROWS = 2**63 - 1
SHOWN = 6
"""Up to how many kinds of noise are listed one by one."""


@dataclass(frozen=True)
class Noise:
    """Some marginals measured with the same noise.

    ``error`` is the expected L1 error of the median one from noise alone, in records: ``sqrt(2/pi) scale cells``.
    ``at_most``: there may be fewer, with less noise. ``chosen``: the mechanism chooses them by what it finds, and need
    not take typical ones; ``least`` is the error of the smallest pair, or column, that it may ask for. ``expected``:
    how many there would be of so many records as the plan is for, if that follows from their number.
    """

    what: str
    marginals: int
    scale: float
    error: float
    at_most: bool
    least: float = 0.0
    chosen: bool = False
    expected: int | None = None

    @property
    def expected_error(self) -> float:
        """The error if there are as many as expected: noise is as the root of how many there are."""
        return self.error * self._fewer

    @property
    def _fewer(self) -> float:
        return 1.0 if self.expected is None else math.sqrt(self.expected / self.marginals)

    def verdict(self, rows: int) -> str | None:
        """A sentence where the noise in a cell is above the mean count of one; None where it is not."""
        more = "fewer or coarser bins, or more budget"
        if self.expected_error <= rows:
            return None
        if self.chosen and self.least * self._fewer <= rows:
            return f"{self.what}: typical ones are too noisy with {rows:,} rows, so smaller are taken: {more} help."
        return f"{self.what}: too noisy to be of use with {rows:,} rows: {more}."


@dataclass(frozen=True)
class Plan:
    """What is known of a run beforehand. **Privacy:** a function of public inputs.

    ``workload``: its number of marginals; None where the mechanism has none. ``unasked``: columns of which nothing will
    be asked. ``seconds``: of processor time at most, about; None where nothing tells. ``lacks_public``: a run needs a
    public table, and none is given yet. ``posterior``: the model's posterior is sampled at the end, for which
    ``seconds`` holds nothing.
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
    lacks_public: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data that fits in JSON."""
        return {
            **vars(self),
            "rho": {"exact": str(self.rho), "decimal": float(self.rho)},
            "cells": str(self.cells),
            "largest": list(self.largest),
            "unasked": list(self.unasked),
            "noise": [vars(n) for n in self.noise],
        }


def plan(
    domain: Domain,
    mechanism: Mechanism,
    *,
    budget: Budget,
    unit: Unit | str,
    workload: Workload | None = None,
    rows: int = 100_000,
) -> Plan:
    """The noise, the expected errors, the memory and the time of a run. ``rows`` is a guess, for the last two.

    Raises what a run would raise before it reads a row; but a public table may still be missing.

    **Privacy:** none spent: no row is read.
    """
    if not isinstance(domain, Domain):
        raise InputError(f"The domain is of type {type(domain).__name__}.", remedy="Give schema.domain.")
    if not is_whole(rows, 0) or rows > MAX_ROWS:
        raise InputError("rows is not a number of rows.", remedy=f"Give a whole number from 0 to {MAX_ROWS}.")
    check_strength(budget)
    unit = unit_of(unit)
    check_run(domain, mechanism, unit, ahead=True)
    reads = list(dict.fromkeys(mechanism.reads(domain)))
    config = mechanism.config()
    if workload is None and "workload" in config:
        workload = workload_of(domain, config)
    steps = mechanism.steps(domain, budget.rho, unit)
    for_total = total_steps(domain, budget.rho, unit)
    largest = max(reads, key=domain.cells)
    max_model_mb = config.get("max_model_mb")
    effort = Effort(domain, mechanism, reads, steps, budget.rho, unit, rows, max_model_mb or 0.0)
    expects = getattr(mechanism, "expected", None)
    expected = None if expects is None else expects(domain, budget.rho, max(rows, 1), unit)
    return Plan(
        mechanism=config["name"],
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
        counted_cells=effort.cells,
        unasked=_unasked(domain, reads, [s for s in steps if s not in for_total], config),
        noise=_noise(domain, steps, reads, expected),
        max_model_mb=max_model_mb,
        rows=rows,
        memory_mb=effort.memory_mb,
        seconds=effort.seconds,
        posterior=effort.has_posterior,
        lacks_public=lacks_public(mechanism),
    )


def _unasked(
    domain: Domain, reads: Collection[Clique], steps: Sequence[Step], config: Mapping[str, Any]
) -> tuple[Attribute, ...]:
    """The columns of no marginal that may be asked for.

    That a column is read to count all records in says nothing of it: it is asked for where a step or the workload
    names it too.
    """
    told = [r for r in reads if r != TOTAL.counted_in(domain)]
    told += [c for s in steps for c in s.cliques]
    told += [] if config.get("workload") is None else workload_of(domain, config).cliques
    return left_out(domain, [*told, started_from(config)])


def _noise(
    domain: Domain, steps: Sequence[Step], reads: Collection[Clique], expected: int | None
) -> tuple[Noise, ...]:
    """The steps as they are, or of very many the least noisy, the middle and the noisiest."""
    if len(steps) > SHOWN:
        ordered = sorted(steps, key=lambda s: s.scale)
        named = {"least noisy": ordered[0], "middle": ordered[len(ordered) // 2], "noisiest": ordered[-1]}
        steps = [replace(s, what=f"{words}: {s.what}") for words, s in named.items()]
    fewest = min(map(domain.cells, [r for r in reads if len(r) > 1] or reads))
    return tuple(
        Noise(
            s.what, s.marginals, s.scale, each * median_cells(domain, s), s.at_most, each * fewest, s.adaptive,
            expected if s.adaptive and s.at_most else None,
        )
        for s in steps
        for each in [expected_noise(s.scale, 1)]
    )
