"""The entry point: which command lives where, and how every failure ends."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from margrave._version import __version__
from margrave.cli.terminal import echo, error_facts, json_text
from margrave.cli.usage import Commands, usage_words
from margrave.error_sanitizer import InternalError
from margrave.errors import (
    BinWarning,
    CustodianWarning,
    MargraveError,
    PersonWarning,
    RefitWarning,
)

INTERRUPTED = 130

# Help and completion are answered from this table; a command's module, and all that it needs, is loaded when it runs.
COMMANDS = {
    "schema": ("schema", "Draft a schema from a file, or check a file against a schema."),
    "plan": ("plan", "Say what a run would do and cost, from public inputs alone."),
    "mechanisms": ("mechanisms", "List the mechanisms, and what each is for."),
    "synthesize": ("synthesize", "Make a private synthetic table, a release and a report."),
    "studio": ("studio", "Open a page in your browser that leads from a file to a release."),
    "ledger": (
        "ledger",
        "Set a cap for a data set, see what is spent, close a run, check releases.",
    ),
    "sample": ("sample", "Draw rows from a release."),
    "refit": ("refit", "Fit another model to the noisy answers of a release."),
    "evaluate": ("evaluate", "Compare real and synthetic rows. The result is not private."),
    "report": ("report", "Write a release's report as one HTML page."),
    "numbers": ("numbers", "Show means, quantiles and shares of a release with their intervals."),
    "marginals": ("marginals", "Write the noisy marginals of a release, as they were measured."),
    "croissant": ("croissant", "Describe tables drawn from a release for catalogs of data sets."),
    "bounds": ("bounds", "Bound how far a release can be from the real table."),
    "analyze": (
        "analyze",
        "Estimate what holds in the population, with intervals that know of the noise.",
    ),
    "certificate": ("certificate", "Print what a release promises, measured and spent."),
    "new": ("new", "Write the files of a mechanism of your own, and their checks."),
    "verify": ("verify", "Recompute the account of a release and list what contradicts it."),
}


class LoadedCommands(Commands):
    """A group whose commands are loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"margrave.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line a command, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])


@click.group(
    cls=LoadedCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="margrave")
def cli() -> None:
    """Make synthetic copies of sensitive tables under differential privacy."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code: 0, an error's own code, 2 for wrong usage, 70 for a fault of margrave's."""
    arguments = sys.argv[1:] if arguments is None else arguments
    own_output()
    sys.exit(run(arguments))


def own_output() -> None:
    """Reserve standard output for commands; output of compiled libraries goes to standard error.

    The solver behind SciPy's ``milp`` prints a line now and then, which would spoil ``--json``.
    """
    try:
        if sys.stdout.fileno() != 1:
            return
        own = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed, or no file
        return
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdout = os.fdopen(
        own, "w", encoding=encoding, errors=errors, buffering=1 if os.isatty(own) else -1
    )


def run(arguments: list[str]) -> int:
    """Run a command and give its exit code; nothing but KeyboardInterrupt's like gets past."""
    unexpected = 70
    as_json = "--json" in arguments
    try:
        with alarms_on_stderr():
            outcome = cli.main(arguments, prog_name="margrave", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except MargraveError as error:
        return _complain(error.message, error.remedy, error.exit_code, as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        return _complain(*usage_words(error), error.exit_code, as_json)
    except (click.Abort, KeyboardInterrupt):
        return _complain("Interrupted.", None, INTERRUPTED, as_json)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # a reader such as head has left
        return 0
    except (
        Exception
    ) as error:  # the text of a stray exception may hold values of the table: report only its type
        if os.environ.get("MARGRAVE_TRACEBACK") == "1":
            raise
        what = f"margrave failed unexpectedly ({type(error).__name__})."
        return _complain(
            str(error) if isinstance(error, InternalError) else what,
            "This is a fault in margrave. Set MARGRAVE_TRACEBACK=1 to see where; that may show values of the table.",
            unexpected,
            as_json,
        )


@contextmanager
def alarms_on_stderr() -> Iterator[None]:
    """Print what is to be looked at about persons and values as ``schema check`` does, each time; bins that are cut
    and what a refit leaves out as notes; other warnings as usual.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", CustodianWarning)
        warnings.simplefilter("always", PersonWarning)
        warnings.simplefilter("always", BinWarning)
        warnings.simplefilter("always", RefitWarning)
        show = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, CustodianWarning):
                echo(str(message), err=True)
            elif issubclass(category, PersonWarning):
                echo(
                    f"LOOK AT THIS FIRST. {message} NOT PRIVATE: for the custodian alone.", err=True
                )
            elif issubclass(category, BinWarning | RefitWarning):
                echo(f"Note: {message}", err=True)
            else:
                show(message, category, *where, **more)

        warnings.showwarning = tell
        yield


def _complain(message: str, remedy: str | None, code: int, as_json: bool) -> int:
    if as_json:
        echo(json_text(error_facts(message, remedy, code)))
    else:
        echo(f"Error: {message if remedy is None else f'{message} {remedy}'}", err=True)
    return code
