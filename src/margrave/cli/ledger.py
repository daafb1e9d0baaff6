"""``margrave ledger``: set a cap for a data set, see what is spent, close a run that will not be resumed."""

from __future__ import annotations

import re
from fractions import Fraction

import click
from rich.table import Table

from margrave.cli.options import echo_json, json_option, warn_weak
from margrave.cli.output import console, escape, facts_table
from margrave.cli.terminal import echo
from margrave.errors import InputError
from margrave.privacy import Budget, LedgerFile
from margrave.privacy.budget import affordable
from margrave.privacy.ledger_state import DatasetState, epsilon_or_zero


@click.group("ledger")
def ledger_command() -> None:
    """Set a cap for a data set, see what is spent, close a run."""


@ledger_command.command("init")
@click.argument("file", metavar="FILE")
@click.option("--dataset", required=True, metavar="ID", help="The data set: a name of your choice.")
@click.option("--epsilon", "-e", type=float, default=None, help="The cap as (epsilon, delta).")
@click.option("--delta", type=float, default=None, help="The delta of the cap; with --rho 1e-9 by default.")
@click.option("--rho", default=None, metavar="FRACTION", help="The cap in zCDP instead: 1/10 or 0.1, exactly.")
@click.option(
    "--unit",
    required=True,
    help="What is protected, as of every run: add-remove-row, replace-row, add-remove-person:K, replace-person:K.",
)
@click.option("--replace", is_flag=True, help="Set another cap in the place of one that nothing is charged against.")
@json_option
def init_command(
    file: str,
    dataset: str,
    epsilon: float | None,
    delta: float | None,
    rho: str | None,
    unit: str,
    replace: bool,
    as_json: bool,
) -> None:
    """Set in FILE what all runs on a data set may spend together. FILE is made if it is not there.

    Of the --unit nothing is taken for granted: from the first run on it stays, and where one person may have several
    rows, a cap on rows promises each of them less.
    """
    cap = _cap(epsilon, delta, rho)
    made = LedgerFile(file).init(dataset, unit=unit, cap=cap, replace=replace)
    warn_weak(cap)
    if as_json:
        echo_json(made.to_dict())
    else:
        echo(
            f"{dataset} may spend rho {float(made.cap.rho):.6g} in all: epsilon {made.cap.epsilon:.6g},"
            f" delta {made.cap.delta:g}, unit {made.unit}."
        )


@ledger_command.command("show")
@click.argument("file", metavar="FILE")
@json_option
def show_command(file: str, as_json: bool) -> None:
    """Print the caps in FILE, what is charged against them, and every run."""
    found = LedgerFile(file).datasets()
    if as_json:
        echo_json({"ledger": LedgerFile(file).identity(), "datasets": [d.to_dict() for d in found]})
        return
    echo(f"Ledger {LedgerFile(file).identity()}")
    for dataset in found:
        _show(dataset)


@ledger_command.command("close")
@click.argument("file", metavar="FILE")
@click.argument("run", metavar="RUN")
@json_option
def close_command(file: str, run: str, as_json: bool) -> None:
    """Close a RUN that will not be resumed. What it was debited stays charged; the rest of its reservation is free."""
    closed = LedgerFile(file).close(run)
    given = closed.reserved - closed.debited
    if as_json:
        amounts = {"debited": str(closed.debited), "given_back": str(given)}
        echo_json({"run": run, "dataset": closed.dataset, **amounts})
    else:
        echo(f"Closed {run}: rho {float(closed.debited):.6g} stays charged, {float(given):.6g} is given back.")


def _cap(epsilon: float | None, delta: float | None, rho: str | None) -> Budget:
    if (epsilon is None) == (rho is None):
        raise InputError("The cap is given as --epsilon and --delta, or as --rho.", remedy="Give one of the two.")
    if epsilon is not None:
        if delta is None:
            raise InputError("The cap has an epsilon and no delta.", remedy="Add --delta 1e-9, say.")
        return Budget.approx(epsilon, delta)
    if rho is None or not re.fullmatch(r"[0-9]{1,30}(/0*[1-9][0-9]{0,30}|\.[0-9]{1,30})?", rho):
        raise InputError(f"--rho is {rho!r}.", remedy="Write a fraction or a decimal: 1/10 or 0.1.")
    return Budget.zcdp(Fraction(rho), 1e-9 if delta is None else delta)


def _show(dataset: DatasetState) -> None:
    out, cap = console(), dataset.cap
    spent, fits = epsilon_or_zero(dataset.charged, cap.delta), affordable(dataset.remaining, cap.delta)
    left = f"a run of epsilon {fits:g} at that delta would fit" if fits else "too little for any run"
    out.print(
        facts_table(
            dataset.dataset,
            [
                ("protected", f"{dataset.unit}, since {dataset.day}"),
                ("cap", f"rho {float(cap.rho):.6g}: epsilon {cap.epsilon:.6g}, delta {cap.delta:g}"),
                ("charged", f"rho {float(dataset.charged):.6g}: epsilon {spent:.6g} at that delta"),
                ("remaining", f"rho {float(dataset.remaining):.6g}: {left}"),
            ],
        )
    )
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
