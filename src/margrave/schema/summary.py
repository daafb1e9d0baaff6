"""A schema in a few words, with the questions of a draft that are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from margrave._card import Facts, listed
from margrave.schema.column import Column
from margrave.schema.constraints import Constraint
from margrave.schema.learn import Learn
from margrave.schema.sources import ColumnSource
from margrave.schema.toml_text import string

#: Beginning of the remarks of a draft.
DRAFT_HEAD = "A DRAFT"


def is_drafted(remarks: Mapping[str, str]) -> bool:
    """Return True for the remarks of a draft, which a schema from a file does not have."""
    return remarks.get("", "").startswith(DRAFT_HEAD)


def facts_of(
    columns: Sequence[Column],
    sources: Mapping[str, ColumnSource],
    person: str | None,
    ignore: Sequence[str],
    constraints: Sequence[Constraint],
    remarks: Mapping[str, str],
) -> Facts:
    """Return the content of the card of a schema, without a value that was read off the rows."""
    asked = [c.name for c in columns if remarks.get(c.name)] if is_drafted(remarks) else []
    read = any(source.is_read for source in sources.values())
    draft = ", DRAFT: values were read off the rows" if read else ""
    questions = f"; open questions on {listed(asked)}" if asked else ""
    line = f"{len(columns)} columns: {listed([c.name for c in columns])}{draft}{questions}"
    facts = [(c.name, _in_words(c, sources.get(c.name, ColumnSource()))) for c in columns]
    facts += [] if person is None else [(person, "person ID, never synthesized")]
    facts += [(name, "left out") for name in ignore]
    notes = [f"{len(constraints)} constraints."] if constraints else []
    if asked:
        notes.append(
            f"Open questions: remarks[{string(asked[0])}] shows one. Answer them by declare(...) and drop(...), or in"
            " the file that save(...) writes."
        )
    return Facts(line, facts, notes)


def _in_words(column: Column, source: ColumnSource) -> str:
    if isinstance(column, Learn):
        return f"{column.kind}, to be learned"
    if source.is_read:
        return f"{column.kind}, read off the rows"
    return f"{column.kind}, {column.size} codes"
