"""``margrave plan``: a dry run from public inputs."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from margrave.api import check_schema
from margrave.cli.mechanism import build_mechanism, mechanism_options
from margrave.cli.options import (
    DEFAULT_WORKLOAD,
    budget_options,
    echo_json,
    json_option,
    load_schema,
    parse_workload,
    schema_option,
    workload_option,
)
from margrave.cli.output import console, facts_table
from margrave.plan import Plan, plan
from margrave.privacy import Budget, parse_unit


@click.command("plan")
@schema_option
@budget_options
@mechanism_options
@workload_option
@click.option(
    "--rows", type=int, default=100_000, show_default=True, help="A guess, for memory, time and shares."
)
@json_option
def plan_command(
    schema_path: str,
    epsilon: float,
    delta: float,
    unit: str,
    mechanism: str,
    workload: str,
    rows: int,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Say what a run would do: noise, expected errors, model size, memory, time. Reads no rows and spends nothing."""
    schema = load_schema(schema_path)
    protected = parse_unit(unit)
    check_schema(schema, protected)
    wanted = parse_workload(workload, schema.domain)
    made = plan(
        schema.domain,
        build_mechanism(mechanism, None if workload == DEFAULT_WORKLOAD else wanted, parameters),
        budget=Budget.approx(epsilon, delta),
        unit=protected,
        workload=wanted,
        rows=rows,
    )
    if as_json:
        echo_json(made.to_dict())
    else:
        show_plan(made)


def show_plan(made: Plan) -> None:
    """The plan, for a terminal."""
    out = console()
    more = ", and minutes for the posterior" if made.posterior else ""
    model = "set by its marginals" if made.max_model_mb is None else f"at most {made.max_model_mb:g} MB"
    out.print(
        facts_table(
            "Plan",
            [
                ("mechanism", made.mechanism),
                ("protected", made.unit),
                ("budget", f"epsilon {made.epsilon:g}, delta {made.delta:g}: rho {float(made.rho):.6g}"),
                ("domain", f"{made.columns} columns, {made.cells:.3g} cells"),
                ("workload", f"{made.workload:,} marginals"),
                ("counted", f"{made.counted:,} marginals of {made.counted_cells:,} cells, behind the gate"),
                ("largest", f"{', '.join(made.largest)}: {made.largest_cells:,} cells"),
                ("model", model),
                ("memory, about", f"{made.memory_mb:,.0f} MB with {made.rows:,} rows"),
                ("time, at most about", f"{made.seconds:,.0f} s with {made.rows:,} rows, on two cores{more}"),
            ],
        )
    )
    out.print()
    noise = Table(title="Noise", title_justify="left", box=None, pad_edge=False)
    for name in ("measured", "how many", "noise a cell", "error of a count (L1)", f"of {made.rows:,} rows"):
        noise.add_column(name, justify="left" if name == "measured" else "right")
    for n in made.noise:
        share = f"{100 * n.error / max(made.rows, 1):.3g}%"
        many = f"{'at most ' * n.at_most}{n.marginals:,}"
        noise.add_row(n.what, many, f"{n.scale:,.4g}", f"{n.error:,.4g}", share)
    out.print(noise)
    out.print(
        "The error is that of the noisy counts of a typical marginal; the model averages over many and ends well below."
        " Adaptive mechanisms choose marginals whose error the count reduces.",
        style="dim",
    )
