"""The content of a schema: its fields, for what writes or sums them up without the schema itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from margrave.schema.column import Column
from margrave.schema.constraints import Constraint
from margrave.schema.references import ReferencedFile
from margrave.schema.sources import ColumnSource


@dataclass(frozen=True, repr=False)
class SchemaContent:
    """The fields of a ``Schema``, which describes and checks them."""

    columns: Sequence[Column]
    person: str | None = None
    ignore: Sequence[str] = ()
    constraints: Sequence[Constraint] = ()
    remarks: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    files: Sequence[ReferencedFile] = field(default=(), compare=False, repr=False)
    person_accepts: Sequence[str] = ()
    accepted: Sequence[str] = field(default=(), compare=False, repr=False)
    sources: Mapping[str, ColumnSource] = field(default_factory=dict, hash=False)
    from_draft: bool = field(default=False, compare=False, repr=False)

    def source(self, name: str) -> ColumnSource:
        """Return where the values of a column's declaration come from: public knowledge, unless it says otherwise.

        >>> from margrave.schema.categorical import Coded
        >>> SchemaContent([Coded("sex", 2)]).source("sex").of
        'public'
        """
        return self.sources.get(name, ColumnSource())
