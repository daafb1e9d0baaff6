"""Tables that other distributions open, by the names of their entry points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from margrave.data.table import Table
from margrave.error_sanitizer import Failure, raise_sanitized, run_sanitized
from margrave.errors import DataError, InputError
from margrave.plugins import TABLE_GROUP, Catalog
from margrave.schema import Schema


def _fault(name: str, kind: Any) -> str:
    if isinstance(kind, type) and callable(getattr(kind, "open", None)):
        return ""
    return "it is not a class with open(location, schema)"


#: The kinds of tables of other distributions; margrave's own are files and frames.
TABLE_CATALOG: Catalog[Any] = Catalog("kind of table", TABLE_GROUP, {}, _fault, "a path")


@dataclass(frozen=True)
class TableSource:
    """A table that is opened by a class of another distribution. `synthesize` takes one for a path.

    Args:
        kind: The name of an entry point of ``margrave.tables``.
        location: Where the table is, in the words of that class: a file, or an address.

    Raises:
        InputError: If no installed distribution offers the kind.

    Privacy:
        None spent. The class runs where the rows are, so it is trusted with them.
    """

    kind: str
    location: str

    def __post_init__(self) -> None:
        TABLE_CATALOG.get(self.kind)

    def __fspath__(self) -> str:
        """Return the location: a schema or a public table in the same file is refused."""
        return self.location

    def open(self, schema: Schema) -> Table:
        """Return the table.

        Raises:
            InputError: If the class gives something else than a table of its own.
            DataError: If it fails. The text names the kind of failure and the line alone.
        """
        kind = TABLE_CATALOG.get(self.kind)
        opened = run_sanitized(lambda: kind.open(self.location, schema))
        if isinstance(opened, Failure):
            raise_sanitized(
                opened,
                DataError,
                f"The kind of table {self.kind!r} could not open the table",
                "Is the location right? If it is, report this to the authors of its distribution.",
            )
        if not isinstance(opened, kind) or not isinstance(opened, Table):
            raise InputError(
                f"The kind of table {self.kind!r} did not open a table of its own class.",
                remedy="Report this to the authors of its distribution.",
            )
        return opened
