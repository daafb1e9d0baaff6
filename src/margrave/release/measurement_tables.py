"""The noisy marginals of a release as tables: one row per noisy count, with what its cell stands for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from margrave.errors import ReleaseError
from margrave.schema import Schema
from margrave.transcript import Measurement, Transcript
from margrave.types import Attribute


def measurement_table(schema: Schema, transcript: Transcript) -> pa.Table:
    """Return all noisy marginals as one table, in the order of the transcript.

    Args:
        schema: The public schema.
        transcript: The noisy answers.

    Returns:
        The columns ``measurement`` (from 1), ``marginal`` (its columns), each column of the schema (the cell; null
        outside the marginal), ``noisy_count`` and ``noise_scale`` (a standard deviation). A fact whose name is a
        column of the schema ends in an underscore.

    Raises:
        ReleaseError: The release has no noisy marginal.

    Privacy:
        None spent: a function of the transcript and the schema.
    """
    tables = measurement_tables(schema, transcript)
    measurement, marginal = _apart(schema, "measurement", "marginal")
    numbered = [
        table.add_column(0, marginal, _same(", ".join(m.clique), table.num_rows)).add_column(
            0, measurement, pa.array(np.full(table.num_rows, i))
        )
        for i, (table, m) in enumerate(zip(tables, transcript.measurements, strict=True), 1)
    ]
    names = [measurement, marginal, *schema.domain, *_apart(schema, "noisy_count", "noise_scale")]
    whole = pa.concat_tables(numbered, promote_options="default")
    return whole.select([n for n in names if n in whole.column_names])


def measurement_tables(schema: Schema, transcript: Transcript) -> list[pa.Table]:
    """Return a table of each noisy marginal: its columns, ``noisy_count`` and ``noise_scale``. See `measurement_table`.

    Raises:
        ReleaseError: The release has no noisy marginal.

    Privacy:
        None spent: a function of the transcript and the schema.
    """
    if not transcript.measurements:
        raise ReleaseError(
            "The release has no noisy marginal: its mechanism asked other questions.",
            remedy="margrave certificate lists them.",
        )
    count, scale = _apart(schema, "noisy_count", "noise_scale")
    return [
        pa.table({
            **_cells(schema, m),
            count: m.values.reshape(-1),
            scale: np.full(m.values.size, m.scale),
        })
        for m in transcript.measurements
    ]  # fmt: skip


def _cells(schema: Schema, measurement: Measurement) -> dict[Attribute, pa.Array]:
    places = np.indices(measurement.values.shape).reshape(len(measurement.clique), -1)
    found = {}
    for attribute, place in zip(measurement.clique, places, strict=True):
        labels = pa.array(_labels(schema, measurement, attribute), pa.string())
        found[attribute] = pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), labels).cast(
            pa.string()
        )
    return found


def _labels(schema: Schema, measurement: Measurement, attribute: Attribute) -> list[str]:
    """Return what the answers along an attribute stand for: codes, several of them, or a weighted sum."""
    labels, query = schema.column(attribute).labels(), measurement.query
    if attribute not in query.groups and attribute not in query.matrices:
        return labels
    rows = query.rows(attribute, len(labels))
    return [_sum((int(w), t) for w, t in zip(row, labels, strict=True) if w) for row in rows]


def _sum(weights: Iterable[tuple[int, str]]) -> str:
    pairs = list(weights)
    if all(w == 1 for w, _ in pairs):
        return " | ".join(t for _, t in pairs)
    return " ".join(f"{w:+d} × ({t})" for w, t in pairs)


def _same(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [text]).cast(pa.string())


def _apart(schema: Schema, *facts: str) -> list[str]:
    """Return names of facts that no column has."""
    taken = {a.lower() for a in schema.domain}
    names = []
    for fact in facts:
        name = fact
        while name in taken:
            name += "_"
        names.append(name)
    return names
