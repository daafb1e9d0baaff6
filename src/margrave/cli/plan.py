"""``margrave plan``: a dry run from public inputs."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from margrave._card import counted
from margrave.accounting import Ledger, parse_unit
from margrave.accounting.budget import thresholds_in_words
from margrave.accounting.ledger_state import DatasetState
from margrave.accounting.strength import check_strength, delta_for_rows
from margrave.cli.advice import advice_on, risk_in_words, show_advice
from margrave.cli.mechanism import (
    Sectioned,
    build_mechanism,
    mechanism_options,
    name_or_default,
    public_of,
    public_options,
)
from margrave.cli.notes import warn_of_persons
from margrave.cli.options import (
    budget_options,
    echo_json,
    json_option,
    load_schema,
    parse_workload,
    purposes_option,
    rules_options,
    schema_option,
    stated_delta,
    warn_weak,
    workload_option,
)
from margrave.cli.output import console, escape, facts_table
from margrave.cli.terminal import echo
from margrave.learning_stage import budget_for, rows_to_learn
from margrave.planning import Plan
from margrave.ratios import percent
from margrave.report.wording import nothing_asked
from margrave.run import Run, settled_unit
from margrave.unit import size_is_public

#: The row count of a plan if none is given.
ROWS = 100_000


@click.command("plan", cls=Sectioned)
@schema_option
@budget_options
@mechanism_options
@public_options
@workload_option
@purposes_option
@click.option(
    "--rows",
    type=int,
    default=None,
    show_default=f"{ROWS:,}",
    help="A guess, for verdicts, widths, memory and time.",
)
@rules_options
@click.option(
    "--advise",
    is_flag=True,
    help="Compare epsilons: expected errors and attack risk of each, and a delta for --rows. --delta may be left out.",
)
@json_option
def plan_command(
    schema_path: str,
    epsilon: float,
    delta: float | None,
    unit: str | None,
    mechanism: str | None,
    workload: str | None,
    purposes: tuple[str, ...],
    public: str | None,
    attestation: str | None,
    public_columns: str | None,
    same_records: bool,
    rows: int | None,
    allow_large_delta: bool,
    ledger: str | None,
    dataset: str | None,
    policy: str | None,
    advise: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Say what a run would do: noise, expected errors, model size, memory, time. Reads no rows and spends nothing.

    It fails where the run would be refused before it reads a row, with --policy or --ledger by these too. Only a
    public table may be left out: the plan then says first that the run needs one.
    """
    schema = load_schema(schema_path)
    expected_rows = ROWS if rows is None else rows
    if delta is None and advise:
        delta = delta_for_rows(expected_rows)
    budget = budget_for(schema, epsilon, stated_delta(delta, rows))
    protected = settled_unit(schema, None if unit is None else parse_unit(unit))
    check_strength(
        budget,
        rows=rows,
        rows_are_public=size_is_public(protected),
        allow_large_delta=allow_large_delta,
    )
    warn_weak(budget)
    wanted = None if workload is None else parse_workload(workload, schema.domain)
    serves = bool(wanted or purposes)
    named = name_or_default(mechanism, schema.domain, serves=serves)
    known = public_of(named, schema, public, attestation, public_columns, same_records)
    run = Run(
        schema=schema,
        budget=budget,
        unit=protected,
        mechanism=build_mechanism(named, wanted, parameters, known),
        policy=policy,
        ledger=ledger,
        dataset=dataset,
        allow_large_delta=allow_large_delta,
        purposes=purposes,
    )
    warn_of_persons(schema)
    made = run.plan(expected_rows, workload=wanted)
    if note := rows_to_learn(schema, budget, protected, rows):
        echo(f"Note: {note}", err=True)
    advice = advice_on(run, expected_rows, wanted) if advise else None
    room = None if ledger is None else _room(ledger, str(dataset))
    if as_json:
        more = {} if advice is None else {"advice": advice.to_dict()}
        echo_json({**made.to_dict(), **more, **({} if room is None else {"cap": room.to_dict()})})
    else:
        show_plan(made, assumed=rows is None)
        if advice is not None:
            show_advice(advice)
        if room is not None:
            echo(
                f"\nThe cap of {room.dataset} leaves room for it: of rho {float(room.cap.rho):.6g},"
                f" {float(room.remaining):.6g} remains, and {float(room.remaining - made.rho):.6g} would remain after"
                " this run."
            )


def _plain(error: float) -> str:
    return f"{error:,.0f}" if 1000 <= error < 1e9 else f"{error:,.4g}"


def _room(ledger: str, dataset: str) -> DatasetState:
    return next(d for d in Ledger(ledger).datasets() if d.dataset == dataset)


def show_plan(planned: Plan, *, assumed: bool) -> None:
    """Print the plan. ``assumed``: its number of rows was not given."""
    out = console()
    if planned.lacks_public:
        out.print(
            f"The run would be refused: {planned.mechanism} needs a public table. Give it to the run by --public FILE"
            " --attestation TEXT.\n",
            markup=False,
        )
    if planned.verdicts is not None:
        guess = " The number of rows is assumed: give yours by --rows." if assumed else ""
        forecast = planned.verdicts.words_beside(planned.wide_bins)
        out.print(f"{forecast}{guess}\n", markup=False)
    more = ", more if the posterior mixes slowly" if planned.posterior else ""
    time = "unknown: the search for records takes an unpredictable time"
    if planned.seconds is not None:
        time = f"{planned.seconds:,.0f} s of processor time with {planned.rows:,} rows, on two cores{more}"
    model = f"at most {planned.max_model_mb or 0.0:g} MB"
    if planned.max_model_mb is None:
        model = "set by its marginals" if planned.models else "none: the noisy answers alone"
    out.print(
        facts_table(
            "Plan",
            [
                ("mechanism", planned.mechanism),
                *(("as published", f) for f in [planned.published_form] if f is not None),
                ("protected", planned.unit),
                (
                    "budget",
                    f"epsilon {planned.epsilon:g}, delta {planned.delta:g}"
                    f"{thresholds_in_words(planned.threshold_delta)}: rho {float(planned.rho):.6g}",
                ),
                ("attack risk", risk_in_words(planned.risk)),
                ("domain", f"{counted(planned.columns, 'column')}, {planned.cells:.3g} cells"),
                *(
                    []
                    if planned.workload is None
                    else [("workload", counted(planned.workload, "marginal"))]
                ),
                (
                    "counted",
                    f"{counted(planned.counted, 'marginal')} of {counted(planned.counted_cells, 'cell')},"
                    " behind the gate",
                ),
                (
                    "largest",
                    f"{', '.join(planned.largest)}: {counted(planned.largest_cells, 'cell')}",
                ),
                ("model", model),
                ("memory, about", f"{planned.memory_mb:,.0f} MB with {planned.rows:,} rows"),
                ("time, about", time),
            ],
        )
    )
    out.print()
    noise = Table(title="Noise", title_justify="left", box=None, pad_edge=False)
    for name in (
        "measured",
        "how many",
        "noise a cell",
        "error of a marginal (L1)",
        f"of {planned.rows:,} rows",
    ):
        noise.add_column(name, justify="left" if name == "measured" else "right")
    for n in planned.noise:
        share = (
            "over 100 %"
            if n.is_mostly_noise(planned.rows)
            else percent(n.expected_error / max(planned.rows, 1), ".3g")
        )
        many = f"{'at most ' * n.at_most}{n.marginals:,}" + (
            f", about {n.expected:,}" if n.expected else ""
        )
        noise.add_row(escape(n.what), many, f"{n.scale:,.4g}", _plain(n.error), share)
    out.print(noise)
    for n in planned.noise:
        if (verdict := n.verdict(planned.rows)) is not None:
            out.print(verdict, markup=False)
    for sentence in planned.column_words:
        out.print(escape(sentence))
    for purpose in planned.purposes:
        out.print(f"{purpose.purpose}: {purpose.words}.", markup=False)
    if planned.purposes:
        guess = " (assumed: state yours by --rows)" if assumed else ""
        out.print(
            f"Half-widths are those of 95 % intervals of {planned.rows:,} rows{guess}. Wide bins and values beyond"
            " learned bounds can add more than the noise. If you know that a group is small, read the half-width of its"
            " share of the rows in the brackets.",
            style="dim",
        )
    for sentence in planned.open_ended:
        out.print(sentence, markup=False)
    if planned.unasked:
        unasked = (
            f"{nothing_asked(planned.unasked, ahead=True)} A --workload that names them would ask."
        )
        out.print(unasked, markup=False)
    footer = "The error is the expected noise of a marginal, summed over its cells."
    if planned.models:
        footer += " The model averages over many and ends well below."
    if any(n.chosen for n in planned.noise):
        footer += " The mechanism selects marginals whose error the count reduces."
    out.print(footer, style="dim")
