"""Output of commands: tables to files, facts to the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape as escape_markup
from rich.segment import Segment
from rich.table import Table

from margrave._io import check_no_folder, check_output, is_part_of, same_file
from margrave.cli.terminal import STEERING_IN_LINES, visible
from margrave.errors import InputError


def check_named(outputs: Mapping[str, str | None], rows: int | None) -> None:
    """Raise ``InputError`` if a run would spend its budget for no output, or an output is a folder."""
    if not any(outputs.values()):
        raise InputError(
            "No output is named, so the budget would be spent for nothing.",
            remedy="Name at least one: -o rows.parquet, --release release.margrave, --report report.html.",
        )
    if rows is not None and rows < 0:
        raise InputError(f"--rows is {rows}.", remedy="Give at least 0.")
    if rows == 0 and outputs["-o"] is not None:
        raise InputError(
            "--rows is 0, so -o would hold no row and the budget be spent for nothing.",
            remedy="Give at least 1, or --release without -o.",
        )
    for path in filter(None, outputs.values()):
        check_no_folder(path)


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
            if read and is_part_of(path, read):
                raise InputError(
                    f"{option} and {name} name the same file ({path}), which would be lost.",
                    remedy="Name another output; --overwrite is for outputs of earlier runs.",
                )
        check_output(path, overwrite=overwrite or option in replaced)
        for other, taken in seen.items():
            if same_file(path, taken):
                raise InputError(f"{option} and {other} name the same file.", remedy="Name two.")
        seen[option] = path


def check_not_the_table(table: str, public: Mapping[str, str | None]) -> None:
    """Raise ``InputError`` if a file whose contents count as public is the private table."""
    for option, path in public.items():
        if path is not None and is_part_of(path, table):
            raise InputError(
                f"{option} names the private table, {path}, and its contents would count as public.",
                remedy="Name another file. Public columns of the private records take --same-records."
                if option == "--public"
                else "Name another file.",
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
    """A console on which no text steers the terminal, whatever it is made of, and no line ends in blanks."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of a renderable, without steering characters and without blanks before a line's end."""
        blanks: list[Segment] = []
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
                continue
            text = re.sub(" +(?=\n)", "", visible(segment.text, STEERING_IN_LINES))
            shown = text.rstrip(" ")
            if shown:
                if not shown.startswith("\n"):
                    yield from blanks
                blanks.clear()
                yield Segment(shown, segment.style)
            if len(shown) < len(text):
                blanks.append(Segment(text[len(shown) :], segment.style))
        yield from blanks


def facts_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Return names and values in two columns, long values folded; brackets are not markup."""
    max_width = 120
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold", max_width=max_width)
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
