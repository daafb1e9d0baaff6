"""``margrave evaluate``."""

from __future__ import annotations

import click
from rich.markup import escape
from rich.table import Table

from margrave.cli.options import (
    echo_json,
    json_option,
    load_schema,
    parse_workload,
    schema_option,
    workload_option,
)
from margrave.cli.output import console, facts_table
from margrave.data import read_table
from margrave.evaluate import WARNING, Evaluation, evaluate
from margrave.release import Release


@click.command("evaluate")
@click.argument("real", metavar="REAL")
@click.argument("synthetic", metavar="SYNTHETIC")
@schema_option
@workload_option
@json_option
def evaluate_command(real: str, synthetic: str, schema_path: str, workload: str, as_json: bool) -> None:
    """Compare the table REAL with SYNTHETIC, a table or a .margrave release. NOT PRIVATE: for the custodian alone."""
    schema = load_schema(schema_path)
    wanted = parse_workload(workload, schema.domain)
    other = Release.load(synthetic) if synthetic.endswith(".margrave") else read_table(synthetic, schema)
    found = evaluate(read_table(real, schema), other, wanted)
    if as_json:
        click.echo(WARNING, err=True)
        echo_json(found.to_dict())
    else:
        show_evaluation(found)


def show_evaluation(found: Evaluation) -> None:
    """The comparison, for a terminal."""
    out = console()
    out.print(f"[bold red]{WARNING}[/]")
    out.print(
        facts_table(
            "Real against synthetic",
            [
                ("rows", f"{found.real_rows:,} real, {found.synthetic_rows:,} synthetic"),
                ("workload error", f"{found.workload_error:.4f} over {len(found.errors)} marginals (0 to 2)"),
                (
                    "single counts",
                    f"off by {found.queries.largest:.4f} at most, {found.queries.mean:.6f} on average,"
                    f" {found.queries.rmse:.5f} in root mean square, as shares of all records:"
                    f" {found.queries.queries:,} counts",
                ),
                ("price of privacy", found.price()),
                ("one-way", f"{found.mean_one_way:.4f} mean total variation (0 to 1)"),
                ("two-way", f"{found.mean_two_way:.4f} mean total variation (0 to 1)"),
            ],
        )
    )
    out.print()
    columns = Table(title="Columns", title_justify="left", box=None, pad_edge=False)
    for name in ("column", "total variation", "furthest value", "real", "synthetic"):
        columns.add_column(name, justify="left" if name in ("column", "furthest value") else "right")
    for c in found.columns:
        shares = (f"{100 * c.real_share:.2f}%", f"{100 * c.synthetic_share:.2f}%")
        columns.add_row(escape(c.name), f"{c.total_variation:.4f}", escape(c.value), *shares)
    out.print(columns)
    out.print()
    out.print(facts_table("Worst marginals", [(f"{e:.4f}", escape(", ".join(c))) for c, e in found.worst()]))
