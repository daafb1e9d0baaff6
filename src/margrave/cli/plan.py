"""``margrave plan``: a dry run from public inputs."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from margrave.api import check_schema
from margrave.cli.mechanism import Sectioned, build_mechanism, mechanism_options, public_of, public_options
from margrave.cli.options import (
    budget_options,
    echo_json,
    json_option,
    load_schema,
    parse_workload,
    rules_options,
    schema_option,
    warn_weak,
    workload_option,
)
from margrave.cli.output import console, escape, facts_table
from margrave.cli.terminal import echo
from margrave.plan import Plan, plan
from margrave.privacy import Budget, LedgerFile, parse_unit
from margrave.privacy.books import check_books
from margrave.privacy.ledger_state import DatasetState
from margrave.privacy.policy import policy_of
from margrave.privacy.strength import check_strength
from margrave.ratios import percent
from margrave.report.words import nothing_asked

#: The row count of a plan if none is given.
ROWS = 100_000


@click.command("plan", cls=Sectioned)
@schema_option
@budget_options
@mechanism_options
@public_options
@workload_option
@click.option(
    "--rows", type=int, default=None, show_default=f"{ROWS:,}", help="A guess, for memory, time and shares."
)
@rules_options
@json_option
def plan_command(
    schema_path: str,
    epsilon: float,
    delta: float,
    unit: str | None,
    mechanism: str,
    workload: str | None,
    public: str | None,
    attestation: str | None,
    public_columns: str | None,
    same_records: bool,
    rows: int | None,
    allow_large_delta: bool,
    ledger: str | None,
    dataset: str | None,
    policy: str | None,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Say what a run would do: noise, expected errors, model size, memory, time. Reads no rows and spends nothing.

    It fails where the run would be refused before it reads a row, with --policy or --ledger by these too.
    """
    schema = load_schema(schema_path)
    budget = Budget.approx(epsilon, delta)
    protected = check_schema(schema, None if unit is None else parse_unit(unit))
    check_strength(budget, rows=rows, allow_large_delta=allow_large_delta)
    warn_weak(budget)
    wanted = None if workload is None else parse_workload(workload, schema.domain)
    known = public_of(mechanism, schema, public, attestation, public_columns, same_records)
    made = plan(
        schema.domain,
        build_mechanism(mechanism, wanted, parameters, known),
        budget=budget,
        unit=protected,
        workload=wanted,
        rows=ROWS if rows is None else rows,
    )
    policy_of(policy).check(schema, protected, budget, ledger=ledger, dataset=dataset)
    books = {"ledger": ledger, "dataset": dataset, "journal": None}
    check_books(protected, budget.rho, **books, resume=False, delta=budget.delta)
    room = None if ledger is None else _room(ledger, str(dataset))
    if as_json:
        echo_json({**made.to_dict(), **({} if room is None else {"cap": room.to_dict()})})
    else:
        show_plan(made)
        if room is not None:
            echo(
                f"\nThe cap of {room.dataset} leaves room for it: rho {float(room.remaining):.6g} remains of"
                f" {float(room.cap.rho):.6g}, and {float(room.remaining - made.rho):.6g} would."
            )


def _room(ledger: str, dataset: str) -> DatasetState:
    """What the ledger holds of a data set that is in it."""
    return next(d for d in LedgerFile(ledger).datasets() if d.dataset == dataset)


def show_plan(made: Plan) -> None:
    """The plan, for a terminal."""
    out = console()
    more = ", and minutes for the posterior" if made.posterior else ""
    told = "not known: how long the search for records takes, nothing tells beforehand"
    if made.seconds is not None:
        told = f"{made.seconds:,.0f} s of processor time with {made.rows:,} rows, on two cores{more}"
    model = "set by its marginals" if made.max_model_mb is None else f"at most {made.max_model_mb:g} MB"
    out.print(
        facts_table(
            "Plan",
            [
                ("mechanism", made.mechanism),
                ("protected", made.unit),
                ("budget", f"epsilon {made.epsilon:g}, delta {made.delta:g}: rho {float(made.rho):.6g}"),
                ("domain", f"{made.columns} columns, {made.cells:.3g} cells"),
                *([] if made.workload is None else [("workload", f"{made.workload:,} marginals")]),
                ("counted", f"{made.counted:,} marginals of {made.counted_cells:,} cells, behind the gate"),
                ("largest", f"{', '.join(made.largest)}: {made.largest_cells:,} cells"),
                ("model", model),
                ("memory, about", f"{made.memory_mb:,.0f} MB with {made.rows:,} rows"),
                ("time, at most about", told),
            ],
        )
    )
    out.print()
    noise = Table(title="Noise", title_justify="left", box=None, pad_edge=False)
    for name in ("measured", "how many", "noise a cell", "error of a count (L1)", f"of {made.rows:,} rows"):
        noise.add_column(name, justify="left" if name == "measured" else "right")
    for n in made.noise:
        share = "too noisy" if n.verdict(made.rows) else percent(n.expected_error / max(made.rows, 1), ".3g")
        many = f"{'at most ' * n.at_most}{n.marginals:,}" + (f", about {n.expected:,}" if n.expected else "")
        noise.add_row(escape(n.what), many, f"{n.scale:,.4g}", f"{n.error:,.4g}", share)
    out.print(noise)
    for n in made.noise:
        if (verdict := n.verdict(made.rows)) is not None:
            out.print(verdict, markup=False)
    if made.unasked:
        told = f"{nothing_asked(made.unasked, ahead=True)} A --workload that names them would ask."
        out.print(told, markup=False)
    if made.lacks_public:
        out.print("A run needs a public table: --public FILE --attestation TEXT.", markup=False)
    out.print(
        "The error is that of the noisy counts of a typical marginal; the model averages over many and ends well below."
        " Adaptive mechanisms choose marginals whose error the count reduces.",
        style="dim",
    )
