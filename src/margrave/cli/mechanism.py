"""``--mechanism`` and its options: a name and some numbers to a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

import click

from margrave.errors import InputError
from margrave.mechanisms import MECHANISMS, Mechanism
from margrave.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])


def mechanism_options(command: Command) -> Command:
    """``--mechanism``, ``--max-model-mb`` and ``--rounds``."""
    for option in (
        click.option(
            "--rounds", type=int, default=None, help="Rounds at most, where the mechanism has rounds."
        ),
        click.option(
            "--max-model-mb", type=float, default=None, help="Model size at most, where it can grow."
        ),
        click.option(
            "--mechanism",
            "-m",
            type=click.Choice(list(MECHANISMS)),
            default="aim",
            show_default=True,
            help="How to choose what to measure.",
        ),
    ):
        command = option(command)
    return command


def build_mechanism(
    name: str, workload: Workload | None, *, max_model_mb: float | None = None, rounds: int | None = None
) -> Mechanism:
    """The mechanism of that name; no workload means its default. It must understand the numbers given."""
    understood = {f.name for f in fields(cast(Any, MECHANISMS[name]))}
    options: dict[str, Any] = {}
    for option, value in (("max_model_mb", max_model_mb), ("rounds", rounds)):
        if value is None:
            continue
        if option not in understood:
            flag = "--" + option.replace("_", "-")
            raise InputError(f"{flag} means nothing to {name}.", remedy="Leave it out.")
        if value <= 0:
            raise InputError(f"--{option.replace('_', '-')} is {value}.", remedy="It is above 0.")
        options[option] = value
    if "workload" in understood:
        options["workload"] = workload
    mechanism: Mechanism = MECHANISMS[name](**options)
    return mechanism
