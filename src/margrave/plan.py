"""What a run would do and cost, from public inputs alone: no table is read and nothing is spent."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.mechanisms import Mechanism
from margrave.mechanisms.common import expected_noise, split
from margrave.privacy import Budget, Gaussian, Unit
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload

# Measured on two cores of a small server; orders of magnitude, not promises.
SECONDS_PER_COUNT = 2.5e-9  # one row in one marginal
SECONDS_PER_NOISE = 15e-6  # one cell, by the exact sampler
SECONDS_PER_ROUND = 0.25  # one estimation of a model of moderate size
BASE_MB = 300.0  # the libraries, and code compiled
BYTES_PER_VALUE = 22.0  # reading a column, encoding it, and its codes


@dataclass(frozen=True)
class Step:
    """Some marginals measured with the same noise.

    ``error`` is the expected L1 error of one of them from noise alone, in records: ``sqrt(2/pi) scale cells``.
    """

    what: str
    marginals: int
    scale: float
    error: float


@dataclass(frozen=True)
class Plan:
    """What is known of a run beforehand. **Privacy:** a function of public inputs."""

    mechanism: str
    unit: str
    epsilon: float
    delta: float
    rho: Fraction
    columns: int
    cells: int
    largest: Clique
    largest_cells: int
    workload: int
    counted: int
    counted_cells: int
    steps: tuple[Step, ...]
    max_model_mb: float | None
    rows: int
    memory_mb: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data that fits in JSON."""
        return {
            **vars(self),
            "rho": {"exact": str(self.rho), "decimal": float(self.rho)},
            "cells": str(self.cells),
            "largest": list(self.largest),
            "steps": [vars(s) for s in self.steps],
        }


def plan(
    domain: Domain,
    mechanism: Mechanism,
    *,
    budget: Budget,
    unit: Unit,
    workload: Workload | None = None,
    rows: int = 100_000,
) -> Plan:
    """The noise, the expected errors, the memory and the time of a run. ``rows`` is a guess, for the last two.

    **Privacy:** none spent: no row is read.
    """
    reads = list(dict.fromkeys(mechanism.reads(domain)))
    config = mechanism.config()
    chosen = workload or Workload.all_kway(domain, 3)
    steps = STEPS[config["name"]](domain, budget.rho, unit, chosen, config)
    largest = max(reads, key=domain.cells)
    counted_cells = sum(domain.cells(r) for r in reads)
    max_model_mb = config.get("max_model_mb")
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
        workload=len(chosen.cliques),
        counted=len(reads),
        counted_cells=counted_cells,
        steps=tuple(steps),
        max_model_mb=max_model_mb,
        rows=rows,
        memory_mb=_memory(domain, rows, counted_cells, max_model_mb),
        seconds=_seconds(domain, rows, reads, steps),
    )


def _memory(domain: Domain, rows: int, counted_cells: int, max_model_mb: float | None) -> float:
    table = rows * len(domain) * BYTES_PER_VALUE / 2**20
    counts = counted_cells * 8 / 2**20
    model = min(max_model_mb or 0.0, 8 * counts, domain.cells() * 8 / 2**20)
    return BASE_MB + table + counts + model


def _seconds(domain: Domain, rows: int, reads: Collection[Clique], steps: list[Step]) -> float:
    counting = rows * len(reads) * SECONDS_PER_COUNT
    rounds = sum(s.marginals for s in steps[1:]) if len(steps) > 1 else 1
    noise = sum(s.marginals * s.error / max(s.scale, 1e-12) for s in steps) * SECONDS_PER_NOISE
    return 5.0 + counting + min(rounds, 4 * len(domain)) * SECONDS_PER_ROUND + noise


def _step(
    what: str, domain: Domain, cliques: Collection[Clique], scale: float, count: int | None = None
) -> Step:
    """The noise of some marginals, and the error expected of the median one."""
    cells = float(np.median([domain.cells(c) for c in cliques]))
    return Step(what, len(cliques) if count is None else count, scale, expected_noise(scale, 1) * cells)


def _singles(domain: Domain) -> list[Clique]:
    return [(a,) for a in domain]


def _pairs(domain: Domain) -> list[Clique]:
    return list(Workload.all_kway(domain, 2).cliques)


def _independent(
    domain: Domain, rho: Fraction, unit: Unit, workload: Workload, config: dict[str, Any]
) -> list[Step]:
    scale = Gaussian.scale_for(rho / len(domain), unit)
    return [_step("every column", domain, _singles(domain), scale)]


def _gaussian(
    domain: Domain, rho: Fraction, unit: Unit, workload: Workload, config: dict[str, Any]
) -> list[Step]:
    shares = split(rho, [(c * domain.cells(r)) ** (2 / 3) for r, c in workload.weights.items()])
    by_share = sorted(zip(shares, workload.cliques, strict=True))
    named = {"least noisy": by_share[-1], "middle": by_share[len(by_share) // 2], "noisiest": by_share[0]}
    return [
        _step(f"{words}: {', '.join(clique)}", domain, [clique], Gaussian.scale_for(share, unit))
        for words, (share, clique) in named.items()
    ]


def _mst(domain: Domain, rho: Fraction, unit: Unit, workload: Workload, config: dict[str, Any]) -> list[Step]:
    if len(domain) == 1:
        return _independent(domain, rho, unit, workload, config)
    singles = Gaussian.scale_for(rho / 3 / len(domain), unit)
    edges = Gaussian.scale_for(rho / 3 / (len(domain) - 1), unit)
    return [
        _step("every column", domain, _singles(domain), singles),
        _step("the tree's pairs", domain, _pairs(domain), edges, len(domain) - 1),
    ]


def _mwem(
    domain: Domain, rho: Fraction, unit: Unit, workload: Workload, config: dict[str, Any]
) -> list[Step]:
    rounds = config["rounds"] or len(domain)
    share = rho / (rounds + bool(config["start"]))
    chosen = _step("chosen marginals", domain, workload.cliques, Gaussian.scale_for(share / 2, unit), rounds)
    if not config["start"]:
        return [chosen]
    return [
        _step("every column", domain, _singles(domain), Gaussian.scale_for(share / len(domain), unit)),
        chosen,
    ]


def _aim(domain: Domain, rho: Fraction, unit: Unit, workload: Workload, config: dict[str, Any]) -> list[Step]:
    singles = [c for c in workload.closure() if len(c) == 1]
    rounds = max(config["rounds"] or 16 * len(domain), len(singles) + 1)
    scale = Gaussian.scale_for(Fraction(config["alpha"]).limit_denominator(10**6) * rho / rounds, unit)
    return [
        _step("every column", domain, singles, scale),
        _step("chosen marginals, at most", domain, workload.cliques, scale,
              rounds - len(singles)),
    ]  # fmt: skip


STEPS: dict[str, Callable[[Domain, Fraction, Unit, Workload, dict[str, Any]], list[Step]]] = {
    "aim": _aim,
    "mst": _mst,
    "mwem-pgm": _mwem,
    "independent": _independent,
    "gaussian": _gaussian,
}
"""How each mechanism spends its budget, as far as that is known beforehand.

Tests compare the first scales, not every price, with transcripts.
"""
