"""Public rows that lack columns, beside what a release says of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from margrave.errors import InputError
from margrave.models.protocol import Model
from margrave.public import Public
from margrave.schema import Codes, Schema
from margrave.schema.elements import LINES
from margrave.schema.frames import columns_of, names_of
from margrave.schema.numeric import drawn
from margrave.schema.ordered import Drawn
from margrave.schema.zeros import violating


def completed(
    schema: Schema, model: Model, rows: Any, attestation: str, rng: np.random.Generator
) -> pa.Table:
    """The rows with all of the schema's columns; those they lack are drawn. See ``Release.complete``."""
    given = schema.only(_known(schema, names_of(rows)))
    codes, preflight = given.read(rows)
    preflight.require()
    public = Public(codes, attestation)  # which checks the attestation
    _check(given, codes)
    whole = model.complete(public.codes, rng=rng)
    _check(schema, whole)
    return schema.decode(whole, rng=rng, known=_points(given, codes, rows, rng))


def _known(schema: Schema, found: list[str]) -> list[str]:
    """The schema's columns that the rows have."""
    passed_over = {*schema.ignore, schema.person}
    strange = [n for n in found if n not in schema.domain and n not in passed_over]
    known = [a for a in schema.domain if a in found]
    if strange:
        raise InputError(
            f"The rows have a column {strange[0]!r}, which the release does not know.",
            remedy=f"Drop it, or rename it. The release's columns are: {', '.join(schema.domain)}.",
        )
    if not known or len(known) == len(schema.domain):
        raise InputError(
            f"The rows have {'none' if not known else 'all'} of the release's columns.",
            remedy="Give some of them: the others are drawn.",
        )
    return known


def _check(schema: Schema, codes: Codes) -> None:
    """Raise ``InputError`` where the schema rules a row out."""
    wrong = int(violating(schema.domain.zeros, codes.column, len(codes)).sum())
    if wrong:
        raise InputError(
            f"{wrong:,} of the rows have values that the schema declares impossible together.",
            remedy="Mend or drop these rows, or mend the schema's constraints and release anew.",
        )


def _points(schema: Schema, codes: Codes, rows: Any, rng: np.random.Generator) -> dict[str, Drawn]:
    """Numbers, dates and times as they were given; what the schema cannot hold is drawn for its code, as elsewhere."""
    found = {}
    lines = [c for c in schema.columns if isinstance(c, LINES)]
    for column, pieces in zip(lines, columns_of(rows, [c.name for c in lines]).values(), strict=True):
        values, null = drawn(column, codes.column(column.name).astype(np.int64), rng)
        points = np.concatenate([column.points(piece)[0] for piece in pieces])
        low, high = column.cells.edges[0], column.cells.edges[-1] - column.cells.whole
        inside = ~null & (points >= low) & (points <= high)
        found[column.name] = (np.where(inside, points, values), null)
    return found
