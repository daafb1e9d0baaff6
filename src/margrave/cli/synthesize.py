"""``margrave synthesize``: the main job. Everything that can be wrong is found before the gate opens."""

from __future__ import annotations

from typing import Any

import click

from margrave.api import check_schema, synthesize
from margrave.cli.mechanism import build_mechanism, mechanism_options
from margrave.cli.options import (
    DEFAULT_WORKLOAD,
    budget_options,
    echo_json,
    json_option,
    load_schema,
    overwrite_option,
    parse_workload,
    schema_option,
    workload_option,
)
from margrave.cli.output import check_format, check_outputs, progress_bar, write_table
from margrave.errors import InputError
from margrave.privacy import Budget, parse_unit
from margrave.release import Release
from margrave.report import write_report


@click.command("synthesize")
@click.argument("file", metavar="FILE")
@schema_option
@budget_options
@mechanism_options
@workload_option
@click.option(
    "--rows", "-n", type=int, default=None, help="How many synthetic rows; by default as many as estimated."
)
@click.option(
    "--output", "-o", default=None, metavar="FILE", help="Where the synthetic rows go: .parquet or .csv."
)
@click.option(
    "--release", "release_path", default=None, metavar="FILE", help="Where the release goes: .margrave."
)
@click.option("--report", "report_path", default=None, metavar="FILE", help="Where the report goes: .html.")
@click.option(
    "--seed", type=int, default=None, help="Makes fitting and sampling repeatable; the noise never is."
)
@overwrite_option
@json_option
def synthesize_command(
    file: str,
    schema_path: str,
    epsilon: float,
    delta: float,
    unit: str,
    mechanism: str,
    max_model_mb: float | None,
    rounds: int | None,
    workload: str,
    rows: int | None,
    output: str | None,
    release_path: str | None,
    report_path: str | None,
    seed: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Make a private synthetic copy of FILE (CSV or Parquet). Spends what epsilon and delta allow, once."""
    outputs = {"-o": output, "--release": release_path, "--report": report_path}
    _check_outputs(outputs, rows, overwrite=overwrite)
    _check_rows_exist(mechanism, output)
    schema = load_schema(schema_path)
    protected, budget = parse_unit(unit), Budget.approx(epsilon, delta)
    check_schema(schema, protected)
    wanted = parse_workload(workload, schema.domain)
    chosen = build_mechanism(
        mechanism, None if workload == DEFAULT_WORKLOAD else wanted, max_model_mb=max_model_mb, rounds=rounds
    )
    with progress_bar(quiet=as_json) as progress:
        release = synthesize(
            file,
            schema,
            epsilon=budget.epsilon,
            delta=budget.delta,
            unit=protected,
            mechanism=chosen,
            seed=seed,
            progress=progress,
        )
    _write(release, outputs, rows, seed, overwrite=overwrite)
    facts = release.certificate()
    if as_json:
        echo_json({"outputs": {k: v for k, v in outputs.items() if v is not None}, "certificate": facts})
    else:
        _tell(facts, outputs)


def _check_outputs(outputs: dict[str, str | None], rows: int | None, *, overwrite: bool) -> None:
    if not any(outputs.values()):
        raise InputError(
            "No output is named, so the budget would be spent for nothing.",
            remedy="Name at least one: -o rows.parquet, --release release.margrave, --report report.html.",
        )
    if rows is not None and rows < 0:
        raise InputError(f"--rows is {rows}.", remedy="It is at least 0.")
    check_format(outputs["-o"])
    check_outputs(outputs, overwrite=overwrite)


def _check_rows_exist(mechanism: str, output: str | None) -> None:
    if mechanism == "gaussian" and output is not None:
        raise InputError(
            "The gaussian mechanism gives noisy answers only: there are no rows to write to -o.",
            remedy="Leave -o out and keep the --release, or choose another --mechanism.",
        )


def _write(
    release: Release, outputs: dict[str, str | None], rows: int | None, seed: int | None, *, overwrite: bool
) -> None:
    """The release first: with it on the disk, the other two can be made again at no cost."""
    if path := outputs["--release"]:
        release.save(path, overwrite=overwrite)
    if path := outputs["-o"]:
        write_table(release.sample(rows, seed=seed), path, overwrite=overwrite)
    if path := outputs["--report"]:
        write_report(release, path, overwrite=overwrite)


def _tell(facts: dict[str, Any], outputs: dict[str, str | None]) -> None:
    rho = facts["rho"]
    measured = sum("measured" in e for e in facts["transcript"])
    if not facts["private"]:
        click.echo(facts["warning"], err=True)
    click.echo(f"Protected: {facts['unit']}; epsilon {facts['epsilon']:g}, delta {facts['delta']:g}.")
    click.echo(
        f"Spent rho {rho['spent']['decimal']:.6g} of {rho['budget']['decimal']:.6g} on {measured} noisy marginals and"
        f" {sum('selected' in e for e in facts['transcript'])} private choices."
    )
    for option, words in (("-o", "Rows"), ("--release", "Release"), ("--report", "Report")):
        if outputs[option]:
            click.echo(f"{words}: {outputs[option]}")
