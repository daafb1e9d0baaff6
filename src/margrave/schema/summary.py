"""A schema in a few words, with the questions of a draft that are open."""

from __future__ import annotations

from margrave._card import Facts, counted, listed
from margrave.schema.column import Column
from margrave.schema.content import SchemaContent
from margrave.schema.learn import Learn
from margrave.schema.sources import ColumnSource
from margrave.schema.toml_text import string


def facts_of(content: SchemaContent) -> Facts:
    """Return the content of the card of a schema, without a value that was read off the rows."""
    columns, constraints = content.columns, content.constraints
    asked = [c.name for c in columns if content.from_draft and content.remarks.get(c.name)]
    read = any(source.is_read for source in content.sources.values())
    draft = ", DRAFT: values were read off the rows" if read else ""
    questions = f"; open questions on {listed(asked)}" if asked else ""
    line = (
        f"{counted(len(columns), 'column')}: {listed([c.name for c in columns])}{draft}{questions}"
    )
    facts = [(c.name, _in_words(c, content.source(c.name))) for c in columns]
    facts += [] if content.person is None else [(content.person, "person ID, never synthesized")]
    facts += [(name, "left out") for name in content.ignore]
    notes = [f"{counted(len(constraints), 'constraint')}."] if constraints else []
    if asked:
        notes.append(
            f"Open questions: remarks[{string(asked[0])}] shows one. Answer them by declare(...), whose columns take"
            " the keys as arguments, and drop(...); or in the file that save(...) writes."
        )
    return Facts(line, facts, notes)


def _in_words(column: Column, source: ColumnSource) -> str:
    title = f" ({source.title})" if source.title else ""
    return _kind_in_words(column, source) + title


def _kind_in_words(column: Column, source: ColumnSource) -> str:
    if isinstance(column, Learn):
        return f"{column.kind}, to be learned"
    if source.is_read:
        return f"{column.kind}, read off the rows"
    return f"{column.kind}, {counted(column.size, 'code')}"
