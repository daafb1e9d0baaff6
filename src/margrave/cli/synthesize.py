"""``margrave synthesize``: the main job. Everything that can be wrong is found before the gate opens."""

from __future__ import annotations

import os
from typing import Any

import click

from margrave.api import check_schema, gives_records, synthesize
from margrave.cli.mechanism import Sectioned, build_mechanism, mechanism_options, public_of, public_options
from margrave.cli.options import (
    books_options,
    budget_options,
    echo_json,
    json_option,
    load_schema,
    overwrite_option,
    parse_workload,
    schema_option,
    warn_weak,
    workload_option,
)
from margrave.cli.output import (
    check_excel_safe,
    check_format,
    check_outputs,
    excel_safe_option,
    progress_bar,
    write_table,
)
from margrave.cli.rescue import Keeper, default_journal
from margrave.cli.terminal import echo
from margrave.errors import InputError
from margrave.files import check_ending, same_file
from margrave.mechanisms import Mechanism
from margrave.privacy import Budget, parse_unit
from margrave.privacy.strength import check_strength
from margrave.release import Release
from margrave.release.size import check_room
from margrave.report import write_report
from margrave.report.words import contradicted, nothing_asked, related

UNTOLD = 1000
"""Rows that are drawn where neither --rows nor the noisy answers tell how many."""


@click.command("synthesize", cls=Sectioned)
@click.argument("file", metavar="FILE")
@schema_option
@budget_options
@mechanism_options
@public_options
@workload_option
@click.option(
    "--rows", "-n", type=int, default=None, help="How many synthetic rows; by default as many as estimated."
)
@click.option(
    "--output", "-o", default=None, metavar="FILE", help="Where the synthetic rows go: .parquet or .csv."
)
@excel_safe_option
@click.option(
    "--release", "release_path", default=None, metavar="FILE", help="Where the release goes: .margrave."
)
@click.option("--report", "report_path", default=None, metavar="FILE", help="Where the report goes: .html.")
@books_options
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
    unit: str | None,
    mechanism: str,
    workload: str | None,
    public: str | None,
    attestation: str | None,
    public_columns: str | None,
    same_records: bool,
    rows: int | None,
    allow_large_delta: bool,
    output: str | None,
    excel_safe: bool,
    release_path: str | None,
    report_path: str | None,
    ledger: str | None,
    dataset: str | None,
    policy: str | None,
    journal: str | None,
    resume: bool,
    same_table: bool,
    seed: int | None,
    overwrite: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Make a private synthetic copy of FILE (CSV or Parquet). Spends what epsilon and delta allow, once.

    With a ledger, several runs can never exceed the data set's cap together. Answers are kept in a journal until all
    outputs are written: a run that was interrupted or failed goes on from it with --resume and all else as it was, and
    nothing is spent twice.
    """
    outputs = {"-o": output, "--release": release_path, "--report": report_path}
    inputs = {"FILE": file, "--schema": schema_path, "--ledger": ledger, "--policy": policy, "--public": public}
    inputs["--workload"] = workload if workload is not None and os.path.isfile(workload) else None
    _check_outputs(outputs, inputs, rows, overwrite=overwrite)
    check_excel_safe(output, excel_safe)
    journal = _journal_of(journal, {**outputs, **inputs})
    schema = load_schema(schema_path, table=file)
    if rows is not None:
        check_room(rows, len(schema.columns))  # the budget is not spent for rows that cannot be drawn
    budget = Budget.approx(epsilon, delta)
    protected = check_schema(schema, None if unit is None else parse_unit(unit))
    check_strength(budget, rows=rows, allow_large_delta=allow_large_delta)
    warn_weak(budget)
    wanted = None if workload is None else parse_workload(workload, schema.domain)
    known = public_of(mechanism, schema, public, attestation, public_columns, same_records)
    chosen = build_mechanism(mechanism, wanted, parameters, known)
    _check_rows_exist(chosen, output)
    keeper = Keeper(outputs, journal, overwrite=overwrite)
    with keeper.watching(), progress_bar(quiet=as_json) as progress:
        release = keeper.release = synthesize(
            file,
            schema,
            epsilon=budget.epsilon,
            delta=budget.delta,
            unit=protected,
            mechanism=chosen,
            seed=seed,
            progress=progress,
            ledger=ledger,
            dataset=dataset,
            policy=policy,
            journal=journal,
            resume=resume,
            same_table=same_table,
            on_custodian=lambda sentence: echo(f"NOT PRIVATE, for the custodian alone: {sentence}", err=True),
            allow_large_delta=allow_large_delta,
        )
        _write(
            release, outputs, rows, seed, keeper.written, overwrite=overwrite, excel_safe=excel_safe
        )
    keeper.done()
    facts = release.certificate()
    if as_json:
        echo_json({"outputs": {k: v for k, v in outputs.items() if v is not None}, "certificate": facts})
    else:
        _tell(release, facts, outputs)


def _check_outputs(
    outputs: dict[str, str | None], inputs: dict[str, str | None], rows: int | None, *, overwrite: bool
) -> None:
    if not any(outputs.values()):
        raise InputError(
            "No output is named, so the budget would be spent for nothing.",
            remedy="Name at least one: -o rows.parquet, --release release.margrave, --report report.html.",
        )
    if rows is not None and rows < 0:
        raise InputError(f"--rows is {rows}.", remedy="It is at least 0.")
    check_format(outputs["-o"])
    check_outputs(outputs, overwrite=overwrite, inputs=inputs)
    for option, ending in (("--release", ".margrave"), ("--report", ".html")):
        if (path := outputs[option]) is not None:
            check_ending(path, ending, option)


def _journal_of(journal: str | None, others: dict[str, str | None]) -> str | None:
    """The journal that is named, or the one beside the first output."""
    if journal is None:
        journal = default_journal(others)
    for option, path in others.items():
        if journal is not None and path is not None and same_file(path, journal):
            raise InputError(f"--journal and {option} name the same file.", remedy="Name two.")
    return journal


def _check_rows_exist(mechanism: Mechanism, output: str | None) -> None:
    if output is not None and not gives_records(mechanism):
        raise InputError(
            f"The {mechanism.config()['name']} mechanism gives noisy answers only: there are no rows to write to -o.",
            remedy="Leave -o out and keep the --release, or choose another --mechanism.",
        )


def _write(
    release: Release,
    outputs: dict[str, str | None],
    rows: int | None,
    seed: int | None,
    written: list[str],
    *,
    overwrite: bool,
    excel_safe: bool,
) -> None:
    """The release first: with it on the disk, the other two can be made again at no cost."""
    if path := outputs["--release"]:
        release.save(path, overwrite=overwrite)
        written.append("--release")
    if path := outputs["-o"]:
        rows_drawn = release.sample(_number(release, rows), seed=seed)
        write_table(rows_drawn, path, overwrite=overwrite, schema=release.schema, excel_safe=excel_safe)
    if path := outputs["--report"]:
        write_report(release, path, overwrite=overwrite)


def _number(release: Release, rows: int | None) -> int | None:
    """How many rows to draw. The budget is spent: what the noise hides must not leave a run without its rows."""
    if rows is not None or release.size_told:
        return rows
    echo(
        f"Warning: the noise hides how many records there are, so {UNTOLD:,} rows were drawn. Name a number with"
        " --rows, or draw others from the --release with margrave sample.",
        err=True,
    )
    return UNTOLD


def _tell(release: Release, facts: dict[str, Any], outputs: dict[str, str | None]) -> None:
    rho = facts["rho"]
    told = {what: sum(what in e for e in facts["transcript"]) for what in ("measured", "asked", "selected")}
    single = f", {told['asked']} single count{'s' * (told['asked'] > 1)}" if told["asked"] else ""
    if not facts["private"]:
        echo(facts["warning"], err=True)
    echo(f"Protected: {facts['unit']}; epsilon {facts['epsilon']:g}, delta {facts['delta']:g}.")
    if "large_delta" in facts:
        echo(facts["large_delta"])
    if "several_rows" in facts:
        echo(facts["several_rows"])
    echo(
        f"Spent rho {rho['spent']['decimal']:.6g} of {rho['budget']['decimal']:.6g} on {told['measured']} noisy"
        f" marginals{single} and {told['selected']} private choices."
    )
    if facts["unasked"]:
        echo(f"{nothing_asked(facts['unasked'])} A --workload that names them, or more rounds, would ask.")
    if misfits := release.misfits:
        echo(f"{contradicted(misfits)} margrave refit fits another model to the same answers, at no cost.")
    if words_on_pairs := related(release.together):
        echo(" ".join(words_on_pairs))
    for option, words in (("-o", "Rows"), ("--release", "Release"), ("--report", "Report")):
        if outputs[option]:
            echo(f"{words}: {outputs[option]}")
