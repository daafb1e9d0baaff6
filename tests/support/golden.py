"""Outputs that change only on purpose: a seeded release, its certificate, and the help of every command.

``python -m tests.support.golden`` writes them to ``tests/golden/``; ``house/test_golden.py`` compares. A move of
code leaves them as
they are. A change of a format or a text writes them anew, in a commit that says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.testing import CliRunner

from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import cli
from margrave.mechanisms import AIM
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from tests.support.conformance import memory_table, some_rows

FOLDER = Path(__file__).parents[1] / "golden"
RELEASE, CERTIFICATE, HELP = "release.margrave", "certificate.json", "help.txt"
SIZES = {"age": 7, "sex": 2, "region": 4, "income": 5, "job": 3}


def release() -> Release:
    """Return AIM's release of a small table of dependent columns, from seeded noise."""
    table = memory_table(SIZES, some_rows(SIZES, 400, seed=3))
    with protect(
        table,
        unit=AddRemoveRow(),
        budget=Budget.approx(2.0, 1e-6),
        randomness=SeededRandomness(5),
    ) as private:
        return AIM().run(private, rng=np.random.default_rng(7), progress=None)


def certificate(made: Release) -> dict[str, Any]:
    """Return the certificate without the versions of what is installed, as JSON reads it back."""
    facts: dict[str, Any] = json.loads(json.dumps(made.certificate()))
    del facts["versions"]
    return facts


def commands(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the path of every command and group below this one, itself first."""
    below: list[tuple[str, ...]] = [path]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is None:
                raise LookupError(f"{name} is listed and does not exist")
            below += commands(child, (*path, name))
    return below


def help_texts() -> str:
    """Return the help of every command, in the order of their listings."""
    texts = []
    for path in commands(cli):
        result = CliRunner().invoke(cli, [*path, "--help"], prog_name="margrave", terminal_width=80)
        if result.exit_code != 0:
            raise RuntimeError(f"margrave {' '.join(path)} --help: {result.output}")
        texts.append(f"$ margrave {' '.join([*path, '--help'])}\n{result.output}")
    return "\n".join(texts)


def write() -> None:
    """Write every golden file."""
    FOLDER.mkdir(exist_ok=True)
    made = release()
    made.save(FOLDER / RELEASE, overwrite=True)
    text = json.dumps(certificate(made), indent=1, sort_keys=True) + "\n"
    (FOLDER / CERTIFICATE).write_text(text, encoding="utf-8")
    (FOLDER / HELP).write_text(help_texts(), encoding="utf-8")


if __name__ == "__main__":
    write()
