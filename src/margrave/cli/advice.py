"""Advice on epsilon and delta: what some epsilons cost in risk, and what they buy in accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from margrave.accounting.strength import delta_for_rows
from margrave.attack_risk import AttackRisk, hundredths
from margrave.cli.output import console
from margrave.learning_stage import budget_for
from margrave.planning import Plan
from margrave.ratios import figure, percent
from margrave.run import Run
from margrave.workload import Workload


@dataclass(frozen=True)
class Advice:
    """Plans of one run at several epsilons, and a delta for its number of rows.

    Args:
        plans: In order of epsilon.
        suggested_delta: A power of ten, at most a thousandth of 1 in the number of rows.
    """

    plans: tuple[Plan, ...]
    suggested_delta: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {
            "suggested_delta": self.suggested_delta,
            "epsilons": [
                {
                    "epsilon": p.epsilon,
                    "delta": p.delta,
                    "error": p.error,
                    "likely_reliable": None if p.verdicts is None else list(p.verdicts.expected),
                    **p.risk.to_dict(),
                }
                for p in self.plans
            ],
        }


def advice_on(run: Run, rows: int, workload: Workload | None) -> Advice:
    """Return the plans of a run at several epsilons, at its delta and without its rules."""
    free = replace(run, policy=None, ledger=None, dataset=None)
    epsilons = sorted({0.1, 0.3, 1.0, 3.0, 10.0, run.budget.epsilon})
    budgets = [budget_for(run.schema, epsilon, run.budget.delta) for epsilon in epsilons]
    plans = tuple(replace(free, budget=b).plan(rows, workload=workload) for b in budgets)
    return Advice(plans, delta_for_rows(rows))


def risk_in_words(risk: AttackRisk) -> str:
    """Return the risk in a line."""
    return (
        f"advantage at most {hundredths(risk.advantage)} %; an attacker who wrongly accuses"
        f" {percent(risk.at, '.2g')} of those outside the table finds at most"
        f" {hundredths(risk.power)} % of those in it"
    )


def show_advice(advice: Advice) -> None:
    """Print the comparison."""
    out, rows = console(), advice.plans[0].rows
    are_forecast = any(p.verdicts is not None for p in advice.plans)
    table = Table(title="Epsilons", title_justify="left", box=None, pad_edge=False)
    titles = ["epsilon", "error of a marginal (L1)", "advantage", "found at 1 %"]
    if are_forecast:
        titles.insert(1, "likely reliable")
    for title in titles:
        table.add_column(title, justify="right")
    for p in advice.plans:
        risk = f"{hundredths(p.risk.advantage)} %", f"{hundredths(p.risk.power)} %"
        likely = [] if p.verdicts is None else [p.verdicts.share]
        table.add_row(f"{p.epsilon:g}", *likely, figure(p.error, 3), *risk)
    out.print()
    out.print(table)
    reliable = (
        f"Likely reliable: columns whose main number is likely to be, with about {rows:,} rows. "
    )
    out.print(
        f"{reliable * are_forecast}Advantage: right minus wrong accusations of an attacker who knows all other rows,"
        " at most. Found at 1 %: the share that this attacker finds of those in the table, at most, by wrongly accusing"
        " 1 % of those outside it. The error is that of a typical marginal:"
        " the expected noise, summed over its cells. An epsilon of 1 is the usual start; above 10 little is promised.",
        style="dim",
    )
    given = advice.plans[0].delta
    unit = "person" if "person" in advice.plans[0].unit else "row"
    verdict = "is at most that" if given <= advice.suggested_delta else "is larger"
    out.print(
        f"For {rows:,} rows a delta of {advice.suggested_delta:g} or less is advised (delta is about the chance that"
        f" the promise fails for one given {unit}); {given:g} {verdict}."
    )
