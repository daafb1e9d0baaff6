"""``margrave evaluate``."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import click
from rich.table import Table

from margrave._card import counted
from margrave.cli.options import (
    echo_json,
    json_option,
    load_schema,
    overwrite_option,
    parse_workload,
    release_size_option,
    schema_or_release_option,
    workload_option,
)
from margrave.cli.output import check_outputs, console, escape, facts_table
from margrave.cli.terminal import echo
from margrave.data import read_codes, read_table, synthetic_codes
from margrave.errors import InputError
from margrave.evaluation import (
    WARNING,
    Evaluation,
    GeometryErrors,
    NumberSummary,
    Spread,
    check_apart,
    evaluate,
    geometry_errors,
)
from margrave.evaluation.inputs import common_schema
from margrave.ratios import percent
from margrave.release import Release
from margrave.schema import Column, Schema


@click.command("evaluate")
@click.argument("real", metavar="REAL")
@click.argument("synthetic", metavar="SYNTHETIC")
@schema_or_release_option
@workload_option
@click.option(
    "--rows",
    "-n",
    type=int,
    default=None,
    help="Number of records drawn from a release (default: the estimated row count).",
)
@click.option(
    "--seed",
    type=int,
    default=None,
    help="Makes the records of a release, and so the result, repeatable.",
)
@click.option(
    "--geometry",
    is_flag=True,
    help="Also the errors of covariances, boxes, half-spaces, and SW1 distances.",
)
@click.option(
    "--target",
    metavar="COLUMN",
    help="With --test: the error of predicting it, trained on SYNTHETIC.",
)
@click.option(
    "--test", "test_path", metavar="FILE", help="Real rows held out, to test that prediction on."
)
@click.option(
    "--regression",
    is_flag=True,
    help="With --target, a number: the mean squared error, in squared codes.",
)
@click.option(
    "--report",
    metavar="FILE",
    help="Also a page with charts, an HTML file. NOT PRIVATE: its folder must hold no release.",
)
@overwrite_option
@release_size_option
@json_option
def evaluate_command(
    real: str,
    synthetic: str,
    schema_path: str | None,
    workload: str | None,
    rows: int | None,
    seed: int | None,
    geometry: bool,
    target: str | None,
    test_path: str | None,
    regression: bool,
    report: str | None,
    overwrite: bool,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Compare the table REAL with SYNTHETIC, a table or a .margrave release. NOT PRIVATE: for the custodian alone.

    The schema is that of the release; beside it --schema says how dates are written. A table needs --schema.
    """
    if real.lower().endswith(".margrave"):
        raise InputError(
            "REAL is a release, and it is the table of real rows.",
            remedy="Write the table first, and the release after it: margrave evaluate visits.csv visits.margrave.",
        )
    if report is not None:
        inputs = {
            "REAL": real,
            "SYNTHETIC": synthetic,
            "--schema": schema_path,
            "--test": test_path,
        }
        check_outputs({"--report": report}, overwrite=overwrite, inputs=inputs)
        check_apart(report, overwrite=overwrite, option="--report")
    if (target is None) != (test_path is None):
        raise InputError("--target and --test belong together.", remedy="Give both, or neither.")
    if regression and target is None:
        raise InputError(
            "--regression needs a target.",
            remedy="Give --target and --test, or leave --regression out.",
        )
    if rows == 0:
        raise InputError(
            "--rows is 0, so there would be nothing to compare.",
            remedy="Give at least 1, or leave --rows out.",
        )
    release = _release(synthetic, rows, seed, max_release_mb)
    schema = _schema(schema_path, release, real)
    wanted = parse_workload(workload, schema.domain)
    if target is not None:
        schema.domain.index(target)
        if regression and schema.column(target).kind == "categorical":
            raise InputError(
                f"--target names {target!r}, whose categories have no order, and --regression needs a number.",
                remedy="Leave --regression out.",
            )
    if release is not None and seed is None:
        seed = secrets.randbits(63)  # all measures are of the same records
    other = synthetic if release is None else release
    found = evaluate(real, other, wanted, schema=schema, rows=rows, seed=seed)
    further: GeometryErrors | None = None
    if geometry or target is not None:
        table = read_table(real, schema)
        codes = (
            synthetic_codes(synthetic, schema)
            if release is None
            else release.codes(found.synthetic_rows, seed=seed)
        )
        test = None if test_path is None else read_codes(test_path, schema, list(schema.domain))
        further = geometry_errors(table, codes, target=target, test=test, regression=regression)
    if report is not None:
        found.report().save(report, overwrite=overwrite)
        echo(f"NOT PRIVATE, for the custodian alone: wrote the report to {report}.", err=as_json)
    if as_json:
        echo(WARNING, err=True)
        echo_json(
            found.to_dict()
            if further is None
            else {**found.to_dict(), "geometry": further.to_dict()}
        )
    else:
        show_evaluation(found)
        if further is not None:
            if geometry:
                show_geometry(further, pairs=bool(found.two_way))
            if target is not None:
                show_prediction(further, schema.column(target), regression=regression)


def _release(
    synthetic: str, rows: int | None, seed: int | None, max_release_mb: float
) -> Release | None:
    if synthetic.lower().endswith(".margrave"):
        return Release.load(synthetic, max_mb=max_release_mb)
    if rows is not None or seed is not None:
        raise InputError(
            "--rows and --seed are about records drawn from a release, and SYNTHETIC is a table.",
            remedy="Leave them out, or give the release.",
        )
    return None


def _schema(path: str | None, release: Release | None, real: str) -> Schema:
    """Return the schema of the release; without one that of the file. Both must agree."""
    if path is None and release is None:
        raise InputError("A table SYNTHETIC needs a schema.", remedy="Give --schema.")
    stated = None if path is None else load_schema(path, table=real)
    common = common_schema(release, stated)
    assert common is not None
    return common


def show_geometry(found: GeometryErrors, *, pairs: bool) -> None:
    """Print the measures for ordered codes. ``pairs``: there are pairs of columns."""
    lines = [
        ("covariances", f"{found.covariance:.3g} of the norm of the synthetic rows' covariances"),
        ("random boxes", f"{found.counting:.3g} of the real rows in them"),
        ("random half-spaces", f"{found.thresholding:.3g} of the real rows in them"),
    ]
    if pairs:
        lines += [
            ("SW1 of pairs", f"{found.sliced_wasserstein:.3g} on average, columns from 0 to 1"),
            ("L1 of pairs", f"{found.two_way_l1:.4f} on average (0 to 2)"),
        ]
    out = console()
    out.print()
    out.print(facts_table("Measures for ordered codes (0 for identical tables)", lines))


def show_prediction(found: GeometryErrors, target: Column, *, regression: bool) -> None:
    """Print the error of predicting a column."""
    error = ("misclassified", f"{found.downstream:.4f} of the test rows (0 to 1)")
    if regression:
        error = ("mean squared error", f"{found.downstream:.4f} in squared codes")
    out = console()
    out.print()
    out.print(facts_table(f"Prediction of {target.name}, trained on the synthetic rows", [error]))
    if not regression and target.kind in ("integer", "real") and target.size > 2:
        out.print(
            escape(
                f"{target.name} is a number, and a row counts as misclassified if its bin is another. --regression"
                " gives the mean squared error instead."
            )
        )


def _numbers(found: Sequence[NumberSummary]) -> Table:
    shown = Table(title="Numbers", title_justify="left", box=None, pad_edge=False)
    for name in ("column", "mean", "synthetic", "off by", "quartiles", "synthetic"):
        shown.add_column(name, justify="left" if name == "column" else "right")
    for n in found:
        means = ["none" if s is None else f"{s.mean:,.6g}" for s in (n.real, n.synthetic)]
        shown.add_row(
            escape(n.name), *means, n.words(), _quartiles(n.real), _quartiles(n.synthetic)
        )
    return shown


def _quartiles(spread: Spread | None) -> str:
    if spread is None:
        return "none"
    return " ".join(f"{q:,.5g}" for q in (spread.quarter, spread.median, spread.three_quarters))


def show_evaluation(found: Evaluation) -> None:
    """Print the comparison."""
    out = console()
    out.print(f"[bold red]{WARNING}[/]")
    out.print(
        facts_table(
            "Real against synthetic",
            [
                ("rows", f"{found.real_rows:,} real, {found.synthetic_rows:,} synthetic"),
                (
                    "workload error",
                    f"{found.workload_error:.4f} over {counted(len(found.errors), 'marginal')} (0 to 2)",
                ),
                (
                    "single counts",
                    f"off by {found.queries.largest:.4f} at most, {found.queries.mean:.6f} on average,"
                    f" {found.queries.rmse:.5f} in root mean square, as shares of all records:"
                    f" {found.queries.queries:,} counts",
                ),
                ("equivalent sample size", found.equivalent_sample_size()),
                ("one-way", f"{found.mean_one_way:.4f} mean total variation (0 to 1)"),
                *(
                    [("two-way", f"{found.mean_two_way:.4f} mean total variation (0 to 1)")]
                    if found.two_way
                    else []
                ),
            ],
        )
    )
    if found.note:
        out.print(escape(found.note))
    out.print()
    columns = Table(title="Columns", title_justify="left", box=None, pad_edge=False)
    for name in ("column", "total variation", "furthest value", "real", "synthetic"):
        columns.add_column(
            name, justify="left" if name in ("column", "furthest value") else "right"
        )
    for c in found.columns:
        shares = (percent(c.real_share, ".2f"), percent(c.synthetic_share, ".2f"))
        columns.add_row(escape(c.name), f"{c.total_variation:.4f}", escape(c.value), *shares)
    out.print(columns)
    if found.numbers:
        out.print()
        out.print(_numbers(found.numbers))
    out.print()
    out.print(
        facts_table("Worst marginals", [(f"{e:.4f}", ", ".join(c)) for c, e in found.worst()])
    )
