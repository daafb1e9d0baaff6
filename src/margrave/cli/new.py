"""``margrave new``."""

from __future__ import annotations

from importlib.resources import files
from keyword import iskeyword
from pathlib import Path

import click

from margrave.cli.terminal import echo
from margrave.cli.usage import Commands
from margrave.errors import InputError
from margrave.mechanisms import MECHANISM_CATALOG


@click.group("new", cls=Commands)
def new_command() -> None:
    """Write the files of a mechanism of your own."""


@new_command.command("mechanism")
@click.argument("name")
def new_mechanism(name: str) -> None:
    """Write NAME.py, a small mechanism to change, and test_NAME.py, which runs the checks on it.

    NAME is in lower case, such as star or two-stars. Existing files are not changed.
    """
    shown, name = name.replace("_", "-"), name.replace("-", "_")
    if not (name.isidentifier() and name.islower()):
        raise InputError(
            f"{shown!r} is not the name of a mechanism.",
            remedy="Use lower-case letters, digits and hyphens, such as two-stars.",
        )
    kind = "".join(part.title() for part in name.split("_"))
    if iskeyword(name) or iskeyword(kind):
        raise InputError(
            f"{shown!r} is a word of Python, which a class and a module cannot have as their name.",
            remedy=f"Choose another name, such as my-{shown}.",
        )
    if shown in MECHANISM_CATALOG.names():
        raise InputError(
            f"{shown!r} is the name of a mechanism that is installed.",
            remedy=f"Choose another name, such as my-{shown}.",
        )
    written = {f"{name}.py": "mechanism.py.txt", f"test_{name}.py": "test_mechanism.py.txt"}
    for path in filter(lambda path: Path(path).exists(), written):
        raise InputError(f"{path} exists.", remedy="Choose another name, or move that file.")
    for path, template in written.items():
        text = files("margrave.cli").joinpath("templates", template).read_text("utf-8")
        text = text.replace('"star"', f'"{shown}"').replace("Star", kind).replace("star", name)
        Path(path).write_text(text, encoding="utf-8")
    echo(f"Wrote {' and '.join(written)}. Run the checks with: python -m pytest test_{name}.py")
