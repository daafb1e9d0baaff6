"""Repeated: several independent runs of a mechanism, for intervals (PGM-repeat of Räisä et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, cast

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms.common import Mechanism, Progress, option
from margrave.mechanisms.napsu_mq import NAPSUMQ
from margrave.mechanisms.parts.gate_share import GateShare
from margrave.mechanisms.parts.public import takes_public
from margrave.mechanisms.parts.repeated_plan import RepeatedPlan
from margrave.models import GraphicalFit
from margrave.models.repeated import RepeatedModel
from margrave.privacy import Private
from margrave.release import Release
from margrave.types import Generator


@dataclass(frozen=True, kw_only=True)
class Repeated(RepeatedPlan):
    """Several independent runs of a mechanism, each with an equal part of the budget.

    ``release.draws()`` gives one table of each run, and ``margrave.analyze`` intervals from their spread. The spread
    holds the noise, the selections and the randomness of the fit, so any mechanism with a model gets
    intervals. The price is accuracy: each run has 1 / runs of the budget. The release's own model is
    the mean of the runs' models. It has no error bounds for marginals that no run measured.

    Args:
        mechanism: The mechanism of each run; without a public table or a posterior.
        runs: The number of runs. Fewer than five give wide intervals, as few degrees of freedom are left.

    Raises:
        InputError: The mechanism has a public table, a posterior or no distribution, or there are fewer than two runs.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    Example:
        >>> from margrave.mechanisms import MST, Repeated
        >>> Repeated(mechanism=MST(), runs=10).runs
        10

    References:
        Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference with differentially private
        synthetic data, Section 5.2 (repeated PGM).
    """

    mechanism: Mechanism = field(default_factory=lambda: NAPSUMQ(fit=GraphicalFit()))
    runs: int = option(5, "Independent runs, each with an equal part of the budget.", least=2)

    name = "repeated"
    use = "inference: intervals from several runs of any mechanism"
    default_ways = None

    def __post_init__(self) -> None:
        super().__post_init__()
        kind, fit = type(self.mechanism).__name__, self.mechanism.estimator()
        if isinstance(self.mechanism, Repeated):
            raise InputError("Repeated repeats a Repeated.", remedy="Give one of them all runs.")
        if takes_public(self.mechanism) or (fit is not None and fit.public is not None):
            raise InputError(
                f"{kind} has a public table, whose error all runs would share.",
                remedy="Give a mechanism without one.",
            )
        if fit is not None and fit.samples_posterior:
            raise InputError(
                f"{kind} with {type(fit).__name__} gives intervals from one run.",
                remedy="Run it alone, or give it another fit, such as GraphicalFit().",
            )
        if not self.mechanism.gives_records:
            raise InputError(
                f"{kind} with this fit has no distribution to draw tables from.",
                remedy="Give it another fit, such as GraphicalFit().",
            )

    def config(self) -> dict[str, Any]:
        """Return its fields as plain data, with the workload and the fit of the repeated mechanism."""
        inner = self.mechanism.config()
        shared: dict[str, Any] = {
            part: inner.pop(part) for part in ("workload", "fit") if part in inner
        }
        return {**super().config(), "mechanism": inner, **shared}

    def on_learned(self, domain: Domain) -> Self:
        """Return the runs for a learned domain."""
        return replace(self, mechanism=self.mechanism.on_learned(domain))

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Run the mechanism several times, each time on its share of the budget alone."""
        _, rng, tell = self.begin(private, rng, progress)
        models = []
        for i in range(self.runs):
            share = GateShare(private, private.remaining / (self.runs - i))
            part = partial(_within, tell, i, self.runs)
            made = self.mechanism.run(cast(Private, share), rng=rng, progress=part)
            models.append(made.model.distribution())
        return self.release(private, RepeatedModel(models))


def _within(tell: Progress, i: int, runs: int, stage: str, done: float) -> None:
    tell(stage, (i + done) / runs)
