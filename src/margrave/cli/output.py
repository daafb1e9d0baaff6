"""Output of commands: tables to files, facts to the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape as escape_markup
from rich.segment import Segment
from rich.table import Table

from margrave._io import check_output, is_part_of, same_file
from margrave.cli.terminal import STEERING_IN_LINES, visible
from margrave.errors import InputError


def check_outputs(
    paths: Mapping[str, str | None],
    *,
    overwrite: bool,
    inputs: Mapping[str, str | None] | None = None,
    replaced: Collection[str] = (),
) -> None:
    """Raise ``InputError`` unless every output can be written, all differ, and none is an input.

    ``inputs`` are the files that the command reads or keeps, by the names that its user knows.
    ``replaced`` are the options whose files are replaced also without ``overwrite``.
    """
    seen: dict[str, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        for name, read in (inputs or {}).items():
            if read is not None and is_part_of(path, read):
                raise InputError(
                    f"{option} and {name} name the same file ({path}), which would be lost.",
                    remedy="Name another output; --overwrite is for outputs of earlier runs.",
                )
        check_output(path, overwrite=overwrite or option in replaced)
        for other, taken in seen.items():
            if same_file(path, taken):
                raise InputError(f"{option} and {other} name the same file.", remedy="Name two.")
        seen[option] = path


def check_format(path: str | None, option: str = "-o") -> None:
    """Raise ``InputError`` unless the file has the ending of a known format."""
    formats = (".parquet", ".csv")
    if path is not None and Path(path).suffix.lower() not in formats:
        raise InputError(
            f"{option} {path} ends in neither {' nor '.join(formats)}.",
            remedy=f"Name it so: {Path(path).stem}.parquet or {Path(path).stem}.csv.",
        )


def check_excel_safe(path: str | None, excel_safe: bool) -> None:
    """Raise ``InputError`` if --excel-safe is given for anything but a CSV file."""
    if excel_safe and (path is None or Path(path).suffix.lower() != ".csv"):
        raise InputError(
            "--excel-safe is for a CSV file.",
            remedy="Name one: -o rows.csv, or leave --excel-safe out.",
        )


def excel_safe_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``--excel-safe``."""
    return click.option(
        "--excel-safe",
        is_flag=True,
        help="In CSV, put an apostrophe before texts that a spreadsheet would run as a formula (= + - @ tab, return).",
    )(command)


def escape(text: str) -> str:
    """Return text for the inside of a line of the console: no markup, no steering character, no line feed."""
    return escape_markup(visible(text))


class Plain(Console):
    """A console on which no text steers the terminal, whatever it is made of."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of a renderable, their texts without steering characters."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text, STEERING_IN_LINES), segment.style)


def facts_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Return names and values in two columns; brackets are not markup."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(escape(name), escape(value))
    return table


def console() -> Console:
    """Return standard output: in color and as wide as the terminal, or without folded lines in a file or a pipe."""
    unfolded = 10_000
    found = Plain(highlight=False, soft_wrap=False)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found.width = unfolded
    return found
