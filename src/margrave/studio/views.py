"""Facts about a table for the custodian's eyes: the draft with a picture of each column, a check, a comparison.

**Privacy:** NOT private. They are shown on the custodian's page and kept in memory only. Only ``rows`` reads a release
alone, and writes a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from margrave.codebooks.statistical import has_labels, read_labels
from margrave.codebooks.variable import Variable
from margrave.data import read_table
from margrave.data.batch_sources import Files, open_source, sampled_frame
from margrave.data.formats import FormattedFile
from margrave.data.writer import write_table
from margrave.error_sanitizer import hide_rows
from margrave.errors import DataError
from margrave.evaluation import WARNING, evaluate
from margrave.frames import each_column
from margrave.mechanisms import default_mechanism
from margrave.profiling import check_table, constraint_questions
from margrave.profiling.draft import quiet_draft
from margrave.release import Release
from margrave.row_checks import check_rows
from margrave.schema import ColumnSource, Schema
from margrave.schema.column_profile import profile_column
from margrave.schema.parts import source_name
from margrave.schema.person_check import PersonCheck
from margrave.schema.sources import labels_left, with_labels
from margrave.studio.histograms import Histogram, histogram_of
from margrave.studio.job import JobFolder


@hide_rows
def read(table: str) -> dict[str, Any]:
    """Return the draft of a table, its questions, and a histogram of each column."""
    max_rows = 1_000_000
    frame = sampled_frame(table, rows=max_rows)
    labels = _labels_in(table)
    drafted = _with_labels(quiet_draft(frame), labels)
    questions = constraint_questions(frame, drafted)
    return {
        "toml": drafted.for_run().to_toml(),
        "labels": {
            name: with_labels(list(v.labels), ColumnSource(labels=v.labels))
            for name, v in labels.items()
        },
        "remarks": dict(drafted.remarks),
        "rows": _rows_of(table, frame),
        "sampled": frame.num_rows >= max_rows,
        "questions": [[q.kind, list(q.columns), q.words] for q in questions],
        "histograms": {n: vars(h) for n, h in _histograms(frame, drafted).items()},
        "persons": _persons(frame, drafted.person),
    }


def _labels_in(table: str) -> dict[str, Variable]:
    """Return the titles and labels in a file of Stata, SPSS or SAS, by column."""
    source = open_source(table)
    file = source.files[0] if isinstance(source, Files) else source
    if not isinstance(file, FormattedFile) or not has_labels(file.path):
        return {}
    try:
        return {v.name: v for v in read_labels(file.path)}
    except DataError:  # a damaged catalog of SAS, without which the rows are read
        return {}


def _with_labels(drafted: Schema, labels: Mapping[str, Variable]) -> Schema:
    """Return a draft with the labels of its columns. The answers to it do not publish them."""
    sources = {
        c.name: replace(drafted.source(c.name), title=v.title, labels=labels_left(v.labels, c))
        for c in drafted.columns
        if (v := labels.get(c.name)) is not None
    }
    return replace(drafted, sources={**drafted.sources, **sources})


def _rows_of(table: str, frame: pa.Table) -> int:
    source = open_source(table)
    stated = None if source is None else source.rows()
    return frame.num_rows if stated is None else stated


def _histograms(frame: pa.Table, drafted: Schema) -> dict[str, Histogram]:
    found = {}
    for column in drafted.columns:
        name = source_name(column)
        found[column.name] = histogram_of(column, drafted.pieces_of(frame, [name])[name])
    return found


def _persons(frame: pa.Table, person: str | None) -> list[str]:
    if person is None:
        return []
    ((_, pieces),) = each_column(frame, [person])
    return _lines(PersonCheck.of_counts(profile_column(person, pieces).counts.rows, 0))


def _lines(found: PersonCheck) -> list[str]:
    return found.lines("“Rows that one person may contribute”")  # as on the page Protection


@hide_rows
def check(table: str, toml: str) -> dict[str, Any]:
    """Return the counts of values outside a schema, with what to look at first."""
    found = check_table(table, Schema.from_toml(toml))
    lost = [c for c in found.columns if c.empty or c.outside or c.unreadable]
    return {
        "rows": found.rows,
        "passed": found.passed,
        "alarms": [str(a) for a in found.alarms],
        "columns": [[c.name, c.empty, c.outside, c.unreadable, c.policy] for c in lost],
        "constraints": [[k.name, k.rows, k.policy] for k in found.constraints if k.rows],
        "persons": [] if found.persons is None else _lines(found.persons),
        "sentences": [*found.notes, *found.refusals],
    }


@hide_rows
def compare(table: str, release: str) -> dict[str, Any]:
    """Return the comparison of a table with a release."""
    found = evaluate(table, release)
    return {
        "warning": WARNING,
        "note": found.note,
        "real_rows": found.real_rows,
        "synthetic_rows": found.synthetic_rows,
        "sample_size": found.equivalent_sample_size(),
        "workload_error": found.workload_error,
        "one_way": found.mean_one_way,
        "two_way": found.mean_two_way,
        "html": found.report().html,
    }


@hide_rows
def refusal(folder: str) -> dict[str, Any]:
    """Read the table of a run as the run does. Return nothing if it can be read, and raise as the run if not."""
    job = JobFolder(Path(folder))
    order, schema = job.order, job.schema()
    mechanism = order.choice.mechanism(schema, order.table) or default_mechanism(schema.domain)()
    check_rows(read_table(order.table, schema), mechanism)
    return {}


def rows(folder: str, name: str) -> dict[str, Any]:
    """Write the drawn rows of a run in the format that a name ends in. Return nothing.

    Raises:
        InputError: The file cannot be written, its format cannot hold the rows, or its library is not installed.
    """
    run = Path(folder)
    with (run / "rows.parquet").open("rb") as file:
        drawn = pyarrow.parquet.read_table(file)
    schema = Release.load(run / "release.margrave").schema
    write_table(drawn, str(run / name), overwrite=True, schema=schema)
    return {}


def draft_of(found: dict[str, Any]) -> Schema:
    """Return the draft in the answer of ``read``."""
    return replace(Schema.from_toml(found["toml"]), remarks=found["remarks"], from_draft=True)
