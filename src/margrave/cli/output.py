"""Output of commands: tables to files, facts to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape as escape_markup
from rich.segment import Segment
from rich.table import Table

from margrave._io import check_output, is_part_of, same_file, written_whole
from margrave.cli.terminal import STEERING_IN_LINES, visible
from margrave.errors import InputError
from margrave.schema import Schema, Timestamp

NUMBER = r"\A[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?\z"


def check_outputs(
    paths: Mapping[str, str | None],
    *,
    overwrite: bool,
    inputs: Mapping[str, str | None] | None = None,
) -> None:
    """Raise ``InputError`` unless every output can be written, all differ, and none is an input.

    ``inputs`` are the files that the command reads or keeps, by the names that its user knows.
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
        check_output(path, overwrite=overwrite)
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


def write_table(
    table: pa.Table,
    path: str,
    *,
    overwrite: bool,
    schema: Schema | None = None,
    excel_safe: bool = False,
) -> None:
    """Write rows to Parquet or CSV by the file's ending, whole or not at all.

    ``schema`` defines which times of a CSV file are days.
    """
    with written_whole(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        if (
            Path(path).suffix.lower() == ".csv"
        ):  # to an open file: Arrow takes some paths, such as http:/x, for a URI
            plain = _plain_times(table, schema)
            pyarrow.csv.write_csv(without_formulas(plain) if excel_safe else plain, file)
        else:
            pyarrow.parquet.write_table(table, file, compression="zstd")


def without_formulas(table: pa.Table) -> pa.Table:
    """Return the table with texts and column names that no spreadsheet takes for formulas."""
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            table = table.set_column(i, field.name, _quoted(table.column(i).cast(pa.string())))
    return table.rename_columns(_quoted(pa.array(table.column_names, pa.string())).to_pylist())


def _quoted(texts: Any) -> Any:
    # Beginnings of texts that spreadsheets run. Apostrophes before one are kept apart from the
    # one that is added.
    formula = r"\A'*[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
    runs = pc.and_not(
        pc.match_substring_regex(texts, formula), pc.match_substring_regex(texts, NUMBER)
    )
    return pc.if_else(runs, pc.binary_join_element_wise("'", texts, ""), texts)


def _plain_times(table: pa.Table, schema: Schema | None) -> pa.Table:
    known = () if schema is None else schema.columns
    days = {c.name for c in known if isinstance(c, Timestamp) and c.unit == "day"}
    for i, field in enumerate(table.schema):
        if not pa.types.is_timestamp(field.type):
            continue
        column = table.column(i)
        for kind in (
            *([pa.date32()] if field.name in days else []),
            pa.timestamp("s", field.type.tz),
        ):
            shorter = column.cast(kind, safe=False)
            if shorter.cast(field.type).equals(column):  # else some value has more to it
                table = table.set_column(i, field.name, shorter)
                break
    return table


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


def thresholds_in_words(threshold_delta: float) -> str:
    """Return the part of delta that is for thresholds, in brackets; empty if there is none."""
    return f" ({threshold_delta:g} of it for thresholds)" if threshold_delta else ""


def facts_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Return names and values in two columns; brackets are not markup."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(escape(name), escape(value))
    return table


def console() -> Console:
    """Return standard output, in color on a terminal."""
    return Plain(highlight=False, soft_wrap=False)
