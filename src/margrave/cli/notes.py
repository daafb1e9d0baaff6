"""Notes before a run: what it keeps, ledgers that lie beside it, and columns that may be a person ID column."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from margrave._card import listed
from margrave._io import files_of, is_own
from margrave.cli.terminal import echo
from margrave.codebooks import has_labels
from margrave.data.file_columns import has_whole_categories
from margrave.progress import Callback
from margrave.schema import Schema
from margrave.schema.alarms import Alarm
from margrave.schema.column_check import LOOK
from margrave.schema.person_names import names_a_key, names_one_person
from margrave.schema.toml_text import string


def ledger_note(files: Mapping[str, str | None]) -> str:
    """Return a note if a ledger lies in the current folder, or beside a file of a run without one; "" if not.

    Args:
        files: The files by their options.
    """
    folders = [Path()]
    for path in files.values():
        folders += [] if path is None else [file.parent for file in files_of(path)]
    found = dict[str, str]()
    for folder in folders:
        for ledger in _ledgers_in(folder):
            found.setdefault(os.path.realpath(ledger), str(ledger))
    if not found:
        return ""
    first, *others = found.values()
    if others:
        return (
            f"This run is not charged to a ledger, and there are ledgers in {listed([first, *others])}. If one of them"
            " has a cap for these rows or persons, stop, and give --ledger FILE --dataset NAME; margrave ledger show"
            " FILE lists the names."
        )
    return (
        f"This run is not charged to a ledger, and there is one in {first}. If it has a cap for these rows or persons,"
        f" stop, and give --ledger {first} --dataset NAME; margrave ledger show {first} lists the names."
    )


def output_notes(outputs: Mapping[str, str | None], schema: Schema) -> list[str]:
    """Return notes if a run keeps no release, and if a file of its rows loses value labels."""
    kept = "This run keeps no release. Intervals, analyses and further rows need one."
    release = f"{kept} --release FILE.margrave keeps one."
    return [*([] if outputs["--release"] else [release]), stata_note(outputs["-o"], schema)]


def import_note(file: str) -> str:
    """Return a note, behind a blank, on a file that may hold labels; "" for other files."""
    if not has_labels(file):
        return ""
    return f" {file} may hold labels of its columns and values: margrave schema import {file} reads them, and no row."


def stata_note(output: str | None, schema: Schema) -> str:
    """Return a note if value labels of the schema are lost in a file of Stata; "" if not."""
    if output is None or Path(output).suffix.lower() != ".dta":
        return ""
    listed_texts = (c for c in schema.columns if c.kind in ("categorical", "ordinal"))
    texts = [c.name for c in listed_texts if not has_whole_categories(c)]
    lost = [name for name in texts if schema.source(name).labels]
    if not lost:
        return ""
    return f"{output} has no value labels of {listed(lost)}, because Stata has none for texts. A .sav file has them."


def warn_of_persons(schema: Schema) -> None:
    """Print a warning if the schema names no person ID column, and a column's name suggests one. Reads no row.

    ``schema check`` prints the same warning after a look at the rows. A draft from the rows has its own questions.
    """
    if schema.person is not None or schema.from_draft:
        return
    ignored = {name: names_one_person(name) for name in schema.ignore}
    synthesized = {column.name: names_a_key(column.name) for column in schema.columns}
    suggested = [name for name, suggests in {**ignored, **synthesized}.items() if suggests]
    open_ = [name for name in suggested if f"person: {name}" not in schema.accepted]
    if not open_:
        return
    name = min(open_, key=lambda n: not names_a_key(n))
    what, remedy = (
        ("ignored", "take it out of ignore")
        if name in ignored
        else ("synthesized", "take its [[column]] out")
    )
    words = (
        f"Column {name!r} is {what}, and its name suggests that it says whose row it is. If so, {remedy}, and write"
        f" person = {string(name)} in [schema]: without it a run protects single rows, and no persons."
    )
    echo(f"{LOOK} {Alarm(f'person: {name}', words)}", err=True)


def after_notes(notes: Iterable[str], progress: Callback) -> Callback:
    """Return a callback that prints notes at its first call, when nothing refuses the run anymore."""
    noted = False

    def update(stage: str, done: float) -> None:
        nonlocal noted
        if not noted:
            noted = True
            for note in filter(None, notes):
                echo(f"Note: {note}", err=True)
        progress(stage, done)

    return update


def _ledgers_in(folder: Path) -> list[Path]:
    max_files = 1000
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, max_files):
            with suppress(OSError):
                if entry.is_file() and is_own(entry.path, "ledger"):
                    found.append(Path(entry.path))
    return sorted(found)
