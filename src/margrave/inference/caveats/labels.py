"""The labels of the codes that names of estimates show."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten

from margrave._card import listed
from margrave.inference.caveats.context import Context
from margrave.inference.estimate import Caveat
from margrave.release.conditions import codes_of
from margrave.schema import Schema


def check(context: Context) -> Iterator[Caveat]:
    """Yield what the codes of estimates and conditions mean, by column, if the schema has labels of them."""
    max_codes, max_letters = 10, 60
    if context.release is None:
        return
    found, schema = list[str](), context.release.schema
    for column, codes in _codes(context, schema).items():
        entries = [
            f"{code} = {shorten(label, max_letters, placeholder=' ...')}"
            for code, label in schema.source(column).labels.items()
            if code in codes
        ]
        if entries:
            found.append(f"{column} {listed(entries, max_codes)}")
    if found:
        yield Caveat("labels", (), False, f"Codes: {'; '.join(found)}.")


def _codes(context: Context, schema: Schema) -> dict[str, set[str]]:
    """Return the codes of columns with labels that estimates compare, or that conditions select."""
    labelled = {
        name: schema.column(name).labels() for name, s in schema.sources.items() if s.labels
    }
    found: dict[str, set[str]] = {}
    for name in context.names:
        for column, levels in context.term(name).levels.items():
            every = levels is None or "" in levels
            codes = labelled.get(column, []) if every else levels or ()
            found.setdefault(column, set()).update(codes)
    for column, condition in () if context.basis is None else context.basis.conditions:
        if column in labelled:
            codes = [labelled[column][i] for i in codes_of(schema, column, condition)]
            found.setdefault(column, set()).update(codes)
    return found
