"""``margrave ledger``: set a cap for a data set, see what is spent, close a run, check releases against a ledger."""

from __future__ import annotations

import re
from fractions import Fraction

import click
from rich.table import Table

from margrave._card import counted
from margrave.accounting import Budget, Ledger
from margrave.accounting.budget import thresholds_in_words
from margrave.accounting.ledger_state import DatasetState
from margrave.accounting.strength import advised_delta
from margrave.cli.options import (
    echo_json,
    json_option,
    load_schema,
    release_size_option,
    warn_weak,
)
from margrave.cli.output import console, escape, facts_table
from margrave.cli.terminal import echo
from margrave.cli.usage import Commands
from margrave.errors import InputError, LedgerError
from margrave.release import Release


@click.group("ledger", cls=Commands)
def ledger_command() -> None:
    """Set a cap for a data set, see what is spent, close a run, check releases."""


@ledger_command.command("init")
@click.argument("file", metavar="FILE")
@click.option("--dataset", required=True, metavar="ID", help="The data set: a name of your choice.")
@click.option("--epsilon", "-e", type=float, default=None, help="The cap as (epsilon, delta).")
@click.option(
    "--delta", type=float, default=None, help="The delta of the cap; with --rho 1e-9 by default."
)
@click.option(
    "--threshold-delta",
    type=float,
    default=0.0,
    show_default=True,
    help="The part of delta that runs may spend on thresholds, to learn categories: a tenth of the delta of each run,"
    " times the number of such runs that are planned.",
)
@click.option(
    "--rho", default=None, metavar="FRACTION", help="The cap in zCDP instead: 1/10 or 0.1, exactly."
)
@click.option(
    "--unit",
    required=True,
    help="Unit of privacy of every run: add-remove-row, replace-row, add-remove-person:K, replace-person:K.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Set another cap in the place of one that nothing is charged against.",
)
@json_option
def init_command(
    file: str,
    dataset: str,
    epsilon: float | None,
    delta: float | None,
    threshold_delta: float,
    rho: str | None,
    unit: str,
    replace: bool,
    as_json: bool,
) -> None:
    """Set the cap of a data set in FILE. FILE is made if it is missing.

    There is no default for --unit. From the first run on it is fixed; if one person may have
    several rows, choose a unit of persons.
    """
    cap = _cap(epsilon, delta, rho, threshold_delta)
    made = Ledger(file).init(dataset, unit=unit, cap=cap, replace=replace)
    warn_weak(cap)
    if as_json:
        echo_json(made.to_dict())
    else:
        echo(
            f"{dataset} may spend rho {float(made.cap.rho):.6g} in all: epsilon {made.cap.epsilon:.6g},"
            f" delta {made.cap.delta:g}{thresholds_in_words(made.cap.threshold_delta)}, unit {made.unit}."
        )
        echo(_threshold_words(made.cap))


@ledger_command.command("show")
@click.argument("file", metavar="FILE")
@json_option
def show_command(file: str, as_json: bool) -> None:
    """Print the caps in FILE, what is charged against them, and every run."""
    datasets = Ledger(file).datasets()
    if as_json:
        echo_json({"ledger": Ledger(file).identity(), "datasets": [d.to_dict() for d in datasets]})
        return
    echo(f"Ledger {Ledger(file).identity()}")
    for dataset in datasets:
        _show(dataset)


@ledger_command.command("close")
@click.argument("file", metavar="FILE")
@click.argument("run", metavar="RUN")
@json_option
def close_command(file: str, run: str, as_json: bool) -> None:
    """Close a RUN that will not be resumed. Its debits stay charged; the rest of its reservation is
    freed.
    """
    closed = Ledger(file).close(run)
    given = closed.reserved - closed.debited
    if as_json:
        amounts = {"debited": str(closed.debited), "given_back": str(given)}
        echo_json({"run": run, "dataset": closed.dataset, **amounts})
    else:
        echo(
            f"Closed {run}: rho {float(closed.debited):.6g} stays charged, {float(given):.6g} is given back."
        )


@ledger_command.command("verify")
@click.argument("file", metavar="LEDGER")
@click.argument("releases", metavar="RELEASES...", nargs=-1, required=True)
@release_size_option
@json_option
def verify_command(
    file: str, releases: tuple[str, ...], max_release_mb: float, as_json: bool
) -> None:
    """Check the chain of LEDGER, and that it still has the lines that each release was made under.

    A ledger that was reset, cut, rewritten or put back to an older state is reported.
    """
    accounts = {path: Release.load(path, max_mb=max_release_mb).account for path in releases}
    findings = Ledger(file).verify(accounts)
    if findings:
        alone = [path for path in findings if accounts[path].ledger is None]
        what = "contradicts" if len(alone) < len(findings) else "has no lines of"
        remedies = (
            "Restore the ledger that these releases were made under."
            * (len(alone) < len(findings)),
            f"Leave out {', '.join(alone)}." * bool(alone),
        )
        raise LedgerError(
            f"{file} {what} {counted(len(findings), 'release')}."
            + "".join(f"\n{path}: {sentence}" for path, sentence in findings.items()),
            remedy=" ".join(filter(None, remedies)),
        )
    if as_json:
        echo_json({"ledger": Ledger(file).identity(), "releases": list(releases)})
    else:
        echo(f"{file} has the lines of {counted(len(releases), 'release')}.")


@ledger_command.command("recover")
@click.argument("file", metavar="LEDGER")
@json_option
def recover_command(file: str, as_json: bool) -> None:
    """Take back what an interrupted run left unfinished in LEDGER. Nothing that was answered is lost."""
    lines = Ledger(file).recover()
    if as_json:
        echo_json({"lines": lines})
    else:
        echo(f"{file} is sound: {counted(lines, 'line')}.")


@ledger_command.command("register-schema")
@click.argument("file", metavar="LEDGER")
@click.argument("dataset", metavar="DATASET")
@click.argument("schema", metavar="SCHEMA")
@json_option
def register_schema_command(file: str, dataset: str, schema: str, as_json: bool) -> None:
    """Register SCHEMA, a TOML file, as one that sealed runs on DATASET may use."""
    from margrave.sealed import check_refuses_nothing  # imports all mechanisms

    chosen = load_schema(schema)
    check_refuses_nothing(chosen)
    digest = chosen.hash()
    Ledger(file).register_schema(dataset, digest)
    if as_json:
        echo_json({"dataset": dataset, "schema": digest})
    else:
        echo(f"{dataset} may be used with the schema {digest}.")


def _threshold_words(cap: Budget) -> str:
    """Return how many runs can learn categories under a new cap, and what to do if more are planned."""
    each, most, reuse = cap.delta / 10, 9, DatasetState.reuse_learned
    planned = (
        f"{each:g} for each release that is planned ({5 * each:g} for five, {most * each:g} at most), and --replace"
        " before the first run"
    )
    if runs := int(cap.threshold_room / Fraction(each)):
        return (
            f"That is enough for {counted(runs, 'run')} at delta {cap.delta:g} that learn{'s' * (runs == 1)}"
            f" categories. {reuse} If more are to learn, set the cap anew with --threshold-delta: {planned}."
        )
    return (
        "Runs that learn categories, such as those of --accept-draft, will be refused: they spend delta on thresholds,"
        f" a tenth of their own. To allow them, set the cap anew with --threshold-delta: {planned}. {reuse}"
    )


def _cap(
    epsilon: float | None, delta: float | None, rho: str | None, threshold_delta: float
) -> Budget:
    if (epsilon is None) == (rho is None):
        raise InputError(
            "The cap is given as --epsilon and --delta, or as --rho.", remedy="Give one of the two."
        )
    if epsilon is not None:
        if delta is None:
            raise InputError(
                "The cap has an epsilon and no delta.",
                remedy=f"{advised_delta(None)} To learn categories, give --threshold-delta too: a tenth of it for each"
                " release that is planned.",
            )
        return Budget.approx(epsilon, delta, threshold_delta)
    if rho is None or not re.fullmatch(r"[0-9]{1,30}(/0*[1-9][0-9]{0,30}|\.[0-9]{1,30})?", rho):
        raise InputError(f"--rho is {rho!r}.", remedy="Write a fraction or a decimal: 1/10 or 0.1.")
    return Budget.zcdp(Fraction(rho), 1e-9 if delta is None else delta, threshold_delta)


def _show(dataset: DatasetState) -> None:
    out = console()
    out.print(facts_table(dataset.dataset, dataset.facts))
    if dataset.runs:
        runs = Table(box=None, pad_edge=False)
        for name in ("run", "begun", "state", "reserved", "debited", "debits"):
            runs.add_column(name, justify="left" if name in ("run", "begun", "state") else "right")
        for r in dataset.runs:
            amounts = f"{float(r.reserved):.6g}", f"{float(r.debited):.6g}", str(len(r.debits))
            runs.add_row(r.run, r.day, "closed" if r.closed else "open", *amounts)
        out.print(runs)
    for r in dataset.unfinished:
        kept = "" if r.journal is None else f" Its journal is {r.journal}: resume it, or close it."
        out.print(escape(f"{r.run} is in progress, or was killed.{kept}"), style="dim")
    out.print()
