"""``margrave synthesize``: the main job. Everything that can be wrong is found before the gate opens."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any, Literal

import click

from margrave._card import counted
from margrave._io import check_ending, name_of
from margrave.accounting import parse_unit
from margrave.accounting.budget import thresholds_in_words
from margrave.accounting.journal import read_header
from margrave.cli.catalog import CatalogName
from margrave.cli.mechanism import (
    Sectioned,
    build_mechanism,
    mechanism_options,
    name_or_default,
    public_of,
    public_options,
)
from margrave.cli.notes import after_notes, import_note, ledger_note, output_notes, warn_of_persons
from margrave.cli.numbers import show_headlines
from margrave.cli.options import (
    books_options,
    budget_options,
    echo_json,
    heading_options,
    json_option,
    load_schema,
    overwrite_option,
    parse_workload,
    purposes_option,
    schema_or_draft_options,
    stated_delta,
    warn_weak,
    workload_option,
)
from margrave.cli.output import (
    check_excel_safe,
    check_named,
    check_not_the_table,
    check_outputs,
    excel_safe_option,
)
from margrave.cli.rescue import Keeper, journal_of, unfinished_release
from margrave.cli.terminal import echo
from margrave.custodian import NOT_PRIVATE
from margrave.data import TABLE_CATALOG, TableSource
from margrave.data.writer import check_format, check_holds, endings_in_words, write_table
from margrave.errors import InputError, LedgerError
from margrave.learning_stage import budget_for, rows_to_learn
from margrave.mechanisms import Mechanism
from margrave.profiling import backward_rows, constraint_questions, taken_as_public
from margrave.profiling.draft import quiet_draft
from margrave.profiling.short_questions import all_questions
from margrave.progress import reporting
from margrave.purposes import open_ended, purposes_of
from margrave.release import Release
from margrave.release.numbers import headlines, numbers_of
from margrave.release.purpose_verdicts import purpose_verdicts
from margrave.release.sampling import check_memory, rows_if_unknown
from margrave.report import Heading, Page
from margrave.report.wording import contradicted, nothing_asked, related
from margrave.run import Run, settled_unit
from margrave.schema import Schema
from margrave.sealed import registered_schema


@click.command("synthesize", cls=Sectioned)
@click.argument("file", metavar="FILE")
@click.option(
    "--source",
    type=CatalogName(TABLE_CATALOG),
    default=None,
    help="The kind of table that opens FILE, of another distribution, unless FILE is a file.",
)
@schema_or_draft_options
@budget_options
@mechanism_options
@public_options
@workload_option
@purposes_option
@click.option(
    "--rows",
    "-n",
    type=int,
    default=None,
    help="Number of synthetic rows (default: the estimated row count).",
)
@click.option(
    "--output",
    "-o",
    default=None,
    metavar="FILE",
    help=f"Where the synthetic rows go: {endings_in_words()}.",
)
@excel_safe_option
@click.option(
    "--release",
    "release_path",
    default=None,
    metavar="FILE",
    help="Where the release goes: .margrave.",
)
@click.option(
    "--report", "report_path", default=None, metavar="FILE", help="Where the report goes: .html."
)
@heading_options
@books_options
@click.option(
    "--seed",
    type=int,
    default=None,
    help="Makes fitting and sampling repeatable; the noise never is.",
)
@click.option(
    "--sealed",
    is_flag=True,
    help="For services: errors say nothing of the rows, and each attempt is in the ledger.",
)
@click.option(
    "--unlearnable",
    type=click.Choice(["stop", "drop"]),
    default="stop",
    show_default=True,
    help="Stop at a column to learn whose values the noise hides, or leave it out.",
)
@overwrite_option
@json_option
def synthesize_command(
    file: str,
    source: str | None,
    schema_path: str | None,
    accept_draft: bool,
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
    output: str | None,
    excel_safe: bool,
    release_path: str | None,
    report_path: str | None,
    title: str,
    office: str,
    ledger: str | None,
    dataset: str | None,
    policy: str | None,
    journal: str | None,
    resume: bool,
    same_table: bool,
    seed: int | None,
    sealed: bool,
    unlearnable: Literal["stop", "drop"],
    overwrite: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Make a private synthetic copy of FILE: CSV, Parquet, Arrow, JSON Lines, a workbook, Stata, SPSS or SAS, a folder
    or pattern of such files, WORKBOOK?sheet=NAME, duckdb:FILE?table=NAME, or spark:CATALOG.SCHEMA.TABLE. Spends what
    epsilon and delta allow, once.

    With a ledger, several runs can never exceed the data set's cap together. Answers are kept in a journal until all
    outputs are written: a run that was interrupted or failed goes on from it with --resume and all else as it was, and
    nothing is spent twice.
    """
    outputs = {"-o": output, "--release": release_path, "--report": report_path}
    inputs = {
        "FILE": file,
        "--schema": schema_path,
        "--ledger": ledger,
        "--policy": policy,
        "--public": public,
    }
    delta = stated_delta(delta, None)
    listed = workload if workload is not None and os.path.isfile(workload) else None
    inputs["--workload"] = listed
    check_named(outputs, rows)
    journal = journal_of(journal, outputs, inputs)
    left = unfinished_release(release_path, journal)
    if not resume:
        _check_new(journal, left)
    replaced = ["--release"] if resume and left is not None else []
    _check_outputs(outputs, inputs, overwrite=overwrite, replaced=replaced)
    check_excel_safe(output, excel_safe)
    if report_path is None and (title or office):
        raise InputError(
            "--title and --office are words of the report.", remedy="Give --report too."
        )
    named = dataset or ("" if source else name_of(file))
    heading = Heading(title=title, office=office, dataset=named)
    table = file if source is None else TableSource(source, file)
    counted = {"--public": None if same_records else public, "--workload": listed}
    check_not_the_table(file, counted | {"--policy": policy})
    if sealed:
        schema = _sealed_schema(schema_path, ledger, dataset)
    else:
        schema = _schema_of(file, table, schema_path, accept_draft)
    check_holds(output, schema, rows)
    if rows is not None:
        check_memory(
            rows, len(schema.columns)
        )  # the budget is not spent for rows that cannot be drawn
    budget = budget_for(schema, epsilon, delta)
    protected = settled_unit(schema, None if unit is None else parse_unit(unit))
    wanted = None if workload is None else parse_workload(workload, schema.domain)
    serves = bool(wanted or purposes)
    method = name_or_default(mechanism, schema.domain, serves=serves)
    known = public_of(method, schema, public, attestation, public_columns, same_records)
    chosen = build_mechanism(method, wanted, parameters, known)
    _check_rows_exist(chosen, output)
    run = Run(
        schema=schema,
        budget=budget,
        unit=protected,
        mechanism=chosen,
        policy=policy,
        ledger=ledger,
        dataset=None if ledger is None and report_path else dataset,
        journal=journal,
        resume=resume,
        same_table=same_table,
        seed=seed,
        allow_large_delta=allow_large_delta,
        preflight="sealed" if sealed else "custodian",
        unlearnable=unlearnable,
        purposes=purposes,
    )
    warn_of_persons(schema)
    for sentence in open_ended(purposes_of(purposes, schema.domain), schema.to_learn):
        echo(f"Note: {sentence}", err=True)
    keeper = Keeper(outputs, journal, overwrite=overwrite, replaces_release=bool(replaced))
    warn_weak(budget)
    notes = [
        *output_notes(outputs, schema),
        "" if ledger else ledger_note({**inputs, **outputs}),
        rows_to_learn(schema, budget, protected, None),
    ]
    with keeper.watching(), reporting(not as_json) as progress:
        release = keeper.release = run.synthesize(
            table,
            progress=after_notes(notes, progress),
            on_custodian=None if sealed else _for_custodian,
        )
        _write(
            release,
            outputs,
            heading,
            rows,
            seed,
            keeper.written,
            overwrite=overwrite,
            replaced=replaced,
            excel_safe=excel_safe,
        )
    keeper.done()
    facts = release.certificate()
    if as_json:
        written = {k: v for k, v in outputs.items() if v is not None}
        echo_json({"outputs": written, "certificate": facts})
    else:
        _tell(release, facts, outputs, heading, schema.ignore)


def _sealed_schema(path: str | None, ledger: str | None, dataset: str | None) -> Schema:
    if path is None:
        raise InputError(
            "A sealed run needs a registered schema.",
            remedy="Give --schema, and leave --accept-draft out: a draft is made by the custodian.",
        )
    return registered_schema(path, ledger, dataset)


def _schema_of(file: str, table: str | TableSource, path: str | None, accept_draft: bool) -> Schema:
    """Return the schema of a file, or a draft whose bounds and categories are to be learned."""
    if path is not None and accept_draft:
        raise InputError(
            "--schema and --accept-draft are both given, and a run has one schema.",
            remedy="Leave --accept-draft out to run with the schema of the file, or --schema to run with a draft.",
        )
    if path is None and not accept_draft:
        raise InputError(
            "A run needs either --schema or --accept-draft.",
            remedy="Draft a schema with margrave schema draft; or give --accept-draft, which takes the names and kinds"
            " of the columns, 0 and 1, and true and false as public, and learns other bounds and categories.",
        )
    if path is not None:
        return load_schema(path, table=file)
    if isinstance(table, TableSource):
        raise InputError(
            "A draft is made from a file, by the custodian.",
            remedy="Give --schema instead of --accept-draft.",
        )
    drafted = quiet_draft(file)
    relations, notes = constraint_questions(file, drafted), backward_rows(file, drafted)
    asked = all_questions(drafted, relations, notes)
    for sentence in asked:
        _for_custodian(sentence)
    if asked:
        _for_custodian(
            f"margrave schema draft {file} -o FILE writes these questions with the values that they are about, and"
            f" margrave schema ask {file} -o FILE asks them. A schema that answers them makes a better release."
        )
    echo(f"{taken_as_public(drafted)}{import_note(file)}", err=True)
    return drafted


def _for_custodian(sentence: str) -> None:
    echo(f"{NOT_PRIVATE} {sentence}", err=True)


def _check_new(journal: str, left: Release | None) -> None:
    """Raise ``LedgerError`` if the journal holds a run, with the reason why that run stopped if it left one."""
    try:
        read_header(journal, resume=False)
    except LedgerError as error:
        why, remedy = "", error.remedy
        if left is not None:
            why = f" {left.no_model[0].upper()}{left.no_model[1:]}."
            if not left.transcript.counts_something:
                remedy = f"{left.model.remedy} Or give it up: remove the journal. Its debits stay charged."
        raise LedgerError(f"{error.message}{why}", remedy=remedy) from None


def _check_outputs(
    outputs: dict[str, str | None],
    inputs: dict[str, str | None],
    *,
    overwrite: bool,
    replaced: Collection[str],
) -> None:
    check_format(outputs["-o"])
    check_outputs(outputs, overwrite=overwrite, inputs=inputs, replaced=replaced)
    for option, ending in (("--release", ".margrave"), ("--report", ".html")):
        if (path := outputs[option]) is not None:
            check_ending(path, ending, option)


def _check_rows_exist(mechanism: Mechanism, output: str | None) -> None:
    if output is not None and not mechanism.gives_records:
        raise InputError(
            f"The {mechanism.config()['name']} mechanism gives noisy answers only: there are no rows to write to -o.",
            remedy="Leave -o out and keep the --release, or choose another --mechanism.",
        )


def _write(
    release: Release,
    outputs: dict[str, str | None],
    heading: Heading,
    rows: int | None,
    seed: int | None,
    written: list[str],
    *,
    overwrite: bool,
    replaced: Collection[str],
    excel_safe: bool,
) -> None:
    """Write the release first: from it the other two can be made again at no cost."""
    if path := outputs["--release"]:
        release.save(path, overwrite=overwrite or "--release" in replaced)
        written.append("--release")
    if path := outputs["-o"]:
        rows_drawn = release.sample(_number(release, rows), seed=seed)
        write_table(
            rows_drawn, path, overwrite=overwrite, schema=release.schema, excel_safe=excel_safe
        )
    if path := outputs["--report"]:
        Page.of(release, heading).save(path, overwrite=overwrite)


def _number(release: Release, rows: int | None) -> int | None:
    """Return the number of rows to draw; a run that has spent always gets some."""
    default_rows = rows_if_unknown()
    if rows is not None or release.row_count_is_known:
        return rows
    echo(
        f"Warning: the noise hides how many records there are, so {default_rows:,} rows were drawn. Name a number with"
        " --rows, or draw others from the --release with margrave sample.",
        err=True,
    )
    return default_rows


def _tell(
    release: Release,
    facts: dict[str, Any],
    outputs: dict[str, str | None],
    heading: Heading,
    ignored: Sequence[str],
) -> None:
    rho = facts["rho"]
    counts = {
        what: sum(what in e for e in facts["transcript"])
        for what in ("measured", "asked", "selected")
    }
    single = f", {counted(counts['asked'], 'single count')}" if counts["asked"] else ""
    if not facts["private"]:
        echo(facts["warning"], err=True)
    thresholds = thresholds_in_words(facts.get("threshold_delta", 0.0))
    echo(
        f"Protected: {facts['unit']}; epsilon {facts['epsilon']:g}, delta {facts['delta']:g}{thresholds}."
    )
    if "large_delta" in facts:
        echo(facts["large_delta"])
    if "several_rows" in facts:
        echo(facts["several_rows"])
    echo(
        f"Spent rho {rho['spent']['decimal']:.6g} of {rho['budget']['decimal']:.6g} on"
        f" {counted(counts['measured'], 'noisy marginal')}{single} and"
        f" {counted(counts['selected'], 'private selection')}."
    )
    if facts["unmeasured_columns"]:
        echo(
            f"{nothing_asked(facts['unmeasured_columns'])} A --workload that names them, or more rounds, would ask."
        )
    if misfits := release.misfit:
        echo(
            f"{contradicted(misfits)} margrave refit fits another model to the same answers, at no cost."
        )
    if hidden := [name for name in release.schema.ignore if name not in ignored]:
        echo(f"Left out, because the noise hides their values: {', '.join(hidden)}.")
    numbers = numbers_of(release.schema, release.transcript, release.model, 0.95)
    main = headlines(numbers)
    for purpose in purpose_verdicts(release, numbers):
        doubt = f" Do not use it: {purpose.warning}." if purpose.doubts else ""
        rest = f"{purpose.gap} {purpose.remedy}".strip()
        echo(f"Made for {purpose.support.words}.{doubt} {rest}".rstrip())
    if words_on_pairs := related(release.coverage):
        echo(" ".join(words_on_pairs))
    show_headlines(release, main)
    report = f'Report "{heading.words}"'
    for option, words in (("-o", "Rows"), ("--release", "Release"), ("--report", report)):
        if outputs[option]:
            echo(f"{words}: {outputs[option]}")
